"""Differences between learners: the formulas, and by simulation how often they claim what is not there."""

import numpy as np
import pytest
from scipy import stats

from mercerless.comparison.statistics import (
    Differences,
    ScoredSplit,
    _item_covariance,
    compare_scores,
    compare_splits,
    critical_value,
)

pytestmark = pytest.mark.slow

N_FOLDS = 5


def simulate(rng, n_items, n_learners, n_repeats, boost=0.0, shared=0.9, unstable=0.0, failing=0.0):
    """Splits of nearest-mean classifiers that each see their own noisy copy of the features.

    All learners are equally good, but for `boost` in the first one's signal; `shared` is the part of the noise that
    they have in common, `unstable` moves every learner's threshold at random in every training, and `failing` is how
    often a training fails altogether, so that the learner guesses.
    """
    y = np.repeat([0, 1], n_items // 2)
    X = np.sqrt(shared) * rng.normal(size=(n_items, 1, 3))
    X = X + np.sqrt(1 - shared) * rng.normal(size=(n_items, n_learners, 3))
    X[..., 0] += 0.6 * (2 * y - 1)[:, None]
    X[:, 0, 0] += boost * (2 * y - 1)
    splits = []
    for repeat in range(n_repeats):
        fold = np.concatenate([rng.permutation(n_items // 2) % N_FOLDS for _ in range(2)])
        for k in range(N_FOLDS):
            test = fold == k
            zero, one = (X[~test & (y == label)].mean(axis=0) for label in (0, 1))
            nearer = ((X[test] - zero) ** 2).sum(-1) - ((X[test] - one) ** 2).sum(-1)
            nearer += unstable * rng.normal(size=n_learners)
            correct = ((nearer > 0) == (y[test] == 1)[:, None]).astype(float)
            if failing:
                correct[:, rng.uniform(size=n_learners) < failing] = rng.integers(
                    0, 2, size=(test.sum(), 1)
                )
            splits.append(ScoredSplit(repeat, np.flatnonzero(test), y[test], correct))
    return splits


def compared(*args, **how):
    return compare_splits(simulate(*args, **how), N_FOLDS)


def claims(found):
    n = len(found.mean)
    return any(found.better(i, j) for i in range(n) for j in range(n) if i != j)


@pytest.mark.parametrize(
    "n_items, n_learners, n_repeats, how",
    [
        (100, 8, 2, {}),
        (100, 2, 3, {"shared": 0.6}),
        (100, 12, 1, {"shared": 0.6}),
        (100, 12, 1, {"shared": 0.6, "unstable": 1.5}),
        (100, 12, 3, {"shared": 0.6, "unstable": 1.5}),
        (100, 12, 5, {"shared": 0.6, "unstable": 4.0}),
        (300, 12, 1, {"shared": 0.6, "unstable": 4.0}),
        (200, 8, 1, {"failing": 0.15}),
        (200, 8, 3, {"failing": 0.15}),
    ],
)
def test_without_a_difference_one_is_claimed_in_at_most_five_percent(
    n_items, n_learners, n_repeats, how
):
    rng = np.random.default_rng(7)
    claimed = [claims(compared(rng, n_items, n_learners, n_repeats, **how)) for _ in range(200)]
    assert np.mean(claimed) <= 0.05


def test_the_uncorrected_test_would_claim_far_too_much():
    """The simulation can fail: ordinary paired t tests over the splits break it."""
    rng = np.random.default_rng(7)
    claimed = 0
    for _ in range(100):
        scores = np.array([split.contributions.mean(axis=0) for split in simulate(rng, 100, 8, 3)])
        p = [stats.ttest_rel(scores[:, i], scores[:, j]).pvalue for i in range(8) for j in range(i)]
        claimed += np.nanmin(p) < 0.05
    assert claimed > 50


@pytest.mark.parametrize("boost, size, found_in", [(0.27, 2.0, 0.4), (0.42, 3.0, 0.9)])
def test_a_difference_between_two_learners_is_found(boost, size, found_in):
    rng = np.random.default_rng(7)
    runs = [compared(rng, 120, 2, 5, boost=boost) for _ in range(200)]
    means = np.array([run.mean for run in runs])
    # in standard errors of one score, as a table would print them
    measured = (means[:, 0] - means[:, 1]).mean() / means[:, 1].std()
    assert measured == pytest.approx(size, abs=0.1)
    assert np.mean([run.better(0, 1) for run in runs]) > found_in
    assert not any(run.better(1, 0) for run in runs)


@pytest.mark.parametrize("boost, size, found_in", [(0.42, 3.0, 0.6), (0.55, 3.9, 0.9)])
def test_among_eight_learners_the_better_one_is_found_in_most_runs(boost, size, found_in):
    """Found: told apart from some of the others, and nothing claimed between those."""
    rng = np.random.default_rng(7)
    runs = [compared(rng, 120, 8, 5, boost=boost) for _ in range(200)]
    means = np.array([run.mean for run in runs])
    assert (means[:, 0] - means[:, 1]).mean() / means[:, 1].std() == pytest.approx(size, abs=0.15)
    found = np.array([any(run.better(0, j) for j in range(1, 8)) for run in runs])
    wrong = np.array(
        [any(run.better(i, j) for i in range(1, 8) for j in range(8) if i != j) for run in runs]
    )
    assert found.mean() > found_in
    assert wrong.mean() <= 0.05


def definition(splits, n_items, i, j):
    """Of one pair, or one learner if they are equal, by loops: the variance of items, of splits, and that explained."""
    n_repeats = len({split.repeat for split in splits})
    values = [split.contributions[:, i] - (i != j) * split.contributions[:, j] for split in splits]
    of_repeats = np.zeros((n_repeats, n_items))
    for split, of_split in zip(splits, values):
        of_repeats[split.repeat, split.units] = of_split
    of_items = of_repeats.mean(axis=0).var(ddof=1) / n_items
    if i == j:
        of_items = of_repeats.var(axis=1, ddof=1).mean() / n_items
    means = np.array([of_split.mean() for of_split in values]).reshape(n_repeats, N_FOLDS)
    explained = []
    for split, of_split in zip(splits, values):
        of_classes = [of_split[split.strata == label] for label in (0, 1)]
        total = sum(len(of_class) * of_class.var(ddof=1) for of_class in of_classes)
        explained.append(total / len(of_split) ** 2)
    return of_items, means.var(axis=1, ddof=1).mean(), np.mean(explained)


@pytest.mark.parametrize("n_items, unstable, bound", [(60, 0.0, "mutual"), (300, 20.0, "training")])
def test_variances_by_their_definition(n_items, unstable, bound):
    """The larger of twice the items' variance and that of items and training."""
    splits = simulate(np.random.default_rng(0), n_items, 3, 2, shared=0.3, unstable=unstable)
    found = compare_splits(splits, N_FOLDS)
    pairs = {(i, j): definition(splits, n_items, i, j) for i in range(3) for j in range(i, 3)}
    common = np.median(
        [between / explained - 1 for (i, j), (_, between, explained) in pairs.items() if i != j]
    )
    bounds = []
    for (i, j), (of_items, between, explained) in pairs.items():
        of_training = (1 / 10 + 0.25 / 5) * max(between - explained, common * explained, 0.0)
        expected = max(2 * of_items, 1.25 * of_items + of_training)
        bounds.append("mutual" if expected == 2 * of_items else "training")
        if i == j:
            assert found.half_width[i] == pytest.approx(
                stats.t.ppf(0.975, n_items - 1) * np.sqrt(expected)
            )
            continue
        assert found.standard_error[i, j] ** 2 == pytest.approx(expected)
        low, high = found.interval(i, j)
        assert low < found.difference[i, j] < high
    assert bounds.count(bound) >= 3  # the seed shows something
    assert found.critical == pytest.approx(
        stats.studentized_range.ppf(0.95, 3, n_items - 1) / np.sqrt(2)
    )


def test_repeats_of_the_same_splits_tell_nothing_new():
    """Ten equal repeats give the interval of one: all share the same labels."""
    once = simulate(np.random.default_rng(0), 60, 3, 1)
    often = [split._replace(repeat=repeat) for repeat in range(10) for split in once]
    for name in ("mean", "half_width", "difference", "standard_error"):
        np.testing.assert_allclose(
            getattr(compare_splits(often, N_FOLDS), name),
            getattr(compare_splits(once, N_FOLDS), name),
            atol=1e-15,
        )


def test_without_signal_few_learners_are_distinguishable():
    """Linear learners on labels that mean nothing: the items influence each other most."""
    rng = np.random.default_rng(3)
    claimed, missed = [], []
    for _ in range(200):
        y = rng.permutation(np.repeat([-1.0, 1.0], 30))
        X = rng.normal(size=(60, 10))
        splits = []
        for repeat in range(3):
            fold = np.empty(60, dtype=int)
            for label in (-1, 1):
                fold[y == label] = rng.permutation(30) % N_FOLDS
            for k in range(N_FOLDS):
                train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
                linear = X[test] @ (X[train].T @ y[train])
                nearest = ((X[test][:, None] - X[train]) ** 2).sum(axis=2).argmin(axis=1)
                predicted = np.column_stack([np.sign(linear), y[train][nearest]])
                correct = (predicted == y[test][:, None]).astype(float)
                splits.append(ScoredSplit(repeat, test, y[test], correct))
        found = compare_splits(splits, N_FOLDS)
        claimed.append(claims(found))
        missed.append(np.abs(found.mean - 0.5) > found.half_width)
    assert np.mean(claimed) <= 0.05
    assert np.mean(missed, axis=0).max() <= 0.06


def test_learners_that_agree_on_all_items_may_differ_on_the_next():
    splits = simulate(np.random.default_rng(0), 60, 1, 2)
    doubled = [
        split._replace(contributions=np.repeat(split.contributions, 2, axis=1)) for split in splits
    ]
    found = compare_splits(doubled, N_FOLDS)
    own = found.half_width / stats.t.ppf(0.975, 59)
    assert found.standard_error[0, 1] ** 2 == pytest.approx((own[0] ** 2 + own[1] ** 2) / 60)


def test_items_by_their_definition_where_some_were_tested_more_often():
    """An item that two repeats tested counts once, by its mean."""
    splits = simulate(np.random.default_rng(0), 60, 3, 2, shared=0.3)[:7]
    tested = [
        [split.contributions[split.units == i] for split in splits if i in split.units]
        for i in range(60)
    ]
    assert {len(of_item) for of_item in tested} == {1, 2}
    means = np.array([np.mean(of_item, axis=0).ravel() for of_item in tested])
    covariance, n_items = _item_covariance(splits)
    assert n_items == 60
    np.testing.assert_allclose(covariance, np.cov(means, rowvar=False) / 60)


def test_groups_are_the_units():
    """Items of a group that always agree count as one."""
    rng = np.random.default_rng(0)
    single = [
        split._replace(strata=np.zeros(len(split.units))) for split in simulate(rng, 60, 3, 2)
    ]
    grouped = [
        ScoredSplit(*(np.repeat(part, 3, axis=0) if k else part for k, part in enumerate(split)))
        for split in single
    ]
    expected, found = compare_splits(single, N_FOLDS), compare_splits(grouped, N_FOLDS)
    for name in Differences._fields:
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-15
        )


def test_an_unfinished_repeat():
    splits = simulate(np.random.default_rng(0), 60, 3, 2)
    found = compare_splits(splits[:7], N_FOLDS)
    assert np.isfinite(found.standard_error).all() and found.standard_error[0, 1] > 0
    # the own interval of a learner is of complete repeats
    complete = compare_splits(splits[:5], N_FOLDS)
    np.testing.assert_allclose(found.half_width, complete.half_width)
    alone = compare_splits(splits[:1], N_FOLDS)  # nothing to see of the training: the items alone
    d = splits[0].contributions[:, 0] - splits[0].contributions[:, 1]
    assert alone.standard_error[0, 1] == pytest.approx(np.sqrt(2 * d.var(ddof=1) / len(d)))


def test_two_learners_need_no_correction_for_many():
    assert critical_value(2, 30) == pytest.approx(stats.t.ppf(0.975, 30))
    assert critical_value(2, 30) == pytest.approx(
        stats.studentized_range.ppf(0.95, 2, 30) / np.sqrt(2), rel=1e-6
    )
    assert critical_value(1, 30) == 0.0


def test_identical_learners_are_not_distinguishable():
    splits = simulate(np.random.default_rng(0), 60, 1, 2)
    doubled = [
        split._replace(contributions=np.repeat(split.contributions, 2, axis=1)) for split in splits
    ]
    assert not claims(compare_splits(doubled, N_FOLDS))


def test_only_the_scores_of_splits_by_their_definition():
    """The corrected resampled t test, for each pair and each learner."""
    scores = np.random.default_rng(0).normal(size=(10, 3))
    found = compare_scores(scores, N_FOLDS)
    factor = np.sqrt(1 / 10 + 1 / 4)
    for i in range(3):
        own = factor * scores[:, i].std(ddof=1)
        assert found.half_width[i] == pytest.approx(stats.t.ppf(0.975, 9) * own)
        for j in range(3):
            d = scores[:, i] - scores[:, j]
            assert found.difference[i, j] == pytest.approx(d.mean())
            assert found.standard_error[i, j] == pytest.approx(factor * d.std(ddof=1))
    assert found.critical == critical_value(3, 9)

"""Directed learners: both directions count, one is a fallback that says so, and invariances hold."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from stacks import fit_rows, rows_only, scores_of_settings

from mercerless import AsymmetricRidgeClassifier, SimilarityClassifier, SimilarityRegressor
from mercerless.asymmetric.selection import decay_of
from mercerless.asymmetric.solver import asymmetric_ridge, largest_singular_value, two_sided_path
from mercerless.core.folds import splits_of
from mercerless.kernels import LocalGaussian, PairFunction
from mercerless.lowrank import Landmarks
from mercerless.similarity.directions import ROWS, ClassShares, DirectedRows, row_families
from mercerless.similarity.families import Setting, all_settings, default_families
from mercerless.similarity.hit_families import ClippedUnits
from mercerless.similarity.stack import simpler_average, weigh_members


def citations(n=120, classes=3, seed=0):
    """A graph in which every class points to the next; the classes within a pair look alike from one side."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    A = (rng.uniform(size=(n, n)) < np.where((y[:, None] + 1) % classes == y, 0.25, 0.03)).astype(
        float
    )
    np.fill_diagonal(A, 0.0)
    return A, y


def hausdorff(n=90, seed=0):
    """Directed distances between sets of points on a short or a long line."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    sets = [rng.normal(size=(rng.integers(4, 9), 2)) * [1.0 + 1.5 * c, 1.0] for c in y]
    D = np.array(
        [
            [np.sqrt(((a[:, None] - b) ** 2).sum(axis=2)).min(axis=1).max() for b in sets]
            for a in sets
        ]
    )
    np.fill_diagonal(D, 0.0)
    return D, y


def halves(K, n_train):
    return K[:n_train, :n_train], K[n_train:, :n_train], K[:n_train, n_train:].T


# -------------------------------------------------------------------------------------------------------- learners


def test_both_sides_are_those_of_asymmetric_ridge():
    rng = np.random.default_rng(0)
    K, Y, weight = rng.normal(size=(30, 30)), rng.normal(size=(30, 2)), rng.uniform(0.5, 2.0, 30)
    weight /= weight.mean()
    left, intercept = two_sided_path(K, Y, (0.3, 1.0), 7.0 * weight)  # the unit of weights cancels
    right, other = two_sided_path(K.T, Y, (0.3, 1.0), weight)
    for i, penalty in enumerate((0.3, 1.0)):
        expected = asymmetric_ridge(
            K, Y, penalty * largest_singular_value(K), weight, fit_intercept=True
        )
        assert_allclose(left[:, i], expected.left, atol=1e-8)
        assert_allclose(intercept[i], expected.intercept_left, atol=1e-8)
        # the norm of the transpose is found by other iterations, to a few per cent
        again = asymmetric_ridge(
            K, Y, penalty * largest_singular_value(K.T), weight, fit_intercept=True
        )
        assert_allclose(right[:, i], again.right, atol=1e-8)
        assert_allclose(other[i], again.intercept_right, atol=1e-8)
    coef, mean = two_sided_path(np.zeros((30, 30)), Y, (0.3,), weight)
    assert_allclose(coef.sum(axis=0), 0.0, atol=1e-8)
    assert_allclose(mean[0], weight @ Y / 30, atol=1e-8)


def test_rows_are_ridges_by_their_textbook_formulas():
    rng = np.random.default_rng(1)
    K, Y, new = (
        rng.normal(size=(20, 20)),
        rng.normal(size=(20, 1)),
        (rng.normal(size=(5, 20)), rng.normal(size=(5, 20))),
    )
    settings = [Setting("row_profiles", 1e-3, 1.0), Setting("row_cosines", 0.01)]
    members = fit_rows(DirectedRows(K, K.T, None), Y, settings, np.ones(20))
    found = scores_of_settings(members, settings, rows_only(DirectedRows(*new, None)))
    R, T = np.hstack([K, K.T]), np.hstack(new)
    P, Q = (R - R.mean(axis=0)) / R.std(axis=0), (T - R.mean(axis=0)) / R.std(axis=0)

    def ridge(train, test, penalty):
        J = np.eye(20) - 1 / 20
        centered = J @ train @ J
        a = np.linalg.solve(
            centered + penalty * np.linalg.norm(centered) * np.eye(20), Y - Y.mean()
        )
        return Y.mean() + (test - train.mean(axis=0)) @ (J @ a)

    squares = ((P[:, None] - P) ** 2).sum(axis=2)
    unit = np.median(squares[np.triu_indices(20, 1)])
    away = ((Q[:, None] - P) ** 2).sum(axis=2)
    assert_allclose(found[0], ridge(np.exp(-squares / unit), np.exp(-away / unit), 1e-3), atol=1e-8)
    R, T = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (R, T))
    assert_allclose(found[1], ridge(R @ R.T, T @ R.T, 0.01), atol=1e-8)

    one_way = [Setting("left", 0.1)]
    members = fit_rows(DirectedRows(K, None, None), Y, one_way, np.ones(20))
    found = scores_of_settings(members, one_way, rows_only(DirectedRows(new[0], None, None)))
    coef, intercept = two_sided_path(K, Y, (0.1,))
    assert_allclose(found[0], new[0] @ coef[:, 0] + intercept, atol=1e-8)


@pytest.mark.parametrize("both", [True, False])
def test_shares_of_classes_against_a_walk_over_all_paths(both):
    rng = np.random.default_rng(3)
    y = np.arange(24) % 3
    A = np.where(rng.uniform(size=(24, 24)) < 0.4, rng.uniform(size=(24, 24)), 0.0)
    back = None
    if both:
        back = A.T
    seen = []

    class Recorded(ClippedUnits):
        def __call__(self, F):
            seen.append(F)
            return super().__call__(F)

    family = ClassShares(True)
    train = rows_only(DirectedRows(A, back, None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mercerless.similarity.directions.ClippedUnits", Recorded)
        family = family.fit(train, 2.0 * np.eye(3)[y] - 1.0, np.ones(24))

    steps = [A, A.T]
    n_first = 2 if both else 1
    for i in (0, 7, 23):
        expected = []
        for first in steps[:n_first]:
            one = np.zeros(3)
            leaving = np.delete(np.arange(24), i)
            total = first[i, leaving].sum()
            for j in leaving:
                one[y[j]] += first[i, j] / total
            expected.append(one)
            for second in steps:
                two = np.zeros(3)
                for j in leaving:
                    onward = np.delete(np.arange(24), j)
                    for k in onward[onward != i]:
                        chance = second[j, k] / second[j, onward].sum()
                        two[y[k]] += first[i, j] / total * chance
                expected.append(two)
        logs = [
            np.log((votes + ROWS.share_prior / 3) / (votes.sum() + ROWS.share_prior))
            for votes in expected
        ]
        assert_allclose(seen[0][i], np.concatenate(logs), rtol=1e-10)


def test_shares_of_classes_learn_what_two_steps_say_and_take_one_class():
    A, y = citations()
    Y = 2.0 * np.eye(3)[y] - 1.0
    train, new = np.arange(90), np.arange(90, len(y))
    rows = DirectedRows(A[np.ix_(train, train)], A[np.ix_(train, train)].T, None)
    family = ClassShares(True).fit(rows_only(rows), Y[train], np.ones(90))
    out = DirectedRows(A[np.ix_(new, train)], A[np.ix_(train, new)].T, None)
    scores = family.scores(rows_only(out))
    assert np.mean(scores[0].argmax(axis=1) == y[new]) > 0.8
    alone = ClassShares(True).fit(rows_only(rows), np.ones((90, 1)), np.ones(90))
    assert np.all(np.isfinite(alone.scores(rows_only(out))))
    empty = rows_only(DirectedRows(np.zeros((2, 90)), np.zeros((2, 90)), None))
    assert np.all(np.isfinite(family.scores(empty)))
    (part, *_) = family.split(rows_only(rows), rows_only(out))
    assert_allclose(part.weights @ part.effects + part.base, scores[0])


@pytest.mark.parametrize("both", [True, False])
def test_weights_equal_repeated_items(both):
    rng = np.random.default_rng(2)
    K, Y, new = rng.normal(size=(15, 15)), rng.normal(size=(15, 1)), rng.normal(size=(2, 4, 15))
    counts = np.arange(15) % 3 + 1
    rows = np.repeat(np.arange(15), counts)
    settings = [
        s
        for s in all_settings(row_families(both))
        if "neighbors" not in s.family and s.family not in ("left", "class_shares")
    ]

    def scores(K, Y, weight, new):
        members = fit_rows(DirectedRows(K, K.T if both else None, None), Y, settings, weight)
        # the median distance between profiles counts items once
        unit = 1.0 / members.families[0].unit
        new = DirectedRows(new[0], new[1] if both else None, None)
        return scores_of_settings(members, settings, rows_only(new)), unit

    weighted, unit = scores(K, Y, counts.astype(float), new)
    repeated, other = scores(K[np.ix_(rows, rows)], Y[rows], np.ones(len(rows)), new[:, :, rows])
    linear = [i for i, s in enumerate(settings) if s.family != "row_profiles"]
    assert_allclose(weighted[linear], repeated[linear], atol=1e-8)
    # with weights of mean one there are half as many columns, so that squared distances are half as large
    assert unit == pytest.approx(len(rows) / 15 * other, rel=0.15)


# ------------------------------------------------------------------------------------------------------ the estimators


def test_what_only_the_direction_says_is_learned():
    A, y = citations()
    train, out, back = halves(A, 90)
    model = SimilarityClassifier(
        "precomputed", direction="both", kind="similarity", random_state=0
    ).fit(train, y[:90])
    mean = SimilarityClassifier(
        "precomputed", kind="similarity", direction="mean", random_state=0
    ).fit(train, y[:90])
    hits, averaged = (np.mean(m.predict(out, reverse=back) == y[90:]) for m in (model, mean))
    assert hits > 0.85 and hits >= averaged
    assert model.asymmetry_ == 1.0 and model.weights_.sum() == pytest.approx(1.0)
    assert (
        sum(
            model.family_scores_[name]["weight"]
            for name in ("row_cosines", "row_neighbors", "row_profiles", "class_shares")
        )
        > 0.05
    )


@pytest.mark.parametrize("make", [citations, hausdorff])
def test_transposing_and_swapping_changes_nothing_and_neither_does_scale(make):
    K, y = make()
    kind = "similarity" if make is citations else "distance"
    train, out, back = halves(K, 70)
    model = SimilarityClassifier("precomputed", direction="both", kind=kind, random_state=0)
    expected = clone(model).fit(train, y[:70]).predict_proba(out, reverse=back)
    swapped = clone(model).fit(train.T, y[:70]).predict_proba(back, reverse=out)
    # all is the same but for the order of members in the average and the iterations for the norm
    assert_allclose(swapped, expected, atol=2e-3)
    scaled = clone(model).fit(1e6 * train, y[:70]).predict_proba(1e6 * out, reverse=1e6 * back)
    assert_allclose(scaled, expected, atol=1e-5)


@pytest.mark.parametrize("which", ["mean", "rows"])
def test_rows_take_part_where_they_are_better_by_a_standard_error(which):
    rng = np.random.default_rng(0)
    Y, weight = 2.0 * np.eye(3)[np.arange(90) % 3] - 1.0, np.ones(90)
    plain = all_settings(default_families(True))
    settings = (*plain, *all_settings(row_families(True)))
    tells = np.array([(setting in plain) == (which == "mean") for setting in settings])
    signal, noise = 1.5 * Y + rng.normal(size=Y.shape), np.where(tells, 0.3, 1.0)[:, None, None]
    # half of the settings are good copies of it
    scores = signal + noise * rng.normal(size=(len(settings), 90, 3))
    splits = splits_of(np.arange(90) // 3 % 5)
    weigh = partial(weigh_members, Y=Y, fenced=None, weight=weight, blocks=splits, classify=True)
    averages = weigh(scores[: len(plain)], plain), weigh(scores, settings)
    average, _ = simpler_average(*averages, Y, weight, splits)
    rows = sum(
        average.family_scores[family]["weight"]
        for family in ("row_profiles", "row_cosines", "class_shares")
    )
    assert rows == 0.0 if which == "mean" else rows > 0.1
    assert (
        list(average.family_scores)[-1] == "stack"
        and average.family_scores["row_profiles"]["accuracy"] > 0.0
    )
    assert np.mean(average.out_of_fold.argmax(axis=1) == np.arange(90) % 3) > 0.8


def test_a_function_is_called_in_both_directions_and_agrees_with_the_matrix():
    K, y = citations(90)

    def cites(a, b):
        return K[a, b]

    items = list(range(90))
    by_function = SimilarityClassifier(
        cites, direction="both", kind="similarity", random_state=0
    ).fit(items[:70], y[:70])
    train, out, back = halves(K, 70)
    by_matrix = SimilarityClassifier(
        "precomputed", direction="both", kind="similarity", random_state=0
    ).fit(train, y[:70])
    assert_allclose(
        by_function.predict_proba(items[70:]),
        by_matrix.predict_proba(out, reverse=back),
        atol=1e-10,
    )
    assert by_function.one_way_ is None


@pytest.mark.parametrize("make", [citations, hausdorff])
def test_one_direction_is_a_warned_fallback(make):
    K, y = make()
    train, out, back = halves(K, 70)
    kind = "similarity" if make is citations else "distance"
    model = SimilarityClassifier("precomputed", direction="both", kind=kind, random_state=0).fit(
        train, y[:70]
    )
    with pytest.warns(UserWarning, match="only one direction of the new rows is given"):
        alone = model.predict(out)
    assert np.mean(alone == y[70:]) > 0.55
    with pytest.warns(UserWarning, match="only one direction"):
        scores = cross_val_score(model, K, y, cv=3)
    assert scores.mean() > 0.55
    values = model.decision_function(out, reverse=back)
    best = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
    assert_array_equal(model.predict(out, reverse=back), model.classes_[best])


def test_a_symmetric_matrix_needs_no_other_direction():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] > 0).astype(int)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    model = SimilarityClassifier("precomputed", direction="both", random_state=0).fit(
        D[:60, :60], y[:60]
    )
    assert model.one_way_ is None
    proba = model.predict_proba(D[60:, :60])
    assert_allclose(proba, model.predict_proba(D[60:, :60], reverse=D[60:, :60]), atol=1e-12)
    assert np.mean(model.predict(D[60:, :60]) == y[60:]) > 0.8


def test_numbers_are_predicted_from_both_directions():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=100)
    K = np.exp(-(np.subtract.outer(x, x) ** 2) * rng.uniform(0.3, 3.0, 100)) + 0.3 * np.sign(
        np.subtract.outer(x, x)
    )
    y = np.sin(2 * x) + 0.05 * rng.normal(size=100)
    train, out, back = halves(K, 70)
    model = SimilarityRegressor(
        "precomputed", direction="both", kind="similarity", random_state=0
    ).fit(train, y[:70])
    error = np.mean((model.predict(out, reverse=back) - y[70:]) ** 2) / np.var(y[70:])
    assert error < 0.1
    two = SimilarityRegressor(
        "precomputed", direction="both", kind="similarity", random_state=0
    ).fit(train, np.c_[y[:70], -y[:70]])
    assert two.predict(out, reverse=back).shape == (30, 2)
    assert_allclose(
        two.out_of_fold_.prediction[:, 0], -two.out_of_fold_.prediction[:, 1], atol=1e-8
    )


@pytest.mark.slow
def test_at_least_as_good_as_the_stack_on_the_mean_and_the_ridge():
    for make, kind in ((citations, "similarity"), (hausdorff, "distance")):
        scores = {}
        for seed in range(4):
            K, y = make(seed=seed)
            train, out, back = halves(K, 60)
            models = {
                "both": SimilarityClassifier(
                    "precomputed", direction="both", kind=kind, random_state=0
                ),
                "mean": SimilarityClassifier(
                    "precomputed", kind=kind, direction="mean", random_state=0
                ),
                "ridge": AsymmetricRidgeClassifier("precomputed", kind=kind),
            }
            for name, model in models.items():
                hits = model.fit(train, y[:60]).predict(out, reverse=back) == y[60:]
                scores.setdefault(name, []).append(np.mean(hits))
        means = {name: np.mean(values) for name, values in scores.items()}
        assert means["both"] >= max(means.values()) - 0.02, means


def test_a_matrix_of_rank_one_has_rows_of_one_direction_only():
    x = np.linspace(0.1, 3.0, 30)
    model = SimilarityRegressor(
        "precomputed", direction="both", kind="similarity", random_state=0
    ).fit(np.outer(x, x), x)
    assert_allclose(model.predict(np.outer([0.5, 2.0], x)), [0.5, 2.0], atol=0.05)


def test_affinities_of_distances_decay_with_the_median():
    D = np.array([[0.0, 1.0], [3.0, 0.0]])
    assert decay_of(D, "distance") == (0.0, 2.0) and decay_of(D, "similarity") is None
    assert decay_of(D - 1.0, "dissimilarity") == (-1.0, 2.0)


@pytest.mark.parametrize(
    "parameters, text",
    [({"cv": 1}, "cv=1 must be at least 2 folds"), ({"kind": "x"}, "kind='x' is not known")],
)
def test_bad_parameters_are_one_sentence(parameters, text):
    K, y = citations(30)
    with pytest.raises(ValueError, match=text):
        SimilarityClassifier("precomputed", direction="both", **parameters).fit(K, y)


def test_bad_directions_are_one_sentence():
    K, y = citations(60)
    train, out, back = halves(K, 45)
    model = SimilarityClassifier(
        "precomputed", direction="both", kind="similarity", random_state=0
    ).fit(train, y[:45])
    with pytest.raises(
        ValueError,
        match=r"reverse has shape \(45, 15\) but X \(15, 45\); give one row per new item",
    ):
        model.predict(out, reverse=back.T)
    by_function = SimilarityClassifier(
        lambda a, b: K[a, b], direction="both", kind="similarity", random_state=0
    )
    with pytest.raises(ValueError, match="reverse is for kernel='precomputed'"):
        by_function.fit(list(range(45)), y[:45]).predict([50], reverse=back[:1])


@pytest.mark.parametrize("diagonal", [1.0, None])
def test_reasons_of_a_precomputed_directed_matrix_add_up(diagonal):
    """Also where the new items' own similarities are not known, so that some families are left out."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    K = rng.uniform(size=(60, 60)) + 0.6 * ((y[:, None] + 1) % 3 == y)
    np.fill_diagonal(K, rng.uniform(1.5, 3.0, size=60) if diagonal is None else diagonal + 1.0)
    train, new, back = K[:48, :48], K[48:, :48], K[:48, 48:].T
    model = SimilarityClassifier(
        "precomputed", direction="both", kind="similarity", random_state=0
    ).fit(train, y[:48])
    reasons = model.explain(new, 3, reverse=back, train=train)
    np.testing.assert_allclose(
        reasons.base + reasons.shares.sum(axis=1) + reasons.rest, reasons.score, atol=1e-9
    )
    proba = np.sort(model.predict_proba(new, reverse=back), axis=1)
    np.testing.assert_allclose(reasons.score, np.log(proba[:, -1] / proba[:, -2]), atol=1e-8)
    np.testing.assert_array_equal(reasons.label, model.predict(new, reverse=back))
    with pytest.raises(ValueError, match="pass the other one as reverse"):
        model.explain(new, train=train)


# ------------------------------------------------------------------------------------------------------- landmarks


def two_way(landmarks, **options):
    options = {"kernel": "precomputed", "kind": "similarity", "direction": "both"} | options
    return SimilarityClassifier(landmarks=landmarks, random_state=0, **options)


@pytest.fixture(scope="module")
def links():
    """Links among 300 items of four classes, each pointing to the next, and what is new among them."""
    A, y = citations(300, classes=4, seed=3)
    return (*halves(A, 220), y[:220], y[220:])


def test_landmarks_see_both_directions(links):
    inner, out, back, y, y_new = links
    both = two_way(60).fit(inner, y)
    mean = two_way(None, direction="mean").fit(inner, y)
    weight = sum(both.family_scores_[name]["weight"] for name in ("row_features", "row_profiles"))
    assert weight > 0.2
    accuracy = np.mean(both.predict(out, reverse=back) == y_new)
    assert accuracy > np.mean(mean.predict(out, reverse=back) == y_new) + 0.05
    # the columns of the landmarks alone are enough
    few = both.predict_proba(out[:, both.landmarks_], reverse=back[:, both.landmarks_])
    assert_array_equal(few, both.predict_proba(out, reverse=back))


def test_a_function_is_asked_for_landmarks_only_and_in_both_directions(links):
    inner, out, back, y, _ = links
    n = len(inner)
    everything = np.block([[inner, back.T], [out, np.zeros((len(out), len(out)))]])
    calls = []

    def link(a, b):
        calls.append((a, b))
        return float(everything[int(a), int(b)])

    kernel = PairFunction(link, symmetric=False)
    items = [str(k) for k in range(len(everything))]
    by_function = two_way(40, kernel=kernel).fit(items[:n], y)
    by_matrix = two_way(by_function.landmarks_).fit(inner, y)
    assert len(calls) == 2 * 40 * n
    calls.clear()
    found = by_function.predict_proba(items[n : n + 9])
    assert len(calls) == 2 * 40 * 9
    assert_allclose(found, by_matrix.predict_proba(out[:9], reverse=back[:9]), atol=1e-9)


def test_landmarks_of_the_transposed_matrix_are_the_same(links):
    inner, out, back, y, _ = links
    one = two_way(50).fit(inner, y).predict_proba(out, reverse=back)
    other = two_way(50).fit(np.ascontiguousarray(inner.T), y).predict_proba(back, reverse=out)
    assert_allclose(other, one, atol=1e-6)


def test_the_best_of_twice_as_many_landmarks_in_both_directions(links):
    inner, out, back, y, _ = links
    model = two_way(Landmarks(30, "pursuit")).fit(inner, y)
    assert len(model.landmarks_) == 30
    given = two_way(model.landmarks_).fit(inner, y)
    assert_allclose(
        model.predict_proba(out, reverse=back), given.predict_proba(out, reverse=back), atol=0.3
    )


def test_items_without_weight_are_no_landmarks_of_both_directions(links):
    inner, out, back, y, _ = links
    weight = np.ones(len(y))
    weight[::5] = 0.0
    kept = weight > 0.0
    some = two_way(50).fit(inner, y, sample_weight=weight)
    assert not np.isin(some.landmarks_, np.flatnonzero(~kept)).any()
    alone = two_way(50).fit(inner[np.ix_(kept, kept)], y[kept])
    assert_allclose(
        some.predict_proba(out, reverse=back),
        alone.predict_proba(out[:, kept], reverse=back[:, kept]),
        atol=1e-8,
    )


def test_explanations_of_directed_landmarks_add_up(links):
    inner, out, back, y, _ = links
    model = two_way(30).fit(inner, y)
    explained = model.explain(out[:5], reverse=back[:5])
    total = explained.base + explained.shares.sum(axis=1) + explained.rest
    assert_allclose(total, explained.score, atol=1e-9)


def test_numbers_by_directed_landmarks(links):
    inner, out, back, y, y_new = links
    model = SimilarityRegressor(
        "precomputed", kind="similarity", direction="both", landmarks=60, random_state=0
    )
    model.fit(inner, np.cos(1.3 * y))
    prediction = model.predict(out, reverse=back)
    assert np.corrcoef(prediction, np.cos(1.3 * y_new))[0, 1] > 0.6


@pytest.mark.parametrize(
    ("landmarks", "message"),
    [
        (Landmarks(30, "kmeans"), "have no direction"),
        (Landmarks(30, neighbors=10), "leave neighbors out"),
    ],
)
def test_landmarks_that_have_no_direction_raise(links, landmarks, message):
    inner, _, _, y, _ = links
    with pytest.raises(ValueError, match=message):
        two_way(landmarks).fit(inner, y)


def test_directed_landmarks_need_a_square_matrix_and_both_directions(links):
    inner, out, _, y, _ = links
    with pytest.raises(ValueError, match="square matrix of all training items"):
        two_way(50).fit(inner[:, :50], y)
    with pytest.raises(ValueError, match="needs both directions of new items"):
        two_way(50).fit(inner, y).predict(out)


@pytest.mark.parametrize("direction", ["symmetric", "mean", "both"])
def test_kernels_with_bandwidths_of_the_training_items_raise_an_error(direction):
    """New items have no bandwidths: predictions depended on the order of as many new rows as training rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    local = LocalGaussian(rng.uniform(0.5, 2.0, size=X.shape))
    for kernel in (local, 2.0 * local, [local, "rbf"], {"local": local, "rbf": "rbf"}):
        with pytest.raises(ValueError, match="new items have none; use one bandwidth per feature"):
            SimilarityRegressor(kernel, direction=direction).fit(X, X[:, 0])

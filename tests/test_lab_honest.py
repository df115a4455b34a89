"""LAB: attributes that describe what predicts, and out-of-fold predictions that do not know their own targets."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercerless import LABClassifier, LABRegressor, TableRegressor
from mercerless.core.choice import choice_parts, cross_chosen
from mercerless.core.folds import make_folds
from mercerless.core.scaling import standard_scaling
from mercerless.datasets import make_lab_function
from mercerless.lab.data import merge_rows, target_units
from mercerless.lab.model import Rows, Settings
from mercerless.lab.selection import LIMITS, LocalLearner, Watch
from mercerless.lab.support import select_support
from mercerless.table.encoding import TreeColumns
from mercerless.table.fit import TableSolution, fit_table
from mercerless.table.members.candidate import Candidate, Contest
from mercerless.table.members.local import LocalMachines
from mercerless.table.members.ridge import _ridge_descent, _ridge_grid
from mercerless.table.members.trees import Trees, boost, raw_predictions, tree_candidate
from mercerless.table.target import join_transformed, possible_transforms
from mercerless.table.weighing import Labeled


def waves(n, noise=0.3, seed=0):
    random = np.random.RandomState(seed)
    X = random.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + noise * random.normal(size=n)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "exponential"])
def test_a_named_kernel_is_the_local_machine_alone(kernel):
    X, y = waves(150)
    model = LABRegressor(kernel=kernel, max_iter=5, random_state=0).fit(X, y)
    assert model.expansion_.name == kernel and model.expansion_.weight == 1.0
    assert model.n_support_ == len(model.support_) == 37
    labels = LABClassifier(kernel=kernel, max_iter=5, random_state=0).fit(X, y > 0)
    assert labels.expansion_.name == kernel and labels.n_support_ == 37


def test_every_kind_of_member_competes_on_a_small_table():
    X, y = waves(100)
    model = TableRegressor(max_iter=5, random_state=0).fit(X, y)
    assert set(model.validation_errors_) == {
        "gaussian",
        "gaussian, all rows, one bandwidth",
        "gaussian, all rows",
        "laplace",
        "laplace, all rows, one bandwidth",
        "laplace, all rows",
        "boosted trees",
    }


class Known(NamedTuple):
    """A member that knows the targets."""

    Y: np.ndarray
    weight: float = 1.0


class KnownMember(NamedTuple):
    """Puts one up with given predictions."""

    out_of_fold: np.ndarray

    def candidates(self, contest, tried):
        assert [candidate.name for candidate in tried] == ["gaussian"]
        return [Candidate("known", self.out_of_fold, lambda: Known(contest.rows.Y))]


def test_the_certificate_is_that_of_members_with_weight():
    X, y = make_lab_function(90, function="f1", random_state=0)
    rows = Rows(X, y[:, None])
    contest = Contest(rows, make_folds(3, X, random_state=0), Settings(n_support=10, max_iter=5))
    truth = rows.Y[contest.held]
    alone = fit_table(contest, [LocalMachines(), KnownMember(truth)], 3)
    assert [type(member) for member in alone.members] == [Known]
    assert alone.certificate == 0.0
    assert len(alone.curves["gaussian"])  # what was tried can still be seen
    local = fit_table(contest, [LocalMachines(), KnownMember(100 + truth)], 3)
    assert [member.form for member in local.members] == ["gaussian"]
    assert local.certificate == local.members[0].certificate > 0.0


@pytest.mark.parametrize("better", [0, 1])
def test_through_a_transform_the_certificate_is_that_of_what_predicts(better):
    X, _ = waves(200)
    y = np.exp(np.random.RandomState(1).normal(size=200))
    log = possible_transforms(y)[0]
    standardized = (y - y.mean()) / y.std()
    table = merge_rows(X, standardized[:, None], None, None)
    held = np.arange(200)

    def solution(truth, is_good, certificate):
        predictions = truth if is_good else truth[::-1]
        form = Trees(
            "boosted trees", [], np.zeros(1), np.ones(1), 1.0, standard_scaling(X), TreeColumns()
        )
        return TableSolution([form], held, predictions, {}, {}, certificate, 1.0)

    plain = solution(standardized[:, None], better == 0, 0.25)
    other = solution(log.standardized, better == 1, 0.5)
    joined = join_transformed(
        plain, other, table, log, np.ones(len(y)), target_units(y[:, None], np.ones(len(y)))
    )
    assert len(joined.members) == 1
    assert joined.certificate == (plain, other)[better].certificate


def test_the_certificate_of_all_rows_falls_with_their_descent():
    X, y = waves(80)
    rows = Rows(X, y[:, None])
    start = _ridge_grid("gaussian", rows, linear=True)
    assert 0 < _ridge_descent("gaussian", rows, start).certificate < 0.5
    stopped = _ridge_descent("gaussian", rows, start, report=lambda info: True)
    assert _ridge_descent("gaussian", rows, start).certificate < stopped.certificate


@pytest.mark.parametrize("is_start_best", [True, False])
def test_the_certificate_is_that_of_the_point_that_validation_chose(is_start_best):
    """At the start of a descent it is 1, however far the descents of the folds went on."""
    X = np.random.default_rng(0).normal(size=(300, 3))
    waves_of = 3 * X[:, :1] if is_start_best else np.exp(X[:, :1])
    rows = Rows(X, np.sin(waves_of))
    settings = Settings(n_support=20)
    learner = LocalLearner("gaussian", settings)
    train, valid = np.arange(200), np.arange(200, 300)
    support = select_support(X[train], rows.Y[train], 20, "kmeans", 0)
    candidate = learner.validate(rows, [(train, valid)], [support])
    assert (candidate.n_iter == 0) == is_start_best
    iterations = [iteration for iteration, _ in candidate.curve]
    errors = [error for _, error in candidate.curve]
    assert candidate.n_iter == iterations[int(np.argmin(errors))] < iterations[-1]
    chosen = LocalLearner("gaussian", settings._replace(max_iter=max(1, candidate.n_iter)))
    _, _, certificate = chosen.learn(rows.take(train), support)
    expected = certificate if candidate.n_iter else 1.0
    assert_allclose(candidate.certificate, expected, rtol=1e-6)
    again = learner.learn_again(candidate._replace(expansion=None, n_iter=0), rows)
    assert again.certificate == 1.0


class TestOutOfFold:
    """A row's own target does not choose what predicts it."""

    def test_parts_of_held_out_rows(self):
        folds = [(np.arange(4, 9), np.arange(4)), (np.arange(4), np.arange(4, 9))]
        assert_array_equal(np.concatenate(choice_parts(folds)), np.arange(9))
        assert [len(part) for part in choice_parts(folds)] == [4, 5]
        assert [len(part) for part in choice_parts(folds[:1])] == [1, 1, 1, 1]
        assert choice_parts([]) == []

    @pytest.mark.parametrize("n_folds", [1, 3])
    def test_the_setting_of_a_part_is_the_best_of_the_others(self, n_folds):
        random = np.random.RandomState(0)
        places = np.arange(30)
        folds = [(places, part) for part in np.split(places, n_folds)]
        settings = list(random.normal(size=(4, 30, 2)))
        losses = random.rand(4, 30)
        chosen = cross_chosen(settings, losses, folds)
        for part in choice_parts(folds):
            best = np.delete(losses, part, axis=1).mean(axis=1).argmin()
            assert_array_equal(chosen[part], settings[best][part])
            moved = losses.copy()
            moved[:, part] = 100 * random.rand(4, len(part))  # these rows have no say
            assert_array_equal(cross_chosen(settings, moved, folds)[part], chosen[part])

    def test_iterations_of_a_fold_are_chosen_by_the_others(self):
        """The start is best for two folds, and the end for the third: it must not have it."""
        X, y = make_lab_function(120, function="f1", random_state=0)
        folds = make_folds(3, X, random_state=0)
        noise = np.random.RandomState(1).normal(size=(120, 1))
        Y = y[:, None].copy()
        for _, valid in folds[:2]:
            Y[valid] = noise[valid]
        rows = Rows(X, Y, np.linspace(0.5, 1.5, 120))
        learner = LocalLearner("gaussian", Settings(n_support=20, max_iter=20))
        supports = [select_support(X[train], Y[train], 20, "kmeans", 0) for train, _ in folds]
        candidate = learner.validate(rows, folds, supports)
        start = 0
        for (train, valid), support in zip(folds, supports):
            watch = Watch(validation=rows.take(valid), checkpoints=LIMITS.checkpoints)
            learner.learn(rows.take(train), support, watch)
            of_fold = candidate.predictions[start : start + len(valid)]
            stages = [np.allclose(point.predictions, of_fold) for point in watch.kept]
            start += len(valid)
            assert sum(stages) == 1
            own = np.argmin([point.error for point in watch.kept])
            if valid is folds[2][1]:
                assert stages[0] and own > 0

    def test_iterations_of_trees_are_chosen_by_other_folds(self):
        X, y = waves(150)
        folds = make_folds(3, X, random_state=0)
        Y = y[:, None].copy()
        Y[folds[2][1]] = np.random.RandomState(1).normal(size=(len(folds[2][1]), 1))
        trees = tree_candidate(Labeled(Rows(X, Y), None), folds, 0)
        last = slice(-len(folds[2][1]), None)
        known = Labeled(Rows(X, Y), None).take(folds[2][0])
        stages = {}
        for n_iter in range(10, 401, 10):
            predicted = raw_predictions(boost(known, n_iter, 0), X[folds[2][1]], 1)
            stages[n_iter] = np.allclose(predicted, trees.out_of_fold[last])
            if stages[n_iter]:
                break
        errors = Labeled(Rows(X, Y), None).take(folds[2][1])
        least = errors.loss(raw_predictions(boost(known, 10, 0), X[folds[2][1]], 1))
        assert stages[n_iter] and n_iter > 10  # though few are best for noise
        assert least < errors.loss(trees.out_of_fold[last])

    @pytest.mark.slow
    def test_a_target_hardly_moves_its_own_prediction(self):
        """Not at all but through the unit of the targets, choices for all rows, and other folds' weights."""
        X, y = waves(100, noise=1.0)
        settings = {"max_iter": 5, "random_state": 0}
        held = TableRegressor(**settings).fit(X, y).out_of_fold_
        assert_array_equal(np.sort(held.rows), np.arange(100))
        order = np.argsort(held.rows)
        moves = []
        for i in (3, 77):
            moved = y.copy()
            moved[i] += 0.5 * y.std()
            other = TableRegressor(**settings).fit(X, moved).out_of_fold_
            change = (other.prediction - held.prediction)[order]
            moves.append(abs(change[i]) / np.abs(change).max())
        assert np.max(moves) < 0.2


QUICK = {"n_support": 12, "kernel": "gaussian", "max_iter": 5, "random_state": 0}


class TestWeights:
    @pytest.mark.parametrize("size", [1e2, 1e4])
    def test_rows_of_hardly_any_weight_are_as_good_as_removed(self, size):
        """Whatever their targets are: these are not what the others are measured in."""
        X, y = waves(160, noise=0.1)
        T, truth = waves(300, noise=0.0, seed=1)
        weight = np.r_[np.ones(150), np.full(10, 1e-12)]
        wrong = y + size * (weight < 1)
        model = LABRegressor(**QUICK).fit(X, wrong, weight)
        removed = LABRegressor(**QUICK).fit(X[:150], y[:150])
        assert model.score(T, truth) > removed.score(T, truth) - 0.01
        # in units of the weighted targets
        assert 0.002 < model.validation_curve_[:, 1].min() < 0.05

    def test_lowered_weights_of_outliers_do_not_flatter_the_validation_error(self):
        X, y = waves(90)
        rows = Rows(X, y[:, None], np.r_[np.full(10, 1e-3), np.ones(80)])
        rows.Y[:10] += 5.0
        folds = make_folds(3, X, random_state=0)
        contest = Contest(rows, folds, Settings(n_support=10, max_iter=5))
        average = fit_table(contest, [LocalMachines()], 2)
        expected = np.mean((average.out_of_fold - rows.Y[contest.held]) ** 2)
        assert_allclose(average.errors["gaussian"], expected)
        assert expected > 2.0

    def test_units_of_targets_are_those_of_repeated_rows(self):
        random = np.random.RandomState(0)
        Y = random.normal(size=(20, 2)) * [1, 1e5] + [1e3, 0]
        counts = random.randint(1, 4, size=20)
        weighted = target_units(Y, 0.1 * counts)
        repeated = target_units(np.repeat(Y, counts, axis=0), np.ones(counts.sum()))
        assert_allclose(weighted.center, repeated.center, rtol=1e-6)
        assert_allclose(weighted.scale, repeated.scale, rtol=1e-6)
        level = target_units(np.r_[np.full((9, 1), 3.0), [[5.0]]], np.r_[np.ones(9), 1e-300])
        assert_allclose(level.center, 3.0)
        assert level.scale[0] > 0

    def test_units_of_weights_and_targets_do_not_matter(self):
        X, y = waves(100)
        weight = 0.2 + np.random.RandomState(0).rand(100)
        model = LABRegressor(**QUICK).fit(X, y, weight)
        predicted, curve = model.predict(X), model.validation_curve_
        other = LABRegressor(**QUICK).fit(X, 3 - 70 * y, 9 * weight)
        assert_allclose(other.predict(X), 3 - 70 * predicted, atol=1e-4)
        assert_allclose(other.validation_curve_, curve, rtol=1e-5)


@pytest.mark.parametrize("classify", [False, True])
def test_changes_of_the_data_after_fit_change_nothing(classify):
    X, y = waves(80)
    target = (y > 0).astype(float) if classify else y
    learner = LABClassifier if classify else LABRegressor
    model = learner(kernel="gaussian", max_iter=3, random_state=0)
    rows, given = X.copy(), target.copy()
    model.fit(rows, given)
    before = model.predict(X), model.support_vectors_.copy(), model.out_of_fold_.target.copy()
    rows *= 3
    given[:] = 0
    after = model.predict(X), model.support_vectors_, model.out_of_fold_.target
    for expected, value in zip(before, after):
        assert_array_equal(value, expected)

"""LAB: attributes that describe what predicts, and out-of-fold predictions that do not know their own targets."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercerless import LABClassifier, LABRegressor
from mercerless.datasets import make_lab_function
from mercerless.selection.folds import make_folds
from mercerless.selection.lab import Blend, LABSolution, blend_forms
from mercerless.selection.lab_all_rows import _ridge_descent, _ridge_grid
from mercerless.selection.lab_local import LocalLearner
from mercerless.selection.lab_members import Trees
from mercerless.selection.lab_model import Extra, LocalForm, Rows, Settings
from mercerless.selection.lab_plan import merge_rows
from mercerless.selection.lab_support import select_support
from mercerless.selection.lab_table import PLAIN
from mercerless.selection.lab_target import join_transformed, possible_transforms
from mercerless.selection.scaling import standard_scaling


def waves(n, noise=0.3, seed=0):
    random = np.random.RandomState(seed)
    X = random.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + noise * random.normal(size=n)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "exponential"])
def test_a_named_kernel_is_the_local_machine_alone(kernel):
    X, y = waves(150)
    model = LABRegressor(kernel=kernel, max_iter=5, random_state=0).fit(X, y)
    assert set(model.validation_errors_) == {kernel}
    (form,) = model.forms_
    assert isinstance(form, LocalForm) and form.weight == 1.0
    assert model.n_support_ == len(form.support) == 37
    labels = LABClassifier(kernel=kernel, max_iter=5, random_state=0).fit(X, y > 0)
    assert set(labels.validation_errors_) == {kernel} and labels.n_support_ == 37


def test_alpha_is_the_ridge_of_the_local_forms_and_drops_no_member():
    X, y = waves(100)
    plain = LABRegressor(max_iter=5, random_state=0).fit(X, y)
    fixed = LABRegressor(alpha=1e-3, max_iter=5, random_state=0).fit(X, y)
    assert set(fixed.validation_errors_) == set(plain.validation_errors_)
    assert len(fixed.validation_errors_) == 7
    local = {"gaussian", "laplace"}
    for name, error in plain.validation_errors_.items():
        assert (fixed.validation_errors_[name] == error) == (name not in local)
    for form in fixed.forms_:
        if isinstance(form, LocalForm) and len(form.support) < len(X):
            assert_allclose(form.alpha, 1e-3)


class Known(NamedTuple):
    """A member that knows the targets."""

    Y: np.ndarray
    weight: float = 1.0

    def __call__(self, X):
        return self.Y


def test_the_certificate_is_that_of_members_with_weight():
    X, y = make_lab_function(90, function="f1", random_state=0)
    rows = Rows(X, y[:, None])
    folds = make_folds(3, X, random_state=0)
    held = np.concatenate([valid for _, valid in folds])

    def blend(predictions):
        def extra(*_):
            return {"known": Extra(predictions, lambda total: Known(rows.Y))}

        settings = Settings(n_support=10, max_iter=5)
        return blend_forms(["gaussian"], rows, settings, folds, extra=extra)

    alone = blend(rows.Y[held])
    assert [type(member) for member in alone.expansions] == [Known]
    assert alone.certificate == 0.0 and len(alone.loss_curve) == 0
    assert len(alone.curves["gaussian"])  # what was tried can still be seen
    local = blend(100 + rows.Y[held])
    assert [member.form for member in local.expansions] == ["gaussian"]
    assert local.certificate == local.expansions[0].certificate > 0.0
    assert np.all(np.diff(local.loss_curve) <= 0) and len(local.loss_curve) > 1


@pytest.mark.parametrize("better", [0, 1])
def test_through_a_transform_certificate_and_losses_are_those_of_what_predicts(better):
    X, _ = waves(200)
    y = np.exp(np.random.RandomState(1).normal(size=200))
    log = possible_transforms(y)[0]
    standardized = (y - y.mean()) / y.std()
    table = merge_rows(X, standardized[:, None], None, None)
    held = np.arange(200)

    def solution(truth, is_good, certificate):
        predictions = truth if is_good else truth[::-1]
        blend = Blend([], held, predictions, {}, {}, np.array([certificate]), certificate, 0.0)
        form = Trees("boosted trees", [], np.zeros(1), np.ones(1), 1.0, standard_scaling(X), PLAIN)
        return LABSolution([form], blend, held, 1.0)

    plain = solution(standardized[:, None], better == 0, 0.25)
    other = solution(log.standardized, better == 1, 0.5)
    joined = join_transformed(plain, other, table, log, None)
    assert len(joined.forms) == 1
    assert joined.blend.certificate == (plain, other)[better].blend.certificate
    assert_array_equal(joined.blend.loss_curve, [joined.blend.certificate])


def test_the_certificate_of_all_rows_falls_with_their_descent():
    X, y = waves(80)
    rows = Rows(X, y[:, None])
    start = _ridge_grid("gaussian", rows, linear=True)
    assert 0 < _ridge_descent("gaussian", rows, start).certificate < 0.5
    stopped = _ridge_descent("gaussian", rows, start, report=lambda info: True)
    assert _ridge_descent("gaussian", rows, start).certificate < stopped.certificate


def test_the_certificate_is_that_of_the_point_that_validation_chose():
    """At the start of a descent it is 1, however far the descents of the folds went on."""
    X, y = waves(200, noise=0.0)
    rows = Rows(X, y[:, None])
    settings = Settings(n_support=20)
    learner = LocalLearner("gaussian", settings)
    support = select_support(X, rows.Y, 20, "kmeans", 0)
    train, valid = np.arange(150), np.arange(150, 200)
    held = np.random.RandomState(1).normal(size=(50, 1))  # nothing to learn: the start is best
    noise = Rows(X, np.vstack([rows.Y[:150], held]))
    candidate = learner.validate(noise, [(train, valid)], [support[support < 150]])
    iterations = [iteration for iteration, _ in candidate.curve]
    errors = [error for _, error in candidate.curve]
    assert candidate.n_iter == iterations[int(np.argmin(errors))] < iterations[-1]
    chosen = LocalLearner("gaussian", settings._replace(max_iter=max(1, candidate.n_iter)))
    _, _, certificate = chosen.learn(noise.take(train), support[support < 150])
    expected = certificate if candidate.n_iter else 1.0
    assert_allclose(candidate.certificate, expected, rtol=1e-6)
    again = learner.learn_again(candidate._replace(expansion=None, n_iter=0), rows)
    assert again.certificate == 1.0

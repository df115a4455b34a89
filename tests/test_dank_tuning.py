"""DANK's validation gradient against central differences, and what tuning by it brings."""

import numpy as np
import pytest
from contract import central_difference
from scipy.stats import cauchy
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from mercerless import CenteringPenalty, DANKClassifier, GradientSearch
from mercerless.dank.selection import HeldOut, _DankMachine, _prior, _validation_loss, tune_dank
from mercerless.kernels import Gaussian, Laplace

SEARCH = GradientSearch(n_restarts=1, max_iter=25, tol=1e-5)


def make_data(n, is_classification, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)
    return X, np.where(y > 0, 1.0, -1.0) if is_classification else y


@pytest.mark.parametrize("is_classification", [True, False])
@pytest.mark.parametrize("C", [0.3, 3.0])
def test_gradient_equals_central_differences(is_classification, C, monkeypatch):
    monkeypatch.setattr(_DankMachine, "tol", 1e-13)
    X, target = make_data(70, is_classification)
    X_test, target_test = make_data(40, is_classification, seed=1)

    def loss(x):
        epsilon = 0.0 if is_classification else np.exp(x[5])
        kernel = Gaussian(np.ones(3)).with_theta(x[:3])
        machine = _DankMachine(
            kernel, X, target, np.exp(x[3]), np.exp(x[4]), epsilon, is_classification
        )
        machine.solve(np.zeros(70))
        value, r, _ = _validation_loss(
            machine.decision(X_test), target_test, 2.0, is_classification
        )
        return value, machine.pull(X_test, r)

    x = np.array([0.0, 0.2, 0.5, np.log(C), np.log(3.0), np.log(0.1)])
    _, gradient = loss(x)
    assert np.abs(gradient[3]) > 1e-6 or C > 1  # bounded rows move with C only where C binds
    h = 1e-5
    difference = np.array([(loss(x + h * e)[0] - loss(x - h * e)[0]) / (2 * h) for e in np.eye(6)])
    if is_classification:
        difference[5] = 0.0
    np.testing.assert_allclose(gradient, difference, rtol=1e-5, atol=2e-6)


def derivatives(kernel, X, target, x, start, is_classification, X_test, target_test):
    """Ours along a random direction, and the two one-sided differences; and how many rows are free."""
    u = np.random.default_rng(0).normal(size=len(x))

    def machine_at(t):
        log_C, log_centering, log_epsilon = (x + t * u)[-3:]
        epsilon = 0.0 if is_classification else np.exp(log_epsilon)
        current = kernel.with_theta((x + t * u)[:-3])
        machine = _DankMachine(
            current, X, target, np.exp(log_C), np.exp(log_centering), epsilon, is_classification
        )
        machine.solve(start * np.exp(log_C))
        return machine, *_validation_loss(
            machine.decision(X_test), target_test, 2.0, is_classification
        )[:2]

    machine, value, r = machine_at(0.0)
    h = 1e-6
    sides = sorted([(machine_at(h)[1] - value) / h, (value - machine_at(-h)[1]) / h])
    v, q = machine.v, machine.problem
    return machine.pull(X_test, r) @ u, sides, np.sum((v > q.lo) & (v < q.hi) & (v != 0)), machine


@pytest.mark.parametrize("is_classification", [True, False])
@pytest.mark.parametrize("repeated", [False, True])
def test_derivative_from_any_start_lies_between_the_one_sided_differences(
    is_classification, repeated
):
    """No row that belongs on a bound is taken as free, wherever the solver comes from."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, target = make_data(50, is_classification, seed)
        X_test, target_test = make_data(30, is_classification, seed + 100)
        if repeated:
            X = np.round(X)
        x = np.concatenate(
            [
                rng.normal(scale=0.5, size=3),
                np.log(10 ** rng.uniform([-1.2, 0, -1.5], [1.5, 1.5, -0.3])),
            ]
        )
        noise = rng.uniform(-1, 1, size=50)
        found = []
        for kind in ("zero", "random", "warm"):
            start = np.zeros(50)
            if kind == "random":
                start = np.abs(noise) * target if is_classification else noise
            elif kind == "warm":
                start = found[0] * np.exp(-x[3])
            ours, (low, high), _, machine = derivatives(
                Gaussian(np.ones(3)), X, target, x, start, is_classification, X_test, target_test
            )
            slack = 1e-3 * max(abs(low), abs(high), 1e-2)
            assert low - slack <= ours <= high + slack
            found.append(machine.v)
        np.testing.assert_allclose(
            found[1:], [found[0]] * (len(found) - 1), atol=1e-3 * np.exp(x[3])
        )


def test_the_prior_is_a_cauchy_of_scales_and_a_gaussian_of_the_rest():
    theta, change = np.array([0.3, -1.0, 2.0, 0.1]), np.array([0.5, -1.5])
    value, gradient = _prior(theta, change, 0.7)
    deviation = (theta - theta.mean()) / 0.7
    expected = -cauchy.logpdf(deviation) - np.log(np.pi)
    np.testing.assert_allclose(value, expected.sum() + 0.5 * np.sum((change / 2) ** 2))

    def value_at(x):
        return _prior(x[:4], x[4:], 0.7)[0]

    numeric = central_difference(value_at, np.append(theta, change))
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)


@pytest.mark.parametrize("is_classification", [True, False])
def test_derivatives_of_the_validation_loss(is_classification):
    f, target = make_data(9, is_classification)[0][:, 0], make_data(9, is_classification)[1]
    _, in_scores, in_slope = _validation_loss(f, target, 1.5, is_classification)

    def value_at(x):
        return _validation_loss(x[:-1], target, np.exp(x[-1]), is_classification)[0]

    numeric = central_difference(value_at, np.append(f, np.log(1.5)))
    np.testing.assert_allclose(np.append(in_scores, in_slope), numeric, atol=1e-8)


@pytest.mark.parametrize("is_classification", [True, False])
def test_derivative_when_no_row_is_free(is_classification):
    """All rows on bounds: the intercept is the middle between two rows' margins and moves with them."""
    tried = 0
    for seed in range(20):
        X, target = make_data(12, is_classification, seed)
        if is_classification:
            target = np.tile([1.0, -1.0], 6)  # as many of each, or one row is free
        X_test, target_test = make_data(30, is_classification, seed + 100)
        x = np.append(np.zeros(3), np.log([0.02, 3.0, 0.4]))
        ours, (low, high), n_free, _ = derivatives(
            Gaussian(np.ones(3)), X, target, x, np.zeros(12), is_classification, X_test, target_test
        )
        if n_free == 0:
            tried += 1
            slack = 1e-3 * max(abs(low), abs(high), 1e-2)
            assert low - slack <= ours <= high + slack
    assert tried >= 5


@pytest.mark.slow
def test_descent_lowers_the_loss():
    folds = []
    X, target = make_data(120, False)
    for k in range(2):
        test = np.arange(120) % 2 == k
        folds.append(HeldOut(X[~test], target[~test], X[test], target[test], np.zeros(60), 1.0))
    options = {"epsilon": 0.1, "n_samples": 120, "is_classification": False, "search": SEARCH}
    tuned = tune_dank(Gaussian(np.ones(3)), folds, C=1.0, **options)
    assert tuned.losses[-1] < tuned.losses[0] - 0.05
    scales = tuned.kernel.length_scale
    assert scales[0] < scales[1] and scales[0] < scales[2]  # only the first feature matters


def test_features_that_do_not_pay_keep_the_common_scale():
    """With many features that matter alike, one length scale each would fit noise; few that matter do leave."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(80, 20))

    def scales(target):
        halves = np.arange(80) < 40
        folds = [
            HeldOut(X[h], target[h], X[~h], target[~h], np.zeros(40), 10.0)
            for h in (halves, ~halves)
        ]
        options = {
            "epsilon": 0.1,
            "n_samples": 80,
            "is_classification": False,
            "search": GradientSearch(1, 10, 1e-5),
        }
        tuned = tune_dank(Gaussian(np.full(20, 2.0)), folds, C=1.0, **options)
        return np.log(tuned.kernel.length_scale)

    alike = X.sum(axis=1) + rng.normal(size=80)
    assert np.ptp(scales((alike - alike.mean()) / alike.std())) < 0.2
    few = np.sin(6 * X[:, 0])
    found = scales((few - few.mean()) / few.std())
    assert np.argmin(found) == 0 and np.sort(found)[1] - found[0] > 1.0


@pytest.mark.slow
def test_tuned_classifier_finds_the_features_that_matter():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(500, 8))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    model = DANKClassifier(search=SEARCH, random_state=0).fit(X[:120], y[:120])
    plain = GridSearchCV(
        SVC(), {"C": 2.0 ** np.arange(-1, 8, 2), "gamma": 2.0 ** np.arange(-5, 4, 2)}, cv=5
    )
    assert (
        model.score(X[120:], y[120:]) > plain.fit(X[:120], y[:120]).score(X[120:], y[120:]) + 0.05
    )
    assert set(np.argsort(model.kernel_.length_scale)[:2]) == {0, 1}
    assert model.certificate_ <= 1e-4 and model.C_ > 0


def test_what_cannot_be_tuned_raises():
    X, y = make_data(30, True)
    with pytest.raises(ValueError, match="needs a Gaussian kernel"):
        DANKClassifier(Laplace(1.0), search=SEARCH).fit(X, y)
    with pytest.raises(ValueError, match="takes no weights"):
        DANKClassifier(search=SEARCH, class_weight={1.0: 2.0, -1.0: 1.0}).fit(X, y)
    with pytest.raises(ValueError, match="at least two rows of every class"):
        DANKClassifier(search=SEARCH).fit(X, np.arange(30) == 0)
    with pytest.raises(ValueError, match=r"search must be None or a .*GradientSearch"):
        DANKClassifier(search="grid").fit(X, y)
    with pytest.raises(ValueError, match="search chooses the centering penalty"):
        DANKClassifier(search=SEARCH, adaptivity=CenteringPenalty(2.0)).fit(X, y)

"""The Krein estimators: identities, hard cases, bad input, tuning, landmarks, and scikit-learn's checks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles.krein import repeat_rows
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer
from sklearn.svm import SVC, SVR

from mercerless import (
    Ball,
    GradientSearch,
    KreinEmbedding,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinSVR,
    Sphere,
)
from mercerless.core.basis import make_basis
from mercerless.datasets import make_balls3d
from mercerless.inspection import SpectrumDisplay
from mercerless.kernels import TL1, DeltaGauss, Epanechnikov, Gaussian, Sigmoid
from mercerless.krein.selection import Family, KreinRows, make_candidates
from mercerless.krein.thresholds import KreinThresholds
from mercerless.krein.tuning import ValidationObjective
from mercerless.lowrank import Landmarks
from mercerless.spectra import DissimilarityKernel

FIXED = {"alpha_positive": 1e-2, "alpha_negative": 3e-2}
KERNEL = DeltaGauss(1.0, 0.3)


def data(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)
    X.flags.writeable = y.flags.writeable = False
    return X, y


def classes(y):
    return np.array(["low", "middle", "high"])[(y > 0.5).astype(int) + (y > 2)]


def values(classifier, X):
    """The functions of a classifier before calibration."""
    return sum(classifier.predict_parts(X)) + classifier.intercept_


# ---------------------------------------------------------------- identities


def test_positive_definite_equal_penalties_is_kernel_ridge_on_the_centered_kernel():
    X, y = data()
    Xt, _ = data(30, 1)
    kernel = Gaussian(1.0)
    model = KreinRidge(kernel, alpha_positive=0.01, alpha_negative=0.01).fit(X, y)
    center = KernelCenterer().fit(kernel(X))
    ridge = KernelRidge(alpha=80 * 0.01, kernel="precomputed").fit(
        center.transform(kernel(X)), y - y.mean()
    )
    expected = ridge.predict(center.transform(kernel(Xt, X))) + y.mean()
    assert_allclose(model.predict(Xt), expected, atol=1e-10)


@pytest.mark.parametrize("constraint", [None, Sphere(0.7), Ball(0.7)])
def test_a_constant_added_to_the_kernel_changes_nothing(constraint):
    X, y = data()
    Xt, _ = data(30, 1)
    K, Kt = KERNEL(X), KERNEL(Xt, X)
    first = KreinRidge("precomputed", **FIXED, constraint=constraint).fit(K, y)
    second = KreinRidge("precomputed", **FIXED, constraint=constraint).fit(K + 5.0, y)
    assert_allclose(first.predict(Kt), second.predict(Kt + 5.0), atol=1e-10)


def test_ball_with_a_large_radius_is_no_constraint():
    X, y = data()
    free = KreinRidge(KERNEL, **FIXED).fit(X, y)
    radius = free.predict(X).std() * (1 + 1e-9)
    ball = KreinRidge(KERNEL, **FIXED, constraint=Ball(radius)).fit(X, y)
    assert ball.multiplier_ == 0.0
    assert_allclose(ball.predict(X), free.predict(X), atol=1e-10)
    sphere = KreinRidge(KERNEL, **FIXED, constraint=Sphere(radius)).fit(X, y)
    assert abs(sphere.multiplier_) < 1e-6


@pytest.mark.parametrize("constraint", [Sphere(0.5), Ball(0.5)])
def test_training_predictions_have_the_variance_asked_for(constraint):
    X, y = data()
    model = KreinRidge(KERNEL, **FIXED, constraint=constraint).fit(X, y)
    assert_allclose(model.predict(X).std(), 0.5, rtol=1e-10)
    assert model.certificate_ < 1e-13
    assert model.is_minimum_


@pytest.mark.parametrize(
    "model", [KreinRidge(KERNEL, **FIXED), KreinRidge(KERNEL, constraint=Sphere(1.0))]
)
def test_weights_equal_repeated_rows(model):
    X, y = data(40)
    weight = np.random.default_rng(0).integers(0, 4, 40)
    folds = np.arange(40) % 4
    weighted = clone(model).set_params(
        cv=[(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(4)]
    )
    repeated_folds = np.repeat(folds, weight)
    splits = [
        (np.flatnonzero(repeated_folds != f), np.flatnonzero(repeated_folds == f)) for f in range(4)
    ]
    repeated = clone(model).set_params(cv=splits)
    weighted.fit(X, y, sample_weight=weight)
    repeated.fit(*repeat_rows(X, y, weight))
    assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-10)
    if model.alpha_positive is None:
        assert_allclose(weighted.cv_results_["error"], repeated.cv_results_["error"], rtol=1e-7)


def test_equal_penalties_and_the_covariance_regularizer_in_closed_form():
    X, y = data()
    K = KERNEL(X)
    model = KreinRidge("precomputed", alpha_positive=0.5, regularizer="covariance").fit(K, y)
    H = np.eye(80) - 1 / 80
    inside = np.linalg.pinv(H @ K @ H, rcond=1e-12) @ (H @ K @ H)
    assert_allclose(model.predict(K), y.mean() + inside @ (y - y.mean()) / 1.5, atol=1e-8)
    on_sphere = KreinRidge(
        "precomputed", alpha_positive=0.5, regularizer="covariance", constraint=Sphere(0.3)
    )
    projected = inside @ (y - y.mean())
    expected = y.mean() + 0.3 * np.sqrt(80) * projected / np.linalg.norm(projected)
    assert_allclose(on_sphere.fit(K, y).predict(K), expected, atol=1e-8)


def test_without_intercept():
    X, y = data()
    model = KreinRidge(KERNEL, **FIXED, fit_intercept=False, constraint=Sphere(0.8)).fit(X, y)
    assert model.intercept_ == 0.0
    assert_allclose(np.mean(model.predict(X) ** 2), 0.64, rtol=1e-10)


# ---------------------------------------------------------------- tuning


def test_cross_validated_setting_is_the_best_of_refits():
    """One eigendecomposition per fold gives the errors that refitting every setting gives."""
    X, y = data(60)
    folds = KFold(4, shuffle=True, random_state=0)
    model = KreinRidge(KERNEL, constraint=Sphere(), cv=folds)
    model.fit(X, y)
    table = model.cv_results_
    assert len(table["error"]) == 510
    K = KERNEL(X)
    for i in range(0, 510, 37):
        errors = []
        for train, test in folds.split(X):
            H = np.eye(len(train)) - 1 / len(train)
            largest = np.abs(np.linalg.eigvalsh(H @ K[np.ix_(train, train)] @ H)).max()
            full = np.abs(
                np.linalg.eigvalsh((np.eye(60) - 1 / 60) @ K @ (np.eye(60) - 1 / 60))
            ).max()
            scale = (largest / len(train)) / (full / 60)
            spread = y[train].std()
            one = KreinRidge(
                KERNEL, alpha_positive=table["alpha_positive"][i] * scale,
                alpha_negative=table["alpha_negative"][i] * scale,
                constraint=Sphere(table["radius"][i, 0] * spread / y.std()),
            ).fit(X[train], y[train])  # fmt: skip
            errors.append(np.mean((one.predict(X[test]) - y[test]) ** 2) / y.var())
        assert_allclose(table["error"][i], np.mean(errors), rtol=1e-7)
    assert model.best_index_ == np.argmin(table["error"])
    assert_allclose(model.alpha_positive_, table["alpha_positive"][model.best_index_])


def test_held_out_errors_are_not_the_leave_one_out_shortcut():
    """On an indefinite kernel the closed form 'residual / (1 - leverage)' is optimistic; the folds are not."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = rng.standard_normal(60)  # nothing to learn
    model = KreinRidge(Sigmoid(1.0), random_state=0).fit(X, y)
    assert model.cv_results_["error"].min() > 0.9


def test_gradient_tuning_lowers_the_validation_error():
    X, y = data(60)
    start = KreinRidge(Gaussian(10.0), random_state=0).fit(X, y)
    tuned = KreinRidge(
        Gaussian(10.0), search=GradientSearch(2, 10), constraint=Sphere(), cv=3, random_state=0
    )
    tuned.fit(X, y)
    assert tuned.tuning_.value < start.cv_results_["error"].min()
    assert tuned.kernel_.length_scale != 10.0
    assert tuned.kernel.length_scale == 10.0  # the parameter is untouched
    assert_allclose(tuned.predict(X).std(), tuned.radius_, rtol=1e-8)
    again = clone(tuned).fit(X, y)
    assert_array_equal(again.predict(X), tuned.predict(X))


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(np.ones(9)),
        DeltaGauss(),
        Sigmoid(1.0),
        Sigmoid(np.ones(9)),
        Epanechnikov(3.0),
        TL1(9.0) + Gaussian(),
    ],
)
def test_gradient_of_the_tuning_objective(kernel):
    _, y = data(40)
    # no eigenvalue near zero, where the loss jumps
    X = np.random.default_rng(0).standard_normal((40, 9))
    rows = KreinRows(make_basis(kernel, X), y[:, None], np.ones(40), np.arange(40) % 3)
    candidates = make_candidates(None, None, Sphere(), "components")
    objective = ValidationObjective(rows, Family("components", "sphere", True), candidates)
    x = objective.start(np.random.RandomState(0))
    x = np.clip(x, *objective.bounds().T)
    _, gradient = objective(x)
    for i in range(len(x)):
        h = 1e-6
        up, down = x.copy(), x.copy()
        up[i] += h
        down[i] -= h
        central = (objective(up)[0] - objective(down)[0]) / (2 * h)
        assert_allclose(gradient[i], central, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("regularizer", ["components", "strong"])
def test_mu_solves_the_stationary_constraints_of_the_papers(regularizer):
    """Oglic and Gaertner (5) and Liu et al. (4.3), with the factors n that the first leave out."""
    X, y = data(20)
    K = KERNEL(X)
    model = KreinRidge("precomputed", **FIXED, regularizer=regularizer, fit_intercept=False)
    model.set_params(constraint=Sphere(0.8)).fit(K, y)
    s, V = np.linalg.eigh(K)
    minus = FIXED["alpha_negative" if regularizer == "components" else "alpha_positive"]
    signed = np.where(s > 0, FIXED["alpha_positive"], -minus)
    a = V @ ((V.T @ y) / 20 / (signed - model.mu_ * s))
    assert_allclose(K @ model.dual_coef_[0], K @ a, rtol=1e-8)
    assert_allclose(model.multiplier_, 1 + 20 * model.mu_, rtol=1e-12)
    free = KreinRidge("precomputed", **FIXED, fit_intercept=False).fit(K, y)
    assert_allclose(free.mu_, -1 / 20)
    two = KreinRidge("precomputed", **FIXED, constraint=Sphere(0.8)).fit(K, np.c_[y, -y])
    assert two.mu_.shape == (2,)


def test_a_minimum_that_rounding_decides_is_said():
    # the hard case: no target along the largest eigenvalues, which a large radius needs
    V = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    K = (V * [-1.0, 2.0, 4.0, 4.0]) @ V.T
    y = V @ [1.0, 1.0, 0.0, 0.0]
    options = {"alpha_positive": 1.0, "alpha_negative": 1.0, "fit_intercept": False}
    with pytest.warns(ConvergenceWarning, match="not unique.*smaller radius"):
        hard = KreinRidge("precomputed", constraint=Sphere(10.0), **options).fit(K, y)
    u = V.T @ K @ hard.dual_coef_[0]
    expected = 398.0 + 2.0 / 3.0  # the minimum of 4 sum(u^2 / |s|) - 2 t u, for every direction
    objective = 4 * np.sum(u**2 / [1.0, 2.0, 4.0, 4.0]) - 2 * (u[0] + u[1])
    assert_allclose(objective, expected, rtol=1e-10)
    # unique minima have no warning, which would be an error here
    for constraint in (Sphere(0.3), Ball(10.0), None):
        KreinRidge("precomputed", constraint=constraint, **options).fit(K, y)
    with pytest.warns(ConvergenceWarning, match="not unique"):
        KreinRidge("precomputed", constraint=Sphere(10.0), **options).fit(K, np.c_[V[:, 2], y])


@pytest.mark.parametrize("constraint", [None, Sphere(), Sphere([[0.5, 2e5]])])
def test_gradient_tuning_does_not_depend_on_the_units_of_one_of_two_outputs(constraint):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    Y = np.column_stack([np.sin(3 * X[:, 0]), X[:, 1] ** 2]) + 0.1 * rng.normal(size=(40, 2))
    model = KreinRidge(Gaussian(2.0), search=GradientSearch(1, 8), cv=3, random_state=0)
    units = np.array([1.0, 1e6])
    first = clone(model).set_params(constraint=constraint).fit(X, units * Y)
    if constraint is not None and constraint.radius is not None:
        constraint = Sphere(np.array(constraint.radius) / units)
    second = clone(model).set_params(constraint=constraint).fit(X, Y)
    assert_allclose(first.kernel_.length_scale, second.kernel_.length_scale, rtol=1e-4)
    assert_allclose(first.predict(X) / units, second.predict(X), rtol=1e-3, atol=1e-3)


def test_gradient_tuning_of_a_precomputed_kernel_tunes_the_penalties():
    X, y = data(50)
    K = TL1(3.0)(X)
    model = KreinRidge("precomputed", search=GradientSearch(2, 20), random_state=0).fit(K, y)
    assert len(model.tuning_.x) == 2
    grid = KreinRidge("precomputed", random_state=0).fit(K, y)
    assert model.tuning_.value < 1.1 * grid.cv_results_["error"].min()


# ---------------------------------------------------------------- landmarks


def test_linear_machine_on_an_embedding_of_all_landmarks_is_the_krein_machine():
    X, y = data(60)
    new, _ = data(20, 1)
    labels = y > 1
    axes = KreinEmbedding(KERNEL, n_components=None, landmarks=60, random_state=0)
    exact = KreinSVC(KERNEL, tol=1e-8).fit(X, labels)
    machine = make_pipeline(axes, SVC(C=exact.C_, kernel="linear", tol=1e-8)).fit(X, labels)
    assert exact.n_negative_ > 5
    assert_allclose(machine.decision_function(new), exact.decision_function(new), atol=1e-5)
    assert_allclose(machine.decision_function(X), exact.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("kernel", [DeltaGauss(1.0, 0.3), TL1(3.0), Gaussian(1.0)])
def test_all_landmarks_equal_exact(kernel):
    X, y = data()
    Xt, _ = data(30, 1)
    for options in ({}, {"constraint": Sphere(0.8)}):
        exact = KreinRidge(kernel, **FIXED, **options).fit(X, y)
        all_rows = KreinRidge(kernel, **FIXED, **options, landmarks=80).fit(X, y)
        assert sorted(all_rows.landmarks_) == list(range(80))
        assert_allclose(all_rows.predict(Xt), exact.predict(Xt), atol=1e-8)


def test_cross_validation_on_landmarks_equals_exact_when_all_rows_are_landmarks():
    X, y = data()
    exact = KreinRidge(TL1(3.0), random_state=0).fit(X, y)
    all_rows = KreinRidge(TL1(3.0), landmarks=80, random_state=0).fit(X, y)
    assert_allclose(all_rows.cv_results_["error"], exact.cv_results_["error"], rtol=1e-5)
    assert all_rows.best_index_ == exact.best_index_


@pytest.mark.parametrize("kernel", [TL1(3.0), DeltaGauss(1.5, 0.4), Sigmoid(1.5, -0.3)])
def test_more_landmarks_are_never_much_worse(kernel):
    X, y = data(400)
    Xt, yt = data(300, 1)
    models = [KreinRidge(kernel, landmarks=m, random_state=0).fit(X, y) for m in (25, 50, 100, 200)]
    errors = [np.mean((model.predict(Xt) - yt) ** 2) for model in models]
    assert np.all(np.diff(errors) < 0.05 * np.array(errors[:-1]))
    assert errors[-1] < errors[0]


def test_auto_uses_landmarks_for_many_rows(monkeypatch):
    X, y = data(200)
    model = KreinRidge(KERNEL, **FIXED)
    assert model.fit(X, y).landmarks_ is None
    monkeypatch.setattr("mercerless.krein.ridge.LIMITS", KreinThresholds(150, 60))
    with pytest.warns(UserWarning, match="uses 60 landmarks for 200 rows"):
        model.fit(X, y)
    assert len(model.landmarks_) == 60
    assert model.set_params(landmarks=None).fit(X, y).landmarks_ is None


# ---------------------------------------------------------------- classification


def test_probabilities_agree_with_decisions_and_are_calibrated():
    X, y = data(300)
    Xt, yt = data(400, 1)
    model = KreinRidgeClassifier(TL1(4.0)).fit(X, classes(y))
    P = model.predict_proba(Xt)
    assert_allclose(P.sum(axis=1), 1.0)
    assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(Xt))
    assert log_loss(classes(yt), P, labels=model.classes_) < 0.75 * np.log(3)
    assert abs(log_loss(classes(yt), P, labels=model.classes_) - model.calibration_.loss) < 0.2


def test_the_papers_rule_is_the_sign_of_a_regression_on_standardized_labels():
    """A rescaling that cuts at the classes' prior, not a class weight."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.standard_normal((12, 2)) + 1.5, rng.standard_normal((180, 2))]
    y = np.r_[np.ones(12), -np.ones(180)]
    signed = KreinRidgeClassifier(Gaussian(2.0), **FIXED).fit(X, y)
    paper = KreinRidge(Gaussian(2.0), **FIXED).fit(X, (y - y.mean()) / y.std())
    assert_allclose(paper.predict(X), (values(signed, X) - y.mean()) / y.std(), atol=1e-10)
    assert np.mean(paper.predict(X) > 0) > 2 * np.mean(values(signed, X) > 0)


# ---------------------------------------------------------------- support vector machines


@pytest.mark.parametrize("kernel", [TL1(4.0), DeltaGauss(2.0, 0.5)])
def test_svc_equals_scikit_learn_on_the_flipped_matrix(kernel):
    X, y = data()
    Xt, _ = data(30, 1)
    centerer = KernelCenterer().fit(kernel(X))
    K, Kt = centerer.transform(kernel(X)), centerer.transform(kernel(Xt, X))
    s, V = np.linalg.eigh(K)
    flip = (V * np.abs(s)) @ V.T
    flip = (flip + flip.T) / 2
    flip_test = Kt @ (V * np.sign(s)) @ V.T
    for labels in (np.where(y > 1, 1, 0), classes(y)):
        ours = KreinSVC(kernel, tol=1e-10).fit(X, labels)
        reference = SVC(C=ours.C_, kernel="precomputed", tol=1e-10).fit(flip, labels)
        assert_allclose(
            ours.decision_function(Xt), reference.decision_function(flip_test), atol=3e-4
        )  # libsvm keeps its matrix in single precision
        assert np.mean(ours.predict(Xt) == reference.predict(flip_test)) > 0.95


@pytest.mark.parametrize("machine", [KreinSVC("precomputed"), KreinSVR("precomputed")])
def test_a_machine_does_not_depend_on_the_origin_of_an_indefinite_matrix(machine):
    X, y = data()
    K = TL1(4.0)(X)
    moved = K - 30.0 - K.mean(axis=0) - K.mean(axis=1)[:, None]
    y = y > 1 if isinstance(machine, KreinSVC) else y
    expected = machine.set_params(tol=1e-8).fit(K, y).predict(K)
    assert_allclose(machine.fit(moved, y).predict(moved), expected, atol=1e-3)


def test_positive_definite_svc_and_svr_are_scikit_learns():
    X, y = data()
    kernel = Gaussian(1.0)
    ours = KreinSVC(kernel).fit(X, y > 1)
    reference = SVC(C=ours.C_, kernel="precomputed").fit(kernel(X), y > 1)
    assert_allclose(ours.decision_function(X), reference.decision_function(kernel(X)), atol=1e-2)
    ours = KreinSVR(kernel, tol=1e-10).fit(X, y)
    reference = SVR(C=ours.C_, kernel="precomputed", tol=1e-10).fit(kernel(X), y / y.std())
    assert_allclose(ours.predict(X), y.std() * reference.predict(kernel(X)), atol=1e-6)


def test_svc_scores_follow_the_votes():
    X, y = load_iris(return_X_y=True)
    model = KreinSVC(TL1(4.0)).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (150, 3)
    assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(X))
    assert model.score(X, y) > 0.93


@pytest.mark.parametrize("model", [KreinSVC("precomputed"), KreinSVR("precomputed")])
def test_machines_far_from_the_origin_end_with_a_certificate(model):
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = 1.0 * (X[:, 0] + 0.3 * X[:, 1] ** 2 > 0.2)
    near, far = (clone(model).fit(Z @ Z.T, y) for Z in (X, X + 100.0))
    assert near.certificate_ < 1e-3 and far.certificate_ < 1e-3
    there = far.predict((X + 100.0) @ (X + 100.0).T)
    assert_allclose(np.mean(np.round(near.predict(X @ X.T)) == np.round(there)), 1.0, atol=0.05)


def test_svc_penalty_of_the_negative_part():
    X, y = data()
    K = DeltaGauss(2.0, 0.5)(X)
    labels = y > 1
    clipped = KreinSVC("precomputed", negative_penalty=np.inf).fit(K, labels)
    s, V = np.linalg.eigh(KernelCenterer().fit_transform(K))
    projected = V[:, s < -1e-9].T @ clipped.dual_coef_.T
    assert np.abs(projected).max() < 1e-10
    flipped = KreinSVC("precomputed").fit(K, labels)
    assert np.abs(V[:, s < -1e-9].T @ flipped.dual_coef_.T).max() > 1e-3


# ---------------------------------------------------------------- hard cases and bad input

MODELS = [KreinRidge("precomputed"), KreinRidge("precomputed", **FIXED, constraint=Sphere(1.0))]
MODELS += [KreinRidge("precomputed", **FIXED, constraint=Ball(1.0))]
MODELS += [KreinRidge("precomputed", landmarks=5)]


@pytest.mark.parametrize("model", MODELS)
def test_constant_targets_give_the_mean(model):
    K = KERNEL(data(20)[0])
    assert_allclose(clone(model).fit(K, np.full(20, 3.0)).predict(K), 3.0, atol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_one_row_gives_its_target(model):
    model = clone(model).fit([[2.0]], [7.0])
    assert_allclose(model.predict([[2.0], [0.0]]), 7.0)


def test_negative_definite_kernel():
    X, y = data()
    minus = KreinRidge(-1.0 * Gaussian(1.0), alpha_positive=1.0, alpha_negative=0.01).fit(X, y)
    plus = KreinRidge(Gaussian(1.0), alpha_positive=0.01, alpha_negative=1.0).fit(X, y)
    assert np.all(minus.eigenvalues_ < 0)
    assert_allclose(minus.predict(X), plus.predict(X), atol=1e-8)


@pytest.mark.parametrize("radius", [0.0, 1e-12, 1e12])
def test_extreme_radii(radius):
    X, y = data()
    model = KreinRidge(KERNEL, **FIXED, constraint=Sphere(radius)).fit(X, y)
    assert_allclose(model.predict(X).std(), radius, rtol=1e-6, atol=1e-15 + 1e-13 * np.abs(y).max())
    assert model.certificate_ < 1e-12
    ball = KreinRidge(KERNEL, **FIXED, constraint=Ball(radius)).fit(X, y)
    assert ball.predict(X).std() <= radius * (1 + 1e-6) + 1e-13


def test_indefinite_regularizer_warns_and_is_global_on_the_sphere():
    X, y = data(40)
    options = {"alpha_positive": 0.05, "regularizer": "indefinite"}
    with pytest.warns(UserWarning, match="often does not generalize"):
        model = KreinRidge(KERNEL, **options, constraint=Sphere(1.0)).fit(X, y)
    assert model.is_minimum_
    with pytest.warns(UserWarning, match="rewards complexity"):
        free = KreinRidge(KERNEL, **options).fit(X, y)
    assert not free.is_minimum_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha_positive": -1.0}, "alpha_positive must be a nonnegative"),
        ({"alpha_negative": np.nan}, "alpha_negative must be a nonnegative"),
        ({"regularizer": "l2"}, "regularizer='l2' is not known; use 'components'"),
        ({"alpha_positive": "strong"}, "alpha_positive must be a nonnegative"),
        ({"alpha_positive": []}, "alpha_positive must be a nonnegative"),
        ({"alpha_negative": [[1.0]]}, "alpha_negative must be a nonnegative"),
        ({"constraint": "sphere"}, r"constraint must be None, Sphere\(radius\)"),
        ({"constraint": Sphere([[1.0, 2.0, 3.0]])}, "radius has 3 columns, but y has 1 outputs"),
        ({"search": "gradient"}, "search must be None or a mercerless.GradientSearch"),
        ({"constraint": Sphere(-1.0)}, "radius must be a nonnegative"),
        ({"landmarks": 0}, "landmarks=0 must be a positive"),
        ({"landmarks": "many"}, "landmarks='many' must be a positive"),
        ({"landmarks": Landmarks(5, "best")}, "method='best' is not known"),
        ({"cv": 1}, "at least 2 folds"),
        ({"cv": ShuffleSplit(3, random_state=0)}, "hold out every row once"),
        ({"search": GradientSearch(), "landmarks": 9}, "GradientSearch needs all rows"),
        (
            {"search": GradientSearch(), "alpha_positive": [0.1, 1.0]},
            "one number or None as alpha_positive",
        ),
        ({"search": GradientSearch(), "kernel": "linear", **FIXED}, "nothing to tune"),
    ],
)
def test_bad_parameters(options, message):
    X, y = data(20)
    with pytest.raises(ValueError, match=message):
        KreinRidge(**options).fit(X, y)


def test_bad_weights_and_labels():
    X, y = data(20)
    with pytest.raises(ValueError, match="sample_weight"):
        KreinRidge().fit(X, y, np.ones(3))
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        KreinRidge().fit(X, y, -np.ones(20))
    with pytest.raises(ValueError, match=r"non-zero|zero for every row"):
        KreinRidge().fit(X, y, np.zeros(20))
    for estimator in (KreinRidgeClassifier(), KreinSVC()):
        with pytest.raises(ValueError, match="one class only"):
            estimator.fit(X, np.ones(20))
        with pytest.raises(ValueError, match="one class only"):
            estimator.fit(X, np.r_[np.ones(10), np.zeros(10)], np.r_[np.ones(10), np.zeros(10)])
    for C in (0, True, "1"):
        with pytest.raises(ValueError, match=f"C={C!r} must be a positive number"):
            KreinSVC(C=C).fit(X, y > 0)
    # its certificate was not a number
    with pytest.raises(ValueError, match="C=inf must be a positive finite number"):
        KreinSVC(C=np.inf).fit(X, y > 0)
    with pytest.raises(ValueError, match="epsilon=-1 must be a nonnegative number"):
        KreinSVR(epsilon=-1).fit(X, y)


def test_c_is_chosen_where_it_matters():
    """Rings that only a strong machine separates."""
    random = np.random.RandomState(0)
    X = random.normal(size=(200, 2))
    y = np.sin(3 * np.linalg.norm(X, axis=1)) > 0
    kernel = Gaussian(1.0)
    chosen = KreinSVC(kernel).fit(X[:150], y[:150])
    weak = KreinSVC(kernel, C=0.1).fit(X[:150], y[:150])
    assert chosen.score(X[150:], y[150:]) > 0.9 > weak.score(X[150:], y[150:]) + 0.05
    again = KreinSVC(kernel).fit(X[:150], y[:150])
    assert_array_equal(again.dual_coef_, chosen.dual_coef_)


@pytest.mark.parametrize("speed", [0.5, 5.0])
def test_the_default_kernel_has_a_length_scale_chosen_on_folds(speed):
    random = np.random.RandomState(0)
    X = random.normal(size=(200, 2))
    target = np.sin(speed * X[:, 0])
    model = KreinSVR().fit(X[:150], target[:150])
    fixed = KreinSVR(C=10.0).fit(X[:150], target[:150])
    assert model.score(X[150:], target[150:]) > max(0.8, fixed.score(X[150:], target[150:]) - 0.01)
    ratio = np.unique(model.kernel_.length_scale / fixed.kernel_.length_scale)
    assert np.ptp(ratio) < 1e-12 and (ratio[0] < 1) == (speed > 1)


def test_balls_are_separated_by_the_defaults():
    """The classes differ on the negative spectrum only; C = 1 on the matrix as it is leaves 41 % wrong."""
    D, y = make_balls3d(200, random_state=0)
    train, test = np.arange(0, 200, 2), np.arange(1, 200, 2)
    kernel = DissimilarityKernel().fit(D[np.ix_(train, train)])
    K, K_test = (kernel.transform(D[np.ix_(part, train)]) for part in (train, test))
    scores = [
        KreinSVC("precomputed", C=C).fit(K, y[train]).score(K_test, y[test]) for C in (1.0, "auto")
    ]
    assert scores[0] < 0.8 and scores[1] >= 0.97


def test_the_spectrum_is_drawn_without_the_items():
    X, y = data(40)
    model = KreinRidge(KERNEL, **FIXED).fit(X, y)
    display = SpectrumDisplay.from_estimator(model)
    assert_allclose(np.sort(display.eigenvalues), np.sort(model.eigenvalues_))
    machine = KreinSVC(KERNEL, C=1.0).fit(X, y > 1)
    assert_allclose(
        SpectrumDisplay.from_estimator(machine).eigenvalues,
        np.sort(np.linalg.eigvalsh(KERNEL(X)))[::-1],
        atol=1e-10,
    )
    with pytest.raises(ValueError, match="keeps no training items; pass X"):
        SpectrumDisplay.from_estimator(KreinSVC("precomputed", C=1.0).fit(KERNEL(X), y > 1))

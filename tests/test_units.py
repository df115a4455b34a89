"""Units of features, targets and similarities change no prediction."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_friedman1
from sklearn.preprocessing import StandardScaler

from mercerless import (
    AsymmetricRidge,
    AsymmetricRidgeClassifier,
    DANKClassifier,
    DANKRegressor,
    HyperClassifier,
    HyperRegressor,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinSVR,
    LABClassifier,
    LABRegressor,
    UselessModelWarning,
)
from mercerless.core.units import Standardizer, kernel_unit, length_scales

X_CLASSES, Y_CLASSES = load_iris(return_X_y=True)
X_NUMBERS, Y_NUMBERS = make_friedman1(90, 6, random_state=0)
SOME = slice(None, None, 2)
OTHERS = slice(1, None, 2)

CLASSIFIERS = [
    KreinRidgeClassifier(random_state=0),
    KreinSVC(),
    DANKClassifier(),
    HyperClassifier(),
    AsymmetricRidgeClassifier(),
    LABClassifier(10, random_state=0),
]
REGRESSORS = [
    KreinRidge(random_state=0),
    KreinSVR(),
    DANKRegressor(tol=1e-8),
    HyperRegressor(),
    AsymmetricRidge(),
    LABRegressor(10, random_state=0),
]
ON_MATRICES = [
    (KreinRidgeClassifier("precomputed", random_state=0), "decision_function"),
    (KreinSVC("precomputed", tol=1e-8), "decision_function"),
    (AsymmetricRidgeClassifier("precomputed"), "decision_function"),
    (KreinRidge("precomputed", random_state=0), "predict"),
    (KreinSVR("precomputed", tol=1e-8), "predict"),
    (AsymmetricRidge("precomputed"), "predict"),
]


def name_of(estimator):
    return type(estimator).__name__


def in_other_units(X):
    """The columns times powers of two, from about 1e-6 to 1e6, and moved."""
    columns = np.arange(X.shape[1])
    return X * 2.0 ** np.linspace(-20, 20, len(columns)).round() + 2.0**10 * columns


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name_of)
def test_units_of_features_change_no_class(estimator):
    X, y = X_CLASSES, Y_CLASSES
    expected = estimator.fit(X[SOME], y[SOME]).predict(X[OTHERS])
    Z = in_other_units(X)
    np.testing.assert_array_equal(estimator.fit(Z[SOME], y[SOME]).predict(Z[OTHERS]), expected)
    assert np.mean(expected == y[OTHERS]) > 0.9


@pytest.mark.parametrize("estimator", REGRESSORS, ids=name_of)
def test_units_of_features_and_targets_change_no_number(estimator):
    X, y = X_NUMBERS, Y_NUMBERS
    expected = estimator.fit(X[SOME], y[SOME]).predict(X[OTHERS])
    Z = in_other_units(X)
    predicted = estimator.fit(Z[SOME], 2.0**17 * y[SOME] + 2.0**17).predict(Z[OTHERS])
    np.testing.assert_allclose(predicted / 2.0**17 - 1.0, expected, rtol=0, atol=1e-3 * y.std())


@pytest.mark.parametrize("factor", [1e-50, 1e-6, 300.0, 1e50])
@pytest.mark.parametrize("estimator, method", ON_MATRICES, ids=lambda v: getattr(v, "kernel", v))
def test_the_unit_of_a_matrix_changes_no_prediction(estimator, method, factor):
    X = StandardScaler().fit_transform(X_NUMBERS)
    y = Y_NUMBERS if method == "predict" else Y_NUMBERS > np.median(Y_NUMBERS)
    K = np.tanh(X @ X.T / 6 - 0.5)
    own, new = np.ix_(range(60), range(60)), np.ix_(range(60, 90), range(60))
    expected = getattr(estimator.fit(K[own], y[:60]), method)(K[new])
    scaled = getattr(estimator.fit(factor * K[own], y[:60]), method)(factor * K[new])
    np.testing.assert_allclose(scaled, expected, rtol=0, atol=1e-3 * np.std(expected))


@pytest.mark.parametrize("factor", [2.0**-1000, 2.0**1000])
@pytest.mark.parametrize("estimator", [KreinRidgeClassifier(), LABClassifier(10)], ids=name_of)
def test_squares_of_features_may_overflow_and_underflow(estimator, factor):
    X, y = X_CLASSES, Y_CLASSES
    expected = estimator.fit(X[SOME], y[SOME]).predict(X[OTHERS])
    actual = estimator.fit(factor * X[SOME], y[SOME]).predict(factor * X[OTHERS])
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.filterwarnings("ignore:AsymmetricRidge is worse than a constant")
@pytest.mark.parametrize("estimator", [*CLASSIFIERS, *REGRESSORS], ids=name_of)
def test_features_in_which_rows_do_not_differ_warn(estimator):
    classify = estimator in CLASSIFIERS
    X, y = (X_CLASSES, Y_CLASSES) if classify else (X_NUMBERS, Y_NUMBERS)
    far = X.copy()
    far[8] = 1e12
    for same in (np.ones_like(X), far):
        with pytest.warns(UselessModelWarning, match="X is constant, or constant but for one"):
            clone(estimator).fit(same[SOME], y[SOME])


def test_a_standardizer_undoes_itself_and_weights_count_like_repetitions():
    random = np.random.RandomState(0)
    A = random.randn(40, 3) * [1e150, 1.0, 1e-150] + [0.0, 1e6, 0.0]
    weight = random.randint(0, 4, 40)
    units = Standardizer.fit(A, weight)
    repeated = Standardizer.fit(np.repeat(A, weight, axis=0))
    np.testing.assert_allclose(units.mean, repeated.mean, rtol=1e-9)
    np.testing.assert_allclose(units.scale, repeated.scale, rtol=1e-9)
    np.testing.assert_allclose(units.undo(units(A)), A, rtol=1e-12)


def test_constant_features_have_no_effect():
    X = np.column_stack([X_NUMBERS, np.full(len(X_NUMBERS), 0.1), np.zeros(len(X_NUMBERS))])
    scales = length_scales(X)
    np.testing.assert_allclose(scales[:6], length_scales(X_NUMBERS))
    assert scales[6] >= 1e10 and scales[7] >= 1e10
    assert np.all(Standardizer.fit(X)(X[:5])[:, 6:] == 0.0)


def test_the_unit_of_a_kernel_ignores_constants_and_scales_with_it():
    A = np.random.RandomState(0).randn(30, 4)
    K = A @ A.T
    assert np.isclose(kernel_unit(K), A.var(axis=0).sum())
    assert np.isclose(kernel_unit(7.0 * (K + 100.0)), 7.0 * kernel_unit(K))
    assert kernel_unit(np.ones((3, 3))) == 1.0


@pytest.mark.parametrize("estimator", [KreinSVC, KreinRidgeClassifier, DANKClassifier])
def test_matrices_in_which_items_do_not_differ_warn(estimator):
    for K in (np.zeros((30, 30)), np.full((30, 30), 1e6)):
        with pytest.warns(UselessModelWarning, match="X is constant"):
            estimator("precomputed").fit(K, np.arange(30) % 2)


@pytest.mark.parametrize("estimator", [KreinSVC, KreinRidgeClassifier])
def test_distances_given_as_a_kernel_warn(estimator):
    D = np.linalg.norm(X_CLASSES[:, None] - X_CLASSES, axis=2)
    with pytest.warns(UserWarning, match="looks like distances"):
        estimator("precomputed").fit(D, Y_CLASSES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator("precomputed").fit(np.exp(-D), Y_CLASSES)
        estimator("precomputed").fit(-0.5 * D**2, Y_CLASSES)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("dtype, ulp", [(np.float64, 1e-14), (np.float32, 1e-7)])
def test_a_column_is_constant_up_to_the_rounding_of_its_values(size, dtype, ulp):
    signs = np.where(np.arange(20) % 3, 1.0, -1.0)
    A = size * (1.0 + np.column_stack([ulp * signs, 1e3 * ulp * signs]))
    units = Standardizer.fit(A.astype(dtype))
    np.testing.assert_array_equal(np.isinf(units.scale), [True, False])
    np.testing.assert_array_equal(units(A)[:, 0], 0.0)
    np.testing.assert_allclose(units.spread, [0.0, units.scale[1]])

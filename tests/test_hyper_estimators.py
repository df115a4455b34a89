"""The hyper-kernel estimators as scikit-learn sees them, and the machines with a learned kernel."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles.hyper import flipped_matrices
from scipy.spatial.distance import pdist, squareform
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_friedman1
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils import shuffle

from mercerless import HyperClassifier, HyperRegressor, HyperRidge, HyperSVR
from mercerless.core.tuning import held_out_blocks, machine_losses, ridge_losses
from mercerless.inspection import KernelCurveDisplay, LearnedKernelDisplay
from mercerless.kernels import Gaussian, GaussianHyper, TensorHyper, WishartHyper

FIXED = GaussianHyper(2.0)


def kernel_unit(K):
    """The variance of the items in feature space, by their distances."""
    squares = np.diagonal(K)[:, None] + np.diagonal(K) - 2 * K
    return squares.mean() / 2


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize(
    "settings",
    [{}, {"fit_intercept": True}, {"hyper_kernel": WishartHyper(20.0, 4)}],
    ids=["ridge", "intercept", "wishart"],
)
def test_the_machine_is_libsvm_on_the_flipped_matrix_of_the_learned_kernel(settings):
    X, y = breast_cancer()
    options = {"hyper_kernel": GaussianHyper(6.0), "alpha": 1e-3, "landmarks": 50, **settings}
    learner = HyperRidge(**options)
    model = HyperClassifier(learner, C=3.0).fit(X[:120], y[:120])
    kernel = clone(learner).fit(X[:120], y[:120]).kernel_.set_params(intercept=0.0)
    rows = model.X_fit_  # in an order of their own: libsvm's last digits depend on it
    labels = y[[int(np.flatnonzero((X[:120] == row).all(axis=1))[0]) for row in rows]]
    K, K_new = flipped_matrices(kernel(rows), kernel(X[120:], rows))
    by_hand = SVC(kernel="precomputed", C=3.0 / kernel_unit(K)).fit(K, labels)
    expected = by_hand.decision_function(K_new)
    assert_allclose(model.decision_function(X[120:]), expected, rtol=1e-5, atol=1e-7)
    assert model.score(X[120:], y[120:]) > 0.85


def test_losses_of_the_search_are_those_of_machines_fitted_without_each_fold():
    random = np.random.RandomState(0)
    X, y = random.randn(30, 3), random.randint(2, size=30)
    K = Gaussian(1.0)(X)
    folds = [slice(0, 10), slice(10, 18), slice(18, 30)]
    settings = [{"C": 0.3}, {"C": 30.0}]
    wrong = machine_losses(held_out_blocks(K, folds), y, SVC, settings, np.ones(30))
    numbers = X[:, 0] + 0.1 * random.randn(30)
    tubes = [{"C": 2.0, "epsilon": 0.1}]
    squared = machine_losses(held_out_blocks(K, folds), numbers, SVR, tubes, np.ones(30))
    for fold in folds:
        rest = np.delete(np.arange(30), fold)
        constant = np.bincount(y[rest]).argmax(), numbers[rest].mean()
        np.testing.assert_array_equal(wrong[fold, -1], y[fold] != constant[0])
        assert_allclose(squared[fold, -1], (numbers[fold] - constant[1]) ** 2)
        own = K[np.ix_(rest, rest)]
        unit = kernel_unit(own)
        for k, setting in enumerate(settings):
            machine = SVC(kernel="precomputed", C=setting["C"] / unit).fit(own, y[rest])
            np.testing.assert_array_equal(
                wrong[fold, k], machine.predict(K[fold][:, rest]) != y[fold]
            )
        machine = SVR(kernel="precomputed", C=2.0 / unit, epsilon=0.1).fit(own, numbers[rest])
        expected = (machine.predict(K[fold][:, rest]) - numbers[fold]) ** 2
        assert_allclose(squared[fold, 0], expected, rtol=0, atol=5e-3)  # libsvm's tolerance
    # ridge regression: the best penalty's, never worse than predicting the mean of the others by much
    losses = ridge_losses(held_out_blocks(K, folds), numbers[:, None])
    assert losses.mean() < numbers.var()
    # the mean over several draws of folds
    drawn_twice = held_out_blocks(K, folds + folds)
    assert_allclose(machine_losses(drawn_twice, y, SVC, settings, np.ones(30)), 2 * wrong)
    assert_allclose(ridge_losses(held_out_blocks(K, folds + folds), numbers[:, None]), 2 * losses)


def test_the_search_prefers_a_learned_kernel_that_pays_and_a_plain_one_on_noise():
    """XOR of two features beside noise: midpoints tell where classes change. With random labels nothing is learned."""
    X, y = load_iris(return_X_y=True)
    model = HyperClassifier().fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.9
    kinds = [row["alpha"] is None for row in model.cv_results_]
    assert any(kinds) and not all(kinds)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 5)), rng.integers(2, size=80)
    noise = HyperClassifier(HyperRidge(GaussianHyper(1.0), alpha=1e-6, landmarks=100)).fit(X, y)
    other = rng.normal(size=(300, 5))
    assert 0.35 < noise.score(other, rng.integers(2, size=300)) < 0.65


def test_a_given_learner_is_used_and_its_open_parameters_are_chosen():
    X, y = load_iris(return_X_y=True)
    for learner in (
        HyperRidge("gaussian", landmarks=40),
        HyperRidge("wishart", landmarks=40),
        HyperSVR("gaussian", landmarks=30, max_iter=300),
        HyperSVR(GaussianHyper(2.0), C=0.01, landmarks=30, max_iter=300),
    ):
        model = HyperClassifier(learner, cv=3).fit(X[::2], y[::2])
        assert model.learner_ is not None and model.score(X[1::2], y[1::2]) > 0.85
        assert all(row["alpha"] is not None for row in model.cv_results_)


@pytest.mark.parametrize("name", ["names", "units", "order"])
def test_names_units_and_order_change_nothing(name):
    X, y = load_iris(return_X_y=True)
    X, y, Z = X[::3], y[::3], X[1::3]
    model = HyperClassifier(HyperRidge("gaussian", landmarks=30), cv=3)
    expected = clone(model).fit(X, y).decision_function(Z)
    if name == "names":
        got = clone(model).fit(X, np.array(["z", "a", "m"])[y])
        np.testing.assert_array_equal(got.classes_, ["a", "m", "z"])
        assert_allclose(got.decision_function(Z)[:, [2, 0, 1]], expected, atol=0.3)
        np.testing.assert_array_equal(got.predict(Z), np.array(["z", "a", "m"])[expected.argmax(1)])
    elif name == "units":
        units = np.array([1e-6, 1.0, 1e3, 1e6])
        assert_allclose(
            clone(model).fit(units * X, y).decision_function(units * Z), expected, atol=1e-3
        )
    else:
        order = np.random.RandomState(0).permutation(len(X))
        got = clone(model).fit(X[order], y[order])
        assert_allclose(got.decision_function(Z), expected, atol=1e-3)


def test_regressor_in_any_units():
    X, y = make_friedman1(150, 6, random_state=0)
    model = HyperRegressor().fit(X[::2], y[::2])
    expected = model.predict(X[1::2])
    assert model.score(X[1::2], y[1::2]) > 0.7
    scaled = HyperRegressor().fit(1e5 * X[::2], 1e-4 * y[::2] + 7.0)
    assert_allclose(1e4 * (scaled.predict(1e5 * X[1::2]) - 7.0), expected, atol=1e-2 * y.std())
    learned = HyperRegressor(HyperRidge(FIXED, alpha=1e-4, landmarks=40), C=10.0).fit(X, y)
    assert learned.learner_.target_kind_ == "gaussian"
    assert_allclose(learned.learner_.moments_, [y.mean(), y.std()])


@pytest.mark.slow
def test_regressor_on_real_data():
    X, y = load_diabetes(return_X_y=True)
    assert HyperRegressor(cv=3).fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.35


def test_parameters_in_a_grid_search_and_pipeline():
    X, y = load_iris(return_X_y=True)
    model = HyperClassifier(HyperRidge(GaussianHyper(), alpha=1e-3, landmarks=20), C=1.0)
    grid = {"hyperclassifier__learner__hyper_kernel__length_scale": [0.5, 2.0]}
    search = GridSearchCV(make_pipeline(StandardScaler(), model), grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.85
    clone(search.best_estimator_)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"learner": HyperRidge(target="product")}, "target='product' is not known; use 'classes'"),
        ({"C": -1.0}, "C=-1.0 must be a positive number, or None"),
        ({"learner": HyperRidge("tensor")}, "labels need"),
        ({"learner": HyperRidge("gaussian", landmarks=0)}, "landmarks=0 must be a positive"),
        ({"cv": 1}, "cv=1 must be at least 2 folds"),
    ],
)
def test_bad_parameters_are_one_sentence(settings, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        HyperClassifier(**settings).fit(X, y)


def test_wrong_learners_and_one_class_raise():
    with pytest.raises(TypeError, match="learner must be HyperRidge"):
        HyperClassifier("gaussian").fit(np.eye(4), [0, 0, 1, 1])
    with pytest.raises(ValueError, match="one class only"):
        HyperClassifier().fit(np.eye(4), np.zeros(4))


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda folds: folds, iter], ids=["list", "iterator"])
def test_cv_may_be_an_iterable_or_a_splitter(make):
    """Folds of all rows hold for the samples on which parameters are chosen, too."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    splitter = StratifiedKFold(3, shuffle=True, random_state=0)
    folds = list(splitter.split(X, y))
    by_splitter, by_list = (HyperClassifier(cv=cv).fit(X, y) for cv in (splitter, make(folds)))
    assert by_splitter.cv_results_ and repr(by_splitter.cv_results_) == repr(by_list.cv_results_)
    ridge = HyperRidge("gaussian", cv=make(folds)).fit(X, y)
    same = HyperRidge("gaussian", cv=splitter).fit(X, y)
    assert repr(ridge.cv_results_) == repr(same.cv_results_)
    with pytest.raises(ValueError, match="hold out every row once"):
        HyperRidge("gaussian", cv=folds[:2]).fit(X, y)


def test_every_item_twice_is_the_same_mean_over_pairs():
    """The objectives are means over pairs (HyperSVR: a sum, so that C is a quarter), which copies do not change."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::10], y[::10]
    twice = np.repeat(np.arange(15), 2)
    for fit_intercept in (False, True):
        ridge = HyperRidge(FIXED, alpha=1e-3, landmarks=None, fit_intercept=fit_intercept)
        once = clone(ridge).fit(X, y).kernel_(X)
        assert_allclose(clone(ridge).fit(X[twice], y[twice]).kernel_(X), once, atol=1e-7)
    svr = HyperSVR(FIXED, C=1.0, landmarks=None, tol=1e-8)
    once = clone(svr).fit(X, y).kernel_(X)
    repeated = clone(svr).set_params(C=0.25).fit(X[twice], y[twice]).kernel_(X)
    assert_allclose(repeated, once, atol=1e-4)


def test_displays():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = shuffle(*load_iris(return_X_y=True), random_state=0)
    model = HyperRidge(FIXED, alpha=1e-4, landmarks=30).fit(X[::3], y[::3])
    display = LearnedKernelDisplay.from_estimator(model, X[1::3], y[1::3])
    order = np.argsort(y[1::3], kind="stable")
    same = y[1::3][order][:, None] == y[1::3][order]
    assert_array_equal(display.target, np.where(same, 1.0, -0.5))
    assert_allclose(display.learned, model.kernel_(X[1::3][order]))
    error = np.linalg.norm(display.learned - display.target) / np.linalg.norm(display.target)
    assert display.axes_[1].get_title() == f"learned, error {error:.2g}"
    S = np.where(np.eye(10) > 0, 1.0, np.nan)
    holes = LearnedKernelDisplay(S, np.eye(10)).plot()
    with pytest.raises(ValueError, match="draws on 2 matplotlib axes"):
        holes.plot(ax=plt.gca())
    learner = HyperClassifier(C=1.0).fit(X[::3], y[::3])
    curve = KernelCurveDisplay.from_estimator(learner, X[1::3], y[1::3])
    assert_allclose(curve.distance, pdist(X[1::3] / X[1::3].std(axis=0)))
    assert_allclose(curve.value, squareform(learner.kernel_(X[1::3]), checks=False))
    assert_array_equal(curve.group, pdist(y[1::3, None]) > 0)
    shown = KernelCurveDisplay(np.arange(9.0), np.arange(9.0)[::-1], np.zeros(9, int), ("all",))
    distance, value, band = shown.medians(np.arange(9) > 0, n_bins=2)
    assert_allclose([distance, value], [[2.5, 6.5], [5.5, 1.5]])
    assert_allclose(band, [[4.3, 0.3], [6.7, 2.7]])
    pairs = len(X[1::3]) * (len(X[1::3]) - 1) // 2
    assert len(curve.distance) == len(curve.value) == len(curve.group) == pairs
    assert [text.get_text() for text in curve.ax_.get_legend().get_texts()] == [
        "same class",
        "different classes",
    ]
    middle = curve.medians(curve.group == 0)[1]
    assert middle[0] > middle[-1]  # near pairs are more alike than far ones
    plt.close("all")


def test_iterations_that_do_not_converge_are_followed_by_the_direct_solver():
    X, y = load_iris(return_X_y=True)  # which has equal rows
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    given = {"hyper_kernel": GaussianHyper(2.0, 0.5), "alpha": 1e-9, "landmarks": 200}
    model = HyperRidge(tol=1e-8, **given).fit(X, y)
    assert model.n_iter_ == 1 and model.certificate_ < 1e-8
    few = HyperRidge(tol=1e-1, **given).fit(X, y)
    assert few.n_iter_ >= 1


@pytest.mark.parametrize(
    ("y", "target", "message"),
    [
        ([0.5, np.nan, 1.5], "product", "NaN"),
        ([1.0, np.nan, 2.0], "classes", "y contains NaN"),
        (["a", "b", "a"], "product", "needs numbers"),
        (np.array(["a", 1, "a"], dtype=object), "auto", "several types"),
        (1e200 * np.eye(3), "auto", "entries of size"),
    ],
)
def test_targets_that_cannot_be_learned_are_one_sentence(y, target, message):
    model = HyperRidge(GaussianHyper(), alpha=1e-3, target=target)
    with pytest.raises(ValueError, match=message):
        model.fit(np.arange(3.0)[:, None], y)


@pytest.mark.parametrize("landmarks", [None, 30])
@pytest.mark.parametrize("unit", [1e-9, 300.0])
def test_the_unit_of_similarities_cancels(landmarks, unit):
    X = np.random.default_rng(0).normal(size=(12, 2))
    S = -np.log1p(np.abs(X[:, None] - X).sum(axis=2))
    options = {"landmarks": landmarks, "tol": 1e-6, "max_iter": 20000}
    for model in (
        HyperSVR(GaussianHyper(1.5), C=1.0, epsilon=0.05, **options),
        HyperSVR(GaussianHyper(1.5), epsilon=0.05, **options),
        HyperRidge(GaussianHyper(1.5), landmarks=landmarks, fit_intercept=True),
        HyperRidge(landmarks=landmarks),
    ):
        expected = model.fit(X, S).kernel_(X)
        scaled = model.fit(X, unit * S)
        assert_allclose(scaled.kernel_(X) / unit, expected, rtol=1e-6, atol=1e-6)
        assert scaled.certificate_ < 1e-4


def test_the_penalty_that_missing_entries_need_is_the_one_reported():
    X = np.random.default_rng(0).normal(size=(15, 2))
    S = -np.log1p(np.abs(X[:, None] - X).sum(axis=2))
    S[0, 5] = S[5, 0] = np.nan
    none = HyperRidge(TensorHyper(1.5), alpha=0.0).fit(X, S)
    least = HyperRidge(TensorHyper(1.5), alpha=1e-4).fit(X, S)
    assert none.alpha_ == least.alpha_ == 1e-4
    np.testing.assert_array_equal(none.kernel_(X), least.kernel_(X))

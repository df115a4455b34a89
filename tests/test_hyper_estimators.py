"""The hyper-kernel estimators as scikit-learn sees them, and the two-stage estimators."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles.hyper import flipped_matrices
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.validation import has_fit_parameter

from mercerless.comparison.scoring import keep_groups
from mercerless.hyper.display import LearnedKernelDisplay
from mercerless.hyper.estimators import HyperClassifier, HyperRegressor, HyperRidge, HyperSVR
from mercerless.hyper.selection import order_by_content
from mercerless.kernels.hyper import GaussianHyper, TensorHyper, WishartHyper

FIXED = GaussianHyper(2.0)


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize(
    "stage1, stage2",
    [
        ({}, {}),
        ({}, {"machine": "linear", "n_components": 60}),
        ({}, {"machine": "krein"}),
        ({"alpha": None}, {"machine": "krein"}),
        ({"nonnegative": True}, {}),
        ({"n_parts": 2}, {}),
        ({"hyper_kernel": WishartHyper(20.0, 4)}, {}),
    ],
    ids=["svm", "linear", "krein", "krein-alpha", "nonnegative", "parts", "wishart"],
)
def test_classifier_stages(stage1, stage2):
    X, y = breast_cancer()
    learner = HyperRidge(
        **{"hyper_kernel": GaussianHyper(12.0), "alpha": 1e-3, "landmarks": 60, **stage1}
    )
    model = HyperClassifier(learner, C=1.0, random_state=0, **stage2)
    model.fit(X[:150], y[:150])
    assert model.score(X[150:], y[150:]) > 0.85
    np.testing.assert_allclose(np.mean(np.abs(model.kernel_.diag(X[:150]))), 1.0)
    if stage1.get("nonnegative"):
        assert model.kernel_.definite is True


def test_classifier_equals_its_two_stages_by_hand():
    X, y = breast_cancer()
    train = np.lexsort(X[:120].T[::-1])  # libsvm's last digits depend on the order of the rows
    test = slice(120, None)
    stage = {"hyper_kernel": GaussianHyper(6.0), "alpha": 1e-4, "landmarks": 50, "random_state": 0}
    model = HyperClassifier(HyperRidge(**stage), C=3.0, machine="svm").fit(X[train], y[train])
    kernel = HyperRidge(**stage).fit(X[train], y[train]).kernel_
    scale = np.mean(np.abs(kernel.diag(X[train])))
    K, K_new = flipped_matrices(kernel(X[train]) / scale, kernel(X[test], X[train]) / scale)
    by_hand = SVC(kernel="precomputed", C=3.0).fit(K, y[train])
    np.testing.assert_allclose(
        model.decision_function(X[test]), by_hand.decision_function(K_new), rtol=1e-6, atol=1e-8
    )


@pytest.mark.slow
def test_defaults_choose_everything():
    X, y = load_iris(return_X_y=True)
    model = HyperClassifier(HyperRidge("gaussian", landmarks=40, cv=3), random_state=0, cv=3).fit(
        X[::2], y[::2]
    )
    assert model.score(X[1::2], y[1::2]) > 0.9
    assert model.C_ in np.logspace(-2, 3, 6)
    scales = {float(row["hyper_kernel"].length_scale) for row in model.cv_results_}
    assert len(model.cv_results_) == 13 and len(scales) == 5


def test_choice_of_C_never_sees_the_held_out_labels():
    """With random labels the cross-validated kernel must not be trusted: accuracy stays at chance."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 5)), rng.integers(2, size=80)
    model = HyperClassifier(
        HyperRidge(GaussianHyper(1.0), alpha=1e-6, landmarks=100), random_state=0
    ).fit(X, y)
    other = rng.normal(size=(300, 5))
    assert 0.35 < model.score(other, rng.integers(2, size=300)) < 0.65


@pytest.mark.slow
def test_the_order_of_the_rows_changes_nothing():
    """Folds and landmarks are drawn from rows sorted by content, so the same data give the same model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    X[5] = X[6]  # copies with other labels are told apart by them
    y[5] = 1 - y[6]
    order = rng.permutation(40)
    new = rng.normal(size=(20, 3))
    ridge = HyperRidge("gaussian", landmarks=20)
    for learner in (ridge, HyperSVR(WishartHyper(2.0), C=0.1, landmarks=20, max_iter=200)):
        model = HyperClassifier(learner, cv=2, random_state=0)
        expected = clone(model).fit(X, y)
        shuffled = clone(model).fit(X[order], y[order])
        assert shuffled.C_ == expected.C_
        assert_allclose(
            shuffled.decision_function(new), expected.decision_function(new), rtol=1e-4, atol=1e-6
        )
        np.testing.assert_array_equal(shuffled.learner_.X_fit_, X[order])
    ridge.set_params(target="product", random_state=0)
    expected = clone(ridge).fit(X, X[:, 0]).transform(new)
    shuffled = clone(ridge).fit(X[order], X[order, 0]).transform(new)
    assert_allclose(shuffled, expected[:, order], rtol=1e-6, atol=1e-9)


def test_folds_that_are_given_by_position_keep_their_rows():
    X, y = load_iris(return_X_y=True)
    X, y = X[::5], y[::5]
    folds = [(np.setdiff1d(np.arange(30), test), test) for test in np.arange(30).reshape(3, 10)]
    assert order_by_content(X, y, 5, folds) is None
    assert order_by_content(X, y, None, 3) is not None
    splitter = StratifiedKFold(3)
    assert order_by_content(X, y, splitter) is None


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


def test_the_loss_weight_is_chosen_with_the_loss_of_the_fit():
    """A small weight of stage 1 gives a flat kernel, for which stage 2 needs a large one; the squared loss hides it."""
    X, y = load_wine(return_X_y=True)
    X = MinMaxScaler().fit_transform(X)
    learner = HyperSVR(WishartHyper(3.0, 1), C=5e-4, landmarks=20, max_iter=300)
    model = HyperClassifier(learner, cv=3, random_state=0).fit(X[::3], y[::3])
    assert model.C_ >= 1.0
    assert model.score(X[1::3], y[1::3]) > 0.9


@pytest.mark.slow
def test_regressor_learns_and_large_path_agrees():
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    learner = HyperRidge(GaussianHyper(3.0), alpha=1e-3, landmarks=60)
    scores = {
        machine: HyperRegressor(learner, machine=machine, n_components=80, cv=3, random_state=0)
        .fit(X[:200], y[:200])
        .score(X[200:], y[200:])
        for machine in ("svm", "linear", "krein")
    }
    assert min(scores.values()) > 0.3, scores


def test_parameters_in_a_grid_search_and_pipeline():
    X, y = load_iris(return_X_y=True)
    model = HyperClassifier(
        HyperRidge(GaussianHyper(), alpha=1e-3, landmarks=20), C=1.0, random_state=0
    )
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model),
        {"hyperclassifier__learner__hyper_kernel__length_scale": [0.5, 2.0]},
        cv=2,
    ).fit(X, y)
    assert search.best_score_ > 0.85
    clone(search.best_estimator_)


@pytest.mark.parametrize(
    "settings, message",
    [
        (
            {"learner": HyperRidge(target="product")},
            "the learner's target='product' is not known; use 'classes'",
        ),
        ({"machine": "tree"}, "machine"),
        ({"C": -1.0}, "C=-1.0 must be a positive number, or None"),
        ({"learner": HyperRidge("tensor")}, "labels need"),
        (
            {"learner": HyperRidge("gaussian", n_parts=151)},
            "n_parts must be an integer between 1 and the 150 items",
        ),
        ({"cv": 1}, "cv=1 must be at least 2 folds"),
    ],
)
def test_bad_parameters_are_one_sentence(settings, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        HyperClassifier(**settings).fit(X, y)


def test_a_learner_of_another_kind_raises():
    with pytest.raises(TypeError, match="learner must be HyperRidge"):
        HyperClassifier("gaussian").fit(np.eye(4), [0, 0, 1, 1])


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda folds: folds, iter], ids=["list", "iterator"])
def test_cv_may_be_an_iterable_or_a_splitter(make):
    """Folds of all rows hold for the samples on which parameters are chosen, too."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    splitter = StratifiedKFold(3, shuffle=True, random_state=0)
    folds = list(splitter.split(X, y))
    by_splitter, by_list = (
        HyperClassifier(HyperRidge("gaussian", landmarks=20), cv=cv, random_state=0).fit(X, y)
        for cv in (splitter, make(folds))
    )
    assert by_splitter.cv_results_ and repr(by_splitter.cv_results_) == repr(by_list.cv_results_)
    ridge = HyperRidge("gaussian", cv=make(folds), random_state=0).fit(X, y)
    same = HyperRidge("gaussian", cv=splitter, random_state=0).fit(X, y)
    assert repr(ridge.cv_results_) == repr(same.cv_results_)
    default = HyperRegressor(cv=make(folds), max_samples=30, random_state=0).fit(X, X[:, 0])
    assert default.score(X, X[:, 0]) > 0.9
    with pytest.raises(ValueError, match="hold out every row once"):
        HyperRidge("gaussian", cv=folds[:2]).fit(X, y)


@pytest.mark.slow
def test_compare_hands_folds_that_keep_groups_whole():
    X, y = load_iris(return_X_y=True)
    X, y, groups = X[::2], y[::2], np.arange(75) // 3
    folds = list(GroupKFold(3).split(X, y, groups))
    model = make_pipeline(StandardScaler(), HyperClassifier(random_state=0))
    keep_groups(model, folds)
    assert model[-1].cv is folds
    expected = HyperClassifier(
        HyperRidge("gaussian", n_parts="auto", cv=folds, tol=1e-4), cv=folds, random_state=0
    )
    Z = StandardScaler().fit_transform(X)
    assert repr(model.fit(X, y)[-1].cv_results_) == repr(expected.fit(Z, y).cv_results_)


def test_the_learner_of_a_regressor_and_its_machine_speak_of_the_values_given():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = 1000 + 50 * np.sin(X[:, 0])
    model = HyperRegressor(
        HyperRidge(GaussianHyper(2.0), alpha=1e-4, landmarks=40), C=10.0, random_state=0
    ).fit(X, y)
    assert model.learner_.target_kind_ == "gaussian"
    np.testing.assert_allclose(model.learner_.moments_, [y.mean(), y.std()])
    assert model.learner_.score(X, y) > 0.5
    np.testing.assert_allclose(model.machine_.evaluate("predict", X), model.predict(X))


def test_one_class_raises():
    with pytest.raises(ValueError, match="one class only"):
        HyperClassifier().fit(np.eye(4), np.zeros(4))


def test_displays():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = load_iris(return_X_y=True)
    model = HyperRidge(FIXED, alpha=1e-4, landmarks=30, random_state=0).fit(X[::3], y[::3])
    display = LearnedKernelDisplay.from_estimator(model, X[1::3], y[1::3])
    assert display.axes_.shape == (3,) and "error" in display.axes_[1].get_title()
    S = np.where(np.eye(10) > 0, 1.0, np.nan)
    holes = LearnedKernelDisplay(S, np.eye(10), np.arange(10)).plot()
    assert len(holes.axes_[2].get_legend().get_texts()) == 1  # no spectrum of a matrix with holes
    with pytest.raises(ValueError, match="draws on 3 matplotlib axes"):
        holes.plot(ax=plt.gca())
    plt.close("all")


class Recorder:
    """A minimal callback of scikit-learn's protocol; may interrupt."""

    def __init__(self, interrupt=False):
        self.stages, self.interrupt = [], interrupt

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **kwargs):
        pass

    def on_fit_task_end(self, estimator, context, *, metadata=None, **kwargs):
        if metadata:
            self.stages.append(metadata.get("stage", "iteration"))
            if self.interrupt:
                raise KeyboardInterrupt

    def teardown(self, estimator, context):
        pass


@pytest.mark.usefixtures("callbacks")
def test_callbacks_see_the_search_and_the_iterations():
    X, y = load_iris(return_X_y=True)
    recorder = Recorder()
    HyperRidge("gaussian", solver="cg", landmarks=30, random_state=0).set_callbacks(recorder).fit(
        X[::5], y[::5]
    )
    assert recorder.stages.count("search") == 12 and recorder.stages.count("iteration") >= 1
    model = HyperRidge("gaussian", landmarks=30).set_callbacks(Recorder(interrupt=True))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[::5], y[::5])
    assert not hasattr(model, "kernel_")


@pytest.mark.slow
def test_iterations_that_do_not_converge_are_followed_by_the_direct_solver():
    X, y = load_iris(return_X_y=True)  # which has equal rows
    given = {"hyper_kernel": GaussianHyper(2.0, 0.5), "alpha": 1e-9, "tol": 1e-8, "random_state": 0}
    direct = HyperRidge(solver="direct", **given).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="use a larger alpha, or solver='direct'"):
        HyperRidge(solver="cg", **given).fit(X, y)
    auto = HyperRidge(**given).fit(X, y)
    assert auto.certificate_ < 1e-8
    assert_allclose(auto.transform(X), direct.transform(X), atol=1e-8)


@pytest.mark.parametrize("model", [HyperRidge(), HyperSVR(), HyperClassifier(), HyperRegressor()])
def test_weights_are_refused_with_a_sentence(model):
    X = np.arange(12.0)[:, None]
    y = np.arange(12) % 2
    with pytest.raises(TypeError, match=f"{type(model).__name__} takes no sample_weight; repeat"):
        model.fit(X, y, sample_weight=np.ones(12))
    with pytest.raises(TypeError, match="takes no sample_weight"):
        model.fit(X, y, np.ones(12))
    assert not has_fit_parameter(model, "sample_weight")


@pytest.mark.parametrize(
    ("y", "target", "message"),
    [
        ([0.5, np.nan, 1.5], "product", "NaN"),
        ([0.5, np.inf, 1.5], "gaussian", "infinity"),
        ([1.0, np.nan, 2.0], "classes", "y contains NaN"),
        (["a", "b", "a"], "product", "needs numbers"),
        (np.array(["a", 1, "a"], dtype=object), "auto", "several types"),
        (np.array(["a", None, "a"], dtype=object), "auto", "no label in 1 of 3 rows"),
        (1e-200 * np.eye(3), "auto", "entries of size"),
        (1e200 * np.eye(3), "auto", "entries of size"),
    ],
)
def test_targets_that_cannot_be_learned_are_one_sentence(y, target, message):
    model = HyperRidge(GaussianHyper(), alpha=1e-3, target=target)
    with pytest.raises(ValueError, match=message):
        model.fit(np.arange(3.0)[:, None], y)


def test_numbers_of_type_object_are_numbers():
    X = np.linspace(0, 1, 9)[:, None]
    y = np.sin(3 * X[:, 0])
    model = HyperRidge(GaussianHyper(), alpha=1e-3)
    expected = model.fit(X, y).kernel_(X)
    assert model.target_kind_ == "product"
    np.testing.assert_array_equal(model.fit(X, y.astype(object)).kernel_(X), expected)


@pytest.mark.parametrize("landmarks", [None, 30])
@pytest.mark.parametrize("unit", [1e-9, 2.0**20])
def test_the_unit_of_similarities_cancels_in_support_vector_regression(landmarks, unit):
    X = np.random.default_rng(0).normal(size=(12, 2))
    S = -np.log1p(np.abs(X[:, None] - X).sum(axis=2))
    hyper = GaussianHyper(1.5)
    options = {"landmarks": landmarks, "tol": 1e-6, "max_iter": 20000, "random_state": 0}
    model = HyperSVR(hyper, C=1.0, epsilon=0.05, **options).fit(X, S)
    scaled = HyperSVR(hyper, C=unit, epsilon=0.05 * unit, **options).fit(X, unit * S)
    np.testing.assert_allclose(scaled.kernel_(X) / unit, model.kernel_(X), atol=2e-3)
    assert scaled.certificate_ < 1e-4


def test_the_unit_of_similarities_cancels_in_the_chosen_loss_weight():
    X = np.random.default_rng(0).normal(size=(12, 2))
    S = -np.log1p(np.abs(X[:, None] - X).sum(axis=2))
    unit = 2.0**-20
    # S in units of at least 1: smaller ones are brought there
    S /= np.abs(S).max()
    model = HyperSVR(GaussianHyper(1.5), epsilon=0.05, random_state=0).fit(X, S)
    scaled = HyperSVR(GaussianHyper(1.5), epsilon=0.05 * unit, random_state=0).fit(X, unit * S)
    assert scaled.C_ == model.C_ * unit
    np.testing.assert_allclose(scaled.kernel_(X) / unit, model.kernel_(X), rtol=1e-9)


def test_the_penalty_that_missing_entries_need_is_the_one_reported():
    X = np.random.default_rng(0).normal(size=(15, 2))
    S = -np.log1p(np.abs(X[:, None] - X).sum(axis=2))
    S[0, 5] = S[5, 0] = np.nan
    none = HyperRidge(TensorHyper(1.5), alpha=0.0).fit(X, S)
    least = HyperRidge(TensorHyper(1.5), alpha=1e-4).fit(X, S)
    assert none.alpha_ == least.alpha_ == 1e-4
    np.testing.assert_array_equal(none.kernel_(X), least.kernel_(X))

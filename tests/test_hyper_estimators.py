"""The hyper-kernel estimators as scikit-learn sees them, and the two-stage estimators."""

import numpy as np
import pytest
from oracles.hyper import flipped_matrices
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercerless.estimators.hyper import HyperClassifier, HyperRegressor, HyperRidge
from mercerless.inspection.hyper import KernelLineDisplay, LearnedKernelDisplay
from mercerless.kernels.hyper import GaussianHyper, WishartHyper

FIXED = GaussianHyper(2.0)


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"machine": "linear", "n_components": 60},
        {"machine": "krein"},
        {"machine": "krein", "alpha": None},
        {"nonnegative": True},
        {"n_parts": 2},
        {"hyper_kernel": WishartHyper(20.0, 4)},
    ],
    ids=["svm", "linear", "krein", "krein-alpha", "nonnegative", "parts", "wishart"],
)
def test_classifier_stages(settings):
    X, y = breast_cancer()
    model = HyperClassifier(
        **{
            "hyper_kernel": GaussianHyper(12.0),
            "alpha": 1e-3,
            "C": 1.0,
            "n_landmarks": 60,
            "random_state": 0,
            **settings,
        }
    )
    model.fit(X[:150], y[:150])
    assert model.score(X[150:], y[150:]) > 0.85
    np.testing.assert_allclose(np.mean(np.abs(model.kernel_.diag(X[:150]))), 1.0)
    if settings.get("nonnegative"):
        assert model.kernel_.definite is True


def test_classifier_equals_its_two_stages_by_hand():
    X, y = breast_cancer()
    train, test = slice(0, 120), slice(120, None)
    stage = {"hyper_kernel": GaussianHyper(6.0), "alpha": 1e-4, "n_landmarks": 50, "random_state": 0}
    model = HyperClassifier(C=3.0, machine="svm", **stage).fit(X[train], y[train])
    kernel = HyperRidge(tol=1e-4, **stage).fit(X[train], y[train]).kernel_
    scale = np.mean(np.abs(kernel.diag(X[train])))
    K, K_new = flipped_matrices(kernel(X[train]) / scale, kernel(X[test], X[train]) / scale)
    by_hand = SVC(kernel="precomputed", C=3.0).fit(K, y[train])
    np.testing.assert_allclose(model.decision_function(X[test]), by_hand.decision_function(K_new), rtol=1e-6, atol=1e-8)


def test_defaults_choose_everything():
    X, y = load_iris(return_X_y=True)
    model = HyperClassifier(random_state=0, n_landmarks=40, cv=3).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.9
    assert model.C_ in np.logspace(-2, 3, 6)
    scales = {float(row["hyper_kernel"].length_scale) for row in model.cv_results_}
    assert len(model.cv_results_) == 13 and len(scales) == 5


def test_choice_of_C_never_sees_the_held_out_labels():
    """With random labels the cross-validated kernel must not be trusted: accuracy stays at chance."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 5)), rng.integers(2, size=80)
    model = HyperClassifier(GaussianHyper(1.0), alpha=1e-6, n_landmarks=100, random_state=0).fit(X, y)
    other = rng.normal(size=(300, 5))
    assert 0.35 < model.score(other, rng.integers(2, size=300)) < 0.65


def test_regressor_learns_and_large_path_agrees():
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    scores = {
        machine: HyperRegressor(
            GaussianHyper(3.0), alpha=1e-3, machine=machine, n_landmarks=60, n_components=80, cv=3, random_state=0
        )
        .fit(X[:200], y[:200])
        .score(X[200:], y[200:])
        for machine in ("svm", "linear", "krein")
    }
    assert min(scores.values()) > 0.3, scores


def test_parameters_in_a_grid_search_and_pipeline():
    X, y = load_iris(return_X_y=True)
    model = HyperClassifier(GaussianHyper(), alpha=1e-3, C=1.0, n_landmarks=20, random_state=0)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model), {"hyperclassifier__hyper_kernel__length_scale": [0.5, 2.0]}, cv=2
    ).fit(X, y)
    assert search.best_score_ > 0.85
    clone(search.best_estimator_)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"loss": "hinge"}, "loss"),
        ({"machine": "tree"}, "machine"),
        ({"C": -1.0}, "C must be positive"),
        ({"hyper_kernel": "tensor"}, "labels need"),
    ],
)
def test_bad_parameters_are_one_sentence(settings, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        HyperClassifier(**settings).fit(X, y)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="one class only"):
        HyperClassifier().fit(np.eye(4), np.zeros(4))


def test_displays():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = load_iris(return_X_y=True)
    model = HyperRidge(FIXED, alpha=1e-4, n_landmarks=30, random_state=0).fit(X[::3], y[::3])
    display = LearnedKernelDisplay.from_estimator(model, X[1::3], y[1::3])
    assert display.axes_.shape == (3,) and "error" in display.axes_[1].get_title()
    S = np.where(np.eye(10) > 0, 1.0, np.nan)
    holes = LearnedKernelDisplay(S, np.eye(10), np.arange(10)).plot()
    assert len(holes.axes_[2].get_legend().get_texts()) == 1  # no spectrum of a matrix with holes
    line = KernelLineDisplay.from_kernel(model.kernel_, X[0], X[100])
    np.testing.assert_allclose(
        line.to_itself[np.argmin(np.abs(line.position))], model.kernel_.diag(X[:1])[0], rtol=0.05
    )
    with pytest.raises(ValueError, match="vectors of one length"):
        KernelLineDisplay.from_kernel(model.kernel_, X[0], X[0, :2])
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
    HyperRidge("gaussian", solver="cg", n_landmarks=30, random_state=0).set_callbacks(recorder).fit(X[::5], y[::5])
    assert recorder.stages.count("search") == 12 and recorder.stages.count("iteration") >= 1
    model = HyperRidge("gaussian", n_landmarks=30).set_callbacks(Recorder(interrupt=True))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[::5], y[::5])
    assert not hasattr(model, "kernel_")

"""DANK's estimators: the machines they contain, weights, prediction, bad input, the contract."""

import numpy as np
import pytest
from oracles.dank import polished_machine
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine, make_friedman1, make_moons
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from mercerless import (
    CenteringPenalty,
    DANKClassifier,
    DANKRegressor,
    GradientSearch,
    UselessModelWarning,
    config_context,
)
from mercerless.kernels import Gaussian, Laplace


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(400, noise=0.25, random_state=0)
    X.flags.writeable = y.flags.writeable = False
    return X, y


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(150, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=150)
    X.flags.writeable = y.flags.writeable = False
    return X, y


def relative(C, K):
    """C of libsvm's machine on this matrix as DANK's parameter, relative to the mean diagonal."""
    return C * np.mean(np.diagonal(K))


# The plain machines and the learned matrix


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Gaussian([0.5, 1.0]), Laplace(1.0), "linear"])
def test_strong_centering_equals_the_plain_machines(moons, waves, kernel):
    options = dict(adaptivity=CenteringPenalty(1e12), rank_penalty=0.0, tol=1e-7)
    X, y = moons
    matrix = X @ X.T if kernel == "linear" else kernel(X)
    ours = DANKClassifier(kernel, C=relative(2.0, matrix), **options).fit(X, y).decision_function(X)
    plain = SVC(C=2.0, kernel="precomputed", tol=1e-7).fit(matrix, y)
    np.testing.assert_allclose(ours, plain.decision_function(matrix), atol=1e-4)
    X, y = waves
    matrix = X @ X.T if kernel == "linear" else kernel(X)
    model = DANKRegressor(kernel, C=relative(2.0, matrix), epsilon=0.1, **options).fit(X, y)
    plain = SVR(C=2.0 * y.std(), epsilon=0.1 * y.std(), kernel="precomputed", tol=1e-7)
    np.testing.assert_allclose(model.predict(X), plain.fit(matrix, y).predict(matrix), atol=1e-4)


def test_strong_rank_penalty_gives_rank_one(moons):
    X, y = moons
    model = DANKClassifier(C=4.0, rank_penalty=1.0).fit(X, y)
    assert model.rank_ == 1 and model.certificate_ <= 1e-4
    assert model.score(X, y) == pytest.approx(SVC(C=4.0).fit(X, y).score(X, y), abs=0.01)


def test_machine_on_the_learned_matrix_is_the_solution():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = DANKClassifier(C=4.0, tol=1e-6).fit(X, y)
    learned = model.adaptation_[0].matrix() * model.kernel_(X)
    machine = SVC(C=model.C_, kernel="precomputed", tol=1e-8).fit(learned, y)
    v = np.zeros(len(y))
    v[model.support_] = model.dual_solution_[0]
    np.testing.assert_allclose(
        learned @ v + model.intercept_, machine.decision_function(learned), atol=1e-4
    )


@pytest.mark.parametrize("noise", [0.25, 0.3])
def test_distance_to_the_machine_on_the_learned_matrix_follows_the_gap(noise):
    """A gap bounds the decision values by its root only; libsvm's own single precision leaves 5e-5 to 2e-4 here."""
    X, y = make_moons(400, noise=noise, random_state=0)
    signs = np.where(y == 1, 1.0, -1.0)
    for tol, reached in ((1e-6, 3e-4), (1e-10, 1e-6)):
        C = relative(4.0, Gaussian(0.5)(X))
        model = DANKClassifier(Gaussian(0.5), C=C, tol=tol).fit(X, y)
        learned = model.adaptation_[0].matrix() * model.kernel_(X)
        v, plain = np.zeros((2, len(y)))
        v[model.support_] = model.dual_solution_[0]
        machine = SVC(C=model.C_, kernel="precomputed", tol=1e-8).fit(learned, y)
        plain[machine.support_] = machine.dual_coef_[0]
        exact = polished_machine(learned, signs, model.C_, plain)
        bound = np.sqrt(2 * learned.diagonal().max() * model.certificate_ * (signs @ v))
        distance = np.abs(learned @ v + model.intercept_ - exact).max()
        assert distance <= 2 * bound  # once for the function, once for the intercept
        assert distance <= reached
    # why 1e-4 against libsvm may fail
    assert np.abs(machine.decision_function(learned) - exact).max() > 1e-5


def test_adaptation_is_the_minimizer_in_factored_form(moons):
    X, y = moons
    model = DANKClassifier(Gaussian(0.5), C=4.0).fit(X, y)
    adaptation = model.adaptation_[0]
    v = np.zeros(len(y))
    v[model.support_] = model.dual_solution_[0]
    M = 1 + v[:, None] * model.kernel_(X) * v / (4 * model.centering_penalty_[0])
    values, vectors = np.linalg.eigh(M)
    kept = values > 0.005
    np.testing.assert_allclose(
        adaptation.matrix(),
        (vectors[:, kept] * (values[kept] - 0.005)) @ vectors[:, kept].T,
        atol=1e-9,
    )
    np.testing.assert_allclose(adaptation.eigenvalues(), values[kept][::-1] - 0.005, rtol=1e-8)
    assert adaptation.rank == model.rank_ == kept.sum() <= 51
    block = adaptation.matrix([3, 7], [1, 2, 3])
    np.testing.assert_allclose(block, adaptation.matrix()[np.ix_([3, 7], [1, 2, 3])], atol=1e-12)
    assert adaptation.factor.size < len(y) ** 2 / 4


# Prediction


def test_one_point_at_a_time_equals_the_batch(moons, waves):
    X, y = moons
    model = DANKClassifier(C=4.0).fit(X[:100], y[:100])
    batch = model.decision_function(X[200:260])
    single = np.concatenate([model.decision_function(x[None]) for x in X[200:260]])
    np.testing.assert_allclose(single, batch, atol=1e-10)
    X, y = waves
    model = DANKRegressor(C=4.0).fit(X[:100], y[:100])
    single = np.concatenate([model.predict(x[None]) for x in X[100:]])
    np.testing.assert_allclose(single, model.predict(X[100:]), atol=1e-10)


def test_prediction_is_the_documented_expansion(moons):
    X, y = moons
    model = DANKClassifier(C=4.0).fit(X, y)
    by_hand = model.kernel_(X, model.support_vectors_) @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), by_hand[:, 0], atol=1e-12)


@pytest.mark.parametrize("scale", [1e-50, 2.0**10, 1e50])
def test_the_scale_of_a_matrix_cancels(moons, scale):
    # libsvm keeps matrices in single precision, whose range ends at 1e-38
    X, y = moons
    K = Gaussian(0.5)(X[:60])
    with_auto = DANKClassifier("precomputed", tol=1e-7)
    for model in (with_auto, DANKClassifier("precomputed", C=4.0, tol=1e-7)):
        expected = clone(model).fit(K, y[:60]).decision_function(K)
        scaled = clone(model).fit(scale * K, y[:60])
        np.testing.assert_allclose(scaled.decision_function(scale * K), expected, atol=1e-5)
    with pytest.raises(ValueError, match="entries of size"):
        DANKClassifier("precomputed").fit(1e100 * K, y[:60])


def test_a_rank_penalty_that_leaves_nothing_says_so(moons):
    X, y = moons
    with pytest.warns(UselessModelWarning, match="leaves no eigenvalue of F"):
        model = DANKClassifier(rank_penalty=1000.0).fit(X[:40], y[:40])
    assert model.rank_ == 0
    assert len(np.unique(model.predict(X))) == 1


# Weights


def test_weights_equal_repeated_rows(moons, waves):
    rng = np.random.default_rng(1)
    for model, (X, y) in [
        (DANKClassifier(Gaussian(0.5), C=2.0, tol=1e-7), moons),
        (DANKRegressor(Gaussian(1.0), C=2.0, tol=1e-7), waves),
    ]:
        X, y = X[:120], y[:120]
        weight = rng.integers(0, 4, size=120)
        weighted = clone(model).fit(X, y, sample_weight=weight)
        repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        np.testing.assert_allclose(weighted._values(X), repeated._values(X), atol=1e-4)
        np.testing.assert_allclose(
            weighted.centering_penalty_, repeated.centering_penalty_, rtol=1e-4
        )
        assert weighted.rank_ == repeated.rank_
        scaled_bound_only = clone(model).fit(X, y)
        assert np.abs(scaled_bound_only._values(X) - weighted._values(X)).max() > 1e-2


@pytest.mark.parametrize("rank_penalty", [0.0, 0.01])
def test_adaptation_of_weighted_rows_is_that_of_repeated_ones(moons, rank_penalty):
    X, y = moons[0][:60], moons[1][:60]
    weight = np.random.default_rng(1).integers(1, 4, size=60)
    model = DANKClassifier(Gaussian(0.5), C=2.0, tol=1e-8, rank_penalty=rank_penalty)
    weighted = clone(model).fit(X, y, sample_weight=weight).adaptation_[0].matrix()
    repeated = (
        clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).adaptation_[0].matrix()
    )
    first = np.cumsum(weight) - weight
    size = np.abs(repeated - 1).max()
    assert size > 1e-3
    np.testing.assert_allclose(weighted, repeated[np.ix_(first, first)], rtol=0, atol=0.01 * size)


# Invariances


def test_regression_follows_scale_and_shift(waves):
    X, y = waves
    reference = DANKRegressor(C=3.0, epsilon=0.1, tol=1e-7).fit(X, y).predict(X)
    for scale in (1e-6, 1e6, 1e12):
        model = DANKRegressor(C=3.0, epsilon=0.1, tol=1e-7).fit(X, scale * (y + 5))
        np.testing.assert_allclose(model.predict(X) / scale - 5, reference, atol=1e-5)
        # the documented expansion is in the units of y
        K = model.kernel_(X, model.support_vectors_)
        by_hand = K @ model.dual_coef_[0] + model.intercept_
        np.testing.assert_allclose(by_hand, model.predict(X), rtol=1e-9)


def test_row_order_and_label_names_do_not_matter(moons):
    X, y = moons
    order = np.random.default_rng(0).permutation(len(y))
    first = DANKClassifier(C=4.0, tol=1e-7).fit(X, y).decision_function(X)
    permuted = DANKClassifier(C=4.0, tol=1e-7).fit(X[order], y[order]).decision_function(X)
    np.testing.assert_allclose(permuted, first, atol=1e-5)
    flipped = (
        DANKClassifier(C=4.0, tol=1e-7).fit(X, np.where(y == 0, "b", "a")).decision_function(X)
    )
    np.testing.assert_allclose(flipped, -first, atol=1e-5)


# Several classes


def test_pairs_of_classes_equal_two_class_fits():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = DANKClassifier(Gaussian(3.0), C=4.0, tol=1e-6).fit(X, y)
    pair = y != 1
    C = model.C_
    alone = DANKClassifier(Gaussian(3.0), C=C, tol=1e-6).fit(X[pair], y[pair])
    np.testing.assert_allclose(model._values(X)[:, 1], alone.decision_function(X), atol=1e-8)
    assert model.decision_function(X).shape == (178, 3) and len(model.adaptation_) == 3
    assert model.score(X, y) > 0.98
    plain = SVC(C=model.C_, kernel="rbf", gamma=1 / 18, decision_function_shape="ovr").fit(X, y)
    near = DANKClassifier(
        Gaussian(3.0), C=4.0, adaptivity=CenteringPenalty(1e12), rank_penalty=0.0, tol=1e-7
    ).fit(X, y)
    np.testing.assert_allclose(near.decision_function(X), plain.decision_function(X), atol=2e-3)


# Scale


def test_working_set_solves_the_whole_problem(moons):
    X, y = make_moons(1500, noise=0.25, random_state=1)
    model = DANKClassifier(Gaussian(0.5), C=4.0).fit(X, y)
    v = np.zeros(len(y))
    v[model.support_] = model.dual_solution_[0]
    signs = np.where(y == 1, 1.0, -1.0)
    G = signs - (model.adaptation_[0].matrix() * model.kernel_(X)) @ v
    limit = model.C_ * signs  # the coefficients of a box, whose sum is 0
    gaps = [np.sum(np.maximum(limit * (G - b), 0.0) - v * (G - b)) for b in G[model.support_]]
    assert min(gaps) / (signs @ v) <= 1e-4


def test_memory_guard(moons):
    X, y = moons
    with config_context(memory_limit="10kB"):
        with pytest.raises(MemoryError, match=r"working set of 400 rows.*lower C"):
            DANKClassifier().fit(X, y)
        with pytest.raises(MemoryError, match="kernel matrix of 400 items"):
            DANKClassifier(Laplace(1.0)).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: make_moons(1000, noise=0.3, random_state=0),
        lambda: load_breast_cancer(return_X_y=True),
    ],
)
@pytest.mark.parametrize("C", [1.0, 8.0, 32.0])
def test_few_outer_steps(make, C):
    X, y = make()
    model = DANKClassifier(C=C).fit(StandardScaler().fit_transform(X), y)
    assert model.certificate_ <= 1e-4 and model.n_iter_ <= 10


# Progress, interruption, bad input


class _Recorder:
    """A minimal callback of scikit-learn's protocol."""

    def __init__(self, action=None):
        self.tasks, self.action = [], action

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **data):
        pass

    def on_fit_task_end(self, estimator, context, **data):
        self.tasks.append(context.task_name)
        return self.action(self) if self.action else None

    def teardown(self, estimator, context):
        pass


@pytest.mark.usefixtures("callbacks")
def test_callbacks_see_the_outer_steps(moons):
    X, y = moons
    recorder = _Recorder()
    model = DANKClassifier(C=4.0).set_callbacks(recorder).fit(X, y)
    assert recorder.tasks.count("outer step") >= model.n_iter_ >= 1
    assert recorder.tasks[-1] == "fit"


def _interrupt(recorder):
    raise KeyboardInterrupt


@pytest.mark.usefixtures("callbacks")
def test_interrupted_fit_is_not_half_fitted(moons):
    from sklearn.exceptions import NotFittedError

    X, y = moons
    model = DANKClassifier(C=4.0).set_callbacks(_Recorder(_interrupt))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model = DANKClassifier(C=4.0).fit(X, y)
    before = model.decision_function(X)
    model.set_callbacks(_Recorder(_interrupt))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :1], y)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_too_few_steps_warn(moons):
    from sklearn.exceptions import ConvergenceWarning

    X, y = moons
    with pytest.warns(ConvergenceWarning, match="relative duality gap is .* raise max_iter"):
        DANKClassifier(C=100.0, adaptivity=4.0, tol=1e-9, max_iter=1).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0.0}, "C=0.0 must be a positive number"),
        ({"C": np.inf}, "C=inf must be a positive finite number"),
        ({"adaptivity": CenteringPenalty(-1.0)}, "penalty=-1.0 must be a positive number"),
        ({"adaptivity": 0.0}, "adaptivity=0.0 must be a positive number"),
        ({"rank_penalty": -0.1}, "rank_penalty=-0.1 must be a nonnegative number"),
    ],
)
def test_bad_parameters(parameters, message):
    X = np.eye(6)
    with pytest.raises(ValueError, match=message):
        DANKClassifier(**parameters).fit(X, [0, 1, 0, 1, 0, 1])


def test_bad_data():
    X = np.random.default_rng(0).normal(size=(8, 2))
    y = [0, 1] * 4
    with pytest.raises(ValueError, match="one class only"):
        DANKClassifier().fit(X, np.zeros(8))
    with pytest.raises(ValueError, match="one class only"):
        DANKClassifier().fit(X, y, sample_weight=[1, 0] * 4)
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        DANKClassifier().fit(X, y, sample_weight=[1] * 7 + [-1])
    with pytest.raises(ValueError, match="sample_weight"):
        DANKRegressor().fit(X, y, sample_weight=[1.0, 2.0])
    with pytest.raises(ValueError, match="epsilon=-1 must be a nonnegative number"):
        DANKRegressor(epsilon=-1).fit(X, y)
    with pytest.raises(ValueError, match="n_restarts=-1 must be a nonnegative whole number"):
        DANKClassifier(search=GradientSearch(-1)).fit(X, y)
    with pytest.raises(ValueError, match="adaptivity='weak' must be a positive number"):
        DANKClassifier(adaptivity="weak").fit(X, y)


def test_indefinite_kernels_raise_with_the_eigenvalue():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = np.where(X[:, 0] > 0, 1, 0)
    A = rng.normal(size=(60, 60))
    K = A + A.T
    with pytest.raises(
        ValueError, match=f"smallest eigenvalue .* is {np.linalg.eigvalsh(K)[0]:.3g}; .*Spectrum"
    ):
        DANKClassifier("precomputed").fit(K, y)
    with pytest.raises(ValueError, match="indefinite"):
        DANKRegressor(Gaussian(1.0) - 0.9 * Gaussian(3.0)).fit(X, X[:, 0])
    low_rank = X @ X.T  # singular, not indefinite
    assert DANKClassifier("precomputed").fit(low_rank, y).certificate_ <= 1e-4


def test_constant_target_and_tiny_data():
    X = np.arange(5.0)[:, None]
    model = DANKRegressor().fit(X, np.full(5, 7.0))
    np.testing.assert_allclose(model.predict(X), 7.0)
    assert not model.dual_coef_.any() and model.certificate_ == 0.0
    np.testing.assert_allclose(DANKRegressor().fit([[1.0]], [3.0]).predict([[2.0]]), [3.0])
    assert DANKClassifier().fit([[0.0], [1.0]], [0, 1]).predict([[0.1], [0.9]]).tolist() == [0, 1]


def test_the_choice_of_parameters_is_the_plain_machines():
    """Length scale, C and the tube come from folds; a fit with them as given is the same."""
    X, y = make_friedman1(120, 5, noise=0.3, random_state=0)
    model = DANKRegressor(tol=1e-6).fit(X[::2], y[::2])
    given = DANKRegressor(model.kernel_, C=model.C_, epsilon=model.epsilon_, tol=1e-6)
    np.testing.assert_allclose(
        given.fit(X[::2], y[::2]).predict(X[1::2]), model.predict(X[1::2]), atol=0.01 * y.std()
    )
    assert model.score(X[1::2], y[1::2]) > 0.75
    few = DANKRegressor().fit(X[:8], y[:8])
    assert np.isfinite(few.predict(X)).all()
    assert few.C_ == DANKClassifier().fit(X[:8], np.arange(8) % 2).C_ == 1.0  # too few to choose


def test_display_shows_the_learned_matrix(moons):
    pytest.importorskip("matplotlib").use("agg")
    import matplotlib.pyplot as plt

    from mercerless.inspection import AdaptedKernelDisplay

    X, y = moons[0][:60], moons[1][:60]
    model = DANKClassifier(Gaussian(0.5), C=4.0).fit(X, y)
    display = AdaptedKernelDisplay.from_estimator(model, X, y)
    order = np.argsort(y, kind="stable")
    np.testing.assert_allclose(display.adaptation, model.adaptation_[0].matrix(order))
    np.testing.assert_allclose(display.kernel, model.kernel_(X[order]))
    assert display.axes_.shape == (3,) and f"rank {model.rank_}" in display.axes_[2].get_title()
    plt.close("all")

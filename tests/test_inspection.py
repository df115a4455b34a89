import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.svm import SVC

Figure = pytest.importorskip("matplotlib.figure").Figure

from mercerless import SimilarityClassifier, SimilarityRegressor
from mercerless.inspection import AverageDisplay, KernelMatrixDisplay, SpectrumDisplay
from mercerless.kernels import TL1
from mercerless.spectra import SpectrumTransformer, indefiniteness


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


@pytest.fixture(scope="module")
def blocks():
    """Three classes, shuffled; similarities of 1 inside, 0 outside, plus a negative eigenvalue."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2], [10, 15, 5]))
    K = (y[:, None] == y[None, :]) - 0.8 * np.ones((30, 30))
    for array in (K, y):
        array.setflags(write=False)
    return K, y


def test_spectrum_draws_every_eigenvalue_in_the_color_of_its_sign(blocks, ax):
    K, _ = blocks
    display = SpectrumDisplay.from_matrix(K, name="blocks", ax=ax)
    values = np.linalg.eigvalsh(K)[::-1]
    np.testing.assert_allclose(display.eigenvalues, values, atol=1e-12)
    assert display.report == indefiniteness(K)
    assert [steps.get_label() for steps in ax.patches] == [
        "2 positive",
        "27 zero up to rounding",
        "1 negative",
    ]
    np.testing.assert_allclose(
        np.concatenate([steps.get_data().values for steps in ax.patches]), values, atol=1e-12
    )
    edges = [steps.get_data().edges for steps in ax.patches]
    assert [(e[0], e[-1]) for e in edges] == [(0.5, 2.5), (2.5, 29.5), (29.5, 30.5)]
    assert len({steps.get_facecolor() for steps in ax.patches}) == 3
    assert ax.get_title(loc="left").startswith("blocks: indefinite, ")
    assert display.ax_ is ax and display.figure_ is ax.figure
    assert ax.get_yscale() == "symlog"


def test_spectrum_of_a_definite_matrix_says_so(ax):
    display = SpectrumDisplay.from_matrix(np.diag([3.0, 2.0, 1.0]), scale="linear", ax=ax)
    assert display.report.is_psd
    assert ax.get_title(loc="left") == "Positive semi-definite"
    assert ax.get_yscale() == "linear"
    SpectrumDisplay.from_matrix(np.zeros((3, 3)), ax=Figure().subplots())


def test_spectrum_from_eigenvalues_alone(ax):
    display = SpectrumDisplay([1.0, -1.0, 3.0]).plot(ax=ax)
    np.testing.assert_array_equal(display.eigenvalues, [3.0, 1.0, -1.0])
    assert display.report.negative_mass == pytest.approx(0.2)


def test_spectrum_raises(blocks):
    with pytest.raises(ValueError, match="not symmetric"):
        SpectrumDisplay.from_matrix(np.ones((3, 3)) + np.triu(np.ones((3, 3))))
    with pytest.raises(ValueError, match="scale"):
        SpectrumDisplay.from_matrix(blocks[0], scale="log")


class KernelHolder(BaseEstimator):
    """The least an estimator with a kernel has after fit."""

    def fit(self, X, y=None):
        self.kernel_ = TL1(2.0)
        return self


def test_from_estimator_uses_the_kernel_or_the_precomputed_matrix(blocks):
    K, y = blocks
    X = np.random.default_rng(0).normal(size=(25, 3))
    display = SpectrumDisplay.from_estimator(KernelHolder().fit(X), X, ax=Figure().subplots())
    np.testing.assert_allclose(
        display.eigenvalues, np.linalg.eigvalsh(TL1(2.0)(X))[::-1], atol=1e-10
    )
    assert display.name == "KernelHolder"
    display = SpectrumDisplay.from_estimator(
        SpectrumTransformer().fit(K), K, ax=Figure().subplots()
    )
    np.testing.assert_allclose(display.eigenvalues, np.linalg.eigvalsh(K)[::-1], atol=1e-12)
    display = KernelMatrixDisplay.from_estimator(
        SpectrumTransformer().fit(K), K, y, ax=Figure().subplots()
    )
    np.testing.assert_array_equal(display.matrix, K)
    with pytest.raises(ValueError, match="no kernel to show"):
        SpectrumDisplay.from_estimator(SVC().fit(X, X[:, 0] > 0), X)


def test_matrix_is_shown_by_class(blocks, ax):
    K, y = blocks
    display = KernelMatrixDisplay.from_matrix(K, y, name="blocks", ax=ax)
    np.testing.assert_array_equal(y[display.order], np.sort(y))
    np.testing.assert_array_equal(np.sort(display.order), np.arange(30))
    np.testing.assert_array_equal(
        display.image_.get_array(), K[np.ix_(display.order, display.order)]
    )
    assert [text.get_text() for text in ax.get_yticklabels()] == ["0", "1", "2"]
    np.testing.assert_allclose(ax.get_yticks(), [4.5, 17, 27])
    assert ax.get_title(loc="left") == "blocks"


def test_matrix_is_shown_by_cluster_without_classes(blocks, ax):
    K, y = blocks
    order = KernelMatrixDisplay.from_matrix(K, ax=ax).order
    assert (np.diff(y[order]) != 0).sum() == 2  # every class in one piece
    D = np.sqrt(np.maximum(2 * 0.2 - 2 * K, 0))
    np.fill_diagonal(D, 0)
    order = KernelMatrixDisplay.from_matrix(D, ax=Figure().subplots()).order
    assert (np.diff(y[order]) != 0).sum() == 2
    # rounding on the diagonal of distances, and dissimilarities below zero (soft-DTW), change nothing
    for other in (D + np.diag(np.full(len(D), 1e-9)), D - 1.5 * D.mean()):
        order = KernelMatrixDisplay.from_matrix(other, ax=Figure().subplots()).order
        assert (np.diff(y[order]) != 0).sum() == 2


def test_numeric_targets_order_but_are_not_named(blocks, ax):
    target = np.random.default_rng(0).normal(size=40)
    display = KernelMatrixDisplay.from_matrix(np.outer(target, target), target, ax=ax)
    assert (np.diff(target[display.order]) >= 0).all()
    assert ax.get_xlabel() == "items, ordered by class or target" and not len(ax.get_yticks())


def test_colors_are_centered_on_zero_for_signed_entries_and_ignore_outliers(blocks):
    K, _ = blocks
    image = KernelMatrixDisplay.from_matrix(K, ax=Figure().subplots()).image_
    low, high = image.get_clim()
    assert low == -high and image.get_cmap().name == "RdBu"
    rng = np.random.default_rng(0)
    K = rng.uniform(1, 2, size=(50, 50))
    K[3, 4] = 1e6
    image = KernelMatrixDisplay.from_matrix(K, ax=Figure().subplots()).image_
    assert image.get_clim()[1] <= 2 and image.get_cmap().name == "cividis"


@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_matrices(n):
    K = np.eye(n)
    SpectrumDisplay.from_matrix(K, ax=Figure().subplots())
    assert len(KernelMatrixDisplay.from_matrix(K, ax=Figure().subplots()).order) == n
    assert (
        len(KernelMatrixDisplay.from_matrix(K, np.arange(n)[::-1], ax=Figure().subplots()).order)
        == n
    )


def test_matrix_raises(blocks):
    with pytest.raises(ValueError, match="one label per row"):
        KernelMatrixDisplay.from_matrix(blocks[0], np.arange(3))
    with pytest.raises(ValueError, match="square"):
        KernelMatrixDisplay.from_matrix(np.ones((2, 3)))


def test_without_axes_a_figure_is_made(blocks):
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    display = SpectrumDisplay.from_matrix(blocks[0])
    assert display.figure_ in [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")


@pytest.mark.parametrize(
    "cls, loss", [(SimilarityClassifier, "log_loss"), (SimilarityRegressor, "mse")]
)
def test_a_stack_shows_the_losses_and_weights_of_its_families(cls, loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=60)
    model = cls("rbf").fit(X, y > 0 if loss == "log_loss" else y)
    figure = Figure()
    display = AverageDisplay.from_estimator(model, ax=figure.subplots(ncols=2))
    left, right = display.axes_
    names = [name for name in model.family_scores_ if name != "average"]
    scores = [model.family_scores_[name][loss] for name in names]
    weights = [model.family_scores_[name]["weight"] for name in names]
    places = {text.get_text(): y for text, y in zip(left.get_yticklabels(), left.get_yticks())}
    points = {y: x for x, y in left.collections[0].get_offsets()}
    bars = {bar.get_y() + bar.get_height() / 2: bar.get_width() for bar in right.patches}
    np.testing.assert_allclose([points[places[name]] for name in names], scores)
    np.testing.assert_allclose([bars[places[name]] for name in names], weights)
    assert places[names[0]] > places[names[-1]]  # from above
    np.testing.assert_allclose(left.lines[0].get_xdata(), model.family_scores_["average"][loss])
    assert [text.get_text() for text in right.texts] == [f"{weight:.2f}" for weight in weights]
    assert right.get_xlim()[0] == 0 and right.get_xlim()[1] > max(weights)
    assert left.get_title(loc="left") == str(model.negative_spectrum_)
    assert ("log-loss" in left.get_xlabel()) == (loss == "log_loss")
    with pytest.raises(ValueError, match="not an average"):
        AverageDisplay.from_estimator(KernelHolder().fit(X))

import numpy as np
import pytest
from oracles import datasets as oracle
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from mercerless.datasets import load_digit_shapes, make_balls3d, make_clowns, make_lab_function

# ------------------------------------------------------------------------------------------------ digit shapes


@pytest.fixture(scope="module")
def shapes():
    bunch = load_digit_shapes()
    for array in (bunch.D, bunch.K, bunch.target, bunch.images):
        array.setflags(write=False)
    return bunch


def test_digit_distances_equal_the_definition(shapes):
    points = [oracle.dark_pixels(image.tolist(), 8.0) for image in shapes.images[:12]]
    naive = [[oracle.modified_hausdorff(A, B) for B in points] for A in points]
    np.testing.assert_allclose(shapes.D[:12, :12], naive, rtol=1e-12, atol=1e-12)


def test_digit_distances_are_not_a_metric_and_indefinite(shapes):
    D, K = shapes.D, shapes.K
    assert (
        D.shape == (400, 400)
        and np.array_equal(D, D.T)
        and not np.diagonal(D).any()
        and D.min() >= 0
    )
    assert any((D[i] + D[i, j] < D[j] - 1e-9).any() for i in range(20) for j in range(20))
    values = np.linalg.eigvalsh(K)
    assert -values[values < 0].sum() / np.abs(values).sum() > 0.25
    np.testing.assert_allclose(np.diagonal(K)[:, None] + np.diagonal(K) - 2 * K, D**2, atol=1e-10)
    assert np.abs(K.sum(axis=0)).max() < 1e-9


def test_digit_shapes_know_their_digits(shapes):
    D = shapes.D + np.diag(np.full(len(shapes.D), np.inf))
    assert np.mean(shapes.target[D.argmin(axis=1)] == shapes.target) > 0.9
    assert np.unique(shapes.target, return_counts=True)[1].min() >= 35


def test_digit_shapes_are_the_same_each_time_and_independent_of_size(shapes):
    again = load_digit_shapes(50)
    np.testing.assert_array_equal(again.D, shapes.D[:50, :50])
    again.D[:] = 0  # a caller's own copy
    assert load_digit_shapes(50).D.any()


@pytest.mark.parametrize("arguments", [{"n_samples": 0}, {"n_samples": 1798}, {"threshold": 17.0}])
def test_digit_shapes_raise(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        load_digit_shapes(**arguments)


# -------------------------------------------------------------------------------------------------- generators


@pytest.mark.parametrize(
    "name, n_features, half_width", [("f1", 2, 2.0), ("f2", 6, 1.0), ("f3", 4, 0.25)]
)
def test_lab_functions(name, n_features, half_width):
    X, y = make_lab_function(400, function=name, random_state=0)
    assert X.shape == (400, n_features)
    assert 0.95 * half_width < np.abs(X).max() <= half_width
    np.testing.assert_allclose(y, [oracle.lab_function(name, x) for x in X.tolist()], rtol=1e-12)


def test_lab_noise_is_a_share_of_the_variance():
    _, clean = make_lab_function(20_000, random_state=0)
    _, noisy = make_lab_function(20_000, noise=0.3, random_state=0)
    np.testing.assert_allclose((noisy - clean).var() / clean.var(), 0.3, rtol=0.05)


def test_clowns_are_a_parabola_with_a_blob_in_its_cup():
    X, y = make_clowns(20_001, spread=0.5, random_state=0)
    assert (y == 1).sum() == 10_001 and (y == -1).sum() == 10_000
    np.testing.assert_allclose([X.mean(axis=0), X.std(axis=0)], [[0, 0], [1, 1]], atol=1e-10)
    parabola, blob = X[y == -1], X[y == 1]
    # the vertical coordinate is a + b u^2 on the parabola, u uniform: curvature clearly positive
    curvature, slope, _ = np.polyfit(parabola[:, 0], parabola[:, 1], 2)
    assert curvature > 0.5 and abs(slope) < 0.05
    assert abs(blob[:, 0].mean()) < 0.05
    assert blob[:, 1].mean() > np.polyval([curvature, slope, _], 0.0) + 1.0


def test_balls_touch_nowhere_and_the_negative_spectrum_helps():
    D, y = make_balls3d(200, random_state=0)
    off = ~np.eye(200, dtype=bool)
    assert np.array_equal(D, D.T) and not np.diagonal(D).any() and D[off].min() > 0
    H = np.eye(200) - 1 / 200
    values, vectors = np.linalg.eigh(-0.5 * H @ D**2 @ H)
    assert 0.05 < -values[values < 0].sum() / np.abs(values).sum() < 0.2
    svc = SVC(kernel="precomputed", C=1e4)
    clip, flip = (
        cross_val_score(svc, (vectors * spectrum) @ vectors.T, y, cv=10).mean()
        for spectrum in (np.maximum(values, 0), np.abs(values))
    )
    assert flip > clip + 0.02 and flip > 0.95


def test_balls_raise():
    with pytest.raises(ValueError, match="do not fit"):
        make_balls3d(100, radii=(0.3, 0.3), random_state=0)
    with pytest.raises(ValueError, match="radii"):
        make_balls3d(10, radii=(0.0, 0.1))


GENERATORS = [make_balls3d, make_clowns, make_lab_function]


@pytest.mark.parametrize("make", GENERATORS)
def test_generators_repeat_with_a_seed(make):
    extra = {"noise": 0.1} if make is make_lab_function else {}
    first, second = make(40, random_state=7, **extra), make(40, random_state=7, **extra)
    other = make(40, random_state=8, **extra)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])
    assert not (np.array_equal(first[0], other[0]) and np.array_equal(first[1], other[1]))


@pytest.mark.parametrize("make", GENERATORS)
def test_generators_raise_without_samples(make):
    with pytest.raises(ValueError, match="n_samples=0 must be"):
        make(0)


def test_generators_raise_for_bad_arguments():
    with pytest.raises(ValueError, match="is not known; use"):
        make_lab_function(function="f4")
    with pytest.raises(ValueError, match="noise"):
        make_lab_function(noise=-1.0)

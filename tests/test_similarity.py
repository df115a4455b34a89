"""The similarity estimators: inputs, hard cases, identities, and what they learn."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_classification, make_regression
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from mercerless import AsymmetricRidgeClassifier, KreinEmbedding, config_context
from mercerless.core.validation import UselessModelWarning
from mercerless.datasets import load_digit_shapes, make_balls3d
from mercerless.kernels import TL1, Gaussian, PairFunction, Polynomial
from mercerless.lowrank import Landmarks
from mercerless.similarity.estimators import SimilarityClassifier, SimilarityRegressor
from mercerless.similarity.families import NEED_DIAGONAL, all_settings, default_families
from mercerless.similarity.features import SimilarityFeatures, SimilaritySVC


def automatic(**parameters):
    return SimilarityClassifier(kernel="precomputed", random_state=0, **parameters)


@pytest.fixture(scope="module")
def blobs():
    X, y = make_classification(90, 6, n_informative=4, n_classes=3, random_state=0)
    X.flags.writeable = False
    return X, y


@pytest.fixture(scope="module")
def distances(blobs):
    D = np.abs(blobs[0][:, None] - blobs[0]).sum(axis=2)
    D.flags.writeable = False
    return D


# ---- inputs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [SimilarityClassifier, SimilarityRegressor])
def test_a_kernel_equals_its_precomputed_matrix(blobs, estimator):
    X, y = blobs
    for kernel in (TL1(4.0), Gaussian(2.0), "sigmoid"):
        direct = estimator(kernel, random_state=0).fit(X[:60], y[:60])
        matrix = direct.kernel_(X[:60])
        other = estimator("precomputed", random_state=0).fit(matrix, y[:60])
        diag = direct.kernel_.diag(X[60:])
        np.testing.assert_allclose(
            other.predict(direct.kernel_(X[60:], X[:60]), diag=diag),
            direct.predict(X[60:]),
            rtol=1e-8,
        )


def test_distances_are_recognized_and_equal_their_similarities(blobs, distances):
    y = blobs[1]
    train, test = distances[:60, :60], distances[60:, :60]
    found = automatic().fit(train, y[:60])
    assert found.kind_ == "distance"
    told = automatic(kind="distance").fit(train, y[:60])
    similar = automatic(kind="similarity").fit(-0.5 * train**2, y[:60])
    assert similar.kind_ == "similarity"
    np.testing.assert_array_equal(found.predict_proba(test), told.predict_proba(test))
    np.testing.assert_allclose(
        similar.predict_proba(-0.5 * test**2), found.predict_proba(test), atol=1e-10
    )


def test_distances_must_be_distances(distances, blobs):
    y = blobs[1]
    with pytest.raises(ValueError, match="must not be negative"):
        automatic(kind="distance").fit(distances - 1.0, y)
    with pytest.raises(ValueError, match="diagonal is not 0"):
        automatic(kind="distance").fit(distances + 1.0, y)
    with pytest.raises(ValueError, match="must not be negative"):
        automatic().fit(distances, y).predict(-distances)


def test_an_asymmetric_matrix_raises_or_is_averaged(distances, blobs):
    y = blobs[1]
    lopsided = np.array(distances)
    lopsided[np.triu_indices(90, 1)] *= 1.2
    with pytest.raises(ValueError, match=r"not symmetric.*symmetrize"):
        automatic().fit(lopsided, y)
    averaged = automatic(direction="mean").fit(lopsided, y)
    expected = automatic().fit((lopsided + lopsided.T) / 2.0, y)
    both = averaged.predict_proba(lopsided, reverse=lopsided.T)
    np.testing.assert_allclose(
        both, expected.predict_proba((lopsided + lopsided.T) / 2.0), atol=1e-10
    )


@pytest.mark.slow
def test_rows_of_one_direction_are_not_taken_for_the_mean_of_both(blobs):
    X, y = blobs
    gauss = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 8.0)
    offset = 2.0 * np.random.default_rng(0).normal(size=(90, 1))
    directed = gauss + offset - offset.T  # the mean of both directions is the Gaussian
    cv = KFold(5, shuffle=True, random_state=0)
    best = cross_val_score(automatic(), gauss, y, cv=cv).mean()
    with pytest.warns(UserWarning, match="only one direction of the new rows"):
        found = cross_val_score(automatic(direction="mean"), directed, y, cv=cv).mean()
    assert found > best - 0.05
    for estimator, target in (
        (automatic(direction="mean"), y),
        (SimilarityRegressor("precomputed", direction="mean", random_state=0), X),
    ):
        model = estimator.fit(directed[:60, :60], target[:60])
        even = clone(estimator).set_params(direction="symmetric").fit(gauss[:60, :60], target[:60])
        predict = "predict_proba" if target is y else "predict"
        both = getattr(model, predict)(directed[60:, :60], reverse=directed[:60, 60:].T)
        np.testing.assert_allclose(both, getattr(even, predict)(gauss[60:, :60]), atol=1e-6)
        with pytest.warns(UserWarning, match="reverse"):
            assert model.predict(directed[60:, :60]).shape == target[60:].shape
        with pytest.raises(ValueError, match="one row per new item"):
            model.predict(directed[60:, :60], reverse=directed[:60, 60:])
        with pytest.raises(ValueError, match="reverse is for"):
            even.predict(gauss[60:, :60], reverse=gauss[60:, :60])
    # where both directions are nearly alike, the average is the better teacher
    with pytest.warns(UserWarning, match="only one direction"):
        close = gauss + 1e-5 * (offset - offset.T)
        assert cross_val_score(automatic(direction="mean"), close, y, cv=cv).mean() > best - 0.03


def test_a_plain_function_is_called_in_both_directions_where_they_are_averaged(blobs):
    X, y = blobs
    offset = 3.0 * np.random.default_rng(0).normal(size=90)

    def lopsided(a, b):
        return float(
            np.exp(-np.sum((X[int(a[0])] - X[int(b[0])]) ** 2) / 8.0)
            + offset[int(a[0])]
            - offset[int(b[0])]
        )

    items = np.arange(90.0)[:, None]
    gauss = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 8.0)
    model = SimilarityClassifier(lopsided, direction="mean", random_state=0).fit(items[:60], y[:60])
    even = automatic().fit(gauss[:60, :60], y[:60])
    np.testing.assert_allclose(
        model.predict_proba(items[60:]), even.predict_proba(gauss[60:, :60]), atol=1e-6
    )


@pytest.mark.parametrize("diagonal", [1e-300, 6e-8, 1e-6, 1e-4])
@pytest.mark.parametrize("where", [slice(3, 4), slice(None)])
def test_distances_with_a_diagonal_that_is_nearly_zero_stay_distances(
    blobs, distances, diagonal, where
):
    y = blobs[1]
    touched = np.array(distances)
    touched[np.arange(90)[where], np.arange(90)[where]] = diagonal
    model, exact = (automatic().fit(D[:60, :60], y[:60]) for D in (touched, distances))
    assert model.kind_ == "distance"
    np.testing.assert_allclose(
        model.predict_proba(touched[60:, :60]), exact.predict_proba(distances[60:, :60]), atol=1e-10
    )


def test_a_dissimilarity_is_turned_round_and_not_squared(blobs):
    X, y = blobs
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    diagonal = np.random.default_rng(0).uniform(1.0, 3.0, 90)
    # as soft-DTW: negative, and a diagonal of its own
    soft = squares - diagonal[:, None] - diagonal
    model = automatic().fit(soft[:60, :60], y[:60])
    assert model.kind_ == "dissimilarity"
    similar = automatic(kind="similarity").fit(-soft[:60, :60], y[:60])
    diag = np.diagonal(soft)[60:]
    np.testing.assert_allclose(
        model.predict_proba(soft[60:, :60], diag),
        similar.predict_proba(-soft[60:, :60], -diag),
        atol=1e-12,
    )
    right = cross_val_score(automatic(), soft, y, cv=5).mean()
    assert right > cross_val_score(automatic(kind="similarity"), soft, y, cv=5).mean()


def test_a_graph_is_not_taken_for_distances():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 120)
    A = np.triu(rng.uniform(size=(120, 120)) < np.where(labels[:, None] == labels, 0.15, 0.03), 1)
    A = (A + A.T).astype(float)
    model = automatic().fit(A, labels)
    assert model.kind_ == "similarity"
    figures = {"accuracy": "accuracy", "loss": "neg_log_loss"}
    right = cross_validate(automatic(), A, labels, cv=5, scoring=figures)
    wrong = cross_validate(automatic(kind="distance"), A, labels, cv=5, scoring=figures)
    assert right["test_accuracy"].mean() > wrong["test_accuracy"].mean() + 0.02
    assert 1.6 * right["test_loss"].mean() > wrong["test_loss"].mean()


def test_what_contradicts_itself_is_asked_for(blobs, distances):
    filled = np.array(distances)
    np.fill_diagonal(filled, filled.max())  # so that no item is its own neighbor
    with pytest.raises(
        ValueError, match="say which with kind='similarity', 'distance' or 'dissimilarity'"
    ):
        automatic().fit(filled, blobs[1])
    assert automatic(kind="dissimilarity").fit(filled, blobs[1]).kind_ == "dissimilarity"


def test_the_last_bits_of_integers_do_not_matter():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(120, 6)).astype(float)
    y = (X[:, 0] + X[:, 1] + rng.integers(0, 2, 120)) > 2
    order = [3, 1, 5, 0, 2, 4]
    models = [
        SimilarityClassifier(random_state=0).fit(Z[:80], y[:80])
        for Z in (X, X[:, order], X * (1 + 1e-15))
    ]
    first, *others = [m.predict(Z[80:]) for m, Z in zip(models, (X, X[:, order], X * (1 + 1e-15)))]
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_random_labels_and_a_large_negative_part_are_not_called_no_negative_part():
    verdicts = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 8))
        K = X[:, :4] @ X[:, :4].T - X[:, 4:] @ X[:, 4:].T
        found = automatic(kind="similarity").fit(K, rng.integers(0, 2, 40)).negative_spectrum_
        assert found.verdict != "absent" and "is absent" not in found.sentence
        verdicts.append(found.z)
    assert 0.0 in verdicts  # both cannot predict and say the same
    assert automatic().fit(X @ X.T, rng.integers(0, 2, 40)).negative_spectrum_.verdict == "absent"


def test_an_asymmetric_function_is_averaged_for_new_items_too(blobs):
    X, y = blobs
    lopsided = PairFunction(
        lambda a, b: float(np.exp(-np.sum((a - b) ** 2) / 8.0) + 0.1 * a[0]), symmetric=False
    )
    even = PairFunction(lambda a, b: (lopsided.function(a, b) + lopsided.function(b, a)) / 2.0)
    first = SimilarityClassifier(lopsided, direction="mean", random_state=0).fit(X[:40], y[:40])
    second = SimilarityClassifier(even, random_state=0).fit(X[:40], y[:40])
    np.testing.assert_allclose(
        first.predict_proba(X[40:50]), second.predict_proba(X[40:50]), atol=1e-9
    )


def test_strings_and_series():
    words = ["abcabc" + c for c in "abcdefgh"] + ["xyzzy" + c for c in "stuvwxyz"]
    y = ["first"] * 8 + ["second"] * 8

    def edit(a, b):
        row = list(range(len(b) + 1))
        for i, x in enumerate(a, 1):
            before, row[0] = row[0], i
            for j, z in enumerate(b, 1):
                before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != z))
        return row[-1]

    model = SimilarityClassifier(edit, random_state=0).fit(words, y)
    assert model.kind_ == "distance"
    assert list(model.predict(["abcabd", "xyzzx", "abccbc"])) == ["first", "second", "first"]
    series = [np.full(n, float(n % 2)) for n in range(3, 19)]  # unequal lengths
    gap = SimilarityClassifier(lambda a, b: abs(a.mean() - b.mean()), random_state=0)
    assert (
        gap.fit(series, [len(s) % 2 for s in series]).score(series, [len(s) % 2 for s in series])
        == 1.0
    )


def test_own_similarities_are_asked_for_only_where_needed(blobs):
    X, y = blobs
    K = X @ X.T  # its diagonal is not constant
    model = automatic().fit(K[:60, :60], y[:60])
    assert model.diagonal_ is None
    full = model.predict_proba(K[60:, :60], diag=np.diagonal(K)[60:])
    part = model.predict_proba(K[60:, :60])
    assert np.abs(full - part).max() > 1e-6
    np.testing.assert_allclose(part.sum(axis=1), 1.0)
    distant = np.array([member.family in NEED_DIAGONAL for member in model.members_])
    assert np.all(model.weights_without_diag_[distant] == 0.0)
    assert np.isclose(model.weights_without_diag_.sum(), 1.0)
    spoilt = clone(model).fit(K[:60, :60], y[:60])
    # must not matter when those families are left out
    spoilt.calibration_.bias[distant] = [5.0, 0.0, 0.0]
    np.testing.assert_array_equal(spoilt.predict_proba(K[60:, :60]), part)
    assert np.abs(spoilt.predict_proba(K[60:, :60], diag=np.diagonal(K)[60:]) - full).max() > 0.01
    linear = SimilarityClassifier("linear", random_state=0).fit(X[:60], y[:60])
    np.testing.assert_allclose(linear.predict_proba(X[60:]), full, atol=1e-8)


def test_constant_own_similarity_is_remembered(blobs):
    X, y = blobs
    K = Gaussian(2.0)(X)
    model = automatic().fit(K[:60, :60], y[:60])
    assert np.isclose(model.diagonal_, 1.0)
    expected = model.predict_proba(K[60:, :60], diag=1.0)
    np.testing.assert_allclose(model.predict_proba(K[60:, :60]), expected, atol=1e-12)


def test_bad_parameters_speak_before_any_work(distances, blobs):
    y = blobs[1]
    with pytest.raises(ValueError, match="kind='angles' is not known; use 'auto', 'similarity'"):
        automatic(kind="angles").fit(distances, y)
    with pytest.raises(ValueError, match="direction='forward' is not known; use 'symmetric'"):
        automatic(direction="forward").fit(distances, y)
    with pytest.raises(ValueError, match="cv=1 must be at least 2 folds"):
        automatic(cv=1).fit(distances, y)
    with pytest.raises(ValueError, match="hold out every row once"):
        automatic(cv=[(np.arange(50), np.arange(50, 90))]).fit(distances, y)
    with pytest.raises(MemoryError, match="The stack on 90 items needs"):
        with config_context(memory_limit="10kB"):
            automatic().fit(distances, y)
    with pytest.raises(ValueError, match="square"):
        automatic().fit(distances[:50], y[:50])
    with pytest.raises(ValueError, match="one weight per row"):
        automatic().fit(distances, y, sample_weight=np.ones(5))
    with pytest.raises(ValueError, match="zero for every row"):
        automatic().fit(distances, y, sample_weight=np.zeros(90))
    with pytest.raises(NotFittedError):
        automatic().predict(distances)
    with pytest.raises(ValueError, match="one number for each of the 90"):
        automatic().fit(distances, y).predict(distances, diag=np.zeros(3))


# ---- hard cases -------------------------------------------------------------------------------------------------


def test_one_class_one_item_two_items():
    K = np.array([[1.0, 0.2], [0.2, 1.0]])
    one = automatic().fit(K[:1, :1], ["a"])
    assert list(one.predict(K[:, :1])) == ["a", "a"]
    same = automatic().fit(K, ["b", "b"])
    np.testing.assert_allclose(same.predict_proba(K), 1.0)
    two = automatic().fit(K, ["a", "b"])
    assert np.all(np.isfinite(two.predict_proba(K)))
    regressor = SimilarityRegressor("precomputed").fit(K[:1, :1], [3.0])
    np.testing.assert_allclose(regressor.predict(K[:, :1]), 3.0)
    np.testing.assert_allclose(
        SimilarityRegressor("precomputed").fit(K, [3.0, 3.0]).predict(K), 3.0
    )


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7])
def test_tiny(n):
    X = np.arange(n, dtype=float)[:, None]
    model = SimilarityClassifier(random_state=0).fit(X, np.arange(n) % 2)
    assert np.all(np.isfinite(model.predict_proba(X)))
    assert np.all(np.isfinite(SimilarityRegressor(random_state=0).fit(X, X[:, 0]).predict(X)))


def test_every_item_its_own_class():
    X = np.random.RandomState(0).normal(size=(12, 3))
    model = SimilarityClassifier(random_state=0).fit(X, np.arange(12))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_rare_classes(blobs):
    X, y = blobs
    y = np.array(["common", "rare"])[(np.arange(90) < 2).astype(int)]
    model = SimilarityClassifier(random_state=0).fit(X, y)
    assert list(model.classes_) == ["common", "rare"]
    proba = model.predict_proba(X)
    assert proba[:, 1].mean() < 0.2 and np.all(proba[:, 1] > 0.0)


@pytest.mark.parametrize("estimator", [SimilarityClassifier, SimilarityRegressor])
def test_a_prediction_does_not_depend_on_the_other_rows(blobs, distances, estimator):
    """One new item that is far from everything must not change the others."""
    y = blobs[1]
    model = estimator(kernel="precomputed", random_state=0).fit(distances[:60, :60], y[:60])
    predict = model.predict_proba if estimator is SimilarityClassifier else model.predict
    new = distances[60:, :60]
    alone = predict(new)
    in_company = predict(np.vstack([new, np.full((1, 60), 1e9)]))
    np.testing.assert_allclose(in_company[:-1], alone, rtol=1e-12, atol=1e-12)


def test_one_long_training_item_does_not_spoil_the_others():
    """Its similarity to itself is 1e19 times that of the others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(481, 3))
    X[80] = 1e3
    y = (X[:, 0] > 0.0).astype(int) + (X[:, 1] > 0.5)
    train, new = slice(0, 81), slice(81, None)
    accuracies = []
    for rows in (slice(0, 80), train):
        model = SimilarityClassifier(Polynomial(3), random_state=0).fit(X[rows], y[rows])
        accuracies.append(model.score(X[new], y[new]))
    assert accuracies[1] > accuracies[0] - 0.1
    # lengths of all sizes: neither an error of the solver, nor copies
    X = np.exp(3.0 * rng.normal(size=(300, 2)))
    y = (X[:, 0] > X[:, 1]).astype(int)
    K = (1.0 + X @ X.T) ** 3
    model = automatic(kind="similarity").fit(K[:200, :200], y[:200])
    right = model.predict(K[200:, :200], diag=np.diagonal(K)[200:]) == y[200:]
    assert right.mean() > 0.9
    assert len(model.out_of_fold_.rows) == len(model.stack_.members.diagonal) == 200


@pytest.mark.filterwarnings("ignore:.* items are near-copies of others")
def test_pairs_that_are_far_apart_make_no_copies_of_near_items():
    """Items of different parts of a graph have the distance 1e6; the others are near, but no copies in a fold."""
    rng = np.random.default_rng(0)
    part = np.repeat(np.arange(20), 10)
    place = np.tile(np.arange(10), 20) + 0.1 * rng.normal(size=200)
    y = (place > 4.5).astype(int)
    D = np.where(part[:, None] == part, np.abs(place[:, None] - place), 1e6)
    train = np.arange(200) % 4 > 0
    model = automatic().fit(D[np.ix_(train, train)], y[train])
    assert np.mean(model.predict(D[np.ix_(~train, train)]) == y[~train]) > 0.75
    # distances of copies that are not 0 because of rounding: these are in one fold
    X = rng.normal(size=(40, 3))
    copies = np.vstack([X, X])
    squares = (copies**2).sum(axis=1)[:, None] + (copies**2).sum(axis=1) - 2.0 * copies @ copies.T
    noise = 1e-16 * rng.uniform(size=(80, 80))
    D = np.sqrt(np.maximum(squares, 0.0) + noise + noise.T)
    np.fill_diagonal(D, 0.0)
    assert np.diagonal(D[:40, 40:]).min() > 0.0
    labels = rng.integers(2, size=40)
    model = automatic().fit(D, np.r_[labels, labels])
    assert model.family_scores_["stack"]["accuracy"] < 0.75  # the copies would tell


def test_a_zero_matrix_gives_class_frequencies():
    y = np.repeat([0, 1], [60, 20])
    model = automatic().fit(np.zeros((80, 80)), y)
    proba = model.predict_proba(np.zeros((3, 80)))
    np.testing.assert_allclose(proba[:, 1], 0.25, atol=0.02)
    regressor = SimilarityRegressor("precomputed", random_state=0).fit(np.zeros((80, 80)), y)
    np.testing.assert_allclose(regressor.predict(np.zeros((3, 80))), 0.25, atol=0.02)
    assert model.negative_spectrum_.verdict == "absent"


def test_duplicates(blobs):
    X, y = np.vstack([blobs[0]] * 2), np.concatenate([blobs[1]] * 2)
    assert SimilarityClassifier(random_state=0).fit(X, y).score(X, y) == 1.0


def test_constant_target(blobs):
    X, _ = blobs
    for value in (0.0, 7.0, -1e9):
        model = SimilarityRegressor(random_state=0).fit(X, np.full(90, value))
        np.testing.assert_allclose(model.predict(X[:5]), value)


@pytest.mark.parametrize("scale", [1e-6, 1e6, 1e12])
def test_scale_of_similarities_and_targets_does_not_matter(distances, blobs, scale):
    y = blobs[1]
    plain, scaled = automatic().fit(distances, y), automatic().fit(scale * distances, y)
    np.testing.assert_allclose(
        scaled.predict_proba(scale * distances), plain.predict_proba(distances), atol=1e-6
    )
    regressor = SimilarityRegressor("precomputed", random_state=0)
    first = clone(regressor).fit(distances, y).predict(distances)
    second = clone(regressor).fit(distances, scale * y).predict(distances)
    np.testing.assert_allclose(second / scale, first, atol=1e-8)


# ---- weights, folds, repeatability ------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [SimilarityClassifier, SimilarityRegressor])
def test_items_of_weight_zero_are_not_there(blobs, estimator):
    X, y = blobs
    weight = np.where(np.arange(90) % 4 == 0, 0.0, 1.0)
    kept = weight > 0.0
    K = TL1(4.0)(X)
    first = estimator("precomputed", random_state=0).fit(K, y, sample_weight=weight)
    second = estimator("precomputed", random_state=0).fit(K[np.ix_(kept, kept)], y[kept])
    np.testing.assert_allclose(first.predict(K), second.predict(K[:, kept]), rtol=1e-10)
    np.testing.assert_allclose(first.weights_, second.weights_, atol=1e-10)


def test_only_the_proportions_of_weights_matter(blobs):
    X, y = blobs
    weight = np.random.RandomState(1).uniform(0.5, 2.0, 90)
    model = SimilarityClassifier(random_state=0)
    first = clone(model).fit(X, y, sample_weight=weight).predict_proba(X)
    np.testing.assert_allclose(
        clone(model).fit(X, y, sample_weight=1e3 * weight).predict_proba(X), first, atol=1e-8
    )
    assert np.abs(first - clone(model).fit(X, y).predict_proba(X)).max() > 1e-3


def test_weights_pull_toward_heavy_items(blobs):
    X, y = blobs[0], (blobs[1] > 0).astype(int)
    heavy = SimilarityClassifier(random_state=0).fit(
        X, y, sample_weight=np.where(y == 1, 10.0, 1.0)
    )
    light = SimilarityClassifier(random_state=0).fit(X, y)
    assert heavy.predict_proba(X)[:, 1].mean() > light.predict_proba(X)[:, 1].mean() + 0.05


def test_the_seed_repeats_and_workers_change_nothing(blobs):
    X, y = blobs
    first = SimilarityClassifier(random_state=3).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(
        SimilarityClassifier(random_state=3).fit(X, y).predict_proba(X), first
    )
    np.testing.assert_allclose(
        SimilarityClassifier(random_state=3, n_jobs=2).fit(X, y).predict_proba(X), first, rtol=1e-10
    )
    assert (
        np.abs(SimilarityClassifier(random_state=4).fit(X, y).predict_proba(X) - first).max() > 1e-6
    )


def test_a_splitter_or_groups_may_choose_the_folds(blobs):
    X, y = blobs
    groups = np.arange(90) // 9
    splits = list(GroupKFold(5).split(X, y, groups))
    for cv in (KFold(4), splits):
        model = SimilarityClassifier(cv=cv).fit(X, y)
        assert model.out_of_fold_.prediction.shape == (90, 3)


def test_labels_are_only_names_and_order_does_not_matter(blobs):
    X, y = blobs
    model = SimilarityClassifier(cv=list(KFold(5).split(X)))
    proba = clone(model).fit(X, y).predict_proba(X)
    names = np.array(["z", "m", "a"])
    renamed = clone(model).fit(X, names[y])
    np.testing.assert_allclose(renamed.predict_proba(X)[:, ::-1], proba, atol=1e-8)
    order = np.random.RandomState(0).permutation(90)
    splits = [
        (np.argsort(order)[train], np.argsort(order)[test]) for train, test in KFold(5).split(X)
    ]
    permuted = SimilarityClassifier(cv=splits).fit(X[order], y[order])
    np.testing.assert_allclose(permuted.predict_proba(X), proba, atol=1e-7)


def test_pickling_and_float32(blobs):
    X, y = blobs
    model = SimilarityClassifier(random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-10)
    single = SimilarityClassifier(random_state=0).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(
        single.predict_proba(X.astype(np.float32)), model.predict_proba(X), atol=1e-2
    )


class _Recorder:
    """A callback that keeps the names of the tasks it saw, or interrupts."""

    def __init__(self, interrupt=False):
        self.seen, self.interrupt = [], interrupt

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.seen.append(context.task_name)
        if self.interrupt and len(self.seen) == 2:
            raise KeyboardInterrupt


@pytest.mark.usefixtures("callbacks")
def test_callbacks_see_every_fold(blobs):
    recorder = _Recorder()
    SimilarityClassifier(random_state=0).set_callbacks(recorder).fit(*blobs)
    assert recorder.seen.count("fold") == 5 and recorder.seen.count("members") == 1


@pytest.mark.usefixtures("callbacks")
def test_an_interrupted_fit_leaves_nothing_fitted(blobs):
    model = SimilarityClassifier(random_state=0).set_callbacks(_Recorder(interrupt=True))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*blobs)
    with pytest.raises(NotFittedError):
        model.predict(blobs[0])


# ---- what is learned ---------------------------------------------------------------------------------------------


def test_attributes_tell_the_story(blobs):
    model = SimilarityClassifier(TL1(4.0), random_state=0).fit(*blobs)
    assert np.isclose(model.weights_.sum(), 1.0) and model.weights_.min() >= 0.0
    assert len(model.members_) == len(model.weights_) == len(model.calibration_.slope)
    assert model.certificate_ <= 1e-8
    table = model.family_scores_
    families = {setting.family for setting in all_settings(default_families())}
    assert set(table) == {*families, "stack"} and len(families) == 10
    assert np.isclose(sum(row["weight"] for name, row in table.items() if name != "stack"), 1.0)
    for name, row in table.items():
        assert 0.3 < row["accuracy"] <= 1.0 and 0.0 < row["log_loss"] < 1.2, name
    hits = model.classes_[model.out_of_fold_.prediction.argmax(axis=1)] == blobs[1]
    assert np.isclose(table["stack"]["accuracy"], hits.mean())
    logs = model.decision_function(blobs[0])
    np.testing.assert_allclose(np.exp(logs), model.predict_proba(blobs[0]))


@pytest.mark.slow
def test_the_verdict_on_the_negative_spectrum():
    D, y = make_balls3d(120, random_state=0)  # the classes differ in the negative part only
    useful = automatic().fit(D, y).negative_spectrum_
    assert useful.verdict == "useful" and useful.z > 2.0 and "useful" in str(useful)
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    noise = np.random.RandomState(0).normal(size=(178, 178))
    harmful = automatic().fit(X @ X.T / 13.0 + 1.2 * (noise + noise.T), y).negative_spectrum_
    assert harmful.verdict == "harmful" and harmful.z < -2.0 and "is harmful" in str(harmful)
    assert automatic().fit(X @ X.T, y).negative_spectrum_.verdict == "absent"


def test_real_shapes_beat_single_recipes():
    shapes = load_digit_shapes(240)
    order = np.random.RandomState(0).permutation(240)
    train, test = order[:160], order[160:]
    model = automatic().fit(shapes.D[np.ix_(train, train)], shapes.target[train])
    score = model.score(shapes.D[np.ix_(test, train)], shapes.target[test])
    raw = SVC(kernel="precomputed").fit(shapes.K[np.ix_(train, train)], shapes.target[train])
    assert score > raw.score(shapes.K[np.ix_(test, train)], shapes.target[test])
    assert score > 0.85


def test_probabilities_are_calibrated():
    random = np.random.RandomState(0)
    X = random.normal(size=(600, 2))
    truth = 1.0 / (1.0 + np.exp(-2.0 * X[:, 0]))
    y = (random.uniform(size=600) < truth).astype(int)
    model = SimilarityClassifier(random_state=0).fit(X[:300], y[:300])
    proba = model.predict_proba(X[300:])[:, 1]
    assert log_loss(y[300:], proba) < log_loss(y[300:], truth[300:]) + 0.06
    for low in (0.0, 0.25, 0.5, 0.75):
        inside = (proba >= low) & (proba < low + 0.25)
        assert abs(proba[inside].mean() - truth[300:][inside].mean()) < 0.1


def test_regression_is_at_least_as_good_as_its_families():
    X, y = make_regression(200, 5, noise=5.0, random_state=0)
    X, y = X / 2.0, np.column_stack([y, np.sin(X[:, 0]) * 100.0])
    model = SimilarityRegressor(random_state=0).fit(X[:140], y[:140])
    assert model.predict(X[140:]).shape == (60, 2)
    assert model.score(X[140:], y[140:]) > 0.8
    table = model.family_scores_
    assert (
        table["stack"]["mse"]
        <= min(row["mse"] for name, row in table.items() if name != "stack") + 0.01
    )
    single = SimilarityRegressor(random_state=0).fit(X[:140], y[:140, 0])
    assert single.predict(X[140:]).shape == (60,) and single.out_of_fold_.prediction.shape == (140,)


def test_a_few_extreme_targets_do_not_spoil_the_others():
    X = np.random.RandomState(0).normal(size=(120, 3))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1]
    spoilt = y.copy()
    spoilt[[5, 40]] += 25.0 * y.std()
    plain, robust = (
        SimilarityRegressor(random_state=0).fit(X[:80], target[:80]) for target in (y, spoilt)
    )
    assert plain.n_fenced_ == 0 and robust.n_fenced_ == 2
    assert robust.score(X[80:], y[80:]) > plain.score(X[80:], y[80:]) - 0.15 > 0.6
    long_tail = np.exp(3.0 * np.sin(X[:, 0]))  # extreme and predictable: nothing is cut
    assert SimilarityRegressor(random_state=0).fit(X[:80], long_tail[:80]).n_fenced_ == 0


def test_local_sets(data_folder):
    protein = np.load(data_folder / "protein.npz")
    folds = KFold(5, shuffle=True, random_state=0)
    scores = cross_val_score(automatic(), protein["D"], protein["y"], cv=folds)
    assert scores.mean() > 0.97
    coil = np.load(data_folder / "coilyork_half.npz")
    with pytest.raises(ValueError, match="not symmetric"):
        automatic().fit(coil["D"], coil["y"])
    with pytest.warns(UserWarning, match="only one direction"):
        model = automatic(direction="mean").fit(coil["D"], coil["y"])
        assert model.score(coil["D_test"], coil["y_test"]) > 0.7


# ---- similarities as features, and the sparse machine -----------------------------------------------------------


def test_features_are_the_columns(blobs, distances):
    X, y = blobs
    np.testing.assert_allclose(SimilarityFeatures(TL1(4.0)).fit_transform(X), TL1(4.0)(X))
    some = SimilarityFeatures("precomputed", landmarks=7, random_state=0).fit(distances)
    np.testing.assert_array_equal(some.transform(distances[:5]), distances[:5, some.landmarks_])
    assert len(some.get_feature_names_out()) == 7
    assert len(SimilarityFeatures(landmarks=0.5).fit(X).landmarks_) == 45
    assert len(SimilarityFeatures(landmarks=500).fit(X).landmarks_) == 90
    vectors = SimilarityFeatures(
        Gaussian(2.0), landmarks=Landmarks(9, "kmeans"), random_state=0
    ).fit(X)
    np.testing.assert_allclose(vectors.transform(X), Gaussian(2.0)(X, X[vectors.landmarks_]))
    model = make_pipeline(SimilarityFeatures("precomputed"), LogisticRegression(max_iter=5000))
    assert model.fit(distances, y).score(distances, y) > 0.9
    for bad in (0, -1, 1.5, "many", True):
        with pytest.raises(ValueError, match="landmarks must be"):
            SimilarityFeatures(landmarks=bad).fit(X)
    words = SimilarityFeatures(lambda a, b: len(set(a) & set(b)), landmarks=2, random_state=0)
    assert words.fit(["cat", "dog", "cow"]).transform(["do", "at"]).shape == (2, 2)


def test_sparse_machine_estimator():
    X, y = load_iris(return_X_y=True)
    K = np.tanh(X @ X.T / 40.0 - 1.0)
    model = SimilaritySVC("precomputed", C=10.0).fit(K[::2, ::2], y[::2])
    assert model.score(K[1::2, ::2], y[1::2]) > 0.9
    assert len(model.support_) < 30 and model.certificate_ <= 1e-6
    assert model.dual_coef_.shape == (3, len(model.support_))
    direct = SimilaritySVC(lambda a, b: float(np.tanh(a @ b / 40.0 - 1.0)), C=10.0).fit(
        X[::2], y[::2]
    )
    np.testing.assert_allclose(
        direct.decision_function(X[1::2]), model.decision_function(K[1::2, ::2]), atol=1e-6
    )
    binary = SimilaritySVC("precomputed", C=100.0).fit(K[:100, :100], y[:100])
    assert binary.decision_function(K[:3, :100]).shape == (3,)
    assert binary.score(K[:100, :100], y[:100]) == 1.0


def test_sparse_machine_takes_asymmetric_weighted_and_degenerate_input():
    random = np.random.RandomState(0)
    K, y = random.normal(size=(30, 30)), np.arange(30) % 2
    assert SimilaritySVC("precomputed", C=100.0).fit(K, y).score(K, y) == 1.0
    machine = SimilaritySVC("precomputed")
    usual, small = (machine.fit(scale * K, y).decision_function(scale * K) for scale in (1.0, 1e-6))
    np.testing.assert_allclose(small, usual, atol=1e-6)
    weight = np.where(np.arange(30) < 10, 0.0, 1.0)
    dropped = SimilaritySVC("precomputed").fit(K, y, sample_weight=weight)
    alone = SimilaritySVC("precomputed").fit(K[10:, 10:], y[10:])
    np.testing.assert_allclose(
        dropped.decision_function(K), alone.decision_function(K[:, 10:]), atol=1e-8
    )
    assert dropped.support_.min() >= 10
    one = SimilaritySVC("precomputed").fit(K, np.full(30, "a"))
    assert list(one.predict(K[:2])) == ["a", "a"]
    with pytest.warns(UselessModelWarning, match="uses no training item"):
        nothing = machine.fit(np.zeros((30, 30)), (np.arange(30) < 20).astype(int))
    assert np.all(nothing.predict(np.zeros((4, 30))) == 1) and not nothing.dual_coef_.any()
    balanced = SimilaritySVC("precomputed", class_weight="balanced").fit(K, y)
    assert np.isfinite(balanced.intercept_).all()
    with pytest.raises(ValueError, match=r"C=0\.0 must be a positive number"):
        SimilaritySVC("precomputed", C=0.0).fit(K, y)


# ---- the display ------------------------------------------------------------------------------------------------


def test_scales_at_the_ends_of_floating_point_raise(blobs):
    X, _ = blobs
    D = np.abs(X[:, None] - X).sum(axis=2)
    model = SimilarityRegressor("precomputed", random_state=0)
    for unit in (1e200, 1e-200):
        with pytest.raises(
            ValueError, match=r"X has entries of size .*; divide them, and those of new items, by"
        ):
            model.fit(D * unit, X[:, 0])
        with pytest.raises(ValueError, match=r"y has entries of size .*; divide them"):
            model.fit(D, X[:, 0] * unit)


@pytest.mark.parametrize("direction", ["symmetric", "both"])
def test_new_items_at_the_ends_of_floating_point_raise(blobs, distances, direction):
    model = automatic(direction=direction).fit(distances[:60, :60], blobs[1][:60])
    new = distances[60:, :60].copy()
    new[3, 5] = 1e160
    with pytest.raises(ValueError, match=r"comparisons of size 1e\+160, which cannot be squared"):
        model.predict(new)


def test_display_shows_every_family(blobs):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from mercerless.inspection import StackDisplay

    for estimator in (SimilarityClassifier(random_state=0), SimilarityRegressor(random_state=0)):
        model = estimator.fit(*blobs)
        display = StackDisplay.from_estimator(model)
        left, right = display.axes_
        assert [label.get_text() for label in left.get_yticklabels()] == list(model.family_scores_)[
            :-1
        ]
        widths = [bar.get_width() for bar in right.patches]
        np.testing.assert_allclose(
            widths, [row["weight"] for row in model.family_scores_.values()][:-1]
        )
        assert left.get_title(loc="left") == model.negative_spectrum_.sentence
        plt.close(display.figure_)
    with pytest.raises(ValueError, match="is no stack"):
        StackDisplay.from_estimator(SVC().fit(*blobs))


@pytest.mark.parametrize("kind", ["distance", "dissimilarity"])
@pytest.mark.parametrize(
    "model", [SimilarityClassifier(), AsymmetricRidgeClassifier(), KreinEmbedding()]
)
def test_distances_without_the_word_precomputed_are_an_error(model, kind):
    """The kernel of features would be taken for a matrix of distances."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    D = np.abs(X[:, None] - X).sum(axis=2)
    y = X[:, 0] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # X looks like distances
        with pytest.raises(ValueError, match=r"contradicts the kernel Gaussian.*precomputed"):
            clone(model).set_params(kind=kind).fit(D, y)
    clone(model).set_params(kind=kind, kernel="precomputed").fit(D, y)
    by_function = clone(model).set_params(kind=kind, kernel=lambda a, b: np.abs(a - b).sum())
    by_function.fit(X, y)

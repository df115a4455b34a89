"""Reasons: shares of training items that add up to the score, by labels and by centers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercerless import (
    AsymmetricRidge,
    AsymmetricRidgeClassifier,
    KreinRidge,
    KreinRidgeClassifier,
    LABClassifier,
    LABRegressor,
    SimilarityClassifier,
    SimilarityRegressor,
)
from mercerless.core.reasons import pick
from mercerless.kernels import TL1, Gaussian
from mercerless.similarity.families import Comparisons, fit_members
from mercerless.similarity.solver import class_distances, nearest_of_classes

RNG = np.random.RandomState(0)
X = RNG.normal(size=(90, 3))
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=90)
THREE = np.digitize(NUMBERS, [-0.5, 0.5])
TWO = np.where(NUMBERS > 0, "b", "a")
TRAIN, NEW = slice(0, 60), slice(60, 90)
MODELS = {
    "krein": (KreinRidge(TL1(3.0), random_state=0), NUMBERS),
    "krein, classes": (KreinRidgeClassifier(TL1(3.0), random_state=0), THREE),
    "krein, two classes": (KreinRidgeClassifier(random_state=0), TWO),
    "krein, landmarks": (KreinRidge(TL1(3.0), landmarks=15, random_state=0), NUMBERS),
    "asymmetric": (AsymmetricRidge(side="mean"), NUMBERS),
    "asymmetric, two classes": (AsymmetricRidgeClassifier(), TWO),
    "stack": (SimilarityRegressor(TL1(3.0), random_state=0), NUMBERS),
    "stack, classes": (SimilarityClassifier(TL1(3.0), random_state=0), THREE),
    "stack, two classes": (SimilarityClassifier(random_state=0), TWO),
    "landmarks": (SimilarityRegressor(TL1(3.0), landmarks=15, random_state=0), NUMBERS),
    "landmarks, classes": (SimilarityClassifier(TL1(3.0), landmarks=15, random_state=0), THREE),
    "several": (SimilarityRegressor([TL1(3.0), Gaussian(1.0)], random_state=0), NUMBERS),
    "several, classes": (
        SimilarityClassifier({"tl1": TL1(3.0), "rbf": Gaussian(1.0)}, random_state=0),
        THREE,
    ),
    "several, landmarks": (
        SimilarityClassifier([TL1(3.0), Gaussian(2.0)], landmarks=20, random_state=0),
        TWO,
    ),
    "lab": (LABRegressor(8, max_iter=20, random_state=0), NUMBERS),
    "lab, classes": (LABClassifier(8, max_iter=20, random_state=0), THREE),
}


def score_of(model, rows):
    if not hasattr(model, "predict_proba"):
        return model.predict(rows)
    proba = np.sort(model.predict_proba(rows), axis=1)
    return np.log(proba[:, -1] / proba[:, -2])


@pytest.mark.parametrize("name", MODELS)
def test_shares_add_up_to_the_score(name):
    model, y = MODELS[name]
    reasons = model.fit(X[TRAIN], y[TRAIN]).explain(X[NEW], 3)
    assert_allclose(reasons.score, score_of(model, X[NEW]), rtol=1e-7, atol=1e-8)
    assert_allclose(
        reasons.base + reasons.shares.sum(axis=1) + reasons.rest,
        reasons.score,
        rtol=1e-10,
        atol=1e-10,
    )
    assert_allclose(
        reasons.base + sum(reasons.families.values()), reasons.score, rtol=1e-10, atol=1e-10
    )
    assert reasons.items.shape == reasons.shares.shape == (30, 6)
    assert np.all(reasons.shares[:, :3] >= 0) and np.all(reasons.shares[:, 3:] <= 0)
    assert np.all(reasons.shares[reasons.items < 0] == 0)
    if reasons.label is not None:
        assert_array_equal(reasons.label, model.predict(X[NEW]))
    assert all(words in reasons.text(0) for words in ("item", "without any item"))


@pytest.mark.parametrize("name", ["stack"])
def test_a_share_is_what_the_target_of_an_item_does(name):
    """By brute force: the same model with this item's target at the mean of all loses exactly its share."""
    model, y = MODELS[name]
    model.fit(X[TRAIN], y[TRAIN])
    reasons = model.explain(X[NEW], 60)
    row, item = 4, int(reasons.items[4, 0])
    if name == "stack":
        stack = model.stack_
        first = stack.members.families[0]
        targets = first.targets.copy()
        targets[item] = np.average(targets, axis=0, weights=first.weight)
        K = TL1(3.0)(X[TRAIN])
        diagonal = np.diagonal(K)
        members = fit_members(Comparisons.of(K), targets, stack.members.families, first.weight)
        k = TL1(3.0)(X[NEW][row : row + 1], X[TRAIN])
        scores = members.scores(Comparisons(k, np.diagonal(TL1(3.0)(X[NEW]))[:1], diagonal))
        without = float(
            (stack.average.weights @ scores[:, 0, 0]) * model.scale_[0] + model.mean_[0]
        )
    assert_allclose(reasons.score[row] - without, reasons.shares[row, 0], rtol=1e-6, atol=1e-8)


def test_a_copy_of_a_training_item_is_its_own_best_reason():
    model = SimilarityClassifier(random_state=0).fit(X[TRAIN], TWO[TRAIN])
    reasons = model.explain(X[TRAIN], 5)
    right = reasons.label == TWO[TRAIN]
    named = np.any(reasons.items[:, :5] == np.arange(60)[:, None], axis=1)
    assert named[right].mean() > 0.8
    assert_array_equal(
        reasons.given[0, reasons.items[0] >= 0], TWO[reasons.items[0][reasons.items[0] >= 0]]
    )


def test_a_precomputed_model_needs_its_matrix_again():
    K, L = Gaussian(1.5)(X[TRAIN]), Gaussian(1.5)(X[NEW], X[TRAIN])
    weight = np.repeat([1.0, 0.0], [50, 10])
    for cls, y in ((SimilarityClassifier, TWO),):
        options = {"random_state": 0}
        model = cls(kernel="precomputed", **options).fit(K, y[TRAIN], sample_weight=weight)
        with pytest.raises(ValueError, match="pass the matrix it was fitted on as train"):
            model.explain(L)
        with pytest.raises(ValueError, match="train has 3 items but the model was fitted on 60"):
            model.explain(L, train=np.eye(3))
        reasons = model.explain(L, train=K)
        vectors = cls(kernel=Gaussian(1.5), **options).fit(X[TRAIN], y[TRAIN], sample_weight=weight)
        same = vectors.explain(X[NEW])
        assert_allclose(reasons.shares, same.shares, rtol=1e-5, atol=1e-6)
        assert reasons.items.max() < 50
        assert_allclose(
            reasons.base + reasons.shares.sum(axis=1) + reasons.rest, reasons.score, atol=1e-10
        )


@pytest.mark.slow
def test_several_similarities_have_shares_each():
    """Log-odds of a geometric mean are the mean of log-odds; matrices are needed again."""
    kernels = {"tl1": TL1(3.0), "rbf": Gaussian(1.0)}
    weight = np.repeat([1.0, 0.0], [50, 10])
    for cls, y in ((SimilarityClassifier, TWO), (SimilarityRegressor, NUMBERS)):
        model = cls(kernels, random_state=0).fit(X[TRAIN], y[TRAIN], sample_weight=weight)
        reasons = model.explain(X[NEW], 4)
        assert [*reasons.families] == ["tl1", "rbf", "sum"] and reasons.items.max() < 50
        matrices = cls("precomputed", random_state=0)
        train = {name: kernel(X[TRAIN]) for name, kernel in kernels.items()}
        matrices.fit(train, y[TRAIN], sample_weight=weight)
        new = {name: kernel(X[NEW], X[TRAIN]) for name, kernel in kernels.items()}
        with pytest.raises(ValueError, match="pass the matrix it was fitted on as train"):
            matrices.explain(new)
        same = matrices.explain(new, 4, train=train)
        assert_allclose(same.shares, reasons.shares, rtol=1e-5, atol=1e-6)
        one = model.similarities_["rbf"].explain(X[NEW], 4)
        factor = model.weights_[1] * (model.stack_.mixture.temperature or 1.0)
        agree = slice(None) if one.label is None else (one.label == reasons.label)
        assert_allclose(
            (factor * (one.score - one.base))[agree],
            reasons.families["rbf"][agree],
            rtol=1e-6,
            atol=1e-8,
        )


@pytest.mark.parametrize("known", [True, False])
def test_landmarks_that_are_no_training_items_belong_to_the_base(known):
    places = np.arange(0, 60, 4) if known else np.arange(75, 90)
    C = TL1(3.0)(X, X[places])
    model = SimilarityClassifier("precomputed", kind="similarity", landmarks=15, random_state=0)
    reasons = model.fit(C[TRAIN], THREE[TRAIN]).explain(C[NEW], 3)
    assert_allclose(
        reasons.base + reasons.shares.sum(axis=1) + reasons.rest, reasons.score, atol=1e-10
    )
    assert_allclose(reasons.score, score_of(model, C[NEW]), rtol=1e-7, atol=1e-8)
    assert reasons.items.max() < 60
    assert_array_equal(model._basis_rows, places if known else np.full(15, -1))
    with pytest.raises(ValueError, match="train is for a model of all comparisons"):
        model.explain(C[NEW], train=np.eye(60))


def test_what_cannot_be_explained_is_said():
    with pytest.raises(ValueError, match="one output"):
        KreinRidge(random_state=0).fit(X, np.column_stack([NUMBERS, NUMBERS])).explain(X)
    with pytest.raises(ValueError, match="k=0 must be"):
        AsymmetricRidge().fit(X, NUMBERS).explain(X, 0)
    with pytest.raises(ValueError, match="one class only"):
        SimilarityClassifier().fit(X, np.zeros(90)).explain(X)


def test_pick_takes_the_strongest_of_either_sign():
    items, shares, rest = pick(
        np.array([[0.5, -2.0, 3.0, 0.0, -1.0], [1.0, 2.0, 3.0, 4.0, 5.0]]), 2
    )
    assert_array_equal(items, [[2, 0, 1, 4], [4, 3, -1, -1]])
    assert_allclose(shares, [[3.0, 0.5, -2.0, -1.0], [5.0, 4.0, 0.0, 0.0]])
    assert_allclose(rest, [0.0, 6.0])


@pytest.mark.parametrize("log", [False, True])
def test_nearest_of_classes_sums_to_class_distances(log):
    distances, labels = RNG.uniform(size=(7, 20)), RNG.randint(3, size=20)
    onehot = np.where(labels[:, None] == np.arange(3), 1.0, -1.0)
    parts = nearest_of_classes(distances, onehot, 3, log)
    expected = class_distances(distances, onehot, [3])[0]
    assert_allclose(
        parts @ (onehot > 0), np.log(np.maximum(expected, 1e-3)) if log else expected, rtol=1e-12
    )
    assert np.all((parts != 0).sum(axis=1) == 9)


def test_display_draws_all_shares():
    pytest.importorskip("matplotlib").use("Agg")
    from mercerless.inspection import ReasonsDisplay

    model = AsymmetricRidgeClassifier().fit(X[TRAIN], TWO[TRAIN])
    display = ReasonsDisplay.from_estimator(
        model, X[NEW], index=2, k=3, item_names=[f"row {i}" for i in range(60)]
    )
    reasons = model.explain(X[NEW], 3)
    assert_allclose(display.shares.sum(), reasons.score[2])
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels[0].startswith("row ") and labels[-1] == "without any item"
    assert "rather than" in display.ax_.get_title(loc="left")
    again = ReasonsDisplay.from_predictions(reasons, index=2, ax=display.ax_)
    assert again.ax_ is display.ax_ and again.figure_ is display.figure_
    with pytest.raises(ValueError, match="no explain"):
        ReasonsDisplay.from_estimator(object(), X)
    with pytest.raises(ValueError, match="index=99"):
        ReasonsDisplay.from_predictions(reasons, index=99)


@pytest.mark.parametrize("learner", [SimilarityClassifier, SimilarityRegressor])
def test_copies_do_not_shift_the_items_of_a_model_with_landmarks(learner):
    """With copies, the same items are named as with weights in their place."""
    copied = np.r_[3, 10, 41]
    places = np.sort(np.r_[np.arange(60), copied])
    is_first = np.r_[True, np.diff(places) > 0]
    first = np.flatnonzero(is_first)
    y = NUMBERS if learner is SimilarityRegressor else THREE
    options = {"kernel": Gaussian(1.0), "landmarks": 15, "random_state": 0}
    model = learner(**options).fit(X[places], y[places])
    weight = np.bincount(places)
    weighted = learner(**options).fit(X[TRAIN], y[TRAIN], sample_weight=weight)
    reasons = model.explain(X[NEW])
    expected = weighted.explain(X[NEW])
    assert_allclose(reasons.shares, expected.shares, atol=1e-8)
    assert_array_equal(reasons.items, np.where(expected.items < 0, -1, first[expected.items]))
    assert_array_equal(reasons.given == expected.given, True)

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
from mercerless.kernels import TL1, Gaussian

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
    "average": (SimilarityRegressor(TL1(3.0), random_state=0), NUMBERS),
    "average, classes": (SimilarityClassifier(TL1(3.0), random_state=0), THREE),
    "average, two classes": (SimilarityClassifier(random_state=0), TWO),
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
    again = {"train": X[TRAIN]} if "landmarks" in name and "krein" not in name else {}
    reasons = model.fit(X[TRAIN], y[TRAIN]).explain(X[NEW], 3, **again)
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


def test_a_copy_of_a_training_item_is_its_own_best_reason():
    model = SimilarityClassifier(random_state=0).fit(X[TRAIN], TWO[TRAIN])
    reasons = model.explain(X[TRAIN], 5)
    right = reasons.label == TWO[TRAIN]
    named = np.any(reasons.items[:, :5] == np.arange(60)[:, None], axis=1)
    assert named[right].mean() > 0.8
    assert_array_equal(
        reasons.given[0, reasons.items[0] >= 0], TWO[reasons.items[0][reasons.items[0] >= 0]]
    )


def test_what_cannot_be_explained_is_said():
    with pytest.raises(ValueError, match="one output"):
        KreinRidge(random_state=0).fit(X, np.column_stack([NUMBERS, NUMBERS])).explain(X)
    with pytest.raises(ValueError, match="k=0 must be"):
        AsymmetricRidge().fit(X, NUMBERS).explain(X, 0)


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


@pytest.mark.parametrize("options", [{}, {"landmarks": np.arange(0, 60, 4)}])
def test_a_precomputed_model_needs_its_matrix_again(options):
    K = TL1(3.0)(X)
    model = SimilarityClassifier("precomputed", **options).fit(K[TRAIN, TRAIN], THREE[TRAIN])
    with pytest.raises(ValueError, match="as train"):
        model.explain(K[NEW, TRAIN])
    reasons = model.explain(K[NEW, TRAIN], 4, train=K[TRAIN, TRAIN])
    assert_allclose(reasons.score, score_of(model, K[NEW, TRAIN]), rtol=1e-6, atol=1e-7)
    total = reasons.base + reasons.shares.sum(axis=1) + reasons.rest
    assert_allclose(total, reasons.score, atol=1e-9)
    assert reasons.items.max() < 60


def test_a_share_is_what_the_target_of_an_item_does():
    """The same weights on members with this item's target at the mean lose exactly its share."""
    model = SimilarityRegressor(TL1(3.0)).fit(X[TRAIN], NUMBERS[TRAIN])
    reasons = model.explain(X[NEW], 60)
    row, item = 4, int(reasons.items[4, 0])
    blocks, _ = model._training_blocks(X[TRAIN], np.ones(60))
    new = next(model._compared(X[NEW]))[""]
    targets = model.families_.targets
    without = targets.Y.copy()
    without[item] = targets.Y.mean(axis=0)
    scores = [family.fit(blocks[""], without).scores(new) for _, family in model.families_.members]
    prediction = targets.in_units(model.families_.average(np.concatenate(scores)))
    assert_allclose(reasons.score[row] - prediction[row], reasons.shares[row, 0], rtol=1e-4)


def test_several_similarities_have_shares_each():
    kernels = {"tl1": TL1(3.0), "rbf": Gaussian(1.0)}
    weight = np.repeat([1.0, 0.0], [50, 10])
    model = SimilarityClassifier(kernels).fit(X[TRAIN], TWO[TRAIN], sample_weight=weight)
    reasons = model.explain(X[NEW], 4)
    assert {name.split(":")[0] for name in reasons.families} <= {"tl1", "rbf", "sum"}
    assert_allclose(sum(reasons.families.values()), reasons.score - reasons.base, atol=1e-9)
    assert reasons.items.max() < 50
    train = {name: kernel(X[TRAIN]) for name, kernel in kernels.items()}
    new = {name: kernel(X[NEW], X[TRAIN]) for name, kernel in kernels.items()}
    matrices = SimilarityClassifier("precomputed").fit(train, TWO[TRAIN], sample_weight=weight)
    again = matrices.explain(new, 4, diag={"tl1": TL1(3.0).diag(X[NEW])}, train=train)
    assert_allclose(again.shares, reasons.shares, atol=1e-6)

"""Several labels per item, and weights of classes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import KFold

from mercerless import SimilarityClassifier
from mercerless.core import folds as folds_module
from mercerless.similarity import families

pytestmark = pytest.mark.filterwarnings("ignore:.*is worse than a constant")

X, Y = make_multilabel_classification(
    160, n_features=8, n_classes=4, n_labels=2, allow_unlabeled=True, random_state=3
)
D = cdist(X, X)
TRAIN, NEW = np.arange(120), np.arange(120, 160)


def model(**options):
    return SimilarityClassifier(kernel="precomputed", random_state=0, **options)


@pytest.fixture(scope="module")
def fitted():
    return model().fit(D[:120, :120], Y[:120])


def test_better_than_frequencies(fitted):
    proba = fitted.predict_proba(D[120:, :120])
    assert proba.shape == (40, 4)
    brier = ((proba - Y[120:]) ** 2).mean()
    assert brier < 0.85 * ((Y[:120].mean(axis=0) - Y[120:]) ** 2).mean()
    predicted = fitted.predict(D[120:, :120])
    assert predicted.dtype.kind == "i"
    assert_array_equal(predicted, proba > 0.5)
    odds = fitted.decision_function(D[120:, :120])
    assert_allclose(1 / (1 + np.exp(-odds)), proba, rtol=1e-9)
    held = fitted.out_of_fold_
    assert_array_equal(held.target, Y[:120])
    assert ((held.prediction - held.target) ** 2).mean() < 0.2
    assert fitted.weights_.shape == (4, len(fitted.members_))
    assert_allclose(fitted.weights_.sum(axis=1), 1.0)
    assert set(fitted.family_scores_["stack"]) == {"accuracy", "log_loss", "weight"}


@pytest.mark.parametrize("n", [120, 90])
def test_equal_to_one_model_per_label(n):
    """With the same folds all choices are those of a model of the label alone, logistic families included."""
    cv = list(KFold(4, shuffle=True, random_state=1).split(D[:n]))
    together = model(cv=cv).fit(D[:n, :n], Y[:n])
    proba = together.predict_proba(D[120:, :n])
    for label in range(4):
        alone = model(cv=cv).fit(D[:n, :n], Y[:n, label])
        assert_allclose(proba[:, label], alone.predict_proba(D[120:, :n])[:, 1], atol=1e-9)
        held = together.out_of_fold_.prediction[:, label]
        assert_allclose(held, alone.out_of_fold_.prediction[:, 1], atol=1e-9)


@pytest.mark.parametrize("n_labels", [2, 4])
def test_one_decomposition_per_fold(n_labels, monkeypatch):
    """However many labels there are."""
    calls = []
    solve = families.spectral_path

    def spy(*args, **kwargs):
        calls.append(1)
        return solve(*args, **kwargs)

    monkeypatch.setattr(families, "spectral_path", spy)
    model().fit(D[:60, :60], Y[:60, :n_labels])
    assert len(calls) == 6


def test_combinations_of_labels_are_dealt_evenly(monkeypatch):
    seen = []
    original = folds_module.assign_folds

    def spy(n_folds, n, *, labels=None, **options):
        seen.append(labels)
        return original(n_folds, n, labels=labels, **options)

    monkeypatch.setattr(folds_module, "assign_folds", spy)
    model().fit(D[:60, :60], Y[:60])
    codes = seen[0]
    same = (Y[:60, None] == Y[:60]).all(axis=2)
    assert_array_equal(codes[:, None] == codes, same)
    assert seen[1] is None  # the blocks know nothing of the labels


def test_frames_sparse_labels_weights_and_groups():
    pd = pytest.importorskip("pandas")
    plain = model().fit(D[:60, :60], Y[:60]).predict_proba(D[120:, :60])
    sparse = model().fit(D[:60, :60], csr_array(Y[:60]))
    assert_array_equal(sparse.predict_proba(D[120:, :60]), plain)
    frame = model().fit(D[:60, :60], pd.DataFrame(Y[:60], columns=list("abcd")))
    assert_array_equal(frame.predict_proba(D[120:, :60]), plain)
    weight = (np.arange(60) < 50).astype(float)
    groups = np.arange(60) // 2
    weighted = model().fit(D[:60, :60], Y[:60], weight, groups).predict_proba(D[120:, :60])
    removed = model().fit(D[:50, :50], Y[:50], groups=groups[:50]).predict_proba(D[120:, :50])
    assert_allclose(weighted, removed, atol=1e-9)


def test_a_label_that_nobody_or_everybody_has():
    y = Y[:80].copy()
    y[:, 0] = 0
    y[:, 1] = 1
    proba = model().fit(D[:80, :80], y).predict_proba(D[120:, :80])
    assert np.all(proba[:, 0] < 0.05)
    assert np.all(proba[:, 1] > 0.95)


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({}, Y + 1, "must hold 0 and 1 only"),
        ({}, np.where(Y > 0, "a", "b"), "must hold 0 and 1 only"),
        ({}, np.where(Y > 0, 1.0, np.nan), "must hold 0 and 1 only"),
        ({"class_weight": "balanced"}, Y, "class_weight is for one label per item"),
        ({"landmarks": 30}, Y, "need all comparisons"),
        ({"direction": "both"}, Y, "take one similarity"),
    ],
)
def test_bad_input_says_what_to_do(options, y, message):
    with pytest.raises(ValueError, match=message) as error:
        model(**options).fit(D, y)
    assert "one model per column" in str(error.value)


def test_what_takes_one_label_says_so(fitted):
    new = D[120:, :120]
    for call in (
        lambda: fitted.predict_set(new),
        lambda: fitted.suspects_,
        lambda: fitted.explain(new),
        lambda: fitted.sparsify(20, D[:120, :120], Y[:120]),
    ):
        with pytest.raises(ValueError, match="one label per item; fit one model per column of y"):
            call()


class TestClassWeight:
    y = (X[:, 0] + 2 * np.random.RandomState(0).normal(size=160) > 9).astype(int)

    def test_weights_multiply(self):
        y = self.y[:120]
        factors = np.where(y == 1, 3.0, 1.0)
        by_class = model(class_weight={0: 1.0, 1: 3.0}).fit(D[:120, :120], y)
        by_item = model().fit(D[:120, :120], y, factors)
        new = D[120:, :120]
        assert_array_equal(by_class.predict_proba(new), by_item.predict_proba(new))
        twice = model(class_weight={0: 1.0, 1: 3.0}).fit(D[:120, :120], y, factors)
        ninefold = model().fit(D[:120, :120], y, factors**2)
        assert_array_equal(twice.predict_proba(new), ninefold.predict_proba(new))

    def test_balanced_finds_more_of_the_rare_class(self):
        y = self.y
        assert 0.05 < y.mean() < 0.4
        plain = model().fit(D, y).predict(D)
        balanced = model(class_weight="balanced").fit(D, y).predict(D)
        assert balanced.sum() > plain.sum()

    def test_bad_weights_are_refused(self):
        with pytest.raises(ValueError, match="class_weight"):
            model(class_weight="heavy").fit(D, self.y)


def test_out_of_fold_of_labels_are_not_their_own():
    """Flipping one label of the items of one fold and block changes nothing predicted for other labels."""
    cv = [(np.flatnonzero(np.arange(60) % 3 != k), np.arange(60)[k::3]) for k in range(3)]
    y = Y[:60].copy()
    before = model(cv=cv).fit(D[:60, :60], y).out_of_fold_.prediction
    y[:, 0] = 1 - y[:, 0]
    after = model(cv=cv).fit(D[:60, :60], y).out_of_fold_.prediction
    assert_allclose(after[:, 1:], before[:, 1:], atol=1e-9)
    assert_allclose(after[:, 0], 1 - before[:, 0], atol=1e-6)

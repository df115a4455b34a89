"""Three copies of every row: each family that validates itself keeps them on one side of a fold."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF

from mercerless import (
    AsymmetricRidgeClassifier,
    DANKClassifier,
    GradientSearch,
    HyperRidge,
    KreinRidge,
    KreinRidgeClassifier,
    SimilarityClassifier,
    SimilarityRegressor,
)
from mercerless.core.copies import gather_copies, near_copies
from mercerless.kernels import Gaussian

RANDOM = np.random.RandomState(0)
X = RANDOM.normal(size=(360, 3))
F = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
Y = F + 0.5 * RANDOM.normal(size=360)
LABELS = (Y > 0).astype(int)
ONCE, THRICE, TEST = np.arange(60), np.tile(np.arange(60), 3), np.arange(60, 360)


def matrices(rows):
    return RBF()(X[rows]), RBF()(X[TEST], X[rows])


@pytest.mark.parametrize("precomputed", [False, True])
def test_krein_chooses_the_same_strength(precomputed):
    """With copies on both sides the error of the weakest penalty is nearly zero, and it is chosen."""
    errors, scores = [], []
    for rows in (ONCE, THRICE):
        train, test = matrices(rows) if precomputed else (X[rows], X[TEST])
        model = KreinRidge("precomputed" if precomputed else Gaussian(1.0), random_state=0).fit(
            train, Y[rows]
        )
        errors.append(model.cv_results_["error"].min())
        scores.append(model.score(test, Y[TEST]))
    assert errors[1] > 0.7 * errors[0]
    assert scores[1] > scores[0] - 0.1


def test_krein_classifier_stays_modest():
    """Noisy labels: probabilities learned from copies would be near 0 and 1."""
    models = [
        KreinRidgeClassifier(Gaussian(1.0), random_state=0).fit(X[rows], LABELS[rows])
        for rows in (ONCE, THRICE)
    ]
    extreme = [np.mean(np.abs(model.predict_proba(X[TEST])[:, 1] - 0.5)) for model in models]
    assert extreme[1] < extreme[0] + 0.12
    assert models[1].score(X[TEST], LABELS[TEST]) > models[0].score(X[TEST], LABELS[TEST]) - 0.05


@pytest.mark.parametrize("learner", [SimilarityClassifier, SimilarityRegressor])
def test_similarity(learner):
    y, scores = (LABELS if learner is SimilarityClassifier else Y), []
    for rows in (ONCE, THRICE):
        train, test = matrices(rows)
        scores.append(
            learner(kernel="precomputed", random_state=0).fit(train, y[rows]).score(test, y[TEST])
        )
    assert scores[1] > scores[0] - 0.06


@pytest.mark.slow
def test_dank_search_stays_modest():
    """Noisy labels: held-out copies of training rows would be known by heart, and the loss near zero."""
    losses = []
    for rows in (ONCE, THRICE):
        model = DANKClassifier(Gaussian(1.0), search=GradientSearch(0, 2), random_state=0).fit(
            X[rows], LABELS[rows]
        )
        losses.append(min(model.tuning_.losses))
    assert losses[1] > 0.8 * losses[0]


@pytest.mark.slow
def test_hyper_errors_are_honest():
    """Noisy similarities: copies on both sides would have been learned by heart."""
    errors = []
    for rows in (ONCE[:30], np.tile(ONCE[:30], 3)):
        model = HyperRidge(landmarks=60, random_state=0).fit(X[rows], LABELS[rows])
        errors.append(min(row["error"] for row in model.cv_results_))
    assert errors[1] > 0.8 * errors[0]


def jittered(n_items, n_copies, scale, n_columns=4, seed=0):
    random = np.random.RandomState(seed)
    items = np.repeat(random.normal(size=(n_items, n_columns)), n_copies, axis=0)
    return items + scale * random.normal(size=items.shape)


@pytest.mark.parametrize("n_copies", [2, 3, 8])
@pytest.mark.parametrize("scale", [1e-6, 0.005])
def test_near_copies_are_sets(n_copies, scale):
    X = jittered(60, n_copies, scale) * [1e6, 1.0, 1e-3, 1.0] + [0, 1e3, 0, 0]
    assert_array_equal(near_copies(X), np.repeat(np.arange(60), n_copies))


def test_near_copies_of_some_rows():
    X = np.vstack([jittered(20, 3, 1e-4), RANDOM.normal(size=(60, 4))])
    sets = near_copies(X)
    assert_array_equal(sets[:60], np.repeat(sets[:60:3], 3))
    assert len(np.unique(sets)) == 80
    few = np.vstack([jittered(3, 2, 1e-4), RANDOM.normal(size=(94, 4))])
    assert near_copies(few) is None


def test_two_columns_are_too_few_to_tell_near_copies_from_chance():
    X = jittered(60, 3, 1e-4)
    assert near_copies(X[:, :3]) is not None
    assert near_copies(X[:, :2]) is None
    rounded = X.copy()
    rounded[:, 2:] = np.round(X[:, 2:])
    assert near_copies(rounded) is None


def test_near_copies_with_categories_and_gaps():
    X = jittered(60, 3, 1e-4)
    color = np.repeat(np.arange(60) % 3, 3)
    sets = near_copies(np.column_stack([color, X]), categories=[0])
    assert_array_equal(sets, np.repeat(np.arange(60), 3))
    # rows of other categories are not copies, whatever their numbers
    differing = np.tile([0, 1, 2], 60)
    assert near_copies(np.column_stack([differing, X]), categories=[0]) is None
    X[:9, 1] = np.nan
    assert_array_equal(near_copies(X), np.repeat(np.arange(60), 3))


def ordinary_tables():
    random = np.random.RandomState(3)
    normal = random.normal(size=(400, 5))
    yield "normal", normal, ()
    yield "heavy tails", random.standard_t(1.5, size=(400, 5)), ()
    yield "grid", np.stack(np.meshgrid(*[np.arange(8.0)] * 3), axis=-1).reshape(-1, 3), ()
    yield "integers", random.randint(0, 9, size=(400, 6)).astype(float), ()
    yield "categories", random.randint(0, 3, size=(400, 6)).astype(float), range(6)
    codes = random.randint(0, 4, size=(400, 3))
    yield "categories and a number", np.column_stack([codes, normal[:, 0]]), range(3)
    yield "categories and numbers", np.column_stack([codes, normal[:, :3]]), range(3)
    time = np.linspace(0, 20, 400)
    yield "a path", np.column_stack([np.sin(time), np.cos(time), time, np.sin(3 * time)]), ()
    centers = np.repeat(10 * random.normal(size=(5, 5)), 80, axis=0)
    yield "clusters", centers + normal, ()
    binary = random.randint(0, 2, size=(400, 5)).astype(float)
    yield "0/1 and one value", np.column_stack([binary, normal[:, 0]]), ()
    one_line = normal[:, :1] * [1.0, 2.0, 3.0]
    yield "0/1 and one value thrice", np.column_stack([binary[:, :4], one_line]), ()


@pytest.mark.parametrize("table", list(ordinary_tables()), ids=lambda table: table[0])
def test_ordinary_tables_have_no_near_copies(table):
    _, X, categories = table
    assert near_copies(X, categories) is None


def test_equal_rows_with_other_columns_are_no_copies_of_a_directed_matrix():
    K = np.random.RandomState(0).normal(size=(20, 20))
    K[3] = K[7]
    ones, y = np.ones(20), np.zeros(20)
    assert_array_equal(gather_copies(K, ones, y, precomputed=True).weight, ones)
    K[:, 3] = K[:, 7]
    K[3, 3] = K[7, 7] = K[3, 7] = K[7, 3]
    gathered = gather_copies(K, ones, y, precomputed=True)
    assert gathered.weight[3] == 2.0 and gathered.weight[7] == 0.0 and gathered.first[7] == 3


def test_equal_items_of_a_table_of_categories_keep_their_weight():
    """Four distinct rows, each with both targets: no copies, unless the machine has no folds."""
    items = np.arange(4.0).repeat(10)[:, None]
    target = np.tile([0, 1], 20)
    weight = np.linspace(1.0, 2.0, 40)
    assert_array_equal(gather_copies(items, weight, target, fewest=10).weight, weight)
    gathered = gather_copies(items, weight, target)
    assert np.count_nonzero(gathered.weight) == 8
    assert_allclose(gathered.weight.sum(), weight.sum())


@pytest.mark.parametrize("learner", [AsymmetricRidgeClassifier, KreinRidgeClassifier])
def test_a_table_of_four_cells_can_be_learned(learner):
    """Cells that are held out with all their rows could not be: the others say the opposite."""
    cells = np.random.RandomState(0).choice(2, (200, 2)).astype(float)
    labels = (cells[:, 0] != cells[:, 1]).astype(int)
    model = learner(random_state=0).fit(cells, labels)
    assert model.predict_proba(cells)[np.arange(200), labels].min() > 0.95


def test_folds_of_the_user_keep_their_rows():
    """A splitter that holds copies out in different folds decides so itself."""
    rows = np.tile(ONCE, 2)
    splits = [(np.arange(60, 120), np.arange(60)), (np.arange(60), np.arange(60, 120))]
    model = KreinRidge(Gaussian(1.0), cv=splits, random_state=0).fit(X[rows], Y[rows])
    assert len(model.X_fit_) == 120
    assert model.cv_results_["error"].min() < 0.05

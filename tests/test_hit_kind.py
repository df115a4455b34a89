"""Whether hits are similarities or distances: graphs of both kinds, and what must raise."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph, radius_neighbors_graph
from sklearn.preprocessing import StandardScaler

from mercerless import HitsClassifier, HitsRegressor
from mercerless.similarity.hit_kind import kind_of_hits, trend_with_common_hits

TABLES = {
    "digits": load_digits(return_X_y=True)[0][:500],
    "iris": load_iris().data,
    "wine": StandardScaler().fit_transform(load_wine().data),
    "cancer": StandardScaler().fit_transform(load_breast_cancer().data),
}


def cosines(X, threshold):
    rows = X - X.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    values = rows @ rows.T
    return csr_array(np.where(values > threshold, values, 0.0))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("number", [5, 15])
def test_distances_of_nearest_neighbors(name, number):
    graph = csr_array(kneighbors_graph(TABLES[name], number, mode="distance"))
    with pytest.warns(UserWarning, match="taken as distances; set kind='distance'"):
        assert kind_of_hits(graph, "auto") == "distance"


@pytest.mark.parametrize("name", TABLES)
def test_distances_with_a_diagonal_need_no_warning(name):
    within = KNeighborsTransformer(mode="distance", n_neighbors=8)
    assert kind_of_hits(csr_array(within.fit_transform(TABLES[name])), "auto") == "distance"


@pytest.mark.parametrize("name", TABLES)
def test_distances_within_a_radius(name):
    X = TABLES[name]
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    radius = float(np.quantile(distances, 0.1))
    graph = csr_array(radius_neighbors_graph(X, radius, mode="distance"))
    with pytest.warns(UserWarning, match="kind='similarity'"):
        assert kind_of_hits(graph, "auto") == "distance"


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("with_diagonal", [True, False])
def test_cosines_are_similarities(name, with_diagonal):
    graph = cosines(TABLES[name], 0.4)
    if not with_diagonal:
        graph.setdiag(0.0)  # which stores zeros
    assert kind_of_hits(graph, "auto") == "similarity"


def test_links_and_scores_without_a_trend_are_similarities():
    rng = np.random.default_rng(0)
    links = csr_array((rng.uniform(size=(300, 300)) < 0.1).astype(float))
    links.setdiag(0.0)
    assert kind_of_hits(links, "auto") == "similarity"
    scores = csr_array((rng.uniform(50.0, 300.0, links.nnz), links.indices, links.indptr))
    scores.setdiag(400.0)
    assert kind_of_hits(scores, "auto") == "similarity"


def test_the_trend_against_a_dense_formula():
    graph = csr_array(kneighbors_graph(TABLES["iris"], 6, mode="distance"))
    D = graph.toarray()
    A = (D > 0.0).astype(float)
    common = A @ A.T / np.sqrt(A.sum(axis=1))
    signs = []
    for values, shares, is_hit in zip(D, common, A > 0.0):
        first, second = np.triu_indices(is_hit.sum(), 1)
        order = np.sign(values[is_hit][first] - values[is_hit][second])
        signs.append(np.mean(order * np.sign(shares[is_hit][first] - shares[is_hit][second])))
    assert np.sign(np.mean(signs)) == trend_with_common_hits(graph) == -1
    turned = csr_array((1.0 / (1.0 + graph.data), graph.indices, graph.indptr), graph.shape)
    assert trend_with_common_hits(turned) == 1


def test_what_contradicts_itself_raises():
    rng = np.random.default_rng(0)
    values = rng.uniform(1.0, 2.0, size=(200, 200)) * (rng.uniform(size=(200, 200)) < 0.1)
    undecided = csr_array(values)
    undecided.setdiag(0.0)
    with pytest.raises(ValueError, match="diagonal was removed; set kind='distance'"):
        kind_of_hits(undecided, "auto")
    contrary = csr_array(kneighbors_graph(TABLES["iris"], 10, mode="distance"))
    contrary.setdiag(100.0)
    with pytest.raises(ValueError, match="set kind='similarity' or kind='distance'"):
        kind_of_hits(contrary, "auto")
    assert kind_of_hits(undecided, "similarity") == "similarity"
    assert kind_of_hits(contrary, "distance") == "distance"


@pytest.mark.parametrize("learner", [HitsClassifier, HitsRegressor])
def test_inferred_distances_are_learned_as_given_ones(learner):
    X, y = load_iris(return_X_y=True)
    graph = kneighbors_graph(X, 8, mode="distance")
    given = learner(kind="distance", random_state=0).fit(graph, y)
    with pytest.warns(UserWarning, match="taken as distances"):
        inferred = learner(random_state=0).fit(graph, y)
    assert inferred.kind_ == "distance"
    assert np.array_equal(inferred.out_of_fold_.prediction, given.out_of_fold_.prediction)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert learner(kind="similarity", random_state=0).fit(graph, y).kind_ == "similarity"

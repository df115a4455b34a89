"""Several similarities of the same items: weights over their stacks, the sum, inputs and errors."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import cross_val_score

from mercerless import SimilarityClassifier, SimilarityRegressor
from mercerless.core.averaging_old import mix
from mercerless.kernels import TL1, Gaussian

N = 90


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(120, 6, n_informative=5, n_redundant=0, n_classes=3, random_state=0)
    random = np.random.default_rng(0)
    noise = np.abs(random.normal(size=(120, 120)))
    noise = noise + noise.T
    np.fill_diagonal(noise, 0.0)
    matrices = {
        "first": np.abs(X[:, None, :3] - X[None, :, :3]).sum(axis=2),
        "second": np.abs(X[:, None, 3:] - X[None, :, 3:]).sum(axis=2),
        "noise": noise,
    }
    return X, y, matrices


def part(matrices, rows, columns=slice(0, N)):
    return {name: D[rows, columns] for name, D in matrices.items()}


@pytest.fixture(scope="module")
def model(data):
    _, y, matrices = data
    return SimilarityClassifier("precomputed", random_state=0).fit(
        part(matrices, slice(0, N)), y[:N]
    )


def test_weights_say_which_similarity_is_worth_computing(data, model):
    _, y, matrices = data
    scores = model.similarity_scores_
    assert list(scores) == ["first", "second", "noise", "sum", "stack"]
    np.testing.assert_allclose(model.weights_.sum(), 1.0)
    assert (
        scores["noise"]["weight"] < 0.2
        and scores["noise"]["log_loss"] > scores["first"]["log_loss"]
    )
    assert scores["stack"]["log_loss"] <= min(row["log_loss"] for row in scores.values()) + 0.02
    new = part(matrices, slice(N, None))
    single = {name: model.similarities_[name].score(new[name], y[N:]) for name in matrices}
    assert model.score(new, y[N:]) > max(single.values()) - 0.05
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1.0)
    assert model.out_of_fold_.prediction.shape == (N, 3)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))


def test_a_list_equals_a_dict_in_any_order_and_in_any_units(data, model):
    _, y, matrices = data
    expected = model.predict_proba(part(matrices, slice(N, None)))
    names = list(matrices)
    rows, new = (
        list(part(matrices, part_of).values()) for part_of in (slice(0, N), slice(N, None))
    )
    listed = SimilarityClassifier("precomputed", random_state=0).fit(rows, y[:N])
    np.testing.assert_allclose(listed.predict_proba(new), expected, atol=1e-10)
    units = {"noise": 1.0, "second": 300.0, "first": 0.01}
    turned = {name: unit * matrices[name] for name, unit in units.items()}
    other = SimilarityClassifier("precomputed", random_state=0).fit(
        part(turned, slice(0, N)), y[:N]
    )
    # the sum of squared distances is that of distances in units of their own
    np.testing.assert_allclose(
        other.predict_proba(part(turned, slice(N, None))), expected, atol=1e-6
    )
    assert names == ["first", "second", "noise"]


@pytest.mark.slow
def test_kernels_and_functions_of_the_same_items(data):
    X, y, _ = data
    kernels = {
        "tl1": TL1(9.0),
        "gaussian": Gaussian(2.0),
        "function": lambda a, b: float(np.abs(a - b).max()),
    }
    model = SimilarityClassifier(kernels, cv=3, random_state=0).fit(X[:N], y[:N])
    given = {name: model.similarities_[name].kernel_ for name in kernels}
    matrices = {name: kernel(X[:N]) for name, kernel in given.items()}
    other = SimilarityClassifier("precomputed", cv=3, random_state=0).fit(matrices, y[:N])
    new = {name: kernel(X[N:], X[:N]) for name, kernel in given.items()}
    np.testing.assert_allclose(other.predict_proba(new), model.predict_proba(X[N:]), atol=1e-8)
    assert model.similarities_["function"].kind_ == "distance"
    scores = cross_val_score(
        SimilarityClassifier([TL1(9.0), Gaussian(2.0)], cv=3, random_state=0), X, y, cv=3
    )
    assert scores.mean() > 0.5


@pytest.mark.slow
def test_numbers_and_landmarks(data):
    X, _, matrices = data
    y = X[:, 0] + X[:, 4]
    model = SimilarityRegressor("precomputed", random_state=0).fit(
        part(matrices, slice(0, N)), y[:N]
    )
    assert model.score(part(matrices, slice(N, None)), y[N:]) > 0.5
    assert model.similarity_scores_["stack"]["r2"] > 0.5
    kernels = [TL1(9.0), Gaussian(2.0)]
    few = SimilarityRegressor(kernels, landmarks=30, random_state=0).fit(X[:N], y[:N])
    first, second = few.similarities_.values()
    np.testing.assert_array_equal(first.landmarks_, second.landmarks_)
    assert len(first.landmarks_) == 30 and few.score(X[N:], y[N:]) > 0.5


def test_given_comparisons_with_landmarks(data):
    _, y, matrices = data
    del (matrices := dict(matrices))["noise"]
    rows = np.array([7, 80, 3, *range(20, 37)])
    few = {name: D[:, rows] for name, D in matrices.items()}
    train, new = part(few, slice(0, N), slice(None)), part(few, slice(N, None), slice(None))
    found, told = (
        SimilarityClassifier("precomputed", landmarks=wanted, random_state=0).fit(train, y[:N])
        for wanted in (20, rows)
    )
    np.testing.assert_array_equal(found.predict_proba(new), told.predict_proba(new))
    foreign = {name: D[:N, N : N + 20] for name, D in matrices.items()}
    with pytest.raises(
        ValueError, match=r"'first': not all columns are found among the rows; name them in"
    ):
        SimilarityClassifier("precomputed", kind="distance", landmarks=20).fit(foreign, y[:N])


def test_bad_input_is_named(data, model):
    _, y, matrices = data
    auto = SimilarityClassifier("precomputed", random_state=0)
    rows, new = part(matrices, slice(0, N)), part(matrices, slice(N, None))
    with pytest.raises(
        ValueError, match=r"disagree in size: 'second' has 80 items but y has 90 labels"
    ):
        auto.fit(rows | {"second": rows["second"][:80, :80]}, y[:N])
    with pytest.raises(
        ValueError, match=r"Similarity 'second' is missing from X, which has 'first', 'noise'"
    ):
        model.predict({"first": new["first"], "noise": new["noise"]})
    with pytest.raises(ValueError, match=r"X has 2 matrices but there are 3 similarities"):
        model.predict([new["first"], new["noise"]])
    with pytest.raises(ValueError, match=r"X is one matrix but there are 3 similarities"):
        model.predict(new["first"])
    with pytest.raises(
        ValueError, match=r"disagree in size: 'second' has 10 new items, those before 30"
    ):
        model.predict(new | {"second": new["second"][:10]})
    broken = rows["first"].copy()
    broken[3, 4] = np.inf
    with pytest.raises(ValueError, match=r"Similarity 'first':.*infinite"):
        auto.fit(rows | {"first": broken}, y[:N])
    with pytest.raises(ValueError, match=r"none of them 'sum'"):
        auto.fit({"sum": rows["first"]}, y[:N])
    with pytest.raises(ValueError, match="several take no direction"):
        SimilarityClassifier("precomputed", direction="mean").fit(rows, y[:N])
    with pytest.raises(ValueError, match="reverse is for one"):
        model.predict(new, reverse=new["first"])
    with pytest.raises(ValueError, match="of one similarity"):
        model.sparsify(5, rows, y[:N])


def test_tables_whose_labels_disagree_raise(data, model):
    pd = pytest.importorskip("pandas")
    _, y, matrices = data
    names, order = [f"item {i}" for i in range(N)], np.random.default_rng(0).permutation(N)
    tables = {k: pd.DataFrame(D, names, names) for k, D in part(matrices, slice(0, N)).items()}
    shuffled = tables | {"second": tables["second"].iloc[order, order]}
    auto = SimilarityClassifier("precomputed", random_state=0)
    with pytest.raises(
        ValueError, match=r"labels: row 0 is 'item 0' in 'first' and 'item \d+' in 'second'"
    ):
        auto.fit(shuffled, y[:N])
    new = {k: pd.DataFrame(D) for k, D in part(matrices, slice(N, None)).items()}
    new["noise"] = new["noise"].set_axis([f"new {i}" for i in range(len(new["noise"]))])
    assert model.predict(new).shape == (30,)
    new["second"] = new["second"].set_axis([f"new {i + 1}" for i in range(len(new["second"]))])
    with pytest.raises(ValueError, match=r"disagree in labels: row 0"):
        model.predict(new)


def test_own_similarities_that_differ_must_be_given(data):
    X, y, matrices = data
    K = X @ X.T
    model = SimilarityClassifier("precomputed", kind={"dot": "similarity"}, cv=3, random_state=0)
    model.fit({"dot": K[:N, :N], "first": matrices["first"][:N, :N]}, y[:N])
    new = {"dot": K[N:, :N], "first": matrices["first"][N:, :N]}
    with pytest.raises(
        ValueError, match=r"own similarities k\(x, x\) of similarity 'dot' are needed"
    ):
        model.predict(new)
    assert model.predict(new, diag={"dot": np.diagonal(K)[N:]}).shape == (30,)


def test_only_the_whole_is_called_useless(data):
    X, _, matrices = data
    # taken for distances, alike is far
    wrong = np.exp(-matrices["first"] / matrices["first"].mean())
    np.fill_diagonal(wrong, 0.0)
    kinds = {"kind": "dissimilarity", "random_state": 0}
    rows = {"first": matrices["first"][:N, :N], "wrong": wrong[:N, :N]}
    model = SimilarityRegressor("precomputed", **kinds).fit(rows, X[:N, 0])  # warnings are errors
    assert model.similarity_scores_["first"]["weight"] > 0.3


def test_mixture_minimizes_the_pulled_brier_score():
    random = np.random.default_rng(0)
    Y = np.where(np.eye(3)[random.integers(3, size=60)] > 0, 1.0, -1.0)
    P = random.dirichlet(np.ones(3), size=(4, 60))
    P[1] = 0.6 * (Y > 0) + 0.4 * P[1]
    found = mix(P, Y, np.ones(60), ["a", "b", "c", "d"], True)
    assert found.weights.argmax() == 1 and found.temperature > 1.0
    np.testing.assert_allclose(found(P), found.out_of_fold)
    assert found.scores["stack"]["accuracy"] == pytest.approx(
        np.mean(found(P).argmax(1) == Y.argmax(1))
    )


def test_the_display_draws_the_similarities(model):
    pytest.importorskip("matplotlib")
    from mercerless.inspection import StackDisplay

    display = StackDisplay.from_estimator(model)
    assert [label.get_text() for label in display.axes_[0].get_yticklabels()] == [
        "first",
        "second",
        "noise",
        "sum",
    ]


def test_kinds_and_own_similarities_by_name(data):
    """Names are compared as text, and one that no similarity has is not ignored."""
    _, y, matrices = data
    given = {0: matrices["first"][:N, :N], 1: np.exp(-matrices["second"][:N, :N])}
    new = {0: matrices["first"][N:, :N], 1: np.exp(-matrices["second"][N:, :N])}
    kinds = {0: "dissimilarity", 1: "similarity"}
    model = SimilarityClassifier("precomputed", kind=kinds, random_state=0).fit(given, y[:N])
    assert [one.kind_ for one in model.similarities_.values()] == list(kinds.values())
    own = np.full(30, 1.5)
    by_number = model.predict_proba(new, diag={1: own})
    np.testing.assert_array_equal(model.predict_proba(new, diag={"1": own}), by_number)
    np.testing.assert_array_equal(model.predict_proba(new, diag=[None, own]), by_number)
    assert np.abs(by_number - model.predict_proba(new)).max() > 1e-4
    with pytest.raises(ValueError, match="diag has 'second', but the similarities are '0', '1'"):
        model.predict_proba(new, diag={"second": own})
    with pytest.raises(ValueError, match="kind has 'first', but the similarities are '0', '1'"):
        SimilarityClassifier("precomputed", kind={"first": "distance"}).fit(given, y[:N])

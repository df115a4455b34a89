"""What users hand over as items: order, kinds, weights, and functions of two of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline

from mercerless import (
    AsymmetricRidge,
    AsymmetricRidgeClassifier,
    DANKClassifier,
    DANKRegressor,
    HyperRidge,
    HyperSVR,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinSVR,
    LABClassifier,
    LABRegressor,
    SimilarityClassifier,
    SimilarityFeatures,
    SimilarityRegressor,
    SimilaritySVC,
    TableClassifier,
    TableRegressor,
)
from mercerless.kernels import (
    Gaussian,
    GaussianHyper,
    GaussianProcessKernel,
    MatrixFunction,
    Metric,
    PairFunction,
    Precomputed,
    TensorHyper,
)
from mercerless.lowrank import nystroem, pivoted_cholesky, select_landmarks
from mercerless.spectra import DissimilarityKernel, SpectrumTransformer

CLASSIFIERS = [
    AsymmetricRidgeClassifier(),
    DANKClassifier(random_state=0),
    SimilarityClassifier(direction="both", random_state=0),
    DANKClassifier("laplacian", random_state=0),
    KreinRidgeClassifier(random_state=0),
    KreinRidgeClassifier(landmarks=20, random_state=0),
    KreinSVC(),
    LABClassifier(10, kernel="gaussian", max_iter=20, random_state=0),
    SimilarityClassifier(random_state=0),
    SimilaritySVC(),
    TableClassifier(),
]
REGRESSORS = [
    AsymmetricRidge(),
    DANKRegressor(random_state=0),
    SimilarityRegressor(direction="both", random_state=0),
    KreinRidge(random_state=0),
    KreinSVR(),
    LABRegressor(10, kernel="gaussian", max_iter=20, random_state=0),
    SimilarityRegressor(random_state=0),
    TableRegressor(),
]


def words(n=60, seed=0):
    """Words over two alphabets that share a letter, and which alphabet it was."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return ["".join(rng.choice(list(("abcx", "efgx")[c]), rng.integers(4, 9))) for c in y], y


def common(a, b):
    """The share of letters that two words have in common."""
    return len(set(a) & set(b)) / len(set(a) | set(b))


# -------------------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize("labels", [["a", 1], ["b", 1.5, "a", 2, 3]])
def test_labels_of_several_types_raise_one_sentence(labels):
    y = np.empty(20, dtype=object)
    y[:] = (labels * 10)[:20]
    with pytest.raises(
        ValueError, match=r"y has labels of several types, .*; make all of them strings"
    ):
        SimilarityClassifier(random_state=0).fit(np.arange(20.0)[:, None], y)


@pytest.mark.parametrize("missing", [None, np.nan, float("nan")])
@pytest.mark.parametrize("others", [["a", "b"], [1, 2]])
def test_a_missing_label_is_named_with_its_row(missing, others):
    y = np.empty(20, dtype=object)
    y[:] = others * 10
    y[[7, 9]] = missing
    with pytest.raises(ValueError, match=r"y has no label in 2 of 20 rows, the first in row 7"):
        SimilarityClassifier(random_state=0).fit(np.arange(20.0)[:, None], y)


@pytest.mark.parametrize("labels", [[1, 2], [True, False], [0.0, 1.0]])
def test_numbers_in_an_array_of_objects_are_classes(labels):
    """A column of a data frame that had gaps keeps the type object."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.array(labels * 10, dtype=object)
    model = KreinRidgeClassifier().fit(X, y)
    assert model.classes_.tolist() == sorted(labels)
    assert model.classes_.dtype == np.array(labels).dtype
    np.testing.assert_array_equal(
        model.predict(X), KreinRidgeClassifier().fit(X, y.astype(type(labels[0]))).predict(X)
    )


# ------------------------------------------------------------------------------------------------------- weights


def outputs(model, X):
    for method in ("predict_proba", "decision_function", "predict"):
        if hasattr(model, method):
            return getattr(model, method)(X)


def test_items_of_weight_zero_are_never_shown_to_the_function():
    X, y = words(20)
    seen = set()

    def watched(a, b):
        seen.update((a, b))
        return common(a, b)

    for model in (
        KreinSVC(watched),
        SimilarityClassifier(watched),
        AsymmetricRidgeClassifier(watched),
    ):
        model.fit([*X, "zzzz"], [*y, 0], sample_weight=[1.0] * 20 + [0.0])
    assert seen == set(X)


# --------------------------------------------------------------------------------------------- order and labels


def shuffled(values):
    """A series whose labels are in another order than its values."""
    pandas = pytest.importorskip("pandas")
    labels = np.random.default_rng(0).permutation(len(values))
    return pandas.Series(values, index=labels)


def object_models(kernel):
    """One of every family that takes items."""
    return [
        KreinRidgeClassifier(kernel, random_state=0),
        KreinRidgeClassifier(kernel, landmarks=10, random_state=0),
        KreinSVC(kernel),
        DANKClassifier(kernel, random_state=0),
        AsymmetricRidgeClassifier(kernel),
        SimilarityClassifier(kernel, direction="both", random_state=0),
        SimilarityClassifier(kernel, random_state=0),
        SimilaritySVC(kernel),
        make_pipeline(
            SimilarityFeatures(kernel, landmarks=20, random_state=0), LogisticRegression()
        ),
    ]


@pytest.mark.parametrize("model", object_models(common), ids=lambda model: type(model).__name__)
def test_a_shuffled_series_is_read_by_position_and_never_by_label(model):
    X, y = words()
    series = shuffled(X)
    expected = clone(model).fit(X, y).predict(X[::-1])
    assert np.mean(expected == y[::-1]) > 0.9
    assert_array_equal(clone(model).fit(series, y).predict(series[::-1]), expected)
    train, test, y_train, y_test = train_test_split(series, y, random_state=0)
    assert np.mean(clone(model).fit(train, y_train).predict(test) == y_test) > 0.8
    assert np.mean(cross_val_predict(model, series, y) == y) > 0.8


def test_a_function_gets_a_series_by_position_and_a_mixed_frame_by_row():
    pandas = pytest.importorskip("pandas")
    X, _ = words(12)
    series = shuffled(X)
    assert_array_equal(PairFunction(common)(series), PairFunction(common)(X))
    assert_array_equal(
        PairFunction(common)(series[:5], series[5:]), PairFunction(common)(X[:5], X[5:])
    )
    assert_array_equal(PairFunction(common).diag(series), np.ones(12))
    frame = pandas.DataFrame({"word": X, "size": range(12)}, index=series.index)
    by_name = PairFunction(lambda a, b: common(a["word"], b["word"]) + (a["size"] == b["size"]))
    assert_array_equal(by_name(frame), PairFunction(common)(X) + np.eye(12))
    features = SimilarityFeatures(by_name).fit(frame)
    assert_array_equal(features.transform(frame[:3]), by_name(frame)[:3])


def test_a_frame_of_numbers_with_odd_labels_is_a_table():
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(10, 2))
    frame = pandas.DataFrame(X, columns=["a", "b"], index=np.arange(10)[::-1])
    inner = PairFunction(lambda a, b: float(a @ b))
    assert_allclose(inner(frame), X @ X.T)
    model = SimilarityFeatures(inner).fit(frame)
    assert_allclose(model.transform(frame[2:5]), X[2:5] @ X.T)
    assert_array_equal(model.feature_names_in_, ["a", "b"])
    assert_array_equal(model.transform(frame[["b", "a"]]), model.transform(frame))
    assert_allclose(
        SimilarityFeatures(inner).fit(frame.astype("Float64")).transform(frame)[0], X[0] @ X.T
    )


def test_low_rank_maps_take_lists_series_and_frames_by_position():
    pandas = pytest.importorskip("pandas")
    X, _ = words(30)
    kernel = PairFunction(common)
    for given in (X, shuffled(X)):
        everything = select_landmarks(kernel, given, 30, random_state=0)
        low_rank = nystroem(kernel, given, everything, random_state=0)
        features = low_rank.feature_map(kernel, given).transform(given)
        # exact with all landmarks
        assert_allclose((features * low_rank.signs) @ features.T, kernel(X), atol=1e-8)
    table = np.random.default_rng(0).normal(size=(30, 2))
    frame = pandas.DataFrame(table, index=np.arange(30)[::-1])
    expected = pivoted_cholesky(Gaussian(1.0), table, 5, random_state=0)
    for given in (frame, table.tolist()):
        assert_array_equal(
            pivoted_cholesky(Gaussian(1.0), given, 5, random_state=0).factor, expected.factor
        )


# ------------------------------------------------------------------------------------------------ kinds of items


class Fingerprint:
    """Bits that can be counted, indexed and iterated, like RDKit's."""

    def __init__(self, bits):
        self.bits = bits

    def __len__(self):
        return len(self.bits)

    def __getitem__(self, i):
        return self.bits[i]

    def overlap(self, other):
        return sum(a & b for a, b in zip(self.bits, other.bits)) / max(1, sum(self.bits))


class Graph:
    """Nodes 0, 1, ... with neighbors: has a length, an iterator and `graph[node]`, like networkx's."""

    def __init__(self, neighbors):
        self.neighbors = neighbors

    def __len__(self):
        return len(self.neighbors)

    def __iter__(self):
        return iter(self.neighbors)

    def __getitem__(self, node):
        return self.neighbors[node]

    def degrees(self, other):
        return -abs(
            sum(map(len, self.neighbors.values())) - sum(map(len, other.neighbors.values()))
        )


def _series(values):
    return pytest.importorskip("pandas").Series(values)


KINDS = {
    "digit strings": (["12", "345", "67", "8901"], str, lambda a, b: common(a, b)),
    "tuples of digit strings": (
        [("1", "2"), ("2", "3"), ("1", "3")],
        tuple,
        lambda a, b: len(set(a) & set(b)),
    ),
    "bytes": ([b"12", b"34", b"23"], bytes, lambda a, b: len(set(a) & set(b))),
    "sets": ([{1, 2}, {2, 3}, {3, 4}], set, lambda a, b: len(a & b)),
    "fingerprints": (
        [Fingerprint([1, 0, 1]), Fingerprint([0, 1, 1])],
        Fingerprint,
        Fingerprint.overlap,
    ),
    "graphs": ([Graph({0: [1], 1: [0]}), Graph({0: [], 1: []})], Graph, Graph.degrees),
    "series": ([[1.0, 2.0], [3.0, 4.0]], "series", lambda a, b: float((a * b).sum())),
    "sparse rows": (list(csr_array(np.eye(3))), csr_array, lambda a, b: float((a * b).sum())),
    "images": (np.arange(24.0).reshape(3, 4, 2), np.ndarray, lambda a, b: float(np.sum(a * b))),
    "dictionaries": ([{"a": 1}, {"b": 2}], dict, lambda a, b: len(a.keys() & b.keys())),
    "arrays of unequal length": (
        [np.ones(2), np.ones(3)],
        np.ndarray,
        lambda a, b: float(len(a) * len(b)),
    ),
    "ragged lists": ([[1, 2], [3]], list, lambda a, b: len(set(a) & set(b))),
}


@pytest.mark.parametrize("name", KINDS)
def test_foreign_objects_reach_the_function_as_they_are(name):
    items, kind, function = KINDS[name]
    if kind == "series":
        items, kind = [_series(item) for item in items], type(_series([1.0]))

    def checked(a, b):
        assert isinstance(a, kind) and isinstance(b, kind), (type(a), type(b))
        return function(a, b)

    features = SimilarityFeatures(checked).fit(items)
    expected = [[function(a, b) for b in items] for a in items]
    assert_array_equal(features.transform(items), expected)
    assert_array_equal(features.transform(items[:1]), expected[:1])  # also one alone
    assert_array_equal(PairFunction(checked)(items), expected)


def test_networkx_graphs_and_rdkit_fingerprints_reach_the_function():
    networkx = pytest.importorskip("networkx")
    graphs = [networkx.path_graph(n) for n in (2, 3, 3, 4)]
    edges = SimilarityFeatures(
        lambda a, b: a.number_of_edges() * b.number_of_edges()
    ).fit_transform(graphs)
    assert_array_equal(edges, np.outer([1, 2, 2, 3], [1, 2, 2, 3]))
    data_structs = pytest.importorskip("rdkit.DataStructs")
    prints = [data_structs.CreateFromBitString(bits) for bits in ("1100", "0110", "1111")]
    assert_allclose(
        SimilarityFeatures(data_structs.TanimotoSimilarity).fit_transform(prints)[0],
        [1.0, 1 / 3, 0.5],
    )


@pytest.mark.parametrize(
    "rows", [[[1.0, 2.0], [3.0, 4.0]], [(1, 2), (3, 4)], [np.array([1, 2]), np.array([3, 4])]]
)
def test_a_list_is_not_looked_into(rows):
    kind = type(rows[0])
    inner = SimilarityFeatures(lambda a, b: float(type(a) is type(b) is kind) * a[0] * b[0])
    assert_array_equal(inner.fit(rows).transform(rows), [[1.0, 3.0], [3.0, 9.0]])


@pytest.mark.parametrize(
    "model", object_models(lambda a, b: float(a[0] * b[0])), ids=lambda model: type(model).__name__
)
def test_series_of_another_length_may_come_after_training_on_equal_lengths(model):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    train = [np.r_[2 * label - 1.0, rng.normal(size=5)] for label in y]
    model.fit(train, y)
    assert_array_equal(model.predict([np.r_[-1.0, np.ones(8)], np.r_[1.0, np.ones(8)]]), [0, 1])
    assert_array_equal(model.predict([np.array([-1.0, 1.0]), np.ones(3)]), [0, 1])


def test_a_table_still_needs_the_columns_it_was_trained_on():
    model = SimilarityFeatures(lambda a, b: float(a[0] * b[0])).fit(np.ones((3, 2)))
    with pytest.raises(ValueError, match="2 features"):
        model.transform(np.ones((3, 4)))


@pytest.mark.parametrize(
    "X, text",
    [
        ("word", "sequence of items"),
        (b"word", "sequence"),
        ({1, 2}, "sequence"),
        ([], "no items"),
        (7, "sequence"),
    ],
)
def test_what_is_no_sequence_of_items_raises_one_sentence(X, text):
    for refuse in (SimilarityFeatures(common).fit, PairFunction(common)):
        with pytest.raises(ValueError, match=text):
            refuse(X)


def test_a_sparse_matrix_raises_with_the_remedy():
    with pytest.raises(ValueError, match="sequence of items"):
        SimilarityFeatures(common).fit(csr_array(np.eye(3)))


def test_sums_of_functions_take_objects_too():
    X, y = words()
    kernel = PairFunction(common) + 0.5 * PairFunction(lambda a, b: float(a[0] == b[0]))
    assert KreinSVC(kernel).fit(X, y).score(X, y) > 0.9


# ----------------------------------------------------------------------------------------- functions of two items


def directed(a, b):
    """How much of word a is found in word b; the other way round it is something else."""
    return sum(letter in b for letter in a) / len(a) + 0.5 * (a < b)


def averaged(a, b):
    return (directed(a, b) + directed(b, a)) / 2


def test_a_directed_function_with_symmetrize_is_its_average():
    X, y = words()
    new, _ = words(20, seed=1)
    asked = SimilarityClassifier(directed, direction="mean", random_state=0).fit(X, y)
    expected = SimilarityClassifier(averaged, random_state=0).fit(X, y)
    assert_allclose(asked.predict_proba(new), expected.predict_proba(new), atol=1e-10)


@pytest.mark.parametrize(
    "model",
    [
        KreinRidgeClassifier(directed),
        KreinSVC(directed),
        DANKClassifier(directed),
        SimilarityClassifier(directed),
    ],
    ids=lambda model: type(model).__name__,
)
def test_estimators_that_need_symmetry_raise_for_a_directed_function(model):
    with pytest.raises(
        ValueError, match=r"not symmetric.*direction='mean'.*PairFunction.*direction='both'"
    ):
        model.fit(*words())


# ------------------------------------------------------------------------------------------- scikit-learn's protocols


@pytest.mark.parametrize(
    "model", [SpectrumTransformer(), SpectrumTransformer("shift"), DissimilarityKernel()], ids=repr
)
def test_transformers_of_matrices_name_their_columns_and_give_frames(model):
    pandas = pytest.importorskip("pandas")
    D = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    frame = pandas.DataFrame(D, columns=list("abcd"), index=list("wxyz"))
    out = clone(model).set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == list("abcd") and list(out.index) == list("wxyz")
    assert_array_equal(out.to_numpy(), model.fit_transform(D))
    assert list(model.get_feature_names_out()) == ["x0", "x1", "x2", "x3"]


@pytest.mark.parametrize("model", [HyperRidge(random_state=0), HyperSVR(random_state=0)], ids=repr)
def test_learned_similarities_name_their_columns_and_give_frames(model):
    pandas = pytest.importorskip("pandas")
    X = np.linspace(0, 1, 12).reshape(-1, 1)
    frame = pandas.DataFrame(X, columns=["a"], index=range(100, 112))
    out = model.set_output(transform="pandas").fit(frame, X[:, 0] > 0.5).transform(frame[:3])
    assert list(out.columns) == [f"{type(model).__name__.lower()}{i}" for i in range(12)]
    assert list(out.index) == [100, 101, 102]
    assert_array_equal(out.to_numpy(), model.set_output(transform="default").transform(frame[:3]))


# ------------------------------------------------------------------------------------- items that change after training


def nearness(a, b):
    """A similarity of the first three entries of two series, or of the values of two dicts."""
    first, second = (np.asarray(list(x.values()) if isinstance(x, dict) else x) for x in (a, b))
    return float(np.exp(-np.sum((first[:3] - second[:3]) ** 2)))


def change_array(item):
    item *= 3


def change_list(item):
    item[:] = [3 * value for value in item]


def change_dict(item):
    item.update({key: 3 * value for key, value in item.items()})


def test_objects_keep_their_identity_in_a_model():
    X = [Graph([(0, k + 1)]) for k in range(6)]
    number = {id(graph): float(k) for k, graph in enumerate(X)}
    model = SimilarityFeatures(lambda a, b: number[id(a)] * number[id(b)]).fit(X)
    assert_array_equal(model.transform(X), np.outer(np.arange(6.0), np.arange(6.0)))


@pytest.mark.parametrize(
    "learner",
    [
        HyperRidge(GaussianHyper(2.0), alpha=1e-3, random_state=0),
        HyperRidge(GaussianHyper(2.0), alpha=1e-3, landmarks=None),
        HyperRidge(TensorHyper(2.0), alpha=1e-3),
    ],
    ids=["landmarks", "all pairs", "tensor"],
)
def test_rows_that_change_after_training_change_no_learned_kernel(learner):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(20, 3)), rng.normal(size=(5, 3))
    target = np.arange(20) % 2
    if isinstance(learner.hyper_kernel, TensorHyper):
        target = np.exp(-np.abs(X[:, None] - X).sum(axis=2))
    kernel = clone(learner).fit(X, target).kernel_
    old = X[:4].copy()
    before = [kernel(new), kernel(old, new), kernel.diag(old)]
    X *= 3
    target *= 3
    for value, expected in zip([kernel(new), kernel(old, new), kernel.diag(old)], before):
        assert_array_equal(value, expected)


@pytest.mark.parametrize(
    "kernel",
    [
        2.0 * Precomputed(),
        -Precomputed(),
        Precomputed() + 1.0,
        Precomputed() - Precomputed(),
        Precomputed() * Precomputed(),
        2.0 * PairFunction(nearness),
        2.0 * MatrixFunction(lambda A, B: np.exp(-np.abs(A[:, :1] - B[:, :1].T))),
        2.0 * Gaussian(),
        Metric("linear"),
    ],
)
def test_no_kernel_writes_into_what_it_is_given(kernel):
    K = np.exp(-np.abs(np.arange(6.0)[:, None] - np.arange(6.0)))
    given = K.copy()
    result = kernel(given)
    assert_array_equal(given, K)
    expected = result.copy()
    result[:] = 7.0
    assert_array_equal(given, K)
    assert_array_equal(kernel(given), expected)  # nor is the result what is kept


def gaussian_of(lengths):
    return Gaussian(lengths), lambda kernel: kernel.set_params(length_scale=0.1)


def sum_of_scaled(lengths):
    kernel = 2.0 * Gaussian(lengths) + Gaussian(0.5)
    return kernel, lambda kernel: kernel.set_params(left__kernel__length_scale=0.1)


def of_scikit_learn(lengths):
    kernel = RBF(2.0) * 1.0
    return GaussianProcessKernel(kernel), lambda _: kernel.set_params(k1__length_scale=0.1)


def metric_of(lengths):
    params = {"gamma": 0.5}
    return Metric("rbf", params), lambda _: params.update(gamma=5.0)


KERNEL_MODELS = [
    AsymmetricRidge(),
    AsymmetricRidgeClassifier(),
    DANKClassifier(random_state=0),
    DANKRegressor(random_state=0),
    SimilarityClassifier(direction="both", random_state=0),
    KreinRidge(random_state=0),
    KreinRidgeClassifier(random_state=0),
    KreinSVC(),
    KreinSVR(),
    SimilarityClassifier(random_state=0),
    SimilarityClassifier(landmarks=10, random_state=0),
    SimilarityFeatures(),
    SimilarityRegressor(random_state=0),
    SimilaritySVC(),
]


@pytest.mark.parametrize(
    "model, make",
    [(model, gaussian_of) for model in KERNEL_MODELS]
    + [(KreinSVC(), make) for make in (sum_of_scaled, of_scikit_learn, metric_of)],
)
def test_a_kernel_that_changes_after_training_changes_no_model(model, make):
    lengths = np.ones(3)
    kernel, change = make(lengths)
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(40, 3)), rng.normal(size=(5, 3))
    y = (X[:, 0] > 0).astype(int)
    model = clone(model)
    model.kernel = kernel  # the user's own, not a clone
    model.fit(X, y)
    before = model.transform(new) if hasattr(model, "transform") else outputs(model, new)
    lengths *= 3
    change(kernel)
    after = model.transform(new) if hasattr(model, "transform") else outputs(model, new)
    assert_array_equal(after, before)
    assert not np.allclose(model.kernel_(new), kernel(new))


def test_a_hyper_kernel_that_changes_after_training_changes_no_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    hyper = GaussianHyper(2.0)
    model = HyperRidge(hyper, alpha=1e-3, random_state=0).fit(X, np.arange(20) % 2)
    before = model.kernel_(X)
    hyper.set_params(length_scale=0.3)
    assert_array_equal(model.kernel_(X), before)

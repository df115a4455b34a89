"""Kernels by name against SciPy and loops: Tanimoto, Jaccard, Gower, time warping."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

pd = pytest.importorskip("pandas")

from mercerless import KreinRidge, KreinSVC, SimilarityClassifier, SimilarityRegressor
from mercerless.kernels import Gower, Series, Tanimoto, as_kernel
from mercerless.kernels.named import SparseRows

SERIES_DISTANCES = "dtw ddtw wdtw wddtw adtw shape_dtw soft_dtw lcss erp edr twe msm sbd"
SCIPY_METRICS = (
    "braycurtis canberra chebyshev cityblock correlation dice euclidean jensenshannon minkowski "
    "rogerstanimoto russellrao sokalsneath sqeuclidean yule"
)


def test_jaccard_is_scipys():
    rng = np.random.default_rng(0)
    X = rng.random((60, 30)) < 0.3
    Y = rng.random((25, 30)) < 0.3
    kernel = as_kernel("jaccard", X)
    assert_allclose(kernel(X, Y), 1.0 - cdist(X, Y, "jaccard"), atol=1e-14)
    counts = X * rng.integers(1, 9, X.shape)
    assert_allclose(kernel(counts, Y), kernel(X, Y))
    assert_allclose(Tanimoto()(X, Y), kernel(X, Y))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tanimoto_of_counts_is_its_formula(dtype):
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (1300, 6)).astype(dtype)
    X[3] = X[8] = 0.0
    Z = X.astype(float)
    common = Z @ Z.T
    squares = np.diag(common)
    total = squares[:, None] + squares - common
    truth = np.divide(common, total, out=np.ones_like(common), where=total > 0)
    K = as_kernel("tanimoto")(X)
    assert K.dtype == dtype
    assert_allclose(K, truth, atol=1e-6 if dtype == np.float32 else 1e-14)
    assert K[3, 8] == K[3, 3] == 1.0
    assert np.linalg.eigvalsh(K[:300, :300].astype(float))[0] > -1e-4
    with pytest.raises(ValueError, match="negative entries; pass bits or counts"):
        Tanimoto()(-X - 1.0)


def mixed(n, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n) * 3.0,
            "color": rng.choice(["red", "green", "blue"], n),
            "count": rng.integers(0, 5, n).astype(float),
        }
    )
    frame.loc[rng.random(n) < 0.2, "size"] = np.nan
    frame.loc[rng.random(n) < 0.2, "color"] = None
    return frame


def gower(a, b, ranges):
    """Of two rows, by a loop."""
    shares = []
    for x, y, width in zip(a, b, ranges):
        if pd.isna(x) or pd.isna(y):
            continue
        shares.append(float(x == y) if width is None else max(0.0, 1.0 - abs(x - y) / width))
    return sum(shares) / len(shares)


def test_gower_of_a_mixed_frame_with_gaps():
    train = mixed(40)
    new = mixed(15, seed=1)
    ranges = [np.ptp(train["size"].dropna()), None, np.ptp(train["count"])]
    kernel = as_kernel("gower", train)
    for rows, columns in ((train, train), (new, train)):
        truth = [
            [gower(a, b, ranges) for b in columns.itertuples(index=False)]
            for a in rows.itertuples(index=False)
        ]
        assert_allclose(kernel(rows, columns), truth, atol=1e-14)
    assert_array_equal(kernel(train), kernel(train).T)
    assert_allclose(kernel.diag(train), np.diag(kernel(train)))
    assert_allclose(Gower()(train), kernel(train))


@pytest.mark.parametrize("model", [SimilarityClassifier, KreinSVC])
def test_gower_in_estimators(model):
    X = mixed(80)
    y = np.where(X["color"] == "red", "yes", "no")
    fitted = model("gower").fit(X[:60], y[:60])
    assert fitted.score(X[60:], y[60:]) > 0.8
    other_order = X[60:][["count", "color", "size"]]
    assert_array_equal(fitted.predict(other_order), fitted.predict(X[60:]))
    wider = X[60:].assign(extra="x")
    assert_array_equal(fitted.predict(wider), fitted.predict(X[60:]))
    with pytest.raises(ValueError, match="lacks the column 'size'"):
        fitted.predict(X[60:].rename(columns={"size": "weight"}))


def test_gower_raises():
    with pytest.raises(ValueError, match="needs the ranges of the columns"):
        Gower()(mixed(5), mixed(4))
    with pytest.raises(ValueError, match="Rows 0 and 1 have no column that is known in both"):
        Gower()([[1.0, None], [None, "a"]])
    with pytest.raises(ValueError, match="Column 0 held numbers and now holds 'x'"):
        Gower([2.0])([["x"]], [[1.0]])
    with pytest.raises(ValueError, match="Rows have 3 cells; pass rows of 1"):
        Gower([2.0])(mixed(3))
    with pytest.raises(ValueError, match="Rows have 1 or 2 cells"):
        Gower()([["a"], ["a", 1.0]])
    with pytest.raises(ValueError, match="compares rows"):
        Gower()(["a", "b"])


def warped(a, b):
    """Dynamic time warping without a window, by a loop."""
    cost = np.full((len(a) + 1, len(b) + 1), np.inf)
    cost[0, 0] = 0.0
    for i, j in np.ndindex(len(a), len(b)):
        before = min(cost[i, j], cost[i, j + 1], cost[i + 1, j])
        cost[i + 1, j + 1] = (a[i] - b[j]) ** 2 + before
    return np.sqrt(cost[-1, -1])


def test_time_warping_is_that_of_a_loop():
    pytest.importorskip("aeon")
    rng = np.random.default_rng(0)
    series = [rng.normal(size=size).cumsum() for size in (12, 9, 15, 12)]
    truth = [[warped(a, b) for b in series] for a in series]
    assert_allclose(Series("dtw", window=None)(series), truth, atol=1e-10)
    labels = np.arange(40) % 2
    waves = [np.sin((1 + s) * np.linspace(0, 6, rng.integers(15, 25))) for s in labels]
    assert (
        SimilarityClassifier("dtw").fit(waves[:30], labels[:30]).score(waves[30:], labels[30:])
        > 0.9
    )


def test_time_warping_without_aeon(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "aeon", None)
    monkeypatch.setitem(__import__("sys").modules, "aeon.distances", None)
    with pytest.raises(ImportError, match="Comparing time series needs aeon; install it with"):
        SimilarityClassifier("dtw").fit([[0.0, 1.0], [1.0, 0.0]] * 6, [0, 1] * 6)


@pytest.mark.filterwarnings("ignore::mercerless.UselessModelWarning")
@pytest.mark.parametrize("metric", ["linear", "cosine", "rbf", "chi2", "laplacian", "tanimoto"])
def test_sparse_rows_are_as_good_as_dense_ones(metric):
    random = np.random.default_rng(0)
    X = random.poisson(0.3, size=(60, 40)).astype(float)
    X[5] = 0.0
    y = (X[:, :20].sum(axis=1) > X[:, 20:].sum(axis=1)).astype(int)
    rows = SparseRows.items(csr_array(X))
    dense = as_kernel(metric, X)(X)
    assert_allclose(SparseRows(metric)(rows), dense, atol=1e-12)
    assert_allclose(SparseRows(metric)(rows[:7], rows), dense[:7], atol=1e-12)
    assert_allclose(SparseRows(metric).diag(rows), np.diagonal(dense), atol=1e-12)
    for model in (
        KreinSVC(metric),
        KreinRidge(metric, landmarks=None, random_state=0),
        SimilarityRegressor({"one": metric}),
        SimilarityRegressor(metric, landmarks=20),
    ):
        expected = model.fit(X, y).predict(X)
        sparse = model.fit(csr_array(X), y)
        assert_allclose(sparse.predict(csr_array(X)), expected, atol=1e-6)
        with pytest.raises(ValueError, match="X has 39 columns, but 40 were seen in fit"):
            sparse.predict(csr_array(X[:, 1:]))


def test_words_in_a_pipeline():
    texts = [
        "the cat sat",
        "a cat sat down",
        "dogs bark",
        "a dog barks",
        "cat sat",
        "dogs bark now",
    ]
    texts, y = 3 * texts, 3 * [0, 0, 1, 1, 0, 1]
    for learner in (KreinSVC("cosine"), SimilarityClassifier("cosine")):
        model = make_pipeline(TfidfVectorizer(), learner)
        assert model.fit(texts, y).score(texts, y) == 1.0
    with pytest.raises(TypeError, match="Sparse rows work with kernel='linear'"):
        make_pipeline(TfidfVectorizer(), SimilarityClassifier("gaussian")).fit(texts, y)
    with pytest.raises(ValueError, match="'tanimoto' compares amounts"):
        KreinSVC("tanimoto").fit(csr_array(-np.eye(4)), [0, 0, 1, 1])


@pytest.mark.slow
def test_every_elastic_distance_takes_channels():
    pytest.importorskip("aeon")
    random = np.random.default_rng(0)
    X = random.normal(size=(4, 2, 12))
    for name in SERIES_DISTANCES.split():
        D = Series(name)(X)
        assert D.shape == (4, 4)
        assert_array_equal(D, D.T)
    ends = X[:, :, ::-1].reshape(4, 1, 24)
    assert abs(Series("dtw")(X)[0, 1] - Series("dtw")(ends)[0, 1]) > 0.01
    with pytest.raises(ValueError, match=r"all of shape \(n_channels, n_times\)"):
        Series("dtw")([X[0], X[1, :1]])


@pytest.mark.parametrize("name", SCIPY_METRICS.split())
def test_metrics_of_scipy(name):
    X = np.abs(np.random.default_rng(0).normal(size=(9, 4)))
    X[:, 0] = X[:, 0] > 0.7
    kernel = as_kernel(name)
    given = X != 0 if name in ("dice", "rogerstanimoto", "russellrao", "sokalsneath", "yule") else X
    assert_allclose(kernel(X), cdist(given, given, name))
    assert not kernel.is_similarity


def test_molecules_are_compared_by_their_fingerprints():
    pytest.importorskip("rdkit")
    from rdkit import Chem
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
    from rdkit.DataStructs import TanimotoSimilarity

    smiles = ["CCO", "CCN", "CCCO", "c1ccccc1O", "c1ccccc1N", "OCC"]
    bits = [GetMorganGenerator(radius=2).GetFingerprint(Chem.MolFromSmiles(s)) for s in smiles]
    truth = [[TanimotoSimilarity(a, b) for b in bits] for a in bits]
    kernel = as_kernel("smiles")
    assert_allclose(kernel(smiles), truth, atol=1e-12)
    assert_allclose(kernel(smiles[:2], smiles), truth[:2], atol=1e-12)
    assert_array_equal(kernel.diag(smiles), 1.0)
    assert KreinSVC("smiles").fit(smiles[:5], [0, 0, 0, 1, 1]).predict(smiles[5:])[0] == 0
    with pytest.raises(ValueError, match="Item 1, 'xx', is not a molecule in SMILES"):
        kernel(["CCO", "xx"])
    with pytest.raises(ValueError, match="compares molecules in SMILES, but item 0"):
        kernel([1.0, 2.0])

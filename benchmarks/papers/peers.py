"""Peers side by side, one table per need: accuracy, log-loss, seconds, lines of code.

    python benchmarks/papers/peers.py [--needs matrix strings series graphs table directed] [--peers aeon tslearn]

Every peer is a function of training items, labels and test items that returns probabilities, or labels where it has
none; its lines are counted as they stand here, without the definition and its docstring. A peer that is not installed
is left out and named. Data are generated or come with scikit-learn. Writes results/peers.csv.
"""

import argparse
import csv
import inspect
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from mercerless.datasets import load_digit_shapes

RESULTS = Path(__file__).parent / "results" / "peers.csv"


# ---------------------------------------------------------------------------------------------------- data
def matrix_problem():
    shapes = load_digit_shapes(300)
    return shapes.D, shapes.target


def string_problem(n=300, seed=0):
    """Words of three invented languages: syllables of their own, some shared, with typing errors."""
    random = np.random.RandomState(seed)
    syllables = [
        ["ka", "to", "mi", "ren", "sul"],
        ["ka", "to", "bra", "nek", "vol"],
        ["mi", "to", "bra", "ish", "una"],
    ]
    y = np.arange(n) % 3
    words = ["".join(random.choice(syllables[k], random.randint(2, 5))) for k in y]
    for i in random.permutation(n)[: n // 2]:
        at = random.randint(len(words[i]))
        words[i] = words[i][:at] + random.choice(list("aeioustrnk")) + words[i][at + 1 :]
    return np.array(words, dtype=object), y


def series_problem(n=150, length=64, seed=0):
    """Cylinder, bell and funnel (Saito 1994): shapes that begin and end anywhere, with noise."""
    random = np.random.RandomState(seed)
    y, steps = np.arange(n) % 3, np.arange(length)
    X = random.normal(size=(n, length))
    for i, k in enumerate(y):
        first, last = random.randint(4, 20), random.randint(36, 60)
        inside = (steps >= first) & (steps < last)
        ramp = (steps - first) / (last - first)
        X[i] += (6 + random.normal()) * inside * (1.0, ramp, 1 - ramp)[k]
    return X, y


def graph_problem(n=120, seed=0):
    """Rings with shortcuts, trees that grow by preference, and random graphs, of 12 to 20 nodes and like density."""
    random = np.random.RandomState(seed)
    graphs, y = np.empty(n, dtype=object), np.arange(n) % 3
    for i, k in enumerate(y):
        m = random.randint(12, 21)
        A = np.zeros((m, m), dtype=int)
        for node in range(1, m):
            weights = A[:node, :node].sum(axis=1) + 1.0
            other = (
                node - 1,
                random.choice(node, p=weights / weights.sum()),
                random.randint(node),
            )[k]
            A[node, other] = A[other, node] = 1
        for a, b in random.randint(m, size=(4, 2)):
            A[a, b] = A[b, a] = int(a != b)
        graphs[i] = A
    return graphs, y


def table_problem():
    return load_breast_cancer(return_X_y=True)


def directed_problem(n=240, seed=0):
    """Histograms of four classes, compared by the Kullback-Leibler divergence, which has a direction."""
    random = np.random.RandomState(seed)
    y, centers = np.arange(n) % 4, random.dirichlet(np.full(12, 1.2), 4)
    P = np.array([random.multinomial(40, random.dirichlet(25 * centers[c] + 0.3)) for c in y]) + 0.3
    P /= P.sum(axis=1, keepdims=True)
    return (P * np.log(P)).sum(axis=1)[:, None] - P @ np.log(P).T, y


# ---------------------------------------------------------------------------------------------------- matrix
def matrix_mercerless(D, y, D_new):
    from mercerless import SimilarityClassifier

    return SimilarityClassifier(kernel="precomputed", random_state=0).fit(D, y).predict_proba(D_new)


def matrix_krein_svm(D, y, D_new):
    """The Krein support vector machine of Loosli, Canu and Ong, which KreinAMP uses."""
    from mercerless import KreinSVC
    from mercerless.spectra import DissimilarityKernel

    kernel = DissimilarityKernel().fit(D)
    return (
        KreinSVC(kernel="precomputed").fit(kernel.transform(D), y).predict(kernel.transform(D_new))
    )


def matrix_svc_clipped(D, y, D_new):
    """scikit-learn's machine on the clipped spectrum of -D^2 / 2, new items projected alike."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    values, vectors = np.linalg.eigh(-(D**2) / 2)
    vectors, scale = vectors[:, values > 0], np.mean(np.abs(values))
    features = -(D**2) / 2 @ vectors / np.sqrt(scale * values[values > 0])
    new = -(D_new**2) / 2 @ vectors / np.sqrt(scale * values[values > 0])
    return (
        GridSearchCV(SVC(kernel="linear"), {"C": np.logspace(-3, 3, 7)})
        .fit(features, y)
        .predict(new)
    )


def matrix_ridge_clipped(D, y, D_new):
    """scikit-learn's kernel ridge regression of one column per class, on the clipped matrix."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV
    from sklearn.preprocessing import LabelBinarizer

    values, vectors = np.linalg.eigh(-(D**2) / 2)
    vectors, values = vectors[:, values > 0], values[values > 0]
    K, K_new = (vectors * values) @ vectors.T, -(D_new**2) / 2 @ vectors @ vectors.T
    classes = LabelBinarizer().fit(y)
    alphas = {"alpha": values.mean() * np.logspace(-5, 1, 7)}
    ridge = GridSearchCV(KernelRidge(kernel="precomputed"), alphas).fit(K, classes.transform(y))
    return classes.classes_[ridge.predict(K_new).argmax(axis=1)]


def matrix_process_clipped(D, y, D_new):
    """scikit-learn's Gaussian process, which takes no matrix, on the coordinates of the clipped one."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

    values, vectors = np.linalg.eigh(-(D**2) / 2)
    vectors, scale = vectors[:, values > 0], np.mean(np.abs(values))
    features = -(D**2) / 2 @ vectors / np.sqrt(scale * values[values > 0])
    new = -(D_new**2) / 2 @ vectors / np.sqrt(scale * values[values > 0])
    process = GaussianProcessClassifier(ConstantKernel() * DotProduct(), random_state=0)
    return process.fit(features, y).predict_proba(new)


def matrix_neighbors(D, y, D_new):
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import KNeighborsClassifier

    search = GridSearchCV(KNeighborsClassifier(metric="precomputed"), {"n_neighbors": [1, 3, 5, 9]})
    return search.fit(D, y).predict(D_new)


# ---------------------------------------------------------------------------------------------------- strings
def strings_mercerless(words, y, new):
    from mercerless import SimilarityClassifier

    return (
        SimilarityClassifier(kernel="levenshtein", random_state=0).fit(words, y).predict_proba(new)
    )


def strings_tfidf(words, y, new):
    """scikit-learn: n-grams of letters and a linear model."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.pipeline import make_pipeline

    grams = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 3))
    return (
        make_pipeline(grams, LogisticRegressionCV(max_iter=1000)).fit(words, y).predict_proba(new)
    )


# ---------------------------------------------------------------------------------------------------- series
def series_mercerless(X, y, new):
    from mercerless import SimilarityClassifier

    def warped(X, Y):  # time warping of all pairs at once
        before = np.full((len(X), len(Y), Y.shape[1] + 1), np.inf)
        before[:, :, 0] = 0.0
        for i in range(X.shape[1]):
            now = np.full_like(before, np.inf)
            for j in range(Y.shape[1]):
                least = np.minimum(np.minimum(before[:, :, j], before[:, :, j + 1]), now[:, :, j])
                now[:, :, j + 1] = (X[:, None, i] - Y[:, j]) ** 2 + least
            before = now
        return np.sqrt(before[:, :, -1])

    model = SimilarityClassifier(kernel="precomputed", random_state=0).fit(warped(X, X), y)
    return model.predict_proba(warped(new, X))


def series_aeon(X, y, new):
    """MiniRocket: random convolutions and a ridge."""
    from aeon.classification.convolution_based import MiniRocketClassifier

    return MiniRocketClassifier(random_state=0).fit(X[:, None], y).predict(new[:, None])


def series_tslearn(X, y, new):
    """Nearest neighbors under time warping."""
    from tslearn.neighbors import KNeighborsTimeSeriesClassifier

    return KNeighborsTimeSeriesClassifier(n_neighbors=1).fit(X, y).predict(new)


# ---------------------------------------------------------------------------------------------------- graphs
def graphs_mercerless(graphs, y, new):
    """The distance between the degrees of neighbors, sorted: any function of two graphs will do."""
    from mercerless import SimilarityClassifier

    def degrees(A):
        return np.sort((A @ A.sum(axis=1)) / np.maximum(A.sum(axis=1), 1))[-12:]

    def distance(A, B):
        return np.abs(degrees(A) - degrees(B)).sum()

    return (
        SimilarityClassifier(kernel=distance, random_state=0)
        .fit(list(graphs), y)
        .predict_proba(list(new))
    )


def graphs_grakel(graphs, y, new):
    """The Weisfeiler-Lehman kernel, with degrees as labels, and scikit-learn's machine."""
    from grakel import Graph
    from grakel.kernels import VertexHistogram, WeisfeilerLehman
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    def given(A):
        return Graph(A, node_labels=dict(enumerate(A.sum(axis=1).tolist())))

    kernel = WeisfeilerLehman(n_iter=3, base_graph_kernel=VertexHistogram, normalize=True)
    K = kernel.fit_transform([given(A) for A in graphs])
    machine = GridSearchCV(SVC(kernel="precomputed"), {"C": np.logspace(-2, 3, 6)}).fit(K, y)
    return machine.predict(kernel.transform([given(A) for A in new]))


# ---------------------------------------------------------------------------------------------------- tables
def table_mercerless(X, y, new):
    from mercerless import TableClassifier

    return TableClassifier(random_state=0).fit(X, y).predict_proba(new)


def table_lightgbm(X, y, new):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(verbose=-1, random_state=0, n_jobs=1).fit(X, y).predict_proba(new)


def table_catboost(X, y, new):
    from catboost import CatBoostClassifier

    settings = {"verbose": 0, "random_seed": 0, "thread_count": 1, "allow_writing_files": False}
    return CatBoostClassifier(**settings).fit(X, y).predict_proba(new)


def table_xrfm(X, y, new):
    """Recursive feature machines; a fifth of the rows to validate, as it asks for."""
    from sklearn.preprocessing import StandardScaler
    from xrfm import xRFM

    scaler = StandardScaler().fit(X)
    A, B, a, b = train_test_split(scaler.transform(X), y, test_size=0.2, random_state=0)
    return xRFM().fit(A, a, B, b).predict_proba(scaler.transform(new))


def table_himalaya(X, y, new):
    """Kernel ridge regression on +-1, tuned; the sign is the class."""
    from himalaya.kernel_ridge import KernelRidgeCV
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(X)
    model = KernelRidgeCV(alphas=np.logspace(-3, 3, 7), kernel="rbf").fit(
        scaler.transform(X), 2.0 * y - 1
    )
    return (np.ravel(model.predict(scaler.transform(new))) > 0).astype(int)


def table_mklpy(X, y, new):
    """EasyMKL on Gaussian kernels of five widths."""
    from MKLpy.algorithms import EasyMKL
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(X)
    A, T = scaler.transform(X), scaler.transform(new)
    gammas = 10.0 ** np.arange(-4, 1)
    model = EasyMKL(lam=0.1).fit([rbf_kernel(A, gamma=g) for g in gammas], y)
    return np.asarray(model.predict([rbf_kernel(T, A, gamma=g) for g in gammas]))


def table_boosting(X, y, new):
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0).fit(X, y).predict_proba(new)


# ---------------------------------------------------------------------------------------------------- directed
def directed_mercerless(K, y, K_new):
    from mercerless import SimilarityClassifier

    model = SimilarityClassifier(
        kernel="precomputed", direction="both", kind="dissimilarity", random_state=0
    ).fit(K, y)
    return model.predict_proba(K_new)


def directed_rows_as_features(K, y, K_new):
    """scikit-learn: the row of an item as its features."""
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return (
        make_pipeline(StandardScaler(), LogisticRegressionCV(max_iter=2000))
        .fit(K, y)
        .predict_proba(K_new)
    )


NEEDS = {
    "matrix": (
        matrix_problem,
        (
            matrix_mercerless,
            matrix_krein_svm,
            matrix_svc_clipped,
            matrix_ridge_clipped,
            matrix_process_clipped,
            matrix_neighbors,
        ),
    ),
    "strings": (string_problem, (strings_mercerless, strings_tfidf)),
    "series": (series_problem, (series_mercerless, series_aeon, series_tslearn)),
    "graphs": (graph_problem, (graphs_mercerless, graphs_grakel)),
    "table": (
        table_problem,
        (
            table_mercerless,
            table_boosting,
            table_lightgbm,
            table_catboost,
            table_xrfm,
            table_himalaya,
            table_mklpy,
        ),
    ),
    "directed": (directed_problem, (directed_mercerless, directed_rows_as_features)),
}


# ---------------------------------------------------------------------------------------------------- measured
def lines_of(function):
    """Lines that say something, after the definition and its docstring."""
    body = inspect.getsource(function).splitlines()[1:]
    return sum(1 for line in body if line.strip() and not line.strip().startswith('"""'))


def title(function):
    return function.__name__.partition("_")[2].replace("_", " ")


def measure(need, function):
    """A row, or None where the peer is not installed; half of the items train."""
    X, y = NEEDS[need][0]()
    train, test = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=0)
    square = need in ("matrix", "directed")
    A, T = (X[np.ix_(part, train)] if square else X[part] for part in (train, test))
    start = time.process_time()
    try:
        found = np.asarray(function(A, y[train], T))
    except ImportError as error:
        print(f"{function.__name__}: {error}")
        return None
    seconds = time.process_time() - start
    loss = log_loss(y[test], np.asarray(found, dtype=float)) if found.ndim == 2 else ""
    labels = np.unique(y)[found.argmax(axis=1)] if found.ndim == 2 else found
    accuracy = f"{100 * np.mean(labels == y[test]):.1f}"
    loss = loss if loss == "" else f"{loss:.3f}"
    return (need, title(function), len(train), accuracy, loss, f"{seconds:.1f}", lines_of(function))


def read():
    if not RESULTS.exists():
        return {}
    with open(RESULTS, newline="") as file:
        return {tuple(row[:2]): tuple(row) for row in list(csv.reader(file))[1:]}


def write(rows):
    """In the order of NEEDS."""
    order = [
        (need, title(function)) for need, (_, functions) in NEEDS.items() for function in functions
    ]
    header = ("need", "peer", "items", "accuracy", "log_loss", "cpu_seconds", "lines")
    RESULTS.parent.mkdir(exist_ok=True)
    with open(RESULTS, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [header, *(rows[key] for key in order if key in rows)]
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--needs", nargs="*", choices=NEEDS, default=list(NEEDS))
    parser.add_argument("--peers", nargs="*", help="only these, as tslearn")
    options = parser.parse_args()
    for need in options.needs:
        for function in NEEDS[need][1]:
            wanted = not options.peers or title(function) in options.peers
            row = measure(need, function) if wanted else None
            if row is not None:
                print(*row, flush=True)
                write(read() | {row[:2]: row})


if __name__ == "__main__":
    main()

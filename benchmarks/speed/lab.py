"""Local kernels and LAB models against plain NumPy, scikit-learn and a tuned LightGBM search, in one run.

    python benchmarks/speed/lab.py [--n 3000]

Every row is a ratio of CPU times measured in turn in one process, so that it means the same on any machine. Writes
results/lab.csv beside this file.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import RandomizedSearchCV

from mercerless import LABRegressor
from mercerless.datasets import make_lab_function
from mercerless.kernels import LocalGaussian, LocalLaplace


def cpu(function, repeats=3):
    """The best CPU time of several calls."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def numpy_laplace(X, S, H):
    """Feature by feature on whole columns, as one would write it."""
    D = np.zeros((len(X), len(S)))
    for f in range(X.shape[1]):
        D += np.abs(X[:, f, None] - S[:, f]) / H[:, f]
    return np.exp(-D)


def kernels(n):
    """Matrix and pullback of local kernels."""
    random = np.random.default_rng(0)
    X, H = random.normal(size=(n, 20)), np.exp(random.normal(size=(200, 20)))
    S, G = X[:200].copy(), random.normal(size=(n, 200))
    ours = cpu(lambda: LocalLaplace(H)(X, S))
    X32, S32, H32 = (a.astype(np.float32) for a in (X, S, H))
    K = LocalLaplace(H)(X, S)
    yield (
        "Laplace matrix: whole columns in NumPy / ours",
        cpu(lambda: numpy_laplace(X, S, H)) / ours,
    )
    yield "Laplace matrix: float64 / float32", ours / cpu(lambda: LocalLaplace(H32)(X32, S32))
    yield "Laplace pullback / matrix", cpu(lambda: LocalLaplace(H).pullback(X, S, G, K)) / ours
    gaussian = cpu(lambda: LocalGaussian(H)(X, S))
    tensor = cpu(lambda: np.exp(-0.5 * np.sum(((X[:500, None] - S) / H) ** 2, axis=2)), 1) * n / 500
    yield "Gaussian matrix: tensor of differences / ours", tensor / gaussian
    full = RBF(np.ones(20))
    gradient = cpu(lambda: full(X[:400], eval_gradient=True), 1) / (400 * 400)
    K = LocalGaussian(H)(X, S)
    yield ("Gaussian gradient per entry: scikit-learn's GP kernel / ours",
           gradient * n * 200 / cpu(lambda: LocalGaussian(H).pullback(X, S, G, K)))  # fmt: skip


def models(n):
    """Fit and predict."""
    X, y = make_lab_function(n, function="f2", noise=0.05, random_state=0)
    T, z = make_lab_function(100_000, function="f2", random_state=1)
    model = LABRegressor(100, random_state=0)
    ours = cpu(lambda: model.fit(X, y), 1)
    ridge = KernelRidge(kernel="rbf", gamma=0.5, alpha=1e-2).fit(X, y)
    predict = cpu(lambda: model.predict(T), 1)
    yield (
        "predict: kernel ridge on all rows / ours",
        cpu(lambda: ridge.predict(T[:20_000]), 1) * 5 / predict,
    )
    yield "million rows predicted per CPU minute", 60 / predict / 10
    yield "numbers in kernel ridge's model / in ours", ridge.X_fit_.size / model.n_parameters_
    try:
        from lightgbm import LGBMRegressor
    except ImportError:
        return
    space = {
        "num_leaves": [7, 15, 31, 63],
        "learning_rate": [0.03, 0.06, 0.1],
        "n_estimators": [200, 400, 800],
    }
    peer = LGBMRegressor(n_jobs=1, verbose=-1, random_state=0)
    search = RandomizedSearchCV(peer, space, n_iter=10, cv=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = cpu(lambda: search.fit(X, y), 1)
        yield "fit: search of 10 LightGBM models in 3 folds / ours", seconds / ours
        yield (
            "squared error of that search / of ours",
            (1 - search.score(T, z)) / (1 - model.score(T, z)),
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=3000)
    n = parser.parse_args().n
    rows = []
    for what, ratio in [*kernels(n), *models(n)]:
        rows.append({"what": what, "n": n, "ratio": f"{ratio:.3g}"})
        print(f"{what:65s} {ratio:.3g}", flush=True)
    path = Path(__file__).parent / "results" / "lab.csv"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()

"""Kernel matrices and pullbacks against scikit-learn, plain NumPy and the machine's limits, in one run.

    python benchmarks/speed/kernels.py [--n 8000] [--d 20]

Every row is a ratio of the best of several alternating timings, so that it means the same on any machine. The limit is
the larger of the matrix product's time and the time to write the result once.
"""

import argparse
import csv
import time
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import (
    laplacian_kernel,
    manhattan_distances,
    rbf_kernel,
    sigmoid_kernel,
)

from mercerless.kernels import TL1, Gaussian, Laplace, Sigmoid


def best_times(functions, repeats):
    """The best wall-clock time of each function, measured in turn so that a busy moment hits all alike."""
    best = dict.fromkeys(functions, np.inf)
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def numpy_gaussian(X):
    q = (X**2).sum(1)[:, None] - 2 * X @ X.T + (X**2).sum(1)
    return np.exp(-np.maximum(q, 0) / 2)


def numpy_l1(X):
    total = np.zeros((len(X), len(X)))
    for column in X.T:
        total += np.abs(column[:, None] - column)
    return total


def matrices(n, d, repeats):
    X = np.random.default_rng(0).normal(size=(n, d))
    out = np.empty((n, n))
    limits = best_times(
        {"gemm": lambda: np.matmul(X, X.T, out=out), "write": lambda: out.fill(1.0)}, repeats
    )
    limit = max(limits.values())
    cases = {
        "Gaussian": (Gaussian(1.0), lambda: rbf_kernel(X, gamma=0.5), lambda: numpy_gaussian(X)),
        "Laplace": (
            Laplace(1.0),
            lambda: laplacian_kernel(X, gamma=1.0),
            lambda: np.exp(-numpy_l1(X)),
        ),
        "TL1": (
            TL1(0.7 * d),
            lambda: np.maximum(0.7 * d - manhattan_distances(X), 0),
            lambda: np.maximum(0.7 * d - numpy_l1(X), 0),
        ),
        "Sigmoid": (
            Sigmoid(1.0),
            lambda: sigmoid_kernel(X, gamma=1.0, coef0=0.0),
            lambda: np.tanh(X @ X.T),
        ),
    }
    for name, (kernel, sklearn, plain) in cases.items():
        single = X.astype(np.float32)
        times = best_times({"ours": partial(kernel, X), "sklearn": sklearn}, repeats)
        times |= best_times({"numpy": plain}, 1)
        times |= best_times({"float32": partial(kernel, single)}, repeats)
        yield {
            "what": f"{name} matrix n={n} d={d}",
            "seconds": round(times["ours"], 3),
            "sklearn / ours": round(times["sklearn"] / times["ours"], 2),
            "numpy / ours": round(times["numpy"] / times["ours"], 2),
            "ours / limit": round(times["ours"] / limit, 2),
            "float64 / float32": round(times["ours"] / times["float32"], 2),
        }


def traced_peak(function):
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def pullbacks(n, d, repeats):
    X = np.random.default_rng(0).normal(size=(n, d))
    G = np.random.default_rng(1).normal(size=(n, n))
    scales = np.full(d, np.sqrt(d))

    def tensor():
        return np.einsum("ij,ijp->p", G, RBF(scales)(X, eval_gradient=True)[1])

    def ours():
        return Gaussian(scales).pullback(X, None, G)

    np.testing.assert_allclose(ours(), tensor(), rtol=1e-8)
    times = best_times({"ours": ours, "sklearn": tensor}, repeats)
    yield {
        "what": f"Gaussian pullback n={n} d={d}",
        "seconds": round(times["ours"], 3),
        "sklearn / ours": round(times["sklearn"] / times["ours"], 2),
        "memory sklearn / ours": round(traced_peak(tensor) / traced_peak(ours), 1),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=8000)
    parser.add_argument("--d", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    rows = [
        *matrices(arguments.n, arguments.d, arguments.repeats),
        *pullbacks(2000, arguments.d, arguments.repeats),
    ]
    fields = list(dict.fromkeys(key for row in rows for key in row))
    for row in rows:
        print("  ".join(f"{key}: {row[key]}" for key in fields if key in row))
    path = Path(__file__).parent / "results" / "kernels.csv"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fields)
        writer.writeheader()
        writer.writerows(rows)
    print(f"written: {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")


if __name__ == "__main__":
    main()

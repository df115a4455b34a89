"""Kernel matrices and pullbacks against scikit-learn, plain NumPy and the machine's limits, in one run.

    python benchmarks/speed/kernels.py [--sizes 4000x20 3000x200 1000x200 500x800]

Symmetric matrices k(X) and matrices k(X, Y) of as many rows in Y. Every row is a ratio of the best of several
alternating timings in processor seconds of one thread; run it on an idle machine, because other processes share the
caches. The limit is the larger of the matrix product's time and the time to write the result once.
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
    polynomial_kernel,
    rbf_kernel,
    sigmoid_kernel,
)
from threadpoolctl import threadpool_limits

from mercerless.kernels import TL1, Gaussian, Laplace, Polynomial, Sigmoid


def best_times(functions, repeats):
    """The least processor seconds of each function, measured in turn so that a busy moment hits all alike."""
    best = dict.fromkeys(functions, np.inf)
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.process_time()
            function()
            best[name] = min(best[name], time.process_time() - start)
    return best


def numpy_gaussian(X, Y):
    q = (X**2).sum(1)[:, None] - 2 * X @ Y.T + (Y**2).sum(1)
    return np.exp(-np.maximum(q, 0) / 2)


def numpy_l1(X, Y):
    total = np.zeros((len(X), len(Y)))
    for left, right in zip(X.T, Y.T):
        total += np.abs(left[:, None] - right)
    return total


def cases(X, Y, d):
    """Our kernel, scikit-learn's function and plain NumPy, each for X and Y, which is None for a symmetric matrix."""
    other = X if Y is None else Y
    return {
        "Gaussian": (
            Gaussian(1.0),
            lambda: rbf_kernel(X, Y, gamma=0.5),
            lambda: numpy_gaussian(X, other),
        ),
        "Laplace": (
            Laplace(1.0),
            lambda: laplacian_kernel(X, Y, gamma=1.0),
            lambda: np.exp(-numpy_l1(X, other)),
        ),
        "TL1": (
            TL1(0.7 * d),
            lambda: np.maximum(0.7 * d - manhattan_distances(X, Y), 0),
            lambda: np.maximum(0.7 * d - numpy_l1(X, other), 0),
        ),
        "Sigmoid": (
            Sigmoid(1.0),
            lambda: sigmoid_kernel(X, Y, gamma=1.0, coef0=0.0),
            lambda: np.tanh(X @ other.T),
        ),
        "Polynomial": (
            Polynomial(3),
            lambda: polynomial_kernel(X, Y, degree=3, gamma=1.0),
            lambda: (X @ other.T + 1) ** 3,
        ),
    }


def check(d):
    """Our matrices are scikit-learn's."""
    X, Y = np.random.default_rng(0).normal(size=(2, 300, d))
    for second in (None, Y):
        for kernel, sklearn, plain in cases(X, second, d).values():
            np.testing.assert_allclose(kernel(X, second), sklearn(), rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(kernel(X, second), plain(), rtol=1e-8, atol=1e-10)


def matrices(n, d, is_symmetric, repeats):
    """Rows for k(X), or for k(X, Y) with as many rows in Y."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    Y = None if is_symmetric else random.normal(size=(n, d))
    other = X if Y is None else Y
    out = np.empty((n, n))
    limits = best_times(
        {"gemm": lambda: np.matmul(X, other.T, out=out), "write": lambda: out.fill(1.0)}, repeats
    )
    limit = max(limits.values())
    single = X.astype(np.float32)
    other_single = None if Y is None else Y.astype(np.float32)
    for name, (kernel, sklearn, plain) in cases(X, Y, d).items():
        times = best_times({"ours": partial(kernel, X, Y), "sklearn": sklearn}, repeats)
        times |= best_times({"numpy": plain}, 1)
        times |= best_times({"float32": partial(kernel, single, other_single)}, repeats)
        yield {
            "what": f"{name} {'k(X)' if is_symmetric else 'k(X, Y)'} n={n} d={d}",
            "seconds": round(times["ours"], 4),
            "sklearn / ours": round(times["sklearn"] / times["ours"], 2),
            "ours / sklearn": round(times["ours"] / times["sklearn"], 2),
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
    parser.add_argument(
        "--sizes", nargs="+", default=["4000x20", "3000x200", "1000x200", "500x800"]
    )
    parser.add_argument("--n", type=int, help="one size only: this many rows of 20 features")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.n:
        arguments.sizes = [f"{arguments.n}x20"]
    rows = []
    with threadpool_limits(1):
        for size in arguments.sizes:
            n, d = map(int, size.split("x"))
            check(d)
            repeats = arguments.repeats if n > 1000 else 4 * arguments.repeats
            for is_symmetric in (True, False):
                rows += matrices(n, d, is_symmetric, repeats)
        rows += pullbacks(2000, 20, arguments.repeats)
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

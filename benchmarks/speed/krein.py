"""Krein models against the cost of their eigendecompositions, and landmarks on many rows, in one run.

    python benchmarks/speed/krein.py [--rows 1000] [--many 50000]

Rows of the result: choosing among 510 settings relative to one eigendecomposition per fold (limit 1.5); a gradient of
the validation loss in all parameters relative to one eigendecomposition (limit 2); the same number of settings by
GridSearchCV over KernelRidge, one linear solve each (from a thirtieth of them); and least squares on many rows with 125
to 1000 landmarks: seconds, peak memory of a fresh process (limit 2 GB) and test error, which should fall. Times are CPU
times, the best of several.

Writes results/krein.csv beside this file.
"""

import argparse
import csv
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy.linalg import eigh
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold

from mercerless import KreinRidge, Sphere
from mercerless.kernels import DeltaGauss, Gaussian
from mercerless.krein.solver import validation_loss

HERE = Path(__file__).parent


def cpu_time(function, repeats=3):
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def problem(n, n_features=6, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, n_features))
    truth = np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1]) + X[:, 2] ** 2
    return X, truth + noise * rng.standard_normal(n), truth


def tuning(n):
    """510 settings with a radius: the fit less the fit of one setting, over one eigh per fold."""
    X, y, _ = problem(n)
    K = DeltaGauss(1.0, 0.4)(X)
    search = KreinRidge("precomputed", constraint=Sphere(), random_state=0)
    search.fit(K, y)
    given = {"alpha_positive": search.alpha_positive_, "alpha_negative": search.alpha_negative_}
    one = KreinRidge("precomputed", constraint=Sphere(search.radius_), random_state=0, **given)
    folds = [train for train, _ in KFold(5, shuffle=True, random_state=0).split(K)]

    def decompositions():
        for train in folds:
            block = K[np.ix_(train, train)]
            eigh(block - block.mean(axis=0), driver="evd", overwrite_a=True, check_finite=False)

    base = cpu_time(decompositions)
    cost = cpu_time(lambda: search.fit(K, y)) - cpu_time(lambda: one.fit(K, y))
    # a thirtieth of the settings, or it takes minutes
    alphas = {"alpha": np.logspace(-4, 2, 510 // 30)}
    grid = GridSearchCV(
        KernelRidge(kernel="precomputed"), alphas, cv=KFold(5, shuffle=True, random_state=0)
    )
    definite = Gaussian(1.0)(X)  # on an indefinite matrix it falls back to slow least squares
    reference = cpu_time(lambda: grid.fit(definite, y), 1) * 30
    yield "510 settings / one eigh per fold", cost / base, 1.5
    yield "GridSearchCV(KernelRidge), 510 settings / one eigh per fold", reference / base, np.nan


def gradient(n):
    """Loss and gradient in both penalties, radius and both scales, over one eigh."""
    X, y, _ = problem(n)
    kernel = DeltaGauss(1.0, 0.4)
    cut = 4 * n // 5
    K, K_val = kernel(X[:cut]), kernel(X[cut:], X[:cut])
    target, target_val = y[:cut, None], y[cut:, None]

    def evaluate(constraint, radius):
        part = validation_loss(
            K, target, K_val, target_val, 1e-3, 1e-3, radius, constraint=constraint
        )
        return kernel.pullback(X[:cut], None, part.train) + kernel.pullback(
            X[cut:], X[:cut], part.validation
        )

    base = cpu_time(lambda: eigh(K.copy(), driver="evd", overwrite_a=True, check_finite=False), 5)
    for name, constraint, radius in (("no constraint", None, None), ("sphere", "sphere", 0.5)):
        yield (
            f"gradient, {name} / eigh",
            cpu_time(lambda c=constraint, r=radius: evaluate(c, r), 5) / base,
            2.0,
        )


def landmarks(n, m):
    """One fit on many rows in this process; prints its measures."""
    X, y, _ = problem(n)
    test, _, truth = problem(2000, seed=1)
    start = time.process_time()
    model = KreinRidge(DeltaGauss(1.0, 0.4), landmarks=m, random_state=0).fit(X, y)
    seconds = time.process_time() - start
    error = float(np.sqrt(np.mean((model.predict(test) - truth) ** 2)))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps([seconds, memory, error]))


def many_rows(n):
    for m in (125, 250, 500, 1000):
        command = [sys.executable, __file__, "--landmarks", str(m), "--many", str(n)]
        seconds, memory, error = json.loads(
            subprocess.run(command, capture_output=True, check=True).stdout
        )
        yield f"n = {n}, {m} landmarks: CPU seconds", seconds, np.nan
        yield f"n = {n}, {m} landmarks: peak memory in GB", memory, 2.0
        yield f"n = {n}, {m} landmarks: test error", error, np.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--many", type=int, default=50_000)
    parser.add_argument("--landmarks", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.landmarks:
        landmarks(options.many, options.landmarks)
        return
    rows = []
    for part in (tuning(options.rows), gradient(options.rows), many_rows(options.many)):
        for name, value, limit in part:
            rows.append((name, f"{value:.4g}", "" if np.isnan(limit) else limit))
            print(*rows[-1], flush=True)
    (HERE / "results").mkdir(exist_ok=True)
    with open(HERE / "results" / "krein.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("measure", "value", "limit"))
        writer.writerows(rows)


if __name__ == "__main__":
    main()

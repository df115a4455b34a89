"""Hyper-kernels: speed against the paper's own formulas and against a search of kernel ridge regression, in one run.

Four ratios of CPU times: evaluating a learned kernel against summing hyper-kernel values; fitting with landmark
pairs against Eq. (9) of the paper on all ordered pairs; the low-rank tensor against the exact one; and a grid search of
scikit-learn's KernelRidge (56 settings, 5 folds) against HyperRegressor, which chooses both of its stages.

    python benchmarks/speed/hyper.py [evaluation] [fitting] [low_rank] [search] [--full]
"""

import argparse
import csv
import time
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale

from mercerless import HyperRegressor, HyperRidge
from mercerless.kernels import GaussianHyper, TensorHyper

RESULTS = Path(__file__).parent / "results" / "hyper.csv"


def cpu(work):
    start = time.process_time()
    value = work()
    return time.process_time() - start, value


def evaluation(full: bool) -> list[dict]:
    """2000 x 2000 values with 500 centers; the sum is timed on a part of the rows and scaled up."""
    rng = np.random.default_rng(0)
    X, Y, n_rows = rng.normal(size=(2000, 20)), rng.normal(size=(2000, 20)), 2000 if full else 40
    train = rng.normal(size=(200, 20))
    hyper = GaussianHyper(6.0)
    kernel = (
        HyperRidge(hyper, alpha=1e-3, landmarks=500, random_state=0)
        .fit(train, train[:, 0] > 0)
        .kernel_
    )
    ours, K = min((cpu(lambda: kernel(X, Y)) for _ in range(3)), key=lambda pair: pair[0])
    # a center is the midpoint of the pair of itself with itself
    centers = np.stack([kernel.centers, kernel.centers], axis=1)

    def by_sum():
        out = np.empty((n_rows, len(Y)))
        for i in range(n_rows):
            pairs = np.stack([np.broadcast_to(X[i], Y.shape), Y], axis=1)
            out[i] = hyper(pairs, centers) @ kernel.coef
        return out

    summed, S = cpu(by_sum)
    difference = np.abs(K[:n_rows] - S).max() / np.abs(S).max()
    summed *= len(X) / n_rows
    return [
        {
            "what": "evaluate 2000 x 2000, 500 centers",
            "ours_seconds": ours,
            "other": "sum of hyper-kernel values",
            "other_seconds": summed,
            "ratio": summed / ours,
            "difference": difference,
            "target": 50,
        }
    ]


def equation_nine(X, Y, hyper, centers, alpha):
    """The paper's formula: all ordered pairs at once, (m^2, P) matrix."""
    m = len(X)
    first, second = np.repeat(np.arange(m), m), np.tile(np.arange(m), m)
    center_pairs = np.stack([centers, centers], axis=1)
    B = np.empty((m * m, len(centers)))
    for start in range(0, m * m, 20_000):
        rows = slice(start, start + 20_000)
        B[rows] = hyper(np.stack([X[first[rows]], X[second[rows]]], axis=1), center_pairs)
    gram = hyper.gram(centers)
    A = B.T @ B + alpha * m * m * gram
    A[np.diag_indices_from(A)] += 1e-9 * np.trace(A) / len(A)
    return cho_solve(cho_factor(A), B.T @ Y.ravel())


def fitting(full: bool) -> list[dict]:
    rng = np.random.default_rng(1)
    m, p = (1000, 500) if full else (600, 300)
    X = rng.normal(size=(m, 20))
    y = (np.sin(X[:, 0]) + X[:, 1] > 0).astype(int)
    Y = np.where(y[:, None] == y, 1.0, -1.0)
    hyper, alpha = GaussianHyper(6.0), 1e-5
    rows = []
    for solver in ("cg", "direct"):
        model = HyperRidge(hyper, alpha=alpha, landmarks=p, solver=solver, tol=1e-4, random_state=0)
        seconds, model = cpu(lambda model=model: model.fit(X, y))
        tracemalloc.start()
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        rows.append((solver, seconds, peak, model))
    seconds, coef = cpu(lambda: equation_nine(X, Y, hyper, rows[0][3].kernel_.centers, alpha))
    reference = type(rows[0][3].kernel_)(hyper, rows[0][3].kernel_.centers, coef)(X)
    out = []
    for solver, ours, peak, model in rows:
        difference = np.linalg.norm(model.kernel_(X) - reference) / np.linalg.norm(reference)
        out.append(
            {
                "what": f"fit {m} items, {p} landmark pairs, {solver}",
                "ours_seconds": ours,
                "other": "Eq. (9)",
                "other_seconds": seconds,
                "ratio": seconds / ours,
                "difference": difference,
                "target": 15 if solver == "cg" else "",
                "peak_megabytes": peak,
            }
        )
    out.append(
        {
            "what": f"fit {m} items, {p} landmark pairs, cg against direct",
            "ours_seconds": rows[0][1],
            "other": "streamed normal equations",
            "other_seconds": rows[1][1],
            "ratio": rows[1][1] / rows[0][1],
            "target": 5,
        }
    )
    return out


def low_rank(full: bool) -> list[dict]:
    rng = np.random.default_rng(2)
    n = 3000 if full else 1200
    X = rng.uniform(size=(n + 200, 4))
    S = np.exp(-np.abs(X[:, None] - X[None]).sum(axis=2)) * (
        1 + 0.3 * np.add.outer(X[:, 0], X[:, 0])
    )
    train, test = slice(0, n), slice(n, None)
    errors, seconds = {}, {}
    for name, count in (("exact", None), ("low rank", 200)):
        # the low-rank kernel is the small one, which does not store the training items
        hyper = TensorHyper(1.0, 1e-3, remember_items=count is None)
        model = HyperRidge(hyper, alpha=1e-3, landmarks=count, random_state=0)
        seconds[name], model = cpu(lambda model=model: model.fit(X[train], S[train, train]))
        errors[name] = np.linalg.norm(model.transform(X[test]) - S[test, train]) / np.linalg.norm(
            S[test, train]
        )
    return [
        {
            "what": f"tensor, {n} items, 200 landmarks",
            "ours_seconds": seconds["low rank"],
            "other": "exact",
            "other_seconds": seconds["exact"],
            "ratio": seconds["exact"] / seconds["low rank"],
            "difference": errors["low rank"] / errors["exact"] - 1,
            "target": 10,
        }
    ]


def regression_sets():
    """Names, rows and targets: generated waves, and ten measurements of patients."""
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(450, 5))
    y = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=450)
    yield "waves", X, y
    X, y = load_diabetes(return_X_y=True)
    order = rng.permutation(len(X))
    yield "diabetes", scale(X)[order], scale(y)[order]


def search(full: bool) -> list[dict]:
    """Medians of alternating fits of 150 rows; the difference is that of R2 on the other rows."""
    n = 150
    rows = []
    for name, X, y in regression_sets():
        grid = {"alpha": np.logspace(-6, 1, 8), "gamma": np.logspace(-2, 1, 7) / X.shape[1]}
        models = {
            "ours": HyperRegressor(random_state=0),
            "other": GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5),
        }
        times = {key: [] for key in models}
        for _ in range(9 if full else 5):
            for key, model in models.items():
                times[key].append(cpu(partial(model.fit, X[:n], y[:n]))[0])
        seconds = {key: float(np.median(values)) for key, values in times.items()}
        scores = {key: model.score(X[n:], y[n:]) for key, model in models.items()}
        rows.append(
            {
                "what": f"HyperRegressor, {n} rows of {name}",
                "ours_seconds": seconds["ours"],
                "other": "search of KernelRidge, 56 settings",
                "other_seconds": seconds["other"],
                "ratio": seconds["other"] / seconds["ours"],
                "difference": scores["ours"] - scores["other"],
                "target": 0.5,
            }
        )
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help="which comparisons; all by default")
    parser.add_argument(
        "--full", action="store_true", help="1000 items and 500 pairs, 3000 items for the tensor"
    )
    options = parser.parse_args()
    parts = {part.__name__: part for part in (evaluation, fitting, low_rank, search)}
    rows = []
    if RESULTS.exists():  # keep what is not measured again
        with RESULTS.open() as file:
            rows = [
                row
                for row in csv.DictReader(file)
                if options.parts and row["part"] not in options.parts
            ]
    for name in options.parts or parts:
        for row in parts[name](options.full):
            rows.append({"part": name, **row})
            shown = (
                f"{k}: {v:.3g}" if isinstance(v, float) else f"{k}: {v}" for k, v in row.items()
            )
            print("  ".join(shown), flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    names = (
        "part what ours_seconds other other_seconds ratio target difference peak_megabytes".split()
    )
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(
            {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows
        )


if __name__ == "__main__":
    main()

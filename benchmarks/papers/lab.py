"""The tables and figures of the LAB paper, and a comparison with tuned peers on every regression set.

    export MERCERLESS_DATA=...            # the folder of data sets
    python benchmarks/papers/lab.py compare [--splits 5] [--sets yacht mg] [--learners table lightgbm] [--full]
    python benchmarks/papers/lab.py table1 | table2 | table5 | table6 | noise | support | training | figures | mnist |
                                          images | schedule

Every command is a reduced run by default and complete with --full. ``compare`` works round by round, one split of every
set at a time, writes a line to results/lab_compare.csv after every fit, skips what is already there, and prints average
ranks with a corrected test; it runs the table learner with its defaults. Every learner sees the same at most 3000
training and 2000 test rows of a split; peers are tuned by cross-validation on at most 1000 of these training rows and
refitted on all. The tables run LABRegressor with its defaults and the paper's numbers of support points; ``table5`` and
``table6`` also run the paper's Algorithm 1.
"""

import argparse
import csv
import gzip
import importlib.util
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from paper_sets import load
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.stats import friedmanchisquare, rankdata
from scipy.stats import t as student
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import (
    GroupShuffleSplit,
    RandomizedSearchCV,
    ShuffleSplit,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils import Bunch

from mercerless import Adam, LABClassifier, LABRegressor, Support, TableClassifier, TableRegressor
from mercerless.datasets import make_lab_function

HERE = Path(__file__).parent
RESULTS = HERE / "results"
SETS = [
    "yacht",
    "bodyfat",
    "pyrim",
    "mpg",
    "pm10",
    "housing",
    "cps_85_wages",
    "mg",
    "airfoil",
    "sml2010",
    "parkinsons",
    "parkinsons_grouped",
    "comp_activ",
    "cpusmall",
    "electrical",
    "toms_hardware",
]
# the numbers of support points in the paper's Tables 1 and 2
SUPPORT = {
    "tecator": 76,
    "yacht": 73,
    "airfoil": 800,
    "sml2010": 400,
    "parkinsons": 400,
    "parkinsons_grouped": 400,
    "comp_activ": 70,
    "electrical": 300,
    "kc_house": 550,
    "toms_hardware": 500,
}


def splits(name, n_splits, full, most=None):
    """Yield training and test parts: random, or by subject for the grouped variant, at most 3000 and 2000 rows."""
    data = load(name.removesuffix("_grouped"))
    X, y = np.asarray(data.data, dtype=float), np.asarray(data.target, dtype=float)
    if name.endswith("_grouped"):
        parts = GroupShuffleSplit(n_splits, test_size=0.2, random_state=0).split(
            X, y, groups=X[:, 0]
        )
        X = X[:, 1:]  # without the subject's number
    else:
        parts = ShuffleSplit(n_splits, test_size=0.2, random_state=0).split(X)
    for seed, (train, test) in enumerate(parts):
        if not full:
            random = np.random.RandomState(seed)
            train, test = random.permutation(train)[:3000], random.permutation(test)[:2000]
        train = train[:most]
        yield seed, X[train], y[train], X[test], y[test]


# ---------------------------------------------------------------------------------------------------- the learners
class TunedKernelRidge:
    """Kernel ridge regression; bandwidth and ridge by exact leave-one-out on at most 1000 rows."""

    def __init__(self, kernel):
        self.kernel = {"gaussian": rbf_kernel, "laplace": laplacian_kernel}[kernel]

    def fit(self, X, y):
        self.scaler = StandardScaler().fit(X)
        Z, self.mean = self.scaler.transform(X), y.mean()
        y = y - self.mean
        rows = np.random.RandomState(0).permutation(len(Z))[:1000]
        best = (np.inf,)
        for gamma in 2.0 ** np.arange(-9, 4) / np.sqrt(X.shape[1]):
            e, V = eigh(self.kernel(Z[rows], gamma=gamma))
            q, V2 = V.T @ y[rows], V * V
            for alpha in 10.0 ** np.arange(-7, 2):
                inverse = 1 / (np.maximum(e, 0) + alpha)
                error = np.sum(((V @ (q * inverse)) / (V2 @ inverse)) ** 2)
                best = min(best, (error, gamma, alpha))
        _, self.gamma, alpha = best
        K = self.kernel(Z, gamma=self.gamma)
        K[np.diag_indices(len(K))] += alpha
        self.coef, self.Z = cho_solve(cho_factor(K), y), Z
        return self

    def predict(self, X):
        return (
            self.kernel(self.scaler.transform(X), self.Z, gamma=self.gamma) @ self.coef + self.mean
        )


class Searched:
    """A random search by three folds on at most 1000 rows, refitted on all."""

    def __init__(self, model, space, n_iter):
        self.search = RandomizedSearchCV(
            model,
            space,
            n_iter=n_iter,
            cv=3,
            random_state=0,
            scoring="neg_mean_squared_error",
            refit=False,
        )
        self.model = model

    def fit(self, X, y):
        rows = np.random.RandomState(0).permutation(len(X))[:1000]
        self.search.fit(X[rows], y[rows])
        self.model.set_params(**self.search.best_params_).fit(X, y)
        return self

    def predict(self, X):
        return self.model.predict(X)


class TunedXRFM:
    """A recursive feature machine; bandwidth and ridge by a fifth of the rows held out."""

    def __init__(self, n_iter):
        self.n_iter = n_iter

    def fit(self, X, y):
        import torch
        from xrfm import xRFM

        self.scaler, self.mean, self.scale = StandardScaler().fit(X), y.mean(), y.std()
        t = lambda a: torch.tensor(a, dtype=torch.float32)  # noqa: E731
        A, V, b, v = train_test_split(
            self.scaler.transform(X), (y - self.mean) / self.scale, test_size=0.2, random_state=0
        )
        random, best = np.random.RandomState(0), (np.inf, None)
        for _ in range(self.n_iter):
            parameters = {
                "model": {
                    "kernel": "l2",
                    "bandwidth": float(10 ** random.uniform(0, 1.7)),
                    "exponent": 1.0,
                    "diag": bool(random.randint(2)),
                    "bandwidth_mode": "constant",
                },
                "fit": {
                    "reg": float(10 ** random.uniform(-5, 0)),
                    "iters": 3,
                    "verbose": False,
                    "early_stop_rfm": True,
                },
            }
            model = xRFM(parameters, device=torch.device("cpu"), tuning_metric="mse", verbose=False)
            model.fit(t(A), t(b)[:, None], t(V), t(v)[:, None])
            error = float(np.mean((np.asarray(model.predict(t(V))).ravel() - v) ** 2))
            if error < best[0]:
                best = (error, model)
        self.model, self.torch = best[1], t
        return self

    def predict(self, X):
        return (
            np.asarray(self.model.predict(self.torch(self.scaler.transform(X)))).ravel()
            * self.scale
            + self.mean
        )


class TunedSVR:
    """Support vector regression with standardized features and target."""

    def __init__(self, n_iter):
        space = {
            "svr__C": 10.0 ** np.arange(-1, 4),
            "svr__gamma": 2.0 ** np.arange(-8, 2),
            "svr__epsilon": [0.01, 0.05, 0.2],
        }
        self.search = Searched(
            make_pipeline(StandardScaler(), SVR(max_iter=200_000)), space, n_iter
        )

    def fit(self, X, y):
        self.mean, self.scale = y.mean(), y.std()
        self.search.fit(X, (y - self.mean) / self.scale)
        return self

    def predict(self, X):
        return self.search.predict(X) * self.scale + self.mean


def tuned_lightgbm(n_iter):
    from lightgbm import LGBMRegressor

    space = {
        "num_leaves": [7, 15, 31, 63],
        "learning_rate": [0.03, 0.06, 0.1],
        "n_estimators": [200, 400, 800],
        "min_child_samples": [3, 5, 10, 20],
        "subsample": [0.7, 1.0],
        "colsample_bytree": [0.6, 0.8, 1.0],
        "reg_lambda": [0.0, 1.0, 10.0],
    }
    return Searched(
        LGBMRegressor(n_jobs=1, verbose=-1, subsample_freq=1, random_state=0), space, n_iter
    )


def tuned_hist(n_iter):
    space = {
        "learning_rate": [0.03, 0.06, 0.1],
        "max_leaf_nodes": [7, 15, 31],
        "max_iter": [200, 400],
        "min_samples_leaf": [3, 10, 20],
        "l2_regularization": [0.0, 1.0, 10.0],
    }
    return Searched(HistGradientBoostingRegressor(random_state=0), space, n_iter)


def learners(full):
    n_iter = 50 if full else 10
    found = {
        "table": lambda: TableRegressor(random_state=0),
        "ridge_gaussian": lambda: TunedKernelRidge("gaussian"),
        "ridge_laplace": lambda: TunedKernelRidge("laplace"),
        "svr": lambda: TunedSVR(100 if full else 30),
        "hist_boosting": lambda: tuned_hist(n_iter),
        "lightgbm": lambda: tuned_lightgbm(n_iter),
        "xrfm": lambda: TunedXRFM(30 if full else 12),
    }
    missing = [name for name in ("lightgbm", "xrfm") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"not installed and left out: {', '.join(missing)}", flush=True)
    return {name: make for name, make in found.items() if name not in missing}


def fit_and_score(model, A, b, T, z):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model.fit(A, b)
        seconds = time.process_time() - start
        return r2_score(z, model.predict(T)), seconds, model


# ---------------------------------------------------------------------------------------------------- results
def read(path):
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def append(path, row):
    path.parent.mkdir(exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, row, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        fields = list(dict.fromkeys(field for row in rows for field in row))
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def paper(table):
    return {(r["set"], r["method"]): r for r in read(HERE / "lab_paper.csv") if r["table"] == table}


def show(rows):
    names = list(dict.fromkeys(name for row in rows for name in row))
    rows = [{name: row.get(name, "") for name in names} for row in rows]
    widths = [max(len(str(r[c])) for r in [dict(zip(names, names)), *rows]) for c in names]
    for r in [dict(zip(names, names)), *rows]:
        print("  ".join(str(r[c]).ljust(w) for c, w in zip(names, widths)), flush=True)


# ---------------------------------------------------------------------------------------------------- commands
def compare(args):
    path = RESULTS / ("lab_compare_full.csv" if args.full else "lab_compare.csv")
    done = {(r["set"], r["split"], r["learner"]) for r in read(path)}
    chosen = {
        k: v for k, v in learners(args.full).items() if not args.learners or k in args.learners
    }
    names = args.sets or SETS
    for wanted in range(args.splits):
        for name in names:
            todo = [k for k in chosen if (name, str(wanted), k) not in done]
            if not todo:
                continue
            _, A, b, T, z = next(
                s for s in splits(name, args.splits_total, args.full) if s[0] == wanted
            )
            for k in todo:
                score, seconds, model = fit_and_score(chosen[k](), A, b, T, z)
                append(
                    path,
                    {
                        "set": name,
                        "split": wanted,
                        "learner": k,
                        "n_train": len(A),
                        "r2": round(score, 5),
                        "cpu_seconds": round(seconds, 2),
                        "n_support": getattr(model, "n_support_", ""),
                    },
                )
                print(name, wanted, k, round(score, 4), round(seconds, 1), flush=True)
    report(args)


def report(args):
    """Mean R2 per set and learner, average ranks, and paired tests over sets."""
    rows = read(RESULTS / ("lab_compare_full.csv" if args.full else "lab_compare.csv"))
    names = [s for s in SETS if any(r["set"] == s for r in rows)]
    every = list(dict.fromkeys(["table", *(r["learner"] for r in rows)]))
    table, seconds, kept = [], [], []
    for s in names:
        cells = {
            k: {r["split"]: r for r in rows if r["set"] == s and r["learner"] == k} for k in every
        }
        common = set.intersection(*(set(c) for c in cells.values()))
        if common:
            table.append([np.mean([float(cells[k][i]["r2"]) for i in common]) for k in every])
            seconds.append(
                [np.mean([float(cells[k][i]["cpu_seconds"]) for i in common]) for k in every]
            )
            size = int(next(iter(cells["table"].values()))["n_train"])
            kept.append((s, len(common), size))
    table, seconds = np.array(table), np.array(seconds)
    ranks = rankdata(-np.round(table, 4), axis=1)
    show(
        [
            {"set": s, "splits": c, "rows": n, **dict(zip(every, np.round(r, 4)))}
            for (s, c, n), r in zip(kept, table)
        ]
    )
    large = np.array([n > 1000 for _, _, n in kept])
    print()
    groups = {"all": np.ones(len(kept), bool), "above 1000 rows": large, "up to 1000 rows": ~large}
    show(
        [
            {
                "average rank": g,
                "sets": int(m.sum()),
                **dict(zip(every, np.round(ranks[m].mean(axis=0), 2))),
            }
            for g, m in groups.items()
            if m.any()
        ]
    )
    print()
    show([{"CPU seconds": "total", **dict(zip(every, np.round(seconds.sum(axis=0), 1)))}])
    if len(kept) > 2 and len(every) > 2:
        print(f"\nFriedman test over sets: p = {friedmanchisquare(*ranks.T).pvalue:.2g}")
    # ranks of two learners differ by a paired t statistic over sets; Holm's correction over the peers
    tests = []
    for k in every[1:]:
        d = ranks[:, every.index(k)] - ranks[:, 0]
        wins = np.sum(np.round(table[:, 0], 4) > np.round(table[:, every.index(k)], 4))
        statistic = d.mean() / (d.std(ddof=1) / np.sqrt(len(d))) if d.std() > 0 else np.inf
        tests.append([float(2 * student.sf(abs(statistic), len(d) - 1)), k, d.mean(), int(wins)])
    tests.sort()
    adjusted, out = 0.0, []
    for i, (p, k, d, wins) in enumerate(tests):
        adjusted = max(adjusted, min(1.0, p * (len(tests) - i)))
        out.append(
            {
                "peer": k,
                "rank difference": round(d, 2),
                "sets won": f"{wins}/{len(kept)}",
                "p (Holm)": f"{adjusted:.2g}",
            }
        )
    print()
    show(out)


def table(args, number, sets):
    """The paper's table of test R2 beside ours, at the paper's numbers of support points or another (--support)."""
    path = RESULTS / f"lab_{number}.csv"
    numbers = paper(number)
    for name in args.sets or sets:
        m = args.support or SUPPORT[name]
        scores, cpu = [], []
        for seed, A, b, T, z in splits(name, args.splits, True, args.most):
            score, seconds, _ = fit_and_score(LABRegressor(m, random_state=0), A, b, T, z)
            scores.append(score)
            cpu.append(seconds)
            print(name, m, seed, round(score, 4), round(seconds, 1), flush=True)
        theirs = numbers.get((name, "LAB RBF"), {})
        row = {
            "set": name,
            "n_support": m,
            "splits": args.splits,
            "r2": round(np.mean(scores), 5),
            "std": round(np.std(scores), 5),
            "cpu_seconds": round(np.mean(cpu), 1),
            "paper": theirs.get("r2", ""),
            "paper_support": theirs.get("n_support", ""),
        }
        others = [r for r in read(path) if (r["set"], r["n_support"]) != (name, str(m))]
        write(path, [*others, row])
    show(read(path))


def algorithm1(m, start, *, width, rate, batch, selection="y", step=None, scale=1.0):
    """The paper's Algorithm 1 with its authors' steps: 500 for every support, 5000 with rate .01 at the end."""
    growth = {}
    if start < m:
        growth = {"step": step or max(10, m // 20), "max_error": 1e-12, "max_support": m}
    support = Support(start, selection=selection, **growth)
    steps = [
        Adam(rate, batch_size=batch, n_steps=int(500 * scale), initial_scale=width),
        Adam(0.01, batch_size=batch, n_steps=1, final_steps=int(5000 * scale)),
    ]
    return LABRegressor(support, objective="interpolation", optimizer=steps, random_state=0)


# support points, initial scale, learning rate and batch size of Algorithm 1, and the share of its authors' steps
PLANS = {"yacht": (73, 3.0, 0.01, 128, 1.0), "parkinsons": (400, 30.0, 0.01, 128, 0.2)}
SELECTIONS = {"extreme": "Extreme Y", "y": "Y-based", "kmeans": "X-based"}


def selections(args, number, growth):
    """Tables 5 and 6: initial selections without and with the dynamic strategy.

    The paper's objective by L-BFGS and ours with growth to twice the number (of at most 3000 rows); the paper's
    Algorithm 1 with growth from a third, as in its authors' code, and its numbers of support points. A row per split,
    in rounds of one split; what is there is skipped. Fits that diverged, of which `fit` warns, are marked.
    """
    path = RESULTS / f"lab_{number}.csv"
    numbers = paper(number)

    def descent(name, selection, objective):
        m = {"yacht": 73, "parkinsons": 100}[name]
        more = {"max_error": 1e-3, "max_support": 2 * m} if growth else {}
        support = Support(m, selection=selection, **more)
        return LABRegressor(support, objective=objective, kernel="gaussian", random_state=0)

    def printed(name, selection):
        m, width, rate, batch, scale = PLANS[name]
        start = m // 3 if growth else m
        options = {"width": width, "rate": rate, "batch": batch, "scale": scale}
        return algorithm1(m, start, selection=selection, **options)

    learners = {
        "interpolation": lambda name, selection: descent(name, selection, "interpolation"),
        "evidence": lambda name, selection: descent(name, selection, "evidence"),
        "algorithm1": printed,
    }
    keys = ("set", "selection", "learner", "split")
    known = {tuple(r[key] for key in keys) for r in read(path)}
    jobs = product(range(args.splits), args.sets or PLANS, args.learners or learners, SELECTIONS)
    for split, name, learner, selection in jobs:
        if (name, selection, learner, str(split)) in known:
            continue
        full = args.full or learner == "algorithm1"
        *_, (_, A, b, T, z) = splits(name, split + 1, full)
        score, seconds, model = fit_and_score(learners[learner](name, selection), A, b, T, z)
        row = {
            "set": name,
            "selection": selection,
            "learner": learner,
            "split": split,
            "rows": len(A),
            "n_support": model.n_support_,
            "r2": round(score, 5),
            "diverged": int(not np.isfinite(model.certificate_)),
            "cpu_seconds": round(seconds, 1),
            "paper": numbers.get((name, SELECTIONS[selection]), {}).get("r2", ""),
        }
        append(path, row)
        print(*row.values(), flush=True)


def noise(args):
    """Figure 5: test R2 (noise-free) against the share of support points, for three noise levels."""
    out = []
    for function in ("f1", "f2", "f3"):
        for level in (0.0, 0.1, 0.2) if not args.full else (0.0, 0.05, 0.1, 0.2, 0.3):
            X, y = make_lab_function(800, function=function, noise=level, random_state=0)
            T, z = make_lab_function(2000, function=function, random_state=1)
            ridgeless = []
            for gamma in np.logspace(-2, 3, 11):
                peer = make_pipeline(
                    StandardScaler(), KernelRidge(kernel="rbf", gamma=gamma, alpha=1e-8)
                ).fit(X, y - y.mean())
                # wide kernels do not interpolate in floating point
                if peer.score(X, y - y.mean()) > 0.99:
                    ridgeless.append(peer.score(T, z - y.mean()))
            for m in (20, 80, 200) if not args.full else (10, 20, 40, 80, 160, 320):
                model = LABRegressor(m, kernel="gaussian", random_state=0).fit(X, y)
                out.append(
                    {
                        "function": function,
                        "noise": level,
                        "n_support": m,
                        "train": round(model.score(X, y), 4),
                        "test": round(model.score(T, z), 4),
                        "ridgeless_rbf": round(max(ridgeless), 4),
                    }
                )
                write(RESULTS / "lab_noise.csv", out)
    show(out)


def support(args):
    """Figure 6: training and test R2 against the number of support points on two small sets."""
    out = []
    for name in args.sets or ["yacht", "airfoil"]:
        for m in (
            (10, 20, 40, 80, 120) if not args.full else (5, 10, 20, 40, 60, 80, 120, 160, 200, 240)
        ):
            values = []
            for _, A, b, T, z in splits(name, args.splits, args.full):
                model = LABRegressor(m, kernel="gaussian", random_state=0).fit(A, b)
                values.append((model.score(A, b), model.score(T, z)))
            train, test = np.mean(values, axis=0)
            out.append(
                {"set": name, "n_support": m, "train": round(train, 4), "test": round(test, 4)}
            )
            write(RESULTS / "lab_support.csv", out)
    show(out)


def training(args):
    """Figure 7: training and test R2 against the number of training rows."""
    out = []
    for name, supports in (("sml2010", (50, 100)), ("electrical", (50, 100))):
        if name not in (args.sets or (name,)):
            continue
        _, A, b, T, z = next(splits(name, 1, True, args.most))
        sizes = (500, 1000, 2000) if not args.full else (500, 1000, 2000, 4000, len(A))
        for n in (size for size in sizes if size <= len(A)):
            for m in supports if not args.full else (100, 200, 400):
                model = LABRegressor(m, kernel="gaussian", random_state=0).fit(A[:n], b[:n])
                out.append(
                    {
                        "set": name,
                        "rows": n,
                        "n_support": m,
                        "train": round(model.score(A[:n], b[:n]), 4),
                        "test": round(model.score(T, z), 4),
                    }
                )
                write(RESULTS / "lab_training.csv", out)
    show(out)


def fashion_mnist(folder=Path("/usr/share/datasets/fashion-mnist")):
    """Zalando's images from the files of Debian's package dataset-fashion-mnist."""
    parts = []
    for name, header in (
        ("train-images-idx3-ubyte.gz", 16),
        ("train-labels-idx1-ubyte.gz", 8),
        ("t10k-images-idx3-ubyte.gz", 16),
        ("t10k-labels-idx1-ubyte.gz", 8),
    ):
        paths = sorted(folder.rglob(name))
        if not paths:
            raise SystemExit(f"{name} is not below {folder}; install dataset-fashion-mnist.")
        numbers = np.frombuffer(gzip.decompress(paths[0].read_bytes()), np.uint8, offset=header)
        parts.append(numbers.reshape(-1, 784) if header == 16 else numbers)
    return Bunch(data=parts[0], target=parts[1], data_test=parts[2], target_test=parts[3])


def mnist(args):
    """MNIST or fashion_mnist (--sets): 60,000 images and 500 support points with --full, else 10,000 (--most), 300."""
    import resource

    name = args.sets[0] if args.sets else "mnist"
    data = fashion_mnist() if name == "fashion_mnist" else load(name)
    A, b = np.asarray(data.data, dtype=np.float32), data.target
    T, z = np.asarray(data.data_test, dtype=np.float32), data.target_test
    n = 60_000 if args.full else args.most or 10_000
    m = 500 if args.full else min(300, n // 10)
    start, wall = time.process_time(), time.perf_counter()
    model = LABClassifier(m, random_state=0, max_rows=args.rows, max_iter=args.iterations).fit(
        A[:n], b[:n]
    )
    cpu, seconds = time.process_time() - start, time.perf_counter() - wall
    row = {
        "set": name,
        "rows": n,
        "n_support": m,
        "accuracy": round(float(np.mean(model.predict(T) == z)), 4),
        "train": round(float(np.mean(model.predict(A[:n]) == b[:n])), 4),
        "cpu_seconds": round(cpu),
        "wall_seconds": round(seconds),
        "peak_GB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "learning_rows": args.rows or "default",
        "iterations": args.iterations,
        "paper": 0.975 if args.full and name == "mnist" else "",
    }
    append(RESULTS / "lab_mnist.csv", row)
    show([row])


def images(args):
    """Images as pixels: the table learner and an untuned support vector machine on 3000 and 10,000 digits (--most)."""
    data = load("mnist")
    A, T = (np.asarray(X, dtype=np.float64) / 255 for X in (data.data, data.data_test))
    rows = []
    for n in (3000, 10_000) if args.most is None else (args.most,):
        for name, model in (
            ("SVC()", SVC()),
            ("TableClassifier()", TableClassifier(random_state=0)),
        ):
            start = time.process_time()
            model.fit(A[:n], data.target[:n])
            fit, start = time.process_time() - start, time.process_time()
            accuracy = float(np.mean(model.predict(T) == data.target_test))
            predict = time.process_time() - start
            row = {"learner": name, "rows": n, "accuracy": round(accuracy, 4), "fit": round(fit, 1)}
            rows.append(row | {"predict": round(predict, 1)})
            show(rows[-1:])
            write(RESULTS / "lab_images.csv", rows)


def schedule(args):
    """CPU time and accuracy of the paper's schedule of Adam steps against ours, same split and size.

    The whole schedule is 500 steps for every growth of the support and 5000 at the end; a reduced run does a fifth of
    every round and multiplies its time by five. Ours: the defaults, and those with 40 iterations.
    """
    plans = {
        "yacht": (73, 3.0, 0.01, 128),
        "airfoil": (300, 10.0, 0.01, 128),
        "sml2010": (100, 50.0, 0.05, 128),
        "parkinsons": (100, 30.0, 0.001, 128),
        "comp_activ": (70, 0.1, 0.001, 128),
        "electrical": (100, 0.1, 0.001, 256),
    }
    scale = 1.0 if args.full else 0.2
    names = args.sets or ["yacht", "comp_activ"]
    path = RESULTS / "lab_schedule.csv"
    out = [r for r in read(path) if r["set"] not in names]
    for name in names:
        m, width, rate, batch = plans[name]
        _, A, b, T, z = next(splits(name, 1, True))
        options = {"width": width, "rate": rate, "batch": batch, "scale": scale}
        adam_model = algorithm1(m, max(1, m // 3), step=10, **options)
        theirs, adam, adam_model = fit_and_score(adam_model, A, b, T, z)
        adam /= scale
        row = {
            "set": name,
            "rows": len(A),
            "n_support": m,
            "adam_steps": adam_model.n_iter_,
            "share_of_schedule": scale,
        }
        row |= {"adam_r2": round(theirs, 4), "adam_cpu": round(adam, 1)}
        ours = {"defaults": {}, "short": {"max_iter": 40}}
        for label, parameters in ours.items():
            score, seconds, _ = fit_and_score(
                LABRegressor(m, random_state=0, **parameters), A, b, T, z
            )
            row |= {f"{label}_r2": round(score, 4), f"{label}_cpu": round(seconds, 2)}
            row |= {f"adam / {label}": round(adam / seconds, 1)}
        out.append(row)
        write(path, out)
    show(out)


def figures(args):
    """Draw what ``noise``, ``support`` and ``training`` measured, as the paper's Figures 5, 6 and 7."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    noisy, by_support, by_rows = (
        read(RESULTS / f"lab_{name}.csv") for name in ("noise", "support", "training")
    )
    fig, axes = plt.subplots(1, 5, figsize=(19, 3.8), constrained_layout=True)
    for ax, function in zip(axes, ("f1", "f2", "f3")):
        for i, level in enumerate(
            sorted({r["noise"] for r in noisy if r["function"] == function}, key=float)
        ):
            rows = [r for r in noisy if r["function"] == function and r["noise"] == level]
            x, y = [int(r["n_support"]) for r in rows], [float(r["test"]) for r in rows]
            ax.plot(x, y, "o-", color=f"C{i}", label=f"noise {level}")
            ax.axhline(float(rows[0]["ridgeless_rbf"]), color=f"C{i}", linestyle=":", linewidth=1)
        ax.set(
            title=f"{function}: dotted, ridgeless RBF on all rows",
            xlabel="support points",
            ylabel="test R2",
        )
    for ax, table, x, series in (
        (axes[3], by_support, "n_support", ["set"]),
        (axes[4], by_rows, "rows", ["set", "n_support"]),
    ):
        for i, key in enumerate(dict.fromkeys(tuple(r[c] for c in series) for r in table)):
            rows = [r for r in table if tuple(r[c] for c in series) == key]
            for part, style in (("test", "o-"), ("train", "--")):
                label = (
                    ", ".join(key) + " support points" * (len(key) > 1) if part == "test" else None
                )
                ax.plot(
                    [int(r[x]) for r in rows],
                    [float(r[part]) for r in rows],
                    style,
                    color=f"C{i}",
                    label=label,
                )
        ax.set(
            title="dashed: training rows",
            xlabel={"n_support": "support points", "rows": "training rows"}[x],
        )
    for ax in axes[:4]:
        ax.legend(fontsize=7)
    axes[4].legend(fontsize=7, loc="upper right", bbox_to_anchor=(1, 0.88))
    fig.savefig(RESULTS / "lab_figures.png", dpi=80)


COMMANDS = {
    "compare": compare,
    "report": report,
    "table1": lambda a: table(
        a,
        "table1",
        [
            "tecator",
            "yacht",
            "airfoil",
            "sml2010",
            "parkinsons",
            "parkinsons_grouped",
            "comp_activ",
        ],
    ),
    "table2": lambda a: table(a, "table2", ["electrical", "kc_house", "toms_hardware"]),
    "table5": lambda a: selections(a, "table5", False),
    "table6": lambda a: selections(a, "table6", True),
    "noise": noise,
    "support": support,
    "training": training,
    "figures": figures,
    "images": images,
    "mnist": mnist,
    "schedule": schedule,
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--splits", type=int, default=None, help="random splits of every set")
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--learners", nargs="+")
    parser.add_argument("--full", action="store_true")
    parser.add_argument(
        "--most",
        type=int,
        help="at most so many training rows (table1, table2, training, mnist, images)",
    )
    parser.add_argument(
        "--rows", type=int, default=None, help="mnist: rows on which bandwidths are learned"
    )
    parser.add_argument("--support", type=int, help="table1, table2: support points")
    parser.add_argument("--iterations", type=int, default=150, help="mnist: iterations")
    args = parser.parse_args()
    args.splits_total = 10
    args.splits = args.splits or (10 if args.full else 2)
    COMMANDS[args.command](args)


if __name__ == "__main__":
    main()

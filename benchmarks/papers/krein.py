"""The tables of Oglic and Gaertner (2018), and Figures 1 and 2 of Liu et al. (2021), beside the papers' numbers.

    python benchmarks/papers/krein.py table1 [--full] [--sizes 1000] [--draws 1]
    MERCERLESS_DATA=... python benchmarks/papers/krein.py table2 [--sets protein] [--folds 3]
    MERCERLESS_DATA=... python benchmarks/papers/krein.py table3 [--full] [--sets yacht pm10] [--kernels gauss]
    MERCERLESS_DATA=... python benchmarks/papers/krein.py figures [--full] [--features raw]

The reduced runs take --sizes and --draws (table1), --rows and --folds (table3) too.

Table 1 compares treatments of an indefinite matrix B - inv(B) on targets from its span (root mean squared error,
targets of range 100); every method chooses its penalties on the same grid and folds. Table 3 tunes kernels by the
validation gradient (classification error and root mean squared error, both in per cent). The reduced runs have fewer
folds, restarts and rows; --full is the paper's protocol (10 folds; 10 restarts of 20 steps, then 200), for Table 3 in a
file of its own, krein_table3_full.csv, with a row for every fold, which is resumed. The figures are the eigenvalues of
four kernels on monks3 and the learning rates of two of them.

Writes results/krein_<part>.csv (and krein_figures.png) beside this file.
"""

import argparse
import csv
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from generators import make_krein_matrix
from krein_table2 import table2
from krein_table3 import table3_full
from paper_sets import load
from rates import PENALTIES, fit_rate, learning_curve, penalized_errors
from scipy.linalg import eigvalsh
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from mercerless import Ball, GradientSearch, KreinRidge, KreinRidgeClassifier, Sphere
from mercerless.kernels import (
    TL1,
    DeltaGauss,
    Epanechnikov,
    Gaussian,
    Log,
    Sigmoid,
    SphericalPolynomial,
)
from mercerless.spectra import SpectrumTransformer, indefiniteness
from mercerless.theory import eigenvalue_growth

HERE = Path(__file__).parent
CLASSIFICATION = ("haberman", "ionosphere", "breastcancer", "australian", "pima")
REGRESSION = ("yacht", "pm10", "cps_85_wages", "airfoil")
BY_SIZE = (
    "haberman", "yacht", "ionosphere", "pm10", "cps_85_wages", "breastcancer", "australian", "pima", "airfoil",
)  # fmt: skip


def paper(table):
    with open(HERE / "krein_paper.csv") as lines:
        return {
            (r["row"], r["column"]): float(r["value"])
            for r in csv.DictReader(lines)
            if r["table"] == table
        }


def write(name, header, rows, keys=0):
    """Write a table; with `keys` leading columns as keys, other rows of an earlier file stay."""
    path = HERE / "results" / f"krein_{name}.csv"
    path.parent.mkdir(exist_ok=True)
    if keys and path.exists():
        with open(path) as lines:
            old = {tuple(row[:keys]): row for row in list(csv.reader(lines))[1:]}
        rows = list((old | {tuple(map(str, row[:keys])): row for row in rows}).values())
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def treatments():
    """The columns of Table 1: two penalties, one penalty on |K|, on other spectra, and the indefinite penalty."""
    on_positive = KreinRidge("precomputed", regularizer="strong", random_state=0)
    models = {"krein": KreinRidge("precomputed", random_state=0), "flip": on_positive}
    for mode in ("clip", "shift", "square"):
        models[mode] = make_pipeline(SpectrumTransformer(mode), on_positive)
    models["omcs"] = KreinRidge(
        "precomputed", regularizer="indefinite", constraint=Sphere(), random_state=0
    )
    return models


def table1(full, sizes=None, draws=None, chosen=None):
    """Cross-validated error of each treatment, over several draws of matrix and target."""
    known = paper("1")
    draws = draws or (5 if full else 3)
    sizes = sizes or ((100, 500, 1000) if full else (100, 500))
    rows = []
    for kernel in chosen or ("gaussian", "sigmoid", "ard_sigmoid"):
        for n in sizes:
            errors = {name: [] for name in treatments()}
            for seed in range(draws):
                K, y = make_krein_matrix(n, kernel=kernel, random_state=seed)
                y = 100 * (y - y.mean()) / np.ptp(y)
                folds = KFold(10, shuffle=True, random_state=seed)
                for train, test in folds.split(K):
                    for name, model in treatments().items():
                        model.fit(K[np.ix_(train, train)], y[train])
                        predicted = model.predict(K[np.ix_(test, train)])
                        errors[name].append(np.sqrt(np.mean((predicted - y[test]) ** 2)))
            mass = indefiniteness(K).negative_mass
            for name, values in errors.items():
                theirs = known.get((f"{kernel}-{n}", name), np.nan)
                ours = round(np.mean(values), 2), round(np.std(values), 2)
                rows.append((kernel, n, name, *ours, theirs, round(mass, 2), draws))
            print(
                kernel,
                n,
                {name: round(float(np.mean(v)), 2) for name, v in errors.items()},
                flush=True,
            )
            header = (
                "kernel",
                "n",
                "method",
                "rmse",
                "deviation",
                "paper",
                "negative_mass",
                "draws",
            )
            write("table1", header, rows, keys=3)
    return rows


def kernels(n_features):
    """The kernels of Table 3; lengths are only starting values."""
    each = np.ones(n_features)
    return {
        "sigmoid": Sigmoid(1.0, -0.5),
        "rl-sigmoid": Sigmoid(each, 0.0),
        "delta-gauss": DeltaGauss(1.0, 0.5),
        "epanechnikov": Epanechnikov(each),
        "gauss": Gaussian(1.0),
        "rl-gauss": Gaussian(each),
    }


def prepared(name, rows, seed=0):
    bunch = load(name)
    X, y = np.asarray(bunch.data, dtype=float), np.asarray(bunch.target)
    keep = np.random.RandomState(seed).permutation(len(y))[:rows]
    X = X[keep][:, np.ptp(X[keep], axis=0) > 0]
    return StandardScaler().fit_transform(X), y[keep]


def full_sets(sets):
    """All rows of the sets of Table 3, small ones first; regression targets have the range 100."""
    for name in sets or BY_SIZE:
        X, y = prepared(name, None)
        classify = name in CLASSIFICATION
        if not classify:
            y = 100 * (y - y.mean()) / np.ptp(y)
        yield name, X, y, classify


def table3(sets, chosen, limit=350, n_folds=4, restarts=2, steps=12):
    """Cross-validated error with kernel parameters, penalties and radius tuned by the gradient."""
    known = paper("3")
    rows = []
    for name in sets or CLASSIFICATION + REGRESSION:
        X, y = prepared(name, limit)
        classify = name in CLASSIFICATION
        if not classify:
            y = 100 * (y - y.mean()) / np.ptp(y)
        splitter = (StratifiedKFold if classify else KFold)(n_folds, shuffle=True, random_state=0)
        constant = DummyClassifier() if classify else DummyRegressor()
        machine = KreinRidgeClassifier if classify else KreinRidge
        for label, kernel in {"constant": None, **kernels(X.shape[1])}.items():
            if chosen and label not in chosen:
                continue
            start, errors = time.perf_counter(), []
            for train, test in splitter.split(X, y):
                search = GradientSearch(n_restarts=restarts, max_iter=steps)
                options = {"constraint": Sphere(), "search": search, "random_state": 0}
                model = constant if kernel is None else machine(kernel, **options)
                predicted = model.fit(X[train], y[train]).predict(X[test])
                if classify:
                    errors.append(100 * np.mean(predicted != y[test]))
                else:
                    errors.append(np.sqrt(np.mean((predicted - y[test]) ** 2)))
            theirs = known.get((name, label), np.nan)
            row = (
                name,
                label,
                len(y),
                round(np.mean(errors), 2),
                round(np.std(errors), 2),
                theirs,
                n_folds,
            )
            rows.append(row)
            print(*row, f"{time.perf_counter() - start:.0f} s", flush=True)
            write(
                "table3",
                ("set", "kernel", "n", "error", "deviation", "paper", "folds"),
                rows,
                keys=2,
            )
    return rows


def monks_kernels():
    return {
        "spherical polynomial": SphericalPolynomial(10),
        "TL1": TL1(0.7 * 6),
        "delta-gauss": DeltaGauss(np.sqrt(0.5), np.sqrt(0.05)),
        "log": Log(),
    }


def encoded(features, X, test):
    """The paper does not say how it encodes the six categorical attributes."""
    if features == "raw":
        return X, test
    if features == "onehot":
        encoder = OneHotEncoder(sparse_output=False).fit(X)
        return encoder.transform(X), encoder.transform(test)
    scaler = (MinMaxScaler() if features == "unit" else StandardScaler()).fit(X)
    return scaler.transform(X), scaler.transform(test)


def draw_rate(ax, curve, name, exponent):
    """Observed errors with their standard errors and fitted rate, and the paper's rate through the first mean."""
    mean, rate = curve.errors.mean(axis=1), curve.rate
    half = curve.errors.std(axis=1) / np.sqrt(curve.errors.shape[1])
    label = f"{name}: n^-{rate.exponent:.2f} ± {rate.standard_error:.2f}"
    (line,) = ax.plot(curve.sizes, mean, marker="o", ms=4, label=label)
    ax.fill_between(curve.sizes, mean - half, mean + half, color=line.get_color(), alpha=0.2, lw=0)
    expected = mean[0] * (curve.sizes / curve.sizes[0]) ** -exponent
    ax.plot(
        curve.sizes,
        expected,
        color=line.get_color(),
        ls="--",
        label=f"{name}: rate n^-{exponent:.2f}",
    )


def figures(full, features):
    """Spectra and their growth (Figure 1), and observed learning rates (Figure 2), on monks3."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monks = load("monks3")
    X, y = np.asarray(monks.data, dtype=float), np.asarray(monks.target, dtype=float)
    test, truth = (
        np.asarray(monks.data_test, dtype=float),
        np.asarray(monks.target_test, dtype=float),
    )
    X, test = encoded(features, X, test)
    figure, axes = plt.subplots(
        1, 6, figsize=(22, 3.6), layout="constrained", width_ratios=[1, 1, 1, 1, 1.5, 1.5]
    )
    rows = []
    for ax, (name, kernel) in zip(axes, monks_kernels().items()):
        s = eigvalsh(kernel(X))[::-1]
        growth = eigenvalue_growth(kernel(X), [15, 30, 60, 120], n_repeats=20, random_state=0)
        ax.stem(s, markerfmt=".", basefmt=" ")
        ax.set_title(f"{name}: {np.sum(s > 1e-9)} +, {np.sum(s < -1e-9)} -")
        rows.append(("figure 1", name, f"{s[0]:.4g}", f"{s[-1]:.4g}", int(np.sum(s > 1e-9 * s[0])),
                     int(np.sum(s < -1e-9 * s[0])), f"{growth.positive:.2f}", f"{growth.negative:.2f}"))  # fmt: skip
        print(*rows[-1], flush=True)
    sizes, repeats = [15, 22, 32, 46, 66, 90, 122], 100 if full else 30
    expected = {"delta-gauss": 1 / 2, "log": 1 / 3}
    for ax, (title, regularizer) in zip(
        axes[4:], (("<f, f>", "indefinite"), ("||f||^2", "components"))
    ):
        for name, exponent in expected.items():
            kernel = monks_kernels()[name]

            def model(m, kernel=kernel, regularizer=regularizer):
                penalties = {
                    "alpha_positive": 1 / m,
                    "alpha_negative": 1 / m,
                    "regularizer": regularizer,
                    "fit_intercept": False,  # as in problem (3.1)
                }
                return KreinRidge(kernel, **penalties, constraint=Ball(), cv=3, random_state=0)

            curve = learning_curve(
                model, X, y, test, truth, sizes, n_repeats=repeats, clip=1.0, random_state=0
            )
            draw_rate(ax, curve, name, exponent)
            rate, ends = curve.rate, curve.errors[[0, -1]].mean(axis=1)
            numbers = [rate.exponent, rate.standard_error, *ends, exponent]
            rows.append(
                ("figure 2", f"{name} {title}", *(f"{number:.3f}" for number in numbers), "")
            )
            print(*rows[-1], flush=True)
        ax.set(
            xscale="log",
            yscale="log",
            xlabel="training size",
            ylabel="excess risk",
            title=f"penalty {title}",
        )
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
        ax.legend(frameon=False, fontsize="small")
    header = ("part", "kernel", "largest | exponent", "smallest | standard error", "positive | first error",
              "negative | last error", "eta1 | paper's exponent", "eta2")  # fmt: skip
    name = "figures" if features == "unit" else f"figures_{features}"
    write(name, header, rows)
    figure.savefig(HERE / "results" / f"krein_{name}.png", dpi=80)
    return rows


def rates(full):
    """What gives the exponents of Figure 2? The settings that the paper leaves open, all of them."""
    monks = load("monks3")
    noisy, test = (np.asarray(a, dtype=float) for a in (monks.data, monks.data_test))
    y, truth = (np.asarray(a, dtype=float) for a in (monks.target, monks.target_test))
    rows, repeats = [], 100 if full else 10
    for features in ("unit", "raw", "standard", "onehot"):
        train, tested = encoded(features, noisy, test)
        for name in ("delta-gauss", "log"):
            kernel = monks_kernels()[name]
            samples = (
                (train, y, [15, 22, 32, 46, 66, 90, 122], ["122 rows with noise"]),
                (
                    tested,
                    truth,
                    [30, 60, 120, 240, 400],
                    ["432 rows without noise", "the same, others to test"],
                ),
            )
            for X, target, sizes, words in samples:
                K, K_test = kernel(X), kernel(tested, X)
                errors = [
                    [penalized_errors(K, K_test, target, truth, m, r) for r in range(repeats)]
                    for m in sizes
                ]
                for (j, sample), (i, penalty) in product(enumerate(words), enumerate(PENALTIES)):
                    rate = fit_rate(sizes, np.array(errors)[:, :, i, j])
                    rows.append(
                        (
                            features,
                            sample,
                            penalty,
                            name,
                            f"{rate.exponent:.3f}",
                            f"{rate.standard_error:.3f}",
                        )
                    )
                    print(*rows[-1], flush=True)
    write("rates", ("features", "sample", "penalty", "kernel", "exponent", "standard_error"), rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["table1", "table2", "table3", "figures", "rates"])
    parser.add_argument("--full", action="store_true", help="the paper's sizes, folds and restarts")
    parser.add_argument("--sets", nargs="*", help="only these data sets of tables 2 and 3")
    parser.add_argument("--kernels", nargs="*", help="only these kernels of tables 1 and 3")
    parser.add_argument("--rows", type=int, help="at most this many rows in table 3")
    parser.add_argument(
        "--folds", type=int, help="folds of tables 2 and 3 (in 2, and 3 --full, the first of ten)"
    )
    parser.add_argument("--sizes", type=int, nargs="*", help="sizes of the matrices of table 1")
    parser.add_argument("--draws", type=int, help="matrices per row of table 1")
    encodings = ["unit", "raw", "standard", "onehot"]
    parser.add_argument(
        "--features", choices=encodings, default="unit", help="encoding of monks3 for the figures"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", message="regularizer='indefinite'")
    if options.part == "table1":
        table1(options.full, options.sizes, options.draws, options.kernels)
    elif options.part == "table2":
        table2(options.folds or 10, options.sets, paper("2"))
    elif options.part == "table3":
        if options.full:
            sets = full_sets(options.sets)
            table3_full(sets, kernels, options.kernels, paper("3"), options.folds or 10)
        else:
            table3(options.sets, options.kernels, options.rows or 350, options.folds or 4)
    elif options.part == "rates":
        rates(options.full)
    else:
        figures(options.full, options.features)


if __name__ == "__main__":
    main()

"""Do prediction sets and intervals hold what they state, how wide are they, and are wrong labels found?

    python benchmarks/papers/see.py coverage [--sets heart mpg] [--items 30 100] [--repeats 10] [--models krein]
    python benchmarks/papers/see.py width [--sets mpg housing] [--items 150] [--repeats 3]
    python benchmarks/papers/see.py deviation [--sets mpg housing] [--items 150] [--repeats 2]
    python benchmarks/papers/see.py suspects [--sets heart ionosphere] [--repeats 5]
    python benchmarks/papers/see.py report [--sets heart ionosphere] [--repeats 2]
    python benchmarks/papers/see.py simulation [--items 30 60 120] [--repeats 100] [--models similarity krein]

`coverage`: on random training items of a real set, how often sets and intervals stated to hold 90 % of new items do, on
the rest of the set. `width`: intervals of KreinRidge beside those of MAPIE (CV+ and jackknife-like) on the same model,
those of the table learner beside a Gaussian process and quantile boosting. `deviation`: its standard deviation beside
the same two: the log density of new targets under a normal distribution (targets in their standard deviations), and
how often they lie within 1.645 deviations. `suspects`: 5 % of the labels are flipped; how many of the flipped are
found, and how many of the found are flipped, beside cleanlab; `report`: the same by a comparison, whose learners vote.
`simulation`: on drawn items with and without any signal, what classifiers announce of themselves beside what is true of
new items: accuracy, log-loss, coverage of sets stated to hold 80 %, and the share of rightly labeled items that are
suspects.
Reads the sets from $MERCERLESS_DATA, writes
results/see_*.csv beside itself after every set, in place of the same rows. `width` and `suspects` need mapie and
cleanlab.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from paper_sets import load
from sklearn.base import is_classifier
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import mercerless

RESULTS = Path(__file__).parent / "results"
COVERAGE = 0.9
NUMBERS = ["airfoil", "bodyfat", "cps_85_wages", "housing", "mg", "mpg", "pm10", "pyrim", "yacht"]
CLASSES = [
    "australian",
    "breastcancer",
    "diabetic",
    "heart",
    "ionosphere",
    "monks1",
    "pima",
    "sonar",
    "wine",
]
MATRICES = ["amp_edit", "dtw_ecg200"]
MODELS = {
    "krein": (mercerless.KreinRidge, mercerless.KreinRidgeClassifier),
    "similarity": (mercerless.SimilarityRegressor, mercerless.SimilarityClassifier),
    "asymmetric": (mercerless.AsymmetricRidge, mercerless.AsymmetricRidgeClassifier),
    "table": (mercerless.TableRegressor, mercerless.TableClassifier),
}


def draws(name, n, repeats):
    """Yield training rows and targets, test rows and targets, and whether rows are similarities."""
    data = load(name)
    matrix = name in MATRICES
    whole = (
        (data.K if name == "amp_edit" else data.D) if matrix else np.asarray(data.data, dtype=float)
    )
    target = data.target
    if len(target) < n + 20:  # too few are left to see a share of 90 %
        return
    for seed in range(repeats):
        order = np.random.RandomState(seed).permutation(len(target))
        train, test = order[:n], order[n : n + 1000]
        if matrix:
            yield (
                whole[np.ix_(train, train)],
                target[train],
                whole[np.ix_(test, train)],
                target[test],
            )
            continue
        mean, scale = whole[train].mean(axis=0), whole[train].std(axis=0)
        scaled = (whole - mean) / np.where(scale > 0, scale, 1.0)
        yield scaled[train], target[train], scaled[test], target[test]


def model_of(name, classify, matrix):
    """An estimator with its defaults."""
    cls = MODELS[name][classify]
    options = {"kernel": "precomputed"} if matrix else {}
    return cls(**options) if name == "asymmetric" else cls(random_state=0, **options)


def covered(model, X, y):
    """How often, and the mean size of a set or half the width of an interval."""
    if is_classifier(model):
        sets = model.predict_set(X, COVERAGE, allow_empty=True)
        return sets[np.arange(len(y)), np.searchsorted(model.classes_, y)].mean(), sets.sum(
            axis=1
        ).mean()
    low, high = model.predict_interval(X, COVERAGE).T
    return np.mean((low <= y) & (y <= high)), np.mean(high - low) / 2.0


def coverage(arguments):
    """Coverage of every set, model and number of training items."""
    for name in arguments.sets or NUMBERS + CLASSES + MATRICES:
        rows = []
        for which in arguments.models:
            if which == "table" and name in MATRICES:
                continue
            for n in arguments.items:
                hits, sizes, tested, start = [], [], 0, time.perf_counter()
                for X, y, X_new, y_new in draws(name, n, arguments.repeats):
                    if name not in NUMBERS and len(np.unique(y)) < 2:
                        continue
                    model = model_of(which, name not in NUMBERS, name in MATRICES).fit(X, y)
                    hit, size = covered(model, X_new, y_new)
                    hits.append(hit)
                    tested += len(y_new)
                    sizes.append(size / (np.std(y_new) if name in NUMBERS else 1.0))
                if hits:
                    error = np.std(hits, ddof=1) / np.sqrt(len(hits)) if len(hits) > 1 else np.nan
                    rows.append(
                        {"set": name, "model": which, "items": n, "repeats": len(hits), "tested": tested,
                         "stated": COVERAGE, "covered": f"{np.mean(hits):.4f}", "standard_error": f"{error:.4f}",
                         "size": f"{np.mean(sizes):.3f}", "seconds": f"{time.perf_counter() - start:.1f}"}
                    )  # fmt: skip
                    print(rows[-1], flush=True)
        merge("see_coverage.csv", rows, ("set", "model", "items"))


def intervals_of(X, y, X_new):
    """Yield the name of a method and its intervals for new rows."""
    from mapie.regression import CrossConformalRegressor

    krein = mercerless.KreinRidge(random_state=0)
    yield "KreinRidge.predict_interval", krein.fit(X, y).predict_interval(X_new, COVERAGE)
    for method in ("plus", "base"):
        rival = CrossConformalRegressor(
            krein, confidence_level=COVERAGE, cv=5, method=method, random_state=0
        )
        yield (
            f"MAPIE on KreinRidge, {method}",
            rival.fit_conformalize(X, y).predict_interval(X_new)[1][:, :, 0],
        )
    model = mercerless.TableRegressor(random_state=0).fit(X, y)
    yield "TableRegressor.predict_interval", model.predict_interval(X_new, COVERAGE)
    yield "TableRegressor, deviation", normal(*model.predict(X_new, return_std=True))
    yield "Gaussian process", normal(*process_of(X, y).predict(X_new, return_std=True))
    yield "quantile boosting", quantiles_of(X, y, X_new)


def process_of(X, y):
    """A Gaussian process with a length scale per feature and noise."""
    kernel = ConstantKernel() * RBF(np.ones(X.shape[1]), (1e-2, 1e4)) + WhiteKernel()
    return GaussianProcessRegressor(kernel, normalize_y=True, random_state=0).fit(X, y)


def quantiles_of(X, y, X_new):
    """The 5 % and 95 % quantiles by boosted trees."""
    ends = [
        HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=0)
        for q in (0.05, 0.95)
    ]
    return np.column_stack([end.fit(X, y).predict(X_new) for end in ends])


def deviations_of(X, y, X_new):
    """Yield the name of a method, means and standard deviations of new targets."""
    model = mercerless.TableRegressor(random_state=0).fit(X, y)
    mean, std = model.predict(X_new, return_std=True)
    yield "TableRegressor", mean, std
    errors = model.out_of_fold_.target - model.out_of_fold_.prediction
    yield "TableRegressor, one deviation", mean, np.full(len(mean), np.sqrt(np.mean(errors**2)))
    yield "Gaussian process", *process_of(X, y).predict(X_new, return_std=True)
    low, high = np.sort(quantiles_of(X, y, X_new), axis=1).T
    yield "quantile boosting", (low + high) / 2.0, np.maximum(high - low, 1e-9) / 2.0 / 1.6448536


def deviation(arguments):
    """Log density and coverage of normal distributions around predictions."""
    n = arguments.items[0] if len(arguments.items) == 1 else 150
    for name in arguments.sets or [
        *(each for each in NUMBERS if each != "pyrim"),
        "cpusmall",
        "kin8nm",
    ]:
        found, tested = {}, 0
        for X, y, X_new, y_new in draws(name, n, arguments.repeats):
            tested += len(y_new)
            for method, mean, std in deviations_of(X, y, X_new):
                z, unit = (y_new - mean) / std, np.std(y)
                density = -0.5 * np.log(2 * np.pi * (std / unit) ** 2) - 0.5 * z**2
                entry = found.setdefault(method, ([], [], []))
                for part, value in zip(
                    entry, (density, np.abs(z) <= 1.6448536, 2 * 1.6448536 * std / unit)
                ):
                    part.append(np.mean(value))
        rows = [
            {"set": name, "method": method, "items": n, "repeats": arguments.repeats, "tested": tested,
             "stated": COVERAGE, "log_density": f"{np.mean(density):.4f}", "covered": f"{np.mean(hits):.4f}",
             "width": f"{np.mean(widths):.4f}"}
            for method, (density, hits, widths) in found.items()
        ]  # fmt: skip
        for row in rows:
            print(row, flush=True)
        merge("see_deviation.csv", rows, ("set", "method", "items"))


def normal(mean, std):
    """Central intervals of normal distributions."""
    return np.column_stack([mean - 1.6448536 * std, mean + 1.6448536 * std])


def width(arguments):
    """Coverage and width of intervals beside those of others."""
    for name in arguments.sets or ["bodyfat", "housing", "mpg", "yacht"]:
        found = {}
        for X, y, X_new, y_new in draws(name, arguments.items[0], arguments.repeats):
            for method, intervals in intervals_of(X, y, X_new):
                low, high = intervals.T
                entry = found.setdefault(method, ([], []))
                entry[0].append(np.mean((low <= y_new) & (y_new <= high)))
                entry[1].append(np.mean(high - low) / np.std(y_new))
        rows = [
            {"set": name, "method": method, "items": arguments.items[0], "repeats": arguments.repeats,
             "stated": COVERAGE, "covered": f"{np.mean(hits):.4f}", "width": f"{np.mean(widths):.4f}"}
            for method, (hits, widths) in found.items()
        ]  # fmt: skip
        for row in rows:
            print(row, flush=True)
        merge("see_width.csv", rows, ("set", "method", "items"))


def flipped_draws(name, repeats, most=500):
    """Yield a seed, rows or distances, labels of which 5 % are flipped, and which."""
    n = 180 if name == "dtw_ecg200" else min(most, len(load(name).target) - 20)
    for seed, (X, y, _, _) in enumerate(draws(name, n, repeats)):
        rng, classes = np.random.RandomState(seed), np.unique(y)
        flipped = rng.choice(n, max(1, round(0.05 * n)), replace=False)
        codes = np.searchsorted(classes, y)
        codes[flipped] = (codes[flipped] + rng.randint(1, len(classes), len(flipped))) % len(
            classes
        )
        yield seed, X, classes[codes], flipped


def write_found(file, name, counts, repeats):
    """Rows of what was found; `counts` has hits, found, flipped and items of every method."""
    rows = [
        {"set": name, "method": method, "items": int(items / repeats), "repeats": repeats, "flipped": int(total),
         "found": int(found), "precision": f"{hits / max(found, 1):.3f}", "recall": f"{hits / total:.3f}",
         "false_alarms": f"{(found - hits) / (items - total):.4f}"}
        for method, (hits, found, total, items) in counts.items()
    ]  # fmt: skip
    for row in rows:
        print(row, flush=True)
    merge(file, rows, ("set", "method"))


def suspects(arguments):
    """Flip 5 % of the labels of at most 500 items; what is found, and what is found that was not flipped."""
    from cleanlab.filter import find_label_issues

    for name in arguments.sets or [*CLASSES, "dtw_ecg200"]:
        counts = {"suspects_": np.zeros(4), "cleanlab": np.zeros(4)}
        for _, X, y, flipped in flipped_draws(name, arguments.repeats):
            model = (
                model_of("krein", True, False)
                if name not in MATRICES
                else model_of("similarity", True, True)
            )
            held = model.fit(X, y).out_of_fold_
            order = np.argsort(held.rows)
            issues = find_label_issues(held.target[order], held.prediction[order], n_jobs=1)
            for method, found in (
                ("suspects_", model.suspects_.items),
                ("cleanlab", np.flatnonzero(issues)),
            ):
                counts[method] += [np.isin(found, flipped).sum(), len(found), len(flipped), len(y)]
        write_found("see_suspects.csv", name, counts, arguments.repeats)


def report(arguments):
    """The same of at most 200 items by the report of a comparison of few quick learners."""
    for name in arguments.sets or ["heart", "ionosphere", "sonar", "wine", "dtw_ecg200"]:
        learners = ["neighbors", "features", "svm-clip", "krein-ridge"] if name in MATRICES else [
            "neighbors", "linear", "svm-gaussian", "ridge-gaussian"
        ]  # fmt: skip
        counts = np.zeros(4)
        for seed, X, y, flipped in flipped_draws(name, arguments.repeats, 200):
            kind = "distance" if name in MATRICES else "table"
            compared = mercerless.compare(
                X,
                y,
                kind=kind,
                task="classification",
                learners=learners,
                repeats=1,
                curves=False,
                random_state=seed,
            )
            found = compared.suspects.items
            counts += [np.isin(found, flipped).sum(), len(found), len(flipped), len(y)]
        write_found("see_report.csv", name, {"report": counts}, arguments.repeats)


def drawn(n, n_classes, signal, seed):
    """Items of three features and their classes, which the first feature tells in part or not at all."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3))
    if not signal:
        return X, rng.randint(n_classes, size=n)
    cuts = [0.0] if n_classes == 2 else [-0.6, 0.6]
    return X, np.digitize(X[:, 0] + 0.7 * rng.normal(size=n), cuts)


def announced(model, n, n_classes, signal, seed, n_new=500):
    """What a model says of itself and what is true of new items."""
    X, y = drawn(n + n_new, n_classes, signal, seed)
    model.fit(X[:n], y[:n])
    held, target = model.out_of_fold_, np.searchsorted(model.classes_, y[n:])
    proba, new = model.predict_proba(X[n:]), np.arange(n_new)
    sets = model.predict_set(X[n:], 0.8, allow_empty=True)
    right = held.prediction[np.arange(n), held.target]
    return {
        "accuracy_announced": np.mean(held.prediction.argmax(axis=1) == held.target),
        "accuracy": np.mean(proba.argmax(axis=1) == target),
        "log_loss_announced": -np.log(right).mean(),
        "log_loss": -np.log(proba[new, target]).mean(),
        "covered": sets[new, target].mean(),
        "false_alarms": len(model.suspects_.items) / n,
    }


def simulation(arguments):
    """Accuracy and log-loss announced and true, coverage of sets, false alarms of suspects."""
    rows = []
    for which in arguments.models:
        if which not in ("similarity", "krein"):
            continue
        for n in arguments.items:
            for n_classes, signal in ((2, False), (3, False), (3, True)):
                start = time.perf_counter()
                draws = [
                    announced(model_of(which, True, False), n, n_classes, signal, seed)
                    for seed in range(arguments.repeats)
                ]
                row = {"model": which, "items": n, "classes": n_classes}
                row |= {"signal": "yes" if signal else "no", "repeats": arguments.repeats}
                for name in draws[0]:
                    row[name] = f"{np.mean([draw[name] for draw in draws]):.4f}"
                gap = [draw["accuracy_announced"] - draw["accuracy"] for draw in draws]
                row["error_of_gap"] = f"{np.std(gap, ddof=1) / np.sqrt(len(gap)):.4f}"
                hits = [draw["covered"] for draw in draws]
                row["error_of_covered"] = f"{np.std(hits, ddof=1) / np.sqrt(len(hits)):.4f}"
                row["seconds"] = f"{time.perf_counter() - start:.1f}"
                print(row, flush=True)
                rows.append(row)
        merge("see_simulation.csv", rows, ("model", "items", "classes", "signal"))


def merge(file, rows, keys):
    """Write rows in place of those with the same keys."""
    if not rows:
        return
    path, old = RESULTS / file, []
    if path.exists():
        with path.open(newline="") as stream:
            old = list(csv.DictReader(stream))
    new = {tuple(str(row[key]) for key in keys) for row in rows}
    kept = [row for row in old if tuple(row[key] for key in keys) not in new]
    everything = sorted([*kept, *rows], key=lambda row: tuple(str(row[key]) for key in keys))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(everything)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tasks = {
        "coverage": coverage,
        "width": width,
        "deviation": deviation,
        "suspects": suspects,
        "report": report,
        "simulation": simulation,
    }
    parser.add_argument("what", choices=tasks)
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--items", type=int, nargs="+", default=[30, 100])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--repeats", type=int, default=10)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    tasks[arguments.what](arguments)


if __name__ == "__main__":
    main()

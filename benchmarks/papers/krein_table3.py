"""Table 3 of Oglic and Gaertner (2018) with the paper's protocol: all rows, ten folds, ten restarts.

Kernel parameters, both penalties and the radius are tuned by the validation gradient over five inner folds: ten starts
of 20 steps each, then 200 from the best. Regression targets have the range 100. Classes are learned as the paper's
standardized labels, sqrt(n- / n+) and -sqrt(n+ / n-); ``error`` is that of the paper's rule, the sign, and
``error_middle`` that of the same function cut in the middle between both labels. One row per fold; an interrupted run
continues where it stopped.
"""

import csv
import time
from pathlib import Path

import numpy as np
from krein_table2 import paper_labels
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import KFold, StratifiedKFold

from mercerless import GradientSearch, KreinRidge, Sphere

RESULTS = Path(__file__).parent / "results" / "krein_table3_full.csv"
HEADER = (
    "set", "kernel", "fold", "n", "restarts", "steps", "error", "error_middle", "paper", "cpu_seconds",
)  # fmt: skip


def done():
    """The rows of an earlier run, by set, kernel and fold."""
    if not RESULTS.exists():
        return {}
    with open(RESULTS, newline="") as lines:
        return {(row["set"], row["kernel"], int(row["fold"])): row for row in csv.DictReader(lines)}


def write(rows):
    RESULTS.parent.mkdir(exist_ok=True)
    with open(RESULTS, "w", newline="") as file:
        writer = csv.DictWriter(file, HEADER, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows.values())


def fold_errors(kernel, X, y, train, test, classify, restarts, steps):
    """Error of one outer fold in per cent, and for classes that of the cut in the middle between the labels.

    Without a kernel the mean or the more frequent class is predicted.
    """
    if kernel is None:
        constant = (DummyClassifier() if classify else DummyRegressor()).fit(X[train], y[train])
        predicted = constant.predict(X[test])
        if classify:
            return (100 * np.mean(predicted != y[test]),) * 2
        return np.sqrt(np.mean((predicted - y[test]) ** 2)), np.nan
    target = y[train]
    folds = 5
    if classify:
        is_one = y == np.unique(y)[1]
        target = paper_labels(is_one[train])
        inner = StratifiedKFold(5, shuffle=True, random_state=0)
        folds = list(inner.split(X[train], is_one[train]))
    options = {"constraint": Sphere(), "cv": folds, "random_state": 0}
    search = GradientSearch(n_restarts=restarts, max_iter=steps)
    model = KreinRidge(kernel, search=search, **options).fit(X[train], target)
    predicted = model.predict(X[test])
    if not classify:
        return np.sqrt(np.mean((predicted - y[test]) ** 2)), np.nan
    middle = (target.max() + target.min()) / 2
    by_sign, by_middle = (100 * np.mean((predicted > cut) != is_one[test]) for cut in (0.0, middle))
    return by_sign, by_middle


def table3_full(sets, kernels_of, chosen, paper, n_folds=10, restarts=10, steps=200):
    """Run what is missing of the first folds; ``sets`` yields name, rows, targets and whether these are classes."""
    rows = done()
    for name, X, y, classify in sets:
        splitter = (StratifiedKFold if classify else KFold)(10, shuffle=True, random_state=0)
        for fold, (train, test) in enumerate(splitter.split(X, y)):
            if fold >= n_folds:
                break
            for label, kernel in {"constant": None, **kernels_of(X.shape[1])}.items():
                if (chosen and label not in chosen) or (name, label, fold) in rows:
                    continue
                start = time.process_time()
                error, middle = fold_errors(kernel, X, y, train, test, classify, restarts, steps)
                seconds = time.process_time() - start
                theirs = paper.get((name, label), "")
                values = [name, label, fold, len(y), restarts, steps, round(error, 3)]
                values += ["" if np.isnan(middle) else round(middle, 3), theirs, round(seconds, 1)]
                rows[name, label, fold] = dict(zip(HEADER, values))
                print(*values, flush=True)
                write(rows)

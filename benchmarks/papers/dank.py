"""The tables of Liu et al. (2020) on DANK, beside the paper's numbers.

    MERCERLESS_DATA=folder python -m benchmarks.papers.dank [table1] [table5] [table6] [beyond]

table1 (its Tables 1 and 2): accuracy in per cent with the paper's settings; half of the rows for training, features
scaled to [0, 1], C and the width of the plain machine by five folds, kept for DANK. table5: the same for
five weights of the trace of F, with its rank. table6: regression, mean squared
error over variance, at most 500 training rows. beyond: DANK searched by the gradient of the validation error beside a
tuned plain machine, error on at most 200 training rows.
"""

import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.common import main, write
from benchmarks.papers.paper_sets import load
from benchmarks.papers.published import cell, published
from mercerless import DANKClassifier, DANKRegressor, GradientSearch
from mercerless.kernels import Gaussian

CLASSES = ("heart", "monks1", "monks2", "monks3", "sonar", "glass", "fertility", "wine")
NUMBERS = ("bodyfat", "pyrim", "housing", "mpg", "mg", "triazines")
GIVEN_SPLIT = ("monks1", "monks2", "monks3")
SPLITS = 3


def halves(name, seed, most=500, scaler=MinMaxScaler):
    """Training and test rows, scaled by the training rows."""
    data = load(name)
    if name in GIVEN_SPLIT:
        parts = data.data, data.data_test, data.target, data.target_test
    else:
        X = np.asarray(data.data, dtype=float)
        parts = train_test_split(X, data.target, test_size=0.5, random_state=seed)
    X, X_test, y, y_test = parts
    X, y = X[:most], y[:most]
    scaler = scaler().fit(X)
    return scaler.transform(X), scaler.transform(X_test), y, y_test


def grid(extra=None):
    powers = np.arange(-5, 6, 2)
    return {"C": 2.0**powers, "gamma": 0.5 / 4.0**powers} | (extra or {})


def plain_machine(X, y):
    """The plain machine with C and the width chosen by five folds, and both for DANK."""
    search = GridSearchCV(SVC(), grid(), cv=5).fit(X, y)
    width = np.sqrt(0.5 / search.best_params_["gamma"])
    return search, {"kernel": Gaussian(width), "C": search.best_params_["C"]}


def table1():
    known, rows = published("dank", "1"), []
    for name in CLASSES:
        plain, adapted = [], []
        for seed in range(1 if name in GIVEN_SPLIT else SPLITS):
            X, X_test, y, y_test = halves(name, seed)
            search, chosen = plain_machine(X, y)
            model = DANKClassifier(**chosen).fit(X, y)
            plain.append(100 * search.score(X_test, y_test))
            adapted.append(100 * model.score(X_test, y_test))
        rows.append(
            {
                "set": name,
                "plain machine (paper)": cell(plain, known.get((name, "svm"))),
                "DANK (paper)": cell(adapted, known.get((name, "dank"))),
            }
        )
    write("dank_table1", rows)


def table5():
    known, rows = published("dank", "5"), []
    for name in CLASSES:
        results = {tau: [] for tau in ("0", "0.001", "0.01", "0.1", "1")}
        for seed in range(1 if name in GIVEN_SPLIT else SPLITS):
            X, X_test, y, y_test = halves(name, seed)
            _, chosen = plain_machine(X, y)
            for tau, result in results.items():
                model = DANKClassifier(**chosen, rank_penalty=float(tau)).fit(X, y)
                result.append((100 * model.score(X_test, y_test), model.rank_))
        means = {tau: np.mean(result, axis=0) for tau, result in results.items()}
        cells = {
            f"tau = {tau}": f"{cell(accuracy, known.get((name, tau)))}, rank {rank:.0f}"
            for tau, (accuracy, rank) in means.items()
        }
        rows.append({"set": name} | cells)
    write("dank_table5", rows)


def relative_error(model, X, y):
    return np.mean((model.predict(X) - y) ** 2) / np.var(y)


def share_wrong(model, X, y):
    return 1 - model.score(X, y)


def table6():
    known, rows = published("dank", "6"), []
    for name in NUMBERS:
        plain, adapted = [], []
        for seed in range(SPLITS):
            X, X_test, y, y_test = halves(name, seed)
            center, spread = y.mean(), y.std()
            y, y_test = (y - center) / spread, (y_test - center) / spread
            search = GridSearchCV(SVR(), grid({"epsilon": [0.01, 0.1]}), cv=5).fit(X, y)
            best = search.best_params_
            kernel = Gaussian(np.sqrt(0.5 / best["gamma"]))
            model = DANKRegressor(kernel, C=best["C"], epsilon=best["epsilon"]).fit(X, y)
            plain.append(relative_error(search, X_test, y_test))
            adapted.append(relative_error(model, X_test, y_test))
        rows.append(
            {
                "set": name,
                "plain machine (paper)": cell(plain, known.get((name, "svr")), 3),
                "DANK (paper)": cell(adapted, known.get((name, "dank")), 3),
            }
        )
    write("dank_table6", rows)


def beyond():
    """Ratio below 1: DANK, searched, has the smaller error."""
    rows, ratios = [], []
    for name in (*CLASSES, *NUMBERS, "yacht", "airfoil"):
        classify, errors = name in CLASSES, []
        for seed in range(2):
            X, X_test, y, y_test = halves(name, seed, most=200, scaler=StandardScaler)
            machine, dank = (SVC, DANKClassifier) if classify else (SVR, DANKRegressor)
            if not classify:
                y_test = (y_test - y.mean()) / y.std()
                y = (y - y.mean()) / y.std()
            settings = grid(None if classify else {"epsilon": [0.01, 0.1]})
            search = GradientSearch(n_restarts=1, max_iter=25)
            models = GridSearchCV(machine(), settings, cv=5), dank(search=search, random_state=0)
            for model in models:
                model.fit(X, y)
            measure = share_wrong if classify else relative_error
            errors.append([measure(model, X_test, y_test) for model in models])
        plain, searched = np.mean(errors, axis=0)
        ratios.append(searched / plain if plain else 1.0)
        rows.append(
            {
                "set": name,
                "plain, tuned": f"{plain:.4f}",
                "DANK, searched": f"{searched:.4f}",
                "ratio": f"{ratios[-1]:.2f}",
            }
        )
        print(rows[-1], flush=True)
    mean = np.exp(np.mean(np.log(np.maximum(ratios, 1e-3))))
    better = f"better on {sum(r < 1 for r in ratios)} of {len(ratios)}"
    rows.append({"set": f"geometric mean, {better}", "ratio": f"{mean:.2f}"})
    write("dank_beyond", rows)


if __name__ == "__main__":
    main({"table1": table1, "table5": table5, "table6": table6, "beyond": beyond})

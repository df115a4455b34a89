"""How good is what `compare` recommends, and how often are its differences wrong?

    MERCERLESS_DATA=folder BUDGET=120s python -m benchmarks.compare regret
    python -m benchmarks.compare intervals

`regret` lets comparisons with a budget recommend a learner for 20 files of 200 to 20,000 rows, fits it on all rows that
the comparison saw, and scores it on rows held back, beside every other learner that was ranked, and the automatic one
and boosting even if they were not. Regret is the score (accuracy or R2) of the best of them, which nobody can know
beforehand, minus that of the recommended one. A file's row is written as soon as it is finished; files with a row for
this budget and commit are not run again. ``MERCERLESS_DATA`` names the folder of the files, ``BUDGET`` the budget
(60s), ``SETS`` some of them.

`intervals` simulates learners without and with differences and counts false claims, covered differences and
differences that are found.
"""

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.common import RESULTS, commit, main, read, write
from benchmarks.papers.paper_sets import load
from mercerless.comparison.learners import Learner
from mercerless.comparison.options import Options, parse_budget
from mercerless.comparison.problem import Problem, make_problem
from mercerless.comparison.result import compare_problem
from mercerless.comparison.statistics import judge, log_losses
from mercerless.comparison.work import fit_all, predictions_of

BUDGET = os.environ.get("BUDGET", "60s")
HELD_BACK = 0.3
#: Files of tables with words, and the column to predict.
TARGETS = {
    "eucalyptus": "Utility",
    "hypothyroid": "Class",
    "nursery": "class",
    "socmob": "counts_for_sons_current_occupation",
}
SCIKIT_LEARN = ("breast_cancer", "diabetes", "digits")
SETS = (
    "heart haberman ionosphere diabetes breast_cancer eucalyptus pima australian diabetic socmob airfoil digits "
    "space_ga hypothyroid electrical kin8nm nursery eeg elevators letter"
).split()


def data_of(name: str) -> tuple[pd.DataFrame, NDArray]:
    """Rows and labels of a set."""
    if name in SCIKIT_LEARN:
        bunch = getattr(datasets, f"load_{name}")(as_frame=True)
        return bunch.data, bunch.target.to_numpy()
    if name in TARGETS:
        path = Path(os.environ["MERCERLESS_DATA"]) / "tables" / f"{name}.csv"
        frame = pd.read_csv(path, na_values="?")
        return frame.drop(columns=TARGETS[name]), frame[TARGETS[name]].to_numpy()
    bunch = load(name, download=False)
    X = np.asarray(bunch.data if "data" in bunch else bunch.X)
    y = np.asarray(bunch.target if "target" in bunch else bunch.y)
    return pd.DataFrame(X).add_prefix("x"), y


def fresh_score(
    problem: Problem, learner: Learner, X: pd.DataFrame, y: NDArray
) -> tuple[float, float]:
    """Accuracy (or R2) and log-loss on new rows of a learner fitted on all rows of the problem."""
    warnings.simplefilter("ignore")
    predictions = predictions_of(fit_all(problem, learner), X, problem)
    if not problem.is_classification:
        return r2_score(y, predictions), np.nan
    codes = np.searchsorted(problem.classes, y)
    accuracy = accuracy_score(codes, predictions.argmax(axis=1))
    clipped = np.clip(predictions, 1e-3, None)
    clipped /= clipped.sum(axis=1, keepdims=True)
    return accuracy, log_loss(codes, clipped, labels=np.arange(clipped.shape[1]))


def regret_of(name: str) -> dict:
    """One row of the table of regrets."""
    X, y = data_of(name)
    task = None if len(np.unique(y)) > 30 else "classification"
    stratify = y if task and np.unique(y, return_counts=True)[1].min() > 1 else None
    seen, new = train_test_split(
        np.arange(len(y)), test_size=HELD_BACK, random_state=0, stratify=stratify
    )
    start = time.perf_counter()
    problem = make_problem(X.iloc[seen], y[seen], name=name, task=task)
    comparison = compare_problem(problem, Options(budget=BUDGET, n_jobs=-1, started=start))
    recommended = comparison.recommended
    seconds = time.perf_counter() - start
    row = {
        "set": name,
        "rows": len(seen),
        "recommended": recommended,
        "automatic on all rows": comparison.control is not None
        and comparison.problem.n_items == problem.n_items,
        "rows compared on": comparison.problem.n_items,
        "splits": comparison.race.n_splits,
        "ranked": len(comparison.ranked),
        "seconds": round(seconds, 1),
        "wall/budget": round(seconds / (parse_budget(BUDGET) or np.inf), 3),
        "budget": BUDGET,
    }
    if recommended is None:
        return row
    new = new[np.isin(y[new].astype(problem.y.dtype), problem.classes)] if task else new
    truth = y[new].astype(problem.y.dtype)
    rows = X.iloc[new].reset_index(drop=True)
    # also if they were not ranked: the automatic learner and one of the usual rivals
    judged = list(dict.fromkeys([*comparison.ranked, "table", "boosting"]))
    fits = (delayed(fresh_score)(problem, comparison.learner(one), rows, truth) for one in judged)
    scores = dict(zip(judged, Parallel(2)(fits)))
    best = max(scores, key=lambda one: scores[one][0])
    return row | {
        "best on new rows": best,
        "score": round(scores[recommended][0], 4),
        "best score": round(scores[best][0], 4),
        "regret": round(scores[best][0] - scores[recommended][0], 4),
        "log-loss": round(scores[recommended][1], 4),
        "best log-loss": round(min(one[1] for one in scores.values()), 4),
    }


def regret() -> None:
    """Regrets of all sets, written set by set."""
    chosen = os.environ.get("SETS", " ".join(SETS)).split()
    path, version = RESULTS / "compare_regret.csv", commit()
    table = read("compare_regret") if path.exists() else pd.DataFrame(columns=["set", "budget"])
    for number, name in enumerate(chosen, 1):
        is_same = (table["set"] == name) & (table["budget"] == BUDGET)
        if (is_same & (table.get("commit") == version)).any():
            print(f"[{number}/{len(chosen)}] {name}: done before", flush=True)
            continue
        print(f"[{number}/{len(chosen)}] {name} ...", flush=True)
        try:
            row = regret_of(name)
        except (FileNotFoundError, ImportError, KeyError, ValueError) as error:
            print(f"  left out: {error!r}", flush=True)
            continue
        print("  " + ", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        table = pd.concat([table[~is_same], pd.DataFrame([row | {"commit": version}])])
        table.to_csv(path, index=False)
    done = table[(table["budget"] == BUDGET) & table["set"].isin(chosen)]
    print(done.drop(columns="commit").to_string(index=False))
    print(
        f"budget {BUDGET}: {len(done)} of {len(chosen)} sets, mean regret {done['regret'].mean():.4f}, "
        f"largest {done['regret'].max():.4f}, wall/budget at most {done['wall/budget'].max():.2f}, "
        f"automatic learner on all rows in {int(done['automatic on all rows'].sum())}"
    )


# ------------------------------------------------------------------------------------------------------- simulation

N_FOLDS = 5
N_REPEATS = 3
#: Of both classes on four columns: three columns are about five points of accuracy worse than four, two about eleven.
SHIFTS = np.array([0.53, 0.52, 0.60, 0.70])


def out_of_fold(
    models: list, views: list[NDArray], y: NDArray, seed: int, n_classes: int
) -> tuple[NDArray, NDArray]:
    """Log-losses and errors of shape (learners, repeats, items) of learners on their own columns."""
    losses = np.empty((len(models), N_REPEATS, len(y)))
    errors = np.empty_like(losses)
    for repeat in range(N_REPEATS):
        splits = StratifiedKFold(N_FOLDS, shuffle=True, random_state=1000 * seed + repeat)
        for train, test in splits.split(y, y):
            for k, (model, X) in enumerate(zip(models, views)):
                P = np.zeros((len(test), n_classes))
                fitted = model().fit(X[train], y[train])
                P[:, fitted.classes_] = fitted.predict_proba(X[test])
                losses[k, repeat, test] = log_losses(P, y[test])
                errors[k, repeat, test] = P.argmax(axis=1) != y[test]
    return losses, errors


def equal_learners(model: Callable, signal: float) -> Callable:
    """A set on which four learners of one kind on columns of their own are equally good."""

    def draw(rng: np.random.Generator, n: int) -> tuple[list, list[NDArray], NDArray]:
        y = rng.permutation(np.arange(n) % 2)
        views = [rng.normal(size=(n, 2)) + signal * (2 * y[:, None] - 1) for _ in range(4)]
        return [model] * 4, views, y

    return draw


def unequal_learners(rng: np.random.Generator, n: int) -> tuple[list, list[NDArray], NDArray]:
    """Naive Bayes on 4, 3 and 2 informative columns, and on 1 with two of noise."""
    y = rng.permutation(np.arange(n) % 2)
    X = rng.normal(size=(n, 4)) + SHIFTS * (2 * y[:, None] - 1)
    worst = np.hstack([X[:, :1], rng.normal(size=(n, 2))])
    return [GaussianNB] * 4, [X, X[:, :3], X[:, :2], worst], y


CELLS = {
    "noise, naive Bayes": (equal_learners(GaussianNB, 0.0), True),
    "noise, nearest neighbor": (equal_learners(lambda: KNeighborsClassifier(1), 0.0), True),
    "equal, naive Bayes": (equal_learners(GaussianNB, 0.5), True),
    "equal, linear discriminant": (equal_learners(LinearDiscriminantAnalysis, 0.5), True),
    "equal, nearest neighbor": (equal_learners(lambda: KNeighborsClassifier(1), 0.5), True),
    "equal, nine neighbors": (equal_learners(lambda: KNeighborsClassifier(9), 0.5), True),
    "unequal, naive Bayes": (unequal_learners, False),
}


def intervals(n_sets: int = int(os.environ.get("N_SETS", "400")), n: int = 100) -> None:
    """False claims, coverage of single intervals, and power, by simulation; the first learner is named beforehand."""
    rows = []
    for cell, (draw, are_equal) in CELLS.items():
        claims: dict[str, list] = {"log-loss": [], "accuracy": []}
        differences: dict[str, list] = {"log-loss": [], "accuracy": []}
        widths = []
        for seed in range(n_sets):
            models, views, y = draw(np.random.default_rng(seed), n)
            for metric, losses in zip(claims, out_of_fold(models, views, y, seed, 2)):
                judged = judge(losses, control=0)
                claims[metric].append((judged.better[0] | judged.better[:, 0])[1:])
                differences[metric].append(judged.difference[0, 1:])
                if metric == "log-loss":
                    widths.append(judged.critical_alone * judged.standard_error[0, 1:])
        found = {metric: np.array(decided) for metric, decided in claims.items()}
        means = {metric: np.mean(values, axis=0) for metric, values in differences.items()}
        truth = 0.0 if are_equal else means["log-loss"]
        is_covered = np.abs(np.array(differences["log-loss"]) - truth) <= np.array(widths)
        row = {"cell": cell, "items": n, "sets": n_sets}
        row["points of accuracy"] = "0" if are_equal else several(100 * means["accuracy"], ".1f")
        for metric, decided in found.items():
            any_claim = f"{decided.any(axis=1).mean():.3f}"
            row[f"false claims, {metric}"] = any_claim if are_equal else ""
            row[f"found, {metric}"] = "" if are_equal else several(decided.mean(axis=0), ".2f")
        row["coverage of single intervals"] = f"{is_covered.mean():.3f}"
        rows.append(row)
        print(row, flush=True)
    write("compare_intervals", rows)


def several(values: NDArray, form: str) -> str:
    """Numbers in one cell."""
    return " ".join(f"{value:{form}}" for value in values)


if __name__ == "__main__":
    main({"regret": regret, "intervals": intervals})

"""How good is what `compare` recommends, and how often are its differences wrong?

    python -m benchmarks.compare regret intervals

`regret` lets comparisons with a budget recommend a learner for files of 200 to 16,000 rows, fits it on all rows that
the comparison saw, and scores it on rows held back, beside every other learner that was ranked. Regret is the score of
the best of them, which nobody can know beforehand, minus that of the recommended one. ``MERCERLESS_DATA`` names the
folder of the files, ``BUDGET`` the budget (60s), ``SETS`` some of them.

`intervals` simulates learners without and with differences and counts false claims, covered differences and
differences that are found.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.common import main, read, write
from benchmarks.papers.paper_sets import load
from mercerless.comparison.options import Options
from mercerless.comparison.problem import make_problem
from mercerless.comparison.result import Comparison, compare_problem
from mercerless.comparison.statistics import judge, log_losses
from mercerless.comparison.work import fit_all, predictions_of

BUDGET = os.environ.get("BUDGET", "60s")
HELD_BACK = 0.3
MOST_ROWS = 16_000
#: Sets and the column to predict of those that are tables with words.
SETS = {
    "wine": "",
    "glass": "",
    "heart": "",
    "yacht": "",
    "ionosphere": "",
    "haberman": "",
    "pima": "",
    "eucalyptus": "Utility",
    "diabetic": "",
    "socmob": "counts_for_sons_current_occupation",
    "airfoil": "",
    "space_ga": "",
    "hypothyroid": "",
    "kin8nm": "",
    "comp_activ": "",
    "nursery": "",
    "eeg": "",
    "elevators": "",
    "letter": "",
}


def data_of(name: str, target: str) -> tuple[pd.DataFrame, NDArray]:
    """Rows and labels of a set."""
    if target or name in ("hypothyroid", "nursery"):
        path = Path(os.environ["MERCERLESS_DATA"]) / "tables" / f"{name}.csv"
        frame = pd.read_csv(path, na_values="?")
        target = target or frame.columns[-1]
        return frame.drop(columns=target), frame[target].to_numpy()
    bunch = load(name, download=False)
    X = np.asarray(bunch.data if "data" in bunch else bunch.X)
    y = np.asarray(bunch.target if "target" in bunch else bunch.y)
    return pd.DataFrame(X).add_prefix("x"), y


def fresh_scores(comparison: Comparison, rows: pd.DataFrame, y: NDArray) -> dict[str, tuple]:
    """Accuracy and log-loss, or R2, of every ranked learner with its defaults, and of the recommended one."""
    problem, scores = comparison.problem, {}
    for name in comparison.ranked:
        if name.endswith("-search") and name != comparison.recommended:
            continue
        model = fit_all(problem, comparison.learner(name))
        predictions = predictions_of(model, rows, problem)
        if problem.is_classification:
            labels = problem.classes[predictions.argmax(axis=1)]
            clipped = np.clip(predictions, 0.01, 0.99)
            clipped /= clipped.sum(axis=1, keepdims=True)
            scores[name] = (accuracy_score(y, labels), log_loss(y, clipped, labels=problem.classes))
        else:
            scores[name] = (r2_score(y, predictions), np.nan)
    return scores


def regret_of(name: str, target: str) -> dict:
    """One row of the table of regrets."""
    X, y = data_of(name, target)
    X, y = X.iloc[:MOST_ROWS], y[:MOST_ROWS]
    task = None if len(np.unique(y)) > 30 else "classification"
    stratify = y if task and np.unique(y, return_counts=True)[1].min() > 1 else None
    seen, new = train_test_split(
        np.arange(len(y)), test_size=HELD_BACK, random_state=0, stratify=stratify
    )
    problem = make_problem(X.iloc[seen], y[seen], name=name, task=task)
    start = time.perf_counter()
    comparison = compare_problem(problem, Options(budget=BUDGET, n_jobs=-1, started=start))
    seconds = time.perf_counter() - start
    new = new[np.isin(y[new], problem.classes)] if problem.is_classification else new
    truth = y[new].astype(problem.y.dtype)
    scores = fresh_scores(comparison, X.iloc[new].reset_index(drop=True), truth)
    recommended = comparison.recommended
    if recommended is None:
        raise TimeoutError(f"no learner finished within {BUDGET}")
    best = max(scores, key=lambda one: scores[one][0])
    return {
        "set": name,
        "rows": len(seen),
        "recommended": recommended,
        "best on new rows": best,
        "score": round(scores[recommended][0], 4),
        "best score": round(scores[best][0], 4),
        "regret": round(scores[best][0] - scores[recommended][0], 4),
        "log-loss": round(scores[recommended][1], 4),
        "best log-loss": round(min(one[1] for one in scores.values()), 4),
        "automatic ranked": comparison.control is not None,
        "rows compared on": comparison.problem.n_items,
        "splits": comparison.race.n_splits,
        "seconds": round(seconds, 1),
        "budget": BUDGET,
    }


def regret() -> None:
    """Regrets of all sets, written set by set."""
    wanted = os.environ.get("SETS", " ".join(SETS)).split()
    rows = []
    for name in wanted:
        try:
            rows.append(regret_of(name, SETS[name]))
        except (FileNotFoundError, TimeoutError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        print(rows[-1], flush=True)
    old = old_rows("compare_regret")
    kept = [
        row for row in old if (row["set"], row["budget"]) not in {(r["set"], BUDGET) for r in rows}
    ]
    table = write("compare_regret", [*kept, *rows])
    print(table.groupby("budget")["regret"].describe())


def old_rows(name: str) -> list[dict]:
    """Rows that were written before."""
    try:
        return read(name).drop(columns="commit").to_dict("records")
    except FileNotFoundError:
        return []


# ------------------------------------------------------------------------------------------------------- simulation

N_FOLDS = 5
N_REPEATS = 3


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
    X = rng.normal(size=(n, 4)) + 0.5 * (2 * y[:, None] - 1)
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


def intervals(n_sets: int = int(os.environ.get("N_SETS", "200")), n: int = 100) -> None:
    """False claims, cover of single differences, and power, by simulation."""
    rows = []
    for cell, (draw, are_equal) in CELLS.items():
        claims = {"log-loss": [], "accuracy": []}
        covered = []
        for seed in range(n_sets):
            models, views, y = draw(np.random.default_rng(seed), n)
            for metric, losses in zip(claims, out_of_fold(models, views, y, seed, 2)):
                judged = judge(losses, control=0)
                claims[metric].append(judged.better[0] | judged.better[:, 0])
                if are_equal and metric == "log-loss":
                    width = judged.critical_alone * judged.standard_error[0, 1:]
                    covered += list(np.abs(judged.difference[0, 1:]) <= width)
        row = {"cell": cell, "items": n, "sets": n_sets}
        for metric, decided in claims.items():
            decisions = np.array(decided)
            any_claim = f"{decisions.any(axis=1).mean():.3f}"
            found = " ".join(f"{share:.2f}" for share in decisions[:, 1:].mean(axis=0))
            row[f"false claims, {metric}"] = any_claim if are_equal else ""
            row[f"found, {metric}"] = "" if are_equal else found
        row["cover of single intervals"] = f"{np.mean(covered):.3f}" if covered else ""
        rows.append(row)
        print(row, flush=True)
    write("compare_intervals", rows)


if __name__ == "__main__":
    main({"regret": regret, "intervals": intervals})

"""The tables of the LAB paper (He et al., 2024), beside its numbers.

    MERCERLESS_DATA=folder python -m benchmarks.papers.lab [table1] [table5] [algorithm1]

Random splits, 80 % of the rows for training. table1: test R2 with the paper's numbers of support points (its Tables 1
and 2). table5: three choices of the first support on yacht, without and with growth (its Tables 5 and 6). algorithm1:
the paper's Algorithm 1 with the numbers of steps of its authors' code, beside the defaults.
"""

import warnings
from functools import partial

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks.common import main, seconds, write
from benchmarks.papers.paper_sets import load
from benchmarks.papers.published import HERE, cell
from mercerless import Adam, LABRegressor, Support

#: Numbers of support points in the paper's Tables 1 and 2, and ours if they are fewer.
SUPPORT = {
    "tecator": (76,),
    "yacht": (73,),
    "airfoil": (300, 800),
    "sml2010": (100, 400),
    "parkinsons": (100, 400),
    "comp_activ": (70,),
    "electrical": (100, 300),
}
#: Learning rate, batch and initial scale of the paper's Tables 3 and 4.
PRINTED = {
    "yacht": (0.01, 128, 3.0),
    "comp_activ": (0.001, 128, 0.1),
    "electrical": (0.001, 256, 0.1),
    "parkinsons": (0.001, 128, 30.0),
}
SPLITS = 3
PAPER = pd.read_csv(HERE / "lab_paper.csv")


def splits(name, n_splits=SPLITS):
    data = load(name)
    X, y = np.asarray(data.data, dtype=float), np.asarray(data.target, dtype=float)
    for seed in range(n_splits):
        yield train_test_split(X, y, test_size=0.2, random_state=seed)


def theirs(name):
    """The paper's R2 of LAB, and its number of support points."""
    row = PAPER[(PAPER["set"] == name) & (PAPER.method == "LAB RBF")].iloc[0]
    return f"{row.r2:.4f} ({row.n_support:.0f})"


def table1():
    rows = []
    for name, numbers in SUPPORT.items():
        for n_support in numbers:
            scores = []
            for X, X_test, y, y_test in splits(name):
                model = LABRegressor(n_support=n_support, random_state=0).fit(X, y)
                scores.append(model.score(X_test, y_test))
            row = {"set": name, "support": n_support, "R2": cell(scores, digits=4)}
            rows.append(row | {"splits": SPLITS, "paper (support)": theirs(name)})
            write("lab_table1", rows)


def algorithm1(support, name="yacht", n_steps=500):
    """The paper's machine."""
    rate, batch, scale = PRINTED[name]
    adam = Adam(learning_rate=rate, batch_size=batch, n_steps=n_steps, initial_scale=scale)
    return LABRegressor(support, objective="interpolation", optimizer=adam, random_state=0)


def table5():
    rows = []
    names = {"y": "evenly spaced targets", "kmeans": "k-means", "extreme": "the largest targets"}
    for selection, title in names.items():
        grown = Support(24, selection=selection, step=10, max_error=0.01, max_support=73)
        machines = {
            "evidence, L-BFGS": LABRegressor(Support(73, selection=selection), random_state=0),
            "Algorithm 1": algorithm1(Support(73, selection=selection)),
            "Algorithm 1 with growth": algorithm1(grown),
        }
        scores = {machine: [] for machine in machines}
        for X, X_test, y, y_test in splits("yacht"):
            for machine, model in machines.items():
                scores[machine].append(model.fit(X, y).score(X_test, y_test))
        rows.append(
            {"yacht, first support": title} | {m: cell(s, digits=3) for m, s in scores.items()}
        )
    write("lab_table5", rows)


def against_algorithm1():
    rows = []
    numbers = {"yacht": 73, "comp_activ": 70, "electrical": 300, "parkinsons": 400}
    for name, n_support in numbers.items():
        X, X_test, y, y_test = next(splits(name, 1))
        grown = Support(
            n_support // 3, selection="y", step=10, max_error=0.01, max_support=n_support
        )
        paper, ours = (
            algorithm1(grown, name, n_steps=2000),
            LABRegressor(n_support=n_support, random_state=0),
        )
        cost = [seconds(partial(model.fit, X, y)) for model in (paper, ours)]
        rows.append(
            {
                "set, support": f"{name}, {n_support}",
                "Algorithm 1": f"{paper.score(X_test, y_test):.4f}",
                "defaults": f"{ours.score(X_test, y_test):.4f}",
                "paper": theirs(name),
                "times the processor time of the defaults": f"{cost[0] / cost[1]:.1f}",
            }
        )
    write("lab_algorithm1", rows)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # growth that ends at its bound says so
    main({"table1": table1, "table5": table5, "algorithm1": against_algorithm1})

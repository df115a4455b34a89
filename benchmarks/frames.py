"""Statistics behind tables and figures: ranks, tests over sets, and what a template cannot format.

The declarations of frames.toml, tables.toml and figures.toml use these functions, as frames of their own or in the
expressions of new columns. Everything that pandas does by itself is declared there.
"""

import importlib
import json
import sys
from functools import cache

import numpy as np
import pandas as pd
from scipy.stats import gmean, rankdata, wilcoxon
from scipy.stats import t as student

from benchmarks.claims import CLAIMS
from benchmarks.run import default_folder, known_runs
from benchmarks.tables import HERE, Span, fill, load


@cache
def script(name):
    """A script of ``benchmarks/papers``, which defines its sets and tests."""
    folder = str(HERE / "papers")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(f"benchmarks.papers.{name}")
    finally:
        sys.path.remove(folder)


# ---------------------------------------------------------------------------------------------------- dank
def error_ratio(errors, others):
    """Ratios of errors; errors below 0.001 count as 0.001."""
    return errors.clip(lower=1e-3) / others.clip(lower=1e-3)


def dank_summary():
    """Pairs of methods on groups of sets: the mean ratio of errors and Wilcoxon's test over sets."""
    sets = load("dank_sets")
    pairs = {
        "DANK against plain": ("adapted", "plain"),
        "hyper against plain": ("hyper", "plain"),
        "scaled plain against plain": ("scaled plain", "plain"),
        "DANK against scaled plain": ("adapted", "scaled plain"),
    }
    groups = {
        f"all {len(sets)}": sets,
        f"{sets.is_classification.sum()} classification": sets[sets.is_classification],
        f"{sets.is_regression.sum()} regression": sets[sets.is_regression],
        f"{sets.is_fresh.sum()} never tried": sets[sets.is_fresh],
    }
    rows = []
    for words, (method, other) in pairs.items():
        for group, part in groups.items():
            ratio = error_ratio(part[method], part[other])
            p = wilcoxon(np.log(ratio)).pvalue
            row = {"pair": words, "group": group, "ratio": gmean(ratio)}
            row |= {"better": (ratio < 1).sum(), "worse": (ratio > 1).sum()}
            rows.append(row | {"p": f"{p:.2f}" if p >= 0.01 else f"{p:.1g}"})
    return pd.DataFrame(rows)


# ---------------------------------------------------------------------------------------------------- scale
def significant(seconds):
    return f"{seconds:.3g}" if seconds >= 1 else f"{seconds:.2g}"


def duration(seconds):
    """Minutes, or hours from one hour on."""
    hours = seconds / 3600
    if hours < 1:
        return f"{seconds / 60:.0f} min"
    return f"{hours:.1f} h" if hours < 10 else f"{hours:.0f} h"


def on_100_cores(seconds):
    """A hundredth of the duration."""
    minutes = seconds / 60
    if minutes < 60:
        return f"{seconds / 100:.0f} s for the pass alone"
    return f"{minutes / 100:.1f} min" if minutes < 1000 else f"{minutes / 100:.0f} min"


# ---------------------------------------------------------------------------------------------------- lab
def average_ranks(parts):
    """Average rank of every learner, a column of the scores of each part; the largest score is the best."""
    frames = []
    for label, scores in parts.items():
        if len(scores):
            ranks = rankdata(-scores.to_numpy(), axis=1).mean(axis=0)
            row = {"label": label, "sets": len(scores), "learner": scores.columns, "rank": ranks}
            frames.append(pd.DataFrame(row))
    return pd.concat(frames, ignore_index=True)


def lab_means(column="r2"):
    """Mean per set and learner over the splits that all learners have; sets that all have."""
    rows = load("papers/lab_compare")
    common = rows.pivot(index=["set", "split"], columns="learner", values=column).dropna()
    return common.groupby("set").mean().reset_index()


def lab_compare():
    means = lab_means().set_index("set").round(4)
    large = load("papers/lab_compare").groupby("set").n_train.max().loc[means.index] > 1000
    return average_ranks(
        {"all": means, "above 1000 rows": means[large], "up to 1000 rows": means[~large]}
    )


def lab_compare_behind():
    """Sets on which the table learner is not the best, with the best."""
    means = lab_means().set_index("set").round(4)
    best = means.max(axis=1)
    behind = means.assign(peer=means.idxmax(axis=1).map(COMPARED), best=best)
    return behind[means.table < best].reset_index()


def lab_tests():
    """P-values of ranks against every peer after Holm's correction, and the largest but that of Laplace ridge."""
    means = lab_means().set_index("set").round(4)
    ranks = pd.DataFrame(rankdata(-means.to_numpy(), axis=1), means.index, means.columns)
    gaps = ranks.drop(columns="table").sub(ranks.table, axis=0)
    statistics = gaps.mean() / gaps.sem()
    p_values = dict(zip(gaps, 2 * student.sf(statistics.abs(), len(gaps) - 1)))
    p_values = script("lab_tables").holm(p_values)
    others = max(p for peer, p in p_values.items() if peer != "ridge_laplace")
    return pd.DataFrame([p_values | {"others": others}])


COMPARED = {
    "ridge_laplace": "Laplace ridge",
    "ridge_gaussian": "Gaussian ridge",
    "lightgbm": "LightGBM",
    "xrfm": "xRFM",
    "hist_boosting": "HistGradientBoosting",
    "svr": "SVR",
}
BOOSTED = {"table": "table learner", "lightgbm": "LightGBM", "catboost": "CatBoost"}
FURTHER = {
    "catboost_search": "CatBoost, ten settings",
    "xgboost": "XGBoost",
    "extra_trees": "extremely random trees",
    "svm": "support vector machine",
    "mlp": "network",
    "laplace_ridge": "ridge, Laplace",
    "boosting": "HistGradientBoosting",
    "stack": "stack of boosting, trees and SVM",
    "xrfm": "xRFM",
    "realmlp": "RealMLP",
    "autogluon": "AutoGluon",
    "tabm": "TabM",
    "lab_local": "local forms alone",
}
MEASURES = {  # title, task, column, sign
    "r2": ("regression, R2", "regression", "score", 1),
    "accuracy": ("classification, accuracy", "classes", "score", 1),
    "log_loss": ("classification, log-loss", "classes", "log_loss", -1),
    "auc": ("classification, AUC", "classes", "auc", 1),
}


def table_splits(measure, learners=tuple(BOOSTED), bank="lab_bands"):
    """Scores by number of rows, set and split that all these learners have; the largest is the best."""
    _, task, values, sign = MEASURES[measure]
    rows = load(f"{bank}_clean")
    rows = rows[rows.task == task]
    scores = rows.pivot_table(index=["rows", "set", "split"], columns="learner", values=values)
    return sign * scores.reindex(columns=list(learners)).dropna()


def table_scores(measure, learners=tuple(BOOSTED), bank="lab_bands"):
    """The same, averaged over splits."""
    return table_splits(measure, learners, bank).groupby(["rows", "set"]).mean().round(4)


def lab_ranks():
    """Average ranks by measure: of each band, of all sets, and of the confirmation half."""
    confirmation = script("lab_tables").CONFIRMATION
    parts = {}
    for measure, (title, *_) in MEASURES.items():
        scores = table_scores(measure)
        for band, part in scores.groupby("rows"):
            parts[f"{title}, at most {band:,} rows"] = part
        is_confirmed = scores.index.get_level_values("set").isin(confirmation)
        parts[f"{title}, all bands"] = scores
        parts[f"{title}, all bands, the confirmation half"] = scores[is_confirmed]
    return average_ranks(parts)


def lab_fresh(bank):
    """Average ranks by measure on the tables that were listed before any was run."""
    scores = {title: table_scores(measure, bank=bank) for measure, (title, *_) in MEASURES.items()}
    return average_ranks(scores)


def lab_readme():
    """The ranks of the three in one cell for each measure and band, the best in bold.

    Without the area under the curve, which peers have on one split of some sets only.
    """
    rows = []
    for measure, (title, *_) in MEASURES.items():
        if measure == "auc":
            continue
        for band, scores in table_scores(measure).groupby("rows"):
            ranks = average_ranks({title: scores})["rank"]
            shown = [f"**{r:.2f}**" if r == ranks.min() else f"{r:.2f}" for r in ranks]
            row = {"measure": title, "band": band, "ranks": ", ".join(shown), "sets": len(scores)}
            rows.append(row | {"is_best": ranks[0] == ranks.min()})
    return pd.DataFrame(rows).sort_values("band", kind="stable", ignore_index=True)


def lab_pairs(bank):
    """The table learner beside every other one: a set counts once, by the mean difference over its bands."""
    titles = BOOSTED | FURTHER
    measured = set(load(f"{bank}_clean").learner) - {"table"}
    rows = []
    for measure, (title, *_) in MEASURES.items():
        gains = {}
        tests = {}
        for peer in (peer for peer in titles if peer in measured):
            scores = table_scores(measure, ("table", peer), bank)
            gain = (scores.table - scores[peer]).groupby("set").mean().round(5)
            if len(gain):
                gains[peer] = gain
                tests[peer] = wilcoxon(gain).pvalue if gain.any() else 1.0
        for peer, p in script("lab_tables").holm(tests).items():
            gain = gains[peer]
            row = {"measure": title, "peer": titles[peer], "sets": len(gain), "gain": gain.mean()}
            row |= {"better": (gain > 0).sum(), "level": (gain == 0).sum()}
            chance = f"{p:.1g}" if p >= 0.0001 else "below 0.0001"
            rows.append(row | {"worse": (gain < 0).sum(), "p": chance})
    return pd.DataFrame(rows)


def lab_behind(bank, *measures):
    """Sets on which the table learner does not have the best score, with the best."""
    parts = []
    for measure in measures:
        scores = table_scores(measure, bank=bank)
        best = scores.idxmax(axis=1).map(BOOSTED)
        scores = scores.assign(peer=best, best=scores.max(axis=1))
        behind = scores[scores.table < scores.best].reset_index()
        sign = MEASURES[measure][-1]
        parts.append(behind.assign(table=sign * behind.table, best=sign * behind.best))
    return pd.concat(parts, ignore_index=True)


def lab_scored():
    """The splits of sets that all three learners have."""
    parts = [table_splits(measure) for measure in MEASURES]
    return pd.concat(parts).index.to_frame(index=False).drop_duplicates()


def lab_bands_splits():
    counts = lab_scored().groupby(["rows", "set"]).split.nunique().groupby("rows")
    spans = [Span(count.min(), count.max()) for _, count in counts]
    return pd.DataFrame({"rows": list(counts.groups), "splits": pd.Series(spans, dtype=object)})


# ---------------------------------------------------------------------------------------------------- similarity
def similarity(name):
    """Scores of the recipes and the automatic choice by set, without averages and given test rows."""
    rows = load(f"papers/similarity_{name}")
    rows = rows.rename(columns=lambda column: column.removeprefix("SVC ").removeprefix("SVR "))
    rows = rows[(rows["set"] != "average") & ~rows["set"].str.contains("given")]
    single = rows.drop(columns=["set", "automatic"])
    hindsight = single.max(axis=1)
    return rows.assign(
        hindsight=hindsight,
        ahead=rows.automatic - hindsight,
        behind=hindsight - rows.automatic,
        best_recipe=single.mean().max(),
    )


# ---------------------------------------------------------------------------------------------------- compare
LEARNERS = {
    "stack": "automatic stack",
    "svm-square": "SVM on the squared spectrum",
    "features": "linear model on similarities",
    "krein-svm": "Krein SVM",
    "krein-ridge": "Krein ridge",
    "svm-clip": "SVM on the clipped spectrum",
    "svm-flip": "SVM on the flipped spectrum",
    "svm-shift": "SVM on the shifted spectrum",
    "svm-raw": "SVM on the raw matrix",
    "neighbors": "nearest neighbors",
    "table": "table learner",
    "vote": "vote of the three best",
}


def compare_splits(name):
    """By split, fresh scores of the recommendation, of the best learner in hindsight, and of the highest mean."""
    rows = load("compare_fresh")
    rows = rows[rows["set"] == name]
    singles = rows[rows.learner != "vote"]
    best = singles.groupby("title").fresh.mean().idxmax()
    leaders = singles.loc[singles.groupby("split").cross_validation.idxmax()]
    splits = rows[rows.recommended].set_index("split")[["title", "fresh"]]
    return splits.assign(
        best=best,
        best_fresh=singles[singles.title == best].set_index("split").fresh,
        leader=leaders.set_index("split").fresh,
        behind=lambda t: 100 * (t.best_fresh - t.fresh),
    )


def compare_tables():
    rows = []
    for name, spec in {"yacht": ".4r", "heart": ".2p"}.items():
        splits = compare_splits(name)
        means = splits.mean(numeric_only=True)
        ours = fill(f"{{fresh:{spec}}}", means)
        if splits.title.nunique() == 1:
            ours = f"{splits.title.iloc[0]}, {ours}"
        best = f"{splits.best.iloc[0]}, " + fill(f"{{best_fresh:{spec}}}", means)
        rows.append({"set": name, "splits": len(splits), "recommended": ours, "best": best})
    return pd.DataFrame(rows)


def compare_statistics():
    """The largest errors and the smallest coverage over all sizes; in a cell those of one, three and ten repeats."""
    rows = load("papers/compare_statistics").copy()
    former = np.where(rows.rule == "former", "former rule, ", "")
    groups = [f"{n} groups" if n else "no groups" for n in rows.groups]
    signal = np.where(rows.signal > 0, ", signal", ", no signal")
    rows["kind"] = former + rows.task + ", " + groups + signal
    rows["found"] = rows.best_found_of_two.where((rows.n == 120) & (rows.signal > 0))
    worst = {"any_pair_missed": "max", "mean_two_missed": "max", "worst_two_missed": "max"}
    worst |= {"mean_own_covered": "min", "worst_own_covered": "min", "found": "max"}
    kinds = ["rule", "kind"]
    shares = rows.groupby([*kinds, "repeats"], sort=False).agg(worst)
    texts = shares.map(lambda share: fill("{share:.1p}", {"share": share}))
    return texts.groupby(kinds, sort=False).agg(lambda t: " / ".join(filter(None, t))).reset_index()


def busy(load):
    """What the benchmark itself ran beside a comparison."""
    if load == 0:
        return "nothing"
    return "one process busy" if load == 1 else f"{load:.0f} processes busy"


def largest_size(words):
    """How many learners were scored on the most rows: ``dummy:400 linear:50`` is "1 on 400 rows"."""
    sizes = [int(word.rpartition(":")[2]) for word in words.split() if ":" in word]
    if not sizes:
        return "no report"
    return f"{sizes.count(max(sizes))} on {max(sizes):,} rows"


# ---------------------------------------------------------------------------------------------------- runs
def reduced_run():
    """Claims whose reduced run is on record, with the words that reduce it."""
    rows = pd.DataFrame.from_dict(known_runs(), orient="index").rename_axis("claim").reset_index()
    words = {claim.name: f"`{claim.reduced}`" for claim in CLAIMS if claim.reduced}
    return rows.assign(
        words=rows.claim.map(words).fillna(""),
        cpu_minutes=rows.cpu_seconds / 60,
        minutes=rows.seconds / 60,
    )


def reduced_machine():
    return json_row(default_folder() / "machine.json")


def start_machine():
    return json_row(HERE / "speed" / "results" / "machine" / "start.json")


def json_row(path):
    return pd.DataFrame([json.loads(path.read_text(encoding="utf-8"))])

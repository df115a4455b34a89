"""Frames of tables and figures that need more than the means, pivots and queries of tables.py."""

import importlib
import json
import sys
from functools import cache

import numpy as np
import pandas as pd
from scipy.stats import gmean, rankdata, wilcoxon
from scipy.stats import t as student

from benchmarks.claims import CLAIMS
from benchmarks.tables import HERE, Span, fill, results, wide


@cache
def script(name):
    """A script of ``benchmarks/papers``, which knows its sets and tests."""
    folder = str(HERE / "papers")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(f"benchmarks.papers.{name}")
    finally:
        sys.path.remove(folder)


def paper(stem, *tables):
    """Rows of some tables of a paper."""
    rows = pd.read_csv(HERE / "papers" / f"{stem}_paper.csv", dtype={"table": str})
    return rows[rows.table.isin(tables)]


def one_row(**values):
    return pd.DataFrame([values])


def splits(name):
    """Number of splits by set."""
    return results(name).groupby("set").split.nunique().reset_index(name="splits")


# ---------------------------------------------------------------------------------------------------- krein
def krein_table1():
    rows = results("papers/krein_table1").sort_values("n", kind="stable")
    return rows.assign(note=np.where(rows.draws == 1, " (one draw)", ""))


def krein_table2():
    """Mean errors over folds, beside the paper's; `note` says if not all ten folds were run."""
    keys = ["set", "n", "positives", "method"]
    folds = results("papers/krein_table2").groupby(keys, sort=False)
    rows = folds.agg(
        error=("error", "mean"),
        deviation=("error", lambda errors: errors.std(ddof=0)),
        paper=("paper", "first"),
        folds=("fold", "nunique"),
    ).reset_index()
    words = rows.folds.map({10: "", 1: ", one fold"}).fillna(
        ", " + rows.folds.astype(str) + " folds"
    )
    return rows.assign(note=words)


def krein_table3():
    """Errors, and the paper's with its deviation added."""
    theirs = paper("krein", "3").rename(columns={"row": "set", "column": "kernel"})
    theirs = theirs[["set", "kernel", "deviation"]].rename(columns={"deviation": "allowed"})
    rows = results("papers/krein_table3").merge(theirs, how="left")
    return rows.assign(bound=rows.paper + rows.allowed)


def krein_above():
    rows = krein_table3().query("error > bound")
    return rows["set"].value_counts().reset_index(name="cells")


def krein_landmarks():
    rows = results("speed/krein")
    parts = rows.measure.str.extract(r", (?P<landmarks>\d+) landmarks: (?P<what>.+)").dropna()
    rows = parts.join(rows).astype({"landmarks": int}).sort_values("landmarks")
    return wide(rows, "landmarks", "what", "value")


# ---------------------------------------------------------------------------------------------------- dank
def dank_sets():
    """Mean errors by set, and DANK against the plain machine."""
    dank = script("dank")
    errors = wide(results("papers/dank_beyond"), ["set", "split"], "method", "error")
    gains = (errors.adapted - errors.plain).groupby(errors["set"])
    means = errors.groupby("set")[["plain", "adapted", "scaled plain", "hyper"]].mean()
    return means.assign(
        ratio=error_ratio(means, "adapted", "plain"),
        wins=gains.agg(lambda gain: (gain < 0).sum()),
        losses=gains.agg(lambda gain: (gain > 0).sum()),
        p=gains.agg(lambda gain: dank.corrected_t(gain.to_numpy())),
        is_classification=means.index.isin(dank.ALL_CLASSIFICATION),
        is_regression=means.index.isin(dank.ALL_REGRESSION),
        is_fresh=~means.index.isin(dank.SEEN + dank.TRIED),
    ).reset_index()


def error_ratio(means, method, other):
    """Errors below 0.001 are taken as that."""
    return means[method].clip(lower=1e-3) / means[other].clip(lower=1e-3)


def dank_overall():
    sets = dank_sets()
    fresh = sets[sets.is_fresh]
    return one_row(
        ratio=gmean(sets.ratio),
        adaptation=1 - gmean(error_ratio(sets, "adapted", "scaled plain")),
        fresh_p=wilcoxon(np.log(fresh.ratio)).pvalue,
    )


def dank_summary():
    sets = dank_sets()
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
    for words, pair in pairs.items():
        for group, part in groups.items():
            ratio = error_ratio(part, *pair)
            p = wilcoxon(np.log(ratio)).pvalue
            row = {"pair": words, "group": group, "ratio": gmean(ratio)}
            row |= {"better": (ratio < 1).sum(), "worse": (ratio > 1).sum()}
            rows.append(row | {"p": f"{p:.2f}" if p >= 0.01 else f"{p:.1g}"})
    return pd.DataFrame(rows)


def dank_beside_paper(name, value, *tables):
    """Means by set and method, and the paper's values as methods of their own."""
    ours = results(name).groupby(["set", "method"])[value].mean().reset_index(name="value")
    theirs = paper("dank", *tables).rename(columns={"row": "set"})
    theirs["method"] = "paper: " + theirs.column
    return pd.concat([ours, theirs[theirs["set"].isin(ours["set"])]], ignore_index=True)


def dank_table1_splits():
    """Sets by their number of splits; the monks sets come with one."""
    sets = splits("papers/dank_table1").query("not set.str.startswith('monks')")
    rows = sets.groupby("splits")["set"].agg(" and ".join).reset_index()
    return rows.sort_values("splits", ascending=False)


def dank_table5():
    """Accuracies and ranks by penalty, ours and the paper's."""
    ours = results("papers/dank_table5").groupby(["rank_penalty", "set"]).mean().reset_index()
    ours = ours.rename(columns={"accuracy_f0": "accuracy"})
    ours["penalty"] = [f"{penalty:g}" for penalty in ours.rank_penalty]
    theirs = wide(paper("dank", "5", "5-rank"), ["row", "column"], "table", "value")
    theirs = theirs.rename(columns={"row": "set", "5": "accuracy", "5-rank": "rank"})
    theirs["penalty"] = "paper: " + theirs.column
    return pd.concat([ours, theirs[theirs["set"].isin(ours["set"])]], ignore_index=True)


def dank_speed():
    moons = results("speed/dank_moons").set_index("method")
    low, none = moons.loc["rank_penalty=0.01"], moons.loc["rank_penalty=0"]
    large = results("speed/dank_ijcnn1").set_index("method").loc["rank_penalty=0.01"]
    ratios = f"{low.ratio:.1f} (`rank_penalty=0.01`), {none.ratio:.1f} (0)"
    small = {"data": "moons, 2000 rows", "ratio": ratios, "steps": low.outer_steps, "paper": ""}
    large = {
        "data": "ijcnn1, 49,990 rows",
        "ratio": f"{large.ratio:.2f}",
        "steps": large.outer_steps,
        "paper": "255 (exact), 5.1 (50 parts)",
    }
    return pd.DataFrame([small, large])


def dank_drawn():
    """One row: what the figures of the paper show here."""
    values = results("papers/dank_figures").set_index("quantity").value
    screened = values[[f"{s}: screened non-support vectors" for s in ("ijcnn1", "covtype")]].sum()
    gaps = {
        width: abs(values[f"{width}: svm"] - values[f"{width}: f0"])
        for width in ("tuned sigma", "four times the tuned sigma")
    }
    names = {
        f"{what} {m}": values[f"{what}: {m}"] for what in ("step", "surface") for m in ("svr", "f0")
    }
    return one_row(**gaps, **names, screened=f"{screened:.0f}" if screened else "none of the")


# ---------------------------------------------------------------------------------------------------- hyper
def hyper_table1():
    """With a note where there are fewer splits, and without errors of known kernels."""
    rows = results("papers/hyper_table1")
    theirs = paper("hyper", "1-gaussian-unlabeled", "1-log-unlabeled")
    theirs["kernel"] = theirs.table.str.split("-").str[1]
    theirs = theirs.rename(columns={"row": "method", "column": "data", "value": "paper_unlabeled"})
    theirs = theirs.drop(columns="table")
    rows = rows.merge(theirs, how="left", on=["kernel", "data", "method"])
    names = ["gaussian", "log", *script("hyper").ALL, "majority", *rows.method.unique()]
    rows = rows.sort_values(
        ["kernel", "data", "method"], key=lambda column: column.map(names.index)
    )
    words = " (" + rows.splits.astype(str) + np.where(rows.splits > 1, " splits)", " split)")
    return rows.assign(
        note=words.where(rows.splits < rows.splits.max(), ""),
        root_error=rows.root_error.where(~rows.method.isin(["known", "majority"])),
        relative_square=rows.relative_error**2,
    )


def hyper_table2():
    rows = results("papers/hyper_table2").sort_values("data", kind="stable")
    once = rows.groupby("data").splits.transform("max") == 1
    return rows.assign(note=np.where(once, " (one split)", ""))


def hyper_regression():
    values = ["train_rows", "r2", "learned_chosen", "splits", "cpu_seconds"]
    rows = wide(results("papers/hyper_regression"), "data", "method", values)
    rivals = rows[["r2 SVR, tuned", "r2 kernel ridge, tuned"]].max(axis=1)
    return rows.assign(
        behind=rivals - rows["r2 HyperRegressor"],
        times=rows["cpu_seconds HyperRegressor"] / rows["cpu_seconds SVR, tuned"],
    )


# ---------------------------------------------------------------------------------------------------- scale
def scale_covtype():
    rows = results("speed/scale_covtype").query("rows == 464810").reset_index(drop=True)
    seconds = rows["fit CPU seconds"]
    boosting = seconds[rows.learner == "gradient boosting, 1000 trees"].item()
    texts = pd.Series([fill("{fit CPU seconds:.0f} s", row) for row in rows.to_dict("records")])
    return rows.assign(
        fit=rows.failed.fillna(texts),
        peak=rows["peak GB"].where(rows.failed.isna()),
        share_of_boosting=seconds / boosting,
    )


def scale_growth():
    """Seconds and memory by learner and number of rows, and what more rows cost."""
    rows = wide(results("speed/scale_growth"), "learner", "rows", ["fit CPU seconds", "peak GB"])
    small, large, most = (rows[f"fit CPU seconds {n}"] for n in (10**4, 10**5, 10**6))
    memory = rows["peak GB 1000000"] - rows["peak GB 100000"]
    bytes_per_row = 1e9 * memory / 9e5
    return rows.assign(
        exponent=np.log10(most / small) / 2,
        seconds_per_million=(most - large) / 0.9,
        bytes_per_row=bytes_per_row,
        beyond_data=bytes_per_row - 32,
        estimator=rows.learner.str.split(",").str[0],
    )


def scale_dask():
    rows = results("speed/scale_dask").query("keeps == 1")
    ratios = results("speed/scale_speedups").query("keeps == 1")
    return wide(rows, "work", "workers", ["fit seconds"]).merge(ratios)


def scale_memory():
    rows = results("speed/scale_memory")
    compressed = np.where(rows.learner.str.contains("Krein"), "m", "P")
    return rows.assign(unit=np.where(rows["size"] == rows.rows, "n", compressed))


def scale_billion():
    """The measured cost of a million more rows, and a thousand times that, calculated."""
    slope = scale_growth().set_index("learner").seconds_per_million
    covtype = results("speed/scale_covtype").set_index("learner")["fit CPU seconds"]
    per_million = {
        "`KreinRidge`, 200 landmarks, d = 8": slope["KreinRidge, 200 landmarks"],
        "`KreinRidgeClassifier`, 1000 landmarks, d = 54": (
            covtype["Krein-Nystroem, Gaussian, 1000 landmarks"] / 0.46481
        ),
        "`HyperRidge`, parts of 500 rows, 200 landmarks, d = 8": slope[
            "HyperRidge, parts of 500 rows"
        ],
        "`LABRegressor`, 50 support points, d = 8": slope["LABRegressor, 50 support points"],
    }
    rows = []
    for name, seconds in per_million.items():
        hours = 1000 * seconds / 3600
        minutes = 60 * hours
        if hours >= 1:
            one = f"{hours:.1f} h" if hours < 10 else f"{hours:.0f} h"
            many = f"{minutes / 100:.1f} min" if minutes < 1000 else f"{minutes / 100:.0f} min"
        else:
            one = f"{minutes:.0f} min"
            many = f"{60 * minutes / 100:.0f} s for the pass alone"
        measured = f"{seconds:.3g}" if seconds >= 1 else f"{seconds:.2g}"
        rows.append({"fit": name, "measured": measured, "one": one, "many": many})
    return pd.DataFrame(rows)


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
    rows = results("papers/lab_compare")
    common = rows.pivot(index=["set", "split"], columns="learner", values=column).dropna()
    return common.groupby("set").mean().reset_index()


def lab_compare():
    means = lab_means().set_index("set").round(4)
    large = results("papers/lab_compare").groupby("set").n_train.max().loc[means.index] > 1000
    return average_ranks(
        {"all": means, "above 1000 rows": means[large], "up to 1000 rows": means[~large]}
    )


def lab_tests():
    """P-values of ranks against every peer after Holm's correction, and the largest but that of Laplace ridge."""
    means = lab_means().set_index("set").round(4)
    ranks = pd.DataFrame(rankdata(-means.to_numpy(), axis=1), means.index, means.columns)
    gaps = ranks.drop(columns="table").sub(ranks.table, axis=0)
    statistics = gaps.mean() / gaps.sem()
    p_values = dict(zip(gaps, 2 * student.sf(statistics.abs(), len(gaps) - 1)))
    p_values = script("lab_tables").holm(p_values)
    others = max(p for peer, p in p_values.items() if peer != "ridge_laplace")
    return one_row(**p_values, others=others)


def lab_paper():
    """Tables 1 and 2 of the paper."""
    rows = pd.concat(
        [results("papers/lab_table1"), results("papers/lab_table2")], ignore_index=True
    )
    seconds = [f"{s:.1f}" if s < 10 else f"{s:.0f}" for s in rows.cpu_seconds]
    return rows.assign(seconds=seconds)


def lab_growth():
    """Tables 5 and 6: initial supports, without and with growth."""
    before, after = results("papers/lab_table5"), results("papers/lab_table6")
    parts = [before.assign(growth=""), after.assign(growth="with growth: ")]
    return pd.concat(parts, ignore_index=True)


BOOSTED = {"table": "table learner", "lightgbm": "LightGBM", "catboost": "CatBoost"}
FURTHER = {
    "xgboost": "XGBoost",
    "extra_trees": "extremely random trees",
    "svm": "support vector machine",
    "mlp": "network",
    "laplace_ridge": "ridge, Laplace",
    "xrfm": "xrfm",
    "lab_local": "local forms alone",
}
MEASURES = {  # title, task, column, sign
    "r2": ("regression, R2", "regression", "score", 1),
    "accuracy": ("classification, accuracy", "classes", "score", 1),
    "log_loss": ("classification, log-loss", "classes", "log_loss", -1),
}


def clean(name):
    return results(f"papers/{name}").query("variant == 'clean'")


def table_splits(name, measure, learners=tuple(BOOSTED)):
    """Scores by number of rows, set and split that all these learners have; the largest is the best."""
    _, task, values, sign = MEASURES[measure]
    rows = clean(name)
    rows = rows[rows.task == task]
    scores = rows.pivot_table(index=["rows", "set", "split"], columns="learner", values=values)
    return sign * scores.reindex(columns=list(learners)).dropna()


def table_scores(name, measure, learners=tuple(BOOSTED)):
    """The same, averaged over splits."""
    return table_splits(name, measure, learners).groupby(["rows", "set"]).mean().round(4)


def confirmed(scores):
    """The scores of sets on which nothing was chosen."""
    return scores[scores.index.get_level_values("set").isin(script("lab_tables").CONFIRMATION)]


def lab_tables():
    parts = {}
    for measure, (title, *_) in MEASURES.items():
        parts[title] = table_scores("lab_tables", measure)
        parts[f"{title}, the confirmation half"] = confirmed(parts[title])
    return average_ranks(parts)


def lab_bands():
    parts = {}
    for measure, (title, *_) in MEASURES.items():
        scores = table_scores("lab_bands", measure)
        for band, part in scores.groupby("rows"):
            parts[f"{title}, at most {band:,} rows"] = part
        parts[f"{title}, all bands"] = scores
        parts[f"{title}, all bands, the confirmation half"] = confirmed(scores)
    return average_ranks(parts)


def lab_readme():
    """The ranks of the three in one cell for each measure and band, the best in bold."""
    rows = []
    for measure, (title, *_) in MEASURES.items():
        for band, scores in table_scores("lab_bands", measure).groupby("rows"):
            ranks = average_ranks({title: scores})["rank"]
            shown = [f"**{r:.2f}**" if r == ranks.min() else f"{r:.2f}" for r in ranks]
            row = {"measure": title, "band": band, "ranks": ", ".join(shown), "sets": len(scores)}
            rows.append(row | {"is_best": ranks[0] == ranks.min()})
    return pd.DataFrame(rows).sort_values("band", kind="stable", ignore_index=True)


def lab_pairs():
    """The table learner beside every learner of the bands: a set counts once, by the mean difference over its bands."""
    titles = BOOSTED | FURTHER
    peers = [
        peer for peer in titles if peer in set(results("papers/lab_bands").learner) - {"table"}
    ]
    rows = []
    for measure, (title, *_) in MEASURES.items():
        gains = {}
        for peer in peers:
            scores = table_scores("lab_bands", measure, ("table", peer))
            gains[peer] = (scores.table - scores[peer]).groupby("set").mean().round(5)
        tests = {
            peer: wilcoxon(gain).pvalue if gain.any() else 1.0
            for peer, gain in gains.items()
            if len(gain)
        }
        for peer, p in script("lab_tables").holm(tests).items():
            gain = gains[peer]
            row = {"measure": title, "peer": titles[peer], "sets": len(gain), "gain": gain.mean()}
            row |= {"better": (gain > 0).sum(), "level": (gain == 0).sum()}
            chance = f"{p:.1g}" if p >= 0.0001 else "below 0.0001"
            rows.append(row | {"worse": (gain < 0).sum(), "p": chance})
    return pd.DataFrame(rows)


def lab_behind(name, *measures):
    """Where the table learner does not have the best score, with the best."""
    parts = []
    for measure in measures:
        scores = table_scores(name, measure)
        best = scores.idxmax(axis=1).map(BOOSTED)
        scores = scores.assign(peer=best, best=scores.max(axis=1))
        behind = scores[scores.table < scores.best].reset_index()
        sign = MEASURES[measure][-1]
        parts.append(behind.assign(table=sign * behind.table, best=sign * behind.best))
    return pd.concat(parts, ignore_index=True)


def lab_scored(name):
    """The splits of sets that all three learners have."""
    parts = [table_splits(name, measure) for measure in MEASURES]
    return pd.concat(parts).index.to_frame(index=False).drop_duplicates()


def lab_bands_splits():
    counts = lab_scored("lab_bands").groupby(["rows", "set"]).split.nunique().groupby("rows")
    spans = [Span(count.min(), count.max()) for _, count in counts]
    return pd.DataFrame({"rows": list(counts.groups), "splits": pd.Series(spans, dtype=object)})


def lab_bands_seconds():
    """Processor seconds of fits and predictions by band, summed over what all three have."""
    columns = ["cpu_seconds", "predict_seconds"]
    rows = clean("lab_bands").pivot_table(
        index=["rows", "set", "split"], columns="learner", values=columns
    )
    rows = rows[[(column, learner) for column in columns for learner in BOOSTED]].dropna()
    bands = rows.groupby("rows")
    sums = bands.sum()
    sums.columns = [" ".join(name) for name in sums.columns]
    sums = sums.assign(
        fits=bands.size(), times=sums["cpu_seconds table"] / sums["cpu_seconds lightgbm"]
    ).reset_index()
    return sums.assign(at_most=np.where(sums.index == 0, "at most ", ""))


def lab_bands_prediction():
    rows = clean("lab_bands").pivot_table(
        index=["rows", "set"], columns="learner", values="predict_seconds"
    )
    return rows.assign(times=rows.table / rows.lightgbm)


def lab_tables_seconds():
    """One row: sums over all fits."""
    sums = clean("lab_tables").groupby("learner")[["cpu_seconds", "predict_seconds"]].sum()
    return one_row(**{f"{column} {learner}": v for (learner, column), v in sums.stack().items()})


def lab_variants():
    """Two learners by set and variant, in the splits that both have; outliers are moved targets, so of numbers."""
    rows = results("papers/lab_variants").query("variant != 'outliers' or task == 'regression'")
    keys = ["task", "set", "variant"]
    scores = rows.pivot_table(index=[*keys, "split"], columns="learner", values="score")
    variants = scores[["table", "lightgbm"]].dropna().groupby(keys)
    means = variants.mean().assign(splits=variants.size()).reset_index()
    means["gain"] = means.table - means.lightgbm
    clean_gain = means[means.variant == "clean"].set_index("set").gain
    return means.assign(
        clean_gain=means["set"].map(clean_gain), varied=len(script("lab_tables").VARIED)
    )


# ---------------------------------------------------------------------------------------------------- similarity
def similarity(name):
    """Scores of the recipes and the automatic choice by set, without averages and given test rows."""
    rows = results(f"papers/similarity_{name}")
    rows.columns = rows.columns.str.replace("SV[CR] ", "", regex=True)
    rows = rows[(rows["set"] != "average") & ~rows["set"].str.contains("given")]
    single = rows.drop(columns=["set", "automatic"])
    hindsight = single.max(axis=1)
    return rows.assign(
        hindsight=hindsight,
        ahead=rows.automatic - hindsight,
        behind=hindsight - rows.automatic,
        best_recipe=single.mean().max(),
    )


def similarity_real():
    """A row for each set and recipe, and the averages over sets."""
    rows = similarity("real")
    mean = rows.mean(numeric_only=True).to_frame().T.assign(set="average")
    rows = pd.concat([rows, mean], ignore_index=True)
    return rows.melt("set", var_name="recipe", value_name="score")


def similarity_regression():
    rows = similarity("regression")
    means = rows.mean(numeric_only=True).rename("score").rename_axis("recipe").reset_index()
    return means.assign(sets=len(rows))


def similarity_bank():
    rows = results("papers/similarity_bank")
    best = rows.loc[rows.groupby("set").log_loss.idxmin()].learner
    rows["rank"] = rows.groupby("set").accuracy.rank(ascending=False)
    means = rows.groupby("learner").mean(numeric_only=True)
    means["lowest"] = [(best == learner).sum() for learner in means.index]
    return means.sort_values("accuracy", ascending=False).reset_index()


def bank_gaps():
    """How far the automatic choice is behind the best other learner."""
    rows = results("papers/similarity_bank")
    accuracy = rows.pivot(index="set", columns="learner", values="accuracy")
    gap = accuracy.drop(columns="automatic").max(axis=1) - accuracy.automatic
    direction = "lower" if gap.mean() > 0 else "higher"
    return one_row(sets=len(gap), mean=abs(gap.mean()), direction=direction, worst=gap.max())


def similarity_several():
    rows = results("papers/similarity_several")
    rows = rows.melt(["group", "which"], var_name="way", value_name="score")
    return rows.assign(which=rows.which.where(rows.way == "best single"))


def directed():
    """Accuracies by set and learner, and two lines of means."""
    rows = results("papers/directed")
    means = rows.groupby("learner")[["accuracy", "log_loss"]].mean().reset_index()
    shown = pd.concat([rows, means.assign(set="mean")], ignore_index=True)
    shown["text"] = [fill("{accuracy:.1f}", row) for row in shown.to_dict("records")]
    losses = means.assign(set="mean log-loss", text=[f"{loss:.3f}" for loss in means.log_loss])
    return pd.concat([shown, losses], ignore_index=True)


# ---------------------------------------------------------------------------------------------------- see
def see_coverage(items):
    """Coverage after so many training items."""
    rows = (
        results("papers/see_coverage").query(f"items == {items}").sort_values("set", kind="stable")
    )
    new = (rows.tested // rows.repeats).groupby(rows["set"]).transform("first")
    return rows.assign(new=new, binomial=np.sqrt(0.09 / new))


def see_stated():
    """Coverage of all learners but the table learner."""
    return results("papers/see_coverage").query("model != 'table'")


def see_off(items):
    """Points between the stated and the mean coverage, of sets with many repeats."""
    rows = see_coverage(items).query("repeats >= 40")
    off = 100 * (rows.groupby("set").covered.mean() - 0.9)
    return pd.DataFrame({"off": off, "within": off.abs() <= 2})


def see_suspects():
    """A row for each set, method and measure."""
    words = {"recall": "found", "precision": "of the found", "false_alarms": "false alarms"}
    rows = results("papers/see_suspects").melt(["set", "method"], list(words), "measure", "share")
    method = rows.method.replace("suspects_", "`suspects_`")
    return rows.assign(column=rows.measure.map(words) + ": " + method)


def see_deviation():
    rows = results("papers/see_deviation")
    means = rows.groupby("method")[["log_density", "covered"]].mean().reset_index()
    return pd.concat([rows, means.assign(set="mean")], ignore_index=True)


def see_density():
    """The table learner's log-density against a Gaussian process and against one deviation for all items."""
    rows = wide(results("papers/see_deviation"), "set", "method", "log_density")
    ours = rows["TableRegressor"]
    better = ours > rows["Gaussian process"]
    return rows.assign(better=better, gain=ours - rows["TableRegressor, one deviation"])


def see_widths():
    rows = wide(results("papers/see_width"), "set", "method", "width")
    return rows.assign(narrower=rows["TableRegressor.predict_interval"] < rows["Gaussian process"])


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
    "lab": "LAB",
    "vote": "vote of the three best",
}


def compare(name):
    """Scores of a set by cross-validation and on fresh items."""
    rows = results("papers/compare_fresh")
    rows = rows[(rows["set"] == name) & (rows.learner != "dummy")]
    recommended = rows.recommended.astype(str) == "True"
    note = np.where(recommended, " (recommended)", "")
    title = rows.learner.replace(LEARNERS)
    return rows.assign(recommended=recommended, note=note, title=title)


def compare_amp():
    return compare("amp_edit").sort_values("fresh", ascending=False)


def compare_splits(name):
    """By split, fresh scores of the recommendation, of the best learner in hindsight, and of the highest mean."""
    rows = compare(name)
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
    rows = results("papers/compare_statistics")
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


def _busy(load):
    """What the benchmark itself ran beside a comparison."""
    if load == 0:
        return "nothing"
    return "one process busy" if load == 1 else f"{load:.0f} processes busy"


def compare_regret():
    """Regret by budget, over the sets."""
    rows = results("papers/compare_regret")
    rows["decided"] = rows.decided.astype(str) == "True"
    summaries = []
    for budget, of_budget in rows.groupby("budget"):
        summaries.append(
            {
                "budget": budget,
                "sets": len(of_budget),
                "regret": of_budget.regret.mean(),
                "error": of_budget.standard_error.mean(),
                "largest": of_budget.regret.max(),
                "of": of_budget.set[of_budget.regret.idxmax()],
                "behind": int((of_budget.regret > 2 * of_budget.standard_error).sum()),
                "decided": int(of_budget.decided.sum()),
                "load": of_budget["load average before"].mean(),
            }
        )
    return pd.DataFrame(summaries)


def compare_regret_sets():
    """Every set at the longest budget that all have."""
    rows = results("papers/compare_regret")
    return rows[rows.budget == 60.0].sort_values("regret", ascending=False)


def compare_budgets():
    rows = results("speed/budget")
    whole = []
    for words in rows.rows.fillna(""):  # dummy:400 linear:50 neighbors:50
        sizes = [int(word.rpartition(":")[2]) for word in words.split() if ":" in word]
        largest = max(sizes, default=0)
        whole.append(f"{sizes.count(largest)} on {largest:,} rows" if sizes else "no report")
    beside = [_busy(load) for load in rows.load]
    return rows.assign(beside=beside, whole=whole, learners=rows.learners.fillna("none"))


# ---------------------------------------------------------------------------------------------------- runs
def reduced_run():
    """Claims whose reduced run is on record, with the words that reduce it."""
    rows = pd.read_csv(HERE / "reduced.csv", dtype={"commit": str})
    words = {claim.name: f"`{claim.reduced}`" for claim in CLAIMS if claim.reduced}
    return rows.assign(
        words=rows.claim.map(words).fillna(""),
        cpu_minutes=rows.cpu_seconds / 60,
        minutes=rows.seconds / 60,
    )


def start_machine():
    path = HERE / "speed" / "results" / "machine" / "start.json"
    return one_row(**json.loads(path.read_text(encoding="utf-8")))

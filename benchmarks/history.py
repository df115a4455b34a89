"""Ratios of the speed benchmarks over commits, one csv file each, so that a slower commit is seen."""

from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.machine import commit, processor
from benchmarks.tables import HERE, results

FOLDER = HERE / "speed" / "history"
COLUMNS = ["date", "commit", "processor", "what", "ratio", "better"]


class Ratio(NamedTuple):
    """Ratios to remember, never seconds: those depend on the machine."""

    script: str
    file: str
    keys: list[str]  # the columns that name a row
    value: str  # a column, or an expression in columns
    better: str  # more or less


RATIOS = (
    Ratio("kernels", "kernels", ["what"], "sklearn / ours", "more"),
    Ratio("kernels", "kernels", ["what"], "numpy / ours", "more"),
    Ratio("kernels", "kernels", ["what"], "ours / limit", "less"),
    Ratio("items", "items", ["what", "setting"], "value", "less"),
    Ratio("krein", "krein", ["measure"], "value", "less"),
    Ratio("hyper", "hyper", ["what"], "ratio", "more"),
    Ratio("dank", "dank_moons", ["set", "method"], "ratio", "less"),
    Ratio("dank", "dank_ijcnn1", ["set", "method"], "ratio", "less"),
    Ratio("lab", "lab", ["what", "n"], "ratio", "more"),
    Ratio("similarity", "similarity", ["learner", "n"], "ratio_to_automatic", "more"),
    Ratio("similarity", "similarity_search", ["n", "search"], "ratio_of_automatic", "less"),
    Ratio("scale", "scale_speedups", ["work", "keeps"], "two workers against one", "more"),
    Ratio("scale", "scale_exponents", ["learner", "from rows", "to rows"], "exponent", "less"),
    Ratio("threads", "threads", ["learner", "n"], "ratio", "less"),
    Ratio("similarity_few", "similarity_few", ["items"], "exponent", "less"),
    Ratio("similarity_hits", "similarity_hits", ["items"], "exponent", "less"),
    Ratio("budget", "budget", ["data", "budget", "load"], "seconds / budget", "less"),
    Ratio("start", "start", ["step"], "seconds / 300", "less"),  # of a newcomer's five minutes
)
SCRIPTS = tuple(dict.fromkeys(ratio.script for ratio in RATIOS))
# rows of the same files that hold seconds, memory, errors, or what we are compared with
OTHERS = "landmarks:|GridSearchCV|million rows|pullback /|plain machine|peak memory|automatic,"


def ratios(script):
    """The present ratios of one benchmark: what, ratio and which way is better."""
    parts = []
    for _, file, keys, value, better in (ratio for ratio in RATIOS if ratio.script == script):
        if not (HERE / "speed" / "results" / f"{file}.csv").exists():
            continue
        rows = results(f"speed/{file}")
        names = rows[keys].astype(str).agg(", ".join, axis=1)
        values = rows[value] if value in rows else rows.eval(value)
        part = pd.DataFrame({"what": names + f": {value}", "ratio": values, "better": better})
        parts.append(part[~names.str.contains(OTHERS)].dropna())
    return pd.concat(parts, ignore_index=True)


def read(script):
    path = FOLDER / f"{script}.csv"
    return (
        pd.read_csv(path, dtype={"commit": str}) if path.exists() else pd.DataFrame(columns=COLUMNS)
    )


def append(script):
    """Add the present ratios, in place of those of the same commit and machine; returns the history."""
    today = datetime.now(UTC).date().isoformat()
    new = ratios(script).assign(date=today, commit=commit(), processor=processor())[COLUMNS]
    old = read(script)
    key = ["commit", "processor", "what"]
    history = new if old.empty else pd.concat([old, new]).drop_duplicates(key, keep="last")
    FOLDER.mkdir(parents=True, exist_ok=True)
    history.to_csv(FOLDER / f"{script}.csv", index=False, float_format="%.4g")
    return history


def slower(history, factor=1.25):
    """A sentence for every commit with a ratio worse by the factor than the median before it on the same machine."""
    sentences = []
    for (_, what), rows in history.groupby(["processor", "what"], sort=False):
        values = rows.ratio.to_numpy(dtype=float)
        losses = 1 / values if rows.better.iloc[0] == "more" else values
        for k in range(1, len(values)):
            before = np.median(losses[:k])
            if losses[k] > factor * before:
                sentences.append(
                    f"{what}: {values[k]:.3g} at {rows.commit.iloc[k]}, {np.median(values[:k]):.3g} before "
                    f"({rows.commit.iloc[k - 1]}): slower by {100 * (losses[k] / before - 1):.0f} %"
                )
    return sentences

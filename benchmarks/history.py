"""Ratios of the speed benchmarks over commits, one csv file each, so that a slower commit is seen."""

from datetime import UTC, datetime

import numpy as np
import pandas as pd

from benchmarks.machine import commit, processor
from benchmarks.tables import HERE, results

FOLDER = HERE / "speed" / "history"
COLUMNS = ["date", "commit", "processor", "what", "ratio", "better"]


# which column of which file is a ratio to remember, never seconds: those depend on the machine. `keys` name a row,
# `value` is a column or an expression in columns, and `better` is more or less
RATIOS = pd.read_csv(HERE / "ratios.csv")
SCRIPTS = tuple(RATIOS.script.unique())
# rows of the same files that hold seconds, memory, errors, or what we are compared with
OTHERS = "landmarks:|GridSearchCV|million rows|pullback /|plain machine|peak memory|automatic,"


def ratios(script):
    """The present ratios of one benchmark: what, ratio and which way is better."""
    parts = []
    for ratio in RATIOS[RATIOS.script == script].itertuples():
        if not (HERE / "speed" / "results" / f"{ratio.file}.csv").exists():
            continue
        rows = results(f"speed/{ratio.file}")
        names = rows[ratio.keys.split(", ")].astype(str).agg(", ".join, axis=1)
        values = rows[ratio.value] if ratio.value in rows else rows.eval(ratio.value)
        what = names + f": {ratio.value}"
        part = pd.DataFrame({"what": what, "ratio": values, "better": ratio.better})
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

"""Ratios of the speed benchmarks over commits, one file each, so that a slower commit is seen."""

from datetime import UTC, datetime

import numpy as np
import pandas as pd

from benchmarks.machine import commit, processor
from benchmarks.tables import HERE, results

FOLDER = HERE / "speed" / "history"
# rows, columns that name a row, ratio (a column, or an expression in columns), and whether more or less of it is
# better; no seconds, they are no ratios
RATIOS = {
    "kernels": [
        ("kernels", ["what"], "sklearn / ours", "more"),
        ("kernels", ["what"], "numpy / ours", "more"),
        ("kernels", ["what"], "ours / limit", "less"),
    ],
    "items": [("items", ["what", "setting"], "value", "less")],
    "krein": [("krein", ["measure"], "value", "less")],
    "hyper": [("hyper", ["what"], "ratio", "more")],
    "dank": [
        ("dank_moons", ["set", "method"], "ratio", "less"),
        ("dank_ijcnn1", ["set", "method"], "ratio", "less"),
    ],
    "lab": [("lab", ["what", "n"], "ratio", "more")],
    "similarity": [
        ("similarity", ["learner", "n"], "ratio_to_automatic", "more"),
        ("similarity_search", ["n", "search"], "ratio_of_automatic", "less"),
    ],
    "scale": [
        ("scale_speedups", ["work", "keeps"], "two workers against one", "more"),
        ("scale_exponents", ["learner", "from rows", "to rows"], "exponent", "less"),
    ],
    "threads": [("threads", ["learner", "n"], "ratio", "less")],
    "similarity_few": [("similarity_few", ["items"], "exponent", "less")],
    "budget": [("budget", ["data", "budget", "load"], "seconds / budget", "less")],
    # of the five minutes that a newcomer gives it
    "start": [("start", ["step"], "seconds / 300", "less")],
}


OTHERS = (
    "landmarks:",
    "GridSearchCV",
    "million rows",
    "pullback /",
    "plain machine",
    "peak memory",
    "automatic,",
)


def is_ratio(name):
    """Not seconds, memory, errors, or what we are compared with."""
    return not any(word in name for word in OTHERS)


def ratios(script):
    """The present ratios of one benchmark: what, value and which way is better."""
    found = []
    for file, names, column, better in RATIOS.get(script, ()):
        if not (HERE / "speed" / "results" / f"{file}.csv").exists():
            continue
        table = results(f"speed/{file}")
        for (_, row), ratio in zip(
            table.iterrows(), table[column] if column in table else table.eval(column)
        ):
            name = ", ".join(str(row[key]) for key in names)
            if pd.notna(ratio) and is_ratio(name):
                found.append((f"{name}: {column}", float(ratio), better))
    return found


def read(script):
    path = FOLDER / f"{script}.csv"
    columns = ["date", "commit", "processor", "what", "ratio", "better"]
    return (
        pd.read_csv(path, dtype={"commit": str}) if path.exists() else pd.DataFrame(columns=columns)
    )


def append(script):
    """Add the present ratios, in place of those of the same commit and machine; returns the history."""
    now = {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "processor": processor(),
    }
    new = pd.DataFrame(
        [now | dict(zip(("what", "ratio", "better"), row)) for row in ratios(script)]
    )
    old = read(script)
    if new.empty:
        return old
    old = old[
        (old.commit != now["commit"])
        | (old.processor != now["processor"])
        | ~old.what.isin(new.what)
    ]
    history = new if old.empty else pd.concat([old, new])
    FOLDER.mkdir(parents=True, exist_ok=True)
    history.to_csv(FOLDER / f"{script}.csv", index=False, float_format="%.4g")
    return history


def slower(history, factor=1.25):
    """A sentence for every commit with a ratio worse by the factor than the median before it on the same machine."""
    sentences = []
    for (_, what), rows in history.groupby(["processor", "what"], sort=False):
        values = rows.ratio.to_numpy(dtype=float)
        loss = 1 / values if rows.better.iloc[0] == "more" else values
        for k in range(1, len(values)):
            before = np.median(loss[:k])
            if loss[k] > factor * before:
                earlier = np.median(values[:k])
                sentences.append(
                    f"{what}: {values[k]:.3g} at {rows.commit.iloc[k]}, {earlier:.3g} before "
                    f"({rows.commit.iloc[k - 1]}): slower by {100 * (loss[k] / before - 1):.0f} %"
                )
    return sentences

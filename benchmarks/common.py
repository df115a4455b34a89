"""What all benchmarks share: processor time, and one form of results.

A benchmark is a module with one function per table and a `main` that runs the named ones:

    python -m benchmarks.papers.krein table1 table2

Every table is one file, `benchmarks/results/<name>.csv`, as it is shown on a page: columns with names for readers,
rounded numbers, the paper's number in a column of its own. The last column is the commit that the row was run with.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pandas as pd

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"


def commit() -> str:
    """The last commit of the source, with ``-changed`` if files of it differ."""
    git = ["git", "-C", str(HERE)]
    last = subprocess.run(
        [*git, "log", "-1", "--format=%h", "--", ":/src"], capture_output=True, text=True
    )
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", ":/src"]).returncode != 0
    return last.stdout.strip() + ("-changed" if changed else "")


def write(name: str, rows: Iterable[Mapping]) -> pd.DataFrame:
    """Write the rows of a table to ``results/<name>.csv``, with the commit, and print them.

    Rows that were measured earlier keep the commit they name.
    """
    now = commit()
    table = pd.DataFrame([row | {"commit": row.get("commit", now)} for row in map(dict, rows)])
    table["commit"] = table.pop("commit")  # the last column
    RESULTS.mkdir(exist_ok=True)
    table.to_csv(RESULTS / f"{name}.csv", index=False)
    print(f"{name}\n{table.drop(columns='commit').to_string(index=False)}\n", flush=True)
    return table


def read(name: str) -> pd.DataFrame:
    """The rows of a table that was written before."""
    return pd.read_csv(RESULTS / f"{name}.csv")


def seconds(call: Callable[[], object]) -> float:
    """Processor seconds of one call, those of its threads included."""
    start = time.process_time()
    call()
    return time.process_time() - start


def race(calls: Mapping[str, Callable[[], object]], repeats: int = 5) -> dict[str, float]:
    """The least processor seconds of each call; they take turns, so that other work on the machine cancels."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            best[name] = min(best[name], seconds(call))
    return best


def main(tables: Mapping[str, Callable[[], object]], words: list[str] | None = None) -> None:
    """Run the tables that the command line names, or all of them."""
    chosen = (sys.argv[1:] if words is None else words) or list(tables)
    unknown = [name for name in chosen if name not in tables]
    if unknown:
        sys.exit(f"there is no table {unknown[0]!r}; choose from {', '.join(tables)}")
    for name in chosen:
        tables[name]()

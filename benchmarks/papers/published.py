"""The numbers that the papers print, and cells with ours beside them."""

from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent


def published(paper: str, table: str) -> dict[tuple[str, str], float]:
    """Numbers of one table, by row and column."""
    rows = pd.read_csv(HERE / f"{paper}_paper.csv", dtype={"table": str})
    rows = rows[rows["table"] == table]
    return {(r.row, r.column): r.value for r in rows.itertuples(index=False)}


def cell(values, theirs=None, digits: int = 1) -> str:
    """The mean of our values, and in brackets the paper's number if it has one."""
    ours = f"{np.mean(values):.{digits}f}"
    return ours if theirs is None else f"{ours} ({theirs:.{digits}f})"

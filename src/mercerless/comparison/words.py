"""What scores and times are called, for the command line, the report and the result alike."""

import re

METRICS = {"classification": ("accuracy", "balanced_accuracy"), "regression": ("r2",)}
WORDS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "r2": "R²",
    "rmse": "RMSE",
    "mae": "mean absolute error",
    "roc_auc": "area under ROC",
    "log_loss": "log-loss",
}


def parse_budget(budget: float | str | None) -> float | None:
    """Seconds of a budget such as 90, "90s", "2m", "1.5h"; None means no limit."""
    if budget is None or isinstance(budget, (int, float)):
        seconds = budget
    else:
        match = re.fullmatch(r"\s*([0-9.]+)\s*(s|sec|m|min|h)?\s*", budget.lower())
        if match is None:
            raise ValueError(f"budget={budget!r} is not a time; write for example '90s', '2m' or '1h'.")
        seconds = float(match[1]) * {"m": 60, "h": 3600}.get((match[2] or "s")[0], 1)
    if seconds is not None and not seconds > 0:
        raise ValueError(f"budget={budget!r} must be positive; write for example '90s', '2m' or '1h'.")
    return seconds


def duration(seconds: float) -> str:
    """Seconds for people: "35 s", "2 min", "1.5 h"."""
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"

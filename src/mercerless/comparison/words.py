"""Names of scores and times, for the command line, the report and the result alike."""

import re

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer_names

#: Short names, and those of scikit-learn.
SHORT_METRICS = {
    "mae": "neg_mean_absolute_error",
    "mse": "neg_mean_squared_error",
    "rmse": "neg_root_mean_squared_error",
    "log_loss": "neg_log_loss",
}
WORDS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "r2": "R²",
    "rmse": "RMSE",
    "mae": "mean absolute error",
    "roc_auc": "area under ROC",
    "log_loss": "log-loss",
}


def is_of_regression(metric: str) -> bool:
    """Whether one of scikit-learn's scores is for numbers."""
    pattern = r"r2|explained_variance|max_error|d2_absolute.*|neg_(mean|root|median|max).*"
    return re.fullmatch(pattern, metric) is not None


def is_of_clusters(metric: str) -> bool:
    """Whether one of scikit-learn's scores is for neither classes nor numbers."""
    pattern = (
        r".*(rand_score|_info_score|mutual_info.*|completeness.*|homogeneity.*|fowlkes.*"
        r"|v_measure.*)"
    )
    return re.fullmatch(pattern, metric) is not None


def check_metric(metric: str | None, task: str) -> str:
    """Return scikit-learn's name of the score that counts; raise one sentence if it does not suit the task."""
    if metric is None:
        return "r2" if task == "regression" else "accuracy"
    name = SHORT_METRICS.get(metric, metric)
    names = [known for known in get_scorer_names() if not is_of_clusters(known)]
    fitting = [known for known in names if is_of_regression(known) == (task == "regression")]
    if name not in names:
        raise ValueError(
            f"There is no metric {metric!r}; for {task} there are {', '.join(sorted(fitting))}."
        )
    if name not in fitting:
        usual = (
            "accuracy, balanced_accuracy, roc_auc or f1_macro"
            if task == "classification"
            else "r2, mae or rmse"
        )
        raise ValueError(f"metric={metric!r} does not suit {task}; use for example {usual}.")
    return name


def check_positive_class(metric: str, y: NDArray) -> None:
    """Raise if a metric scores one of two classes, the 1, and the labels have no such class."""
    of_one_class = r"f1|precision|recall|jaccard|average_precision"
    if re.fullmatch(of_one_class, metric) is None:
        return
    classes = np.unique(y)
    if len(classes) == 2 and classes.dtype.kind in "biuf" and 1 in classes:
        return
    other = "roc_auc_ovr" if metric == "average_precision" else f"{metric}_macro"
    raise ValueError(
        f"metric={metric!r} scores two classes of which one is 1, and the labels are "
        f"{', '.join(map(str, classes[:3]))}{', ...' if len(classes) > 3 else ''}; use {other}, or "
        "labels 0 and 1."
    )


def needs_probabilities(metric: str) -> bool:
    """Whether a metric scores probabilities, which not every classifier gives."""
    pattern = r"neg_log_loss|neg_brier_score|d2_(log_loss|brier)_score|roc_auc_ov.*"
    return re.fullmatch(pattern, metric) is not None


def metric_words(metric: str) -> str:
    """Name of a metric for readers; losses are negative, as in scikit-learn, so that more is better."""
    known = {name: f"negative {WORDS.get(short, short)}" for short, name in SHORT_METRICS.items()}
    return (
        WORDS.get(metric)
        or known.get(metric)
        or metric.replace("neg_", "negative ").replace("_", " ")
    )


def is_share(metric: str) -> bool:
    """Whether a metric is shown as a percentage."""
    of_classes = r"(f1|precision|recall|jaccard|roc_auc)(_.*)?"
    pattern = rf"(balanced_|top_k_)?accuracy|{of_classes}|average_precision"
    return re.fullmatch(pattern, metric) is not None


def format_score(metric: str, score: float) -> str:
    """A score for people, such as "96.0 %": accuracies as percentages."""
    if is_share(metric):
        return f"{100 * score:z.1f} %"
    return f"{score:z.3f}" if metric == "r2" else f"{score:z.4g}"


def format_difference(metric: str, difference: float) -> str:
    """A difference of scores for people, such as "-0.5": accuracies in percentage points."""
    if is_share(metric):
        return f"{100 * difference:+.1f}"
    return f"{difference:+.3f}" if metric == "r2" else f"{difference:+.3g}"


def parse_budget(budget: float | str | None) -> float | None:
    """Seconds of a budget such as 90, "90s", "2m", "1.5h"; None means no limit."""
    if budget is None or isinstance(budget, (int, float)):
        seconds = budget
    else:
        match = re.fullmatch(r"\s*([0-9.]+)\s*(s|sec|m|min|h)?\s*", budget.lower())
        if match is None:
            raise ValueError(
                f"budget={budget!r} is not a time; write for example '90s', '2m' or '1h'."
            )
        seconds = float(match[1]) * {"m": 60, "h": 3600}.get((match[2] or "s")[0], 1)
    if seconds is not None and not seconds > 0:
        raise ValueError(
            f"budget={budget!r} must be positive; write for example '90s', '2m' or '1h'."
        )
    return seconds


def duration(seconds: float) -> str:
    """Seconds for people: "35 s", "2 min", "1.5 h"."""
    if seconds < 0.9995:  # more would be rounded to 1000 ms
        return f"{1000 * seconds:.3g} ms"
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{_three_digits(seconds / size)} {unit}"
    return f"{_three_digits(seconds)} s"


def _three_digits(number: float) -> str:
    """A positive number with three digits, or all digits before the point; never with an exponent."""
    return f"{number:.3g}" if number < 999.5 else f"{number:.0f}"

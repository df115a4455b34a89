"""Kernel ridge regression with all rows as centers, which competes with the local models of small tables."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from mercerless.core.descent import Report, smallest_of_grid
from mercerless.core.folds import Split, some_rows
from mercerless.core.linalg import shifted_systems
from mercerless.kernels.local import FixedPoints
from mercerless.lab.model import FORMS, Expansion, Rows, with_coefficients
from mercerless.lab.selection import silent, start_widths
from mercerless.lab.solver import LIMITS as SOLVER_LIMITS
from mercerless.lab.solver import (
    leave_one_out,
    noise_variances,
    projected_norm,
    relative_norm,
    shared_evidence,
)
from mercerless.table.members.candidate import Candidate, Contest


class RidgeOnAllRows:
    """Kernel ridge regression of every form, tuned in two ways."""

    def candidates(self, contest: Contest, tried: Sequence[Candidate]) -> list[Candidate]:
        candidates: list[Candidate] = []
        for form in contest.forms if contest.folds else ():
            candidates += all_rows_candidates(form, contest.rows, contest.folds, contest.report)
        return candidates


def all_rows_candidates(
    form: str, rows: Rows, folds: Sequence[Split], report: Report = silent
) -> list[Candidate]:
    """Kernel ridge regression with all rows as centers, tuned in two ways.

    One bandwidth and ridge by exact leave-one-out; and one bandwidth per feature, a linear kernel and the ridge by
    `shared_evidence`. Both are chosen on at most 300 rows, which carry over, again for every fold: the targets of
    held-out rows do not enter their predictions at all. The fit to all rows has the median settings of the folds, see
    `like_folds`.
    """
    rows = replace(rows, X=np.asarray(rows.X, dtype=float))
    plain = []
    learned = []
    out_of_fold = []
    out_of_fold_learned = []
    for train, valid in folds:
        known = rows.take(train)
        plain.append(one_bandwidth(form, known))
        learned.append(bandwidth_per_feature(form, known, report))
        out_of_fold.append(plain[-1].predict(rows.X[valid], known.X))
        out_of_fold_learned.append(learned[-1].predict(rows.X[valid], known.X))
    return [
        Candidate(
            f"{form}, all rows, one bandwidth",
            np.concatenate(out_of_fold),
            partial(like_folds, plain, rows),
        ),
        Candidate(
            f"{form}, all rows",
            np.concatenate(out_of_fold_learned),
            partial(like_folds, learned, rows),
        ),
    ]


def like_folds(models: Sequence[Expansion], rows: Rows) -> Expansion:
    """The model of all rows with the median settings of those of the folds.

    Weights and slopes are those of the folds' models, so the last one must be like them. Chosen anew on some rows, its
    ridge can be ten times theirs if targets are noisy: with a tenth of 1000 labels flipped, the log-loss of new rows
    was .557 on eeg (.386 with the median settings) and .324 on ijcnn1 (.236).
    """
    log_bandwidths = np.median([model.log_bandwidths for model in models], axis=0)
    log_ridge = float(np.median([model.log_ridge for model in models]))
    linear_weight = float(np.median([model.linear_weight for model in models]))
    certificate = max(model.certificate for model in models)
    model = Expansion(
        models[0].form,
        np.arange(len(rows)),
        log_bandwidths,
        log_ridge,
        linear_weight,
        certificate=certificate,
    )
    return with_coefficients(model, rows)


def one_bandwidth(form: str, rows: Rows) -> Expansion:
    """Kernel ridge regression with the bandwidth and the ridge of the smallest leave-one-out error."""
    log_width, log_ridge = _ridge_grid(form, _few(rows))
    model = Expansion(form, np.arange(len(rows)), log_width, log_ridge, linear_weight=0.0)
    return with_coefficients(model, rows)


def bandwidth_per_feature(form: str, rows: Rows, report: Report = silent) -> Expansion:
    """Kernel ridge regression with bandwidths, a linear kernel and a ridge of the largest evidence."""
    start = _ridge_grid(form, _few(rows, 200), linear=True)
    return with_coefficients(_ridge_descent(form, rows, start, report), rows)


def _few(rows: Rows, most: int = 300) -> Rows:
    """The rows on which kernel ridge regression on all of them is tuned."""
    return rows.take(some_rows(len(rows), most, 0))


def _ridge_grid(form: str, rows: Rows, linear: bool = False) -> tuple[NDArray, float]:
    """Log bandwidth and log ridge with the smallest leave-one-out error, or `shared_evidence` with a linear kernel.

    From the middle of the grid of bandwidths, see `smallest_of_grid`.
    """
    X = rows.X
    n = len(rows)
    ridges = np.logspace(-6, 1, 15)
    widths = start_widths(form, rows.X.shape[1])
    root = np.sqrt(1 / noise_variances(rows.weight, n))
    Z = root[:, None] * rows.Y
    points = FixedPoints(FORMS[form], X, X)
    linear_kernel = X @ X.T / X.shape[1] + 1 if linear else 0.0

    def tuned(width: float) -> tuple[float, float, float]:
        K = points.value(float(width))
        K = (K + K.T) / 2 + linear_kernel
        K = K * root[:, None] * root
        if linear:
            fit, logdet = shifted_systems(K, Z, ridges)
            values = np.log(np.maximum(fit / n, SOLVER_LIMITS.tiny)) + logdet / n
        else:
            values = leave_one_out(K, Z, ridges)
        k = int(np.argmin(values))
        return float(values[k]), float(np.log(width)), float(np.log(ridges[k]))

    _, log_width, log_ridge = smallest_of_grid(lambda k: tuned(widths[k]), len(widths))
    return np.asarray(log_width), log_ridge


def _ridge_descent(
    form: str, rows: Rows, start: tuple[NDArray, float], report: Report = silent
) -> Expansion:
    """Minimize the evidence in the shared log bandwidths, the log weight of the linear kernel and the log ridge.

    The descent ends when five iterations together gain less than a quarter of a unit of log evidence.
    """
    some = _few(rows)
    d = rows.X.shape[1]
    X = some.X
    L = X @ X.T / d + 1
    points = FixedPoints(FORMS[form], X, X)
    # a Gaussian prior of unit variance on the differences of the log bandwidths
    pull = 1.0 / len(some)
    tol = 0.1 / len(some)
    values: list[float] = []
    norms: list[float] = []  # of the projected gradient, one per evaluation

    def value(z: NDArray) -> tuple[float, NDArray]:
        widths = np.exp(z[:d])
        K = points.value(widths)
        linear = np.exp(z[d])
        try:
            at = shared_evidence((K + K.T) / 2 + linear * L, some.Y, np.exp(z[d + 1]), some.weight)
        except np.linalg.LinAlgError:
            return np.inf, np.zeros_like(z)
        spread = z[:d] - z[:d].mean()
        gradient = np.append(
            points.pullback(widths, at.kernel_gradient, K) + 2 * pull * spread,
            [linear * np.sum(at.kernel_gradient * L), at.ridge_gradient],
        )
        norms.append(projected_norm(z, gradient, box))
        return at.value + pull * (spread @ spread), gradient

    def after(intermediate_result: Any) -> None:
        values.append(float(intermediate_result.fun))
        stop = report({"stage": f"{form}: all rows", "iteration": len(values), "value": values[-1]})
        if stop or (len(values) > 5 and values[-6] - values[-1] < 5 * tol):
            raise StopIteration

    ridge_bounds = (np.log(1e-8), SOLVER_LIMITS.ridge_bounds[1])
    box = np.array([SOLVER_LIMITS.shared_bounds] * d + [(-12.0, 6.0), ridge_bounds])
    z0 = np.clip(np.append(np.full(d, start[0]), [0.0, start[1]]), *box.T)
    options = {"maxiter": 20}
    result = minimize(
        value, z0, jac=True, method="L-BFGS-B", callback=after, options=options, bounds=box
    )
    z = result.x
    at_end = projected_norm(z, result.jac, box)
    return Expansion(
        form,
        np.arange(len(rows)),
        z[:d],
        float(z[d + 1]),
        float(np.exp(z[d])),
        certificate=relative_norm([*norms[:1], at_end]),
    )

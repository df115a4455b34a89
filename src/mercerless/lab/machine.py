"""The fit of one local expansion: scaling, folds, bandwidths, coefficients."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.blocks import take_rows
from mercerless.core.descent import Report
from mercerless.core.memory import row_blocks
from mercerless.core.scaling import BLOCK_BYTES
from mercerless.lab.data import Plan, Prepared, Table, noise_of_copies, prepare
from mercerless.lab.model import Expansion, LocalForm, Rows, Total
from mercerless.lab.selection import LocalLearner
from mercerless.lab.support import fold_supports


class LocalMachine(NamedTuple):
    """A fitted expansion in standardized units, and the results of its validation."""

    form: LocalForm
    held: NDArray  # the distinct rows that were predicted out of fold
    # (n_held, n_outputs), each by a number of iterations that the other folds chose
    out_of_fold: NDArray
    curve: NDArray  # (n_checkpoints, 2), iterations and mean squared errors of held-out rows
    loss_curve: NDArray  # the objective after every iteration
    certificate: float  # of the descent, see `State`
    # the largest squared error of the distinct rows that were learned on, which growth bounds
    max_error: float
    copy_correlation: float


def fit_machine(
    table: Table, plan: Plan, labels: NDArray | None, random: np.random.RandomState, report: Report
) -> LocalMachine:
    """Learn the bandwidths of one form on some rows, and its coefficients on all of them."""
    data = prepare(table, plan, labels, random)
    learner = LocalLearner(plan.forms[0], plan.settings, report)
    if data.folds:
        supports = fold_supports(data.rows, data.folds, plan.settings)
        candidate = learner.validate(data.rows, data.folds, supports)
    else:
        candidate = learner.without_validation(data.rows)
    blocks = further_blocks(data, plan)
    learned, model = learner.finish(
        candidate, data.rows, blocks, data.held, total_of(data, table, plan)
    )
    residual = model.predict(data.rows.X, data.rows.X) - data.rows.Y
    held = plan.rows[data.held]
    curve = np.array(learned.curve).reshape(-1, 2) + [0, noise_of_copies(table, held)]
    return LocalMachine(
        form=fitted_form(model, table, plan, data),
        held=held,
        out_of_fold=candidate.predictions,
        curve=curve,
        loss_curve=learned.loss,
        certificate=learned.certificate,
        max_error=float(np.max(np.sum(residual**2, axis=1))),
        copy_correlation=data.copy_correlation,
    )


def largest_error(form: LocalForm, X: Any, Y: NDArray) -> float:
    """The largest squared error of all rows, equal ones and those that were not learned on included."""
    largest = 0.0
    bytes_per_row = 24.0 * (X.shape[1] + len(form.centers))
    for rows in row_blocks(len(Y), bytes_per_row, BLOCK_BYTES):
        residual = form(np.asarray(X[rows])) - Y[rows]
        largest = max(largest, float(np.max(np.sum(residual**2, axis=1))))
    return largest


def further_blocks(data: Prepared, plan: Plan) -> list[Callable[[], Rows]]:
    """Functions that read further rows to refine bandwidths on; only a single hold-out can judge them."""
    if len(data.folds) != 1 or plan.settings.objective == "interpolation":
        return []
    return [partial(data.scaled.rows, block) for block in data.blocks]


def total_of(data: Prepared, table: Table, plan: Plan) -> Total | None:
    """The function that sums moments over all rows of the table; None if the rows to learn on are all of them."""
    if len(plan.rows) == table.shape[0]:
        return None
    return partial(data.scaled.total, plan.settings.n_support)


def fitted_form(model: Expansion, table: Table, plan: Plan, data: Prepared) -> LocalForm:
    """The form of an expansion: it holds its centers instead of row numbers."""
    support = table.merged.first[plan.rows[model.support]]
    centers = data.rows.X[model.support]
    # kernel ridge on all rows is solved in double precision; the others see rows as they were learned
    if model.linear_weight is not None:
        centers = centers.astype(np.float64)
    return LocalForm(
        name=model.form,
        kernel=model._replace(projection=None).kernel,
        support=support,
        support_vectors=take_rows(table.X, support).astype(np.float64),
        centers=centers,
        dual_coef=model.coef.T,
        coef=model.linear[1:].T,
        intercept=model.linear[0],
        alpha=float(np.exp(model.log_ridge)),
        weight=model.weight,
        scaling=data.scaled.scaling,
        projection=model.projection,
    )

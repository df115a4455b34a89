"""The fit of a table: members compete on held-out rows, and those with weight are fitted to all rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.blocks import is_dask, take_rows
from mercerless.core.descent import Report
from mercerless.core.folds import some_rows
from mercerless.lab.data import Prepared, Table, noise_of_copies, prepare, without_held_groups
from mercerless.lab.machine import fitted_form, further_blocks, total_of
from mercerless.lab.model import Expansion, LocalForm
from mercerless.table.encoding import TreeColumns
from mercerless.table.members.candidate import Candidate, Competitor, Contest, FurtherRows
from mercerless.table.members.experts import ExpertsOnParts
from mercerless.table.members.linear import LinearClasses
from mercerless.table.members.local import LocalMachines
from mercerless.table.members.ridge import RidgeOnAllRows
from mercerless.table.members.trees import BoostedTrees
from mercerless.table.members.wide import WideMachines
from mercerless.table.plan import TablePlan
from mercerless.table.weighing import Verdict, errors_of, weigh_classes, weigh_numbers


@dataclass(frozen=True)
class PredictionRule:
    """When kernels predict in single precision."""

    #: Centers from which on it is worth it; with fewer, a row is predicted alone as among others to 1e-7.
    fewest_centers: int = 500
    #: Training rows on which both precisions are compared.
    sample: int = 200
    #: The largest change of a prediction, in standard deviations of the target.
    largest_change: float = 1e-4


PREDICTIONS = PredictionRule()


class TableAverage(NamedTuple):
    """Members with weight, fitted to all rows, and the results of validation."""

    members: list[Any]  # their weights sum to one
    slopes: NDArray  # of the members: factors that turn scores of classes into log-odds
    out_of_fold: NDArray  # predictions of the held-out rows, made without them
    errors: dict[str, float]  # of everything that was tried
    curves: dict[str, NDArray]  # of local forms: iterations and mean squared validation errors
    certificate: float  # the largest of all members


class TableSolution(NamedTuple):
    """A fitted model: of standardized targets, or of the log-odds of classes."""

    members: list[Any]
    held: NDArray  # the distinct rows that were predicted out of fold
    out_of_fold: NDArray  # their predictions
    errors: dict[str, float]  # those of single rows, not of the means of copies
    curves: dict[str, NDArray]
    certificate: float
    copy_correlation: float


def fit_table(
    contest: Contest, competitors: Sequence[Competitor], max_members: int
) -> TableAverage:
    """Let members compete on held-out rows, weigh them, and fit those with weight to all rows."""
    candidates: list[Candidate] = []
    for competitor in competitors:
        candidates += competitor.candidates(contest, candidates)
    verdict, errors = _verdict(contest, candidates, max_members)
    members = []
    for candidate, weight in zip(candidates, verdict.weights):
        if weight > 0:
            members.append(candidate.refit()._replace(weight=float(weight)))
    slopes = verdict.slopes[verdict.weights > 0]
    curves = {candidate.name: candidate.curve for candidate in candidates if len(candidate.curve)}
    certificate = max(getattr(member, "certificate", 0.0) for member in members)
    return TableAverage(members, slopes, verdict.out_of_fold, errors, curves, certificate)


def _verdict(
    contest: Contest, candidates: Sequence[Candidate], max_members: int
) -> tuple[Verdict, dict[str, float]]:
    """Weights of the candidates and their predictions together, and the errors of each."""
    predictions = [candidate.out_of_fold for candidate in candidates]
    if not contest.folds:
        weights = _all_to_the_smallest_objective(candidates)
        return Verdict(weights, predictions[0], np.ones(len(candidates))), {}
    held = contest.labeled.take(contest.held)
    names = [candidate.name for candidate in candidates]
    errors = dict(zip(names, errors_of(predictions, held)))
    if contest.classes is None:
        return weigh_numbers(predictions, held, contest.folds, max_members), errors
    return weigh_classes(predictions, held, max_members), errors


def _all_to_the_smallest_objective(candidates: Sequence[Candidate]) -> NDArray:
    """All weight to one candidate, for tables with too few rows to hold any out."""
    weights = np.zeros(len(candidates))
    weights[np.argmin([candidate.objective for candidate in candidates])] = 1.0
    return weights


def competitors_of(plan: TablePlan) -> list[Competitor]:
    """The kinds of members that compete, ordered so that each can start from the results of earlier ones."""
    competitors: list[Competitor] = [LocalMachines()]
    if plan.all_rows:
        competitors.append(RidgeOnAllRows())
    if "linear" in plan.members:
        competitors.append(LinearClasses())
    if "wide" in plan.members:
        competitors.append(WideMachines(plan.n_centers))
    if "trees" in plan.members:
        competitors.append(BoostedTrees())
    if "experts" in plan.members:
        competitors.append(ExpertsOnParts(plan.n_centers))
    return competitors


def solve_table(
    table: Table,
    plan: TablePlan,
    columns: TreeColumns,
    labels: NDArray | None,
    weight: NDArray,
    random: np.random.RandomState,
    report: Report,
) -> TableSolution:
    """Scale a table, make folds, and fit it; labels and weights are those of all rows, `columns` those for trees."""
    data = prepare(table, plan, labels, random)
    classes = None
    shares = None
    classes_of_rows = None
    shares_of_rows = None
    if labels is not None:
        classes = labels[table.merged.first]
        classes_of_rows = classes[plan.rows]
        shares = class_shares(table.copies, labels, weight)
    if shares is not None:
        shares_of_rows = shares[plan.rows]
    contest = Contest(
        rows=data.rows,
        folds=data.folds,
        settings=plan.settings,
        forms=plan.forms,
        classes=classes_of_rows,
        shares=shares_of_rows,
        columns=columns,
        blocks=further_blocks(data, plan),
        total=total_of(data, table, plan),
        further=_further_rows(data, table, plan, classes, shares, random),
        report=report,
    )
    average = fit_table(contest, competitors_of(plan), plan.max_members)
    held = plan.rows[data.held]
    noise = noise_of_copies(table, held)
    errors = average.errors
    if labels is None:
        errors = {name: error + noise for name, error in errors.items()}
    members = []
    n_functions = data.rows.Y.shape[1]
    for member, slope in zip(average.members, average.slopes):
        scaled = _with_scaling(member, table, plan, data)
        members.append(scaled.in_units(np.zeros(n_functions), np.full(n_functions, slope)))
    return TableSolution(
        members=members,
        held=held,
        out_of_fold=average.out_of_fold,
        errors=errors,
        curves={name: curve + [0, noise] for name, curve in average.curves.items()},
        certificate=average.certificate,
        copy_correlation=data.copy_correlation,
    )


def class_shares(copies: NDArray, labels: NDArray, weight: NDArray) -> NDArray | None:
    """Shares of the classes (n_distinct, n_classes) among rows that are copies; None if none differ in their class."""
    shape = (copies.max() + 1, labels.max() + 1)
    pairs = np.ravel_multi_index((copies, labels), shape)
    totals = np.bincount(pairs, weights=weight, minlength=shape[0] * shape[1]).reshape(shape)
    if not np.any(np.count_nonzero(totals, axis=1) > 1):
        return None
    return totals / totals.sum(axis=1, keepdims=True)


def _further_rows(
    data: Prepared,
    table: Table,
    plan: TablePlan,
    classes: NDArray | None,
    shares: NDArray | None,
    random: np.random.RandomState,
) -> FurtherRows | None:
    """Rows in memory beside those on which bandwidths are learned, as many as trees may have."""
    rest = np.setdiff1d(np.arange(table.shape[0]), plan.rows)
    (rest,) = without_held_groups(table, plan, data.folds, [rest])
    room = plan.n_boosting - len(plan.rows)
    if not len(rest) or room <= 0 or is_dask(table.X):
        return None
    if len(rest) > room:
        rest = np.sort(random.permutation(rest)[:room])
    return FurtherRows(data.scaled, rest, classes, shares)


def _with_scaling(member: Any, table: Table, plan: TablePlan, data: Prepared) -> Any:
    """A member that takes encoded rows and scales them itself."""
    if isinstance(member, Expansion):
        form = fitted_form(member, table, plan, data)
        sample = plan.rows[some_rows(len(plan.rows), PREDICTIONS.sample, plan.settings.seed)]
        return in_single(form, take_rows(table.X, table.merged.first[sample]))
    return member._replace(scaling=data.scaled.scaling)


def in_single(form: LocalForm, X: NDArray) -> LocalForm:
    """The form with centers, and therefore its kernel, in single precision, if predictions of the rows X hardly change.

    Coefficients of kernel ridge regression with a small ridge are large and cancel: these forms stay as they are.
    """
    if form.centers.dtype == np.float32 or len(form.centers) < PREDICTIONS.fewest_centers:
        return form
    single = form._replace(centers=form.centers.astype(np.float32))
    if np.abs(single(X) - form(X)).max(initial=0.0) > PREDICTIONS.largest_change:
        return form
    return single

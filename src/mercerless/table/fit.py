"""The choice of a local kernel model: scaling, folds, candidates, and the weights of its forms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core import averaging
from mercerless.core.blocks import is_dask
from mercerless.core.choice import choice_parts
from mercerless.core.descent import Report
from mercerless.core.folds import Split
from mercerless.lab.data import (
    Prepared,
    ScaledTable,
    Table,
    noise_of_copies,
    prepare,
    without_held_groups,
)
from mercerless.lab.machine import fitted_form, further_blocks, total_of
from mercerless.lab.model import Expansion, LocalForm, Rows, Settings, Total
from mercerless.lab.selection import LocalLearner, silent
from mercerless.lab.support import fold_supports
from mercerless.table.members.candidate import Extra
from mercerless.table.members.ridge import all_rows_candidates
from mercerless.table.plan import TablePlan


class Blend(NamedTuple):
    """Several expansions and what their validation told."""

    expansions: list[Any]  # their weights sum to one; forms that are no expansions among them
    validation_rows: NDArray  # that were predicted out of fold
    predictions: NDArray  # of the blend for these, made without them
    # per form of a local model: iterations and mean squared validation errors
    curves: dict[str, NDArray]
    errors: dict[str, float]  # of everything that was tried
    loss_curve: NDArray  # of the heaviest local part; empty if none has weight
    certificate: float  # the largest of all parts, which all have weight
    max_error: float  # the largest squared error on a training row, what growth bounds


def blend_forms(
    forms: Sequence[str],
    rows: Rows,
    settings: Settings,
    folds: Sequence[Split],
    *,
    all_rows: bool = False,
    total: Total | None = None,
    more: Sequence[Callable[[], Rows]] = (),
    extra: Callable[..., dict[str, Extra]] | None = None,
    weigh: Callable[..., tuple[NDArray, list[float]]] | None = None,
    report: Report = silent,
) -> Blend:
    """Fit models of the given forms and weigh them by their out-of-fold predictions.

    Without `folds` the form with the smallest objective is kept. Where `rows` are a part of the data, `total` is as in
    `with_coefficients`, and `more` give rows to refine the bandwidths on. `extra` gives what else competes.
    """
    learners = {form: LocalLearner(form, settings, report) for form in forms}
    candidates: dict[str, Any] = _candidates(learners, rows, settings, folds, all_rows)
    if extra is not None and folds:
        candidates |= extra(
            rows, folds, learners, {name: of.predictions for name, of in candidates.items()}
        )
    held = np.concatenate([valid for _, valid in folds]) if folds else np.zeros(0, dtype=int)
    weigh_held = partial(_weigh, max_members=2 + all_rows + (extra is not None), weigh=weigh)
    share, errors = weigh_held(candidates, rows.take(held), numbers=held)
    kept = [name for name in candidates if share[name] > 0]
    expansions = []
    for name in kept:
        if isinstance(candidates[name], Extra):
            expansions.append(candidates[name].finish(total)._replace(weight=share[name]))
            continue
        candidates[name], model = learners[name].finish(candidates[name], rows, more, held, total)
        expansions.append(model._replace(weight=share[name]))
    local = [name for name in kept if name in learners]
    loss = np.zeros(0)
    if local:
        heaviest = max(local, key=lambda name: share[name])
        loss = candidates[heaviest].loss
    certificate = max(getattr(member, "certificate", 0.0) for member in expansions)
    residual = np.sum([e.weight * _predict(e, rows.X) for e in expansions], axis=0) - rows.Y
    max_error = float(np.max(np.sum(residual**2, axis=1)))
    predictions = cross_weighed(candidates, held, rows, folds, share, weigh_held)
    curves = {name: np.array(candidates[name].curve) for name in learners if candidates[name].curve}
    return Blend(expansions, held, predictions, curves, errors, loss, certificate, max_error)


def _predict(form: Any, X: NDArray) -> NDArray:
    """Predictions of an expansion or another form for its own rows, which are scaled."""
    return form.predict(X, X) if isinstance(form, Expansion) else form(X)


def _candidates(
    learners: Mapping[str, LocalLearner],
    rows: Rows,
    settings: Settings,
    folds: Sequence[Split],
    all_rows: bool,
) -> dict[str, Any]:
    """Everything that is tried, by name; forms after the first race against it."""
    candidates: dict[str, Any] = {}
    rival = None
    supports = fold_supports(rows, folds, settings)
    for form, learner in learners.items():
        if folds:
            rival = learner.validate(
                rows, folds, supports, rival if settings.growth is None else None
            )
            candidates[form] = rival
        else:
            candidates[form] = learner.without_validation(rows)
        if all_rows and folds:
            plain, learned = all_rows_candidates(form, rows, folds, learner.report)
            candidates |= {f"{form}, all rows, one bandwidth": plain, f"{form}, all rows": learned}
    return candidates


def cross_weighed(
    candidates: Mapping[str, Any],
    held: NDArray,
    rows: Rows,
    folds: Sequence[Split],
    share: Mapping,
    weigh: Callable,
) -> NDArray:
    """Out-of-fold predictions of the average, each by weights from the other folds, or parts of a hold-out."""

    def average(weights: Mapping, places: Any) -> NDArray:
        parts = [weights[name] * candidates[name].predictions[places] for name in candidates]
        return np.sum(parts, axis=0)

    predictions = average(share, slice(None))
    parts = choice_parts(folds)
    for part in parts if len(parts) > 1 else ():
        others = np.setdiff1d(np.arange(len(held)), part)
        weights, _ = weigh(candidates, rows.take(held[others]), numbers=held[others], among=others)
        predictions[part] = average(weights, part)
    return predictions


def _weigh(
    candidates: Mapping[str, Any],
    held: Rows,
    max_members: int,
    numbers: NDArray,
    weigh: Callable | None,
    among: Any = ...,
) -> tuple[dict, dict]:
    """Weights and validation errors of the candidates; without validation rows the smallest objective has it all."""
    if len(held):
        predictions = [c.predictions[among] for c in candidates.values()]
        if weigh is None:
            rule = replace(averaging.TABLE_NUMBERS, max_members=max_members)
            share = averaging.average(predictions, held.Y, held.weight, rule).weights
            # without weights: those of outliers were lowered, and would flatter
            errors = [float(np.mean(np.sum((p - held.Y) ** 2, axis=1))) for p in predictions]
        else:
            share, errors = weigh(predictions, numbers, held.weight, max_members)
        return {name: float(w) for name, w in zip(candidates, share)}, dict(zip(candidates, errors))
    best = min(
        candidates,
        key=lambda name: candidates[name].loss[-1] if len(candidates[name].loss) else np.inf,
    )
    return {name: float(name == best) for name in candidates}, {}


class LABSolution(NamedTuple):
    """A fitted model in standardized units."""

    forms: list[LocalForm]
    # what validation told; its errors are those of single rows, not of the means of copies
    blend: Blend
    held: NDArray  # the distinct rows that were predicted out of fold
    copy_correlation: float


def fit_lab(
    table: Table,
    plan: TablePlan,
    labels: NDArray | None,
    random: np.random.RandomState,
    report: Report = silent,
    extra: Callable[..., dict[str, Extra]] | None = None,
    weigh: Callable[..., tuple[NDArray, list[float]]] | None = None,
) -> LABSolution:
    """Choose a scaling, learn the bandwidths on some rows and the coefficients on all; labels are spread over folds."""
    data = prepare(table, plan, labels, random)
    rest = np.setdiff1d(np.arange(table.shape[0]), plan.rows)
    # further rows must not know the held-out groups
    (rest,) = without_held_groups(table, plan, data.folds, [rest])
    room = plan.n_boosting - len(plan.rows)
    if extra is not None and len(rest) and room > 0 and not is_dask(table.X):
        rest = rest if len(rest) <= room else np.sort(random.permutation(rest)[:room])
        extra = partial(extra, further=partial(_numbered_rows, data.scaled, rest))
    blend = blend_forms(
        plan.forms,
        data.rows,
        plan.settings,
        data.folds,
        all_rows=plan.all_rows,
        total=total_of(data, table, plan),
        more=further_blocks(data, plan),
        extra=extra,
        weigh=weigh,
        report=report,
    )
    held = plan.rows[blend.validation_rows]
    # errors of merged rows are those of their means; what rows deviate from their means comes on top
    noise = noise_of_copies(table, held)
    curves = {form: curve + [0, noise] for form, curve in blend.curves.items()}
    errors = {
        name: error + (noise if weigh is None else 0.0) for name, error in blend.errors.items()
    }
    blend = blend._replace(curves=curves, errors=errors)
    forms = [_fitted(expansion, table, plan, data) for expansion in blend.expansions]
    return LABSolution(forms, blend, held, data.copy_correlation)


def _fitted(member: Any, table: Table, plan: TablePlan, data: Prepared) -> Any:
    if isinstance(member, Expansion):
        return fitted_form(member, table, plan, data)
    return member._replace(scaling=data.scaled.scaling)


def _numbered_rows(scaled: ScaledTable, numbers: NDArray) -> tuple[Rows, NDArray]:
    return scaled.rows(numbers), numbers

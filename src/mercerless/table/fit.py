"""The choice of a local kernel model: scaling, folds, candidates, and the weights of its forms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.averaging import combine
from mercerless.core.blocks import is_dask, take_rows
from mercerless.core.choice import choice_parts
from mercerless.core.copies import MergedRows
from mercerless.core.descent import Report
from mercerless.core.folds import Split, hold_out, make_folds, some_rows
from mercerless.core.scaling import FeatureScaling, possible_scalings
from mercerless.lab.model import (
    Expansion,
    Extra,
    LocalForm,
    Rows,
    Settings,
    Total,
    with_coefficients,
)
from mercerless.lab.selection import Candidate, LocalLearner, held_out_error, silent
from mercerless.lab.support import fold_supports, select_support
from mercerless.table.members.ridge import all_rows_candidates
from mercerless.table.plan import Plan, ScaledTable, Table

# cross-validated; more are held out in part
_FOLDED_ROWS = 1300
_FOLDED_CLASSES = 2500
_FOLDED_RARE = 5000
_FEWEST_RARE = 100  # held-out rows outside of the largest class
# rows and hold-outs that choose a scaling, and its gain
_SCALING_ROWS = 3000
_SCALING_DRAWS = 3
_SCALING_GAIN = 0.98
_SCALING_RACE = 1.15  # times the smallest error, above which a scaling is given up


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
    blocks = more if len(folds) == 1 and settings.objective != "interpolation" else ()
    expansions = []
    for name in kept:
        if isinstance(candidates[name], Extra):
            expansions.append(candidates[name].finish(total)._replace(weight=share[name]))
            continue
        learned = learners[name].learn_again(candidates[name], rows)
        candidates[name] = learners[name].refine(learned, rows, blocks, held)
        model = candidates[name].expansion
        assert model is not None
        model = with_coefficients(model, rows, settings, total)
        certificate = candidates[name].certificate
        expansions.append(model._replace(weight=share[name], certificate=certificate))
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
            support = select_support(
                rows.X, rows.Y, settings.n_support, settings.selection, settings.seed
            )
            expansion, loss, certificate = learner.learn(rows, support)
            candidates[form] = Candidate(
                expansion, np.zeros((0, rows.Y.shape[1])), loss, certificate
            )
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
            share = combine(predictions, held.Y, held.weight, max_members)
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
    plan: Plan,
    labels: NDArray | None,
    random: np.random.RandomState,
    report: Report = silent,
    extra: Callable[..., dict[str, Extra]] | None = None,
    weigh: Callable[..., tuple[NDArray, list[float]]] | None = None,
) -> LABSolution:
    """Choose a scaling, learn the bandwidths on some rows and the coefficients on all; labels are spread over folds."""
    scaled = ScaledTable(table, choose_scaling(table, plan), plan.dtype)
    rows = scaled.rows(plan.rows)
    correlation = 0.0 if labels is not None else copy_correlation(table.merged, plan, rows)
    scaled = replace(scaled, weight=table.merged.weights(correlation))
    rows = replace(rows, weight=scaled.weights(plan.rows))
    folds = _split(table, plan, rows, labels, random)
    more = plan.more
    rest = np.setdiff1d(np.arange(table.shape[0]), plan.rows)
    # further rows must not know the held-out groups
    if table.groups is not None and len(folds) == 1:
        held = table.groups[plan.rows[folds[0][1]]]
        more, (rest,) = (
            [block[~np.isin(table.groups[block], held)] for block in blocks]
            for blocks in (more, [rest])
        )
    room = plan.n_boosting - len(plan.rows)
    if extra is not None and len(rest) and room > 0 and not is_dask(table.X):
        rest = rest if len(rest) <= room else np.sort(random.permutation(rest)[:room])
        extra = partial(extra, further=partial(_numbered_rows, scaled, rest))
    blend = blend_forms(
        plan.forms,
        rows,
        plan.settings,
        folds,
        all_rows=plan.all_rows,
        total=None
        if len(plan.rows) == table.shape[0]
        else partial(scaled.total, plan.settings.n_support),
        more=[partial(scaled.rows, block) for block in more if len(block)],
        extra=extra,
        weigh=weigh,
        report=report,
    )
    held = plan.rows[blend.validation_rows]
    # errors of merged rows are those of their means; what rows deviate from their means comes on top
    noise = float(np.mean(table.merged.deviations[held])) if len(held) else 0.0
    curves = {form: curve + [0, noise] for form, curve in blend.curves.items()}
    errors = {
        name: error + (noise if weigh is None else 0.0) for name, error in blend.errors.items()
    }
    blend = blend._replace(curves=curves, errors=errors)
    forms = [
        _fitted_form(table, plan, rows, scaled.scaling, expansion) for expansion in blend.expansions
    ]
    return LABSolution(forms, blend, held, correlation)


def _numbered_rows(scaled: ScaledTable, numbers: NDArray) -> tuple[Rows, NDArray]:
    return scaled.rows(numbers), numbers


def _fitted_form(table: Table, plan: Plan, rows: Rows, scaling: FeatureScaling, e: Any) -> Any:
    if not isinstance(e, Expansion):
        return e._replace(scaling=scaling)
    support = table.merged.first[plan.rows[e.support]]
    vectors = take_rows(table.X, support).astype(np.float64)
    centers = rows.X[e.support]
    # the others are seen as they were learned, of large tables in single precision
    if e.linear_weight is not None:
        centers = centers.astype(np.float64)
    coef = e.linear[1:].T
    intercept = e.linear[0]
    alpha = float(np.exp(e.log_ridge))
    kernel = e._replace(projection=None).kernel
    return LocalForm(
        e.form,
        kernel,
        support,
        vectors,
        centers,
        e.coef.T,
        coef,
        intercept,
        alpha,
        e.weight,
        scaling,
        e.projection,
    )


def _split(
    table: Table, plan: Plan, rows: Rows, labels: NDArray | None, random: np.random.RandomState
) -> list[Split]:
    """Five folds up to 100 rows, then three, one hold-out of many rows; copies and groups on one side.

    Three folds are for up to 1300 rows, 2500 of classes, 5000 where few held-out rows would be of the smaller classes.
    """
    n = len(rows)
    numbers = plan.rows
    if plan.validation_fraction is None or n < 5:
        return []
    classes = None if labels is None else labels[table.merged.first[numbers]]
    groups = None if table.groups is None else table.groups[numbers]
    options: dict[str, Any] = {
        "classify": labels is not None,
        "groups": groups,
        "random_state": random,
    }
    most = _FOLDED_ROWS
    if classes is not None:
        rare = plan.validation_fraction * (n - np.bincount(classes).max())
        most = _FOLDED_CLASSES if rare >= _FEWEST_RARE else _FOLDED_RARE
    if n <= most:
        return make_folds(5 if n <= 100 else 3, rows.X, classes, **options)
    return [hold_out(plan.validation_fraction, rows.X, classes, **options)]


def choose_scaling(table: Table, plan: Plan) -> FeatureScaling:
    """Standardized features; where they have tails, a scaling that lowers the held-out error of small models enough."""
    settings = plan.settings
    merged = table.merged
    numbers = plan.rows[some_rows(len(plan.rows), _SCALING_ROWS, settings.seed)]
    sample = take_rows(table.X, merged.first[numbers])
    scalings = possible_scalings(table.X, sample)
    if len(scalings) == 1:
        return scalings[0]
    scaled = [Rows(scaling(sample, np.float32), merged.Y[numbers]) for scaling in scalings]
    errors = dict.fromkeys(range(len(scalings)), 0.0)
    for i in range(_SCALING_DRAWS):
        draw = settings._replace(seed=(settings.seed + i) % 2**32)
        for k in errors:
            errors[k] += min(held_out_error(form, scaled[k], draw) for form in plan.forms)
        errors = {
            k: error for k, error in errors.items() if error <= _SCALING_RACE * min(errors.values())
        }
        if len(errors) == 1:
            break
    best = min(errors, key=lambda k: errors[k])
    return scalings[best if errors[best] < _SCALING_GAIN * errors.get(0, np.inf) else 0]


def copy_correlation(merged: MergedRows, plan: Plan, rows: Rows) -> float:
    """How alike the errors of copies are: 1 where their targets are equal, 0 where they differ like any two rows."""
    if not merged.pure_error > 0 or np.all(merged.counts == merged.counts[0]):
        return 1.0
    few = some_rows(len(rows), 3000, plan.settings.seed)
    return merged.correlation(held_out_error(plan.forms[0], rows.take(few), plan.settings))

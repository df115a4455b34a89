"""Why: what every training item contributed to a prediction, in shares that add up to the score.

Ridge regressions and neighbors are linear in the targets: ``f(x) = sum_j h_j(x) y_j`` with ``sum_j h_j = 1``, so that
``f(x) = mean + sum_j h_j(x) (y_j - mean)``. The share of item j is what its target, being other than the mean, adds to
the score; the base is what would be said if all items had the mean target. A model with few centers whose targets are
many rows' (local bandwidths, landmarks) is linear in comparisons instead, ``f(x) = sum_j c_j k(x, s_j) + b``: there the
share of a center is ``c_j (k(x, s_j) - mean_i k(x, s_i))``, so that a constant added to the kernel changes no share.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from mercerless.selection.calibration import Calibration
from mercerless.selection.directed import DirectedStack
from mercerless.selection.similarity import Block, Members, Stack, fit_members, member_scores
from mercerless.solvers.similarity import nearest_of_classes

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
_PANELS = 8


class Reasons(NamedTuple):
    """What speaks for and against predictions: ``score = base + sum of the shares + rest``.

    Attributes
    ----------
    score : ndarray of shape (n,)
        What is explained: the prediction of a regressor; of a classifier the log-odds of the predicted class against
        the second most probable.
    base : ndarray of shape (n,)
        What the model says before any training item speaks.
    items : ndarray of int of shape (n, 2 k)
        Training items: the k that speak most for the prediction (for a larger number), then the k that speak most
        against it; -1 where there are fewer.
    shares : ndarray of shape (n, 2 k)
        Their shares of the score, 0 where there is no item.
    rest : ndarray of shape (n,)
        The sum of the shares of all other training items.
    families : dict of str to ndarray of shape (n,)
        The sum of all shares by the part of the model they come from: families of a stack, directions, kernel forms.
    label, rival : ndarray of shape (n,) or None
        The predicted class and the one it is held against; None for numbers.
    given : ndarray of shape (n, 2 k) or None
        Labels or numbers of `items`, where the model knows them.
    relevance : ndarray of shape (n, n_features) or None
        For local bandwidths: how sharply the model distinguishes values of every feature near the item, in shares of 1.
    """

    score: NDArray
    base: NDArray
    items: NDArray
    shares: NDArray
    rest: NDArray
    families: dict[str, NDArray]
    label: NDArray | None = None
    rival: NDArray | None = None
    given: NDArray | None = None
    relevance: NDArray | None = None

    def text(self, index: int, names: Sequence[Any] | None = None) -> str:
        """The reasons of one prediction in words.

        Parameters
        ----------
        index : int
            Which prediction.
        names : sequence or None, default=None
            Names of the training items; None numbers them.

        Returns
        -------
        str
            Some lines.
        """
        score, base, rest = (float(values[index]) for values in (self.score, self.base, self.rest))
        if self.label is None or self.rival is None:
            head = f"Predicted {score:.4g}, of which {base:.4g} without any item"
        else:
            odds = f"log-odds {score:+.2f}, of which {base:+.2f} without any item"
            head = f"{self.label[index]} rather than {self.rival[index]} ({odds})"
        lines, k = [head], self.items.shape[1] // 2
        words = ("for", "against") if self.label is not None else ("up", "down")
        for place in np.flatnonzero(self.items[index] >= 0).tolist():
            share = self.shares[index, place]
            lines.append(f"  {words[place >= k]:8}{share:+.3g}  {self.name(index, place, names)}")
        return "\n".join([*lines, f"  {'others':8}{rest:+.3g}"])

    def name(self, index: int, place: int, names: Sequence[Any] | None = None) -> str:
        """What one of the items of a prediction is called, with its label or number.

        Parameters
        ----------
        index, place : int
            Which prediction, and which column of `items`.
        names : sequence or None, default=None
            Names of the training items; None numbers them.

        Returns
        -------
        str
            The name.
        """
        item = int(self.items[index, place])
        given = None if self.given is None else self.given[index, place]
        value = f"{given:.4g}" if isinstance(given, float) else given
        return (f"item {item}" if names is None else str(names[item])) + ("" if given is None else f" ({value})")


def pick(shares: NDArray, k: int) -> tuple[NDArray, NDArray, NDArray]:
    """The k largest positive and the k most negative shares of every row: items, shares, and what is left."""
    k = min(k, shares.shape[1])
    order = np.argsort(-shares, axis=1, kind="stable")
    items = np.hstack([order[:, :k], order[:, ::-1][:, :k]])
    chosen = np.take_along_axis(shares, items, axis=1)
    wrong = np.hstack([chosen[:, :k] <= 0.0, chosen[:, k:] >= 0.0])
    items, chosen = np.where(wrong, -1, items), np.where(wrong, 0.0, chosen)
    return items, chosen, shares.sum(axis=1) - chosen.sum(axis=1)


class Term(NamedTuple):
    """A part of a model at some new items, by its name: weights ``matrix`` (m, n) of targets, or of coefficients."""

    name: str
    matrix: NDArray
    coef: NDArray = np.zeros((0, 0))  # (n_outputs, n), where it is linear in comparisons


class Explained(NamedTuple):
    """Shares of the training items in the scores of some new items."""

    families: dict[str, NDArray]  # of (m, n)
    score: NDArray  # (m,)
    base: NDArray  # (m,)
    label: NDArray | None = None  # (m,), numbers of classes
    rival: NDArray | None = None
    relevance: NDArray | None = None  # (m, n_features)

    def scaled(self, scale: float, mean: float) -> "Explained":
        """In the units of targets that were standardized by these."""
        families = {name: scale * shares for name, shares in self.families.items()}
        return self._replace(families=families, score=scale * self.score + mean, base=scale * self.base + mean)


class Contrast(NamedTuple):
    """What is explained, ``sum_q mix_q f_q + constant``: a number, or the log-odds of the two likeliest classes."""

    mix: NDArray  # (m, n_outputs)
    constant: NDArray  # (m,)
    label: NDArray | None
    rival: NDArray | None


def contrast(f: NDArray, calibration: Calibration | None) -> Contrast:
    """The score of every row of outputs f (m, n_outputs); the one output of two classes counts as -f / 2 and f / 2."""
    m, q = f.shape
    if calibration is None:
        if q > 1:
            raise ValueError("explain takes models of one output; fit one model per output.")
        return Contrast(np.ones((m, 1)), np.zeros(m), None, None)
    if len(calibration.bias) < 2:
        raise ValueError("The training items have one class only, so that there is nothing to explain.")
    logits = calibration.logits(np.hstack([-f, f]) / 2.0 if q == 1 else f)
    order = np.argsort(-logits, axis=1, kind="stable")
    label, rival, rows = order[:, 0], order[:, 1], np.arange(m)
    constant = calibration.bias[label] - calibration.bias[rival]
    mix = np.zeros((m, q))
    if q == 1:
        mix[:, 0] = calibration.slope * np.where(label == 1, 1.0, -1.0)
    else:
        mix[rows, label], mix[rows, rival] = calibration.slope, -calibration.slope
    return Contrast(mix, constant, label, rival)


def explain_targets(
    terms: Sequence[Term], Y: NDArray, weight: NDArray | None, calibration: Calibration | None
) -> Explained:
    """Shares of a model ``sum over terms of matrix @ Y``, linear in the targets (n, n_outputs)."""
    mean, total = np.average(Y, axis=0, weights=weight), np.sum([term.matrix for term in terms], axis=0)
    f = total @ Y
    mix, constant, label, rival = contrast(f, calibration)
    effect = mix @ (Y - mean).T
    families: dict[str, NDArray] = {}
    for term in terms:
        families[term.name] = families.get(term.name, 0.0) + term.matrix * effect
    base = constant + total.sum(axis=1) * (mix @ mean)
    return Explained(families, np.sum(mix * f, axis=1) + constant, base, label, rival)


def explain_centers(terms: Sequence[Term], intercept: NDArray, calibration: Calibration | None) -> Explained:
    """Shares of a model ``sum over terms of matrix @ coef.T + intercept``, linear in comparisons with centers."""
    f = np.sum([term.matrix @ term.coef.T for term in terms], axis=0) + intercept
    mix, constant, label, rival = contrast(f, calibration)
    base = constant + np.sum(mix * np.broadcast_to(intercept, f.shape), axis=1)
    families: dict[str, NDArray] = {}
    for term in terms:
        coef, mean = mix @ term.coef, term.matrix.mean(axis=1)
        families[term.name] = families.get(term.name, 0.0) + (term.matrix - mean[:, None]) * coef
        base = base + mean * coef.sum(axis=1)
    return Explained(families, np.sum(mix * f, axis=1) + constant, base, label, rival)


def stack_shares(
    stack: Stack | DirectedStack,
    train: Block,
    new: Block,
    classes: tuple[NDArray, NDArray] | None = None,
    directed: NDArray | None = None,
) -> Explained:
    """What every training item contributes to a stack's prediction of new rows; `train` is what it was fitted on.

    `directed` are the weights of the targets in the further members of a directed stack.

    All members but ``"class_distances"`` are linear in the targets, and these are sums over the nearest items of every
    class. A stack of regressors adds its members, so shares add up as they are. A stack of classifiers does not: its
    log-odds L of ``classes[0]`` against ``classes[1]`` are a smooth function of the members' scores. Along the straight
    line from the bases to the scores, a member's score changes L by the integral of its derivative, which is split
    among items as the score itself is (integrated gradients): the shares add up to L minus L of the bases, and are
    those of the score where L is linear.
    """
    members, average = stack.members, stack.average
    weights = average.weights if new.own_rows is not None else average.weights_without_own
    parts = _item_weights(members, train, new)
    mean = np.average(members.targets, axis=0, weights=members.weight)
    for number, matrix in enumerate([] if directed is None else directed):
        parts[len(members.settings) + number] = (matrix, members.targets - mean)
    totals, bases = np.zeros((2, len(weights), len(new.similarities), members.targets.shape[1]))
    for position, (matrix, effects) in parts.items():
        totals[position] = matrix @ effects
        if average.settings[position].family != "class_distances":
            bases[position] = matrix.sum(axis=1, keepdims=True) * mean
    if classes is None:
        rate = np.broadcast_to(weights[:, None, None], totals.shape)
        score, base = (np.tensordot(weights, part, 1)[:, 0] for part in (totals + bases, bases))
    else:
        rate, score, base = _path(stack, new.own_rows is not None, totals, bases, weights, classes)
    families: dict[str, NDArray] = {}
    for position, (matrix, effects) in parts.items():
        family = average.settings[position].family
        families[family] = families.get(family, 0.0) + matrix * (rate[position] @ effects.T)
    label, rival = (None, None) if classes is None else classes
    return Explained(families, score, base, label, rival)


def _item_weights(members: Members, train: Block, new: Block) -> dict[int, tuple[NDArray, NDArray]]:
    """By member: the weight (m, n) of every training item, and what it weighs (n, q)."""
    known = [i for i, setting in enumerate(members.settings) if setting.family != "class_distances"]
    chosen = [members.settings[i] for i in known]
    deviations = members.targets - np.average(members.targets, axis=0, weights=members.weight)
    linear = fit_members(train, np.eye(len(deviations)), chosen, members.weight)
    parts = {i: (matrix, deviations) for i, matrix in zip(known, member_scores(linear, new))}
    mine = (members.targets > 0.0).astype(float)
    for i, setting in enumerate(members.settings):
        if setting.family == "class_distances" and new.own_rows is not None:
            distances = new.distances() / np.sqrt(members.unit)
            away = nearest_of_classes(distances, members.targets, int(setting.parameter), setting.log)
            parts[i] = (away, 1.0 / mine.shape[1] - mine)
    return parts


def _path(
    stack: Stack | DirectedStack,
    known: bool,
    totals: NDArray,
    bases: NDArray,
    weights: NDArray,
    classes: tuple[NDArray, NDArray],
) -> tuple[NDArray, NDArray, NDArray]:
    """Integrated derivatives (n_members, m, q) of the log-odds in the scores, their end and their start (m,)."""
    average = stack.average
    calibration = average.calibration
    assert calibration is not None
    temperature, rows = average.temperatures[0 if known else 1], np.arange(totals.shape[1])
    slope = np.asarray(calibration.slope)[:, None, None]

    def proba(t: float) -> tuple[NDArray, NDArray]:
        each = softmax(calibration.logits(bases + t * totals), axis=-1)
        return each, np.maximum(np.tensordot(weights, each, 1), np.finfo(float).tiny)

    def odds(t: float) -> NDArray:
        logs = np.log(proba(t)[1])
        return temperature * (logs[rows, classes[0]] - logs[rows, classes[1]])

    rate = np.zeros(totals.shape)
    for panel in range(_PANELS):
        for node, weight in zip(_NODES, _NODE_WEIGHTS):
            each, mean = proba((panel + (node + 1.0) / 2.0) / _PANELS)
            for label, sign in zip(classes, (1.0, -1.0)):
                mine = each[:, rows, label]  # (n_members, m)
                inside = -mine[:, :, None] * each
                inside[:, rows, label] += mine
                factor = sign * weights[:, None] / mean[rows, label] * (temperature * weight / 2.0 / _PANELS)
                rate += factor[:, :, None] * inside
    return rate * slope, odds(1.0), odds(0.0)

"""Contributions of training items to the predictions of a stack, in shares that add up to the score.

The module `core.reasons` defines shares of a single model; here they are those of an average of calibrated members.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from mercerless.core.averaging_old import Mixture
from mercerless.core.reasons import Explained
from mercerless.similarity.families import SplitScore
from mercerless.similarity.stack import Average, Stack


def stack_shares(
    stack: Stack,
    parts: Sequence[SplitScore | None],
    diagonal_known: bool,
    classes: tuple[NDArray, NDArray] | None = None,
) -> Explained:
    """Contribution of every training item to a stack's prediction of new rows, from its members' split scores.

    A stack of regressors adds its members, so shares add up as they are. A stack of classifiers does not: its
    log-odds L of ``classes[0]`` against ``classes[1]`` are a smooth function of the members' scores. Along the straight
    line from the bases to the scores, a member's score changes L by the integral of its derivative, which is split
    among items as the score itself is (integrated gradients): the shares add up to ``L(scores) - L(bases)``, and
    are those of the score if L is linear.
    """
    average = stack.average
    weights = average.weights if diagonal_known else average.weights_without_diag
    shape = next(part.base.shape for part in parts if part is not None)
    bases = np.zeros((len(parts), *shape))
    totals = np.zeros((len(parts), *shape))
    for position, part in enumerate(parts):
        if part is not None:
            bases[position] = part.base
            totals[position] = part.weights @ part.effects
    if classes is None:
        rate = np.broadcast_to(weights[:, None, None], totals.shape)
        score = np.tensordot(weights, totals + bases, 1)[:, 0]
        base = np.tensordot(weights, bases, 1)[:, 0]
        label = rival = None
    else:
        rate, score, base = _path(average, diagonal_known, totals, bases, weights, classes)
        label, rival = classes
    families: dict[str, NDArray] = {}
    for position, part in enumerate(parts):
        if part is not None:
            family = average.settings[position].family
            shares = part.weights * (rate[position] @ part.effects.T)
            families[family] = families.get(family, 0.0) + shares
    return Explained(families, score, base, label, rival)


def mixed_shares(shares: Mapping[str, Explained], mixture: Mixture) -> Explained:
    """Shares of an average of several similarities' stacks, by similarity.

    Numbers are averaged, and of classes logarithms of probabilities: log-odds are the same average of log-odds.
    """
    factors = mixture.weights * (1.0 if mixture.temperature is None else mixture.temperature)
    pairs = [
        (name, factor, explained) for (name, explained), factor in zip(shares.items(), factors)
    ]
    families = {
        name: factor * np.sum(list(explained.families.values()), axis=0)
        for name, factor, explained in pairs
    }
    score, base = (
        np.sum([f * getattr(explained, of) for _, f, explained in pairs], axis=0)
        for of in ("score", "base")
    )
    return pairs[0][2]._replace(families=families, score=score, base=base)


def _path(
    average: Average,
    known: bool,
    totals: NDArray,
    bases: NDArray,
    weights: NDArray,
    classes: tuple[NDArray, NDArray],
    n_panels: int = 8,
    n_nodes: int = 16,
) -> tuple[NDArray, NDArray, NDArray]:
    """Integrated derivatives (n_members, m, q) of the log-odds in the scores, their end and their start (m,).

    The integral is Gauss and Legendre's in panels of equal length.
    """
    nodes, node_weights = np.polynomial.legendre.leggauss(n_nodes)
    calibration = average.calibration
    assert calibration is not None
    temperature = average.temperatures[0 if known else 1]
    rows = np.arange(totals.shape[1])
    slope = np.asarray(calibration.slope)[:, None, None]

    def proba(t: float) -> tuple[NDArray, NDArray]:
        each = softmax(calibration.logits(bases + t * totals), axis=-1)
        return each, np.maximum(np.tensordot(weights, each, 1), np.finfo(float).tiny)

    def odds(t: float) -> NDArray:
        logs = np.log(proba(t)[1])
        return temperature * (logs[rows, classes[0]] - logs[rows, classes[1]])

    rate = np.zeros(totals.shape)
    for panel in range(n_panels):
        for node, weight in zip(nodes, node_weights):
            each, mean = proba((panel + (node + 1.0) / 2.0) / n_panels)
            length = temperature * weight / 2.0 / n_panels
            for label, sign in zip(classes, (1.0, -1.0)):
                mine = each[:, rows, label]  # (n_members, m)
                inside = -mine[:, :, None] * each
                inside[:, rows, label] += mine
                factor = sign * weights[:, None] / mean[rows, label] * length
                rate += factor[:, :, None] * inside
    return rate * slope, odds(1.0), odds(0.0)

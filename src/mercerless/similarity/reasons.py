"""Why: what every training item contributed to a prediction, in shares that add up to the score.

Ridge regressions and neighbors are linear in the targets: ``f(x) = sum_j h_j(x) y_j`` with ``sum_j h_j = 1``, so that
``f(x) = mean + sum_j h_j(x) (y_j - mean)``. The share of item j is what its target, being other than the mean, adds to
the score; the base is what would be said if all items had the mean target. A model with few centers whose targets are
many rows' (local bandwidths, landmarks) is linear in comparisons instead, ``f(x) = sum_j c_j k(x, s_j) + b``: there the
share of a center is ``c_j (k(x, s_j) - mean_i k(x, s_i))``, so that a constant added to the kernel changes no share.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from mercerless.core.averaging import Mixture
from mercerless.core.reasons import Explained
from mercerless.similarity.directions import DirectedStack
from mercerless.similarity.landmarks import (
    Frame,
    LandmarkMembers,
    LandmarkStack,
    LandmarkView,
    landmark_scores,
)
from mercerless.similarity.solver import nearest_of_classes, neighbor_means
from mercerless.similarity.stack import (
    LOGISTIC,
    Average,
    Block,
    Members,
    Setting,
    Stack,
    fit_members,
    member_scores,
)

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
_PANELS = 8


class SplitScores(NamedTuple):
    """Members' scores of some new rows, split among training items."""

    # by member: weights (m, n) of the items, and what they weigh (n, q)
    weights: dict[int, tuple[NDArray, NDArray]]
    bases: NDArray  # (n_members, m, q): what is left of the scores


def stack_shares(
    stack: Stack | LandmarkStack | DirectedStack,
    split: SplitScores,
    diagonal_known: bool,
    classes: tuple[NDArray, NDArray] | None = None,
) -> Explained:
    """What every training item contributes to a stack's prediction of new rows, from its split scores.

    A stack of regressors adds its members, so shares add up as they are. A stack of classifiers does not: its
    log-odds L of ``classes[0]`` against ``classes[1]`` are a smooth function of the members' scores. Along the straight
    line from the bases to the scores, a member's score changes L by the integral of its derivative, which is split
    among items as the score itself is (integrated gradients): the shares add up to ``L(scores) - L(bases)``, and
    are those of the score where L is linear.
    """
    average = stack.average
    weights = average.weights if diagonal_known else average.weights_without_diag
    totals = np.zeros(split.bases.shape)
    for position, (matrix, effects) in split.weights.items():
        totals[position] = matrix @ effects
    if classes is None:
        rate = np.broadcast_to(weights[:, None, None], totals.shape)
        score, base = (
            np.tensordot(weights, values, 1)[:, 0] for values in (totals + split.bases, split.bases)
        )
    else:
        rate, score, base = _path(average, diagonal_known, totals, split.bases, weights, classes)
    families: dict[str, NDArray] = {}
    for position, (matrix, effects) in split.weights.items():
        family = average.settings[position].family
        families[family] = families.get(family, 0.0) + matrix * (rate[position] @ effects.T)
    label, rival = (None, None) if classes is None else classes
    return Explained(families, score, base, label, rival)


def split_by_items(
    stack: Stack | DirectedStack, train: Block, new: Block, directed: NDArray | None = None
) -> SplitScores:
    """Scores of a stack on all comparisons; `train` is what it was fitted on, `directed` further members' weights.

    Members are linear in the targets, or sums over nearest items or comparisons whose rest is the base.
    """
    members = stack.members
    weights = _item_weights(members, train, new)
    mean = np.average(members.targets, axis=0, weights=members.weight)
    for number, matrix in enumerate([] if directed is None else directed):
        weights[len(members.settings) + number] = (matrix, members.targets - mean)
    bases = np.zeros((len(stack.average.settings), len(new.similarities), members.targets.shape[1]))
    scores = member_scores(members, new)
    for position, (matrix, effects) in weights.items():
        family = stack.average.settings[position].family
        if family in LOGISTIC:
            bases[position] = scores[position] - matrix @ effects
        elif family != "class_distances":
            bases[position] = matrix.sum(axis=1, keepdims=True) * mean
    return SplitScores(weights, bases)


def _item_weights(members: Members, train: Block, new: Block) -> dict[int, tuple[NDArray, NDArray]]:
    """By member: the weight (m, n) of every training item, and what it weighs (n, q)."""
    others = ("class_distances", *LOGISTIC)
    known = [i for i, setting in enumerate(members.settings) if setting.family not in others]
    chosen = [members.settings[i] for i in known]
    deviations = members.targets - np.average(members.targets, axis=0, weights=members.weight)
    linear = fit_members(train, np.eye(len(deviations)), chosen, members.weight)
    weights = {i: (matrix, deviations) for i, matrix in zip(known, member_scores(linear, new))}
    for i, setting in enumerate(members.settings):
        if setting.family == "class_distances" and new.row_diagonal is not None:
            distances = new.distances() / np.sqrt(members.unit)
            weights[i] = _class_weights(setting, distances, members.targets)
    for view in members.views:
        if view.kind == "logistic_similarities" or (
            view.kind == "logistic_distances" and new.row_diagonal is not None
        ):
            features = new.similarities if view.kind == "logistic_similarities" else new.distances()
            features = features - features.mean(axis=1, keepdims=True)
            weights |= {
                int(i): (features, view.coef[:, number]) for number, i in enumerate(view.positions)
            }
    return weights


def _class_weights(
    setting: Setting, distances: NDArray, targets: NDArray
) -> tuple[NDArray, NDArray]:
    """What the nearest items of every class add to the scores by the distances to classes."""
    mine = (targets > 0.0).astype(float)
    return nearest_of_classes(
        distances, targets, int(setting.parameter), setting.log
    ), 1.0 / mine.shape[1] - mine


def split_by_landmarks(
    stack: LandmarkStack, landmarks: NDArray, points: NDArray, items: NDArray, new: Block
) -> SplitScores:
    """The scores of a stack on comparisons with landmarks: sums over these, and over the points at which Gaussians are.

    Training rows of landmarks (-1 where they are none), of points, and those to be named, ascending. A center adds
    its coefficient times what it is nearer than the mean of all centers, a voter its target.
    """
    members = stack.members
    weights: dict[int, tuple[NDArray, NDArray]] = {}
    for view in members.views:
        if new.row_diagonal is None and view.kind in ("features", "gaussian", "profiles"):
            continue
        matrix, coef, centers = _center_weights(members.frame, view, new, landmarks, points)
        for number, position in enumerate(view.positions.tolist()):
            weights[position] = _placed(matrix, coef[:, number], centers, items)
    for position, (matrix, effects, voters) in _vote_weights(members, new).items():
        centers = (
            points[voters]
            if members.settings[position].family == "profile_neighbors"
            else landmarks[voters]
        )
        weights[position] = _placed(matrix, effects, centers, items)
    bases = landmark_scores(members, new)
    for position, (matrix, effects) in weights.items():
        bases[position] -= matrix @ effects
    return SplitScores(weights, bases)


def _center_weights(
    frame: Frame, view: LandmarkView, new: Block, landmarks: NDArray, points: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    """Features (m, p) of a view less their mean over the centers, coefficients (p, n_settings, q), and the centers."""
    if view.kind == "similarity" and frame.spectrum is not None:
        similarities = new.similarities[:, frame.spectrum.columns]
        matrix = similarities - similarities.mean(axis=1, keepdims=True) - frame.spectrum.shift
        return (
            matrix,
            np.tensordot(frame.spectrum.vectors, view.coef, 1),
            landmarks[frame.spectrum.columns],
        )
    matrix = frame.features(frame.base(new, view.kind), view.kind, view.width)
    matrix = matrix - matrix.mean(axis=1, keepdims=True)
    if view.kind in frame.points:
        return matrix, view.coef, points[frame.span(view.kind, view.width).columns]
    return matrix, view.coef, landmarks


def _vote_weights(
    members: LandmarkMembers, new: Block
) -> dict[int, tuple[NDArray, NDArray, NDArray]]:
    """By member that votes: weights of the voters (m, v), what they weigh (v, q), and which columns they are."""
    weights = {}
    near = members.landmarks
    points = members.points
    for position, setting in enumerate(members.settings):
        voters = points if setting.family == "profile_neighbors" else near
        if not len(voters.columns) or (new.row_diagonal is None and setting.family != "neighbors"):
            continue
        if setting.family == "class_distances":
            distances = new.distances()[:, near.columns] / np.sqrt(members.frame.unit)
            weights[position] = (*_class_weights(setting, distances, near.targets), near.columns)
        elif setting.family in ("neighbors", "profile_neighbors"):
            ranks = members.diagonal - 2.0 * new.similarities
            if setting.family == "profile_neighbors":
                ranks = members.frame.base(new, "profiles")
            count = int(setting.parameter)
            eye = np.eye(len(voters.columns))
            matrix = neighbor_means(ranks[:, voters.columns], eye, [count], voters.weight)[count]
            mean = np.average(voters.targets, axis=0, weights=voters.weight)
            weights[position] = (matrix, voters.targets - mean, voters.columns)
    return weights


def _placed(
    matrix: NDArray, effects: NDArray, centers: NDArray, items: NDArray
) -> tuple[NDArray, NDArray]:
    """Weights and what they weigh in the columns of the items; centers that are no training rows are left out."""
    known = centers >= 0
    places = np.searchsorted(items, centers[known])
    wide = np.zeros((len(matrix), len(items)))
    of_items = np.zeros((len(items), effects.shape[1]))
    wide[:, places] = matrix[:, known]
    of_items[places] = effects[known]
    return wide, of_items


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
) -> tuple[NDArray, NDArray, NDArray]:
    """Integrated derivatives (n_members, m, q) of the log-odds in the scores, their end and their start (m,)."""
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
    for panel in range(_PANELS):
        for node, weight in zip(_NODES, _NODE_WEIGHTS):
            each, mean = proba((panel + (node + 1.0) / 2.0) / _PANELS)
            for label, sign in zip(classes, (1.0, -1.0)):
                mine = each[:, rows, label]  # (n_members, m)
                inside = -mine[:, :, None] * each
                inside[:, rows, label] += mine
                factor = (
                    sign
                    * weights[:, None]
                    / mean[rows, label]
                    * (temperature * weight / 2.0 / _PANELS)
                )
                rate += factor[:, :, None] * inside
    return rate * slope, odds(1.0), odds(0.0)

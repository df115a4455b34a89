"""The training items for and against the predictions of an average, in shares that add up to the score."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import is_classifier
from sklearn.utils.metaestimators import available_if

from mercerless.core.averaging import Average
from mercerless.core.basis import align_train, is_precomputed
from mercerless.core.memory import check_memory
from mercerless.core.reasons import Explained, Reasons, ReasonsMixin, two_likeliest
from mercerless.core.validation import column_labels
from mercerless.similarity.families import ClassDistances, Family
from mercerless.similarity.fit import FittedFamilies

#: Panels of equal length, and nodes in each, of the integral along the path of the scores.
N_PANELS, N_NODES = 8, 16


class Split(NamedTuple):
    """Scores of one setting split among training rows: ``base + weights @ effects``."""

    family: str
    weights: NDArray  # (m, n)
    effects: NDArray  # (n, q)
    base: NDArray  # (q,), or (m, q)


class StackReasonsMixin(ReasonsMixin):
    """Reasons of an average of families on blocks of comparisons."""

    families_: FittedFamilies
    _weight: NDArray
    _parts: Any
    _compared: Any
    _with_items: Any
    _training_blocks_of_several: Any

    @available_if(lambda self: "unit_" not in vars(self))  # dense comparisons
    def explain(self, X: Any, k: int = 5, **new: Any) -> Reasons:
        """The training items for and against each prediction, with shares that add up to its score.

        Parameters
        ----------
        X : array-like or sequence of items
            New items, as for `predict`.
        k : int, default=5
            How many training items to name on either side.
        **new : dict
            Further arguments of `predict`, such as ``reverse``, and ``train``: X of the fit, if the model does not keep
            all training items (with landmarks or a precomputed matrix).

        Returns
        -------
        Reasons
            Scores, items and shares: ``score = base + shares.sum(axis=1) + rest``; ``text(i)`` describes one in words.
        """
        return super().explain(X, k, **new)

    def _explain_blocks(
        self, X: Any, diag: Any = None, reverse: ArrayLike | None = None, train: Any = None
    ) -> Iterator[Explained]:
        known = self._compared_again(train)
        n = len(next(iter(known.values())))
        n_members = len(self.families_.settings)
        targets = self.families_.targets.Y
        prepared = [
            (name, family, solved_for_rows(family, known[name], targets))
            for name, family in self.families_.members
        ]
        for new in self._compared(X, diag, reverse):
            m = len(next(iter(new.values())))
            need = 16.0 * m * n * n_members
            check_memory(need, f"The shares of {n} items", remedy="explain fewer items at once")
            splits = []
            for name, fitted, linear in prepared:
                of_family = split_scores(fitted, linear, targets, known[name], new[name])
                label = f"{name}: {fitted.name}" if len(known) > 1 else fitted.name
                splits += [split._replace(family=label) for split in of_family]
            classes = two_likeliest(self.families_(new)) if is_classifier(self) else None
            yield shares_of(self.families_, splits, classes)

    def _compared_again(self, train: Any) -> Mapping[str, Any]:
        """The training blocks: of the items that the model keeps, or of `train`."""
        weight = self._weight
        parts: dict[str, Any] = {"": self} if self._parts is None else self._parts
        keeps_all = all(
            part.landmarks_ is None and not is_precomputed(part.kernel) for part in parts.values()
        )
        if train is None and not keeps_all:
            raise ValueError(
                "The model does not keep all training items; pass X of the fit as train."
            )
        if train is not None and keeps_all:
            raise ValueError("train is not needed, as this model keeps its items; leave it out.")
        given: Any = [(part, part.X_fit_) for part in parts.values()]
        if keeps_all:
            weight = weight[weight > 0.0]
        elif self._parts is None:
            given = [(self, align_train(train, column_labels(self)))]
        else:
            given = self._with_items(parts, train)
        again = {name: type(part)(**part.get_params(deep=False)) for name, part in parts.items()}
        if self._parts is None:
            return again[""]._training_blocks(given[0][1], weight)[0]
        items = dict(zip(parts, (one for _, one in given)))
        return self._training_blocks_of_several(again, items, weight)

    def _explained_items(self) -> NDArray:
        return np.flatnonzero(self._weight)


def solved_for_rows(family: Family, known: Any, Y: NDArray) -> Family | None:
    """The family solved for every training row by itself, if it is linear in the targets."""
    if isinstance(family, ClassDistances):
        return None
    return family.fit(known, Y, np.eye(len(Y), dtype=known.weight.dtype))


def split_scores(
    fitted: Family, linear: Family | None, Y: NDArray, known: Any, new: Any
) -> list[Split]:
    """The scores of every setting of a family, split among training rows; rounding is part of the base."""
    if linear is None:
        assert isinstance(fitted, ClassDistances)
        return split_class_distances(fitted, Y, new)
    effects = Y - np.average(Y, axis=0, weights=known.weight)
    return [
        Split(fitted.name, weights, effects, scores - weights @ effects)
        for weights, scores in zip(linear.scores(new), fitted.scores(new))
    ]


def split_class_distances(family: ClassDistances, Y: NDArray, new: Any) -> list[Split]:
    """Every class's distance as that of its nearest items, which count by how much nearer than the median they are."""
    n_classes = Y.shape[1]
    effects = (Y > 0.0) - 1.0 / n_classes
    splits = []
    weights = np.zeros((len(family.settings), len(new), len(Y)))
    bases = np.zeros((len(family.settings), len(new), n_classes))
    for label in range(n_classes):
        rows, distances, shares = family.nearest_of(new, label)
        for number, (share, (_, is_log)) in enumerate(zip(shares, family.settings)):
            nearer = 1.0 - distances
            if is_log:
                mean = (share * distances).sum(axis=1, keepdims=True)
                nearer = -np.log(np.maximum(mean, 1e-3)) * np.ones_like(distances)
            if rows.min(initial=0) >= 0:
                np.put_along_axis(weights[number], rows, share * nearer, axis=1)
            else:  # no center is of the class
                bases[number] += nearer * (np.arange(n_classes) == label) - nearer / n_classes
    for number in range(len(family.settings)):
        splits.append(Split(family.name, weights[number], effects, bases[number]))
    return splits


def shares_of(fitted: FittedFamilies, splits: list[Split], classes: Any) -> Explained:
    """Contribution of every training row to an average's predictions, from its members' split scores.

    An average of regressors adds its members, so shares add up as they are. An average of classifiers does not: its
    log-odds L of ``classes[0]`` against ``classes[1]`` are a smooth function of the members' scores. Along the straight
    line from the bases to the scores, a member's score changes L by the integral of its derivative, which is split
    among rows as the score itself is (integrated gradients): the shares add up to ``L(scores) - L(bases)``, and
    are those of the score if L is linear.
    """
    totals = np.stack([split.weights @ split.effects for split in splits])
    bases = np.stack([np.broadcast_to(split.base, totals.shape[1:]) for split in splits])
    weights = fitted.average.weights
    label = rival = None
    if classes is None:
        rate = np.broadcast_to(weights[:, None, None] * fitted.targets.scale, totals.shape)
        ends = [
            fitted.targets.in_units(np.tensordot(weights, values, 1))
            for values in (totals + bases, bases)
        ]
    else:
        rate, *ends = path_of_scores(fitted.average, totals, bases, classes)
        label, rival = classes
    families: dict[str, NDArray] = {}
    for split, of_member in zip(splits, rate):
        shares = split.weights * (of_member @ split.effects.T)
        families[split.family] = families.get(split.family, 0.0) + shares
    score, base = ends
    return Explained(families, score, base, label, rival)


def path_of_scores(
    average: Average, totals: NDArray, bases: NDArray, classes: tuple[NDArray, NDArray]
) -> tuple[NDArray, NDArray, NDArray]:
    """Integrated derivatives (n_members, m, q) of the log-odds in the scores, their end and their start (m,).

    The integral is Gauss and Legendre's in panels of equal length.
    """
    calibration = average.calibration
    assert calibration is not None
    weights = average.weights
    rows = np.arange(totals.shape[1])
    slope = np.asarray(calibration.slope)[:, None, None]

    def proba(t: float) -> tuple[NDArray, NDArray]:
        each = softmax(calibration.logits(bases + t * totals), axis=-1)
        return each, np.maximum(np.tensordot(weights, each, 1), np.finfo(float).tiny)

    def odds(t: float) -> NDArray:
        logs = np.log(proba(t)[1])
        return average.temperature * (logs[rows, classes[0]] - logs[rows, classes[1]])

    nodes, node_weights = np.polynomial.legendre.leggauss(N_NODES)
    rate = np.zeros(totals.shape)
    for panel in range(N_PANELS):
        for node, weight in zip(nodes, node_weights):
            each, mean = proba((panel + (node + 1.0) / 2.0) / N_PANELS)
            length = average.temperature * weight / 2.0 / N_PANELS
            for label, sign in zip(classes, (1.0, -1.0)):
                of_label = each[:, rows, label]  # (n_members, m)
                inside = -of_label[:, :, None] * each
                inside[:, rows, label] += of_label
                factor = sign * weights[:, None] / mean[rows, label] * length
                rate += factor[:, :, None] * inside
    return rate * slope, odds(1.0), odds(0.0)

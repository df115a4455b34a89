"""Explain predictions by training items: the share of each in the score; shares add up to the score.

Ridge regressions and neighbors are linear in the targets: ``f(x) = sum_j h_j(x) y_j`` with ``sum_j h_j = 1``, so that
``f(x) = mean + sum_j h_j(x) (y_j - mean)``. The share of item j is what the difference of its target from the mean adds
to the score; the base is the score if all items had the mean target. Models with fewer centers than rows (local
bandwidths, landmarks) are linear in comparisons with the centers, ``f(x) = sum_j c_j k(x, s_j) + b``: the share of a
center is ``c_j (k(x, s_j) - mean_i k(x, s_i))``, so that a constant added to the kernel changes no share.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from mercerless.core.calibration import Calibration
from mercerless.core.validation import check_number


class Reasons(NamedTuple):
    """Training items for and against predictions: ``score = base + sum of the shares + rest``.

    Attributes
    ----------
    score : ndarray of shape (n,)
        What is explained: the prediction of a regressor; of a classifier the log-odds of the predicted class against
        the second most probable.
    base : ndarray of shape (n,)
        The score without the contribution of any training item.
    items : ndarray of int of shape (n, 2 k)
        Training items: the k that contribute most to the prediction (to a larger number), then the k that contribute
        most against it; -1 if there are fewer.
    shares : ndarray of shape (n, 2 k)
        Their shares of the score, 0 if there is no item.
    rest : ndarray of shape (n,)
        The sum of the shares of all other training items.
    families : dict of str to ndarray of shape (n,)
        The sum of all shares by the part of the model they come from: families of an average, directions, kernel forms.
    label, rival : ndarray of shape (n,) or None
        The predicted class and the second most probable one; None for numbers.
    given : ndarray of shape (n, 2 k) or None
        Labels or numbers of `items`, if the model keeps them.
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
            Several lines.
        """
        score, base, rest = (float(values[index]) for values in (self.score, self.base, self.rest))
        if self.label is None or self.rival is None:
            head = f"Predicted {score:.4g}, of which {base:.4g} without any item"
        else:
            odds = f"log-odds {score:+.2f}, of which {base:+.2f} without any item"
            head = f"{self.label[index]} rather than {self.rival[index]} ({odds})"
        lines = [head]
        k = self.items.shape[1] // 2
        words = ("for", "against") if self.label is not None else ("up", "down")
        for place in np.flatnonzero(self.items[index] >= 0).tolist():
            share = self.shares[index, place]
            lines.append(f"  {words[place >= k]:8}{share:+.3g}  {self.name(index, place, names)}")
        return "\n".join([*lines, f"  {'others':8}{rest:+.3g}"])

    def name(self, index: int, place: int, names: Sequence[Any] | None = None) -> str:
        """Name of one of the items of a prediction, with its label or number.

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
        name = f"item {item}" if names is None else str(names[item])
        given = None if self.given is None else self.given[index, place]
        if given is None:
            return name
        return f"{name} ({given:.4g})" if isinstance(given, float) else f"{name} ({given})"


def pick(shares: NDArray, k: int) -> tuple[NDArray, NDArray, NDArray]:
    """The k largest positive and the k most negative shares of every row: items, shares, and the sum of the others."""
    k = min(k, shares.shape[1])
    order = np.argsort(-shares, axis=1, kind="stable")
    supporting = order[:, :k]
    opposing = order[:, ::-1][:, :k]
    items = np.hstack([supporting, opposing])
    values = np.take_along_axis(shares, items, axis=1)

    has_right_sign = np.hstack([values[:, :k] > 0.0, values[:, k:] < 0.0])
    items = np.where(has_right_sign, items, -1)
    values = np.where(has_right_sign, values, 0.0)
    remainder = shares.sum(axis=1) - values.sum(axis=1)
    return items, values, remainder


class Term(NamedTuple):
    """A named part of a model at m new items: factors of the targets, or of coefficients."""

    name: str
    matrix: NDArray  # (m, n)
    coef: NDArray = np.zeros((0, 0))  # (n_outputs, n), if the part is linear in comparisons


class Explained(NamedTuple):
    """Shares of the training items in the scores of m new items."""

    families: dict[str, NDArray]  # of (m, n)
    score: NDArray  # (m,)
    base: NDArray  # (m,)
    label: NDArray | None = None  # (m,), numbers of classes
    rival: NDArray | None = None
    relevance: NDArray | None = None  # (m, n_features)


def explain_centers(
    terms: Sequence[Term], intercept: NDArray, calibration: Calibration | None
) -> Explained:
    """Shares of a model ``sum over terms of matrix @ coef.T + intercept``, linear in comparisons with centers.

    The explained score is ``sum_q mix_q f_q + constant``: a number, or the log-odds of the two likeliest classes; the
    one output f of two classes counts as -f / 2 and f / 2.
    """
    f = np.sum([term.matrix @ term.coef.T for term in terms], axis=0) + intercept
    m, q = f.shape
    mix = np.ones((m, 1))
    constant = np.zeros(m)
    label = rival = None
    if calibration is not None:
        n_classes = len(calibration.bias)
        if n_classes < 2:
            raise ValueError("The training items have one class only; explain needs at least two.")
        to_scores = np.eye(n_classes) if q > 1 else np.array([[-0.5, 0.5]])
        label, rival = two_likeliest(calibration.logits(f @ to_scores))
        contrast = np.eye(n_classes)[label] - np.eye(n_classes)[rival]
        mix = calibration.slope * contrast @ to_scores.T
        constant = contrast @ calibration.bias
    elif q > 1:
        raise ValueError("explain needs a model of one output; fit one model per output.")
    base = constant + np.sum(mix * intercept, axis=1)
    families: dict[str, NDArray] = {}
    for term in terms:
        coef = mix @ term.coef
        mean = term.matrix.mean(axis=1)
        families[term.name] = families.get(term.name, 0.0) + (term.matrix - mean[:, None]) * coef
        base = base + mean * coef.sum(axis=1)
    return Explained(families, np.sum(mix * f, axis=1) + constant, base, label, rival)


class ReasonsMixin:
    """The method `explain`, for estimators with `_explain_blocks`."""

    classes_: NDArray
    kernel_: Any
    n_features_in_: int
    X_fit_: Any
    _basis_rows: NDArray  # the training item of every column of the comparisons

    def explain(self, X: Any, k: int = 5, **new: Any) -> Reasons:
        """The training items for and against each prediction, with shares that add up to its score.

        Parameters
        ----------
        X : array-like or sequence of items
            New items, as for `predict`.
        k : int, default=5
            How many training items to name on either side.
        **new : dict
            Further arguments of `predict`, such as ``reverse``. For a precomputed kernel also ``train``, the matrix the
            model was fitted on, because the model does not keep it.

        Returns
        -------
        Reasons
            Scores, items and shares: ``score = base + shares.sum(axis=1) + rest``; ``text(i)`` describes one in words.
        """
        check_is_fitted(self)
        check_number("k", k, whole=True)
        blocks = self._explain_blocks(X, **new)
        parts = zip(*(self._reasons_of(block, int(k)) for block in blocks))
        return Reasons(*map(_joined, parts))

    def _reasons_of(self, block: Explained, k: int) -> Reasons:
        """The reasons of a block of predictions."""
        items, shares, rest = pick(np.sum(list(block.families.values()), axis=0), k)
        items = np.append(self._explained_items(), -1)[items]
        label, rival = block.label, block.rival
        if is_classifier(self):
            label, rival = self.classes_[label], self.classes_[rival]
        sums = {name: each.sum(axis=1) for name, each in block.families.items()}
        given = self._given(items)
        return Reasons(
            block.score, block.base, items, shares, rest, sums, label, rival, given, block.relevance
        )

    @abstractmethod
    def _explain_blocks(self, *given: Any, **new: Any) -> Iterator[Explained]:
        """Shares of training items in blocks of new items."""

    def _explained_items(self) -> NDArray:
        """The training item of every column of the shares."""
        return self._basis_rows

    def _given(self, items: NDArray) -> NDArray | None:
        """Targets of training items; None for those that the model does not keep."""
        held_out = getattr(self, "out_of_fold_", None)
        if held_out is None or held_out.target.ndim > 1:
            return None
        targets = held_out.target
        if is_classifier(self):
            targets = self.classes_[targets]
        n = max(items.max(), held_out.rows.max()) + 2  # the last, item -1, has no target
        target_of_item = np.full(n, None, dtype=object)
        target_of_item[held_out.rows] = targets
        return target_of_item[items]


def two_likeliest(values: NDArray) -> tuple[NDArray, NDArray]:
    """The most and the second most probable class of every row."""
    order = np.argsort(-values, axis=1, kind="stable")
    return order[:, 0], order[:, 1]


def _joined(values: Sequence) -> Any:
    """Blocks as one array, or a dict of such; None if the blocks are None."""
    if isinstance(values[0], dict):
        return {name: _joined([each[name] for each in values]) for name in values[0]}
    if values[0] is None:
        return None
    return np.concatenate(values)

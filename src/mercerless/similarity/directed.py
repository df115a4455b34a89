"""The automatic learners for directed similarities: what x is to z and what z is to x both count."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_consistent_length

from mercerless.asymmetric.selection import decay_of
from mercerless.core.estimator import matrix_name, same_value
from mercerless.core.reasons import Explained, two_likeliest
from mercerless.core.validation import check_weight, relative_asymmetry
from mercerless.kernels import Precomputed
from mercerless.similarity.base import (
    KernelStack,
    RowProfiles,
    StackClassifier,
    StackRegressor,
    row_profiles,
)
from mercerless.similarity.directions import (
    DirectedRows,
    DirectedStack,
    directed_item_weights,
    fit_directed_stack,
)
from mercerless.similarity.reasons import split_by_items, stack_shares
from mercerless.similarity.stack import Block, without_blocks
from mercerless.spectra import as_similarities, check_kind, square_similarities, symmetrize


class DirectedOneWay(NamedTuple):
    """A stack for new items whose other direction is not given, on the distances between standardized rows."""

    stack: DirectedStack
    decay: tuple[float, float] | None
    profiles: RowProfiles

    def __call__(self, rows: NDArray) -> NDArray:
        """Predictions for new rows."""
        rows = rows.astype(np.float64)
        K = self.profiles.similarities(rows)
        return self.stack(
            Block(K, np.zeros(len(K)), np.zeros(K.shape[1])), DirectedRows(rows, None, self.decay)
        )


def _fit_one_way(fit: Callable, rows: DirectedRows) -> DirectedOneWay:
    """For rows of one direction: the same stack, with the distances between them in place of the mean of both."""
    profiles = row_profiles(rows.out)
    stack = fit(profiles.similarities(), rows._replace(back=None))
    return DirectedOneWay(without_blocks(stack), rows.decay, profiles)


class _Directed(KernelStack):
    """What the classifier and the regressor share."""

    decay_: tuple[float, float] | None
    _directed = True
    _remedy = "use fewer rows or AsymmetricRidge"
    _matrices = (3, 16)
    _row_bytes = 160.0

    def _fit(
        self, X: Any, y: NDArray, sample_weight: ArrayLike | None, encode: Callable
    ) -> dict[str, Any]:
        self._check_parameters()
        weight = check_weight(sample_weight, len(y))
        kernel, items = self._train_items(X, weight)
        check_consistent_length(items, y)
        V, attributes = self._train_matrix(kernel, items, weight, len(y))
        V = V.astype(np.float64)
        kind = check_kind(V, self.input, matrix_name(kernel))
        asymmetry = relative_asymmetry(V)
        K = square_similarities(symmetrize(V), kind)
        rows = DirectedRows(V, V.T, decay_of(V, kind))
        training = self._training(K, y, weight, encode, precomputed=True)
        fit = training.on_folds(fit_directed_stack, is_classifier(self))
        told = self._fit_stack(partial(fit, K, rows), training)
        directed = asymmetry > 1e-8 and isinstance(kernel, Precomputed)
        return (
            attributes
            | told
            | {
                "input_": kind,
                "decay_": rows.decay,
                "diagonal_": same_value(np.diagonal(K)),
                "asymmetry_": asymmetry,
                "one_way_": _fit_one_way(fit, rows) if directed else None,
                "_basis_rows": training.used,
            }
        )

    def _compare(
        self, items: Any, back: NDArray | None, diagonal: NDArray | None
    ) -> tuple[Block, DirectedRows]:
        """Similarities of the mean of both directions, and both as given; one that is not known is taken for both."""
        if isinstance(self.kernel_, Precomputed):
            out = items[:, self.used_].astype(np.float64)
            back = out if back is None else back[:, self.used_].astype(np.float64)
        else:
            out = self.kernel_(items, self.X_fit_).astype(np.float64)
            back = self.kernel_(self.X_fit_, items).T.astype(np.float64)
        means = as_similarities((out + back) / 2.0, self.input_)
        return Block(means, diagonal, self.stack_.members.diagonal), DirectedRows(
            out, back, self.decay_
        )

    def _judge(self, new: tuple[Block, DirectedRows]) -> NDArray:
        return self.stack_(*new)

    def _explain_blocks(  # type: ignore[override]
        self,
        X: Any,
        diag: ArrayLike | None = None,
        reverse: ArrayLike | None = None,
        train: ArrayLike | None = None,
    ) -> Iterator[Explained]:
        self._check_explainable(reverse)
        V = self._train_again(train).astype(np.float64)
        diagonal = self.stack_.members.diagonal
        known = Block(square_similarities(symmetrize(V), self.input_), diagonal, diagonal)
        for items, back, new_diagonal in self._new_blocks(
            X, diag, reverse, 80.0 * len(self.members_)
        ):
            new, rows = self._compare(items, back, new_diagonal)
            classes = two_likeliest(self._judge((new, rows)), self)
            weights = directed_item_weights(
                self.stack_.directed, DirectedRows(V, V.T, self.decay_), rows
            )
            split = split_by_items(self.stack_, known, new, weights)
            explained = stack_shares(self.stack_, split, new.row_diagonal is not None, classes)
            yield self._in_units(explained) if classes is None else explained


class DirectedClassifierCV(StackClassifier, _Directed):
    """The automatic classifier for directed similarities: ``k(x, z)`` and ``k(z, x)`` are two things.

    Citations, attention, divergences, distances of one shape to another: averaging both directions loses what the
    direction says, and ridge regression with the matrix as it is loses the rest. This stack has all learners of
    `SimilarityClassifierCV` on the mean of both directions, and on the row of an item, its similarities out to all
    training items and back from them,

    - ``"row_features"``: ridge regression on the standardized row;
    - ``"row_profiles"``: kernel ridge regression with a Gaussian of standardized rows;
    - ``"row_cosines"``, ``"row_neighbors"``: ridge regression and votes by the cosine of rows;
    - ``"left"``, ``"right"``: the two regressors of `AsymmetricRidge`.

    All are calibrated and weighed out of fold, as there. Those on rows take part only where the average with them is
    better out of fold by a standard error than the average without.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        ``"precomputed"``, where X is the matrix ``k(x_i, x_j)``, a kernel, or a function of two items, called in
        both directions.
    input : {"auto", "similarity", "distance", "dissimilarity"}, default="auto"
        What the matrix holds. ``"auto"`` asks `mercerless.spectra.matrix_kind`. Where a learner needs affinities,
        distances d become ``exp(-d / median)``.
    cv, n_jobs, random_state : object
        As for `SimilarityClassifierCV`.

    Attributes
    ----------
    members_ : tuple of Setting
        The learners with a weight above 0.
    asymmetry_ : float
        The largest difference between the two directions, relative to the largest entry.
    decay_ : tuple of float or None
        Offset and unit of ``exp(-(d - offset) / unit)`` for distances and dissimilarities.
    stack_ : DirectedStack
        The fitted learners.
    one_way_ : tuple or None
        For a precomputed directed matrix: the stack for new items whose other direction is not given.
    classes_, weights_, family_scores_, out_of_fold_, input_, diagonal_, certificate_ : object
        As for `SimilarityClassifierCV`.
    kernel_, X_fit_, used_, n_features_in_ : object
        As for `SimilarityClassifierCV`.

    See Also
    --------
    SimilarityClassifierCV : For symmetric similarities.
    AsymmetricRidgeClassifier : The last family alone, faster.

    Notes
    -----
    scikit-learn's cross-validation hands over the rows of new items only, one direction of a precomputed matrix. They
    are then judged by a second stack that knows one direction, with a warning: the score is that of this fallback.
    Split with ``K[test][:, train]`` and ``reverse=K[train][:, test].T`` yourself, or pass a function of two items.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import DirectedClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(120) % 3
    >>> K = (rng.uniform(size=(120, 120)) < np.where((y[:, None] + 1) % 3 == y, 0.4, 0.05)).astype(float)
    >>> model = DirectedClassifierCV("precomputed", input="similarity", random_state=0).fit(K[:90, :90], y[:90])
    >>> bool(np.mean(model.predict(K[90:, :90], reverse=K[:90, 90:].T) == y[90:]) > 0.9)
    True
    """


class DirectedRegressorCV(StackRegressor, _Directed):
    """The automatic regressor for directed similarities: ``k(x, z)`` and ``k(z, x)`` are two things.

    The same families as `DirectedClassifierCV` but those for classes only, without calibration, as for
    `SimilarityRegressorCV`.

    Parameters
    ----------
    kernel, input, cv, n_jobs, random_state : object
        As for `DirectedClassifierCV`.

    Attributes
    ----------
    members_, weights_, stack_, one_way_, kernel_, X_fit_, input_, decay_, diagonal_, asymmetry_, used_, n_features_in_
        As for `DirectedClassifierCV`.
    family_scores_, out_of_fold_, mean_, scale_, n_fenced_, certificate_ : object
        As for `SimilarityRegressorCV`.

    See Also
    --------
    DirectedClassifierCV : The same for labels, with the details.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import DirectedRegressorCV
    >>> x = np.linspace(0, 3, 80)
    >>> K = np.exp(-np.subtract.outer(x, x) ** 2 / (0.1 + x))  # a bandwidth for every column
    >>> model = DirectedRegressorCV("precomputed", random_state=0).fit(K[::2, ::2], np.sin(x[::2]))
    >>> model.predict(K[1::2, ::2], reverse=K[::2, 1::2].T).shape
    (40,)
    """

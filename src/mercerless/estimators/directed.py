"""The automatic learners for directed similarities: what x is to z and what z is to x both count."""

from collections.abc import Callable, Iterator
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from mercerless._memory import check_memory, memory_budget, row_blocks
from mercerless._optional import with_callbacks
from mercerless._validation import (
    check_labels,
    check_real,
    check_square,
    check_targets,
    check_weight,
    leave_one_out_constant,
    relative_asymmetry,
    warn,
    warn_if_useless,
)
from mercerless.estimators.base import (
    KernelEstimator,
    check_diagonal,
    encode_classes,
    encode_numbers,
    run_tasks,
    same_value,
    used_items,
    used_rows,
    used_weights,
)
from mercerless.estimators.conformal import ConformalMixin
from mercerless.estimators.reasons import ReasonsMixin
from mercerless.kernels import Precomputed
from mercerless.selection.conformal import OutOfFold
from mercerless.selection.directed import DirectedStack, Rows, decay_of, directed_item_weights, fit_directed_stack
from mercerless.selection.folds import fold_numbers, splits_of
from mercerless.selection.reasons import Explained, item_parts, stack_shares
from mercerless.selection.similarity import Block
from mercerless.spectra import as_similarities, check_kind, symmetrize


class OneWay(NamedTuple):
    """A stack for new items whose other direction is not given, on the distances between standardized rows."""

    stack: DirectedStack
    mean: NDArray
    scale: NDArray
    profiles: NDArray

    def __call__(self, rows: Rows) -> NDArray:
        """Predictions for new rows."""
        K = _profile_similarities((rows.out - self.mean) / self.scale, self.profiles)
        return self.stack(Block(K, np.zeros(len(K)), np.zeros(len(self.profiles))), rows)


def _profile_similarities(P: NDArray, Q: NDArray) -> NDArray:
    """``-|p - q|^2 / 2``, so that the distances of the stack are those of the profiles."""
    squares = np.einsum("ij,ij->i", P, P)[:, None] + np.einsum("ij,ij->i", Q, Q) - 2.0 * P @ Q.T
    K = -0.5 * np.maximum(squares, 0.0)
    if P is Q:
        np.fill_diagonal(K, 0.0)
    return K


def _fit_one_way(fit: Callable, rows: Rows) -> OneWay:
    """For rows of one direction: the same stack, with the distances between them in place of the mean of both."""
    mean, scale = rows.out.mean(axis=0), rows.out.std(axis=0)
    scale = np.where(scale > 1e-13 * np.abs(mean), scale, np.inf)
    profiles = (rows.out - mean) / scale
    stack = fit(_profile_similarities(profiles, profiles), rows._replace(back=None))
    return OneWay(stack, mean, scale, profiles)


class _Directed(ReasonsMixin, ConformalMixin, KernelEstimator):
    """What the classifier and the regressor share."""

    _directed = True
    mean_: NDArray  # of a regressor's targets, as scale_
    scale_: NDArray

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        input: str = "auto",
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kernel = kernel
        self.input = input
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "stack_")

    def _train_rows(self, X: Any, y: NDArray, weight: NDArray | None) -> tuple[NDArray, Rows, dict[str, Any]]:
        """Similarities of the mean of both directions, both directions as given, and what is kept of them."""
        kernel, items = self._train_items(X, weight)
        check_consistent_length(items, y)
        precomputed = isinstance(kernel, Precomputed)
        used, name = used_rows(weight, len(y)), "X" if precomputed else "the kernel matrix"
        items = used_items(kernel, items, used)
        workers = min(effective_n_jobs(self.n_jobs), self.cv if isinstance(self.cv, Integral) else 5)
        need, what = 8.0 * len(items) ** 2 * (3 + 16 * workers), f"The directed stack on {len(items)} items"
        check_memory(need, what, remedy="use fewer rows or AsymmetricRidge")
        V = check_square(kernel(items), name).astype(np.float64)
        kind = check_kind(V, self.input, name)
        K = as_similarities(symmetrize(V), kind)
        if kind == "distance":
            np.fill_diagonal(K, 0.0)
        decay = decay_of(V, kind)
        attributes = {
            "kernel_": kernel,
            "X_fit_": None if precomputed else items,
            "input_": kind,
            "decay_": decay,
            "diagonal_": same_value(np.diagonal(K)),
            "asymmetry_": relative_asymmetry(V),
            "used_": used if precomputed and len(used) < len(y) else slice(None),
        }
        return K, Rows(V, V.T, decay), attributes

    def _fit(self, X: Any, y: NDArray, sample_weight: ArrayLike | None, encode: Callable) -> dict[str, Any]:
        """All attributes; `encode` gives the targets of the items that carry weight, and attributes of theirs."""
        if isinstance(self.cv, Integral) and self.cv < 2:
            raise ValueError(f"cv must be at least 2, got {self.cv}.")
        weight = check_weight(sample_weight, len(y))
        K, rows, attributes = self._train_rows(X, y, weight)
        used, classify = used_rows(weight, len(y)), is_classifier(self)
        fold_of = fold_numbers(
            self.cv, K, y, classify=classify, precomputed=True, used=used, random_state=self.random_state
        )
        splits = splits_of(fold_of) if len(used) > 1 else []
        weight = used_weights(weight, used)
        Y, encoding = encode(y[used], weight)
        fit = partial(fit_directed_stack, Y=Y, weight=weight, splits=splits, classify=classify)
        directed = attributes["asymmetry_"] > 1e-8 and attributes["X_fit_"] is None
        with self._progress(len(splits) + 1) as progress:
            stack = fit(K, rows, run=partial(run_tasks, progress, self.n_jobs))
        one_way = _fit_one_way(fit, rows) if directed else None
        average = stack.average
        warn_if_useless(average.losses, leave_one_out_constant(Y, weight), type(self).__name__, weight)
        if not average.certificate <= 1e-6:
            message = f"The calibration stopped at a relative gradient of {average.certificate:.1e}."
            warn(message, ConvergenceWarning)
        told = {f"{name}_": getattr(average, name) for name in ("weights", "family_scores", "certificate")}
        told |= {"members_": average.settings, "stack_": stack, "one_way_": one_way}
        told["_basis_rows"] = used
        told["out_of_fold_"] = OutOfFold(used, average.out_of_fold, y[used])
        return attributes | encoding | told

    def _predict(self, X: Any, diag: ArrayLike | None, reverse: ArrayLike | None) -> NDArray:
        """The stack's predictions for new items, block by block."""
        check_is_fitted(self)
        items = self._test_items(X)
        back = self._check_reverse(reverse, items)
        own = None if diag is None else check_diagonal(diag, len(items))
        n_bytes, budget = 160.0 * len(self.stack_.members.own), min(2**28, memory_budget() // 2)
        parts = []
        for rows in row_blocks(len(items), n_bytes, budget):
            block = self._new_rows(items[rows], None if back is None else back[rows])
            if block.back is None and self.one_way_ is not None:
                parts.append(self.one_way_(block))
                continue
            block = block._replace(back=block.out) if block.back is None else block
            K = as_similarities((block.out + block.back) / 2.0, self.input_)
            known = self._own(items[rows], None if own is None else own[rows])
            parts.append(self.stack_(Block(K, known, self.stack_.members.own), block))
        return np.concatenate(parts)

    def _explain_blocks(  # type: ignore[override]
        self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None, train: ArrayLike | None = None
    ) -> Iterator[Explained]:
        items, classify = self._test_items(X), is_classifier(self)
        self._check_explainable(classify, reverse)
        back = self._check_reverse(reverse, items)
        given = None if diag is None else check_diagonal(diag, len(items))
        V = self._train_again(train).astype(np.float64)
        trained, own, stack = Rows(V, V.T, self.decay_), self.stack_.members.own, self.stack_
        K = as_similarities(symmetrize(V), self.input_)
        if self.input_ == "distance":
            np.fill_diagonal(K, 0.0)
        for rows in row_blocks(len(items), 80.0 * len(own) * len(self.members_), min(2**28, memory_budget() // 2)):
            block = self._new_rows(items[rows], None if back is None else back[rows])
            block = block._replace(back=block.out) if block.back is None else block
            means = as_similarities((block.out + block.back) / 2.0, self.input_)
            new = Block(means, self._own(items[rows], None if given is None else given[rows]), own)
            order = np.argsort(-stack(new, block), axis=1, kind="stable") if classify else None
            classes = None if order is None else (order[:, 0], order[:, 1])
            weights = directed_item_weights(stack.directed, trained, block)
            parts = item_parts(stack, Block(K, own, own), new, weights)
            explained = stack_shares(stack, parts, new.own_rows is not None, classes)
            yield explained if classify else explained.scaled(self.scale_[0], self.mean_[0])

    def _check_explainable(self, classify: bool, reverse: ArrayLike | None) -> None:
        """Say where there are no shares of training items."""
        if self.one_way_ is not None and reverse is None:
            raise ValueError("explain needs both directions of new items; pass the other one as reverse.")
        n_outputs = self.stack_.members.targets.shape[1]
        if classify and n_outputs < 2:
            raise ValueError("The training items have one class only, so that there is nothing to explain.")
        if not classify and n_outputs > 1:
            raise ValueError("explain takes models of one output; fit one model per output.")

    def _new_rows(self, items: Any, back: NDArray | None) -> Rows:
        """Both directions of new items, as far as they are known."""
        if isinstance(self.kernel_, Precomputed):
            out = self.kernel_(items)[:, self.used_].astype(np.float64)
            return Rows(out, None if back is None else back[:, self.used_].astype(np.float64), self.decay_)
        out = self.kernel_(items, self.X_fit_).astype(np.float64)
        return Rows(out, self.kernel_(self.X_fit_, items).T.astype(np.float64), self.decay_)

    def _check_reverse(self, reverse: ArrayLike | None, items: Any) -> NDArray | None:
        """The other direction of new rows, checked; a warning where it is missing and would be needed."""
        if reverse is None:
            if self.one_way_ is not None:
                warn(
                    "The training matrix is directed but only one direction of the new rows is given: they are judged "
                    "by a stack fitted on that direction alone. Pass the similarities of the training items to the new "
                    "ones as reverse (one row per new item) to use both."
                )
            return None
        if not isinstance(self.kernel_, Precomputed):
            raise ValueError("reverse is for a precomputed matrix; with a kernel both directions are computed.")
        reverse = check_real(reverse, "reverse")
        if reverse.shape != np.shape(items):
            raise ValueError(f"reverse has shape {reverse.shape} but X {np.shape(items)}; give one row per new item.")
        return reverse

    def _held_out(  # type: ignore[override]
        self, diag: ArrayLike | None = None, reverse: ArrayLike | None = None
    ) -> OutOfFold:
        """The out-of-fold predictions of the stack that judges new items given in this way."""
        held, average = super()._held_out(), self.stack_.average
        if self.one_way_ is not None and reverse is None:
            return held._replace(prediction=self._decode(self.one_way_.stack.average.out_of_fold))
        known = self.input_ == "distance" or diag is not None or self.diagonal_ is not None
        if known or not isinstance(self.kernel_, Precomputed):
            return held
        return held._replace(prediction=self._decode(average.out_of_fold_without_own))

    def _decode(self, values: NDArray) -> NDArray:
        """Values of the stack as they are given to users."""
        return values

    def _own(self, items: Any, own: NDArray | None) -> NDArray | None:
        """The new items' own similarities, where they are given or known."""
        if self.input_ == "distance":
            return np.zeros(len(items))
        if own is None and not isinstance(self.kernel_, Precomputed):
            own = self.kernel_.diag(items)
        if own is not None:
            return as_similarities(own, self.input_)
        return None if self.diagonal_ is None else np.full(len(items), self.diagonal_)


class DirectedClassifierCV(ClassifierMixin, _Directed):
    """The automatic classifier for directed similarities: ``k(x, z)`` and ``k(z, x)`` are two things.

    Citations, attention, divergences, distances of one shape to another: averaging both directions loses what the
    direction says, and ridge regression with the matrix as it is loses the rest. This stack has all learners of
    `SimilarityClassifierCV` on the mean of both directions, and on the row of an item, its similarities out to all
    training items and back from them,

    - ``"row_features"``: ridge regression on the standardized row;
    - ``"row_profiles"``: kernel ridge regression with a Gaussian of standardized rows;
    - ``"row_cosines"``, ``"row_neighbors"``: ridge regression and votes by the cosine of rows;
    - ``"left"``, ``"right"``: the two regressors of `AsymmetricRidge`.

    All are calibrated and weighed out of fold, as there.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        ``"precomputed"``, where X is the matrix ``k(x_i, x_j)``, a kernel, or a function of two items, called in
        both directions.
    input : {"auto", "similarity", "distance", "dissimilarity"}, default="auto"
        What the matrix holds. ``"auto"`` asks `mercerless.spectra.matrix_kind`. Where a learner needs affinities,
        distances d become ``exp(-d / median)``.
    cv : int, cross-validation splitter or iterable of splits, default=5
        Folds for scores, calibration and weights, as for `SimilarityClassifierCV`.
    n_jobs : int or None, default=None
        Folds fitted at the same time, by `joblib`.
    random_state : int, RandomState or None, default=None
        Seed of the folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    members_ : tuple of Setting
        The learners with a weight above 0.
    weights_ : ndarray of shape (n_members,)
        Their weights, of sum 1.
    family_scores_ : dict of str to dict
        For every family the out-of-fold ``"accuracy"`` and ``"log_loss"`` of its setting of least log-loss, and the
        sum of its ``"weight"``. The key ``"stack"`` holds the average itself.
    out_of_fold_ : OutOfFold
        The average's probabilities for the training items of positive weight, none used for its own learners; `rows`,
        `prediction` and `target` (the number of the class).
    asymmetry_ : float
        The largest difference between the two directions, relative to the largest entry.
    input_ : str
        What the matrix was taken for.
    decay_ : tuple of float or None
        Offset and unit of ``exp(-(d - offset) / unit)`` for distances and dissimilarities.
    diagonal_ : float or None
        The training items' own similarity if it is the same for all, else None.
    certificate_ : float
        The largest relative violation of the optimality conditions of calibration and weights.
    kernel_ : Kernel
        The resolved kernel.
    X_fit_ : array-like or None
        The training items; None for precomputed input.
    stack_ : DirectedStack
        The fitted learners.
    one_way_ : tuple or None
        For a precomputed directed matrix: the stack for new items whose other direction is not given.
    used_ : ndarray or slice
        Which training items have a weight above 0.
    n_features_in_ : int
        The number of features, or of training items for precomputed similarities.

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

    @with_callbacks
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "DirectedClassifierCV":
        """Fit all families and their average.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), (n_samples, n_samples), or sequence of items
            Vectors, a precomputed matrix, or any objects the kernel function takes.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Nonnegative weights.

        Returns
        -------
        DirectedClassifierCV
            Itself.
        """
        y = check_labels(y, type(self).__name__)
        attributes = self._fit(X, y, sample_weight, encode_classes)
        held = attributes["out_of_fold_"]
        attributes["out_of_fold_"] = held._replace(target=np.searchsorted(attributes["classes_"], held.target))
        self._set_fitted(**attributes)
        return self

    def predict_proba(self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None) -> NDArray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like or sequence of items
            New items; for precomputed input ``k(x, x_j)``, one row per new item.
        diag : array-like of shape (n_samples,), float or None, default=None
            For precomputed similarities whose training diagonal is not constant: the new items' own similarities.
        reverse : array-like of shape (n_samples, n_train) or None, default=None
            For a precomputed matrix: ``k(x_j, x)``, one row per new item. Without it a stack for one direction judges,
            with a warning.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return self._predict(X, diag, reverse)

    def decision_function(self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None) -> NDArray:
        """Log-odds of the second of two classes, or log-probabilities of more.

        Parameters
        ----------
        X, diag, reverse : array-like
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The decision values.
        """
        logs = np.log(np.maximum(self._predict(X, diag, reverse), np.finfo(float).tiny))
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    def predict(self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None) -> NDArray:
        """The most probable class.

        Parameters
        ----------
        X, diag, reverse : array-like
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        proba = self._predict(X, diag, reverse)
        return self.classes_[proba.argmax(axis=1)]


class DirectedRegressorCV(RegressorMixin, _Directed):
    """The automatic regressor for directed similarities: ``k(x, z)`` and ``k(z, x)`` are two things.

    The same families as `DirectedClassifierCV` but ``"class_distances"``, without calibration, as for
    `SimilarityRegressorCV`.

    Parameters
    ----------
    kernel, input, cv, n_jobs, random_state : object
        As for `DirectedClassifierCV`.

    Attributes
    ----------
    members_, weights_, stack_, one_way_, kernel_, X_fit_, input_, decay_, diagonal_, asymmetry_, used_, n_features_in_
        As for `DirectedClassifierCV`.
    family_scores_ : dict of str to dict
        For every family the out-of-fold ``"r2"`` and ``"mse"`` (relative to the variance of each target) of its best
        setting, and the sum of its ``"weight"``. The key ``"stack"`` holds the average itself.
    out_of_fold_ : OutOfFold
        The average's predictions for the training items of positive weight, none used for its own learners; `rows`,
        `prediction` and `target`.
    mean_, scale_ : ndarray of shape (n_targets,)
        Mean and standard deviation of the targets.
    n_fenced_ : int
        How many training targets were cut because they are extreme; 0 where the given ones were used.
    certificate_ : float
        The relative violation of the optimality conditions of the weights.

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

    @with_callbacks
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "DirectedRegressorCV":
        """Fit all families and their average.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), (n_samples, n_samples), or sequence of items
            Vectors, a precomputed matrix, or any objects the kernel function takes.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Numbers.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Nonnegative weights.

        Returns
        -------
        DirectedRegressorCV
            Itself.
        """
        y = check_targets(y, type(self).__name__)
        attributes = self._fit(X, y, sample_weight, encode_numbers)
        self._single = y.ndim == 1
        self._set_fitted(**attributes, n_fenced_=attributes["stack_"].n_fenced)
        held: OutOfFold = attributes["out_of_fold_"]
        self.out_of_fold_ = held._replace(prediction=self._decode(held.prediction))
        return self

    def _decode(self, values: NDArray) -> NDArray:
        values = values * self.scale_ + self.mean_
        return values[:, 0] if self._single else values

    def predict(self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None) -> NDArray:
        """Predicted numbers.

        Parameters
        ----------
        X, diag, reverse : array-like
            As for `DirectedClassifierCV.predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions.
        """
        return self._decode(self._predict(X, diag, reverse))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

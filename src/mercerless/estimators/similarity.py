"""Learners for any similarity or distance: the automatic stack, similarities as features, and a sparse machine."""

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, RegressorMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import assert_all_finite, check_consistent_length
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from mercerless._memory import check_memory, memory_budget, row_blocks
from mercerless._optional import with_callbacks
from mercerless._validation import (
    UselessModelWarning,
    check_labels,
    check_real,
    check_square,
    check_symmetric,
    check_targets,
    check_weight,
    leave_one_out_constant,
    relative_asymmetry,
    warn_if_useless,
)
from mercerless.estimators.base import KernelEstimator, used_items, used_rows
from mercerless.kernels import PairFunction, Precomputed
from mercerless.lowrank import select_landmarks
from mercerless.selection.calibration import calibrate
from mercerless.selection.folds import fold_numbers, splits_of
from mercerless.solvers.similarity import sparse_machine
from mercerless.solvers.stack import (
    FAMILIES,
    NEED_DIAGONAL,
    Setting,
    default_settings,
    fit_members,
    member_scores,
    out_of_fold_scores,
    paired_z,
    select_settings,
    stack_weights,
)
from mercerless.spectra import KINDS, as_similarities, check_kind, symmetrize


class NegativeSpectrum(NamedTuple):
    """What the negative eigenvalues are worth for the task, judged out of fold.

    Attributes
    ----------
    z : float
        By how many standard errors the out-of-fold loss is lower when the negative part is kept with its sign flipped
        than when it is cut off. About normal if it makes no difference.
    verdict : str
        ``"useful"`` (z > 2), ``"harmful"`` (z < -2), ``"undecided"``, or ``"absent"`` when there are no negative
        eigenvalues, so that no setting of the two differs.
    sentence : str
        The same in words.
    """

    z: float
    verdict: str
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def _judge_negative_spectrum(z: float, absent: bool) -> NegativeSpectrum:
    """Put the z of flip against clip into words."""
    if absent:
        return NegativeSpectrum(0.0, "absent", "There is no negative spectrum to speak of: flip and clip agree.")
    amount = f"{abs(z):.1f} standard errors"
    if z > 2.0:
        return NegativeSpectrum(z, "useful", f"The negative spectrum is useful: flip beats clip by {amount}.")
    if z < -2.0:
        return NegativeSpectrum(z, "harmful", f"The negative spectrum is noise: clip beats flip by {amount}.")
    ahead = f"{'flip' if z > 0.0 else 'clip'} is ahead by {amount} only" if z else "flip and clip do equally well"
    return NegativeSpectrum(z, "undecided", f"Whether the negative spectrum helps is undecided: {ahead}.")


def _never_differ(settings: Sequence[Setting], oof: NDArray) -> bool:
    """Whether flip and clip have the same out-of-fold scores at every penalty: nothing is negative."""
    flip, clip = (oof[[setting.family == name for setting in settings]] for name in ("flip", "clip"))
    return bool(np.abs(flip - clip).max() <= 1e-8 * np.abs(clip).max())


def _score_fold(estimator, context, *problem) -> NDArray:
    """One fold of the cross-validation, reported to the callbacks; runs in a worker."""
    context.call_on_fit_task_begin(estimator=estimator)
    scores = out_of_fold_scores(*problem)
    context.call_on_fit_task_end(estimator=estimator)
    return scores


class _SimilarityStack(KernelEstimator):
    """What the classifier and the regressor share: similarities in, out-of-fold scores, members, new rows."""

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        input: str = "auto",
        symmetrize: bool = False,
        cv: Any = 5,
        memory_limit: int | float | str | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kernel = kernel
        self.input = input
        self.symmetrize = symmetrize
        self.cv = cv
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")

    def _check_parameters(self) -> None:
        if self.input not in ("auto", *KINDS):
            raise ValueError(f"input must be one of 'auto', {', '.join(map(repr, KINDS))}, got {self.input!r}.")
        if isinstance(self.cv, Integral) and self.cv < 2:
            raise ValueError(f"cv must be at least 2, got {self.cv}.")

    def _train_similarities(
        self, X: Any, y: NDArray, weight: NDArray | None
    ) -> tuple[NDArray, dict[str, Any], NDArray | None]:
        """Symmetric float64 similarities of the items that carry weight, attributes, and the matrix if directed."""
        kernel, items = self._train_items(X, weight)
        check_consistent_length(items, y)
        if self.symmetrize and isinstance(kernel, PairFunction) and not isinstance(self.kernel, PairFunction):
            kernel = PairFunction(kernel.function, symmetric=False, n_jobs=self.n_jobs)  # call it in both directions
        precomputed = isinstance(kernel, Precomputed)
        used = used_rows(weight, len(y))
        items = used_items(kernel, items, used)
        name = "X" if precomputed else "the kernel matrix"
        n, n_folds = len(items), self.cv if isinstance(self.cv, Integral) else 5
        # the matrix, and in every worker a fold's part of it with an eigendecomposition's work space
        workers = min(effective_n_jobs(self.n_jobs), n_folds)
        remedy = "use fewer rows, KreinRidge or KreinRidgeClassifier with solver='nystroem', or raise memory_limit"
        check_memory(8.0 * n**2 * (1 + 5 * workers), f"The stack on {n} items", self.memory_limit, remedy)
        given = check_square(kernel(items), name)
        directed = self.symmetrize and relative_asymmetry(given) > (1e-5 if given.dtype == np.float32 else 1e-8)
        matrix = symmetrize(given) if directed else check_symmetric(given, name)
        kind = check_kind(matrix, self.input, name)
        K = as_similarities(matrix, kind)
        if kind == "distance":
            np.fill_diagonal(K, 0.0)  # what is left on it is rounding
        diag = np.diagonal(K)
        constant = np.ptp(diag) <= 1e-8 * np.abs(diag).max()
        # of a precomputed matrix only the number of items is needed later, and n_features_in_ holds it
        attributes = {"kernel_": kernel, "X_fit_": None if precomputed else items, "input_": kind}
        attributes["diagonal_"] = float(diag.mean()) if constant else None
        # columns of rows without weight stay in a precomputed test matrix
        attributes["used_"] = used if precomputed and len(used) < len(y) else slice(None)
        return K, attributes, given if directed and precomputed else None

    def _new_similarities(
        self, items: Any, diag: NDArray | None, reverse: NDArray | None
    ) -> tuple[NDArray, NDArray | None]:
        """Similarities of new items to the training items, and their own where known."""
        precomputed = isinstance(self.kernel_, Precomputed)
        fitted: Any = self.X_fit_
        matrix = self.kernel_(items) if precomputed else self.kernel_(items, fitted)
        if reverse is not None:
            matrix = (matrix + reverse) / 2.0
        elif self.symmetrize and not precomputed and not self.kernel_.symmetric:
            matrix = (matrix + self.kernel_(fitted, items).T) / 2.0
        if self.input_ == "distance" and matrix.min() < -1e-3 * abs(float(matrix.mean())):
            raise ValueError(f"Distances must not be negative, but the smallest is {matrix.min():.3g}.")
        K = as_similarities(matrix, self.input_)[:, self.used_]
        if self.input_ == "distance":
            return K, np.zeros(len(K))
        if diag is not None:
            return K, as_similarities(diag, self.input_)
        if not precomputed:
            return K, as_similarities(self.kernel_.diag(items), self.input_)
        return K, None if self.diagonal_ is None else np.full(len(K), self.diagonal_)

    def _out_of_fold(
        self, context: Any, K: NDArray, Y: NDArray, weight: NDArray, splits: list, rows: NDArray | None
    ) -> NDArray:
        """Out-of-fold scores of all settings; one item alone has no other to learn from and scores 0."""
        settings = default_settings()
        scores = np.zeros((len(settings), len(K), Y.shape[1]))
        if len(K) == 1:
            return scores
        parts = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(_score_fold)(
                self, context.subcontext(task_name="fold", task_id=k), K, Y, train, test, settings, weight, rows
            )
            for k, (train, test) in enumerate(splits)
        )
        for (_, test), part in zip(splits, parts):
            scores[:, test] = part
        return scores

    def _fit_stack(self, X: Any, y: NDArray, sample_weight: ArrayLike | None) -> dict[str, Any]:
        """All fitted attributes."""
        rows = self.__dict__.pop("_held_out_rows", None)  # of the same shape as the matrix, see _fit_one_way
        self._check_parameters()
        weight = check_weight(sample_weight, len(y))
        K, attributes, directed = self._train_similarities(X, y, weight)
        used = used_rows(weight, len(y))
        fold_of = fold_numbers(
            self.cv,
            K,
            y,
            classify=isinstance(self, ClassifierMixin),
            precomputed=True,
            used=used,
            random_state=self.random_state,
        )
        y, weight = y[used], np.ones(len(y)) if weight is None else weight[used]
        attributes["one_way_"] = None
        if directed is not None:
            attributes["one_way_"] = self._fit_one_way(directed, attributes["input_"], y, weight)
        rows = None if rows is None else as_similarities(rows, attributes["input_"])
        weight = weight * (len(weight) / weight.sum())
        splits = splits_of(fold_of) if len(y) > 1 else []
        context = self._init_callback_context(max_subtasks=len(splits) + 1, sequential_subtasks=False)
        context.call_on_fit_task_begin(estimator=self)
        Y, own = self._encode(y, weight)
        combined = self._combine(self._out_of_fold(context, K, Y, weight, splits, rows), y, Y, weight, own)
        held_out, constant = combined.pop("held_out"), leave_one_out_constant(Y, weight)
        warn_if_useless(held_out, constant, type(self).__name__, weight, stacklevel=4)
        final = context.subcontext(task_name="members", task_id=len(splits))
        final.call_on_fit_task_begin(estimator=self)
        stack = fit_members(K, Y, combined["members_"], weight)
        final.call_on_fit_task_end(estimator=self)
        context.call_on_fit_task_end(estimator=self)
        if not combined["certificate_"] <= 1e-6:
            message = f"The calibration stopped at a relative gradient of {combined['certificate_']:.1e}."
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        return attributes | own | combined | {"stack_": stack}

    def _fit_one_way(self, given: NDArray, kind: str, y: NDArray, sample_weight: ArrayLike | None) -> "_OneWay":
        """For new items whose other direction is not given: the better of two stacks whose held-out rows have one only.

        The first learns from the average of both directions, the second from the distances between standardised rows.
        """
        mean, scale = given.mean(axis=0), given.std(axis=0)
        scale = np.where(scale > 1e-13 * np.abs(mean), scale, np.inf)
        profiles = (given - mean) / scale
        stacks = []
        with warnings.catch_warnings():  # that one is useless matters only if it is used
            warnings.simplefilter("ignore", UselessModelWarning)
            for K, input_, rows in (
                (symmetrize(given), kind, given),
                (_profile_similarities(profiles, profiles), "similarity", None),
            ):
                stack = type(self)("precomputed", input=input_, cv=self.cv, memory_limit=self.memory_limit,
                                   n_jobs=self.n_jobs, random_state=self.random_state)  # fmt: skip
                stack._held_out_rows = rows
                stacks.append(stack.fit(K, y, sample_weight))
        loss = "log_loss" if isinstance(self, ClassifierMixin) else "mse"
        averaged, profiled = (stack.family_scores_["stack"][loss] for stack in stacks)
        return _OneWay(stacks[0], None) if averaged <= profiled else _OneWay(stacks[1], (mean, scale, profiles))

    def _check_reverse(self, X: Any, reverse: ArrayLike | None) -> NDArray | None:
        """The other direction of new rows, checked; a warning where it is missing and would be needed."""
        check_is_fitted(self)
        if reverse is None:
            if self.one_way_ is not None:
                warnings.warn(
                    "The training matrix is directed but only one direction of the new rows is given: they are judged "
                    "by a stack fitted on that direction alone. Pass the similarities of the training items to the new "
                    "ones as reverse (one row per new item) to use both.",
                    UserWarning,
                    stacklevel=4,
                )
            return None
        if not (self.symmetrize and isinstance(self.kernel_, Precomputed)):
            raise ValueError("reverse is for kernel='precomputed' with symmetrize=True; otherwise it is not needed.")
        reverse = check_real(reverse, "reverse")
        if reverse.shape != np.shape(X):
            raise ValueError(f"reverse has shape {reverse.shape} but X {np.shape(X)}; give one row per new item.")
        return reverse

    def _new_predictions(self, X: Any, diag: ArrayLike | None, reverse: NDArray | None) -> tuple[NDArray, NDArray]:
        """Every member's scores for new items, and the weights to use for them."""
        items = self._test_items(X)
        diag = None if diag is None else _check_diagonal(diag, len(items))
        scores = []
        # a matrix for every view of the similarities, and their sorted copies for neighbours
        block_bytes = min(2**28, memory_budget(self.memory_limit) // 2)
        for rows in row_blocks(len(items), 80.0 * len(self.stack_.diag), block_bytes):
            K, own = self._new_similarities(
                items[rows], None if diag is None else diag[rows], None if reverse is None else reverse[rows]
            )
            scores.append(member_scores(self.stack_, K, own))
        weights = self.weights_ if own is not None else self.weights_without_diagonal_
        return np.concatenate(scores, axis=1), weights


class _OneWay(NamedTuple):
    """A stack for rows of one direction; on their distances to the training rows if there are standardised profiles."""

    stack: Any
    profiles: tuple[NDArray, NDArray, NDArray] | None

    def rows(self, X: NDArray) -> NDArray:
        """What the stack takes for new rows."""
        if self.profiles is None:
            return X
        mean, scale, profiles = self.profiles
        return _profile_similarities((X - mean) / scale, profiles)


def _profile_similarities(P: NDArray, Q: NDArray) -> NDArray:
    """``-|p - q|^2 / 2``, so that the stack's distances are those of the profiles."""
    return -0.5 * euclidean_distances(P, Q, squared=True)


def _check_diagonal(diag: ArrayLike, n: int) -> NDArray:
    """Finite numbers, one per new item or the same for all."""
    values = np.asarray(diag, dtype=np.float64)
    assert_all_finite(values, input_name="diag")
    if values.ndim > 1 or values.size not in (1, n):
        raise ValueError(f"diag has shape {values.shape} but must hold one number for each of the {n} new items.")
    return np.broadcast_to(values, (n,))


def _family_table(members: Sequence[Setting], weights: NDArray, columns: dict[str, dict[str, float]]) -> dict:
    """Per family: its out-of-fold figures and the sum of its members' weights."""
    total = dict.fromkeys(FAMILIES, 0.0) | {"stack": float(np.sum(weights))}
    for setting, value in zip(members, weights):
        total[setting.family] += float(value)
    return {family: {**figures, "weight": total[family]} for family, figures in columns.items()}


def _without_diagonal(members: Sequence[Setting]) -> NDArray:
    """Positions of the members that do not need the new items' own similarity."""
    return np.array([i for i, setting in enumerate(members) if setting.family not in NEED_DIAGONAL])


class SimilarityClassifierCV(ClassifierMixin, _SimilarityStack):
    """The automatic classifier for any similarity or distance: a stack of calibrated learners.

    No single remedy for an indefinite matrix wins everywhere, and picking one by cross-validation often picks
    wrongly. This estimator fits six families, calibrates each out of fold, and predicts the average ::

        p(c | x) = sum_m weights[m] * softmax(slope[m] * score[m](x) + offset[m])[c],   weights >= 0, sum 1

    with the weights that minimise the out-of-fold Brier score. The families are

    - ``"clip"``, ``"flip"``, ``"square"``: ridge regression with the centred similarities' negative eigenvalues
      cut off, with their sign changed, or with all of them squared;
    - ``"neighbors"``: votes of the nearest training items;
    - ``"features"``: ridge regression on the standardised distances to the training items;
    - ``"gaussian"``: ridge regression on ``exp(-factor * distance**2)`` of the training items.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        A kernel, ``"precomputed"``, a name of scikit-learn's pairwise kernels, or a function of two items (strings,
        series, graphs) that returns a similarity or a distance.
    input : {"auto", "similarity", "distance", "dissimilarity"}, default="auto"
        What the matrix holds. Distances d become similarities ``-d**2 / 2``, dissimilarities (which may be negative or
        differ from 0 on the diagonal) ``-d``. ``"auto"`` asks `mercerless.spectra.matrix_kind`.
    symmetrize : bool, default=False
        Whether to average the two directions of an asymmetric matrix; otherwise it is refused. For precomputed rows of
        new items pass the other direction as ``reverse`` to `predict`; without it they are judged, with a warning, by
        a second stack that knows one direction only.
    cv : int, cross-validation splitter or iterable of splits, default=5
        Folds for scores, calibration and weights; a number is reduced to the number of items, and classes may be
        smaller than it. Every item must be tested exactly once.
    memory_limit : int, float, str or None, default=None
        Bytes that may be used, such as ``"2GB"``; None means half of what is free.
    n_jobs : int or None, default=None
        Folds fitted at the same time, by `joblib`. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    members_ : tuple of Setting
        The learners with a weight above 0: family, parameter (penalty or number of neighbours) and width.
    weights_ : ndarray of shape (n_members,)
        Their weights, of sum 1.
    weights_without_diagonal_ : ndarray of shape (n_members,)
        The weights when a new item's own similarity is not known: 0 for ``"features"`` and ``"gaussian"``.
    family_scores_ : dict of str to dict
        For every family the out-of-fold ``"accuracy"`` and ``"log_loss"`` of its setting of least log-loss, and the
        sum of its ``"weight"``. The key ``"stack"`` holds the average itself (weights chosen on the same rows).
    negative_spectrum_ : NegativeSpectrum
        Whether the negative eigenvalues help: ``z``, ``verdict`` and ``sentence``.
    out_of_fold_proba_ : ndarray of shape (n_samples, n_classes)
        The average's probabilities for the training items of positive weight, none used for its own learners.
    calibration_ : Calibration
        Slopes and offsets of the members.
    input_ : str
        What the matrix was taken for.
    diagonal_ : float or None
        The training items' own similarity if it is the same for all, else None.
    certificate_ : float
        The largest relative violation of the optimality conditions of calibration and weights.
    kernel_ : Kernel
        The resolved kernel.
    X_fit_ : array-like or None
        The training items; None for precomputed input.
    stack_ : Members
        The fitted learners.
    used_ : ndarray or slice
        Which training items have a weight above 0.
    one_way_ : tuple or None
        For a precomputed directed matrix: the stack for new items whose other direction is not given, on the average
        of both directions or on the distances between standardised rows, whichever was better on held-out rows of one
        direction.
    n_features_in_ : int
        The number of features, or of training items for precomputed similarities.

    See Also
    --------
    SimilarityRegressorCV : The same for numbers.
    KreinRidgeClassifier : One member with two penalties, faster.
    SimilarityFeatures : Similarities as features for any model.

    Notes
    -----
    One eigendecomposition and two Gram matrices with a few Cholesky factorisations per fold: about ``15 n^3``
    operations per fold. Distances come from similarities as ``k(x, x) + k(z, z) - 2 k(x, z)``, cut at 0. A new item's
    ``k(x, x)`` is computed from the kernel; for precomputed rows it is taken from the training diagonal if that is
    constant, else it must be passed as ``diag`` to `predict`, or the two families that need it are left out, with
    weights chosen for that case.

    ``sample_weight`` enters every ridge regression and the calibration as repetition of items would; neighbours' votes
    are weighted. Items of weight 0 are left out. Cross-validation splits items, not repetitions.

    References
    ----------
    .. [1] Y. Chen, E. K. Garcia, M. R. Gupta, A. Rahimi, L. Cazzanti. Similarity-based classification: concepts and
       algorithms. Journal of Machine Learning Research 10, 2009.
    .. [2] L. Breiman. Stacked regressions. Machine Learning 24, 1996.

    Examples
    --------
    >>> from mercerless import SimilarityClassifierCV
    >>> from mercerless.datasets import load_digit_shapes
    >>> shapes = load_digit_shapes(200)
    >>> D, y = shapes.D, shapes.target
    >>> model = SimilarityClassifierCV(kernel="precomputed", random_state=0).fit(D[:150, :150], y[:150])
    >>> model.input_
    'distance'
    >>> model.score(D[150:, :150], y[150:]) > 0.8
    True
    """

    @with_callbacks
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "SimilarityClassifierCV":
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
        SimilarityClassifierCV
            Itself.
        """
        y = check_labels(y, type(self).__name__)
        for name, value in self._fit_stack(X, y, sample_weight).items():
            setattr(self, name, value)
        return self

    def _encode(self, y: NDArray, weight: NDArray) -> tuple[NDArray, dict[str, Any]]:
        classes = np.unique(y)
        return np.where(y[:, None] == classes, 1.0, -1.0), {"classes_": classes}

    def _combine(self, oof: NDArray, y: NDArray, Y: NDArray, weight: NDArray, own: dict) -> dict[str, Any]:
        """Calibrate, keep the best of every family, and weigh them."""
        settings, onehot = default_settings(), (Y > 0.0).astype(float)
        calibration = calibrate(oof, onehot, weight)
        proba = calibration(oof)
        losses = -np.log(np.maximum(np.einsum("sik,ik->si", proba, onehot), np.finfo(float).tiny))
        hits = proba.argmax(axis=2) == onehot.argmax(axis=1)
        log_loss, accuracy = losses @ weight / weight.sum(), hits @ weight / weight.sum()
        chosen = select_settings(settings, log_loss, -accuracy)
        weights, reduced, residual = _both_weights(settings, chosen, proba, onehot, weight, True)
        best = {f: _best_of(settings, f, log_loss) for f in FAMILIES}
        table = {f: {"accuracy": float(accuracy[i]), "log_loss": float(log_loss[i])} for f, i in best.items()}
        average = np.tensordot(weights, proba[chosen], 1)
        stack_loss = -np.log(np.maximum((average * onehot).sum(axis=1), np.finfo(float).tiny))
        table["stack"] = {
            "accuracy": float((average.argmax(axis=1) == onehot.argmax(axis=1)) @ weight / weight.sum()),
            "log_loss": float(stack_loss @ weight / weight.sum()),
        }
        kept = (weights > 0.0) | (reduced > 0.0)
        members = tuple(settings[i] for i in chosen[kept])
        return {
            "members_": members,
            "weights_": weights[kept],
            "weights_without_diagonal_": reduced[kept],
            "calibration_": calibration.take(chosen[kept]),
            "family_scores_": _family_table(members, weights[kept], table),
            "negative_spectrum_": _judge_negative_spectrum(
                paired_z(losses[best["flip"]], losses[best["clip"]], weight), _never_differ(settings, oof)
            ),
            "out_of_fold_proba_": average,
            "held_out": 4.0 * ((average - onehot) ** 2).sum(axis=1),  # in the units of Y
            "certificate_": max(calibration.gradient, residual),
        }

    def predict_proba(self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None) -> NDArray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like or sequence of items
            New items; for precomputed input their similarities (or distances) to the training items.
        diag : array-like of shape (n_samples,), float or None, default=None
            For precomputed similarities whose training diagonal is not constant: the new items' own similarities
            ``k(x, x)``. Without them the families that need distances are left out.
        reverse : array-like of shape (n_samples, n_train) or None, default=None
            For a precomputed directed matrix with ``symmetrize=True``: the similarities of the training items to the
            new ones, one row per new item.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        both = self._check_reverse(X, reverse)
        if both is None and self.one_way_ is not None:
            return self.one_way_.stack.predict_proba(self.one_way_.rows(self._test_items(X)[:, self.used_]))
        scores, weights = self._new_predictions(X, diag, both)
        return np.tensordot(weights, self.calibration_(scores), 1)

    def decision_function(self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None) -> NDArray:
        """Log-odds of the second of two classes, or log-probabilities of more.

        Parameters
        ----------
        X : array-like or sequence of items
            New items, as for `predict_proba`.
        diag : array-like of shape (n_samples,), float or None, default=None
            Own similarities, as for `predict_proba`.
        reverse : array-like of shape (n_samples, n_train) or None, default=None
            The other direction, as for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The decision values.
        """
        logs = np.log(np.maximum(self.predict_proba(X, diag, reverse), np.finfo(float).tiny))
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    def predict(self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None) -> NDArray:
        """The most probable class.

        Parameters
        ----------
        X : array-like or sequence of items
            New items, as for `predict_proba`.
        diag : array-like of shape (n_samples,), float or None, default=None
            Own similarities, as for `predict_proba`.
        reverse : array-like of shape (n_samples, n_train) or None, default=None
            The other direction, as for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        proba = self.predict_proba(X, diag, reverse)
        return self.classes_[proba.argmax(axis=1)]


def _best_of(settings: Sequence[Setting], family: str, loss: NDArray) -> int:
    """The position of the family's setting of least loss."""
    index = [i for i, setting in enumerate(settings) if setting.family == family]
    return index[int(np.argmin(loss[index]))]


def _both_weights(
    settings: Sequence[Setting],
    chosen: NDArray,
    predictions: NDArray,
    target: NDArray,
    weight: NDArray,
    normalize: bool,
) -> tuple[NDArray, NDArray, float]:
    """Weights of all chosen settings, weights when own similarities are unknown, and the worse certificate."""
    full = stack_weights(predictions[chosen], target, weight, normalize=normalize)
    free = _without_diagonal([settings[i] for i in chosen])
    part = stack_weights(predictions[chosen[free]], target, weight, normalize=normalize)
    reduced = np.zeros(len(chosen))
    reduced[free] = part.weights
    return full.weights, reduced, max(full.residual, part.residual)


class SimilarityRegressorCV(RegressorMixin, _SimilarityStack):
    """The automatic regressor for any similarity or distance: a stack of learners.

    The same families as `SimilarityClassifierCV`, without calibration ::

        f(x) = mean + sum_m weights[m] * (score[m](x) - mean),   weights >= 0

    with the weights that minimise the out-of-fold squared error (they need not sum to 1).

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        A kernel, ``"precomputed"``, a name of scikit-learn's pairwise kernels, or a function of two items (strings,
        series, graphs) that returns a similarity or a distance.
    input : {"auto", "similarity", "distance", "dissimilarity"}, default="auto"
        What the matrix holds. Distances d become similarities ``-d**2 / 2``, dissimilarities (which may be negative or
        differ from 0 on the diagonal) ``-d``. ``"auto"`` asks `mercerless.spectra.matrix_kind`.
    symmetrize : bool, default=False
        Whether to average the two directions of an asymmetric matrix, see `SimilarityClassifierCV`.
    cv : int, cross-validation splitter or iterable of splits, default=5
        Folds for scores and weights. Every item must be tested exactly once.
    memory_limit : int, float, str or None, default=None
        Bytes that may be used, such as ``"2GB"``; None means half of what is free.
    n_jobs : int or None, default=None
        Folds fitted at the same time, by `joblib`. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the folds.

    Attributes
    ----------
    members_ : tuple of Setting
        The learners with a weight above 0: family, parameter (penalty or number of neighbours) and width.
    weights_ : ndarray of shape (n_members,)
        Their weights.
    weights_without_diagonal_ : ndarray of shape (n_members,)
        The weights when a new item's own similarity is not known: 0 for ``"features"`` and ``"gaussian"``.
    family_scores_ : dict of str to dict
        For every family the out-of-fold ``"r2"`` and ``"mse"`` (relative to the variance of each target) of its best
        setting, and the sum of its ``"weight"``. The key ``"stack"`` holds the average itself.
    negative_spectrum_ : NegativeSpectrum
        Whether the negative eigenvalues help: ``z``, ``verdict`` and ``sentence``.
    out_of_fold_prediction_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        The average's predictions for the training items of positive weight, none used for its own learners.
    mean_, scale_ : ndarray of shape (n_targets,)
        Mean and standard deviation of the targets.
    input_ : str
        What the matrix was taken for.
    diagonal_ : float or None
        The training items' own similarity if it is the same for all, else None.
    certificate_ : float
        The relative violation of the optimality conditions of the weights.
    kernel_ : Kernel
        The resolved kernel.
    X_fit_ : array-like or None
        The training items; None for precomputed input.
    stack_ : Members
        The fitted learners.
    used_ : ndarray or slice
        Which training items have a weight above 0.
    one_way_ : tuple or None
        For a precomputed directed matrix: the stack for new items whose other direction is not given, on the average
        of both directions or on the distances between standardised rows, whichever was better on held-out rows of one
        direction.
    n_features_in_ : int
        The number of features, or of training items for precomputed similarities.

    See Also
    --------
    SimilarityClassifierCV : The same for labels, with the details.
    KreinRidge : One member with two penalties, faster.

    References
    ----------
    .. [1] L. Breiman. Stacked regressions. Machine Learning 24, 1996.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import SimilarityRegressorCV
    >>> x = np.linspace(0, 3, 60)[:, None]
    >>> model = SimilarityRegressorCV(random_state=0).fit(x[::2], np.sin(x[::2, 0]))
    >>> model.score(x[1::2], np.sin(x[1::2, 0])) > 0.99
    True
    """

    @with_callbacks
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "SimilarityRegressorCV":
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
        SimilarityRegressorCV
            Itself.
        """
        y = check_targets(y, type(self).__name__)
        for name, value in self._fit_stack(X, y, sample_weight).items():
            setattr(self, name, value)
        return self

    def _encode(self, y: NDArray, weight: NDArray) -> tuple[NDArray, dict[str, Any]]:
        Y = y.reshape(len(y), -1)
        mean = weight @ Y / weight.sum()
        scale = np.sqrt(weight @ (Y - mean) ** 2 / weight.sum())
        scale = np.where(scale > 1e-13 * np.abs(mean), scale, 1.0)
        return (Y - mean) / scale, {"mean_": mean, "scale_": scale, "_single": y.ndim == 1}

    def _combine(self, oof: NDArray, y: NDArray, Y: NDArray, weight: NDArray, own: dict) -> dict[str, Any]:
        """Keep the best of every family, and weigh them."""
        settings = default_settings()
        errors = ((oof - Y) ** 2).mean(axis=2)
        mse = errors @ weight / weight.sum()
        chosen = select_settings(settings, mse, np.abs(oof - Y).mean(axis=2) @ weight)
        weights, reduced, residual = _both_weights(settings, chosen, oof, Y, weight, False)
        best = {f: _best_of(settings, f, mse) for f in FAMILIES}
        average = np.tensordot(weights, oof[chosen], 1)
        figures = {f: float(mse[i]) for f, i in best.items()}
        figures["stack"] = float(((average - Y) ** 2).mean(axis=1) @ weight / weight.sum())
        kept = (weights > 0.0) | (reduced > 0.0)
        members = tuple(settings[i] for i in chosen[kept])
        table = {f: {"r2": 1.0 - value, "mse": value} for f, value in figures.items()}
        prediction = average * own["scale_"] + own["mean_"]
        return {
            "members_": members,
            "weights_": weights[kept],
            "weights_without_diagonal_": reduced[kept],
            "family_scores_": _family_table(members, weights[kept], table),
            "negative_spectrum_": _judge_negative_spectrum(
                paired_z(errors[best["flip"]], errors[best["clip"]], weight), _never_differ(settings, oof)
            ),
            "out_of_fold_prediction_": prediction[:, 0] if own["_single"] else prediction,
            "held_out": ((average - Y) ** 2).sum(axis=1),
            "certificate_": residual,
        }

    def predict(self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None) -> NDArray:
        """Predicted numbers.

        Parameters
        ----------
        X : array-like or sequence of items
            New items; for precomputed input their similarities (or distances) to the training items.
        diag : array-like of shape (n_samples,), float or None, default=None
            For precomputed similarities whose training diagonal is not constant: the new items' own similarities
            ``k(x, x)``. Without them the families that need distances are left out.
        reverse : array-like of shape (n_samples, n_train) or None, default=None
            For a precomputed directed matrix with ``symmetrize=True``: the similarities of the training items to the
            new ones, one row per new item.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions.
        """
        both = self._check_reverse(X, reverse)
        if both is None and self.one_way_ is not None:
            return self.one_way_.stack.predict(self.one_way_.rows(self._test_items(X)[:, self.used_]))
        scores, weights = self._new_predictions(X, diag, both)
        values = np.tensordot(weights, scores, 1) * self.scale_ + self.mean_
        return values[:, 0] if self._single else values

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class SimilarityFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Similarities to the training items, or to some of them, as features for any model.

    Item x becomes the vector of ``k(x, z)`` over the landmarks z. Nothing is asked of the similarity: it may be
    indefinite, asymmetric, or a distance. Follow it with a scaler and a linear model.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        A kernel, ``"precomputed"``, a name of scikit-learn's pairwise kernels, or a function of two items.
    n_landmarks : int, float or None, default=None
        How many training items to compare with: a number, a fraction of them in (0, 1), or None for all. A number
        above that of the training items means all.
    method : {"uniform", "kmeans", "pivoted"}, default="uniform"
        How landmarks are chosen, see `mercerless.lowrank.select_landmarks`.
    memory_limit : int, float, str or None, default=None
        Bytes that may be used; None means half of what is free.
    n_jobs : int or None, default=None
        Workers for a kernel that is a function of two items.
    random_state : int, RandomState or None, default=None
        Seed of the landmarks.

    Attributes
    ----------
    landmarks_ : ndarray of shape (n_landmarks,)
        Positions of the landmarks among the training items, ascending.
    kernel_ : Kernel
        The resolved kernel.
    X_fit_ : array-like or None
        The landmarks themselves; None for precomputed input.
    n_features_in_ : int
        The number of features, or of training items for precomputed similarities.

    See Also
    --------
    SimilaritySVC : A linear machine on these features that chooses few of them.
    SimilarityClassifierCV : The automatic choice.

    References
    ----------
    .. [1] E. Pekalska, R. P. W. Duin. Dissimilarity representations allow for building good classifiers. Pattern
       Recognition Letters 23, 2002.
    .. [2] Y. Chen, E. K. Garcia, M. R. Gupta, A. Rahimi, L. Cazzanti. Similarity-based classification: concepts and
       algorithms. Journal of Machine Learning Research 10, 2009.

    Examples
    --------
    >>> from mercerless import SimilarityFeatures
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> words = ["cat", "cart", "coat", "dog", "dig", "doge"]
    >>> shared = lambda a, b: len(set(a) & set(b))
    >>> model = make_pipeline(SimilarityFeatures(kernel=shared), LogisticRegression())
    >>> model.fit(words, [0, 0, 0, 1, 1, 1]).predict(["cast", "dug"])
    array([0, 1])
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        n_landmarks: int | float | None = None,
        method: str = "uniform",
        memory_limit: int | float | str | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.method = method
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "SimilarityFeatures":
        """Choose the landmarks.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), (n_samples, n_samples), or sequence of items
            Vectors, a precomputed matrix, or any objects the kernel function takes.
        y : object
            Ignored.

        Returns
        -------
        SimilarityFeatures
            Itself.
        """
        kernel, items = self._train_items(X)
        precomputed = isinstance(kernel, Precomputed)
        items = check_square(items, "X") if precomputed else items
        n_landmarks = self._count(len(items))
        if n_landmarks == len(items):
            landmarks = np.arange(len(items))
        else:
            landmarks = np.sort(select_landmarks(kernel, items, n_landmarks, self.method, self.random_state))
        self.X_fit_ = None if precomputed else items[landmarks]
        self.kernel_ = kernel
        self.landmarks_: NDArray = landmarks
        return self

    def _count(self, n: int) -> int:
        """The number of landmarks for n items."""
        wanted = self.n_landmarks
        if wanted is None:
            return n
        if isinstance(wanted, Integral) and not isinstance(wanted, bool) and wanted >= 1:
            return min(int(wanted), n)
        if isinstance(wanted, Real) and 0.0 < wanted < 1.0:
            return max(1, round(wanted * n))
        raise ValueError(
            f"n_landmarks must be None, a whole number of at least 1, or a fraction between 0 and 1, got {wanted!r}."
        )

    def transform(self, X: Any) -> NDArray:
        """Similarities to the landmarks.

        Parameters
        ----------
        X : array-like or sequence of items
            Items; for precomputed input their similarities to all training items.

        Returns
        -------
        ndarray of shape (n_samples, n_landmarks)
            The features.
        """
        check_is_fitted(self)
        items = self._test_items(X)
        check_memory(16.0 * len(items) * len(self.landmarks_), "Similarities as features", self.memory_limit)
        if isinstance(self.kernel_, Precomputed):
            return self.kernel_(items)[:, self.landmarks_]
        return self.kernel_(items, self.X_fit_)

    @property
    def _n_features_out(self) -> int:
        return len(self.landmarks_)


class SimilaritySVC(ClassifierMixin, KernelEstimator):
    """Support vector machine on similarities as features, with the 1-norm of the coefficients as penalty.

    ``min_{a, b} sum_j |a_j| + C / mean|k(z, z)| * sum_i max(0, 1 - y_i (sum_j k(x_i, z_j) a_j + b))``

    A linear programme: convex and solved exactly for any similarity, indefinite or asymmetric, without changing it. Few
    training items keep a coefficient, and only those are needed for prediction. Several classes: one against the rest.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        A kernel, ``"precomputed"``, a name of scikit-learn's pairwise kernels, or a function of two items.
    C : float, default=1.0
        The price of a margin violation for similarities whose mean own similarity ``|k(x, x)|`` is one; the larger, the
        more coefficients. Multiplying all similarities by a number changes nothing.
    class_weight : dict, "balanced" or None, default=None
        Factors of C per class.
    memory_limit : int, float, str or None, default=None
        Bytes that may be used; None means half of what is free.
    n_jobs : int or None, default=None
        Workers for a kernel that is a function of two items, and for the classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    support_ : ndarray of shape (n_support,)
        Positions of the training items with a coefficient that is not 0, for any class.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Their coefficients; one row for two classes, else one per class.
    intercept_ : ndarray of shape (n_problems,)
        Intercepts.
    X_fit_ : array-like or None
        The items of `support_`; None for precomputed input.
    duality_gap_ : float
        The largest relative duality gap of the linear programmes.
    n_features_in_ : int
        The number of features, or of training items for precomputed similarities.

    See Also
    --------
    KreinSVC : Keeps the geometry of the positive and the negative part.
    SimilarityFeatures : The features, for other models.

    References
    ----------
    .. [1] I. Alabdulmohsin, X. Gao, X. Zhang. Support vector machines with indefinite kernels. ACML 2014.

    Examples
    --------
    >>> from mercerless import SimilaritySVC
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SimilaritySVC(kernel="sigmoid").fit(X[::2], y[::2])
    >>> len(model.support_) < 75
    True
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        C: float = 1.0,
        class_weight: dict | str | None = None,
        memory_limit: int | float | str | None = None,
        n_jobs: int | None = None,
    ):
        self.kernel = kernel
        self.C = C
        self.class_weight = class_weight
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "SimilaritySVC":
        """Solve the linear programmes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), (n_samples, n_samples), or sequence of items
            Vectors, a precomputed matrix, or any objects the kernel function takes.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Nonnegative factors of C; an item of weight 0 asks for no margin.

        Returns
        -------
        SimilaritySVC
            Itself.
        """
        if not (isinstance(self.C, Real) and self.C > 0.0):
            raise ValueError(f"C must be positive, got {self.C!r}.")
        y = check_labels(y, type(self).__name__)
        weight = check_weight(sample_weight, len(y))
        kernel, items = self._train_items(X, weight)
        check_consistent_length(items, y)
        used = used_rows(weight, len(y))
        items = used_items(kernel, items, used)
        machines_at_once = min(effective_n_jobs(self.n_jobs), max(1, len(np.unique(y))))
        check_memory(
            150.0 * machines_at_once * len(items) ** 2, f"The linear programme of {len(items)} items",
            self.memory_limit, "use fewer rows, SimilarityFeatures with a linear machine, or raise memory_limit",
        )  # fmt: skip
        K = check_square(kernel(items), "X" if isinstance(kernel, Precomputed) else "the kernel matrix")
        y, weight = y[used], np.ones(len(used)) if weight is None else weight[used]
        classes = np.unique(y)
        K = K.astype(np.float64)
        unit = np.abs(np.diagonal(K)).mean() or np.abs(K).mean() or 1.0
        price = self.C / unit * weight * compute_sample_weight(self.class_weight, y)
        machines = _one_against_rest(K, y, classes, price, self.n_jobs)
        coef = np.array([machine.coef for machine in machines])
        kept = np.flatnonzero(np.any(coef != 0.0, axis=0))
        self.X_fit_ = None if isinstance(kernel, Precomputed) else items[kept]
        self.kernel_ = kernel
        self.classes_: NDArray = classes
        self.support_: NDArray = used[kept]
        self.dual_coef_: NDArray = coef[:, kept]
        self.intercept_: NDArray = np.array([machine.intercept for machine in machines])
        self.duality_gap_ = max(machine.gap for machine in machines)
        if not self.duality_gap_ <= 1e-5:
            message = f"The linear programme stopped at a relative duality gap of {self.duality_gap_:.1e}; rescale C."
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    def decision_function(self, X: Any) -> NDArray:
        """The value whose sign decides between two classes, or one value per class.

        Parameters
        ----------
        X : array-like or sequence of items
            New items; for precomputed input their similarities to all training items.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The decision values.
        """
        check_is_fitted(self)
        items = self._test_items(X)
        if len(self.support_) == 0:
            values = np.tile(self.intercept_, (len(items), 1))
        elif isinstance(self.kernel_, Precomputed):
            values = self.kernel_(items)[:, self.support_] @ self.dual_coef_.T + self.intercept_
        else:
            values = self.kernel_(items, self.X_fit_) @ self.dual_coef_.T + self.intercept_
        return values if len(self.classes_) > 2 else values[:, 0]

    def predict(self, X: Any) -> NDArray:
        """Labels.

        Parameters
        ----------
        X : array-like or sequence of items
            New items; for precomputed input their similarities to all training items.

        Returns
        -------
        ndarray of shape (n_samples,)
            The labels.
        """
        values = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(values))
        return self.classes_[values.argmax(axis=1) if values.ndim == 2 else (values > 0.0).astype(int)]


def _one_against_rest(K: NDArray, y: NDArray, classes: NDArray, price: NDArray, n_jobs: int | None) -> list:
    """One machine for at most two classes, else one per class."""
    positive = classes[-1:] if len(classes) <= 2 else classes
    return Parallel(n_jobs=n_jobs)(
        delayed(sparse_machine)(K, np.where(y == label, 1.0, -1.0), price) for label in positive
    )

"""The automatic learner for any similarity or distance: a classifier and a regressor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from mercerless.core.basis import is_precomputed
from mercerless.core.blocks import blockwise
from mercerless.core.conformal import ConformalMixin
from mercerless.core.estimator import run_tasks
from mercerless.core.folds import (
    OutOfFold,
    assign_folds,
    check_groups,
    splits_of,
    warn_of_lonely_classes,
)
from mercerless.core.memory import memory_budget, row_blocks
from mercerless.core.validation import (
    check_classes,
    check_random_state,
    check_targets,
    check_weight,
)
from mercerless.similarity.blocks import Block
from mercerless.similarity.comparing import ComparesItems, check_hits
from mercerless.similarity.explain import StackReasonsMixin
from mercerless.similarity.families import POINTS
from mercerless.similarity.fit import FittedFamilies, Targets, fit_families
from mercerless.similarity.hits import predict_linked

N_FOLDS = 5
#: Of more rows, a single part is held out instead of folds.
FOLDED_ROWS = 20_000
#: New rows that are compared at once: arrays of 2000 rows took up to 1.8 times as long per row, those of 256 no less.
ROWS_AT_ONCE = 500


class Task(NamedTuple):
    """Targets and weights of all items, and how their folds are dealt."""

    targets: Targets  # of the items that carry weight
    weight: NDArray  # of all items
    groups: NDArray | None  # of all items, as numbers
    used: NDArray  # positions of the items that carry weight
    given: NDArray  # numbers of classes, or numbers, of these
    encoding: dict[str, Any]


class SimilarityLearner(ConformalMixin, StackReasonsMixin, ComparesItems):
    """Base of the classifier and the regressor.

    A fit reads blocks of comparisons, judges families of learners on folds, averages the best of them, and fits these
    on all items. Several similarities have parts: estimators of one similarity each, which compare items only.
    """

    families_: FittedFamilies
    out_of_fold_: OutOfFold
    _parts: dict[str, ComparesItems] | None

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        kind: Any = "auto",
        direction: str = "symmetric",
        landmarks: int | str | ArrayLike | None = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.kernel = kernel
        self.kind = kind
        self.direction = direction
        self.landmarks = landmarks
        self.n_jobs = n_jobs
        self.random_state = random_state

    # the story of a fit

    def _learn(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, groups: ArrayLike | None = None
    ) -> None:
        task = self._task(y, sample_weight, groups)
        n = len(task.used)
        if n < 2:
            raise ValueError(f"X has n_samples={n} with weight; at least two are needed.")
        parts = self._similarities(X)
        if parts is None:
            blocks, attributes = self._training_blocks(X, task.weight)
        else:
            self._forget_columns()
            blocks = self._training_blocks_of_several(parts, X, task.weight)
            attributes = {}
        splits, fold_parts = self._folds(task)
        with self._progress(N_FOLDS + 1) as progress:
            if n >= 2000:
                progress.remedy = "; landmarks=1000 is faster"
            run = partial(run_tasks, progress, self.n_jobs, "fold")
            fitted = fit_families(
                blocks, task.targets, task.weight[task.used], splits, fold_parts, run
            )
        attributes["_parts"] = parts
        self._set_fitted(**attributes, **task.encoding, **self._described(fitted, task))

    @abstractmethod
    def _task(self, y: Any, sample_weight: Any, groups: Any) -> Task:
        """The checked targets, weights and groups."""

    def _folds(self, task: Task) -> tuple[list, NDArray]:
        """Splits on which families are judged, even in the classes, and parts that know nothing of these."""
        used = task.used
        n = len(used)
        groups = None if task.groups is None else task.groups[used]
        random = check_random_state(self.random_state)
        deal = partial(assign_folds, n=n, together=groups, random_state=random)
        many = n > FOLDED_ROWS
        fold_of = deal(10 if many else N_FOLDS, labels=task.targets.labels)
        splits = splits_of(fold_of)
        return splits[:1] if many else splits, deal(N_FOLDS)

    def _described(self, fitted: FittedFamilies, task: Task) -> dict[str, Any]:
        """The attributes that describe the average."""
        rows = task.used[fitted.judged]
        groups = None if task.groups is None else task.groups[rows]
        spectra = fitted.negative_spectrum
        return {
            "families_": fitted,
            "members_": tuple(fitted.settings),
            "weights_": fitted.average.weights,
            "family_scores_": fitted.family_scores,
            "negative_spectrum_": next(iter(spectra.values())) if len(spectra) == 1 else spectra,
            "certificate_": fitted.average.residual,
            "out_of_fold_": OutOfFold(rows, fitted.out_of_fold, task.given[fitted.judged], groups),
            "_weight": task.weight,
        }

    # several similarities

    def _similarities(self, X: Any) -> dict[str, Any] | None:
        """An estimator for each of several similarities; None for one."""
        names = similarity_names(self.kernel, X)
        if names is None:
            return None
        given = self.kernel
        if isinstance(given, (list, tuple)):
            given = dict(zip(names, given))
        kinds = self.kind if isinstance(self.kind, dict) else dict.fromkeys(names, self.kind)
        unknown = set(kinds) - set(names)
        if unknown:
            raise ValueError(
                f"kind has {unknown.pop()!r}, but the similarities are {', '.join(names)}."
            )
        parts: dict[str, Any] = {}
        for name in names:
            kernel = given[name] if isinstance(given, dict) else given
            options = {"kernel": kernel, "kind": kinds.get(name, "auto")}
            parts[name] = type(self)(**self.get_params(deep=False) | options)
        return parts

    def _training_blocks_of_several(
        self, parts: dict[str, Any], X: Any, weight: NDArray
    ) -> dict[str, Any]:
        """Blocks of all similarities and of their sum, which sees what only several together show."""
        of_parts = {}
        for name, (part, items) in zip(parts, self._with_items(parts, X)):
            of_parts[name], attributes = named(name, partial(part._training_blocks, items, weight))
            part._set_fitted(**attributes)
        return joined_blocks(of_parts)

    def _with_items(self, parts: dict[str, Any], X: Any) -> Iterator[tuple[Any, Any]]:
        """Every part with its items: its own entry of a dict or list of matrices, or the items of all."""
        if isinstance(X, dict):
            given = {str(name): items for name, items in X.items()}
            missing = [name for name in parts if name not in given]
            if missing:
                raise ValueError(
                    f"X has no entry for the similarity {missing[0]!r}; it has "
                    f"{', '.join(map(repr, given)) or 'none'}."
                )
            yield from ((part, given[name]) for name, part in parts.items())
            return
        is_matrix = all(is_precomputed(part.kernel) for part in parts.values())
        if is_matrix and len(X) != len(parts):
            raise ValueError(f"X has {len(X)} matrices for {len(parts)} similarities.")
        for number, part in enumerate(parts.values()):
            yield part, X[number] if is_matrix else X

    # the story of a prediction

    def _predict(self, X: Any, diag: Any = None, reverse: Any = None, among: Any = None) -> NDArray:
        """Probabilities or numbers of new items."""
        check_is_fitted(self)
        if among is not None:
            return self._predict_linked(X, reverse, among)
        blocks = self._compared(X, diag, reverse)
        return np.concatenate([self.families_(block) for block in blocks])

    def _predict_linked(self, X: Any, reverse: Any, among: Any) -> NDArray:
        """Predictions of hits of new items that also have hits among each other."""
        if "unit_" not in vars(self):
            raise ValueError(
                "among is for models of hits: fit a sparse X to use links of new items among each "
                "other."
            )
        links = check_hits(among, "among")
        new = self._new_blocks(self._check_new(X, None, reverse))[""]
        if links.shape != (len(new), len(new)):
            raise ValueError(f"among has shape {links.shape}, but there are {len(new)} new items.")
        links = self._similarities_of_hits(links)
        targets = self.families_.targets
        known = self._templates[""]
        return targets.in_units(predict_linked(known, new, links, targets.Y, targets.labels))

    def _compared(self, X: Any, diag: Any = None, reverse: Any = None) -> Iterator[dict[str, Any]]:
        """Comparisons of new items, some rows at a time."""
        if self._parts is None:
            parts: dict[str, Any] = {"": self}
            new = {"": self._check_new(X, diag, reverse)}
        else:
            parts = self._parts
            new = {}
            for name, (part, items) in zip(parts, self._with_items(parts, X)):
                own = diag.get(name) if isinstance(diag, dict) else diag
                back = reverse.get(name) if isinstance(reverse, dict) else reverse
                new[name] = named(name, partial(part._check_new, items, own, back))
        sizes = {name: one.items.shape[0] for name, one in new.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"The similarities disagree in size: {sizes}.")
        n_rows = next(iter(sizes.values()))
        n = len(self._weight)
        bases = [part._basis for part in parts.values()]
        widths = [n if basis is None else min(n, len(basis.centers) + POINTS) for basis in bases]
        bytes_per_row = 100 * sum(widths)
        budget = min(ROWS_AT_ONCE * bytes_per_row, memory_budget())
        for rows in row_blocks(n_rows, bytes_per_row, budget):
            of_parts = {
                name: part._new_blocks(new[name].take(rows)) for name, part in parts.items()
            }
            yield joined_blocks(of_parts)

    def __sklearn_is_fitted__(self) -> bool:
        return "_templates" in vars(self) or "families_" in vars(self)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # columns that are landmarks are not the rows' items: cross-validation splits rows only
        tags.input_tags.pairwise = tags.input_tags.pairwise and not self._names_columns
        tags.input_tags.sparse |= is_precomputed(self.kernel)
        return tags


def similarity_names(kernel: Any, X: Any) -> list[str] | None:
    """Names of several similarities: kernels in a dict or list, or precomputed matrices in one; None for one."""
    if isinstance(kernel, (dict, list, tuple)):
        given = kernel
    elif is_precomputed(kernel) and isinstance(X, dict) and not issparse(X):  # DOK is a dict
        given = X
    elif is_precomputed(kernel) and isinstance(X, (list, tuple)) and len(np.shape(X[0])) == 2:
        given = X
    else:
        return None
    if not given:
        raise ValueError("kernel must name at least one similarity.")
    return list(map(str, given if isinstance(given, dict) else range(len(given))))


def joined_blocks(of_parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The blocks of all similarities by name and, of several dense ones, the sum of the first block of each."""
    blocks = {
        f"{name} {key}".strip(): block
        for name, part in of_parts.items()
        for key, block in part.items()
    }
    first, *others = (next(iter(part.values())) for part in of_parts.values())
    if others and all(isinstance(block, Block) for block in (first, *others)):
        blocks["sum"] = first.plus(others)
    return blocks


def named(name: str, function: Any) -> Any:
    """A call for one of several similarities, with its name in error messages."""
    try:
        return function()
    except (ValueError, TypeError) as error:
        raise type(error)(f"Similarity {name!r}: {error}") from error


class SimilarityClassifier(ClassifierMixin, SimilarityLearner):
    """The automatic classifier for any similarity or distance: an average of calibrated learners.

    No single remedy for an indefinite matrix wins everywhere, and picking one by cross-validation often picks
    wrongly. This estimator fits several families, calibrates each out of fold, and predicts the average ::

        p(c | x) = sum_m weights[m] * softmax(slope[m] * score[m](x) + bias[m])[c],   weights >= 0, sum 1

    with the weights that minimize the out-of-fold Brier score, raised to a power (an average of calibrated learners is
    underconfident) that minimizes the out-of-fold log-loss. The families are

    - ``"clip"``, ``"flip"``, ``"square"``: ridge regression with the centered similarities' negative eigenvalues
      cut off, with their sign changed, or with all of them squared;
    - ``"gaussian"``: ridge regression on ``exp(-3 d^2 / u)`` and ``exp(-d / sqrt(u))``, u the median squared distance;
    - ``"profiles"``: kernel ridge regression with a Gaussian of the rows of standardized distances: two items are alike
      if their distances to all others are;
    - ``"embedding"``, with landmarks: the same with coordinates in the positive axes of the landmarks' spectrum, and
      ``"narrow_embedding"`` with narrower Gaussians;
    - ``"shares"``: ridge regression on the shares of the classes among the items that one and two steps lead to;
    - ``"neighbors"``: votes of the 5 and of the 15 nearest training items;
    - ``"classes"``: the mean distance to the nearest items of every class, or its logarithm.

    For sparse X see Notes.

    Parameters
    ----------
    kernel : Kernel, str, callable, or list or dict of these, default="gaussian"
        A kernel, ``"precomputed"``, a name of scikit-learn's pairwise kernels, or a function of two items (strings,
        series, graphs) that returns a similarity or a distance. A list or dict of several compares the same items in
        several ways; they and the sum of their squared distances are averaged together. Several matrices are given as
        a list or dict X with ``"precomputed"``, and items that are described differently for each similarity as a
        dict X.
    kind : {"auto", "similarity", "distance", "dissimilarity"}, or dict of these, default="auto"
        What the matrix holds. Distances d become similarities ``-d**2 / 2``, dissimilarities (which may be negative or
        differ from 0 on the diagonal) ``-d``. ``"auto"`` detects it by `mercerless.spectra.matrix_kind`. A dict is for
        several similarities that have names.
    direction : {"symmetric", "mean", "both", "rows"}, default="symmetric"
        What to do with a matrix that differs from its transpose: ``"symmetric"`` raises, ``"mean"`` averages the two
        directions, ``"both"`` also learns from each of them. Precomputed new items then need the other direction as
        ``reverse``. ``"rows"`` learns from the rows as they are, if new items have one direction only.
    landmarks : int, array-like of int, "columns", None or "auto", default="auto"
        Compare every item with this many random landmarks only, or with the training items of these row numbers, in
        training and prediction. None compares all items. ``"auto"`` does so up to 5000 items if memory suffices;
        otherwise it uses at most 400 landmarks, with a warning. Precomputed X may have one column per landmark, for new
        items too: ``"columns"`` says so, and row numbers (-1 for none) say which training item each column is.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights. Probabilities are then those of classes in these
        proportions; prediction sets cover as stated.
    n_jobs : int or None, default=None
        Folds fitted at the same time. The result does not depend on it.
    random_state : int, RandomState or None, default=0
        Seed of folds and landmarks.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    members_ : tuple of Setting
        The learners with a weight above 0: similarity (empty if there is one), family and parameter.
    weights_ : ndarray of shape (n_members,)
        Their weights, of sum 1.
    family_scores_ : dict of str to dict
        For every family the out-of-fold ``"accuracy"`` and ``"log_loss"`` of its best setting, and the sum of its
        ``"weight"``. The key ``"average"`` holds the average itself. All are cross-fitted.
    negative_spectrum_ : NegativeSpectrum, or dict of these
        Whether the negative eigenvalues help: ``z`` and ``verdict``; by name if there are several blocks.
    out_of_fold_ : OutOfFold
        The average's probabilities for the training items of positive weight (of more than 20,000 for some); `rows`,
        `prediction` and `target` (the number of the class). No item was used for its own learners, and settings,
        calibration, weights and temperature were chosen again on other items, in five parts that are drawn without
        regard to the classes.
    kind_ : str
        What the matrix was taken for.
    certificate_ : float
        The largest relative violation of the optimality conditions of calibration and weights.
    kernel_ : Kernel
        The resolved kernel.
    X_fit_ : array-like or None
        The training items, or those that are landmarks; None for precomputed input.
    landmarks_ : ndarray of shape (n_landmarks,) or None
        Row numbers of the landmarks; None if all items were compared.
    families_ : FittedFamilies
        The fitted learners.
    unit_ : float or None
        Only for sparse X: the median of distances, their unit; None for similarities.
    n_features_in_ : int
        The number of features, or of training items for precomputed similarities.

    See Also
    --------
    SimilarityRegressor : The same for numbers.
    KreinRidgeClassifier : One member with two penalties, faster.
    AsymmetricRidgeClassifier : Two families for directed similarities alone, faster.
    SimilarityFeatures : Similarities as features for any model.

    Notes
    -----
    One eigendecomposition, three products of matrices and ten Cholesky factorizations per fold, in single precision;
    new items are compared in double. With m landmarks ``O(n m^2)`` and n m numbers of memory. Distances come from
    similarities as ``k(x, x) + k(z, z) - 2 k(x, z)``, cut at 0; a new item's ``k(x, x)`` comes from the kernel, or is
    passed as ``diag``.

    ``direction="both"`` is for citations, attention, divergences, distances of one shape to another. All families work
    on the mean of both directions, and ``"shares"`` and ``"cosines"`` (ridge regression on rows of length one) on an
    item's similarities to all training items and back from them.

    A sparse X (``kernel="precomputed"``) has the known similarities of a search, a graph or a threshold; all other
    pairs are unknown or 0, and nothing dense is made. Families are votes of the hits, ridge regression on rows, and
    linear models on votes at one and at two steps. New items of a graph may bring their links among each other:
    ``predict(X, among=links)`` fits a linear model on the shares of the classes around every item in the graph of all.

    ``sample_weight`` enters every loss, and counts as repetition among neighbors. For several labels per item use
    `sklearn.multioutput.MultiOutputClassifier`; for missing comparisons put
    `mercerless.spectra.GapFiller` before this estimator.

    References
    ----------
    .. [1] Y. Chen, E. K. Garcia, M. R. Gupta, A. Rahimi, L. Cazzanti. Similarity-based classification: concepts and
       algorithms. Journal of Machine Learning Research 10, 2009.
    .. [2] L. Breiman. Stacked regressions. Machine Learning 24, 1996.

    Examples
    --------
    >>> from mercerless import SimilarityClassifier
    >>> from mercerless.datasets import load_digit_shapes
    >>> shapes = load_digit_shapes(200)
    >>> D, y = shapes.D, shapes.target
    >>> model = SimilarityClassifier(kernel="precomputed").fit(D[:150, :150], y[:150])
    >>> model.kind_
    'distance'
    >>> model.score(D[150:, :150], y[150:]) > 0.8
    True
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        kind: Any = "auto",
        direction: str = "symmetric",
        landmarks: int | str | ArrayLike | None = "auto",
        class_weight: dict | str | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ):
        super().__init__(
            kernel,
            kind=kind,
            direction=direction,
            landmarks=landmarks,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def _task(self, y: Any, sample_weight: Any, groups: Any) -> Task:
        name = type(self).__name__
        shape = np.asarray(y).shape
        if len(shape) == 2 and shape[1] > 1:
            raise ValueError(
                f"y has {shape[1]} columns, but {name} predicts one label per item; use "
                f"sklearn.multioutput.MultiOutputClassifier({name}(...)) for several."
            )
        weight, classes, labels = check_classes(y, sample_weight, self.class_weight, name)
        groups = check_groups(groups, len(labels))
        warn_of_lonely_classes(classes[labels], groups, weight)
        used = np.flatnonzero(weight)
        labels = labels[used]
        targets = Targets.of_classes(labels, len(classes))
        return Task(targets, weight, groups, used, labels, {"classes_": classes})

    @blockwise
    def predict_proba(
        self,
        X: Any,
        diag: ArrayLike | None = None,
        reverse: ArrayLike | None = None,
        among: Any = None,
    ) -> NDArray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like, sparse array or sequence of items
            New items; for precomputed input their similarities (or distances) to the training items or landmarks, one
            row per new item. For several similarities the same list or dict as in training.
        diag : array-like of shape (n_samples,), float or None, default=None
            For precomputed similarities whose training diagonal is not constant: the new items' own similarities
            ``k(x, x)``. Without them the mean of the training items' is taken, with a warning.
        reverse : array-like of shape (n_samples, n_train) or None, default=None
            For a precomputed directed matrix and a direction of "mean" or "both": the similarities of the training
            items to the new ones, one row per new item.
        among : sparse array of shape (n_samples, n_samples) or None, default=None
            For sparse X: links of the new items among each other.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return self._predict(X, diag, reverse, among)

    @blockwise
    def decision_function(
        self,
        X: Any,
        diag: ArrayLike | None = None,
        reverse: ArrayLike | None = None,
        among: Any = None,
    ) -> NDArray:
        """Log-odds of the second of two classes, or log-probabilities of more classes.

        Parameters
        ----------
        X, diag, reverse, among : array-like
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The decision values.
        """
        proba = self._predict(X, diag, reverse, among)
        logs = np.log(np.maximum(proba, np.finfo(float).tiny))
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    @blockwise
    def predict(
        self,
        X: Any,
        diag: ArrayLike | None = None,
        reverse: ArrayLike | None = None,
        among: Any = None,
    ) -> NDArray:
        """The most probable class.

        Parameters
        ----------
        X, diag, reverse, among : array-like
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        probabilities = self._predict(X, diag, reverse, among)
        return self.classes_[probabilities.argmax(axis=1)]


class SimilarityRegressor(RegressorMixin, SimilarityLearner):
    """The automatic regressor for any similarity or distance: an average of learners.

    The same families as `SimilarityClassifier` but those of classes, without calibration; ``"gaussian"`` also has the
    distances themselves, and ``"cosines"`` (ridge regression on rows of length one) are in place of shares ::

        f(x) = mean + sum_m weights[m] * (score[m](x) - mean),   weights >= 0

    with the weights that minimize the out-of-fold squared error (they need not sum to 1). If some targets lie more than
    three interquartile ranges beyond the quartiles, everything is also fitted on targets cut there, and the given ones
    are used only if that is better out of fold by 1.5 standard errors: one or two rows cannot decide.

    Parameters
    ----------
    kernel, kind, direction, landmarks, n_jobs, random_state : object
        As for `SimilarityClassifier`.

    Attributes
    ----------
    members_, weights_, negative_spectrum_, families_, certificate_
        As for `SimilarityClassifier`; the sum of the weights is free.
    kernel_, X_fit_, kind_, landmarks_, n_features_in_
        As for `SimilarityClassifier`.
    unit_ : float or None
        Only for sparse X.
    family_scores_ : dict of str to dict
        For every family the out-of-fold ``"r2"`` and ``"mse"`` (relative to the variance) of its best setting, and the
        sum of its ``"weight"``. The key ``"average"`` holds the average itself, cross-fitted.
    out_of_fold_ : OutOfFold
        The average's predictions for the training items of positive weight, with learners, settings and weights from
        other folds; `rows`, `prediction` and `target`.

    See Also
    --------
    SimilarityClassifier : The same for labels, with the details.
    KreinRidge : One member with two penalties, faster.

    References
    ----------
    .. [1] L. Breiman. Stacked regressions. Machine Learning 24, 1996.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import SimilarityRegressor
    >>> x = np.linspace(0, 3, 60)[:, None]
    >>> model = SimilarityRegressor().fit(x[::2], np.sin(x[::2, 0]))
    >>> model.score(x[1::2], np.sin(x[1::2, 0])) > 0.99
    True
    """

    def _task(self, y: Any, sample_weight: Any, groups: Any) -> Task:
        name = type(self).__name__
        y = check_targets(y, name)
        if y.ndim == 2 and y.shape[1] > 1:
            raise ValueError(
                f"y has {y.shape[1]} columns, but {name} predicts one number per item; use "
                f"sklearn.multioutput.MultiOutputRegressor({name}(...)) for several."
            )
        y = column_or_1d(y, warn=True)
        weight = check_weight(sample_weight, len(y))
        used = np.flatnonzero(weight)
        targets = Targets.of_numbers(y[used], weight[used])
        return Task(targets, weight, check_groups(groups, len(y)), used, y[used], {})

    @blockwise
    def predict(
        self,
        X: Any,
        diag: ArrayLike | None = None,
        reverse: ArrayLike | None = None,
        among: Any = None,
    ) -> NDArray:
        """Predicted numbers.

        Parameters
        ----------
        X, diag, reverse, among : array-like
            New items, their own similarities, their other direction and their links, as for
            `SimilarityClassifier.predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions.
        """
        return self._predict(X, diag, reverse, among)


class HitsClassifier(SimilarityClassifier):
    """`SimilarityClassifier` of a sparse X: hits of a search, links of a graph, thresholded similarities.

    Parameters
    ----------
    kind : {"auto", "similarity", "distance"}, default="auto"
        What the stored entries are; ``"auto"`` means similarities. Distances d become ``exp(-(d / m)^2)`` with their
        median m.
    direction : {"rows", "both", "mean", "symmetric"}, default="rows"
        Whether to learn from the hits of every item only, or also from the items that have it as a hit: citations and
        links of a graph. New items then need the hits of the training items on them, as ``reverse``.
    class_weight, n_jobs, random_state : object
        As for `SimilarityClassifier`.

    Attributes
    ----------
    classes_, members_, weights_, family_scores_, negative_spectrum_, out_of_fold_, certificate_, families_
        As for `SimilarityClassifier`.
    kernel_, X_fit_, landmarks_, kind_, unit_, n_features_in_
        As for `SimilarityClassifier`.

    See Also
    --------
    SimilarityClassifier : The same model, with its attributes; it takes dense matrices as well.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from mercerless import HitsClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=120)
    >>> chance = np.where(y[:, None] == y, 0.2, 0.02)
    >>> links = np.triu(rng.uniform(size=(120, 120)) < chance, 1)
    >>> hits = csr_array((links + links.T).astype(float))
    >>> model = HitsClassifier().fit(hits[:90][:, :90], y[:90])
    >>> model.score(hits[90:][:, :90], y[90:]) > 0.8
    True
    """

    def __init__(
        self,
        *,
        kind: Any = "auto",
        direction: str = "rows",
        class_weight: dict | str | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ):
        super().__init__(
            "precomputed",
            kind=kind,
            direction=direction,
            class_weight=class_weight,
            n_jobs=n_jobs,
            random_state=random_state,
        )


class HitsRegressor(SimilarityRegressor):
    """`SimilarityRegressor` of a sparse X: hits of a search, links of a graph, thresholded similarities.

    Parameters
    ----------
    kind, direction, n_jobs, random_state : object
        As for `HitsClassifier`.

    Attributes
    ----------
    members_, weights_, family_scores_, negative_spectrum_, out_of_fold_, certificate_, families_
        As for `SimilarityRegressor`.
    kernel_, X_fit_, landmarks_, kind_, unit_, n_features_in_
        As for `SimilarityRegressor`.

    See Also
    --------
    HitsClassifier : For classes.
    SimilarityRegressor : The same model, with its attributes; it takes dense matrices as well.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from mercerless import HitsRegressor
    >>> place = np.random.default_rng(0).uniform(size=100)
    >>> near = np.abs(place[:, None] - place) < 0.1
    >>> hits = csr_array(np.where(near, 1.0 - np.abs(place[:, None] - place), 0.0))
    >>> y = np.sin(6.0 * place)
    >>> model = HitsRegressor().fit(hits[:80][:, :80], y[:80])
    >>> model.score(hits[80:][:, :80], y[80:]) > 0.9
    True
    """

    def __init__(
        self,
        *,
        kind: Any = "auto",
        direction: str = "rows",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ):
        super().__init__(
            "precomputed", kind=kind, direction=direction, n_jobs=n_jobs, random_state=random_state
        )

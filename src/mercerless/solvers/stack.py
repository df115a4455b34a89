"""The automatic stack: many small learners on one similarity matrix, calibrated out of fold and averaged.

Every function here is pure. A *setting* names one learner (its family and its parameter); `fit_members` fits any
set of settings on one matrix with one eigendecomposition, `member_scores` applies them to new rows, `stack_weights`
finds the nonnegative weights of their average.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, eigh, solve_triangular
from scipy.optimize import nnls

from mercerless._memory import row_blocks

# Relative penalties: all cost the same eigendecomposition for a spectrum, a Cholesky factorisation each for features.
SPECTRAL_PENALTIES = tuple(10.0**power for power in range(-5, 2))
FEATURE_PENALTIES = tuple(10.0**power for power in range(-4, 0))
NEIGHBORS = (1, 3, 5, 9, 15, 25)
WIDTHS = (3.0,)
SPECTRAL = ("clip", "flip", "square")
# Families that need the new item's own similarity k(x, x); the ranking of its neighbours does not.
NEED_DIAGONAL = ("features", "gaussian")
FAMILIES = (*SPECTRAL, "neighbors", *NEED_DIAGONAL)


class Setting(NamedTuple):
    """One learner of the stack.

    Attributes
    ----------
    family : str
        One of ``FAMILIES``.
    parameter : float
        The number of neighbours for ``"neighbors"``, else the penalty relative to the matrix it is added to.
    width : float
        For ``"gaussian"``: the factor of the squared distances, in units of one over their median; else 0.
    """

    family: str
    parameter: float
    width: float = 0.0


class View(NamedTuple):
    """Settings that are linear in the same function of a row of similarities.

    Attributes
    ----------
    kind : str
        ``"similarity"``, ``"distance"`` or ``"gaussian"``.
    width : float
        The factor of the squared distances inside a Gaussian.
    positions : ndarray of shape (n_settings,)
        Where the settings stand among all.
    coef : ndarray of shape (n, n_settings, q)
        The coefficients of the training items.
    intercept : ndarray of shape (n_settings, q)
        The intercepts.
    """

    kind: str
    width: float
    positions: NDArray
    coef: NDArray
    intercept: NDArray


class Members(NamedTuple):
    """Fitted learners.

    Attributes
    ----------
    settings : tuple of Setting
        What was fitted, in the order of the scores.
    views : tuple of View
        The linear learners.
    targets : ndarray of shape (n, q)
        The training targets, for the neighbours.
    weight : ndarray of shape (n,)
        The training weights, for the neighbours.
    diag : ndarray of shape (n,)
        The training items' own similarities.
    """

    settings: tuple[Setting, ...]
    views: tuple[View, ...]
    targets: NDArray
    weight: NDArray
    diag: NDArray


class Weights(NamedTuple):
    """The weights of an average.

    Attributes
    ----------
    weights : ndarray of shape (n_members,)
        Nonnegative.
    residual : float
        The certificate: the largest violation of the optimality conditions of the nonnegative least squares problem,
        relative to its right-hand side.
    """

    weights: NDArray
    residual: float


def default_settings() -> tuple[Setting, ...]:
    """All settings that compete: six families, 35 settings.

    Returns
    -------
    tuple of Setting
        In the order of ``FAMILIES``.
    """
    spectral = [Setting(family, penalty) for family in SPECTRAL for penalty in SPECTRAL_PENALTIES]
    neighbors = [Setting("neighbors", count) for count in NEIGHBORS]
    features = [Setting("features", penalty) for penalty in FEATURE_PENALTIES]
    gaussian = [Setting("gaussian", penalty, width) for width in WIDTHS for penalty in FEATURE_PENALTIES]
    return (*spectral, *neighbors, *features, *gaussian)


def spectral_path(
    K: NDArray, Y: NDArray, settings: Sequence[Setting], weight: NDArray | None = None
) -> tuple[NDArray, NDArray]:
    """``min_f sum_i w_i (y_i - f(x_i))^2 + penalty * max(t) * |f|_t^2``, f in the span of the centred similarities.

    ``|f|_t`` is the norm that replaces every eigenvalue s of the centred matrix by ``t(s)``: ``max(s, 0)`` for
    ``"clip"``, ``|s|`` for ``"flip"``, ``s^2`` for ``"square"``; directions with ``t = 0`` are not used. All settings
    and targets share one eigendecomposition. Predictions use the similarities as they are:
    ``f(x) = k_x @ coef + intercept``, since the coefficients sum to zero.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Symmetric similarities; eigenvalues may have any sign.
    Y : ndarray of shape (n, q)
        Targets.
    settings : sequence of Setting
        Families ``"clip"``, ``"flip"``, ``"square"``.
    weight : ndarray of shape (n,) or None, default=None
        Positive weights; whole numbers equal repeated items.

    Returns
    -------
    coef : ndarray of shape (n, n_settings, q)
        Expansion coefficients.
    intercept : ndarray of shape (n_settings, q)
        Intercepts.

    Notes
    -----
    Cost: one ``eigh`` and ``O(n^2 q n_settings)``. Degenerate cases: a centred matrix of zero, or one without an
    eigenvalue that the family keeps, gives the weighted mean of ``Y``.
    """
    weight = np.ones(len(K)) if weight is None else weight / weight.mean()
    root = np.sqrt(weight)[:, None]
    column_mean = weight @ K / len(K)
    centred = K - column_mean
    centred -= (column_mean - weight @ column_mean / len(K))[:, None]
    centred *= root
    centred *= root.T
    # eigh reads one triangle only, so the last bits of asymmetry do not matter
    values, vectors = eigh(centred, driver="evd", overwrite_a=True, check_finite=False)
    kept = np.abs(values) > 1e-8 * np.abs(values).max()
    values, vectors = values[kept], vectors[:, kept]
    mean = weight @ Y / len(K)
    target = vectors.T @ (root * (Y - mean))
    transforms = {"clip": np.maximum(values, 0.0), "flip": np.abs(values), "square": values**2}
    filters = np.empty((len(values), len(settings)))
    for column, setting in enumerate(settings):
        transformed = transforms[setting.family]
        largest = transformed.max(initial=0.0)
        # (t/s) / (t + penalty max t); s is never zero, and t = 0 gives 0 unless nothing is kept at all
        filters[:, column] = transformed / values / (transformed + setting.parameter * (largest or 1.0))
    filtered = (filters[:, :, None] * target[:, None, :]).reshape(len(values), len(settings) * Y.shape[1])
    coef = (root * (vectors @ filtered)).reshape(len(K), len(settings), Y.shape[1])
    return coef, mean - np.tensordot(column_mean, coef, 1)


def feature_path(
    F: NDArray, Y: NDArray, penalties: Sequence[float], weight: NDArray | None = None, standardize: bool = False
) -> tuple[NDArray, NDArray]:
    """``min_c sum_i w_i (y_i - mean - (F_i - mean) c)^2 + penalty * |A|_F * sum_j c_j^2 / w_j``.

    Ridge regression on a row of ``F`` as features, in its dual form with ``A`` the weighted Gram matrix of the centred
    rows; one Cholesky factorisation per penalty, all targets at once. Column j belongs to training item j, so it
    carries that item's weight and whole weights equal repeated items.

    Parameters
    ----------
    F : ndarray of shape (n, n)
        Row i: the features of training item i.
    Y : ndarray of shape (n, q)
        Targets.
    penalties : sequence of float
        Penalties relative to the Frobenius norm of the Gram matrix.
    weight : ndarray of shape (n,) or None, default=None
        Positive weights.
    standardize : bool, default=False
        Whether to divide every column by its standard deviation first.

    Returns
    -------
    coef : ndarray of shape (n, n_penalties, q)
        Coefficients of the columns of ``F`` as given.
    intercept : ndarray of shape (n_penalties, q)
        Intercepts.

    Notes
    -----
    Cost: ``2 n^3 + n_penalties n^3 / 3`` operations. Constant columns get the coefficient 0; if all are constant the
    prediction is the weighted mean of ``Y``.
    """
    n = len(F)
    weight = np.ones(n) if weight is None else weight / weight.mean()
    root = np.sqrt(weight)[:, None]
    column_mean = weight @ F / n
    features = (F - column_mean) * root * root.T
    spread = np.sqrt(np.einsum("ij,ij->j", features, features) / (n * weight))
    # what is left of a constant column after centring is rounding
    constant = spread <= 1e-13 * np.abs(column_mean)
    inverse = np.where(constant, 0.0, 1.0 / np.where(constant | (not standardize), 1.0, spread))
    features *= inverse
    gram = features @ features.T
    norm = np.linalg.norm(gram) or 1.0
    mean = weight @ Y / n
    coef = np.empty((n, len(penalties), Y.shape[1]))
    diagonal = np.diagonal(gram).copy()
    for position, penalty in enumerate(penalties):
        np.fill_diagonal(gram, diagonal + penalty * norm)
        dual = cho_solve(cho_factor(gram, check_finite=False), root * (Y - mean), check_finite=False)
        coef[:, position] = (inverse[:, None] * root) * (features.T @ dual)
    return coef, mean - np.tensordot(column_mean, coef, 1)


def squared_distances(K: NDArray, diag_rows: NDArray, diag_columns: NDArray) -> NDArray:
    """``max(0, k(x, x) + k(z, z) - 2 k(x, z))``, the squared distances that similarities imply.

    Parameters
    ----------
    K : ndarray of shape (m, n)
        Similarities.
    diag_rows : ndarray of shape (m,)
        The rows' own similarities.
    diag_columns : ndarray of shape (n,)
        The columns' own similarities.

    Returns
    -------
    ndarray of shape (m, n)
        Squared distances; negative ones, which an indefinite kernel can give, are cut at 0, and so is what rounding
        leaves of a zero (its root would be a distance of 1e-8).
    """
    squares = K * -2.0
    squares += diag_rows[:, None]
    squares += diag_columns
    largest = max(np.abs(diag).max(initial=0.0) for diag in (diag_rows, diag_columns))
    squares[squares <= 8.0 * np.finfo(float).eps * largest] = 0.0
    return squares


def fit_members(K: NDArray, Y: NDArray, settings: Sequence[Setting], weight: NDArray | None = None) -> Members:
    """Fit every setting on one matrix of similarities.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Symmetric similarities.
    Y : ndarray of shape (n, q)
        Targets.
    settings : sequence of Setting
        What to fit.
    weight : ndarray of shape (n,) or None, default=None
        Positive weights.

    Returns
    -------
    Members
        The fitted learners.

    Notes
    -----
    Cost: one ``eigh`` for all settings of the three spectral families, one Gram matrix for ``"features"`` and one for
    ``"gaussian"`` with a Cholesky factorisation per penalty; nothing for neighbours.
    """
    weight = np.ones(len(K)) if weight is None else weight
    groups: dict[tuple[str, float], list[int]] = {}
    for position, setting in enumerate(settings):
        if setting.family != "neighbors":
            kind = {"features": "distance", "gaussian": "gaussian"}.get(setting.family, "similarity")
            groups.setdefault((kind, setting.width), []).append(position)
    diag = np.diagonal(K).copy()
    unit = 1.0
    if any(kind == "gaussian" for kind, _ in groups):
        squares = squared_distances(K, diag, diag)
        unit = float(np.median(squares[np.triu_indices(len(K), 1)])) if len(K) > 1 else 0.0
        unit = unit or float(squares.mean()) or 1.0
    views = []
    for (kind, width), positions in groups.items():
        chosen = [settings[i] for i in positions]
        factor = width / unit
        if kind == "similarity":
            coef, intercept = spectral_path(K, Y, chosen, weight)
        else:
            coef, intercept = feature_path(
                view_rows(K, diag, diag, kind, factor),
                Y,
                [setting.parameter for setting in chosen],
                weight,
                standardize=kind == "distance",
            )
        views.append(View(kind, factor, np.array(positions), coef, intercept))
    return Members(tuple(settings), tuple(views), Y, weight, diag)


def view_rows(K: NDArray, diag_rows: NDArray | None, diag_columns: NDArray, kind: str, factor: float) -> NDArray:
    """What a learner of this kind is linear in: similarities, distances, or ``exp(-factor * distance^2)``.

    Parameters
    ----------
    K : ndarray of shape (m, n)
        Similarities.
    diag_rows, diag_columns : ndarray of shape (m,) and (n,)
        Own similarities; the rows' may be None for ``"similarity"``.
    kind : str
        ``"similarity"``, ``"distance"`` or ``"gaussian"``.
    factor : float
        The factor inside the Gaussian.

    Returns
    -------
    ndarray of shape (m, n)
        One row of features per item.
    """
    if kind == "similarity" or diag_rows is None:
        return K
    squares = squared_distances(K, diag_rows, diag_columns)
    if kind == "distance":
        return np.sqrt(squares, out=squares)
    squares *= -factor
    return np.exp(squares, out=squares)


def member_scores(members: Members, K: NDArray, diag: NDArray | None = None) -> NDArray:
    """Every learner's scores for new rows.

    Parameters
    ----------
    members : Members
        The fitted learners.
    K : ndarray of shape (m, n)
        Similarities of new items to the training items.
    diag : ndarray of shape (m,) or None, default=None
        The new items' own similarities; without them the families of ``NEED_DIAGONAL`` score 0.

    Returns
    -------
    ndarray of shape (n_settings, m, q)
        The scores.
    """
    n_outputs = members.targets.shape[1]
    scores = np.zeros((len(members.settings), len(K), n_outputs))
    for rows in row_blocks(len(K), 24.0 * K.shape[1]):
        own = None if diag is None else diag[rows]
        for view in members.views:
            if own is None and view.kind != "similarity":
                continue
            features = view_rows(K[rows], own, members.diag, view.kind, view.width)
            values = features @ view.coef.reshape(len(view.coef), -1)
            values = values.reshape(len(values), len(view.positions), n_outputs) + view.intercept
            scores[view.positions, rows] = values.swapaxes(0, 1)
        counts = {int(setting.parameter) for setting in members.settings if setting.family == "neighbors"}
        if counts:
            votes = neighbor_means(members.diag - 2.0 * K[rows], members.targets, sorted(counts), members.weight)
            for index, setting in enumerate(members.settings):
                if setting.family == "neighbors":
                    scores[index, rows] = votes[int(setting.parameter)]
    return scores


def neighbor_means(
    distances: NDArray, Y: NDArray, counts: Sequence[int], weight: NDArray | None = None
) -> dict[int, NDArray]:
    """The mean target of the ``k`` nearest training items, for several ``k``.

    Items as far as the k-th, up to rounding, share what is left of the k votes, so the result depends neither on the
    order of the items nor on the rows' own similarity nor on the last bits; a thousandth of the nearest items' mean
    breaks tied votes.

    Parameters
    ----------
    distances : ndarray of shape (m, n)
        Any quantity that increases with the distance within each row.
    Y : ndarray of shape (n, q)
        Targets.
    counts : sequence of int
        The numbers of neighbours; those above n mean all.
    weight : ndarray of shape (n,) or None, default=None
        Positive weights of the training items' votes.

    Returns
    -------
    dict of int to ndarray of shape (m, q)
        The means.
    """
    n = distances.shape[1]
    weight = np.ones(n) if weight is None else weight
    weighted = np.column_stack([weight[:, None] * Y, weight])
    sizes = {count: min(count, n) for count in [1, *counts]}
    tol = 1e-10 * np.abs(distances).max(axis=1, keepdims=True)
    ranked = np.partition(distances, sorted({size - 1 for size in sizes.values()}), axis=1)
    means: dict[int, NDArray] = {}
    for count, size in sizes.items():
        last = ranked[:, size - 1 : size]
        nearer, tied = (distances < last - tol).astype(float), (np.abs(distances - last) <= tol).astype(float)
        share = (size - nearer.sum(axis=1)) / tied.sum(axis=1)
        sums = nearer @ weighted + share[:, None] * (tied @ weighted)
        means[count] = sums[:, :-1] / sums[:, -1:]
    return {count: (means[count] + 1e-3 * means[1]) / 1.001 for count in counts}


def out_of_fold_scores(
    K: NDArray,
    Y: NDArray,
    train: NDArray,
    test: NDArray,
    settings: Sequence[Setting],
    weight: NDArray | None = None,
    rows: NDArray | None = None,
) -> NDArray:
    """Fit every setting on the rows ``train`` and score the rows ``test``.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Symmetric similarities of all items.
    Y : ndarray of shape (n, q)
        Targets of all items.
    train, test : ndarray of int
        The two parts.
    settings : sequence of Setting
        What to fit.
    weight : ndarray of shape (n,) or None, default=None
        Positive weights.
    rows : ndarray of shape (n, n) or None, default=None
        What the rows ``test`` are taken from, if not from K: one direction, where K is the mean of two.

    Returns
    -------
    ndarray of shape (n_settings, len(test), q)
        The scores.
    """
    members = fit_members(K[np.ix_(train, train)], Y[train], settings, None if weight is None else weight[train])
    return member_scores(members, (K if rows is None else rows)[np.ix_(test, train)], np.diagonal(K)[test])


def select_settings(settings: Sequence[Setting], *criteria: NDArray) -> NDArray:
    """Of every family, the settings that minimise one of the criteria.

    Parameters
    ----------
    settings : sequence of Setting
        The settings.
    *criteria : ndarray of shape (n_settings,)
        Losses; the first also breaks ties of the others.

    Returns
    -------
    ndarray of int
        Positions of the chosen settings, in their original order.
    """
    chosen = set()
    for family in dict.fromkeys(setting.family for setting in settings):
        index = np.array([i for i, setting in enumerate(settings) if setting.family == family])
        for criterion in criteria:
            chosen.add(int(index[np.lexsort((criteria[0][index], criterion[index]))[0]]))
    return np.array(sorted(chosen))


def stack_weights(
    predictions: NDArray,
    Y: NDArray,
    weight: NDArray | None = None,
    penalty: float | None = None,
    normalize: bool = True,
) -> Weights:
    """``min_{v >= 0} sum_i w_i |y_i - sum_m v_m p_mi|^2 + penalty * scale * sum_m (v_m - 1/M)^2``.

    Parameters
    ----------
    predictions : ndarray of shape (n_members, n, q)
        Out-of-fold predictions (probabilities, or centred values).
    Y : ndarray of shape (n, q)
        What they should be.
    weight : ndarray of shape (n,) or None, default=None
        Nonnegative weights.
    penalty : float or None, default=None
        How strongly the weights are drawn to equality; None is 0.02 with `normalize`, else 0.1.
    normalize : bool, default=True
        Whether the weights are divided by their sum, as an average of probabilities needs; then ``scale`` is the sum
        of weights. Otherwise ``scale`` is the smallest squared error of a member, so that a nearly perfect member is
        not diluted.

    Returns
    -------
    Weights
        The weights and the certificate.

    Notes
    -----
    Strictly convex, solved exactly by an active set on the ``M x M`` normal equations. If all weights are 0 (no member
    is better than nothing), normalised weights are equal.
    """
    n_members = len(predictions)
    weight = np.ones(len(Y)) if weight is None else weight
    root = np.sqrt(weight)[:, None]
    design = (predictions * root).reshape(n_members, -1)
    target = (Y * root).ravel()
    if normalize:
        pull = (0.02 if penalty is None else penalty) * weight.sum()
    else:
        best = ((design - target) ** 2).sum(axis=1).min()
        pull = (0.1 if penalty is None else penalty) * (max(best, 1e-8 * (target @ target)) or 1.0)
    matrix = design @ design.T + pull * np.eye(n_members)
    right = design @ target + pull / n_members
    factor = cholesky(matrix, lower=True)
    solution, _ = nnls(factor.T, solve_triangular(factor, right, lower=True))
    gradient = matrix @ solution - right
    violation = np.where(solution > 0.0, np.abs(gradient), np.maximum(-gradient, 0.0))
    residual = float(violation.max() / (np.abs(right).max() or 1.0))
    if normalize:
        total = solution.sum()
        solution = solution / total if total > 0.0 else np.full(n_members, 1.0 / n_members)
    return Weights(solution, residual)


def paired_z(losses: NDArray, others: NDArray, weight: NDArray | None = None) -> float:
    """How many standard errors ``losses`` lie below ``others`` on average; positive if ``losses`` are better.

    Parameters
    ----------
    losses, others : ndarray of shape (n,)
        Losses of two learners on the same items.
    weight : ndarray of shape (n,) or None, default=None
        Nonnegative weights.

    Returns
    -------
    float
        The weighted mean difference over its standard error; 0 when the two agree everywhere.
    """
    weight = np.ones(len(losses)) if weight is None else weight
    difference = others - losses
    mean = weight @ difference / weight.sum()
    error = np.sqrt((weight**2) @ (difference - mean) ** 2) / weight.sum()
    # differences that are rounding say nothing, however consistent
    if abs(mean) <= 1e-10 * (1.0 + np.abs(losses).mean()):
        return 0.0
    return float(mean / error) if error > 0.0 else float(np.sign(mean) * np.inf)

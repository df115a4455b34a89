"""How far targets scatter around predictions: standard deviations from out-of-fold errors and a posterior's shape."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import GammaRegressor

from mercerless.core.blocks import take_rows
from mercerless.core.folds import OutOfFold, assign_folds
from mercerless.core.scaling import FeatureScaling
from mercerless.lab.model import LocalForm, Projected
from mercerless.lab.solver import factor_of, inverse_of


@dataclass(frozen=True)
class SpreadLimits:
    """Thresholds and sizes for varying deviations."""

    #: Penalty on the coefficients of standardized signs, as of so many errors.
    penalty: float = 4.0
    #: With fewer errors there is one deviation for all.
    fewest: int = 30
    #: Folds that judge whether deviations vary.
    folds: int = 10
    #: Rows whose errors are used at most.
    most_rows: int = 5000
    #: Centers of the posterior at most.
    most_centers: int = 1000
    #: Noise relative to the process, within which the posterior has a shape.
    ridges: tuple[float, float] = (3e-3, 1.0)


LIMITS = SpreadLimits()


class Spread(NamedTuple):
    """The standard deviation of errors, the same everywhere or by signs of large errors.

    Attributes
    ----------
    level : float
        The logarithm of the mean square of the out-of-fold errors; if there are coefficients, their constant.
    coef : ndarray of shape (n_signs,)
        Coefficients of the standardized signs in the logarithm of the variance; all 0 if one deviation is as good.
    center, scale, low, high : ndarray of shape (n_signs,)
        Units of the signs, and the range of the training rows, beyond which they are taken at its ends.
    gain : float
        Gain in the held-out log density of an error over one deviation for all rows; 0 if there is one.
    ratios : ndarray of shape (n_errors,)
        The absolute out-of-fold errors over deviations that were fitted without them, in ascending order; the
        intervals of `predict_interval` are made of these.
    groups : ndarray of shape (n_errors,) or None
        The groups of these errors; None if no groups were given to fit.
    """

    level: float
    coef: NDArray
    center: NDArray
    scale: NDArray
    low: NDArray
    high: NDArray
    gain: float = 0.0
    ratios: NDArray = np.zeros(0)
    groups: NDArray | None = None

    def __call__(self, signs: NDArray) -> NDArray:
        """Standard deviations of rows with these signs (m, n_signs)."""
        standard = (np.clip(signs, self.low, self.high) - self.center) / self.scale
        return np.exp(0.5 * (self.level + standard @ self.coef))


def fit_spread(errors: NDArray, signs: NDArray, groups: NDArray | None = None) -> Spread:
    """One deviation, or ``log variance = level + coef . signs`` if that proves itself.

    The coefficients minimize ``sum_i log v_i + e_i^2 / v_i + 4 |coef|^2`` (normal errors). They are kept if the
    log density of errors in ten folds, which hold out whole groups, is higher than with one deviation by more than its
    standard error.
    """
    squares = np.maximum(errors**2, np.finfo(float).tiny)
    varies = squares.min() < squares.max() and np.any(np.ptp(signs, axis=0) > 0)
    is_one_group = groups is not None and len(np.unique(groups)) == 1
    if len(errors) < LIMITS.fewest or is_one_group or not varies:
        return _one_deviation(squares, signs, groups)
    gains, deviations = _held_out_gains(squares, signs, groups)
    standard_error = gains.std() / np.sqrt(len(gains))
    if not gains.mean() > standard_error:
        return _one_deviation(squares, signs, groups)
    spread = _varying_deviation(squares, signs)._replace(gain=float(gains.mean()))
    return _with_ratios(spread, np.sqrt(squares) / deviations, groups)


def _with_ratios(spread: Spread, ratios: NDArray, groups: NDArray | None) -> Spread:
    """With the ratios of errors and deviations in ascending order, and their groups."""
    order = np.argsort(ratios, kind="stable")
    if groups is not None:
        groups = groups[order]
    return spread._replace(ratios=ratios[order], groups=groups)


def _one_deviation(squares: NDArray, signs: NDArray, groups: NDArray | None) -> Spread:
    """The same deviation everywhere."""
    n_signs = signs.shape[1]
    spread = Spread(
        level=float(np.log(squares.mean())),
        coef=np.zeros(n_signs),
        center=np.zeros(n_signs),
        scale=np.ones(n_signs),
        low=signs.min(axis=0),
        high=signs.max(axis=0),
    )
    return _with_ratios(spread, np.sqrt(squares / squares.mean()), groups)


def _varying_deviation(squares: NDArray, signs: NDArray) -> Spread:
    """Coefficients of the signs: a regression of squared errors, whose own scatter is as large as they are."""
    center = signs.mean(axis=0)
    scale = signs.std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    unit = float(squares.mean())
    relative = np.maximum(squares / unit, 1e-12)
    model = GammaRegressor(alpha=2.0 * LIMITS.penalty / len(squares), solver="newton-cholesky")
    with np.errstate(over="ignore", invalid="ignore"):  # steps that its line search takes back
        model.fit((signs - center) / scale, relative)
    return Spread(
        level=float(model.intercept_ + np.log(unit)),
        coef=model.coef_,
        center=center,
        scale=scale,
        low=signs.min(axis=0),
        high=signs.max(axis=0),
    )


def _held_out_gains(
    squares: NDArray, signs: NDArray, groups: NDArray | None
) -> tuple[NDArray, NDArray]:
    """Gain in the log density of every error by varying deviations, both fitted without its fold.

    Also these deviations.
    """
    fold_of = np.random.RandomState(0).permutation(len(squares)) % LIMITS.folds
    if groups is not None and len(np.unique(groups)) < len(groups):  # groups of several rows
        fold_of = assign_folds(LIMITS.folds, len(squares), together=groups, random_state=0)
    gains = np.empty(len(squares))
    deviations = np.empty(len(squares))
    for fold in np.unique(fold_of):
        test = fold_of == fold
        train = ~test
        one = np.log(squares[train].mean())
        deviations[test] = _varying_deviation(squares[train], signs[train])(signs[test])
        varying = 2.0 * np.log(deviations[test])
        loss_of_one = one + squares[test] * np.exp(-one)
        loss_of_varying = varying + squares[test] * np.exp(-varying)
        gains[test] = 0.5 * (loss_of_one - loss_of_varying)
    return gains, deviations


class Posterior(NamedTuple):
    """The posterior variance of a Gaussian process with a form's kernel, observed at its centers."""

    scaling: FeatureScaling
    kernel: Projected
    centers: NDArray
    inverse: NDArray  # of the kernel matrix with the noise
    ridge: float

    def __call__(self, X: NDArray, seen: bool = False) -> NDArray:
        """The logarithm of the variance of a new target over that of the noise; a `seen` center as if left out."""
        K = self.kernel(self.scaling(X, self.centers.dtype), self.centers)
        explained = np.einsum("ij,ij->i", K @ self.inverse, K)
        variance = np.maximum(1.0 - explained, 0.0)
        logs = np.log1p(variance / self.ridge)
        if seen:
            nearest = K.argmax(axis=1)
            rounding = 1e-9 if K.dtype == np.float64 else 1e-5
            is_center = K.max(axis=1) > 1.0 - rounding
            precision = np.diagonal(self.inverse)[nearest[is_center]]
            logs[is_center] = -np.log(self.ridge * precision)
        return logs


def posterior_of(form: LocalForm | None) -> Posterior | None:
    """The posterior of a form, on a sample of its centers if there are many.

    Bandwidths of single centers are averaged, since local ones are no covariance. None without a form.
    """
    if form is None:
        return None
    every = -(-len(form.centers) // LIMITS.most_centers)
    centers = form.centers[::every]
    widths = np.asarray(form.kernel.bandwidths)
    if widths.ndim == 2:
        widths = np.exp(np.log(widths).mean(axis=0))
    shared = type(form.kernel)(widths if widths.ndim else float(widths))
    kernel = Projected(shared, form.projection)
    K = kernel(centers, centers)
    ridge = float(np.clip(form.alpha, *LIMITS.ridges))
    inverse = inverse_of(factor_of((K + K.T) / 2.0 + ridge * np.eye(len(K))))
    return Posterior(form.scaling, kernel, centers, inverse, ridge)


def signs_of(
    posterior: Posterior | None, X: NDArray, prediction: NDArray, seen: bool = False
) -> NDArray:
    """Signs of large errors: the prediction (m,), and the posterior variance."""
    columns = [prediction]
    if posterior is not None:
        columns.append(posterior(X, seen))
    return np.column_stack(columns)


def fit_spreads(
    form: LocalForm | None, X: Any, used: NDArray, held: OutOfFold | None
) -> list[Spread] | None:
    """The scatter of errors around predictions, for every output; from at most 5000 rows.

    `used` are the numbers of the rows X among those given to fit, by which the held-out ones are numbered.
    """
    if held is None:
        return None
    n = min(len(held.rows), LIMITS.most_rows)
    sample = np.linspace(0, len(held.rows) - 1, n).round().astype(int)
    rows = take_rows(X, np.searchsorted(used, held.rows[sample]))
    predictions = held.prediction[sample].reshape(n, -1)
    targets = held.target[sample].reshape(n, -1)
    groups = held.groups
    if groups is not None:
        groups = groups[sample]
    posterior = posterior_of(form)
    spreads = []
    for prediction, target in zip(predictions.T, targets.T):
        signs = signs_of(posterior, rows, prediction, seen=True)
        spreads.append(fit_spread(target - prediction, signs, groups))
    return spreads

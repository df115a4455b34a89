"""How far targets scatter around predictions: standard deviations from out-of-fold errors and a posterior's shape."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import GammaRegressor

from mercerless.core.blocks import take_rows
from mercerless.core.folds import OutOfFold
from mercerless.core.scaling import FeatureScaling
from mercerless.lab.model import LocalForm, Projected


@dataclass(frozen=True)
class SpreadLimits:
    """When deviations vary, and with what."""

    #: Penalty on the coefficients of standardized signs, as of so many errors.
    penalty: float = 4.0
    #: With fewer errors there is one deviation for all.
    fewest: int = 30
    #: Folds that judge whether deviations vary.
    folds: int = 10
    #: Centers of the posterior at most.
    most_centers: int = 1000


LIMITS = SpreadLimits()

_RIDGES = (3e-3, 1.0)  # the noise relative to the process, within which the posterior has a shape


class Spread(NamedTuple):
    """The standard deviation of errors, the same everywhere or by signs of large errors.

    Attributes
    ----------
    level : float
        The logarithm of the mean square of the out-of-fold errors; where there are coefficients, their constant.
    coef : ndarray of shape (n_signs,)
        Coefficients of the standardized signs in the logarithm of the variance; all 0 where one deviation is as good.
    center, scale, low, high : ndarray of shape (n_signs,)
        Units of the signs, and the range of the training rows, beyond which they are taken at its ends.
    gain : float
        By how much the held-out log density of an error is higher than with one deviation for all; 0 where it is one.
    """

    level: float
    coef: NDArray
    center: NDArray
    scale: NDArray
    low: NDArray
    high: NDArray
    gain: float = 0.0

    def __call__(self, signs: NDArray) -> NDArray:
        """Standard deviations where the signs (m, n_signs) are these."""
        standard = (np.clip(signs, self.low, self.high) - self.center) / self.scale
        return np.exp(0.5 * (self.level + standard @ self.coef))


def fit_spread(errors: NDArray, signs: NDArray) -> Spread:
    """One deviation, or ``log variance = level + coef . signs`` where that proves itself.

    The coefficients minimize ``sum_i log v_i + e_i^2 / v_i + 4 |coef|^2`` (normal errors). They are kept where the
    log density of errors in ten folds is higher than with one deviation by more than its standard error.
    """
    squares = np.maximum(errors**2, np.finfo(float).tiny)
    zero = np.zeros(signs.shape[1])
    one = Spread(
        float(np.log(squares.mean())), zero, zero, zero + 1.0, signs.min(axis=0), signs.max(axis=0)
    )
    if len(errors) < LIMITS.fewest or not squares.min() < squares.max():
        return one
    fold = np.random.RandomState(0).permutation(len(errors)) % LIMITS.folds
    gains = np.empty(len(errors))
    for k in range(LIMITS.folds):
        train = fold != k
        test = fold == k
        level = np.log(squares[train].mean())
        varying = 2.0 * np.log(_vary(squares[train], signs[train])(signs[test]))
        loss = [log + squares[test] * np.exp(-log) for log in (level, varying)]
        gains[test] = 0.5 * (loss[0] - loss[1])
    if not gains.mean() > gains.std() / np.sqrt(len(gains)):
        return one
    return _vary(squares, signs)._replace(gain=float(gains.mean()))


def _vary(squares: NDArray, signs: NDArray) -> Spread:
    """Coefficients of the signs: a regression of squared errors, whose deviations are as large as they are."""
    center = signs.mean(axis=0)
    scale = signs.std(axis=0)
    unit = float(squares.mean())
    scale = np.where(scale > 0.0, scale, 1.0)
    model = GammaRegressor(alpha=2.0 * LIMITS.penalty / len(squares), solver="newton-cholesky")
    relative = np.maximum(squares / unit, 1e-12)
    model.fit((signs - center) / scale, relative)
    low = signs.min(axis=0)
    high = signs.max(axis=0)
    return Spread(float(model.intercept_ + np.log(unit)), model.coef_, center, scale, low, high)


class Posterior(NamedTuple):
    """The posterior variance of a Gaussian process with a form's kernel, known at its centers: how far off a row is."""

    scaling: FeatureScaling
    kernel: Projected
    centers: NDArray
    inverse: NDArray  # of the kernel matrix with the noise
    ridge: float

    def __call__(self, X: NDArray, seen: bool = False) -> NDArray:
        """The logarithm of the variance of a new target by that of the noise; a `seen` center as if left out."""
        K = self.kernel(self.scaling(X, self.centers.dtype), self.centers)
        left = 1.0 - np.einsum("ij,ij->i", K @ self.inverse, K)
        logs = np.log1p(np.maximum(left, 0.0) / self.ridge)
        if seen:
            nearest = K.argmax(axis=1)
            same = K[np.arange(len(K)), nearest] > 1.0 - (1e-9 if K.dtype == np.float64 else 1e-5)
            logs[same] = -np.log(self.ridge * np.diagonal(self.inverse)[nearest[same]])
        return logs


def posterior_of(form: LocalForm | None) -> Posterior | None:
    """That of a form (of many centers some): for all rows the process whose evidence learned its scales.

    Bandwidths of single centers are averaged, since local ones are no covariance. None without a form.
    """
    if form is None:
        return None
    centers = form.centers[:: -(-len(form.centers) // LIMITS.most_centers)]
    widths = np.asarray(form.kernel.bandwidths)
    if widths.ndim == 2:
        widths = np.exp(np.log(widths).mean(axis=0))
    kernel = Projected(type(form.kernel)(widths if widths.ndim else float(widths)), form.projection)
    K = kernel(centers, centers)
    ridge = float(np.clip(form.alpha, *_RIDGES))
    inverse = np.linalg.inv((K + K.T) / 2.0 + ridge * np.eye(len(K)))
    return Posterior(form.scaling, kernel, centers, inverse, ridge)


def signs_of(
    posterior: Posterior | None, X: NDArray, prediction: NDArray, seen: bool = False
) -> NDArray:
    """What errors may grow with: the prediction (m,), and the posterior variance."""
    columns = [prediction] if posterior is None else [prediction, posterior(X, seen)]
    return np.column_stack(columns)


def fit_spreads(
    form: LocalForm | None, X: Any, used: NDArray, held: OutOfFold | None
) -> list[Spread] | None:
    """The scatter of errors around predictions, for every output; from at most 5000 rows.

    `used` are the numbers of the rows X among those given to fit, by which the held-out ones are numbered.
    """
    if held is None:
        return None
    few = np.linspace(0, len(held.rows) - 1, min(len(held.rows), 5000)).round().astype(int)
    rows = take_rows(X, np.searchsorted(used, held.rows[few]))
    posterior = posterior_of(form)
    predictions = held.prediction[few].reshape(len(few), -1)
    targets = held.target[few].reshape(len(few), -1)
    return [
        fit_spread(target - prediction, signs_of(posterior, rows, prediction, seen=True))
        for prediction, target in zip(predictions.T, targets.T)
    ]

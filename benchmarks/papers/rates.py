"""Rates as the papers' figures observe them: power laws and learning curves."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.stats import linregress
from sklearn.base import clone
from sklearn.utils import check_random_state


class Rate(NamedTuple):
    """A power law ``constant * size**-exponent`` fitted to observed errors."""

    exponent: float  # negative when the values grow
    constant: float
    standard_error: float  # of the exponent, from the scatter around the line


def fit_rate(sizes, errors):
    """Fit ``constant * size**-exponent`` by least squares on logarithms; repeats, in columns, are averaged first."""
    sizes, errors = np.asarray(sizes, dtype=float), np.asarray(errors, dtype=float)
    errors = errors.mean(axis=1) if errors.ndim == 2 else errors
    if len(sizes) < 2 or not (np.all(sizes > 0) and np.all(errors > 0)):
        raise ValueError("a rate needs at least two sizes and positive errors.")
    line = linregress(np.log(sizes), np.log(errors))
    return Rate(float(-line.slope), float(np.exp(line.intercept)), float(line.stderr))


PENALTIES = ("indefinite", "nonnegative")


def penalized_errors(K, K_test, y, truth, size, random_state):
    """Excess risks of ``mean((y - f)^2) + penalty / size`` on a random subset of the rows of K, in closed form.

    One row per penalty: "indefinite" is <f, f>, which gives (K + I) a = y, "nonnegative" the norm of both parts. The
    first column is over all test rows, the second leaves out those of the subset, where the items are the same.
    """
    rows = check_random_state(random_state).permutation(len(y))[:size]
    values, vectors = eigh(K[np.ix_(rows, rows)])
    # a saddle point: bounded near its pole
    shifted = np.where(np.abs(values + 1) < 1e-3, 1e-3, values + 1)
    factors = {"indefinite": 1 / shifted, "nonnegative": np.sign(values) / (np.abs(values) + 1)}
    others = np.setdiff1d(np.arange(len(truth)), rows)
    errors = []
    for penalty in PENALTIES:
        coefficients = vectors @ (factors[penalty] * (vectors.T @ y[rows]))
        squares = (np.clip(K_test[:, rows] @ coefficients, -1, 1) - truth) ** 2
        errors.append((squares.mean(), squares[others].mean()))
    return np.array(errors)


class LearningCurve(NamedTuple):
    """Mean squared errors against the true values, one column per random subset, and the power law of their means."""

    sizes: np.ndarray
    errors: np.ndarray
    rate: Rate


def learning_curve(
    estimator, X, y, X_test, truth, sizes, *, n_repeats=10, clip=None, random_state=None
):
    """The excess risk on growing random subsets of an estimator, or of what a function makes of the size.

    ``truth`` is the target function at the test rows, without noise; predictions are cut at -clip and clip first, the
    papers' projection.
    """
    rng = check_random_state(random_state)
    if min(sizes) < 1 or max(sizes) > len(y):
        raise ValueError(
            f"sizes must lie between 1 and the {len(y)} training rows, got {list(sizes)}."
        )
    errors = np.empty((len(sizes), n_repeats))
    for i, size in enumerate(sizes):
        model = clone(estimator) if hasattr(estimator, "fit") else estimator(size)
        for j in range(n_repeats):
            rows = rng.permutation(len(y))[:size]
            predicted = clone(model).fit(X[rows], y[rows]).predict(X_test)
            predicted = predicted if clip is None else np.clip(predicted, -clip, clip)
            errors[i, j] = np.mean((predicted - truth) ** 2)
    return LearningCurve(np.asarray(sizes), errors, fit_rate(sizes, errors))

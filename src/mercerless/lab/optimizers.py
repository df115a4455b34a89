"""Algorithm 1 of the LAB paper: steps of gradient descent on batches, and a support that grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from mercerless.core.descent import Report
from mercerless.core.validation import check_number
from mercerless.lab.model import Learned
from mercerless.lab.solver import LocalRegression, State, interpolation, relative_norm

# gives the change of the parameters for a gradient, one step after the other
Update = Callable[[NDArray], NDArray]


class SGD(BaseEstimator):
    """Stochastic gradient descent: the steps of Algorithm 1 of the LAB paper.

    The bandwidths of the paper, theta, multiply differences: ``k(x, s_j) = exp(-sum_f (theta_jf (x_f - s_jf))^2)``. A
    step is ``theta -= learning_rate * d/dtheta sum over the batch of |f(x_i) - y_i|^2``, f the function that
    interpolates the support. Nothing keeps the objective from rising: a learning rate that is too large diverges, with
    a warning of the estimator.

    Parameters
    ----------
    learning_rate : float, default=0.001
        The factor of the gradient, lr in the paper's Tables 3 and 4.
    batch_size : int, default=128
        Rows of a step, drawn anew from those that are not in the support.
    n_steps : int, default=500
        Steps for every support, L in Algorithm 1.
    initial_scale : float, default=1.0
        The start, sigma_0 in the paper's Tables 3 and 4: ``theta = sqrt(initial_scale / n_features)`` for features in
        [-1, 1], as in the authors' code; the paper does not say what it scales. Of several optimizers that of the
        first counts.

    See Also
    --------
    Adam : Steps of adaptive size.
    LABRegressor : Takes it as `optimizer`.

    Examples
    --------
    >>> from mercerless import LABRegressor, SGD
    >>> from mercerless.datasets import make_lab_function
    >>> X, y = make_lab_function(200, function="f1", random_state=0)
    >>> steps = SGD(learning_rate=0.001, batch_size=32, n_steps=100, initial_scale=4.0)
    >>> model = LABRegressor(30, objective="interpolation", optimizer=steps, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        *,
        batch_size: int = 128,
        n_steps: int = 500,
        initial_scale: float = 1.0,
    ) -> None:
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_steps = n_steps
        self.initial_scale = initial_scale

    def _new_update(self) -> Update:
        """The function that turns one gradient after the other into changes of theta."""
        return lambda gradient: -self.learning_rate * gradient


class Adam(SGD):
    """Steps of adaptive size (Kingma and Ba, 2015), with which the LAB paper's experiments begin.

    As `SGD`, with running means of the gradient (decay 0.9) and of its square (0.999), both without bias:
    ``theta -= learning_rate * mean / (sqrt(square) + 1e-8)``.

    Parameters
    ----------
    learning_rate : float, default=0.001
        The size of a step, lr in the paper's Tables 3 and 4.
    batch_size : int, default=128
        Rows of a step, drawn anew from those that are not in the support.
    n_steps : int, default=500
        Steps for every support, L in Algorithm 1.
    initial_scale : float, default=1.0
        The start, sigma_0 in the paper's Tables 3 and 4: ``theta = sqrt(initial_scale / n_features)``.

    See Also
    --------
    SGD : Steps of plain gradient descent.
    LABRegressor : Takes it as `optimizer`.

    Examples
    --------
    The paper's Algorithm 1: start with 10 rows, evenly spaced in the target, add 5 at a time until every squared error
    is below 0.01 (targets scaled to [-1, 1]):

    >>> from mercerless import Adam, LABRegressor, Support
    >>> from mercerless.datasets import make_lab_function
    >>> X, y = make_lab_function(200, function="f1", random_state=0)
    >>> support = Support(10, selection="y", step=5, max_error=0.01)
    >>> steps = Adam(learning_rate=0.01, batch_size=64, n_steps=100, initial_scale=4.0)
    >>> model = LABRegressor(support, objective="interpolation", optimizer=steps, random_state=0).fit(X, y)
    >>> bool(model.max_error_ <= 0.01), model.n_support_ % 5
    (True, 0)
    """

    def _new_update(self) -> Update:
        mean = square = np.zeros(1)
        step = 0

        def update(gradient: NDArray) -> NDArray:
            nonlocal mean, square, step
            step += 1
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            unbiased = mean / (1.0 - 0.9**step)
            size = np.sqrt(square / (1.0 - 0.999**step))
            return -self.learning_rate * unbiased / (size + 1e-8)

        return update


def check_optimizer(optimizer: SGD) -> None:
    """Raise unless the parameters make sense."""
    check_number("learning_rate", optimizer.learning_rate)
    check_number("batch_size", optimizer.batch_size, whole=True)
    check_number("n_steps", optimizer.n_steps, whole=True)
    check_number("initial_scale", optimizer.initial_scale)


def bandwidths_of(form: str, theta: NDArray) -> NDArray:
    """The library's bandwidths, by which differences are divided, from the paper's, which multiply them."""
    factor = np.sqrt(2.0) if form == "gaussian" else 1.0
    return 1.0 / (factor * np.maximum(np.abs(theta), 1e-12))


def learn_in_batches(
    problem_of: Callable[[NDArray], LocalRegression],
    form: str,
    support: NDArray,
    optimizers: Sequence[SGD],
    grow: Callable[[LocalRegression, State, NDArray], tuple[NDArray, float]],
    ridge: float,
    random: np.random.RandomState,
    report: Report,
) -> Learned:
    """Algorithm 1: steps on batches for the support, rows with large errors join it, and again until all are small.

    ``theta += update(d/dtheta sum over the batch of w_i |f(x_i) - y_i|^2)``, where f interpolates the support (with the
    ridge) and its coefficients depend on theta too. Lines 6 to 9 of the paper are the steps, each on a batch of the
    rows off the support; they break down if the system of the support is singular, or if numbers are not finite any
    more. New support points start with the mean of theta, as in the authors' code; the paper does not say. The
    derivatives are exact. Cost of a step ``O(m^3 + b m d)``.

    Nothing keeps the objective (12) from rising. The certificate is its largest derivative in a log bandwidth at the
    end relative to the start, both on all rows; infinite if the steps for the last support raised the objective or
    broke down.
    """
    problem = problem_of(support)
    d = problem.X.shape[1]
    theta = np.full((len(support), d), np.sqrt(optimizers[0].initial_scale / d))
    slopes: list[float] = []
    values: list[float] = []
    growth: list[tuple[int, float]] = []
    while True:
        rest = np.setdiff1d(np.arange(len(problem.X)), support)
        before, slope = _evaluate(problem, form, theta, ridge, support, rest)
        slopes.append(float(np.abs(slope).max()))
        broke_down = False
        for optimizer in optimizers if len(rest) else ():
            update = optimizer._new_update()
            solvable = theta
            try:
                for step in range(optimizer.n_steps):
                    batch = random.choice(rest, min(optimizer.batch_size, len(rest)), replace=False)
                    value, slope = _evaluate(problem, form, theta, ridge, support, batch)
                    solvable = theta
                    values.append(value)
                    # theta is one over a bandwidth, so that their logarithms have opposite derivatives
                    theta = theta + update(-problem.weight[batch].sum() * slope / theta)
                    info = {"stage": "steps on batches", "iteration": step + 1, "value": value}
                    if report(info):
                        break
                _evaluate(problem, form, theta, ridge, support, rest[:1])
            except np.linalg.LinAlgError:
                theta = solvable
                broke_down = True
        state = State(0, 0.0, np.log(bandwidths_of(form, theta)), float(np.log(ridge)))
        new, error = grow(problem, state, support)
        growth.append((len(support), error))
        if len(new) == 0 or broke_down:
            break
        theta = np.vstack([theta, np.full((len(new), d), theta.mean())])
        support = np.concatenate([support, new])
        problem = problem_of(support)
    after, slope = _evaluate(problem, form, theta, ridge, support, rest)
    certificate = relative_norm([slopes[0], float(np.abs(slope).max())])
    if broke_down or after > before:
        certificate = np.inf
    return Learned(
        support, state.log_bandwidths, state.log_ridge, np.array(values), growth, certificate
    )


def _evaluate(
    problem: LocalRegression,
    form: str,
    theta: NDArray,
    ridge: float,
    support: NDArray,
    batch: NDArray,
) -> tuple[float, NDArray]:
    """The mean squared error of a batch, and its gradient in log bandwidths; LinAlgError without a solution."""
    if len(batch) == 0:
        return 0.0, np.zeros_like(theta)
    if not np.all(np.abs(theta) < 1e100):
        raise np.linalg.LinAlgError("theta is not a number any more.")
    rows = np.concatenate([support, batch])
    X = problem.X[rows]
    kernel = problem.kernel(bandwidths_of(form, theta))
    K = kernel(X, problem.S)
    none = np.zeros((len(rows), 0))
    places = np.arange(len(support))
    at = interpolation(K, none, problem.Y[rows], ridge, problem.weight[rows], support=places)
    return at.value, kernel.pullback(X, problem.S, at.kernel_gradient, K).reshape(theta.shape)

"""Steps of gradient descent on batches, as Algorithm 1 of the LAB paper takes them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from mercerless.core.validation import check_number, weights_or_ones
from mercerless.lab.solver import LocalRegression, interpolation

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
    final_steps : int or None, default=None
        Steps for the last support, after all growth; None means `n_steps`.
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
        final_steps: int | None = None,
        initial_scale: float = 1.0,
    ) -> None:
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_steps = n_steps
        self.final_steps = final_steps
        self.initial_scale = initial_scale


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
    final_steps : int or None, default=None
        Steps for the last support, after all growth; None means `n_steps`.
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


def check_optimizer(optimizer: SGD) -> None:
    """Raise unless the parameters make sense."""
    check_number("learning_rate", optimizer.learning_rate)
    check_number("batch_size", optimizer.batch_size, whole=True)
    check_number("n_steps", optimizer.n_steps, whole=True)
    check_number("final_steps", optimizer.final_steps, whole=True, none=True)
    check_number("initial_scale", optimizer.initial_scale)


def new_update(optimizer: SGD) -> Update:
    """The function that turns one gradient after the other into changes of theta."""
    if isinstance(optimizer, Adam):
        return _adam_update(optimizer.learning_rate)
    return lambda gradient: -optimizer.learning_rate * gradient


def _adam_update(learning_rate: float) -> Update:
    mean = np.zeros(1)
    square = np.zeros(1)
    step = 0

    def update(gradient: NDArray) -> NDArray:
        nonlocal mean, square, step
        step += 1
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        unbiased = mean / (1.0 - 0.9**step)
        size = np.sqrt(square / (1.0 - 0.999**step))
        return -learning_rate * unbiased / (size + 1e-8)

    return update


class Steps(NamedTuple):
    """The result of steps on batches."""

    theta: NDArray  # (m, d), the paper's bandwidths
    values: NDArray  # the mean squared error of every batch, before its step
    diverged: bool  # whether a system was singular or numbers were not finite


def bandwidths_of(form: str, theta: NDArray) -> NDArray:
    """The library's bandwidths, by which differences are divided, from the paper's, which multiply them."""
    factor = np.sqrt(2.0) if form == "gaussian" else 1.0
    return 1.0 / (factor * np.maximum(np.abs(theta), 1e-12))


def take_steps(
    problem: LocalRegression,
    form: str,
    theta: NDArray,
    support: NDArray,
    optimizer: SGD,
    n_steps: int,
    random: np.random.RandomState,
    report: Callable[[dict], bool],
    ridge: float = 1e-5,
) -> Steps:
    """Lines 6 to 9 of Algorithm 1: steps in theta for a given support, each on a batch of the other rows.

    ``theta += update(d/dtheta sum over the batch of w_i |f(x_i) - y_i|^2)``, where f interpolates the support (with the
    ridge) and its coefficients depend on theta too. The derivatives are exact. Cost of a step ``O(m^3 + b m d)``.
    Steps end early if the system of the support is singular, or if numbers are not finite any more; theta is then
    that before the step. Without other rows there are no steps.
    """
    rest = np.setdiff1d(np.arange(len(problem.X)), support)
    if len(rest) == 0:
        return Steps(theta, np.zeros(0), False)
    size = min(optimizer.batch_size, len(rest))
    update = new_update(optimizer)
    values: list[float] = []
    solvable = theta  # the last theta whose system was solved
    for step in range(n_steps):
        batch = random.choice(rest, size, replace=False)
        try:
            value, gradient = _evaluate(problem, form, theta, ridge, support, batch)
        except np.linalg.LinAlgError:
            return Steps(solvable, np.array(values), True)
        solvable = theta
        values.append(value)
        theta = theta + update(gradient)
        info = {"stage": f"{form}: steps on batches", "iteration": step + 1, "value": value}
        if report(info):
            break
    try:
        _evaluate(problem, form, theta, ridge, support, rest[:1])
    except np.linalg.LinAlgError:
        return Steps(solvable, np.array(values), True)
    return Steps(theta, np.array(values), False)


def _evaluate(
    problem: LocalRegression,
    form: str,
    theta: NDArray,
    ridge: float,
    support: NDArray,
    batch: NDArray,
) -> tuple[float, NDArray]:
    """The mean squared error of a batch, and the gradient of the sum in theta; LinAlgError without a solution."""
    if not np.all(np.abs(theta) < 1e100):
        raise np.linalg.LinAlgError("theta is not a number any more.")
    rows = np.concatenate([support, batch])
    X = problem.X[rows]
    weight = weights_or_ones(problem.weight, len(problem.X))[rows]
    kernel = problem.kernel(bandwidths_of(form, theta))
    K = kernel(X, problem.S)
    none = np.zeros((len(rows), 0))
    places = np.arange(len(support))
    at = interpolation(K, none, problem.Y[rows], ridge, weight, support=places)
    # theta is one over a bandwidth, so that their logarithms have opposite derivatives
    in_log_bandwidths = kernel.pullback(X, problem.S, at.kernel_gradient, K)
    total_weight = weight[len(support) :].sum()
    return at.value, -total_weight * in_log_bandwidths.reshape(theta.shape) / theta

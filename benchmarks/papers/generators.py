"""Made-up data of the papers' tables and figures that nothing else needs."""

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state


def make_step(n_samples=200, *, height=3.0, period=2.0, smoothness=20.0):
    """The smooth staircase on [-5, 5] of the DANK paper's Figure 6(a), at equally spaced points.

    The paper says ``smoothness=0.05``, which is a straight line to four digits; its figure shows steps.
    """
    x = np.linspace(-5.0, 5.0, n_samples)
    step = np.floor(x / period)
    half = smoothness / 2
    y = height * (
        np.tanh(smoothness * (x / period - step) - half) / (2 * np.tanh(half)) + 0.5 + step
    )
    return x[:, None], y


def make_surface(n_samples=400, *, random_state=None):
    """The function on [0, 1]^2 of the DANK paper's Figure 6(b) (after Cherkassky et al. 1996).

    The paper says [-0.5, 0.5]^2, but the function is centered on 0.5.
    """
    X = check_random_state(random_state).uniform(0.0, 1.0, (n_samples, 2))
    u, v = (X - 0.5).T
    return X, 42.659 * (0.1 + u * (u**4 - 10 * u**2 * v**2 + 5 * v**4 + 0.05))


def make_krein_matrix(
    n_samples=100, *, kernel="gaussian", n_features=50, noise=0.05, random_state=None
):
    """An indefinite matrix ``K = B - inv(B)`` and a target ``K @ a`` plus noise: the krein paper's Table 1.

    B is a kernel matrix of standard normal items: ``"gaussian"`` (the row *GAUSS*), ``"sigmoid"`` (*SIGMOID*,
    ``tanh((x.z - 0.5) / s^2)``) or ``"ard_sigmoid"`` (*\\*SIGMOID*, one scale per feature). a is normal of standard
    deviation ``1 / sqrt(n_samples)``; `noise` is a part of the range of the target.

    The paper samples items and scales but does not say how. The scales here are drawn as its appendix E.1 starts its
    searches for the sigmoids, and for the Gaussian such that a typical entry of B lies between 0.74 and 0.90, which
    with 50 features comes close to the paper's largest eigenvalues and inertia.
    """
    rng = check_random_state(random_state)
    X = rng.standard_normal((n_samples, n_features))
    if kernel == "gaussian":
        squared = cdist(X, X, "sqeuclidean")
        B = np.exp(-rng.uniform(0.1, 0.3) * squared / np.median(squared))
    elif kernel == "sigmoid":
        B = np.tanh((X @ X.T - 0.5) * rng.uniform(0.4, 0.8) / np.linalg.norm(X, axis=1).max())
    else:
        B = np.tanh((X * rng.uniform(0.4, 0.8, n_features) / np.abs(X).max(axis=0)) @ X.T)
    values, vectors = eigh((B + B.T) / 2, driver="evd")
    if np.abs(values).min() <= n_samples * np.finfo(float).eps * np.abs(values).max():
        raise ValueError(
            f"The {kernel} matrix of these {n_samples} items is singular; use more features."
        )
    K = (vectors * (values - 1 / values)) @ vectors.T
    K = (K + K.T) / 2
    target = K @ (rng.standard_normal(n_samples) / np.sqrt(n_samples))
    return K, target + noise * np.ptp(target) * rng.standard_normal(n_samples)

"""Kernels: objects that give a matrix for any two sets of items, and its reverse derivative."""

from mercerless.kernels.adapters import (
    Covariance,
    GaussianProcessKernel,
    Metric,
    Precomputed,
    as_kernel,
)
from mercerless.kernels.base import Constant, Kernel, Parameter
from mercerless.kernels.cached import Cached
from mercerless.kernels.dot_product import Polynomial, Sigmoid, SphericalPolynomial
from mercerless.kernels.hyper import GaussianHyper, TensorHyper, WishartHyper
from mercerless.kernels.items import MatrixFunction, PairFunction
from mercerless.kernels.local import LocalExponential, LocalGaussian, LocalLaplace
from mercerless.kernels.named import Gower, Molecules, Series, Strings, Tanimoto
from mercerless.kernels.stationary import (
    TL1,
    DeltaGauss,
    Epanechnikov,
    Exponential,
    Gaussian,
    Laplace,
    Log,
)

__all__ = [
    "TL1",
    "Cached",
    "Constant",
    "Covariance",
    "DeltaGauss",
    "Epanechnikov",
    "Exponential",
    "Gaussian",
    "GaussianHyper",
    "GaussianProcessKernel",
    "Gower",
    "Kernel",
    "Laplace",
    "LocalExponential",
    "LocalGaussian",
    "LocalLaplace",
    "Log",
    "MatrixFunction",
    "Metric",
    "Molecules",
    "PairFunction",
    "Parameter",
    "Polynomial",
    "Precomputed",
    "Series",
    "Sigmoid",
    "SphericalPolynomial",
    "Strings",
    "Tanimoto",
    "TensorHyper",
    "WishartHyper",
    "as_kernel",
]

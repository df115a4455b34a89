"""Kernels: objects that give a matrix for any two sets of items, and its reverse derivative."""

from mercerless.kernels.adapters import GaussianProcessKernel, Metric, PairFunction, Precomputed, as_kernel
from mercerless.kernels.base import Constant, Difference, Kernel, Parameter, Product, Scale, Sum
from mercerless.kernels.dot_product import Polynomial, Sigmoid, SphericalPolynomial
from mercerless.kernels.stationary import TL1, DeltaGauss, Epanechnikov, Exponential, Gaussian, Laplace, Log

__all__ = [
    "TL1",
    "Constant",
    "DeltaGauss",
    "Difference",
    "Epanechnikov",
    "Exponential",
    "Gaussian",
    "GaussianProcessKernel",
    "Kernel",
    "Laplace",
    "Log",
    "Metric",
    "PairFunction",
    "Parameter",
    "Polynomial",
    "Precomputed",
    "Product",
    "Scale",
    "Sigmoid",
    "SphericalPolynomial",
    "Sum",
    "as_kernel",
]

"""Two-line formulas for every kernel, one pair of rows at a time."""

import math

import numpy as np


def squared(x, y, scale):
    return sum(((a - b) / s) ** 2 for a, b, s in zip(x, y, np.broadcast_to(scale, len(x))))


def inner(x, y, scale):
    return sum(a * b / s**2 for a, b, s in zip(x, y, np.broadcast_to(scale, len(x))))


def gaussian(x, y, scale):
    return math.exp(-squared(x, y, scale) / 2)


def exponential(x, y, scale):
    return math.exp(-math.sqrt(squared(x, y, scale)))


def delta_gauss(x, y, scale, inner_scale):
    return gaussian(x, y, scale) - gaussian(x, y, inner_scale)


def epanechnikov(x, y, scale):
    return max(0.0, 1 - squared(x, y, scale)) ** 2


def log(x, y, scale):
    return -math.log(1 + math.sqrt(squared(x, y, scale)))


def laplace(x, y, scale):
    return math.exp(-sum(abs(a - b) for a, b in zip(x, y)) / scale)


def tl1(x, y, scale):
    return max(0.0, scale - sum(abs(a - b) for a, b in zip(x, y)))


def polynomial(x, y, degree, scale, offset):
    return (offset + inner(x, y, scale)) ** degree


def sigmoid(x, y, scale, offset):
    return math.tanh(inner(x, y, scale) + offset)


def spherical_polynomial(x, y, degree, scale):
    x, y = (
        np.asarray(x) / math.sqrt(sum(np.square(x))),
        np.asarray(y) / math.sqrt(sum(np.square(y))),
    )
    return (1 - squared(x, y, scale)) ** degree


def matrix(function, X, Y, *arguments):
    return np.array([[function(x, y, *arguments) for y in Y] for x in X])

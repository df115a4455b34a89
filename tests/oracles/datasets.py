"""Slow, plain formulas for the data sets; imports nothing of mercerless."""

import math


def modified_hausdorff(A, B):
    """The larger of the two mean distances to the nearest point of the other set, point by point."""

    def one_sided(P, Q):
        return sum(min(math.dist(p, q) for q in Q) for p in P) / len(P)

    return max(one_sided(A, B), one_sided(B, A))


def dark_pixels(image, threshold):
    return [
        (i, j) for i in range(len(image)) for j in range(len(image[0])) if image[i][j] >= threshold
    ]


def lab_function(name, x):
    """The LAB paper's section 5.1, one point at a time."""
    if name == "f1":
        return (1 + math.sin(2 * x[0] + 3 * x[1])) / (3.5 + math.sin(x[0] - x[1]))
    if name == "f2":
        return 10 * math.sin(math.pi * x[0] * x[1]) + 20 * (x[2] - 0.5) ** 2 + 5 * x[3] + 10 * x[4]
    return math.exp(2 * math.pi * x[0] * math.sin(x[3]) + math.sin(x[1] * x[2]))


def step(x, s, w, a):
    """The DANK paper's section 6.3.1, as printed."""
    k = math.floor(x / w)
    return (math.tanh(a * x / w - a * k - a / 2) / (2 * math.tanh(a / 2)) + 0.5 + k) * s


def surface(u, v):
    """The DANK paper's section 6.3.1, as printed."""
    g1 = (u - 0.5) ** 4 - 10 * (u - 0.5) ** 2 * (v - 0.5) ** 2 + 5 * (v - 0.5) ** 4
    return 42.659 * (0.1 + (u - 0.5) * (g1 + 0.05))

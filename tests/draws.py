"""Draws for properties of all solvers: certificates hold and bound the error for arbitrary spectra and scales.

Spectra have ties, zeros and both signs; scales run from 1e-150 to 1e150. A problem whose parts are scaled together has
the same solution in other units, so the problem of unit size, solved by an independent route, is the oracle for all.
"""

import os

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# eight problems each, or a tenth of MERCERLESS_FUZZ: 200 in make test-all
EXAMPLES = max(8, int(os.environ.get("MERCERLESS_FUZZ", 0)) // 10)
few = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
seeds = st.integers(0, 2**32 - 1)
scales = st.integers(-150, 150).map(lambda power: 10.0**power)
sizes = [-3.0, -1.0, -1e-3, 0.0, 1e-6, 0.5, 1.0, 1.0, 2.0, 10.0]
eigenvalues = st.lists(st.sampled_from(sizes), min_size=4, max_size=12)


def matrix_of(values, seed):
    """A symmetric matrix with these eigenvalues."""
    values = np.array(values)
    V = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values),) * 2))[0]
    K = (V * values) @ V.T
    return (K + K.T) / 2


def definite_of(values, seed):
    return matrix_of(np.abs(values), seed)


def labels_of(n, rng):
    return np.where(np.arange(n) % 2 == 0, 1.0, -1.0)[rng.permutation(n)]

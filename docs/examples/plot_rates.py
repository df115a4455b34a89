"""
What the indefinite penalty costs
=================================

The theory of least squares in a Krein space penalizes ``<f, f>``, which rewards complexity on the negative spectrum. A
nonnegative penalty of the same strength learns where it fails.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from mercerless import Ball, KreinRidge
from mercerless.kernels import DeltaGauss

warnings.filterwarnings(
    "ignore", message="regularizer='indefinite'"
)  # that it is unstable is the point here
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(1640, 2))
y = np.sin(3 * X[:, 0]) * X[:, 1]
new = slice(640, 1640)

sizes = (20, 40, 80, 160, 320, 640)
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name, regularizer in {"<f, f>": "indefinite", "norm of both parts": "strong"}.items():
    errors = []
    for n in sizes:
        model = KreinRidge(
            DeltaGauss(1.0, 0.3),
            alpha_positive=0.1 / n,
            regularizer=regularizer,
            constraint=Ball(0.5),
            fit_intercept=False,
        ).fit(X[:n], y[:n])
        errors.append(np.mean((model.predict(X[new]) - y[new]) ** 2))
    ax.loglog(sizes, errors, "o-", label=f"penalty: {name}")
ax.set(xlabel="training rows", ylabel="squared error on new rows")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend()
plt.show()

"""
How time grows with rows
========================

With all items, ridge regression with an indefinite kernel needs an eigendecomposition, which is cubic. With landmarks
it reads the rows once.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from mercerless import KreinRidge
from mercerless.kernels import TL1

rng = np.random.default_rng(0)
X = rng.normal(size=(32_000, 5))
y = np.sin(2 * X[:, 0]) + X[:, 1]


def seconds(rows, landmarks):
    """Processor time of a fit, penalties included."""
    start = time.process_time()
    KreinRidge(TL1(5.0), landmarks=landmarks, random_state=0).fit(X[:rows], y[:rows])
    return time.process_time() - start


curves = {
    "all items": ((250, 500, 1000, 2000), None),
    "200 landmarks": ((500, 2000, 8000, 32_000), 200),
}
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name, (sizes, landmarks) in curves.items():
    ax.loglog(sizes, [seconds(rows, landmarks) for rows in sizes], "o-", label=name)
ax.set(xlabel="rows", ylabel="processor seconds")
ax.legend()
plt.show()

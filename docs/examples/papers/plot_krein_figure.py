"""
A paper's figure: four indefinite kernels
=========================================

Figure 1 of Liu et al. (2021) shows the eigenvalues of four kernels on the same rows. How far a problem is from positive
definite depends on the kernel, before any label is seen.
"""

# %%
# The data
# --------
# The paper uses the monks problem: six attributes with two to four values each. These are all their combinations,
# scaled to [0, 1], except for the one of zeros, which has no direction; the paper's training rows are 122 of them.
from itertools import product

import matplotlib.pyplot as plt
import numpy as np

from mercerless.kernels import TL1, DeltaGauss, Log, SphericalPolynomial

values = [3, 3, 2, 3, 4, 2]
X = np.array(list(product(*[np.linspace(0, 1, n) for n in values])))[1:]
print(X.shape)

# %%
# The figure
# ----------
# Heights are square roots, so that small eigenvalues can be seen. The logarithm has a single negative eigenvalue, but
# it is the largest of all.
kernels = {
    "spherical polynomial": SphericalPolynomial(10),
    "TL1": TL1(0.7 * X.shape[1]),
    "delta-gauss": DeltaGauss(np.sqrt(0.5), np.sqrt(0.05)),
    "logarithm": Log(),
}
figure, axes = plt.subplots(2, 2, figsize=(8, 5), layout="constrained")
figure.suptitle("Eigenvalues of four kernels on the same rows")
for ax, (name, kernel) in zip(axes.flat, kernels.items()):
    eigenvalues = np.linalg.eigvalsh(kernel(X))[::-1]
    rounding = 1e-9 * np.abs(eigenvalues).max()
    is_positive = eigenvalues > rounding
    is_negative = eigenvalues < -rounding
    heights = np.sign(eigenvalues) * np.sqrt(np.abs(eigenvalues))
    rank = np.arange(len(eigenvalues))
    ax.vlines(rank[is_positive], 0, heights[is_positive], color="#0072B2")
    ax.vlines(rank[is_negative], 0, heights[is_negative], color="#D55E00")
    ax.axhline(0, color="black", lw=0.6)
    ax.set_title(f"{name}: {is_positive.sum()} positive, {is_negative.sum()} negative", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The page of the paper follows it :doc:`equation by equation </papers/rkks>`.

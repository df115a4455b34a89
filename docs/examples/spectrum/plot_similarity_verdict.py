"""
The negative spectrum that matters, and the one that does not
=============================================================

Two indefinite matrices. In one the negative eigenvalues carry the information, in the other they are noise. Their size
does not show which; predictions of held-out items do.
"""

# %%
# Two matrices
# ------------
# Distances between the surfaces of balls of two sizes: large balls are close to everything, which is impossible for
# points in space, so the sizes are in the negative part. And inner products of wines, measured with errors.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from mercerless import SimilarityClassifier
from mercerless.datasets import make_balls3d
from mercerless.spectra import DissimilarityKernel, indefiniteness

balls, sizes = make_balls3d(200, random_state=0)
X, grapes = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
errors = np.random.RandomState(0).normal(size=(len(X), len(X)))
wines = X @ X.T / X.shape[1] + errors + errors.T
similarities = {"balls": DissimilarityKernel().fit_transform(balls), "wines": wines}
for name, K in similarities.items():
    print(f"{name}: {indefiniteness(K).negative_mass:.0%} of the spectrum is negative")

# %%
# The verdict
# -----------
# The learner compares keeping the negative part (flip) with dropping it (clip) on items that neither has seen.
verdicts = {}
for name, matrix, y in (("balls", balls, sizes), ("wines", wines, grapes)):
    model = SimilarityClassifier(kernel="precomputed", random_state=0).fit(matrix, y)
    verdicts[name] = model.negative_spectrum_
    print(f"{name}: {model.negative_spectrum_}")

# %%
# The larger negative part is the one to drop
# -------------------------------------------
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for ax, (name, K) in zip(axes, similarities.items()):
    values = np.linalg.eigvalsh(K)[::-1]
    heights = np.sign(values) * np.sqrt(np.abs(values))
    colors = np.where(values > 0, "#0072B2", "#D55E00")
    ax.bar(np.arange(len(values)), heights, width=1.0, color=colors)
    ax.set(xticks=[], ylabel="square root of the eigenvalue")
    ax.set_title(f"{name}: negative part {verdicts[name].verdict}")
    ax.spines[["top", "right", "bottom"]].set_visible(False)
plt.show()

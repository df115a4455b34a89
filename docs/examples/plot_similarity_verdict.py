"""
Signal or noise? A verdict on the negative spectrum
===================================================

Two indefinite matrices. In one the negative eigenvalues carry the information, in the other they are noise. The size
of the negative part does not show which (here the larger one is noise); the out-of-fold loss does.
"""

# %%
# Two matrices
# ------------
# Distances between the surfaces of balls of two sizes: large balls are close to everything, which is impossible for
# points in space, so the sizes are in the negative part. And inner products of wines, measured with errors.
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from mercerless.datasets import make_balls3d
from mercerless.spectra import DissimilarityKernel, indefiniteness

balls, sizes = make_balls3d(200, random_state=0)
X, grapes = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
errors = np.random.RandomState(0).normal(size=(len(X), len(X)))
wines = X @ X.T / X.shape[1] + errors + errors.T
for name, K in (("balls", DissimilarityKernel().fit_transform(balls)), ("wines", wines)):
    print(f"{name}: {indefiniteness(K).negative_mass:.0%} of the spectrum is negative")

# %%
# The verdict
# -----------
# The stack compares keeping the negative part (flip) with dropping it (clip) on items that neither has seen.
import matplotlib.pyplot as plt

from mercerless import SimilarityClassifier
from mercerless.inspection import StackDisplay

for matrix, y in ((balls, sizes), (wines, grapes)):
    model = SimilarityClassifier(kernel="precomputed", random_state=0).fit(matrix, y)
    StackDisplay.from_estimator(model)
    print(f"{model.kind_}: {model.negative_spectrum_}")
plt.show()

"""
A machine that adapts its kernel matrix
=======================================

DANK multiplies the kernel matrix entry by entry with a matrix F that is learned together with the support vector
machine. The data are those of the paper's first figure.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.svm import SVC

from mercerless import DANKClassifier
from mercerless.datasets import make_clowns
from mercerless.kernels import Gaussian

X, y = make_clowns(400, random_state=0)
plain = SVC(C=100.0, gamma=2.0).fit(X, y)
model = DANKClassifier(Gaussian(0.5), C=100.0, adaptivity=25.0).fit(X, y)

# %%
# F is 1 nearly everywhere. It differs between rows that both have large coefficients: it acts like an additional ridge
# on outliers, so that they no longer bend the boundary (dashed: the plain machine).
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.6), layout="constrained", width_ratios=[1.3, 1]
)
left.scatter(*X.T, c=y, s=10, cmap="coolwarm", alpha=0.6)
for machine, style in ((model, "solid"), (plain, "dashed")):
    DecisionBoundaryDisplay.from_estimator(
        machine, X, plot_method="contour", levels=[0.0], colors="#808890", linestyles=style, ax=left
    )
left.set(title="Boundaries", xlabel="", ylabel="")
rows = model.support_[np.argsort(-np.abs(model.dual_solution_[0]))[:60]]
rows = rows[np.argsort(y[rows], kind="stable")]
change = model.adaptation_[0].matrix(rows) - 1
limit = np.abs(change).max()
picture = right.imshow(change, cmap="RdBu_r", vmin=-limit, vmax=limit)
right.set(xticks=[], yticks=[], title="F - 1 on the 60 largest coefficients")
figure.colorbar(picture, ax=right)
plt.show()

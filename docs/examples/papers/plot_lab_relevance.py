"""
LAB: which features matter where
================================

The second test function of the LAB paper, ``10 sin(pi x0 x1) + 20 (x2 - 0.5)^2 + 5 x3 + 10 x4 + 0 x5``, uses some
features jointly, some alone, and one not at all. A fitted LAB model shows that in its bandwidths.
"""

import matplotlib.pyplot as plt

from mercerless import LABRegressor
from mercerless.datasets import make_lab_function
from mercerless.inspection import BandwidthDisplay

X, y = make_lab_function(600, function="f2", noise=0.05, random_state=0)
X_new, y_new = make_lab_function(1000, function="f2", random_state=1)

# %%
# Forty support points with six bandwidths each. Validation decides when the descent stops.
model = LABRegressor(n_support=40, random_state=0).fit(X, y)
print(f"R2 without noise {model.score(X_new, y_new):.4f}, {model.n_parameters_} numbers")

# %%
# Bright cells are narrow bandwidths: the feature matters near that support point. Features 3 and 4 act linearly, and
# the linear part of the model takes over; feature 5 does nothing. Their bandwidths grew until they no longer matter.
names = ["x0 (product)", "x1 (product)", "x2 (square)", "x3 (linear)", "x4 (linear)", "x5 (unused)"]
BandwidthDisplay.from_estimator(model, feature_names=names)
plt.show()

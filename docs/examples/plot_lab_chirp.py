"""
A bandwidth for every support point
===================================

A signal whose frequency changes, ``y = sin(2 x^3)`` with noise, is the toy example of the LAB paper. Kernel ridge
regression has one bandwidth for all of it: narrow enough for the fast part, it follows the noise in the slow part.
A local kernel learns one bandwidth per support point.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from mercerless import LABRegressor
from mercerless.inspection import DescentDisplay, LocalFitDisplay

random = np.random.default_rng(0)
x = np.sort(random.uniform(-2, 2, 300))
signal = np.sin(2 * x**3)
y = signal + 0.1 * random.normal(size=300)
X = x[:, None]

# %%
# Thirty support points, no tuning:
model = LABRegressor(n_support=30, kernel="gaussian", random_state=0).fit(X, y)
LocalFitDisplay.from_estimator(model, X, y)
print(
    f"{model.n_support_} support points, {model.n_parameters_} numbers, R2 on the signal {model.score(X, signal):.4f}"
)

# %%
# Tuned kernel ridge regression needs all 300 rows:
grid = {"gamma": np.logspace(-1, 3, 9), "alpha": np.logspace(-4, 1, 6)}
ridge = GridSearchCV(KernelRidge(kernel="rbf"), grid).fit(X, y)
print(f"300 support points, R2 on the signal {ridge.score(X, signal):.4f}")

# %%
# The bandwidths are learned by minimizing the evidence; validation says when to stop:
DescentDisplay.from_estimator(model)
plt.show()

"""
LAB: a bandwidth for every support point
========================================

A signal whose frequency changes, ``y = sin(2 x^3)`` with noise, is the toy example of the LAB paper. Kernel ridge
regression has one bandwidth for the whole signal: if it is narrow enough for the fast part, it follows the noise in
the slow part. A local kernel learns one bandwidth per support point.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from mercerless import LABRegressor

random = np.random.default_rng(0)
x = np.sort(random.uniform(-2, 2, 300))
signal = np.sin(2 * x**3)
y = signal + 0.1 * random.normal(size=300)
X = x[:, None]

# %%
# Thirty support points, no tuning:
model = LABRegressor(n_support=30, random_state=0).fit(X, y)
figure, (top, bottom) = plt.subplots(
    2, 1, sharex=True, layout="constrained", height_ratios=[3, 1.2]
)
top.plot(x, y, ".", color="gray")
top.plot(x, model.predict(X))
top.set_title("The fit, and the bandwidth of every support point")
bottom.semilogy(model.support_vectors_, model.bandwidths_, "o")
bottom.set(xlabel="x", ylabel="bandwidth (scaled)")
print(
    f"{model.n_support_} support points, {model.n_parameters_} numbers, R2 on the signal {model.score(X, signal):.4f}"
)

# %%
# Tuned kernel ridge regression needs all 300 rows:
grid = {"gamma": np.logspace(-1, 3, 9), "alpha": np.logspace(-4, 1, 6)}
ridge = GridSearchCV(KernelRidge(kernel="rbf"), grid).fit(X, y)
print(f"300 support points, R2 on the signal {ridge.score(X, signal):.4f}")

# %%
# Maximizing the evidence learns the bandwidths; validation stops the descent:
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.plot(model.loss_curve_)
left.set(xlabel="iteration", title="Objective")
iterations, errors = model.validation_curve_.T
right.semilogy(iterations, errors, "o-")
right.set(xlabel="iteration", title="Validation error")
plt.show()

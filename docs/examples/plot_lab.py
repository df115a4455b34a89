"""
A bandwidth for every support point
===================================

A signal with a changing frequency, ``y = sin(2 x^3)`` with noise, is the toy example of the LAB paper. One bandwidth
for the whole signal is either too wide for the fast part or too narrow for the slow one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from mercerless import LABRegressor, Support
from mercerless.inspection import GrowthDisplay

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-2, 2, 300))
signal = np.sin(2 * x**3)
y, X = signal + 0.1 * rng.normal(size=300), x[:, None]

model = LABRegressor(n_support=30, random_state=0).fit(X, y)
grid = {"gamma": np.logspace(-1, 3, 9), "alpha": np.logspace(-4, 1, 6)}
ridge = GridSearchCV(KernelRidge(kernel="rbf"), grid).fit(X, y)
print(f"R2 on the signal: LAB with 30 points {model.score(X, signal):.3f}")
print(f"kernel ridge with 300 points         {ridge.score(X, signal):.3f}")

# %%
figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(8, 4.4), sharex=True, layout="constrained", height_ratios=[2.5, 1]
)
top.plot(x, y, ".", ms=3, color="#808890")
top.plot(x, model.predict(X))
top.set_title("The fit, and the bandwidth of every support point")
bottom.semilogy(model.support_vectors_, model.bandwidths_, "o", color="C1")
bottom.set(xlabel="x", ylabel="bandwidth")
plt.show()

# %%
# A support that grows: the paper adds the rows with the largest errors until all errors are below a bound.

bounded = Support(10, selection="y", step=5, max_error=0.02)
grown = LABRegressor(bounded, objective="interpolation", max_iter=50).fit(X, signal)
GrowthDisplay.from_estimator(grown)
plt.show()

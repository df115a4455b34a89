"""
Krein ridge regression: two parts, two penalties
================================================

A function of an indefinite kernel has a positive and a negative part. ``KreinRidge`` penalizes each by its own norm, so
the problem is convex and the data decide how much the negative part may say.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercerless import KreinRidge
from mercerless.kernels import DeltaGauss

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-3, 3, 120))
y = np.sin(2 * x) + 0.5 * np.cos(7 * x) * (x > 0) + 0.15 * rng.normal(size=120)
X = x[:, None]
model = KreinRidge(DeltaGauss(1.0, 0.25)).fit(X, y)
print(f"penalties: {model.alpha_positive_:.1e} and {model.alpha_negative_:.1e}")

# %%
positive, negative = model.predict_parts(X)
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.4), layout="constrained", width_ratios=[1, 1.4]
)
values = model.eigenvalues_
heights = np.sign(values) * np.sqrt(np.abs(values))
left.bar(range(len(values)), heights, width=1, color=np.where(values > 0, "#3d8bd4", "#e0533d"))
left.set(title="The spectrum of the fitted kernel", xlabel="eigenvalue")
right.plot(x, y, ".", color="#808890", label="data")
right.plot(x, model.predict(X), label="prediction")
right.plot(x, positive, lw=1, label="positive part")
right.plot(x, negative, lw=1, label="negative part")
right.legend(ncols=2, fontsize=8)
plt.show()

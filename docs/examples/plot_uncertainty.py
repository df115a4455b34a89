"""
Sets, intervals and wrong labels
================================

Three uses of out-of-fold predictions: the classes that cannot be ruled out, intervals that widen with the scatter, and
labels that are probably wrong.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercerless import SimilarityClassifier, TableRegressor
from mercerless.datasets import load_digit_shapes

digits = load_digit_shapes(400)
D, y = digits.D, digits.target
model = SimilarityClassifier("precomputed").fit(D[:300, :300], y[:300])
new = slice(300, 400)
sets = model.predict_set(D[new, :300], coverage=0.98)
least_certain = np.argsort(-sets.sum(axis=1), kind="stable")[:8]

figure, axes = plt.subplots(1, 8, figsize=(9, 1.7), layout="constrained")
for ax, item in zip(axes, least_certain):
    ax.imshow(digits.images[new][item], cmap="gray_r")
    ax.set_title("{" + ", ".join(map(str, model.classes_[sets[item]])) + "}")
    ax.axis("off")
plt.show()

# %%
# A regressor learns where errors are large.
rng = np.random.default_rng(0)
x = rng.uniform(0, 6, 300)
target = x + np.sin(2 * x) + (0.05 + 0.12 * x) * rng.normal(size=300)
regressor = TableRegressor().fit(x[:, None], target)
grid = np.linspace(0, 6, 300)[:, None]
low, high = regressor.predict_interval(grid, coverage=0.9).T

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.fill_between(grid[:, 0], low, high, alpha=0.3, lw=0, label="90 % interval")
ax.plot(x, target, ".", ms=3, color="#808890", label="training rows")
ax.plot(grid, regressor.predict(grid), label="prediction")
ax.legend(loc="upper left")
plt.show()

# %%
# Fifteen labels are changed; red ones among the suspects are wrong indeed.
wrong = rng.choice(300, 15, replace=False)
labels = y[:300].copy()
labels[wrong] = (labels[wrong] + rng.integers(1, 10, size=15)) % 10
suspects = SimilarityClassifier("precomputed").fit(D[:300, :300], labels).suspects_.items

figure, axes = plt.subplots(1, 8, figsize=(9, 1.7), layout="constrained")
for ax, item in zip(axes, suspects):
    ax.imshow(digits.images[item], cmap="gray_r")
    ax.set_title(labels[item], color="#e0533d" if item in wrong else "#808890")
for ax in axes:
    ax.axis("off")
plt.show()
print(f"{np.isin(suspects, wrong).sum()} of 15 wrong labels are among {len(suspects)} suspects")

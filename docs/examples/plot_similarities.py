"""
Which recipe is best? Average them
==================================

Clipping, flipping, neighbors, rows as features: which recipe handles a matrix best depends on the data.
``SimilarityClassifier`` scores all of them on held-out items and averages those that help.
"""

import matplotlib.pyplot as plt

from mercerless import SimilarityClassifier
from mercerless.datasets import load_digit_shapes

shapes = load_digit_shapes()
model = SimilarityClassifier("precomputed").fit(shapes.D, shapes.target)

# %%
# Out-of-fold log-loss of every family alone, and of the average (less is better).
losses = {name: row["log_loss"] for name, row in model.family_scores_.items()}
names = sorted(losses, key=losses.get, reverse=True)
colors = ["#e8803b" if name == "average" else "#3d8bd4" for name in names]

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.hlines(names, 0, [losses[name] for name in names], color="#808890", alpha=0.3, lw=1)
ax.scatter([losses[name] for name in names], names, color=colors, s=50, zorder=3)
ax.set_yticks(names, ["average of all" if name == "average" else name for name in names])
ax.set(xlabel="log-loss on held-out digits", xlim=(0, None))
plt.show()

# %%
print(model.negative_spectrum_)

"""
A directed graph: who cites whom
================================

Three fields of research cite each other in a circle. In the mean of both directions, which most methods use, all fields
look alike. With the directions kept apart, the field of a paper follows from its citations alone.
"""

# %%
# Citations
# ---------
# ``cites[i, j]`` is 1 if paper i cites paper j. Papers cite their own field, and the next one even more: biology cites
# chemistry, chemistry physics, and physics (here) biology. The graph is drawn at random.
import matplotlib.pyplot as plt
import numpy as np

random = np.random.default_rng(0)
fields = np.array(["biology", "chemistry", "physics"])
field = np.sort(random.integers(3, size=180))
chances = np.array([[0.08, 0.12, 0.03], [0.03, 0.08, 0.12], [0.12, 0.03, 0.08]])  # from, to
cites = (random.uniform(size=(180, 180)) < chances[field[:, None], field]).astype(float)
np.fill_diagonal(cites, 0.0)

figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
both_ways = (cites + cites.T) / 2
for ax, matrix, title in zip(
    axes, (cites, both_ways), ("who cites whom", "mean of both directions")
):
    blocks = [[matrix[np.ix_(field == a, field == b)].mean() for b in range(3)] for a in range(3)]
    ax.imshow(blocks, cmap="Blues", vmin=0, vmax=0.13)
    for a, b in np.ndindex(3, 3):
        ax.text(b, a, f"{blocks[a][b]:.2f}", ha="center", va="center")
    ax.set_xticks(range(3), fields)
    ax.set_yticks(range(3), fields)
    ax.set_title(title)
figure.suptitle("Share of possible citations, by field")

# %%
# With one direction, and with both
# ---------------------------------
# The items are numbers of papers, and the kernel looks up the citation, so cross-validation too knows both directions
# of the held-out papers. ``AsymmetricRidgeClassifier`` is one ridge regression with both directions.
from sklearn.model_selection import StratifiedKFold, cross_val_score

from mercerless import AsymmetricRidgeClassifier, SimilarityClassifier


def citation(i, j):
    return cites[i, j]


options = {"kind": "similarity", "random_state": 0}
models = {
    "mean of both directions": SimilarityClassifier(citation, direction="mean", **options),
    "one asymmetric ridge": AsymmetricRidgeClassifier(citation, kind="similarity"),
    "both directions": SimilarityClassifier(citation, direction="both", **options),
}
papers = list(range(180))
folds = StratifiedKFold(5, shuffle=True, random_state=0)
scores = {name: cross_val_score(m, papers, field, cv=folds).mean() for name, m in models.items()}
for name, score in scores.items():
    print(f"{name}: {score:.2f} correct")

# %%
# Guessing would get a third of the papers right (dotted line).
figure, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
ax.barh(list(scores), list(scores.values()), color=["#7F7F7F", "#7F7F7F", "#D55E00"])
ax.axvline(1 / 3, color="black", lw=1, ls=":")
ax.set(xlim=(0, 1), xlabel="accuracy on held-out papers", title="What the direction is worth")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

"""
How few comparisons are enough?
===============================

If a comparison takes a second, all pairs of 300 items take half a day. Comparing every item with a few landmarks only
is often nearly as good.
"""

import matplotlib.pyplot as plt

from mercerless import SimilarityClassifier
from mercerless.datasets import load_digit_shapes

shapes = load_digit_shapes(400)
train, new = list(range(300)), list(range(300, 400))
calls = 0


def distance(i, j):
    """Stands for a slow function."""
    global calls
    calls += 1
    return shapes.D[i, j]


rows = []
for landmarks in (20, 40, 80, None):
    calls = 0
    model = SimilarityClassifier(distance, kind="distance", landmarks=landmarks)
    model.fit(train, shapes.target[train])
    name = f"{landmarks} landmarks" if landmarks else "all pairs"
    rows.append((name, calls, model.score(new, shapes.target[new])))

# %%
names, counts, accuracies = zip(*rows)
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.plot(counts, accuracies, "o-")
for name, count, accuracy in rows:
    ax.annotate(name, (count, accuracy), (4, -14), textcoords="offset points")
ax.set(xlabel="comparisons to fit", ylabel="accuracy on new digits", ylim=(0.5, 1.0))
ax.set_xlim(0, 1.2 * max(counts))
plt.show()

"""
An expensive function: how few comparisons are enough?
======================================================

If a comparison takes a second, all pairs of 400 items take a day. Comparing every item with a few landmarks only is
often nearly as good, and the fitted model shows whether more landmarks would help.
"""

# %%
# Shapes, and a count of comparisons
# ----------------------------------
# The modified Hausdorff distance of handwritten digits stands for a slow function; what counts is how often it is
# called.
import matplotlib.pyplot as plt
import numpy as np

from mercerless import Landmarks, SimilarityClassifier
from mercerless.datasets import load_digit_shapes
from mercerless.kernels import PairFunction

shapes = load_digit_shapes(400)
train, new = list(range(300)), list(range(300, 400))
calls = 0


def distance(i, j):
    global calls
    calls += 1
    return shapes.D[i, j]


def compared(landmarks):
    """A model with these landmarks, its accuracy on new items, and the comparisons that the fit took."""
    global calls
    calls = 0
    kernel = PairFunction(distance, symmetric=True, cache=False)
    model = SimilarityClassifier(kernel, landmarks=landmarks, random_state=0)
    model.fit(train, shapes.target[train])
    needed = calls
    return model, model.score(new, shapes.target[new]), needed


# %%
# From 20 landmarks to all pairs
# ------------------------------
# ``Landmarks(number)`` draws them at random; None compares everything.
rows = []
for number in (20, 40, 80):
    model, accuracy, needed = compared(Landmarks(number))
    rows.append((f"{number} landmarks", needed, accuracy))
everything, accuracy, needed = compared(None)
rows.append(("all pairs", needed, accuracy))
for name, needed, accuracy in rows:
    print(f"{name:13s} {needed:6d} comparisons, {accuracy:.2f} correct")

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
names, counts, accuracies = zip(*rows)
ax.plot(counts, accuracies, "o-", color="#0072B2")
for place, (name, count, accuracy) in enumerate(rows):
    above_or_below = (0, 8) if place % 2 else (0, -16)
    ax.annotate(
        name,
        (count, accuracy),
        xytext=above_or_below,
        textcoords="offset points",
        fontsize=8,
        ha="center",
    )
ax.set(xlabel="comparisons to fit", ylabel="accuracy on new items", ylim=(0.5, 1.0))
ax.set(xlim=(0, 52000), xticks=counts, title="Accuracy by the number of comparisons")
ax.spines[["top", "right"]].set_visible(False)

# %%
# Would more help?
# ----------------
# The model answers this without further comparisons, by its out-of-fold log-loss with a quarter, half and all of its
# landmarks. As long as the loss falls, more landmarks would help.
few, _, _ = compared(Landmarks(80))
for number, loss in few.landmark_curve_.items():
    print(f"{number:3d} landmarks: log-loss {np.round(loss, 3)}")
plt.show()

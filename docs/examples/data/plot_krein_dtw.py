"""
Time series by dynamic time warping
===================================

Dynamic time warping compares series by the cheapest way to stretch one onto the other. It is the standard distance for
series that run at different speeds. It is not a metric, and similarities made from it are indefinite. This example
learns from them with two penalties, one for each part of the spectrum, and shows the effect of each part.
"""

# %%
# Three kinds of events
# ---------------------
# Cylinder, bell and funnel: an event that is level, rises or falls, at a random time and with random length, in noise.
import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(0)
kinds = np.array(["cylinder", "bell", "funnel"])


def event(kind, length=64):
    start, stop = rng.integers(4, 20), rng.integers(34, 60)
    t = np.arange(length)
    shape = {
        "cylinder": 1.0,
        "bell": (t - start) / (stop - start),
        "funnel": (stop - t) / (stop - start),
    }[kind]
    inside = (t >= start) & (t <= stop)
    return (6 + rng.standard_normal()) * inside * shape + 2.5 * rng.standard_normal(length)


y = np.repeat(kinds, 50)
series = np.array([event(kind) for kind in y])
figure, axes = plt.subplots(1, 3, figsize=(9, 2.2), sharey=True, layout="constrained")
for ax, kind in zip(axes, kinds):
    ax.plot(series[y == kind][:3].T, lw=0.8)
    ax.set_title(kind)

# %%
# Distances
# ---------
# Dynamic programming, for one series against many at a time.


def warping(a, others):
    cost = np.full((len(others), others.shape[1] + 1), np.inf)
    cost[:, 0] = 0.0
    for value in a:
        new = np.full_like(cost, np.inf)
        step = (others - value) ** 2
        for j in range(others.shape[1]):
            new[:, j + 1] = step[:, j] + np.minimum(
                np.minimum(cost[:, j], cost[:, j + 1]), new[:, j]
            )
        cost = new
    return np.sqrt(cost[:, -1])


D = np.array([warping(a, series) for a in series])
D = (D + D.T) / 2

from mercerless.inspection import SpectrumDisplay
from mercerless.spectra import DissimilarityKernel

K = DissimilarityKernel().fit_transform(D)
SpectrumDisplay.from_matrix(K, name="Warping similarities")

# %%
# What the negative part is worth
# -------------------------------
# With few labels: a fifth of the series for training, the rest for testing. The negative part counts as much as the
# positive one, a tenth as much (the default), or not at all.
from sklearn.model_selection import ShuffleSplit, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from mercerless import KreinRidgeClassifier

folds = ShuffleSplit(10, train_size=0.2, random_state=0)
choices = {
    "equal": {"regularizer": "strong"},
    "1 : 10": {},
    "cut off": {"alpha_negative": 1e9 * abs(K).max()},
}
for name, options in choices.items():
    model = KreinRidgeClassifier("precomputed", random_state=0, **options)
    print(f"penalties {name:9s}: {cross_val_score(model, K, y, cv=folds).mean():.3f}")
nearest = KNeighborsClassifier(1, metric="precomputed")
print(f"nearest series     : {cross_val_score(nearest, D, y, cv=folds).mean():.3f}")

# %%
# Penalties, and the parts of one class
# -------------------------------------
# Every square below is one setting of a regression on "bell or not"; all together cost little more than one
# eigendecomposition per fold. On the right are the two parts of its scores: the classes separate mostly along the
# positive part.
from mercerless import KreinRidge
from mercerless.inspection import KreinPartsDisplay, ValidationSurfaceDisplay

model = KreinRidge("precomputed", random_state=0).fit(K, y == "bell")
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
ValidationSurfaceDisplay.from_estimator(model, ax=left)
KreinPartsDisplay.from_estimator(model, K, y, ax=right)
figure.suptitle("Error by the two penalties, and the two parts of the scores")
plt.show()

"""
Prediction sets, explanations and label errors
==============================================

Handwritten digits, compared by a distance that is not a metric. For every prediction the model also gives the classes
that cannot be ruled out and the training items that it is based on.
"""

import numpy as np

from mercerless import SimilarityClassifier
from mercerless.datasets import load_digit_shapes

shapes = load_digit_shapes(220)
D, y = shapes.D, shapes.target
train, new = slice(0, 160), slice(160, 220)
model = SimilarityClassifier(kernel="precomputed", random_state=0).fit(D[train, train], y[train])

# %%
# Sets that contain the right digit for 98 of 100 new items: the larger the set, the less sure the model is.
sets = model.predict_set(D[new, train], coverage=0.98)
print(f"the right digit is in {sets[np.arange(60), y[new]].mean():.0%} of the sets")
print("sizes:", dict(zip(*map(np.ndarray.tolist, np.unique(sets.sum(axis=1), return_counts=True)))))

# %%
# The new item with the least sure prediction, and the training items for and against it. The bars add up to the
# log-odds of the two likeliest digits.
import matplotlib.pyplot as plt

from mercerless.inspection import ReasonsDisplay

proba = np.sort(model.predict_proba(D[new, train]), axis=1)
least = int(np.argmin(proba[:, -1] - proba[:, -2]))
display = ReasonsDisplay.from_estimator(
    model, D[new, train], index=least, k=4, train=D[train, train]
)
print(f"given: {y[new][least]}; {display.title}")
plt.show()

# %%
# Labels that are improbable for models that have not seen them.
print(model.suspects_)

"""
Why was this predicted?
=======================

Handwritten digits, compared by a distance that is not a metric. A prediction is explained by the training items for and
against it, and their shares add up to the score.
"""

import numpy as np

from mercerless import SimilarityClassifier
from mercerless.datasets import load_digit_shapes

shapes = load_digit_shapes(220)
D, y = shapes.D, shapes.target
train, new = slice(0, 160), slice(160, 220)
model = SimilarityClassifier(kernel="precomputed", random_state=0).fit(D[train, train], y[train])

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
# The same as text, for the first new item.
print(model.explain(D[new, train], k=3, train=D[train, train]).text(0))

"""
Find label errors
=================

In most data sets some labels are wrong. Models that have not seen an item show which labels are improbable.
"""

# %%
# Digits, of which some have a wrong label
# ----------------------------------------
# 300 handwritten digits, compared by the Hausdorff distance of their shapes. Fifteen labels are changed.
import numpy as np

from mercerless.datasets import load_digit_shapes

digits = load_digit_shapes(300)
random = np.random.default_rng(0)
wrong = random.choice(300, 15, replace=False)
labels = digits.target.copy()
labels[wrong] = (labels[wrong] + random.integers(1, 10, size=15)) % 10

# %%
# Ask the model
# -------------
# ``suspects_`` lists training items whose label is improbable for models that have not seen them, the least probable
# first; at most about 5 % of the correct labels are among them.
from mercerless import SimilarityClassifier

model = SimilarityClassifier("precomputed", kind="distance", random_state=0).fit(digits.D, labels)
suspects = np.asarray(model.suspects_.items)
found = np.isin(suspects, wrong)
print(f"{len(suspects)} suspects, {found.sum()} of the 15 wrong labels among them")

# %%
# The first ten
# -------------
# Read the given label beside the picture: red ones were changed.
import matplotlib.pyplot as plt

figure, axes = plt.subplots(2, 5, figsize=(8, 3.8), layout="constrained")
figure.suptitle("Suspects: the given label above each digit")
for ax, item in zip(axes.flat, suspects):
    is_wrong = item in wrong
    ax.imshow(digits.images[item], cmap="gray_r")
    ax.set_title(str(labels[item]), color="#D55E00" if is_wrong else "black")
for ax in axes.flat:
    ax.axis("off")
plt.show()

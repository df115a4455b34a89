"""
How indefinite are shape distances, and does it matter?
=======================================================

Distances between the shapes of handwritten digits cannot be distances between points in space: the similarities are
indefinite. This example shows the matrix, its spectrum, and the effect of discarding the negative part.
"""

# %%
# The data
# --------
# Every digit is the set of its dark pixels. The modified Hausdorff distance of two sets is the mean distance to the
# nearest point of the other set, the larger of the two directions.
import matplotlib.pyplot as plt
import numpy as np

from mercerless.datasets import load_digit_shapes

shapes = load_digit_shapes()
figure, axes = plt.subplots(2, 10, figsize=(9, 2.2), layout="constrained")
for digit in range(10):
    rows = np.flatnonzero(shapes.target == digit)[:2]
    for ax, row in zip(axes[:, digit], rows):
        ax.imshow(shapes.images[row] >= 8, cmap="gray_r")
        ax.set_axis_off()
figure.suptitle("Two shapes of every digit")

# %%
# The matrix and its spectrum
# ---------------------------
# Rows are ordered by class, and inside a class by cluster: dark blocks on the diagonal are similar digits.
# sphinx_gallery_thumbnail_number = 2
from mercerless.inspection import KernelMatrixDisplay, SpectrumDisplay

figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=[1.15, 1]
)
SpectrumDisplay.from_matrix(shapes.K, name="Digit shapes", ax=left)
KernelMatrixDisplay.from_matrix(shapes.D, shapes.target, name="Distances", ax=right)

# %%
# Keep the negative part or discard it?
# -------------------------------------
# A third of the spectrum is negative. ``clip`` discards it, ``flip`` and ``square`` keep it, ``shift`` changes only
# the self-similarities. In the pipeline every fold transforms its training items, and new items the same way.
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from mercerless.spectra import DissimilarityKernel, SpectrumTransformer

folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0)
models = {
    mode: make_pipeline(
        DissimilarityKernel(), SpectrumTransformer(mode), SVC(kernel="precomputed", C=10)
    )
    for mode in ("clip", "flip", "square", "shift")
}
models["1-nearest neighbor"] = KNeighborsClassifier(1, metric="precomputed")
scores = {
    name: cross_val_score(model, shapes.D, shapes.target, cv=folds)
    for name, model in models.items()
}

figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
for row, score in enumerate(reversed(scores.values())):
    # folds share training items: the corrected resampled standard error (Nadeau and Bengio 2003)
    error = np.sqrt((1 / len(score) + 1 / 4) * score.var(ddof=1))
    ax.errorbar(score.mean(), row, xerr=2 * error, fmt="o", color="#0072B2", capsize=3)
ax.set_yticks(range(len(scores)), reversed(scores))
ax.set_ylim(-0.5, len(scores) - 0.5)
ax.set_xlabel("accuracy, mean of 20 folds and two corrected standard errors")
ax.set_title("What to do with the negative spectrum")
ax.spines[["top", "right"]].set_visible(False)

# %%
# Fold by fold, on the same splits:
for name in ("flip", "square", "shift"):
    difference = scores[name] - scores["clip"]
    error = np.sqrt((1 / len(difference) + 1 / 4) * difference.var(ddof=1))
    print(f"{name:>6} - clip: {difference.mean():+.3f} +- {error:.3f}")

# %%
# Shifting hurts. Clip, flip and square cannot be distinguished on these 400 items, although nearly a third of the
# spectrum is negative: negative mass does not show how much the negative part helps. Only held-out data do.

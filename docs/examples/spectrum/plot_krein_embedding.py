"""
Coordinates for methods that need vectors
=========================================

Distances between shapes are not Euclidean, and kernel PCA and classical scaling discard their negative part.
:class:`mercerless.KreinEmbedding` keeps it as axes of sign -1, so methods that need vectors can use all of it.
"""

# %%
# The map
# -------
# Handwritten digits as sets of dark pixels, with the distances between these shapes.
import matplotlib.pyplot as plt
import numpy as np

from mercerless import KreinEmbedding
from mercerless.datasets import load_digit_shapes
from mercerless.spectra import symmetrize

shapes = load_digit_shapes(400)
kept = np.isin(shapes.target, [0, 1, 4, 7])
D, y = symmetrize(shapes.D[np.ix_(kept, kept)]), shapes.target[kept]
embedding = KreinEmbedding("precomputed", 10).fit(D)
Z = embedding.transform(D)
print("eigenvalues:", embedding.eigenvalues_.round(1))
print(f"the ten axes hold {embedding.explained_:.0%} of the squared spectrum")

# %%
# Left, the two largest axes; right, the largest positive against the largest negative one, along which squared
# distances count negatively. Two shapes that lie apart on it are closer to each other than any Euclidean picture can
# show.
negative = int(np.flatnonzero(embedding.signs_ < 0)[0])
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for ax, (i, j) in zip(axes, [(0, 1), (0, negative)]):
    ax.scatter(Z[:, i], Z[:, j], c=y, cmap="tab10", s=12)
    ax.set(
        xlabel=f"axis {i} ({embedding.signs_[i]:+.0f})",
        ylabel=f"axis {j} ({embedding.signs_[j]:+.0f})",
    )
figure.suptitle("Digit shapes on two positive axes, and on a positive and a negative one")
plt.show()

# %%
# Clusters
# --------
# k-means needs vectors. How well do its clusters agree with the digits: with the first positive axes only, as in
# classical scaling, and with axes of both signs?
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

whole = KreinEmbedding("precomputed", 40).fit(D)
coordinates = whole.transform(D)
for name, columns in (("positive axes", whole.signs_ > 0), ("all axes", whole.signs_ != 0)):
    labels = KMeans(4, n_init=10, random_state=0).fit_predict(coordinates[:, columns])
    print(f"{name}: adjusted Rand index {adjusted_rand_score(y, labels):.2f}")

# %%
# Which of the two is better depends on the data. If there are labels, :class:`mercerless.SimilarityClassifier`
# measures it.

# %%
# Outliers
# --------
# A one-class machine on the coordinates of zeros, applied to new zeros and to other digits.
# ``transform`` takes the distances of new items to the training items.
from sklearn.metrics import roc_auc_score
from sklearn.svm import OneClassSVM

zeros = np.flatnonzero(y == 0)
known, others = zeros[::2], np.setdiff1d(np.arange(len(y)), zeros[::2])
space = KreinEmbedding("precomputed", 8).fit(D[np.ix_(known, known)])
machine = OneClassSVM(gamma="scale", nu=0.1).fit(space.transform(D[np.ix_(known, known)]))
values = machine.decision_function(space.transform(D[np.ix_(others, known)]))
print(f"area under the curve, zeros against the rest: {roc_auc_score(y[others] == 0, values):.2f}")

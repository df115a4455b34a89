"""
Strings by edit distance, with nothing to choose
================================================

Edit distances are not inner products: their matrix is indefinite. The automatic classifier takes the function itself,
scores several ways to handle the negative part on held-out items, and averages them.
"""

# %%
# The data
# --------
# Two grammars that differ a little in which letter follows which.
import numpy as np

random = np.random.RandomState(0)
shared = random.dirichlet(np.ones(6), 6)
follow = [0.5 * shared + 0.5 * random.dirichlet(np.ones(6), 6) for _ in range(2)]


def sentence(label):
    letters = [random.randint(6)]
    for _ in range(random.randint(15, 35)):
        letters.append(random.choice(6, p=follow[label][letters[-1]]))
    return "".join("abcdef"[letter] for letter in letters)


y = random.randint(2, size=260)
words = [sentence(label) for label in y]
train, test = slice(0, 180), slice(180, 260)
for word, label in zip(words[:4], y[:4]):
    print(label, word)

# %%
# Fit
# ---
# Any function of two items works. This one returns 0 for equal strings and is never negative, so its values are
# detected as distances.
# sphinx_gallery_thumbnail_number = 2
from rapidfuzz.distance import Levenshtein

from mercerless import SimilarityClassifier

model = SimilarityClassifier(Levenshtein.distance, random_state=0).fit(words[train], y[train])
print(f"kind: {model.kind_}, test accuracy {model.score(words[test], y[test]):.3f}")

# %%
# What it found
# -------------
# Every family alone, and its weight in the average. The verdict is whether the negative eigenvalues carry information
# or noise, which the spectrum alone cannot show.
from mercerless.inspection import StackDisplay

StackDisplay.from_estimator(model)

# %%
# Single recipes beside it
# ------------------------
# The same distances, in the usual ways.
import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from mercerless.spectra import DissimilarityKernel, SpectrumTransformer

D = np.array([[Levenshtein.distance(a, b) for b in words] for a in words], dtype=float)
scores = {"automatic": model.score(words[test], y[test])}
for mode in ("clip", "flip", "square"):
    recipe = make_pipeline(
        DissimilarityKernel(), SpectrumTransformer(mode), SVC(kernel="precomputed")
    )
    search = GridSearchCV(recipe, {"svc__C": [1e-4, 1e-3, 1e-2, 1e-1, 1, 10]}, cv=5).fit(
        D[train, train], y[train]
    )
    scores[f"SVC, {mode}"] = search.score(D[test, train], y[test])
neighbors = GridSearchCV(
    KNeighborsClassifier(metric="precomputed"), {"n_neighbors": [1, 3, 5, 9, 15, 25]}, cv=5
)
scores["neighbors"] = neighbors.fit(D[train, train], y[train]).score(D[test, train], y[test])

figure, ax = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
ax.barh(
    list(scores)[::-1],
    list(scores.values())[::-1],
    color=["#7F7F7F"] * (len(scores) - 1) + ["#D55E00"],
)
ax.set(xlim=(0.5, 1.0), xlabel="test accuracy", title="The automatic stack beside single recipes")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

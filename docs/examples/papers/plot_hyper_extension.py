"""
Hyper-kernels: similarities for new items
=========================================

A matrix of similarities covers the items in it and no others. Here, random words are compared by their edit distance;
for new words we want to use only their letter counts and not run the comparison again. ``HyperRidge`` learns the
similarity as a function of the features of two items and returns a kernel that can be called on any items.
"""

# %%
# Words that descend from a few ancestors
# ---------------------------------------
import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(0)
ancestors = [rng.integers(4, size=25) for _ in range(6)]


def descendant(family):
    word = ancestors[family].copy()
    changed = rng.random(len(word)) < 0.15
    word[changed] = rng.integers(4, size=changed.sum())
    return word


family = np.arange(120) % 6
words = np.array([descendant(f) for f in family])


def edit_distance(a, b):
    row = np.arange(len(b) + 1)
    for i, letter in enumerate(a, start=1):
        previous, row = row, np.empty_like(row)
        row[0] = i
        for j in range(1, len(b) + 1):
            row[j] = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (letter != b[j - 1]))
    return row[-1]


S = np.ones((120, 120))
for i in range(120):
    for j in range(i):
        S[i, j] = S[j, i] = 1 - edit_distance(words[i], words[j]) / 25

# %%
# Features of a word: how often each letter and each pair of letters occurs.
pairs = words[:, :-1] * 4 + words[:, 1:]
X = np.hstack(
    [
        np.apply_along_axis(np.bincount, 1, words, minlength=4),
        np.apply_along_axis(np.bincount, 1, pairs, minlength=16),
    ]
).astype(float)
train, test = np.arange(80), np.arange(80, 120)

# %%
# Learn from 80 words, with a third of their similarities unknown
# ----------------------------------------------------------------
# Entries that are NaN are ignored. Cross-validation leaves out words, never single pairs.
from mercerless import HyperRidge
from mercerless.inspection import LearnedKernelDisplay

known = S[np.ix_(train, train)].copy()
gone = np.triu(rng.random(known.shape) < 1 / 3, 1)
known[gone | gone.T] = np.nan
model = HyperRidge(random_state=0).fit(X[train], known)
print(model.hyper_kernel_)

# %%
# The kernel on 40 new words, beside the truth:
display = LearnedKernelDisplay.from_estimator(model, X[test], S[np.ix_(test, test)])
plt.show()

# %%
# Compared with the usual methods
# -------------------------------
# Copying the row of the nearest known word and ridge regression of the rows need the complete matrix, and cannot
# compare two new words. Where it applies, tuned ridge is as good.
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor

grid = {"gamma": np.logspace(-4, 0, 9), "alpha": np.logspace(-6, 1, 8)}
ridge = GridSearchCV(KernelRidge(kernel="rbf"), grid, scoring="neg_mean_squared_error")
complete = S[np.ix_(train, train)]
truth = S[np.ix_(test, train)]


def error(values):
    return np.linalg.norm(values - truth) / np.linalg.norm(truth)


for name, values in {
    "nearest neighbor": KNeighborsRegressor(1).fit(X[train], complete).predict(X[test]),
    "kernel ridge on rows": ridge.fit(X[train], complete).predict(X[test]),
    "HyperRidge": HyperRidge(random_state=0).fit(X[train], complete).transform(X[test]),
    "HyperRidge, a third unknown": model.transform(X[test]),
}.items():
    print(f"{name:28s} relative error {error(values):.3f}")

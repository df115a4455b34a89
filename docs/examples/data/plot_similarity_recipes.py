"""
Recipes for eight kinds of items
================================

Strings, time series, proteins, molecules, graphs, distributions, quantum circuits and citations.

Three lines for every kind of object, with its most common mistake and the cases in which another tool is better. The
learner is always the same: any function of two items, or of two lists, is a kernel. If a package is not installed, a
few lines of NumPy replace it, so that everything on this page runs.
"""

# %%
import numpy as np
from sklearn.model_selection import cross_val_score

from mercerless import SimilarityClassifier
from mercerless.kernels import MatrixFunction, PairFunction

rng = np.random.default_rng(0)
y = np.arange(60) % 3


accuracy = {}


def show(name, model, items):
    accuracy[name] = cross_val_score(model, items, y, cv=3).mean()
    print(f"{accuracy[name]:.2f} correct")


# %%
# Strings
# -------
# By name, with rapidfuzz. **Trap:** edit distance grows with length; the named similarities are normalized, 1 for
# equal strings. **Another tool:** for texts of many words, tf-idf and a linear model.
prototypes = ["".join(rng.choice(list("abcdefgh"), 12)) for _ in range(3)]
names = [
    "".join(c if rng.uniform() > 0.3 else rng.choice(list("abcdefgh")) for c in prototypes[k])
    for k in y
]

show("strings", SimilarityClassifier("jaro_winkler", random_state=0), names)

# %%
# Series of unequal length
# ------------------------
# A list of arrays. **Trap:** dynamic time warping without a window matches a spike with anything; give it one, and
# scale every series first. **Another tool:** for series of equal length MiniRocket (aeon) is better and far faster.
times = [np.linspace(0, 6 + k, rng.integers(25, 40)) for k in y]
waves = [np.sin(t) + 0.3 * rng.normal(size=len(t)) for t in times]
try:
    from aeon.distances import dtw_distance
except ImportError:

    def dtw_distance(a, b, window=0.2):
        cost = np.full((len(a) + 1, len(b) + 1), np.inf)
        cost[0, 0] = 0.0
        for i in range(1, len(a) + 1):
            for j in range(1, len(b) + 1):
                if abs(i / len(a) - j / len(b)) <= window:
                    best = min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
                    cost[i, j] = (a[i - 1] - b[j - 1]) ** 2 + best
        return cost[-1, -1]


def warped(a, b):
    return np.sqrt(dtw_distance((a - a.mean()) / a.std(), (b - b.mean()) / b.std(), window=0.2))


show("series", SimilarityClassifier(warped, random_state=0), waves)

# %%
# Proteins
# --------
# Alignment scores. **Trap:** a score grows with length, and the score of a protein with itself differs between
# proteins; normalize by both. The matrix is still indefinite, and that is fine here.
amino = list("ACDEFGHIKLMNPQRSTVWY")
ancestors = ["".join(rng.choice(amino, 25)) for _ in range(3)]
proteins = [
    "".join(c if rng.uniform() > 0.5 else rng.choice(amino) for c in ancestors[k])[
        rng.integers(5) :
    ]
    for k in y
]
try:
    from Bio.Align import PairwiseAligner, substitution_matrices

    aligner = PairwiseAligner(open_gap_score=-10, extend_gap_score=-0.5)
    aligner.substitution_matrix = substitution_matrices.load("BLOSUM62")
    score = aligner.score
except ImportError:

    def score(a, b):
        """Needleman and Wunsch: 2 for a match, -1 for a mismatch or a gap."""
        row = -np.arange(len(b) + 1.0)
        for i, c in enumerate(a, 1):
            above, row = row, np.full(len(b) + 1, -float(i))
            for j, d in enumerate(b, 1):
                row[j] = max(
                    above[j - 1] + (2.0 if c == d else -1.0), above[j] - 1.0, row[j - 1] - 1.0
                )
        return row[-1]


own = {p: score(p, p) for p in proteins}
show(
    "proteins",
    SimilarityClassifier(lambda a, b: score(a, b) / np.sqrt(own[a] * own[b]), random_state=0),
    proteins,
)

# %%
# Molecules
# ---------
# Tanimoto similarity of fingerprints, a list at a time. **Trap:** ``BulkTanimotoSimilarity`` takes one molecule and a
# list, so wrap a function of two lists in ``MatrixFunction``. **Another tool:** Tanimoto is positive definite, so an
# SVM or a Gaussian process is sound too, and gradient boosting on thousands of fingerprints is hard to beat.
parts = rng.uniform(size=(3, 128)) < 0.2
bits = np.array([parts[k] ^ (rng.uniform(size=128) < 0.15) for k in y])
try:
    from rdkit import DataStructs

    prints = [DataStructs.CreateFromBitString("".join("01"[int(b)] for b in row)) for row in bits]

    def tanimoto(A, B):
        return np.array([DataStructs.BulkTanimotoSimilarity(a, B) for a in A])
except ImportError:
    prints = list(bits)

    def tanimoto(A, B):
        A, B = np.array(A, dtype=float), np.array(B, dtype=float)
        both = A @ B.T
        return both / (A.sum(axis=1)[:, None] + B.sum(axis=1) - both)


show("molecules", SimilarityClassifier(MatrixFunction(tanimoto), random_state=0), prints)

# %%
# Graphs
# ------
# The function receives any object unchanged. **Trap:** graph edit distance takes exponential time; compare local
# structure instead. Below, nodes are counted by their degree and the degrees of their neighbors (one round of
# Weisfeiler and Lehman), and the similarity is the share of common counts. Normalized kernels of GraKeL are functions
# of two lists, ``lambda A, B: WeisfeilerLehman(n_iter=2, normalize=True,
# base_graph_kernel=VertexHistogram).fit(B).transform(A)``, and detected as such. **Another tool:** on thousands of
# graphs with node features, a graph neural network.
from collections import Counter


def random_graph(p, n=14):
    A = np.triu(rng.uniform(size=(n, n)) < p, 1)
    edges = [(int(i), int(j)) for i, j in np.argwhere(A)]
    try:
        import networkx

        return networkx.Graph(edges)
    except ImportError:
        neighbors = {i: set() for edge in edges for i in edge}
        for i, j in edges:
            neighbors[i].add(j)
            neighbors[j].add(i)
        return neighbors


graphs = [random_graph(0.15 + 0.12 * k) for k in y]


def looks(graph):
    return Counter((len(graph[v]), *sorted(len(graph[w]) for w in graph[v])[:2]) for v in graph)


show(
    "graphs",
    SimilarityClassifier(
        lambda g, h: (looks(g) & looks(h)).total() / (looks(g) | looks(h)).total()
    ),
    graphs,
)

# %%
# Distributions
# -------------
# Clouds of unequal size under the Wasserstein distance, by POT. **Trap:** ``ot.dist`` returns *squared* distances and
# ``ot.emd2`` their optimal mean; take the root first, because distances are squared again. **Another tool:** in one
# dimension, SciPy's ``wasserstein_distance``, which only sorts; for thousands of points in a cloud, a sliced distance.
clouds = [rng.normal(0.5 * k, 1.0 + 0.4 * k, (rng.integers(15, 30), 2)) for k in y]
try:
    import ot

    def wasserstein(a, b):
        return np.sqrt(ot.emd2([], [], ot.dist(a, b)))
except ImportError:
    from scipy.stats import wasserstein_distance

    directions = [(np.cos(t), np.sin(t)) for t in np.arange(6) * np.pi / 6]

    def wasserstein(a, b):
        return np.mean([wasserstein_distance(a @ u, b @ u) for u in directions])


show("distributions", SimilarityClassifier(wasserstein, random_state=0), clouds)

# %%
# Quantum kernels with shot noise
# -------------------------------
# A fidelity estimated from 200 shots is a different number every time. **Trap:** the measured matrix is neither
# symmetric nor definite, so the solution of an SVM is not an optimum. Here a warning reports the noise, every pair is
# measured once, and the negative part of the spectrum is evaluated, not removed. Simulated exactly, the same kernel is
# an inner product, and any kernel machine works.
import warnings

angles = rng.uniform(0, np.pi, size=(60, 3)) * 0.3 + 0.5 * y[:, None]
states = np.array(
    [
        [np.prod(np.where([b >> i & 1 for i in range(3)], np.sin(a), np.cos(a))) for b in range(8)]
        for a in angles
    ]
)


def fidelity(a, b, shots=200):
    return rng.binomial(shots, min(1.0, float(a @ b) ** 2)) / shots


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = SimilarityClassifier(PairFunction(fidelity), kind="similarity", random_state=0).fit(
        states[::2], y[::2]
    )
print(caught[0].message)
accuracy["circuits"] = model.score(states[1::2], y[1::2])
print(f"{accuracy['circuits']:.2f} correct. {model.negative_spectrum_}")

# %%
# Citations
# ---------
# Citations are directed. **Trap:** the mean of both directions loses who cited whom, and scikit-learn's
# cross-validation passes only one direction of a matrix. Pass the numbers of the papers as items and a function that
# looks up the matrix: then both directions of new papers are known. **Another tool:** if the nodes have text or
# features, use those too.
cites = (rng.uniform(size=(60, 60)) < np.where((y[:, None] + 1) % 3 == y, 0.35, 0.05)).astype(float)

show(
    "citations",
    SimilarityClassifier(
        lambda i, j: cites[i, j], direction="both", kind="similarity", random_state=0
    ),
    list(range(60)),
)

# %%
# All eight
# ---------
# The items are made up, of three classes each, so guessing gets a third right. The bars say nothing about your data.
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.barh(list(accuracy)[::-1], list(accuracy.values())[::-1], color="#0072B2")
ax.axvline(1 / 3, color="black", lw=1, ls=":")
ax.set(xlim=(0, 1), xlabel="accuracy on held-out items", title="One learner, eight kinds of items")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

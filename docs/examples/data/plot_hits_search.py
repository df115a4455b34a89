"""
From a table of DIAMOND hits to predictions with sets
=====================================================

A search lists a few hits for every sequence. That table is enough to predict the family of new sequences, and to state
which families cannot be ruled out.
"""

# %%
# The search
# ----------
# Four families of protein sequences, of which two are related. The table has the columns of ``diamond blastp`` (BLAST's
# tabular format, ``--outfmt 6``); here it is simulated: 15 hits per sequence, with bit scores.
import io

import numpy as np
import pandas as pd

random = np.random.default_rng(0)
letters = np.array(list("ACDEFGHIKLMNPQRSTVWY"))


def mutate(sequence, share):
    new = random.choice(letters, len(sequence))
    return np.where(random.uniform(size=len(sequence)) < share, new, sequence)


ancestors = {name: random.choice(letters, 120) for name in ("kinase", "protease", "ligase")}
ancestors["phosphatase"] = mutate(ancestors["kinase"], 0.2)
family = random.choice(list(ancestors), 320)
sequences = np.array([mutate(ancestors[name], 0.8) for name in family])
names = np.array([f"seq{i:03d}" for i in range(320)])
known, new = names[:240], names[240:]

bits = 4.0 * (sequences[:, None] == sequences[None, :240]).sum(axis=2)
lines = []
for query, row in zip(names, bits):
    for subject in np.argsort(-row)[:15]:
        alignment = [120, 0, 0, 1, 120, 1, 120, 1e-9]
        fields = [query, names[subject], round(row[subject] / 4.8, 1), *alignment, row[subject]]
        lines.append("\t".join(map(str, fields)))
table = "\n".join(lines)  # what diamond writes into hits.tsv
print(table[:90])

# %%
# Read it
# -------
# Only three columns are needed. Hits become a sparse matrix, one row per query and one column per known sequence.
from scipy.sparse import csr_array

columns = "query subject identity length mismatch gaps qstart qend sstart send evalue bits".split()
hits = pd.read_csv(io.StringIO(table), sep="\t", names=columns)
hits = hits.groupby(["query", "subject"], as_index=False).bits.max()  # the best hit of a pair


def matrix_of(queries):
    """Bit scores of some queries against the known sequences."""
    rows = pd.Index(queries).get_indexer(hits["query"])
    places = pd.Index(known).get_indexer(hits.subject)
    kept = (rows >= 0) & (places >= 0)
    entries = (hits.bits.to_numpy()[kept], (rows[kept], places[kept]))
    return csr_array(entries, shape=(len(queries), len(known)))


# %%
# Fit and predict
# ---------------
# A set holds every family that cannot be ruled out; 99 in 100 sets should contain the true one.
from mercerless import HitsClassifier

model = HitsClassifier(random_state=0).fit(matrix_of(known), family[:240])
sets = model.predict_set(matrix_of(new), coverage=0.99)
accuracy = model.score(matrix_of(new), family[240:])
true_place = np.searchsorted(model.classes_, family[240:])
covered = sets[np.arange(len(new)), true_place].mean()
print(f"accuracy {accuracy:.2f}, sets cover {covered:.2f}")
for name, members in zip(new[:5], sets):
    print(name, " or ".join(model.classes_[members]))

# %%
# Large sets are those of the related families
# --------------------------------------------
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
both = [np.bincount(sets.sum(axis=1)[family[240:] == name], minlength=5) for name in model.classes_]
left = np.zeros(len(both))
for size, color in zip(range(5), ("#7F7F7F", "#0072B2", "#E69F00", "#D55E00", "#CC79A7")):
    counts = np.array([row[size] for row in both])
    if counts.any():
        ax.barh(model.classes_, counts, left=left, color=color, label=f"{size} in the set")
    left += counts
ax.set(xlabel="new sequences", title="How many families cannot be ruled out")
ax.legend(fontsize=8)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

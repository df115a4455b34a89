"""
Molecules: boiling points with intervals
========================================

Two molecules are alike if they have many small pieces in common. That similarity (Tanimoto) is all the learner needs to
predict a boiling point, and to state how far off the prediction may be.
"""

# %%
# The molecules
# -------------
# Common solvents as SMILES strings, with their boiling points in °C as handbooks list them, rounded.
import re
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

handbook = """
CCC -42|CCCC -1|CCCCC 36|CCCCCC 69|CCCCCCC 98|CCCCCCCC 126|CCCCCCCCC 151|CCCCCCCCCC 174|
CCCCCCCCCCC 196|CCCCCCCCCCCC 216|CC(C)C -12|CCC(C)C 28|CC(C)(C)C 10|CCCC(C)C 60|CCC(C)CC 63|
CC(C)C(C)C 58|CCC(C)(C)C 50|CC(C)CC(C)(C)C 99|C1CCCC1 49|C1CCCCC1 81|CC1CCCCC1 101|C1CCCCCC1 118|
C=CCC -6|C=CCCC 30|C=CCCCC 63|C=CCCCCC 94|C=CCCCCCC 121|C1=CCCCC1 83|C#CCCC 40|C#CCCCC 71|CO 65|
CCO 78|CCCO 97|CC(C)O 82|CCCCO 118|CC(C)CO 108|CCC(C)O 99|CC(C)(C)O 82|CCCCCO 138|CCCCCCO 157|
CCCCCCCO 176|CCCCCCCCO 195|C1CCCCC1O 161|OCCO 197|C=CCO 97|CCOCC 35|COCCCC 70|CCCOCCC 90|
CCCCOCCCC 142|CC(C)OC(C)C 68|C1CCOC1 66|C1COCCO1 101|CC(C)(C)OC 55|CC=O 20|CCC=O 48|CCCC=O 75|
CCCCC=O 103|CCCCCC=O 130|CC(C)=O 56|CCC(C)=O 80|CCCC(C)=O 102|CCC(=O)CC 102|CCCCC(C)=O 128|
C1CCCCC1=O 156|C1CCCC1=O 131|CC(C)CC(C)=O 117|O=CO 101|CC(=O)O 118|CCC(=O)O 141|CCCC(=O)O 164|
CCCCC(=O)O 186|CCCCCC(=O)O 205|COC=O 32|CCOC=O 54|CC(=O)OC 57|CC(=O)OCC 77|CC(=O)OCCC 102|
CC(=O)OCCCC 126|CCC(=O)OC 80|CCC(=O)OCC 99|CCCC(=O)OC 103|CCCC(=O)OCC 121|CC(=O)OC(C)C 89|CCN 17|
CCCN 48|CCCCN 78|CCCCCN 104|CCCCCCN 131|CCNCC 56|CCN(CC)CC 89|C1CCNCC1 106|CC#N 82|CCC#N 97|
CCCC#N 117|CCCl 12|CCCCl 47|CCCCCl 78|CCCCCCl 108|CCBr 38|CCCBr 71|CCCCBr 101|ClCCl 40|
ClC(Cl)Cl 61|ClC(Cl)(Cl)Cl 77|ClCCCl 84|c1ccccc1 80|Cc1ccccc1 111|CCc1ccccc1 136|Cc1ccccc1C 144|
Cc1cccc(C)c1 139|Cc1ccc(C)cc1 138|CCCc1ccccc1 159|CC(C)c1ccccc1 152|C=Cc1ccccc1 145|
Clc1ccccc1 132|Brc1ccccc1 156|Oc1ccccc1 182|Nc1ccccc1 184|COc1ccccc1 154|O=Cc1ccccc1 178|
CC(=O)c1ccccc1 202|N#Cc1ccccc1 191|c1ccncc1 115|Cc1ccccc1O 191|Cc1cccc(O)c1 203
"""
pairs = [entry.split() for entry in handbook.replace("\n", "").split("|")]
smiles = [name for name, _ in pairs]
boiling = np.array([float(degrees) for _, degrees in pairs])
print(len(smiles), "molecules, the first:", pairs[0])

# %%
# Pieces
# ------
# A molecule becomes a count of its pieces: every atom alone, with its neighbors, and with their neighbors. That is
# what circular (Morgan) fingerprints count. The parser below is just enough for the SMILES of this list; for your own
# molecules, use RDKit's fingerprints.


def read(text):
    """Atoms, and the neighbors of each with the bond between them."""
    atoms, bonds, branches, rings = [], [], [], {}
    last, bond = None, "-"
    for token in re.findall(r"Cl|Br|[A-Za-z]|\d|[()=#]", text):
        if token == "(":
            branches.append(last)
        elif token == ")":
            last = branches.pop()
        elif token in "=#":
            bond = token
        elif token.isdigit() and token not in rings:
            rings[token] = last
        elif token.isdigit():
            bonds.append((rings.pop(token), last, "-"))
        else:
            atoms.append(token)
            if last is not None:
                bonds.append((last, len(atoms) - 1, bond))
            last, bond = len(atoms) - 1, "-"
    neighbors = [[] for _ in atoms]
    for a, b, kind in bonds:
        neighbors[a].append((kind, b))
        neighbors[b].append((kind, a))
    return atoms, neighbors


def pieces(text, radius=2):
    """How often every piece occurs, from single atoms to those with neighbors of neighbors."""
    atoms, neighbors = read(text)
    looks = [f"{atom}{len(n)}" for atom, n in zip(atoms, neighbors)]
    counts = Counter(looks)
    for _ in range(radius):
        around = [sorted(kind + looks[b] for kind, b in n) for n in neighbors]
        looks = [f"{look}({','.join(part)})" for look, part in zip(looks, around)]
        counts.update(looks)
    return counts


def tanimoto(a, b):
    """The common share of two counts: 1 for equal ones, 0 if nothing is common."""
    return (a & b).total() / (a | b).total()


molecules = [pieces(text) for text in smiles]
ethanol = molecules[smiles.index("CCO")]
for other in ("CCCO", "CCN", "c1ccccc1"):
    print(f"ethanol and {other}: {tanimoto(ethanol, molecules[smiles.index(other)]):.2f}")

# %%
# Fit, predict, and state the uncertainty
# ---------------------------------------
# Nine of ten intervals should contain the boiling point of a new molecule.
from mercerless import SimilarityRegressor

order = np.random.default_rng(0).permutation(len(smiles))
train, new = order[:85], order[85:]
model = SimilarityRegressor(tanimoto, random_state=0)
model.fit([molecules[i] for i in train], boiling[train])
unseen = [molecules[i] for i in new]
predicted = model.predict(unseen)
low, high = model.predict_interval(unseen, coverage=0.9).T
inside = (low <= boiling[new]) & (boiling[new] <= high)
print(f"typical error {np.median(np.abs(predicted - boiling[new])):.0f} °C")
print(f"{inside.sum()} of {len(new)} intervals contain the boiling point")

# %%
# New molecules, from the lowest to the highest prediction
# --------------------------------------------------------
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
places = np.argsort(predicted)
ax.vlines(np.arange(len(new)), low[places], high[places], color="#0072B2", alpha=0.4, lw=5)
ax.plot(boiling[new][places], "o", color="#D55E00", ms=5, label="handbook")
ax.plot(predicted[places], "_", color="#0072B2", ms=8, label="predicted, with 90 % interval")
ax.set_xticks(range(len(new)), [smiles[i] for i in new[places]], rotation=90, fontsize=7)
ax.set(ylabel="boiling point in °C", title="Molecules that the model has not seen")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

"""
Strings by edit distance
========================

Names of medicines end alike if their substances act alike. Edit distances see this, and one call learns from them.
"""

import matplotlib.pyplot as plt
import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from mercerless import KreinEmbedding, SimilarityClassifier

groups = {
    "antibiotic": "amoxicillin ampicillin oxacillin cloxacillin nafcillin ticarcillin piperacillin",
    "painkiller": "ibuprofen ketoprofen fenoprofen flurbiprofen carprofen loxoprofen naproxen",
    "beta blocker": "atenolol metoprolol propranolol bisoprolol nadolol carvedilol timolol",
    "statin": "atorvastatin simvastatin lovastatin fluvastatin rosuvastatin pravastatin pitavastatin",
}
names = [name for group in groups.values() for name in group.split()]
kinds = [kind for kind, group in groups.items() for _ in group.split()]
model = SimilarityClassifier("levenshtein").fit(names, kinds)
print(dict(zip(("dicloxacillin", "pindolol"), model.predict(["dicloxacillin", "pindolol"]))))

# %%
# The matrix, and a map of the names from its two largest directions.
D = cdist(names, names, scorer=Levenshtein.distance).astype(float)
Z = KreinEmbedding("precomputed", n_components=2, kind="distance").fit_transform(D)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.imshow(D, cmap="viridis")
left.set(xticks=[], yticks=np.arange(3, 28, 7), title="Edit distances")
left.set_yticklabels(groups)
for k, kind in enumerate(groups):
    is_kind = np.array(kinds) == kind
    right.scatter(*Z[is_kind].T, color=f"C{k}", label=kind, s=35)
right.set(xticks=[], yticks=[], title="The map they give")
right.legend()
plt.show()

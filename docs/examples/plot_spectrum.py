"""
What an indefinite matrix looks like
====================================

Handwritten digits, compared by the Hausdorff distance of their shapes. The similarities that belong to these distances
have eigenvalues of both signs, so no points in a Euclidean space have these distances.
"""

# sphinx_gallery_thumbnail_number = 1
import matplotlib.pyplot as plt
import numpy as np

from mercerless.datasets import load_digit_shapes
from mercerless.spectra import indefiniteness

shapes = load_digit_shapes()
values = np.linalg.eigvalsh(shapes.K)[::-1]
heights = np.sign(values) * np.sqrt(np.abs(values))
order = np.argsort(shapes.target, kind="stable")

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.6), layout="constrained", width_ratios=[1.5, 1]
)
left.bar(range(400), heights, width=1.0, color=np.where(values > 0, "#3d8bd4", "#e0533d"))
left.set(xlabel="number of the eigenvalue", title="Eigenvalues of both signs (height: square root)")
right.imshow(shapes.D[np.ix_(order, order)], cmap="viridis")
right.set(xticks=[], yticks=[], title="Distances, sorted by digit")
plt.show()

# %%
print(f"{indefiniteness(shapes.K).negative_mass:.0%} of the spectrum is negative")

"""Draw the pictures that README.md shows: python docs/images/make.py."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from mercerless.datasets import load_digit_shapes
from mercerless.inspection import KernelMatrixDisplay, SpectrumDisplay

shapes = load_digit_shapes()
figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=[1.15, 1]
)
SpectrumDisplay.from_matrix(shapes.K, name="Digit shapes", ax=left)
KernelMatrixDisplay.from_matrix(
    shapes.D, shapes.target, name="Distances between 400 handwritten digits", ax=right
)
figure.savefig(Path(__file__).parent / "digit-shapes.png", dpi=110)

"""
Compare learners on your data
=============================

Which learner is good on these data, and is its advantage more than luck? ``compare`` runs learners on the same splits
and judges their differences. The command ``mercerless compare`` does the same with a file, and writes a report.
"""

# %%
# Distances between digits, five learners
# ---------------------------------------
# ``budget=None`` searches the parameters of every learner to the end; ``budget="2m"`` would stop after two minutes.
import matplotlib.pyplot as plt

from mercerless import compare
from mercerless.datasets import load_digit_shapes

shapes = load_digit_shapes(200)
learners = ["stack", "krein-ridge", "svm-clip", "svm-raw", "neighbors"]
result = compare(
    shapes.D, shapes.target, learners=learners, budget=None, repeats=1, curves=False, name="digits"
)
print(result)

# %%
# The differences
# ---------------
# Bars are intervals of the difference to the recommended learner that hold for all learners together. If a bar reaches
# zero, the two are not distinguishable on these data.
table = result.to_pandas().query("learner != 'dummy'").iloc[::-1]
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
points = 100 * table[["difference", "difference_low", "difference_high"]]
ax.hlines(table.title, points.difference_low, points.difference_high, color="#0072B2", lw=2)
ax.plot(points.difference, table.title, "o", color="#0072B2")
ax.axvline(0, color="black", lw=1, ls=":")
ax.set(xlabel="accuracy, points above the recommended", title="Better, or lucky?")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The recommended learner as code to copy
# ---------------------------------------
print(result.code())

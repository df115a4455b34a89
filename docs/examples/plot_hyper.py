"""
A kernel learned from labels
============================

Labels define an ideal similarity: items of one class are similar, others are not. ``HyperRidge`` learns a function of
two items that is close to it, and that any kernel machine can use.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from mercerless import HyperRidge

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
X, X_new, y, y_new = train_test_split(X, y, train_size=0.4, stratify=y, random_state=0)
kernel = HyperRidge(random_state=0).fit(X, y).kernel_

# %%
# On new wines the learned kernel is a blurred version of the ideal one. On the line from one class to another it
# changes its sign.
order = np.argsort(y_new, kind="stable")
matrix = kernel(X_new[order])
first, last = X[y == 0].mean(axis=0), X[y == 2].mean(axis=0)
position = np.linspace(-0.25, 1.25, 200)
line = first + position[:, None] * (last - first)

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.6), layout="constrained", width_ratios=[1, 1.3]
)
limit = np.abs(matrix).max()
left.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit)
left.set(xticks=[], yticks=[], title="Learned similarity of new wines")
right.plot(position, kernel(line, first[None]), label="with the center of class 0")
right.plot(position, kernel(line, last[None]), label="with the center of class 2")
right.axhline(0, color="#808890", lw=0.6)
right.set(xlabel="position between the centers", title="The kernel as a curve")
right.legend(fontsize=8)
plt.show()

"""
Hyper-kernels: learn a kernel from labels
=========================================

Labels define an ideal similarity: items of one class are similar, others are not. ``HyperRidge`` learns a kernel of
the features whose matrix is close to that ideal. Any kernel machine can use it on new items.
"""

# %%
# Two stages by hand
# ------------------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercerless import HyperRidge
from mercerless.inspection import LearnedKernelDisplay

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
train, test, y_train, y_test = train_test_split(X, y, train_size=0.4, stratify=y, random_state=0)

stage1 = HyperRidge(random_state=0).fit(train, y_train)
kernel = stage1.kernel_
print(stage1.hyper_kernel_, f"positive definite: {kernel.definite}")

# %%
# On new wines, the kernel is a blurred version of the ideal one, and it has negative eigenvalues:
LearnedKernelDisplay.from_estimator(stage1, test, y_test)
plt.show()

# %%
# Between two wines of different classes the kernel changes sign where the classes meet.
first, last = train[y_train == 0].mean(axis=0), train[y_train == 2].mean(axis=0)
position = np.linspace(-0.25, 1.25, 200)
line = first + position[:, None] * (last - first)
plt.figure()
plt.plot(position, kernel(line, np.stack([first, last])), label=["k(x, first)", "k(x, last)"])
plt.axhline(0, color="gray", lw=0.6)
plt.xlabel("position on the line from the first to the last class")
plt.title("The kernel between two classes changes its sign")
plt.legend()
plt.show()

# %%
# Scikit-learn's machines accept the kernel object:
size = np.mean(np.abs(kernel.diag(train)))
machine = SVC(kernel=kernel * (1 / size), C=1.0).fit(train, y_train)
print(f"learned kernel and SVC: {machine.score(test, y_test):.3f}")

# %%
# Both stages in one estimator
# ----------------------------
# ``HyperClassifier`` also chooses C. It learns the kernel again in every fold, so no held-out label influences the
# kernel that it is scored with. On ordinary tables a tuned Gaussian machine is strong competition: always try both.
from sklearn.model_selection import GridSearchCV

from mercerless import HyperClassifier

grid = {"C": [0.1, 1, 10, 100], "gamma": [0.001, 0.01, 0.1, 1]}
for name, model in {
    "HyperClassifier": HyperClassifier(random_state=0),
    "Gaussian SVC, tuned": GridSearchCV(SVC(), grid),
}.items():
    print(f"{name:24s} {model.fit(train, y_train).score(test, y_test):.3f}")

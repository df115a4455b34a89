"""
One item, or a batch?
=====================

A call of ``predict`` has a fixed cost, so requests that are answered together are cheaper.
"""

import time

import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1

from mercerless import KreinRidge, LABRegressor, SimilarityRegressor, TableRegressor
from mercerless.kernels import TL1

X, y = make_friedman1(600, random_state=0)
models = [
    SimilarityRegressor(TL1(7.0)),
    TableRegressor(),
    KreinRidge(TL1(7.0)),
    LABRegressor(n_support=40, random_state=0),
]
batches = (1, 10, 100, 600)

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for model in models:
    model.fit(X, y)
    costs = []
    for size in batches:
        model.predict(X[:size])
        start = time.process_time()
        for _ in range(10):
            model.predict(X[:size])
        costs.append((time.process_time() - start) / 10 / size * 1000)
    ax.loglog(batches, costs, "o-", label=type(model).__name__)
ax.set(xlabel="items in a call", ylabel="milliseconds per item")
ax.legend()
plt.show()

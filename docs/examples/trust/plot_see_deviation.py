"""
How far off is a prediction?
============================

The error of a model is not the same everywhere. ``LABRegressor`` learns from its out-of-fold errors how far targets
scatter around its predictions, and where (``predict`` with ``return_std=True``). Intervals of a stated coverage
(``predict_interval``) are multiples of that deviation and need no normal distribution.
"""

import numpy as np

from mercerless import LABRegressor

rng = np.random.RandomState(0)
x = np.sort(rng.uniform(0, 6, 300))
scatter = 0.05 + 0.12 * x
y = x + np.sin(2 * x) + scatter * rng.normal(size=300)
model = LABRegressor(n_support=25, kernel="gaussian", random_state=0).fit(x[:, None], y)

new = np.linspace(0, 6, 400)
truth, noise = new + np.sin(2 * new), 0.05 + 0.12 * new
mean, std = model.predict(new[:, None], return_std=True)
low, high = model.predict_interval(new[:, None], coverage=0.9).T
print(
    f"the log density of a held-out error gains {model.spread_[0].gain:.2f} over one deviation for all"
)

# %%
# Both contain about nine of ten new targets, and both are narrow where the noise is small. Here the noise is normal, so
# they nearly coincide.
import matplotlib.pyplot as plt

figure, ax = plt.subplots(layout="constrained")
ax.fill_between(
    new,
    mean - 1.645 * std,
    mean + 1.645 * std,
    color="C0",
    alpha=0.3,
    lw=0,
    label="±1.645 deviations",
)
ax.plot(
    new, np.column_stack([low, high]), color="0.4", ls="--", lw=1, label=["90 % interval", None]
)
ax.plot(x, y, ".", color="0.3", ms=4, label="training rows")
ax.plot(new, mean, color="C0", label="prediction")
ax.set(
    xlabel="x", ylabel="y", title="Where the scatter grows, the predicted deviation grows with it"
)
ax.legend(loc="upper left", frameon=False)
plt.show()

# %%
# The share of new targets inside: in the left half, where the noise is small, and in the right half.
fresh = truth + noise * rng.normal(size=(200, 400))
for name, lower, upper in (
    ("deviations", mean - 1.645 * std, mean + 1.645 * std),
    ("interval", low, high),
):
    inside = (lower < fresh) & (fresh < upper)
    print(f"{name:11s} left {inside[:, :200].mean():.0%}, right {inside[:, 200:].mean():.0%}")

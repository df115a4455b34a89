"""
A table with words and gaps
===========================

Prices of flats: the district is a word with 20 values, the area enters smoothly, and one cell in ten is empty. Both
learners have their defaults.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from mercerless import TableRegressor

rng = np.random.default_rng(0)
n = 1600
district = rng.integers(20, size=n)
level = rng.normal(0, 0.4, size=20)
area, age = rng.uniform(25, 160, size=n), rng.uniform(0, 90, size=n)
log_price = 4 + 0.9 * np.log(area) + level[district] + 0.25 * np.cos(age / 14)
price = np.exp(log_price + rng.normal(0, 0.1, size=n))
flats = pd.DataFrame(
    {"district": pd.Categorical([f"district {k}" for k in district]), "area": area, "age": age}
)
flats = flats.mask(rng.uniform(size=flats.shape) < 0.1)
new = slice(800, n)

# %%
# Share of the variance of new prices that is missed, by the number of training rows.
sizes = (50, 100, 200, 400, 800)
models = {
    "gradient boosting": HistGradientBoostingRegressor(
        categorical_features="from_dtype", random_state=0
    ),
    "TableRegressor": TableRegressor(),
}
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name, model in models.items():
    missed = [1 - model.fit(flats[:m], price[:m]).score(flats[new], price[new]) for m in sizes]
    ax.loglog(sizes, missed, "o-", label=name)
ax.set(xlabel="training rows", ylabel="share of the variance missed")
ax.set_xticks(sizes, sizes)
ax.set_yticks((0.1, 0.2, 0.5, 1.0), ("0.1", "0.2", "0.5", "1"))
ax.minorticks_off()
ax.legend()
plt.show()

"""
A table with words and gaps against gradient boosting
=====================================================

Most tables have words, numbers and empty cells. The table learner takes them as they are, with nothing to tune.
"""

# %%
# The table
# ---------
# Prices of flats: a district is a word with 20 values, the area enters smoothly, and one cell in ten is empty.
import numpy as np
import pandas as pd

random = np.random.default_rng(0)
n = 600
district = random.integers(20, size=n)
level = random.normal(0, 0.4, size=20)
area = random.uniform(25, 160, size=n)
floor = random.integers(0, 8, size=n)
age = random.uniform(0, 90, size=n)
log_price = 4 + 0.9 * np.log(area) + level[district] + 0.25 * np.cos(age / 14) + 0.02 * floor
price = np.exp(log_price + random.normal(0, 0.1, size=n))
flats = pd.DataFrame(
    {
        "district": [f"district {k}" for k in district],
        "area": area,
        "floor": floor.astype(float),
        "age": age,
        "heating": random.choice(["gas", "district heating", "oil"], size=n),
    }
)
flats = flats.mask(random.uniform(size=flats.shape) < 0.1)
flats["district"] = flats["district"].astype("category")
flats["heating"] = flats["heating"].astype("category")
print(flats.head())

# %%
# Fit both
# --------
# Boosting has scikit-learn's defaults with early stopping, and knows which columns are words.
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score

from mercerless import TableRegressor

train, test = slice(0, 400), slice(400, n)
boosting = HistGradientBoostingRegressor(
    categorical_features="from_dtype", early_stopping=True, random_state=0
).fit(flats[train], price[train])
table = TableRegressor(random_state=0).fit(flats[train], price[train])
for member in table.members_:
    print(f"{member.weight:.2f}  {member.name}")

# %%
# Predictions, with how far prices scatter
# ----------------------------------------
import matplotlib.pyplot as plt

mean, std = table.predict(flats[test], return_std=True)
predictions = {"gradient boosting": boosting.predict(flats[test]), "table learner": mean}
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
for ax, (name, prediction) in zip(axes, predictions.items()):
    if name == "table learner":
        ax.errorbar(prediction, price[test], xerr=1.645 * std, fmt="none", alpha=0.25)
    ax.scatter(prediction, price[test], s=8, color="#D55E00")
    ax.axline((0, 0), slope=1, color="#7F7F7F", linewidth=1)
    ax.set(xlabel="predicted price", title=f"{name}: R2 {r2_score(price[test], prediction):.3f}")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("price")
plt.show()

"""Small models that decide about a table before its members are learned: outliers, and transforms of the target."""

import numpy as np
from numpy.typing import NDArray

from mercerless.core.folds import some_rows
from mercerless.core.scaling import FeatureScaling, robust_scaling
from mercerless.lab.model import Expansion, Rows, Settings, with_coefficients
from mercerless.lab.selection import LocalLearner


def mean_one(weight: NDArray) -> NDArray:
    """Weights relative to their mean."""
    return weight / weight.mean()


def small_table(
    X: NDArray, Y: NDArray, weight: NDArray, seed: int, most: int = 3000
) -> tuple[NDArray, Rows, FeatureScaling]:
    """The numbers of some rows, these rows scaled, and the scaling."""
    sample = some_rows(len(X), most, seed)
    scaling = robust_scaling(X[sample])
    return sample, Rows(scaling(X[sample]), Y[sample], mean_one(weight[sample])), scaling


def small_model(rows: Rows, seed: int, n_centers: int = 100) -> Expansion:
    """A machine on few centers with shared bandwidths."""
    is_linear = rows.X.shape[1] <= max(50, n_centers)
    settings = Settings(seed=seed, linear=is_linear)
    support = np.random.RandomState(seed).permutation(len(rows))[:n_centers]
    state = LocalLearner("gaussian", settings).learn_shared(rows, support, max_iter=30)
    model = Expansion("gaussian", support, state.log_bandwidths, state.log_ridge)
    return with_coefficients(model, rows, settings)


def small_predictions(rows: Rows, weight: NDArray, fold: NDArray, seed: int) -> NDArray:
    """Predictions of every fold by a small model of the others, which sees these weights."""
    predictions = np.empty_like(rows.Y)
    for k in np.unique(fold):
        is_held = fold == k
        train = np.flatnonzero(~is_held)
        known = Rows(rows.X[train], rows.Y[train], mean_one(weight[train]))
        model = small_model(known, seed)
        predictions[is_held] = model.predict(rows.X[is_held], known.X)
    return predictions

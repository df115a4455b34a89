"""First steps of users: global settings, names of classes, and generators change no model."""

import importlib.util

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_moons

from mercerless import (
    DANKClassifier,
    HyperRegressor,
    KreinRidgeClassifier,
    KreinSVC,
    LABClassifier,
    LABRegressor,
    SimilarityClassifier,
    TableClassifier,
)

X, Y = make_moons(60, noise=0.3, random_state=0)
MODELS = [
    DANKClassifier(random_state=0),
    HyperRegressor(random_state=0),
    KreinRidgeClassifier(random_state=0),
    KreinSVC(),
    LABClassifier(max_iter=5, random_state=0),
    LABRegressor(max_iter=5, random_state=0),
    SimilarityClassifier("rbf", random_state=0),
    TableClassifier(random_state=0),
]


def predictions(model):
    fitted = clone(model).fit(X, Y)
    return fitted.predict_proba(X) if hasattr(fitted, "predict_proba") else fitted.predict(X)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_global_settings_change_nothing(model):
    expected = predictions(model)
    for output in ("pandas", "polars"):
        if importlib.util.find_spec(output) is None:
            continue
        with sklearn.config_context(transform_output=output):
            assert_array_equal(predictions(model), expected)
    with np.errstate(all="raise"):
        assert_array_equal(predictions(model), expected)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_the_global_generator_is_not_used(model):
    if "random_state" not in model.get_params():
        pytest.skip("nothing is drawn")
    np.random.seed(7)  # noqa: NPY002
    before = np.random.get_state()  # noqa: NPY002
    clone(model).set_params(random_state=None).fit(X, Y)
    after = np.random.get_state()  # noqa: NPY002
    assert_array_equal(before[1], after[1])
    assert before[2] == after[2]

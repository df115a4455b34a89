"""Optional packages: one sentence where one is missing; what older scikit-learn lacks has a stand-in."""

import subprocess
import sys

import pytest

from mercerless import KreinRidge


@pytest.mark.parametrize("name", ["rapidfuzz", "rapidfuzz.process"])
def test_a_missing_package_is_one_sentence_that_names_the_extra(monkeypatch, name):
    for loaded in [module for module in sys.modules if module.startswith("rapidfuzz")]:
        monkeypatch.delitem(sys.modules, loaded)  # by another test
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"needs rapidfuzz; .*pip install '\.\[strings\]'\.$"):
        KreinRidge("levenshtein").fit(["ab", "ba", "cc", "cd"], [0.0, 1.0, 2.0, 3.0])


WITHOUT_CALLBACKS = """
import sys
import numpy as np
import mercerless
for name in mercerless.__all__:  # loads scikit-learn, which imports its own callbacks
    getattr(mercerless, name)
for name in [name for name in sys.modules if name.startswith("mercerless")]:
    del sys.modules[name]
sys.modules["sklearn.callback"] = None  # as before scikit-learn 1.9
from sklearn.base import clone
import mercerless
rng = np.random.RandomState(0)
X = rng.randn(40, 3)
y = X[:, 0] + 0.1 * rng.randn(40)
models = [mercerless.KreinRidge(), mercerless.KreinSVR(), mercerless.DANKRegressor(), mercerless.AsymmetricRidge()]
models += [mercerless.LABRegressor(max_iter=3), mercerless.SimilarityRegressor(), mercerless.HyperRidge("gaussian")]
for model in models:
    clone(model).fit(X, y)
assert any(base.__name__ == "NoCallbacks" for base in mercerless.KreinSVC.__mro__)
model = mercerless.KreinSVC().fit(X, y > 0)
print(np.mean(model.predict(X) == (y > 0)))
"""


@pytest.mark.slow
def test_estimators_fit_without_callbacks():
    done = subprocess.run([sys.executable, "-c", WITHOUT_CALLBACKS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.splitlines()[-1]) > 0.8

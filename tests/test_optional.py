"""Optional packages: one sentence where one is missing; what older scikit-learn lacks has a stand-in."""

import subprocess
import sys

import pytest

from mercerless.core.optional import NoCallbacks, import_optional


def test_import_optional_gives_the_module():
    assert (
        import_optional("scipy.linalg", extra="none", what="Nothing") is sys.modules["scipy.linalg"]
    )


@pytest.mark.parametrize("name", ["rapidfuzz", "rapidfuzz.process"])
def test_missing_package_is_one_sentence_that_names_the_extra(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError) as error:
        import_optional(name, extra="strings", what="Comparing strings")
    expected = (
        "Comparing strings needs rapidfuzz; install it with: pip install rapidfuzz, or in "
        "the folder of mercerless with: pip install '.[strings]'."
    )
    assert str(error.value) == expected


def test_a_package_that_fails_on_import_says_so_itself(monkeypatch, tmp_path):
    (tmp_path / "broken_package.py").write_text("raise ImportError('libbroken.so is missing')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="libbroken"):
        import_optional("broken_package", extra="strings", what="Strings")


def test_stand_in_for_callbacks_refuses_them():
    with pytest.raises(NotImplementedError, match=r"Callbacks need scikit-learn 1\.9"):
        NoCallbacks().set_callbacks(print)
    assert NoCallbacks().set_callbacks() is not None


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

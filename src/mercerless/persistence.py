"""Save and load fitted models with skops: loading a file runs no code from it."""

import inspect
import io
import json
import os
import pickle
import platform
import sys
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator

from mercerless.core.files import replacing
from mercerless.core.optional import import_optional
from mercerless.core.validation import warn

__all__ = ["describe", "load", "save"]

#: Types outside this package that fitted models contain and that skops does not trust by default: plain containers
#: whose construction has no side effects (the function of a partial must be trusted itself).
TRUSTED = frozenset(
    {
        "functools.partial",
        "numpy.dtype",
        "scipy.sparse._csr.csr_array",
        "sklearn.compose._column_transformer._RemainderColsList",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.utils.validation.check_array",
    }
)
#: Modules and packages whose classes occur in fitted models.
MODULES = tuple(
    f"mercerless.{name}"
    for name in (
        "asymmetric",
        "comparison.columns",
        "core",
        "dank",
        "hyper",
        "kernels",
        "krein",
        "lab",
        "lowrank",
        "similarity",
        "spectra",
        "table",
    )
)


def save(model: Any, path: str | os.PathLike, dtype: str | None = None) -> None:
    """Write a fitted model; the file is complete or not written at all.

    Parameters
    ----------
    model : object
        An estimator of this package or of scikit-learn, or a dict, list or array of these and of plain values. A
        Python function is saved by name only, so it must be defined in a module that can be imported when the model is
        loaded; a lambda or a function inside a function raises an error.
    path : path-like
        The file, usually named ``*.skops``.
    dtype : {"float32"} or None, default=None
        ``"float32"`` writes the large arrays (of 1000 numbers or more) in single precision, for a file of half the
        size whose predictions differ in the fifth digit; compare some before you use it. The model itself and
        scikit-learn's models inside it are not changed.

    See Also
    --------
    load : Reads the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mercerless import KreinRidge, persistence
    >>> model = KreinRidge().fit([[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 2.0, 3.0, 4.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.skops"
    ...     persistence.save(model, path)
    ...     type(persistence.load(path)).__name__
    'KreinRidge'
    """
    skops = _skops()
    if dtype not in (None, "float32"):
        raise ValueError(f"dtype={dtype!r} is not known; use 'float32' or None.")
    with replacing(path) as partial:
        try:
            nameless = _nameless_functions(model)
            if dtype == "float32" and not nameless:
                model = _in_single_precision(model)
            skops.dump(model, partial)
        except (TypeError, pickle.PicklingError) as error:
            raise ValueError(
                f"This {type(model).__name__} holds something that cannot be saved: {error}."
            ) from None
        if nameless:
            raise ValueError(
                f"This {type(model).__name__} holds the function {nameless[0].__qualname__!r}, "
                "which cannot be found by its name when the model is loaded; define it with def at "
                "the top of a module that can be imported."
            )
        with zipfile.ZipFile(partial, "a") as file:
            file.writestr("about.json", json.dumps(_about(model), indent=1, default=str))


def describe(path: str | os.PathLike) -> dict[str, Any]:
    """Description of the model in a file of `save`, without loading it: no class is imported and no code runs.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    dict
        ``"model"``, the estimator and its parameters; ``"saved"``, the time; ``"versions"`` of Python and the packages;
        and ``"input"``, the expected data: the number of ``"columns"``, their ``"names"`` and ``"kinds"`` and the
        ``"classes"``, each None if there are none. With a precomputed matrix, columns are training items.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mercerless import KreinRidge, persistence
    >>> model = KreinRidge().fit([[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 2.0, 3.0, 4.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.skops"
    ...     persistence.save(model, path)
    ...     persistence.describe(path)["input"]["columns"]
    1
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}; check the path.")
    about = _read_about(path)
    if about is None:
        raise ValueError(
            f"{str(path)!r} does not describe its model: it is damaged, not a model of mercerless, "
            "or was saved by an earlier version; save it again."
        )
    return about


def _about(model: Any) -> dict[str, Any]:
    """The description of the model in a file."""
    estimator = _first_estimator(model)
    names = getattr(estimator, "_column_labels", None)
    if names is None:
        names = getattr(estimator, "feature_names_in_", None)
    classes = getattr(estimator, "classes_", None)
    return {
        "model": " ".join(repr(model if estimator is None else estimator).split())[:2000],
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        "input": {
            "columns": getattr(estimator, "n_features_in_", None),
            "names": None if names is None else [str(name) for name in names],
            "kinds": _kinds(estimator),
            "classes": np.asarray(classes).tolist() if isinstance(classes, np.ndarray) else None,
        },
    }


def _first_estimator(model: Any) -> Any:
    """The model, or the first estimator in a dict or list; None if there is none."""
    if isinstance(model, BaseEstimator):
        return model
    parts: list[Any] = []
    if isinstance(model, dict):
        parts = list(model.values())
    elif isinstance(model, (list, tuple)):
        parts = list(model)
    return next((part for part in parts if isinstance(part, BaseEstimator)), None)


def _kinds(estimator: Any) -> list[str] | None:
    """Kinds of the columns of a table, if the model distinguishes words from numbers."""
    encoding = getattr(estimator, "encoding_", None)
    columns = getattr(encoding, "columns", None)
    if columns is None:
        return None
    is_category = np.zeros(estimator.n_features_in_, dtype=bool)
    is_category[columns.categories] = True
    return ["category" if each else "number" for each in is_category]


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "mercerless": import_module("mercerless").__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
    }


def _read_about(path: Path) -> dict[str, Any] | None:
    """The description of the model in the file; None if there is none that can be read."""
    try:
        with zipfile.ZipFile(path) as file:
            about = json.loads(file.read("about.json"))
        is_complete = {"model", "saved", "versions", "input"} <= set(about)
        return about if is_complete else None
    except Exception:  # a damaged file can fail anywhere in the reader
        return None


def _warn_of_versions(path: Path) -> None:
    """Warn if the model was saved with another version of a package that its predictions may depend on."""
    about = _read_about(path)
    if about is None:
        return
    saved = about["versions"]
    installed = _versions()
    n_parts = {"mercerless": 2, "scikit-learn": 2, "numpy": 1}
    other = [
        f"{name} {saved.get(name)} ({installed[name]} is installed)"
        for name, parts in n_parts.items()
        if str(saved.get(name)).split(".")[:parts] != installed[name].split(".")[:parts]
    ]
    if other:
        warn(
            f"{str(path)!r} was saved with {' and '.join(other)}; compare some predictions with "
            "those of before, or fit and save the model again."
        )


def _in_single_precision(model: Any, min_size: int = 1000) -> Any:
    """A copy whose arrays of at least `min_size` float64 numbers are float32; scikit-learn's objects are shared."""
    shared: list[Any] = []

    class Writer(pickle.Pickler):
        """Writes large arrays in single precision, and a number instead of each object of scikit-learn."""

        def persistent_id(self, obj: Any) -> int | None:
            if isinstance(obj, type) or not type(obj).__module__.startswith("sklearn."):
                return None
            shared.append(obj)
            return len(shared) - 1

        def reducer_override(self, obj: Any) -> Any:
            is_large = type(obj) is np.ndarray and obj.dtype == np.float64 and obj.size >= min_size
            return obj.astype(np.float32).__reduce__() if is_large else NotImplemented

    class Reader(pickle.Unpickler):
        """Puts the objects of scikit-learn back."""

        def persistent_load(self, pid: Any) -> Any:
            return shared[pid]

    content = io.BytesIO()
    Writer(content, protocol=5).dump(model)
    content.seek(0)
    return Reader(content).load()


def _nameless_functions(model: Any) -> list[FunctionType]:
    """The functions anywhere in the model that cannot be found by name: lambdas and local functions."""
    functions: list[FunctionType] = []

    class Finder(pickle.Pickler):
        """Visits every object and writes nothing."""

        def persistent_id(self, obj: Any) -> str | None:
            if not isinstance(obj, FunctionType):
                return None
            if getattr(sys.modules.get(obj.__module__), obj.__name__, None) is not obj:
                functions.append(obj)
            return obj.__name__

    # arrays go to the callback instead of being copied
    Finder(io.BytesIO(), protocol=5, buffer_callback=lambda _: None).dump(model)
    return functions


def load(path: str | os.PathLike, trusted: str | Sequence[str] = ()) -> Any:
    """Read a model written by `save`; a file that contains any unknown type raises an error before it is loaded.

    Parameters
    ----------
    path : path-like
        The file; it need not come from a trusted source.
    trusted : str or sequence of str, default=()
        Your own functions or classes that the model contains, such as ``["mymodule.similarity"]``. Their modules are
        imported; name only those that you trust.

    Returns
    -------
    object
        The model. Warns if it was saved with other versions of mercerless, scikit-learn or NumPy.

    See Also
    --------
    describe : The description of the model in a file, without loading it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mercerless import KreinRidge, persistence
    >>> model = KreinRidge().fit([[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 2.0, 3.0, 4.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.skops"
    ...     persistence.save(model, path)
    ...     again = persistence.load(path)
    >>> bool(again.predict([[1.5]]) == model.predict([[1.5]]))
    True
    """
    skops = _skops()
    path = Path(path)
    trusted = [trusted] if isinstance(trusted, str) else list(trusted)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}; check the path.")
    try:
        types = skops.get_untrusted_types(file=path)
    except Exception:  # a damaged file can fail anywhere in the reader
        raise ValueError(
            f"{str(path)!r} is not a model that mercerless saved, or it is damaged."
        ) from None
    unknown = sorted(name for name in types if name not in trusted and not _is_trusted(name))
    if unknown:
        raise ValueError(
            f"{str(path)!r} asks for {unknown[0]!r}, which no mercerless model needs; nothing of "
            f"it was loaded. If that is a function or class of your own, pass trusted={unknown}."
        )
    _warn_of_versions(path)
    try:
        return skops.load(path, trusted=types)
    except Exception as error:
        raise ValueError(
            f"{str(path)!r} cannot be loaded with the installed versions: {error}"
        ) from None


def _is_trusted(name: str) -> bool:
    """Whether a type may be created: listed above, or a class that this package defines."""
    if name in TRUSTED:
        return True
    module, _, attribute = name.rpartition(".")
    is_ours = any(module == name or module.startswith(name + ".") for name in MODULES)
    if not is_ours:
        return False  # before anything is imported
    try:
        thing = getattr(import_module(module), attribute)
    except (ImportError, AttributeError):
        return False
    return inspect.isclass(thing) and thing.__module__ == module


def check_installed() -> None:
    """Raise before any work if skops is not installed."""
    _skops()


def _skops():
    return import_optional("skops.io", extra="skops", what="Saving models")

"""Save and load fitted models with skops: loading a file runs no code from it."""

import inspect
import io
import os
import pickle
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

from mercerless.core.files import replacing
from mercerless.core.optional import import_optional

__all__ = ["load", "save"]

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


def save(model: Any, path: str | os.PathLike) -> None:
    """Write a fitted model; the file is complete or not written at all.

    Parameters
    ----------
    model : object
        An estimator of this package or of scikit-learn, or a dict, list or array of these and of plain values. A
        Python function is saved by name only, so it must be defined in a module that can be imported when the model is
        loaded; a lambda or a function inside a function raises an error.
    path : path-like
        The file, usually named ``*.skops``.

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
    with replacing(path) as partial:
        try:
            skops.dump(model, partial)
            nameless = _nameless_functions(model)
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
        The model.

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

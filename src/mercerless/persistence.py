"""Fitted models in files, written with skops: loading one runs no code that the file brings along."""

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

#: Types outside this package that fitted models hold and that skops does not trust by itself: plain containers whose
#: construction does nothing else (a partial only holds its function, which must be trusted itself).
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
#: The modules and packages whose classes fitted models are made of.
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
    """Write a fitted model, complete or not at all.

    Parameters
    ----------
    model : object
        An estimator of this package or of scikit-learn, or a dict, list or array of such and of plain values. Of a
        Python function only the name is kept, so it must have one in a module that can be imported where the model is
        loaded; a lambda or a function inside a function is refused.
    path : path-like
        The file, by custom named ``*.skops``.

    See Also
    --------
    load : Reads it again.

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
                "which cannot be found "
                "by its name when the model is loaded; define it with def at the top of a module "
                "that can be imported."
            )


def _nameless_functions(model: Any) -> list[FunctionType]:
    """The functions somewhere inside the model that its file could not name: lambdas and local ones."""
    functions: list[FunctionType] = []

    class Finder(pickle.Pickler):
        """Visits every object and writes nothing."""

        def persistent_id(self, obj: Any) -> str | None:
            if not isinstance(obj, FunctionType):
                return None
            if getattr(sys.modules.get(obj.__module__), obj.__name__, None) is not obj:
                functions.append(obj)
            return obj.__name__

    # arrays are handed over, not copied
    Finder(io.BytesIO(), protocol=5, buffer_callback=lambda _: None).dump(model)
    return functions


def load(path: str | os.PathLike, trusted: str | Sequence[str] = ()) -> Any:
    """Read a model that `save` wrote; a file that asks for anything but known types is refused unopened.

    Parameters
    ----------
    path : path-like
        The file, from whatever source.
    trusted : str or sequence of str, default=()
        Functions or classes of your own that the model holds, such as ``["mymodule.similarity"]``. Their modules are
        imported; name only what you know.

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
        wanted = skops.get_untrusted_types(file=path)
    except Exception:  # a damaged file can fail anywhere in the reader
        raise ValueError(
            f"{str(path)!r} is not a model that mercerless saved, or it is damaged."
        ) from None
    strange = sorted(name for name in wanted if name not in trusted and not _is_trusted(name))
    if strange:
        raise ValueError(
            f"{str(path)!r} asks for {strange[0]!r}, which no mercerless model needs; nothing of "
            "it was loaded. If "
            f"that is a function or class of your own, pass trusted={strange}."
        )
    try:
        return skops.load(path, trusted=wanted)
    except Exception as error:
        raise ValueError(
            f"{str(path)!r} cannot be loaded with the installed versions: {error}"
        ) from None


def _is_trusted(name: str) -> bool:
    """Whether a type may be made: listed above, or a class that this package itself defines."""
    if name in TRUSTED:
        return True
    module, _, attribute = name.rpartition(".")
    if not any(module == own or module.startswith(own + ".") for own in MODULES):
        return False  # before anything is imported
    try:
        thing = getattr(import_module(module), attribute)
    except (ImportError, AttributeError):
        return False
    return inspect.isclass(thing) and thing.__module__ == module


def check_installed() -> None:
    """Raise before any work where skops is missing."""
    _skops()


def _skops():
    return import_optional("skops.io", extra="skops", what="Saving models")

"""Save and load fitted models with skops: loading a file runs no code from it."""

import inspect
import json
import os
import pickle
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercerless.core.files import replacing
from mercerless.core.memory import check_memory
from mercerless.core.optional import import_optional
from mercerless.core.validation import column_labels, warn

__all__ = ["describe", "load", "save"]

#: Types of other packages that fitted models hold: containers that do nothing when they are made.
TRUSTED = frozenset(
    """functools.partial numpy.dtype scipy.sparse._csr.csr_array sklearn.calibration._CalibratedClassifier
    sklearn.calibration._SigmoidCalibration sklearn.compose._column_transformer._RemainderColsList
    sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor
    sklearn.metrics._dist_metrics.EuclideanDistance64 sklearn.model_selection._split.KFold
    sklearn.model_selection._split.StratifiedKFold sklearn.neighbors._kd_tree.KDTree sklearn.tree._tree.Tree
    sklearn.utils.validation.check_array""".split()
)
#: Parts of this package with classes of fitted models.
PARTS = "asymmetric comparison.baselines core dank hyper kernels krein lab lowrank similarity spectra table"
#: Packages that predictions may depend on, and how many parts of their versions.
PACKAGES = {"mercerless": 2, "scikit-learn": 2, "numpy": 1}
#: Attributes that a file must not decide: where to write, and how many processes to start.
_OF_THE_MACHINE = frozenset({"folder", "memory", "n_jobs", "temp_folder"})


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
    skops = check_installed()
    what = f"This {type(model).__name__} holds"
    for thing in filter(inspect.isfunction, _objects_in(model)):
        if getattr(sys.modules.get(thing.__module__), thing.__name__, None) is not thing:
            raise ValueError(
                f"{what} the function {thing.__qualname__!r}, which cannot be found by its name "
                "when the model is loaded; define it with def at the top of a module that can be "
                "imported."
            )
    with replacing(path) as unfinished:
        try:
            skops.dump(model, unfinished)
        except (TypeError, pickle.PicklingError) as error:
            raise ValueError(f"{what} something that cannot be saved: {error}.") from None
        with zipfile.ZipFile(unfinished, "a") as file:
            file.writestr("about.json", json.dumps(_about(model), indent=1, default=str))


def load(path: str | os.PathLike, trusted: str | Sequence[str] = ()) -> Any:
    """Read a model written by `save`; nothing is loaded from a file that holds an unknown type or exceeds the memory.

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
        The model, without folders to write to and with ``n_jobs=None``. Warns if it was saved with other versions of
        mercerless, scikit-learn or NumPy.

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
    skops = check_installed()
    trusted = [trusted] if isinstance(trusted, str) else list(trusted)
    with _reading(path, "is not a model that mercerless saved, or it is damaged") as file:
        n_bytes = sum(member.file_size for member in file.infolist())
        check_memory(2.0 * n_bytes, f"The model in {str(path)!r}", remedy="raise the limit")
        types = skops.get_untrusted_types(file=path)
    unknown = sorted(
        name for name in types if name not in TRUSTED.union(trusted) and not _is_trusted(name)
    )
    if unknown:
        raise ValueError(
            f"{str(path)!r} asks for {unknown[0]!r}, which no mercerless model needs; nothing of "
            f"it was loaded. If that is a function or class of your own, pass trusted={unknown}."
        )
    _warn_of_versions(path)
    with _reading(path, "cannot be loaded with the installed versions"):
        model = skops.load(path, trusted=types)
    for thing in _objects_in(model):
        vars(thing).update(dict.fromkeys(_OF_THE_MACHINE & set(vars(thing))))
    return model


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
        and ``"input"``, the expected data: the number of ``"columns"``, their ``"names"`` and the ``"classes"``, each
        None if there are none. With a precomputed matrix, columns are training items.

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
    problem = "does not describe its model: it is damaged, or not a model of mercerless"
    with _reading(path, problem) as file:
        member = file.getinfo("about.json")
        check_memory(member.file_size, "The description", 10**7, "it is not one of ours")
        about = json.loads(file.read(member))
        return {name: about[name] for name in ("model", "saved", "versions", "input")}


def check_installed() -> Any:
    """The module ``skops.io``; raises before any work if it is not installed."""
    return import_optional("skops.io", extra="skops", what="Saving models")


@contextmanager
def _reading(path: str | os.PathLike, problem: str) -> Iterator[zipfile.ZipFile]:
    """A file of `save`, opened; whatever fails in a damaged one is the same sentence."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}; check the path.")
    try:
        with zipfile.ZipFile(path) as file:
            yield file
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(f"{str(path)!r} {problem} ({error}); save it again.") from None


def _about(model: Any) -> dict[str, Any]:
    """The description of a model, or of the first estimator in it."""
    estimators = (thing for thing in _objects_in(model) if isinstance(thing, BaseEstimator))
    estimator = next(estimators, model)
    classes = getattr(estimator, "classes_", None)
    return {
        "model": " ".join(repr(estimator).split())[:2000],
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {name: version(name) for name in PACKAGES} | {"python": python_version()},
        "input": {
            "columns": getattr(estimator, "n_features_in_", None),
            "names": column_labels(estimator),
            "classes": np.asarray(classes).tolist() if isinstance(classes, np.ndarray) else None,
        },
    }


def _warn_of_versions(path: str | os.PathLike) -> None:
    """Warn if the model was saved with another version of a package that its predictions may depend on."""
    try:
        saved = describe(path)["versions"]
    except ValueError:
        return
    other = [
        f"{name} {saved.get(name)} ({version(name)} is installed)"
        for name, parts in PACKAGES.items()
        if str(saved.get(name)).split(".")[:parts] != version(name).split(".")[:parts]
    ]
    if other:
        warn(
            f"{str(path)!r} was saved with {' and '.join(other)}; compare some predictions with "
            "those of before, or fit and save the model again."
        )


def _objects_in(model: Any) -> Iterator[Any]:
    """Every object anywhere in the model that has attributes, or is a function."""
    seen: dict[int, Any] = {}
    rest = [model]
    while rest:
        thing = rest.pop()
        if id(thing) in seen or inspect.isclass(thing) or inspect.ismodule(thing):
            continue
        seen[id(thing)] = thing
        if isinstance(thing, dict):
            rest += thing.values()
        elif isinstance(thing, (list, tuple, set, frozenset)):
            rest += thing
        elif isinstance(thing, np.ndarray) and thing.dtype == object:
            rest += thing.ravel().tolist()
        elif inspect.isfunction(thing):
            yield thing
        elif isinstance(thing, partial):
            rest += [thing.func, thing.args, thing.keywords]
        elif hasattr(thing, "__dict__"):
            yield thing
            rest += vars(thing).values()


def _is_trusted(name: str) -> bool:
    """Whether a type is a class that this package defines."""
    module, _, attribute = name.rpartition(".")
    if not f"{module}.".startswith(tuple(f"mercerless.{part}." for part in PARTS.split())):
        return False  # before anything is imported
    try:
        thing = getattr(import_module(module), attribute)
    except (ImportError, AttributeError):
        return False
    return inspect.isclass(thing) and thing.__module__ == module

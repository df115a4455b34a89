"""The papers' real data sets: a table of sources, licenses and checksums, and a loader for local files and OpenML."""

import csv
import hashlib
import os
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError

import numpy as np
from sklearn.datasets import fetch_openml, get_data_home, load_wine
from sklearn.utils import Bunch


class DatasetInfo(NamedTuple):
    """What is known about a data set that `load` can find.

    ``sha256`` is the checksum of its .npz file; ``openml_id`` and ``openml_name`` are empty when OpenML does
    not have the set in the same form.
    """

    name: str
    n_samples: str
    n_features: str
    task: str
    source: str
    license: str
    notes: str
    openml_id: str
    openml_name: str
    positive_class: str
    sha256: str


def list_datasets() -> list[DatasetInfo]:
    """The data sets that `load` knows, in alphabetical order."""
    with open(Path(__file__).with_suffix(".csv"), newline="", encoding="utf-8") as table:
        return [DatasetInfo(**row) for row in csv.DictReader(table)]


def load(name: str, *, data_home: str | os.PathLike | None = None, download: bool = True) -> Bunch:
    """Load a real data set of the papers from a local folder, the cache, or OpenML.

    Looked for, in this order: ``<name>.npz`` in the folder that the environment variable ``MERCERLESS_DATA``
    names; ``mercerless/<name>.npz`` in scikit-learn's data folder; OpenML, for the sets that it has in the same
    form. A file of a known set must have the known checksum. Other .npz files in ``MERCERLESS_DATA`` can be
    loaded by their names too.

    Parameters
    ----------
    name : str
        A name of `list_datasets`, or of a file in ``MERCERLESS_DATA``.
    data_home : path-like or None, default=None
        The cache; None means `sklearn.datasets.get_data_home`.
    download : bool, default=True
        Whether OpenML may be asked.

    Returns
    -------
    dataset : Bunch
        ``data`` (features), ``K`` (similarities) or ``D`` (distances); ``target``; where the set comes split,
        also ``data_test``, ``K_test`` or ``D_test`` (rows against the training items) and ``target_test``;
        further arrays under their names in the file; ``DESCR`` with source, license and notes.
    """
    known = {info.name: info for info in list_datasets()}
    info = known.get(name)
    looked = []
    for place, folder in _folders(data_home):
        if folder is None:
            looked.append(f"{place} (not set)")
            continue
        path = folder / f"{name}.npz"
        if path.is_file():
            return _read(path, info)
        looked.append(str(path))
    if info is None:
        close = get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "list_datasets() lists them."
        raise ValueError(f"There is no data set {name!r}; {hint}")
    if name == "wine":  # the very set that scikit-learn brings along
        wine = load_wine()
        return Bunch(data=wine.data, target=wine.target, DESCR=_describe(info))
    if info.openml_id and download:
        try:
            fetched = fetch_openml(
                data_id=int(info.openml_id), as_frame=False, data_home=data_home, parser="liac-arff"
            )
        except (URLError, OSError) as error:
            looked.append(f"OpenML set {info.openml_id} ({error})")
        else:
            return _convert_openml(fetched, info)
    elif info.openml_id:
        looked.append(f"OpenML set {info.openml_id} (download=False)")
    raise FileNotFoundError(
        f"The data set {name!r} was not found; looked at: {'; '.join(looked)}. Set MERCERLESS_DATA "
        "to a folder "
        f"that has {name}.npz (from: {info.source})."
    )


def _folders(data_home: str | os.PathLike | None) -> list[tuple[str, Path | None]]:
    """Where files are looked for, in this order, and what the places are called."""
    local = os.environ.get("MERCERLESS_DATA")
    return [
        ("$MERCERLESS_DATA", Path(local) if local else None),
        ("the cache", Path(get_data_home(data_home)) / "mercerless"),
    ]


def _describe(info: DatasetInfo) -> str:
    """What is known about a set, one line each."""
    return "\n".join(
        f"{field.capitalize()}: {getattr(info, field)}"
        for field in ("name", "task", "source", "license", "notes")
        if getattr(info, field)
    )


def _read(path: Path, info: DatasetInfo | None) -> Bunch:
    """Read an .npz file, after its checksum when the set is a known one."""
    if info is not None:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != info.sha256:
            raise ValueError(
                f"{str(path)!r} is not the data set {info.name!r} of this version: its sha256 is "
                f"{digest[:12]}..., "
                f"not {info.sha256[:12]}...; replace or rename the file."
            )
    renamed = {
        "X": "data",
        "y": "target",
        "X_test": "data_test",
        "y_test": "target_test",
        "y_val": "target_val",
    }
    with np.load(path, allow_pickle=False) as archive:
        arrays = {renamed.get(key, key): archive[key] for key in archive.files}
    description = (
        f"Name: {path.stem}\nSource: {path.name}, a local file" if info is None else _describe(info)
    )
    return Bunch(**arrays, DESCR=description)


def _convert_openml(fetched: Bunch, info: DatasetInfo) -> Bunch:
    """Bring a set of OpenML into the form of the local file; refuse it when it is another set."""
    name = fetched.details["name"]
    if name.lower() != info.openml_name.lower():
        raise ValueError(
            f"OpenML set {info.openml_id} is {name!r}, not {info.openml_name!r} as expected for "
            f"{info.name!r}."
        )
    complete = ~np.isnan(fetched.data.astype(float)).any(axis=1)
    X = fetched.data[complete].astype(float)
    labels = fetched.target[complete]
    if info.positive_class:
        y = np.where(labels.astype(str) == info.positive_class, 1, -1)
    else:
        y = labels.astype(float if info.task == "regression" else int)
    n_train, *rest = (int(size) for size in info.n_samples.split("+"))
    if X.shape != (n_train + sum(rest), int(info.n_features)) or (
        info.positive_class and abs(y.sum()) == len(y)
    ):
        raise ValueError(
            f"OpenML set {info.openml_id} has shape {X.shape} or labels that {info.name!r} does "
            "not have; it was "
            "changed there."
        )
    split = Bunch(data_test=X[n_train:], target_test=y[n_train:]) if rest else Bunch()
    return Bunch(data=X[:n_train], target=y[:n_train], **split, DESCR=_describe(info))

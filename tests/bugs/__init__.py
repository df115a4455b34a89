"""Planted bugs, a module for each part of the library; `tests/mutations.py` plants them one at a time."""

from importlib import import_module
from pathlib import Path
from typing import NamedTuple


class Bug(NamedTuple):
    """A planted bug: what it is called, what it replaces by what, and the tests (pytest arguments) that must fail."""

    name: str
    old: str
    new: str
    tests: str


def all_bugs() -> list[Bug]:
    """The bugs of all modules of this folder; names must be unique."""
    modules = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
    bugs = [bug for name in modules for bug in import_module(f"bugs.{name}").BUGS]
    names = [bug.name for bug in bugs]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"These planted bugs share a name: {', '.join(repeated)}.")
    return bugs

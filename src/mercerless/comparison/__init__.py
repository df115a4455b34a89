"""Compare learners on one data set: read, race, judge, show."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what editors and type checkers see
    from mercerless.comparison.read.reading import read_problem
    from mercerless.comparison.result import Comparison, compare

__all__ = ["Comparison", "compare", "read_problem"]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: wrong options raise before that."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mercerless.core.optional import import_optional

    import_optional("pandas", extra="table", what="Comparing learners")
    module = "read.reading" if name == "read_problem" else "result"
    return getattr(import_module(f"{__name__}.{module}"), name)

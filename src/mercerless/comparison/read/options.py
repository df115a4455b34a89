"""What a user says about a file; a saved model keeps it, so that new items are read alike."""

from dataclasses import asdict, dataclass
from typing import Any

from mercerless.comparison.read.files import FORMATS

MATRICES = ("similarity", "distance", "dissimilarity")
KINDS = (*MATRICES, "table", "strings", "series", "hits")
TASKS = ("classification", "regression")


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file; every field has an option of the same name on the command line."""

    format: str | None = None
    kind: str | None = None
    labels: str | None = None
    task: str | None = None
    groups: str | None = None
    similarity: str | None = None
    array: str | None = None
    sheet: str | None = None
    sep: str | None = None
    decimal: str | None = None
    header: str | None = None
    index: str | None = None
    missing: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        choices = {
            "format": FORMATS,
            "kind": KINDS,
            "task": TASKS,
            "decimal": (".", ","),
            "header": ("yes", "no"),
        }
        for name, allowed in choices.items():
            value = getattr(self, name)
            if value is not None and value not in allowed:
                listed = ", ".join(map(repr, allowed))
                raise ValueError(f"{name}={value!r} is not known; use one of {listed}.")

    def as_dict(self) -> dict[str, Any]:
        """The options as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "ReadOptions":
        """The options of `as_dict`, also after a round trip through JSON."""
        lists = {name: tuple(values.get(name, ())) for name in ("missing", "drop")}
        return cls(**{**values, **lists})

"""The report: one page of HTML without anything from the network."""

from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from mercerless.comparison.page.charts import number
from mercerless.comparison.page.sections import sections_of
from mercerless.core.optional import import_optional

if TYPE_CHECKING:
    from mercerless.comparison.result import Comparison


@cache
def template() -> Any:
    """The template, compiled once."""
    jinja2 = import_optional("jinja2", extra="cli", what="Writing a report")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = number
    return environment.from_string(files(__package__).joinpath("page.html").read_text("utf-8"))


def render(comparison: "Comparison", rows: bool = True) -> str:
    """The page of a comparison; without `rows` it shows no single item."""
    return template().render(
        comparison=comparison,
        problem=comparison.problem,
        race=comparison.race,
        verdict=comparison.verdict,
        shown=sections_of(comparison, rows),
        version=version,
        rows=rows,
    )

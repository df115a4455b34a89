"""Show a file of `benchmarks/results` as a table, with the commits that it was measured with.

```{results} krein_table1
```
"""

import csv
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "results"


def table_of(header, rows):
    """A table of plain cells."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in header), cols=len(header))
    group += nodes.thead("", row_of(header))
    group += nodes.tbody("", *(row_of(row) for row in rows))
    return nodes.table("", group)


def row_of(cells):
    return nodes.row("", *(nodes.entry("", nodes.paragraph(text=cell)) for cell in cells))


class Results(SphinxDirective):
    """The directive: its argument is the name of the file."""

    required_arguments = 1

    def run(self):
        path = FOLDER / f"{self.arguments[0]}.csv"
        self.env.note_dependency(str(path))
        if not path.exists():
            return [nodes.paragraph(text="(Not measured with the present code yet.)")]
        with open(path, newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        commits = sorted({row[-1] for row in rows})
        source = (
            f"{path.parent.parent.name}/{path.parent.name}/{path.name}, commit {', '.join(commits)}"
        )
        note = nodes.paragraph("", "", nodes.emphasis(text=source), classes=["source"])
        return [table_of(header[:-1], [row[:-1] for row in rows]), note]


def setup(app):
    app.add_directive("results", Results)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

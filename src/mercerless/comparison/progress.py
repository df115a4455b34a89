"""A progress bar on a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mercerless.comparison.options import ProgressReporter, silent


@contextmanager
def progress_bar() -> Iterator[ProgressReporter]:
    """Yield what a comparison calls to report progress: a bar on a terminal, silence elsewhere."""
    is_shown = sys.stderr.isatty()
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar
    except ImportError:
        is_shown = False
    if not is_shown:
        yield silent
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(text: str, done: int, total: int) -> None:
            bar.update(task, description=text, completed=done, total=max(1, total))

        yield show

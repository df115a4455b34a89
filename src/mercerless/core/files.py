"""Write files completely or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """Give a file to write beside `path`; it replaces `path` at the end, or is deleted if something failed."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield partial
        os.replace(partial, path)
    except OSError as error:
        raise OSError(
            f"Cannot write {str(path)!r}: {error.strerror or error}; give another place."
        ) from None
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write a text file, complete or not at all."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")

"""Files are written complete or not at all."""

import os

import pytest

from mercerless.core.files import replacing, write_text


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_takes_its_place_only_when_it_is_complete(tmp_path):
    path = tmp_path / "report.html"
    write_text(path, "old ä²")
    assert path.read_bytes() == "old ä²".encode()
    with replacing(str(path)) as partial:
        partial.write_text("new")
        assert path.read_text(encoding="utf-8") == "old ä²"
        assert partial.parent == path.parent  # on the same file system
        assert len(names(tmp_path)) == 2
    assert path.read_text() == "new"
    assert names(tmp_path) == ["report.html"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_nothing_is_left_when_something_fails(tmp_path, error):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(type(error)), replacing(path) as partial:
        partial.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert names(tmp_path) == ["report.html"]


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    with pytest.raises(OSError, match=r"Cannot write '.*report.html': .*; give another place"):
        write_text(tmp_path / "nowhere" / "report.html", "text")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="Cannot write"):
        write_text(tmp_path / "folder", "text")
    assert names(tmp_path) == ["folder"]


def test_two_processes_write_beside_each_other(tmp_path):
    with replacing(tmp_path / "a") as partial:
        assert str(os.getpid()) in partial.name
        partial.write_text("a")

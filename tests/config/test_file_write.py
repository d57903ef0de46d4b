"""Files are written whole, to regular files only, or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ultracluster.config import file_write
from ultracluster.config.file_write import write


def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / "a", "one\r\n")
    finally:
        os.umask(before)
    assert (tmp_path / "a").read_bytes() == b"one\r\n"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_an_existing_file_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    file.chmod(0o604)
    write(file, b"new")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o604)


def test_a_new_file_replaces_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(FileExistsError):
        write(tmp_path / "a", "new", new=True)
    (tmp_path / "b").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        write(tmp_path / "b", "new", new=True)
    assert (tmp_path / "a").read_text() == "old" and not (tmp_path / "nowhere").exists()


def test_a_file_that_appears_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish = file_write._publish

    def late(temporary: Path, file: Path) -> None:
        file.write_text("theirs")
        publish(temporary, file)

    monkeypatch.setattr(file_write, "_publish", late)
    with pytest.raises(FileExistsError):
        write(tmp_path / "a", "ours", new=True)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a", "theirs")]


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "read-only"])
def test_only_regular_files_that_may_be_written(tmp_path: Path, kind: str) -> None:
    file, other = tmp_path / "a", tmp_path / "other"
    other.write_text("other")
    if kind == "link":
        file.symlink_to(other)
    elif kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.write_text("old")
        file.chmod(0o444)
    with pytest.raises(OSError, match="it is"):
        write(file, "new")
    assert other.read_text() == "other" and len(list(tmp_path.iterdir())) == 2


def test_a_planted_temporary_file_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    folder = tmp_path / "environments"
    folder.mkdir()
    (folder / ".a.part").symlink_to(victim)
    write(folder / "a", "new")
    assert victim.read_text() == "mine" and (folder / "a").read_text() == "new"


def test_nothing_is_left_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "a", "new")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a", "old")]

"""What an archive may write, and where."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from ultracluster.project.archives import extract


def packed(*members: tuple[str, bytes, str]) -> tarfile.TarFile:
    """An archive of names, kinds, and contents or targets of links."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, kind, text in members:
            member = tarfile.TarInfo(name)
            member.type = kind
            member.mode = 0o4700
            if kind == tarfile.REGTYPE:
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
            else:
                member.linkname = text
                archive.addfile(member)
    raw.seek(0)
    return tarfile.open(fileobj=raw)


def test_files_folders_and_links_are_written(tmp_path: Path) -> None:
    archive = packed(
        ("empty", tarfile.DIRTYPE, ""),
        ("steps/run.sh", tarfile.REGTYPE, "true"),
        ("steps/latest", tarfile.SYMTYPE, "../steps/run.sh"),
    )
    extract(archive, tmp_path)

    assert (tmp_path / "empty").is_dir()
    assert (tmp_path / "steps/latest").readlink() == Path("../steps/run.sh")
    assert (tmp_path / "steps/latest").read_text() == "true"
    assert (tmp_path / "steps/run.sh").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    "members",
    [
        [("../beside", tarfile.REGTYPE, "x")],
        [("/tmp/ultracluster-test-absolute", tarfile.REGTYPE, "x")],  # noqa: S108 # never written
        [("link", tarfile.SYMTYPE, "..")],
        [("link", tarfile.SYMTYPE, "/etc")],
        [
            ("a/link", tarfile.SYMTYPE, "../b"),
            ("b", tarfile.SYMTYPE, ".."),
            ("a/link/x", tarfile.REGTYPE, "x"),
        ],
        [("hard", tarfile.LNKTYPE, "/etc/passwd")],
        [("pipe", tarfile.FIFOTYPE, "")],
        [("device", tarfile.CHRTYPE, "")],
    ],
)
def test_nothing_is_written_outside_and_nothing_but_files(
    members: list[tuple[str, bytes, str]], tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(ValueError, match=r"leads out of the archive|is no file"):
        extract(packed(*members), folder)

    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert not [path for path in folder.rglob("*") if path.is_file()]

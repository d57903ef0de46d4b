"""Write the files that a command was asked for, or refuse with exit code 2 and write nothing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from ultracluster.cli.report import refuse
from ultracluster.cli.terminal import remark
from ultracluster.config.file_write import replace, write


def write_new(
    file: Path, text: str, *, force: bool = False, exists: str = "pass --force to replace it"
) -> None:
    """Write a file, with its folders; without `force` never over another file.

    Args:
        exists: what to do where the file exists.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write(file, text, new=not force)
    except FileExistsError:
        refuse(f"{file} exists: {exists}")
    except OSError as error:
        refuse(f"{file} cannot be written: {error.strerror}")


def write_folder(folder: Path, files: Mapping[str, str]) -> None:
    """Write files of a folder, over those of the same names: all of them, or none where they do not fit."""
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix=".unfinished-") as staging:
            for name, text in files.items():
                staged = Path(staging) / name
                staged.parent.mkdir(parents=True, exist_ok=True)
                write(staged, text)
            for name in files:
                place = folder / name
                place.parent.mkdir(parents=True, exist_ok=True)
                replace(place, Path(staging) / name)
    except OSError as error:
        for one in new:
            with suppress(OSError):
                one.rmdir()
        refuse(f"{error.filename or folder} cannot be written: {error.strerror}")


def check_html(file: Path) -> None:
    """Refuse a name that browsers do not open as a page."""
    if file.suffix.lower() not in (".html", ".htm"):
        refuse(f"--html {file}: write a file that ends in .html")


def write_html(file: Path, page: str) -> None:
    """Replace a page, and report it on standard error."""
    try:
        write(file, page)
    except OSError as error:
        refuse(f"--html {file}: it cannot be written: {error.strerror}")
    remark(f"written to {file}: open it in a browser")

"""Writes the page of a command, whole or not at all."""

from __future__ import annotations

from pathlib import Path

from ultracluster.cli.report import refuse
from ultracluster.cli.terminal import remark


def check_html(file: Path) -> None:
    """Refuse a name that no browser takes for a page."""
    if file.suffix.lower() not in (".html", ".htm"):
        refuse(f"--html {file}: write a file that ends in .html")


def write_html(file: Path, page: str) -> None:
    """Replace the file, and say so on standard error; exit code 2 where it cannot be written."""
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_text(page, encoding="utf-8")
        part.replace(file)
    except OSError as error:
        refuse(f"--html {file}: it cannot be written: {error.strerror}")
    finally:
        part.unlink(missing_ok=True)
    remark(f"written to {file}: open it in a browser")

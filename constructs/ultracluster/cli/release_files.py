"""What the commands on lock files share: which file is meant, and how downloads are shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import DownloadColumn, TransferSpeedColumn

from ultracluster.cli.environments import complete_environment
from ultracluster.cli.progress import bars
from ultracluster.cli.report import refuse
from ultracluster.software import UnknownReleaseError, release_file

if TYPE_CHECKING:
    from rich.progress import Progress

CacheOption = Annotated[
    Path | None,
    typer.Option(
        "--cache", help="Folder for downloads; ~/.cache/ultracluster by default.", show_default=False
    ),
]
ForOption = Annotated[
    Path | None,
    typer.Option(
        "--for",
        help="An environment: its file, or its name in environments/.",
        show_default=False,
        autocompletion=complete_environment,
    ),
]


def lock_file(release: str) -> Path:
    """The lock file of a release, by its name or its path; otherwise one line, and exit code 2."""
    if release.endswith(".lock") or "/" in release:
        return Path(release)
    try:
        return release_file(release)
    except UnknownReleaseError as error:
        refuse(str(error.args[0]))


def download_bars() -> Progress:
    """A bar for each download."""
    return bars(DownloadColumn(), TransferSpeedColumn())

"""`ultracluster software lock`: fill a lock file, or write the lock of an environment."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.cli.environments import ProfileOption, environment_path, load_environment
from ultracluster.cli.release_files import CacheOption, ForOption, download_bars
from ultracluster.cli.report import refuse
from ultracluster.cli.terminal import remark
from ultracluster.config.file_text import text_of
from ultracluster.software import InvalidLockError, UnknownReleaseError
from ultracluster.supply.artifacts import default_cache
from ultracluster.supply.locking import Options
from ultracluster.supply.release_lock import lock_release

if TYPE_CHECKING:
    from collections.abc import Callable

    from ultracluster.supply.locking import Locked


def lock(
    file: Annotated[
        Path | None, typer.Argument(help="The lock file to fill, in place.", show_default=False)
    ] = None,
    environment: ForOption = None,
    component: Annotated[
        list[str] | None, typer.Option("--component", help="Only this component of FILE; repeat for more.")
    ] = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="Ask the sources about what is recorded, too. FILE keeps what it has."),
    ] = False,
    cache: CacheOption = None,
    profile: ProfileOption = None,
) -> None:
    """Download each open file, check its signature, and write size and SHA-256 into the lock file.

    With --for it writes environments/<name>.lock instead: what the environment's nodes could need beyond
    their image and the release leaves open, and the images that they boot, where credentials are there.

    Exit code 1 if a file or an image could not be locked, its source has another one than is recorded, or
    nothing could be asked at all; what could be is written. 2 if the environment or the lock file cannot be
    used.
    """
    if component and file is None:
        refuse("--component goes with a lock file; --for takes what the environment's nodes could need")
    if file is not None and environment is None:
        results = _shown(file, cache, again, lambda options: lock_release(file, options, component or []))
    elif environment is not None and file is None:
        from ultracluster.cli.boot_image_account import asked_account  # 0.3 s: the SDK
        from ultracluster.supply.environment_lock import lock_environment  # 0.1 s: the SDK

        path = environment_path(environment)
        config = load_environment(path)
        account = asked_account(config, profile)
        results = _shown(
            path.with_suffix(".lock"),
            cache,
            again,
            lambda options: lock_environment(config, path, options, account=account),
        )
    else:
        refuse("name either a lock file, or an environment with --for")
    told = [result for result in results if result.state != "unchanged"]
    for result in told:
        typer.echo(f"{result.state:9}  {result.component}: {_about(result)}", err=True)
    if not told:
        remark("no file and no key is open: nothing to record")
    states = {result.state for result in results}
    if states & {"failed", "changed"}:
        raise typer.Exit(1)
    if states == {"skipped"}:
        typer.echo("nothing could be asked, and nothing was locked", err=True)
        raise typer.Exit(1)


def _shown(
    file: Path, cache: Path | None, again: bool, run: Callable[[Options], list[Locked]]
) -> list[Locked]:
    """Run it, and print what it changed in the file."""
    before = _text(file)
    try:
        with download_bars() as bar:
            results = run(
                Options(
                    cache or default_cache(),
                    again,
                    starting=lambda name: bar.console.print(f"{name} ...", highlight=False, style="dim"),
                )
            )
    except (InvalidLockError, UnknownReleaseError) as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{file}: cannot be written ({error.strerror or error})")
    difference = unified_diff(
        before.splitlines(), _text(file).splitlines(), f"{file} (before)", str(file), n=1, lineterm=""
    )
    for line in difference:
        typer.echo(line)
    return results


def _text(file: Path) -> str:
    try:
        return text_of(file)
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        refuse(f"{file}: {getattr(error, 'strerror', None) or error}")


def _about(result: Locked) -> str:
    # a message of a failure names the file itself
    return result.message if result.state == "failed" else f"{result.name}  {result.message}".rstrip()

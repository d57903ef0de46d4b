"""`ultracluster software mirror`: the files and packages of a release in S3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.cli.environments import environment_path, load_environment
from ultracluster.cli.release_files import CacheOption, ForOption, download_bars, lock_file
from ultracluster.cli.report import refuse
from ultracluster.config.base import s3_place
from ultracluster.software import InvalidLockError, environment_lock, read_lock
from ultracluster.software.first_boot import asked_components
from ultracluster.supply.artifacts import default_cache
from ultracluster.supply.environment_lock import places
from ultracluster.supply.mirror import Selection, mirror_release
from ultracluster.supply.mirror_bucket import MirrorError, s3_client
from ultracluster.supply.package_set import MissingExtraError, systems

if TYPE_CHECKING:
    from rich.progress import Progress

    from ultracluster.software import EnvironmentLock, Release


def mirror(
    bucket: Annotated[
        str, typer.Option("--bucket", help="S3 bucket, which exists; --for has its environment's.")
    ] = "",
    release: Annotated[
        str, typer.Option("--release", help="A release or the path of a lock file.", show_default=False)
    ] = "",
    environment: ForOption = None,
    prefix: Annotated[str, typer.Option("--prefix", help="Key prefix in the bucket.")] = "",
    kms_key: Annotated[
        str | None,
        typer.Option("--kms-key", help="KMS key (ARN) to encrypt with; the bucket's default otherwise."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=32, help="Downloads at a time.")] = 4,
    packages: Annotated[
        bool,
        typer.Option(
            "--packages/--no-packages", help="Packages of apt and dnf repositories, with what they need."
        ),
    ] = True,
    system: Annotated[
        list[str] | None,
        typer.Option("--os", help="What is for this operating system only (ubuntu22.04); repeat for more."),
    ] = None,
    arch: Annotated[
        list[str] | None,
        typer.Option("--arch", help="What is for this processor only (x86_64, aarch64); repeat for more."),
    ] = None,
    component: Annotated[
        list[str] | None,
        typer.Option("--component", help="Also this optional component (nixl); repeat for more."),
    ] = None,
    renew_packages: Annotated[
        bool, typer.Option("--renew-packages", help="Choose packages again, though the lock file has some.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be uploaded.")] = False,
    profile: Annotated[str | None, typer.Option("--profile", help="AWS profile.")] = None,
    region: Annotated[str | None, typer.Option("--region", help="AWS Region of the bucket.")] = None,
    cache: CacheOption = None,
) -> None:
    """Copy the files and packages of a release to S3, verified; run it again to resume after an interruption.

    With --for: the release of an environment, completed by its lock, for the systems and processors of its
    nodes, to its mirror. The packages that were chosen are recorded in the lock file of the release, by
    which nodes verify them: deploy after it.
    Exit code 1 if something is missing: the mirror then has no lock file and counts as not made.
    """
    if bool(release) == (environment is not None):
        refuse("Pass either --release or --for ENVIRONMENT.")
    wish = _wish(environment) if environment else _Wish(lock_file(release), bucket, prefix)
    file, bucket, prefix = wish.file, bucket or wish.bucket, prefix or wish.prefix
    if not bucket:
        refuse("Pass --bucket: the environment has no software.mirror")
    known = _systems(file)
    optional = _optional(file)
    for value in component or ():
        if value not in optional:
            refuse(f"--component {value}: optional in this release are {', '.join(optional) or 'none'}")
    for option, values, valid in (("--os", system, 0), ("--arch", arch, 1)):
        names = sorted({pair[valid] for pair in known})
        for value in values or ():
            if packages and value not in names:
                refuse(f"{option} {value}: the release has packages for {', '.join(names) or 'none'}")
    try:
        s3 = s3_client(profile, region or wish.region)
        with download_bars() as bar:
            done = mirror_release(
                file,
                bucket=bucket,
                prefix=prefix,
                cache=cache or default_cache(),
                s3=s3,
                kms_key=kms_key,
                jobs=jobs,
                dry_run=dry_run,
                progress=_Bars(bar),
                selection=Selection(
                    packages=packages,
                    only=lambda its_os, its_arch: (
                        (not system or its_os in system)
                        and (not arch or its_arch in arch)
                        and (not wish.places or (its_os, its_arch) in wish.places)
                    ),
                    optional={*(component or ()), *wish.asked},
                    renew=renew_packages,
                ),
                lock=wish.lock,
            )
    except (InvalidLockError, MissingExtraError) as error:
        refuse(str(error))
    except MirrorError as error:
        for reason in error.reasons:
            typer.echo(f"missing  {reason}", err=True)
        typer.echo("The mirror is not complete: fix this and run the command again.", err=True)
        raise typer.Exit(1) from None
    for key in done.uploaded:
        typer.echo(f"{'would upload' if dry_run else 'uploaded'}  s3://{bucket}/{key}")
    for line in done.left_out:
        typer.echo(f"not mirrored  {line}", err=True)
    for name, count in done.package_sets.items():
        typer.echo(f"packages  {name}: {count}{'' if dry_run else f', recorded in {file}'}")
    where = "/".join(part for part in (bucket, prefix.strip("/")) if part)
    typer.echo(
        f"{len(done.uploaded)} {'to upload' if dry_run else 'uploaded'}, {len(done.present)} there already"
    )
    typer.echo(f'software:\n  release: "{file.stem}"\n  mirror: s3://{where}')


class _Bars:
    """One line of the progress bar for each file."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar

    def start(self, name: str, size: int | None) -> Callable[[int], None]:
        task = self.bar.add_task(name, total=size)
        return lambda count: self.bar.advance(task, count)


@dataclass(frozen=True, slots=True)
class _Wish:
    """What an environment says of its mirror."""

    file: Path
    """Lock file of the release."""
    bucket: str = ""
    prefix: str = ""
    region: str | None = None
    places: frozenset[tuple[str, str]] = frozenset()
    """Operating systems and processors; all where it is empty."""
    lock: EnvironmentLock | None = None
    asked: frozenset[str] = frozenset()
    """Optional components that its nodes install."""


def _wish(environment: Path) -> _Wish:
    path = environment_path(environment)
    config = load_environment(path)
    file = lock_file(config.software.release)
    bucket, prefix = s3_place(config.software.mirror or "")
    try:
        release, lock = read_lock(file), environment_lock(path)
    except InvalidLockError as error:
        refuse(str(error))
    pairs, asked = frozenset(places(config, release)), asked_components(config) & release.components.keys()
    return _Wish(file, bucket, prefix, config.region, pairs, lock, asked)


def _optional(file: Path) -> list[str]:
    return [name for name, part in _release(file).components.items() if part.need == "optional"]


def _systems(file: Path) -> list[tuple[str, str]]:
    return systems(_release(file))


def _release(file: Path) -> Release:
    try:
        return read_lock(file)
    except InvalidLockError as error:
        refuse(str(error))

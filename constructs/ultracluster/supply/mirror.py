"""Copying a release's files to S3, where nodes without a route to the internet find them.

    s3://<bucket>/<prefix>/<release>/<first 16 digits of the digest>/<name>
    s3://<bucket>/<prefix>/<release>/<release>.lock        written last

Packages of repositories lie there in the same way, with all that they need; `package_set` says how they are
chosen and verified, and the lock file records them. Nothing is uploaded that is not what the lock file or a
signed index says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from boto3.exceptions import Boto3Error  # pyright: ignore[reportMissingTypeStubs]
from botocore.exceptions import BotoCoreError, ClientError  # pyright: ignore[reportMissingTypeStubs]

from ultracluster.software import Artifact, EnvironmentLock, Release, completed, read_lock
from ultracluster.supply.artifacts import fetch, has_source
from ultracluster.supply.downloads import DownloadError
from ultracluster.supply.integrity import IntegrityError, NoGpgError, measure
from ultracluster.supply.mirror_bucket import Bucket, MirrorError, words
from ultracluster.supply.package_closure import ClosureError
from ultracluster.supply.package_set import (
    MirroredPackages,
    known_archives,
    left_out,
    recorded,
    resolve,
    systems,
    unlocked,
)
from ultracluster.supply.release_lock import record_package_sets


class Progress(Protocol):
    """Where progress is shown; `rich.progress.Progress` fits after a little wrapping."""

    def start(self, name: str, size: int | None) -> Callable[[int], None]:
        """Begin one file; the result is called with the bytes of each step."""
        ...


@dataclass(slots=True)
class Mirrored:
    """What a run did, by object key below the bucket."""

    uploaded: list[str] = field(default_factory=list[str])
    present: list[str] = field(default_factory=list[str])
    left_out: list[str] = field(default_factory=list[str])
    """Files without an address, packages that come from elsewhere, and what was not asked for."""
    lock: str = ""
    package_sets: dict[str, int] = field(default_factory=dict[str, int])
    """How many packages there are for each `<os>-<arch>`."""

    def in_order(self) -> Mirrored:
        """The same with its keys sorted."""
        return replace(self, uploaded=sorted(self.uploaded), present=sorted(self.present))


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The part of a release that is mirrored."""

    packages: bool = True
    """Packages of repositories, too."""
    only: Callable[[str, str], bool] = lambda system, arch: True
    """Operating systems and processors whose files and packages are mirrored; all of them by default."""
    optional: Collection[str] = ()
    """Optional components that are mirrored, too."""
    renew: bool = False
    """Choose packages again, although the lock file records some."""

    def of(self, release: Release) -> Release:
        """The release with these components, and their files for these systems."""
        components = {
            name: part.model_copy(update={"artifacts": tuple(
                artifact for artifact in part.artifacts
                if any(
                    self.only(system, arch)
                    for system in artifact.os or release.systems for arch in artifact.arch
                )
            )})
            for name, part in release.components.items()
            if part.need != "optional" or name in self.optional
        }  # fmt: skip
        return release.model_copy(update={"components": components})

    def optional_left_out(self, release: Release) -> list[str]:
        """A line for each optional component of `release` that is not mirrored."""
        return [
            f"{name}: it is optional, `--component {name}` asks for it"
            for name, part in release.components.items()
            if part.need == "optional" and name not in self.optional
        ]


@dataclass(frozen=True, slots=True)
class _Item:
    component: str
    artifact: Artifact
    key: str


EVERYTHING = Selection()
"""All but optional components."""


def mirror_release(
    file: Path,
    *,
    bucket: str,
    prefix: str = "",
    cache: Path,
    s3: Any,
    kms_key: str | None = None,
    jobs: int = 4,
    dry_run: bool = False,
    progress: Progress | None = None,
    selection: Selection = EVERYTHING,
    lock: EnvironmentLock | None = None,
    archives: dict[str, Any] | None = None,
) -> Mirrored:
    """Bring every file and package of the lock file `file` to `s3://bucket/prefix`.

    Run again after any interruption: complete objects stay, partial downloads go on where they stopped. The
    packages that were chosen are recorded in the lock file, in place, and stay the same from then on.

    Args:
        cache: folder that keeps downloads between runs.
        s3: a boto3 S3 client.
        kms_key: encrypt with this KMS key instead of the bucket's default.
        jobs: downloads at a time.
        dry_run: only say what would be uploaded; indexes of repositories are read nevertheless.
        selection: what is brought; all but optional components by default.
        lock: the lock of the environment that the mirror is for, which completes the release.
        archives: the distributions' own archives; those of this package by default.

    Raises:
        InvalidLockError: `file` is no lock file.
        MissingExtraError: packages have to be chosen, and `ultracluster[mirror]` is not installed.
        MirrorError: something is missing; the lock file was then not written.
    """
    whole = completed(read_lock(file), lock)
    release = selection.of(whole)
    pairs = [pair for pair in systems(release) if selection.only(*pair)] if selection.packages else []
    encryption = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": kms_key} if kms_key else {}
    place = "/".join(part for part in (prefix.strip("/"), release.release) if part)
    target = Bucket(s3, bucket, place, encryption)
    items = _items(release, target, unlocked(release, pairs))
    result = Mirrored(
        left_out=left_out(release, pairs) + selection.optional_left_out(whole),
        lock=target.key(f"{release.release}.lock"),
    )
    target.reach()
    sets = _package_sets(release, pairs, target, cache, selection.renew, archives or known_archives())
    for chosen in sets:
        result.package_sets[chosen.name] = len(chosen.packages)
        items += _package_items(chosen, target, items)
    _bring(items, target, cache, jobs, dry_run, progress, result)
    for chosen in sets:
        for listed in chosen.files:
            _made_here(listed, target.key(measure(listed).sha256[:16], listed.name), target, dry_run, result)
    if not dry_run:
        _record(file, sets)
    _made_here(file, result.lock, target, dry_run, result)
    return result.in_order()


def _record(file: Path, sets: Sequence[MirroredPackages]) -> None:
    try:
        record_package_sets(file, {chosen.name: chosen.sha256 for chosen in sets})
    except OSError as error:
        raise MirrorError(
            [f"{file}: the packages cannot be recorded in it ({error.strerror or error})"]
        ) from None


_EXPECTED = (
    ClosureError,
    DownloadError,
    IntegrityError,
    NoGpgError,
    OSError,
    BotoCoreError,
    Boto3Error,
    ClientError,
)


def _items(release: Release, target: Bucket, unlocked_keys: list[str]) -> list[_Item]:
    """One item per object; refuses what cannot be verified before anything is downloaded."""
    files = [(name, artifact) for name, artifact in release.artifacts() if has_source(artifact)]
    reasons = [
        f"{component}: {artifact.name} has no digest, run `ultracluster software lock` first"
        for component, artifact in files
        if not artifact.locked
    ]
    reasons += unlocked_keys
    if reasons:
        raise MirrorError(reasons)
    items: dict[str, _Item] = {}
    for component, artifact in files:
        key = target.key_of(artifact)
        items.setdefault(key, _Item(component, artifact, key))
    return list(items.values())


def _package_items(chosen: MirroredPackages, target: Bucket, others: Sequence[_Item]) -> list[_Item]:
    other_keys = {item.key for item in others}
    items = {
        key: _Item(f"packages of {chosen.name}", artifact, key)
        for artifact in chosen.packages
        if (key := target.key_of(artifact)) not in other_keys
    }
    return list(items.values())


def _package_sets(
    release: Release,
    pairs: Sequence[tuple[str, str]],
    target: Bucket,
    cache: Path,
    renew: bool,
    archives: dict[str, Any],
) -> list[MirroredPackages]:
    """What is recorded, else what the repositories have today."""
    sets: list[MirroredPackages] = []
    reasons: list[str] = []
    for system, arch in pairs:
        try:
            earlier = None if renew else recorded(release, system, arch, cache, target.content)
            sets.append(earlier or resolve(release, system, arch, cache, archives))
        except _EXPECTED as error:
            reasons.append(f"packages of {system}-{arch}: {words(error)}")
    if reasons:
        raise MirrorError(reasons)
    return sets


def _bring(
    items: Sequence[_Item],
    target: Bucket,
    cache: Path,
    jobs: int,
    dry_run: bool,
    progress: Progress | None,
    result: Mirrored,
) -> None:
    reasons: list[str] = []
    stop = Event()
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        futures: dict[Future[bool], _Item] = {
            pool.submit(_mirrored, item, target, cache, dry_run, progress, stop): item for item in items
        }
        try:
            for future in as_completed(futures):
                item = futures[future]
                try:
                    (result.uploaded if future.result() else result.present).append(item.key)
                except _EXPECTED as error:
                    reasons.append(f"{item.component}: {words(error)}")
        except BaseException:
            stop.set()  # downloads end with their next part, which stays for the next run
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if reasons:
        raise MirrorError(sorted(reasons))


def _mirrored(
    item: _Item, target: Bucket, cache: Path, dry_run: bool, progress: Progress | None, stop: Event
) -> bool:
    """Whether the object had to be uploaded."""
    artifact = item.artifact
    if artifact.digest and target.has(item.key, *artifact.digest, artifact.size):
        return False
    if dry_run:
        return True
    show = progress.start(artifact.name, artifact.size) if progress else None

    def advance(count: int) -> None:
        if stop.is_set():
            raise DownloadError(f"{artifact.name}: stopped")
        if show:
            show(count)

    file, digests = fetch(artifact, cache, signature=artifact.integrity == "signature", advance=advance)
    target.upload(file, digests, item.key)
    return True


def _made_here(file: Path, key: str, target: Bucket, dry_run: bool, result: Mirrored) -> None:
    digests = measure(file)
    if target.has(key, "sha256", digests.sha256, digests.size):
        result.present.append(key)
        return
    if not dry_run:
        target.upload(file, digests, key)
    result.uploaded.append(key)

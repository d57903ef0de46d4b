"""Copying a release's files to S3, where nodes without a route to the internet find them.

    s3://<bucket>/<prefix>/<release>/<first 16 digits of the digest>/<name>
    s3://<bucket>/<prefix>/<release>/<release>.lock        written last

Packages of repositories lie there in the same way, with all that they need; `package_set` says how they are
chosen and verified, and the lock file records them. Nothing is uploaded that is not what the lock file or a
signed index says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, Protocol

import boto3  # pyright: ignore[reportMissingTypeStubs]
from boto3.exceptions import Boto3Error  # pyright: ignore[reportMissingTypeStubs]
from boto3.s3.transfer import TransferConfig  # pyright: ignore[reportMissingTypeStubs]
from botocore.exceptions import BotoCoreError, ClientError  # pyright: ignore[reportMissingTypeStubs]

from ultracluster.operations.artifacts import fetch
from ultracluster.operations.downloads import DownloadError
from ultracluster.operations.integrity import Digests, IntegrityError, NoGpgError, measure
from ultracluster.operations.package_closure import ClosureError
from ultracluster.operations.package_set import (
    MirroredPackages,
    is_apt,
    known_archives,
    recorded,
    resolve,
    systems,
    unlocked,
)
from ultracluster.operations.release_lock import record_package_sets
from ultracluster.software import Artifact, Release, read_lock

PART = 16 << 20
"""Bytes of one part of a multipart upload, and the size from which there are parts."""


def s3_client(profile: str | None = None, region: str | None = None) -> Any:
    """A boto3 S3 client with the credentials of this machine or of a profile.

    Raises:
        MirrorError: the profile does not exist.
    """
    try:
        session: Any = boto3.Session(profile_name=profile, region_name=region)
        return session.client("s3")
    except BotoCoreError as error:
        raise MirrorError([str(error)]) from None


class MirrorError(Exception):
    """The mirror is not complete; `reasons` holds one line for each file that is missing."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("\n".join(reasons))
        self.reasons = reasons


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
    """Files without an address, and packages that come from elsewhere."""
    lock: str = ""
    package_sets: dict[str, int] = field(default_factory=dict[str, int])
    """How many packages there are for each `<os>-<arch>`."""


@dataclass(frozen=True, slots=True)
class _Item:
    component: str
    artifact: Artifact
    key: str


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
    packages: bool = True,
    only: Callable[[str, str], bool] = lambda system, arch: True,
    renew: bool = False,
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
        packages: packages of repositories, too.
        only: whether the packages of this operating system and processor are wanted.
        renew: choose packages again, although the lock file records some.
        archives: the distributions' own archives; those of this package by default.

    Raises:
        InvalidLockError: `file` is no lock file.
        MirrorError: something is missing; the lock file was then not written.
    """
    release = read_lock(file)
    pairs = [pair for pair in systems(release) if only(*pair)] if packages else []
    items = _items(release, prefix, unlocked(release, pairs))
    result = Mirrored(
        left_out=_left_out(release, pairs), lock=_key(prefix, release, f"{release.release}.lock")
    )
    extra: dict[str, str] = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": kms_key} if kms_key else {}
    _reachable(s3, bucket)
    sets = _package_sets(release, pairs, bucket, prefix, cache, s3, renew, archives or known_archives())
    for chosen in sets:
        result.package_sets[chosen.name] = len(chosen.packages)
        items += _package_items(release, prefix, chosen, items)
    reasons: list[str] = []
    stop = Event()
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        futures: dict[Future[bool], _Item] = {
            pool.submit(_one, item, bucket, cache, s3, extra, dry_run, progress, stop): item for item in items
        }
        try:
            for future in as_completed(futures):
                item = futures[future]
                try:
                    (result.uploaded if future.result() else result.present).append(item.key)
                except _EXPECTED as error:
                    reasons.append(f"{item.component}: {_words(error)}")
        except BaseException:
            stop.set()  # downloads end with their next part, which stays for the next run
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if reasons:
        raise MirrorError(sorted(reasons))
    for chosen in sets:
        for made in chosen.made:
            key = _key(prefix, release, measure(made).sha256[:16], made.name)
            _made_here(made, key, bucket, s3, extra, dry_run, result)
    if not dry_run:
        try:
            record_package_sets(file, {chosen.name: chosen.sha256 for chosen in sets})
        except OSError as error:
            raise MirrorError(
                [f"{file}: the packages cannot be recorded in it ({error.strerror or error})"]
            ) from None
    _made_here(file, result.lock, bucket, s3, extra, dry_run, result)
    result.uploaded.sort()
    result.present.sort()
    return result


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


def _items(release: Release, prefix: str, unlocked_keys: list[str]) -> list[_Item]:
    """One item per object; refuses what cannot be verified before anything is downloaded."""
    reasons = [
        f"{component}: {artifact.name} has no digest, run `ultracluster release lock` first"
        for component, artifact in release.artifacts()
        if artifact.url and not artifact.locked
    ]
    reasons += unlocked_keys
    if reasons:
        raise MirrorError(reasons)
    items: dict[str, _Item] = {}
    for component, artifact in release.artifacts():
        if artifact.url:
            key = _key(prefix, release, *artifact.mirror_key(release.release).split("/")[1:])
            items.setdefault(key, _Item(component, artifact, key))
    return list(items.values())


def _package_items(
    release: Release, prefix: str, chosen: MirroredPackages, others: Sequence[_Item]
) -> list[_Item]:
    there = {item.key for item in others}
    items = {
        key: _Item(f"packages of {chosen.name}", artifact, key)
        for artifact in chosen.packages
        if (key := _key(prefix, release, *artifact.mirror_key(release.release).split("/")[1:])) not in there
    }
    return list(items.values())


def _package_sets(
    release: Release,
    pairs: Sequence[tuple[str, str]],
    bucket: str,
    prefix: str,
    cache: Path,
    s3: Any,
    renew: bool,
    archives: dict[str, Any],
) -> list[MirroredPackages]:
    """What is recorded, else what the repositories have today."""

    def from_mirror(digest: str, name: str) -> bytes | None:
        key = _key(prefix, release, digest[:16], name)
        if not _is_there(s3, bucket, key, "sha256", digest, None):
            return None
        return s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    sets: list[MirroredPackages] = []
    reasons: list[str] = []
    for system, arch in pairs:
        try:
            found = None if renew else recorded(release, system, arch, cache, from_mirror)
            sets.append(found or resolve(release, system, arch, cache, archives))
        except _EXPECTED as error:
            reasons.append(f"packages of {system}-{arch}: {_words(error)}")
    if reasons:
        raise MirrorError(reasons)
    return sets


def _left_out(release: Release, pairs: Sequence[tuple[str, str]]) -> list[str]:
    files = [f"{component}: {a.name} has no address" for component, a in release.artifacts() if not a.url]
    packages = [
        f"{name}: {', '.join(entry.names)} on {system} {arch} "
        + (
            "come from a package repository, the image has to bring them"
            if entry.repository
            else "come from the system's own repositories, which are S3 buckets of the Region"
        )
        for name, part in release.components.items()
        for entry in part.packages
        for system in entry.os
        for arch in entry.arch
        if (system, arch) not in pairs or not (entry.repository or is_apt(system))
    ]
    return files + packages


def _one(
    item: _Item,
    bucket: str,
    cache: Path,
    s3: Any,
    extra: dict[str, str],
    dry_run: bool,
    progress: Progress | None,
    stop: Event,
) -> bool:
    """Whether the object had to be uploaded."""
    artifact = item.artifact
    if artifact.digest and _is_there(s3, bucket, item.key, *artifact.digest, artifact.size):
        return False
    if dry_run:
        return True
    show = progress.start(artifact.name, artifact.size) if progress else None

    def advance(count: int) -> None:
        if stop.is_set():
            raise DownloadError(f"{artifact.name}: stopped")
        if show:
            show(count)

    file, found = fetch(artifact, cache, signature=artifact.integrity == "signature", advance=advance)
    _upload(file, found, bucket, item.key, s3, extra)
    return True


def _upload(file: Path, found: Digests, bucket: str, key: str, s3: Any, extra: dict[str, str]) -> None:
    s3.upload_file(
        str(file),
        bucket,
        key,
        ExtraArgs={
            "Metadata": {"sha256": found.sha256, "sha512": found.sha512, "size": str(found.size)},
            "ChecksumAlgorithm": "SHA256",
            **extra,
        },
        Config=TransferConfig(multipart_threshold=PART, multipart_chunksize=PART, max_concurrency=4),
    )
    if not _is_there(s3, bucket, key, "sha256", found.sha256, found.size):
        raise IntegrityError(f"s3://{bucket}/{key} is not what was uploaded")


def _is_there(s3: Any, bucket: str, key: str, algorithm: str, digest: str, size: int | None) -> bool:
    try:
        head = s3.head_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if _code(error) in ("404", "NoSuchKey", "NotFound"):
            return False
        raise
    recorded = head.get("Metadata", {})
    wanted = str(size if size is not None else recorded.get("size"))
    return recorded.get(algorithm) == digest and str(head["ContentLength"]) == wanted


def _made_here(
    file: Path, key: str, bucket: str, s3: Any, extra: dict[str, str], dry_run: bool, result: Mirrored
) -> None:
    found = measure(file)
    if _is_there(s3, bucket, key, "sha256", found.sha256, found.size):
        result.present.append(key)
        return
    if not dry_run:
        _upload(file, found, bucket, key, s3, extra)
    result.uploaded.append(key)


def _reachable(s3: Any, bucket: str) -> None:
    try:
        s3.head_bucket(Bucket=bucket)
    except (ClientError, BotoCoreError) as error:
        raise MirrorError([f"s3://{bucket}: {_words(error)}"]) from None


def _words(error: BaseException) -> str:
    if isinstance(error, ClientError):
        known = {"404": "there is no such bucket", "NoSuchBucket": "there is no such bucket"}
        known["403"] = known["AccessDenied"] = "access denied"
        return known.get(_code(error), str(error))
    return str(error) or type(error).__name__


def _code(error: ClientError) -> str:
    response: dict[str, Any] = error.response  # pyright: ignore[reportUnknownMemberType]
    return str(response.get("Error", {}).get("Code", ""))


def _key(prefix: str, release: Release, *rest: str) -> str:
    return "/".join(part for part in (prefix.strip("/"), release.release, *rest) if part)

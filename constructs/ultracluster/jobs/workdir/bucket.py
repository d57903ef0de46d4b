"""A working folder in the jobs' bucket: under the hash of its archive, stored once."""

from __future__ import annotations

import base64
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, code, explain
from ultracluster.jobs.workdir.folder import read_folder, write_archive
from ultracluster.model import Cluster
from ultracluster.model.job_access import WorkdirPlace, workdir_place

_ABSENT = ("403", "404", "AccessDenied", "NoSuchKey", "NotFound")
"""Without the right to list, S3 answers 403 for a missing object (S3 API, "HeadObject", 2026-11-28)."""
_THERE = ("412", "PreconditionFailed", "409", "ConditionalRequestConflict")
"""Somebody else wrote it first (S3 User Guide, "Conditional writes", 2026-11-28)."""


@dataclass(frozen=True, slots=True)
class Workdir:
    """An archive, and where jobs find it."""

    archive: IO[bytes]
    digest: str
    """SHA-256 of the archive, in hexadecimal."""
    files: int
    size: int
    """Bytes of the files."""
    place: WorkdirPlace

    @property
    def key(self) -> str:
        return f"{self.place.folder}/{self.digest}.tar"

    def __str__(self) -> str:
        size = f"{self.size / 1_000_000:,.1f} MB" if self.size >= 100_000 else f"{self.size:,} bytes"
        plural = "s" * (self.files != 1)
        return f"{self.files:,} file{plural}, {size}, as s3://{self.place.bucket.bucket}/{self.key}"


def pack(cluster: Cluster, path: Path, *, limit_mb: int) -> Workdir:
    """Archive of a folder, on this machine.

    Raises:
        ValueError: the environment has no place for it, or the folder cannot travel.
        OSError: the archive cannot be written.
    """
    place = workdir_place(cluster)
    if place is None:
        setting = "orchestrator.mountpoint_s3" if cluster.kubernetes else "storage.job_buckets"
        raise ValueError(
            f"--workdir: no bucket of {setting} has `write: true`, and working folders go to the first that "
            "has: add one and deploy (docs/working-folders.md)"
        )
    folder = read_folder(path, limit_mb=limit_mb)
    archive = tempfile.TemporaryFile()  # noqa: SIM115 - read when the job is submitted, and gone with this process
    digest = write_archive(folder, archive)
    return Workdir(archive, digest, len(folder.entries), folder.size, place)


def upload(account: Account, workdir: Workdir) -> bool:
    """Store it where it is not yet; whether it was stored.

    Raises:
        AccountError: it is not there, or something else is.
    """
    s3 = account.client("s3")
    bucket, key = workdir.place.bucket.bucket, workdir.key
    checksum = base64.b64encode(bytes.fromhex(workdir.digest)).decode()
    where = f"s3://{bucket}/{key}"
    try:
        there = s3.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED")
        if there.get("ChecksumSHA256", checksum) != checksum:
            raise AccountError(f"{where} holds something else: delete it, and find out who wrote it")
        return False
    except AWS_ERRORS as error:
        if code(error) not in _ABSENT:
            raise AccountError(f"{where}: {explain(error)}") from None
    try:
        s3.put_object(Bucket=bucket, Key=key, Body=workdir.archive, ChecksumSHA256=checksum, IfNoneMatch="*")
    except AWS_ERRORS as error:
        if code(error) in _THERE:
            return False  # jobs compare the hash themselves
        raise AccountError(f"{where}: {explain(error)}") from None
    finally:
        with suppress(ValueError):
            workdir.archive.seek(0)
    return True


__all__ = ["Workdir", "pack", "upload"]

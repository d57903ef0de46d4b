"""Objects of a mirror: files in S3 with their digests as metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3  # pyright: ignore[reportMissingTypeStubs]
from boto3.s3.transfer import TransferConfig  # pyright: ignore[reportMissingTypeStubs]
from botocore.exceptions import BotoCoreError, ClientError  # pyright: ignore[reportMissingTypeStubs]

from ultracluster.software import Artifact
from ultracluster.supply.integrity import Digests, IntegrityError

PART = 16 << 20
"""Bytes of one part of a multipart upload, and the size from which there are parts."""


class MirrorError(Exception):
    """The mirror is not complete; `reasons` holds one line for each file that is missing."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("\n".join(reasons))
        self.reasons = reasons


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


@dataclass(frozen=True, slots=True)
class Bucket:
    """Where the objects of one release lie."""

    s3: Any
    """A boto3 S3 client."""
    name: str
    prefix: str
    """Of every key: prefix and release."""
    extra: Mapping[str, str] = field(default_factory=dict[str, str])
    """Arguments of every upload."""

    def key(self, *rest: str) -> str:
        return "/".join(part for part in (self.prefix, *rest) if part)

    def key_of(self, artifact: Artifact) -> str:
        """Raises ValueError if the artifact has no digest."""
        return self.key(*artifact.mirror_key("").split("/")[1:])

    def reach(self) -> None:
        """Raises MirrorError if the bucket is not there, or not for these credentials."""
        try:
            self.s3.head_bucket(Bucket=self.name)
        except (ClientError, BotoCoreError) as error:
            raise MirrorError([f"s3://{self.name}: {words(error)}"]) from None

    def has(self, key: str, algorithm: str, digest: str, size: int | None) -> bool:
        """Whether the object is there, complete and with this digest."""
        try:
            head = self.s3.head_object(Bucket=self.name, Key=key)
        except ClientError as error:
            if _code(error) in ("404", "NoSuchKey", "NotFound"):
                return False
            raise
        recorded = head.get("Metadata", {})
        expected_size = str(size if size is not None else recorded.get("size"))
        return recorded.get(algorithm) == digest and str(head["ContentLength"]) == expected_size

    def content(self, digest: str, name: str) -> bytes | None:
        """What lies there under this digest; None if nothing does."""
        key = self.key(digest[:16], name)
        if not self.has(key, "sha256", digest, None):
            return None
        return self.s3.get_object(Bucket=self.name, Key=key)["Body"].read()

    def upload(self, file: Path, digests: Digests, key: str) -> None:
        """Put a file there, and look whether it arrived."""
        self.s3.upload_file(
            str(file),
            self.name,
            key,
            ExtraArgs={
                "Metadata": {"sha256": digests.sha256, "sha512": digests.sha512, "size": str(digests.size)},
                "ChecksumAlgorithm": "SHA256",
                **self.extra,
            },
            Config=TransferConfig(multipart_threshold=PART, multipart_chunksize=PART, max_concurrency=4),
        )
        if not self.has(key, "sha256", digests.sha256, digests.size):
            raise IntegrityError(f"s3://{self.name}/{key} is not what was uploaded")


def words(error: BaseException) -> str:
    """One line on what went wrong."""
    if isinstance(error, ClientError):
        sentences = {"404": "there is no such bucket", "NoSuchBucket": "there is no such bucket"}
        sentences["403"] = sentences["AccessDenied"] = "access denied"
        return sentences.get(_code(error), str(error))
    return str(error) or type(error).__name__


def _code(error: ClientError) -> str:
    response: dict[str, Any] = error.response  # pyright: ignore[reportUnknownMemberType]
    return str(response.get("Error", {}).get("Code", ""))

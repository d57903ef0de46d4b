"""Fetching one artifact of a release into a cache, verified."""

from __future__ import annotations

import os
from pathlib import Path

from ultracluster.operations.downloads import Advance, download
from ultracluster.operations.integrity import (
    Digests,
    IntegrityError,
    check_digests,
    check_signature,
    measure,
)
from ultracluster.software import Artifact


def default_cache() -> Path:
    """Where downloads are kept between runs: `$XDG_CACHE_HOME/ultracluster` or `~/.cache/ultracluster`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ultracluster"


def cached_file(artifact: Artifact, cache: Path) -> Path:
    """Where the artifact is kept: below its digest, or `unlocked` while it has none."""
    place = artifact.digest[1][:16] if artifact.digest else "unlocked"
    return cache / place / artifact.name


def fetch(
    artifact: Artifact, cache: Path, *, signature: bool = True, advance: Advance | None = None
) -> tuple[Path, Digests]:
    """The artifact as a verified file.

    A file that fails its check is removed, so that nobody finds it; a cached one is fetched once more.

    Args:
        signature: check the signature where the artifact names one.

    Raises:
        DownloadError: it cannot be fetched.
        IntegrityError: it is not what the release says.
        NoGpgError: its signature has to be checked and there is no `gpg`.
        ValueError: it has no address.
    """
    if artifact.url is None:
        raise ValueError(f"{artifact.name} has no address")
    file = cached_file(artifact, cache)
    cached = file.exists()
    for last in (not cached, True):
        if not file.exists():
            download(artifact.url, file, size=artifact.size, advance=advance)
        try:
            return file, _verified(artifact, file, signature)
        except IntegrityError:
            file.unlink(missing_ok=True)
            if last:
                raise
    raise AssertionError("unreachable")


def _verified(artifact: Artifact, file: Path, signature: bool) -> Digests:
    found = measure(file)
    if artifact.size is not None and found.size != artifact.size:
        raise IntegrityError(
            f"refused {artifact.name}: it has {found.size:,} bytes, the release records {artifact.size:,}"
        )
    check_digests(artifact.name, found, sha256=artifact.sha256, sha512=artifact.sha512)
    if signature and artifact.signature_url and artifact.key_url and artifact.key_fingerprint:
        detached, key = file.with_name(f"{file.name}.sig"), file.with_name(f"{file.name}.key")
        for url, target in ((artifact.signature_url, detached), (artifact.key_url, key)):
            target.unlink(missing_ok=True)
            download(url, target)
        check_signature(file, detached, key, artifact.key_fingerprint)
    return found

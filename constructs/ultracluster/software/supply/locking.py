"""What can be recorded of one file or repository key: fetched from its maker and compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ultracluster.software import Artifact
from ultracluster.software.supply.artifacts import fetch, has_source, served
from ultracluster.software.supply.downloads import Advance, DownloadError, download
from ultracluster.software.supply.github_assets import asset_sha256
from ultracluster.software.supply.integrity import Digests, IntegrityError, NoGpgError, key_fingerprints

FIRST_USE = "its maker publishes neither digest nor signature: what came today is trusted from now on"
State = Literal["locked", "unchanged", "changed", "skipped", "failed"]
EXPECTED = (DownloadError, IntegrityError, NoGpgError, OSError)


@dataclass(frozen=True, slots=True)
class Locked:
    """What became of one file, repository key or image."""

    component: str
    """A component; for an image, its node group."""
    name: str
    state: State
    """`changed`: its source has something else than is recorded."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Options:
    """How a run of `release lock` goes about it."""

    cache: Path
    """Folder that keeps downloads between runs."""
    again: bool = False
    """Ask the sources about what is recorded, too."""
    advance: Advance | None = None
    """Called with the bytes of each part that arrives."""
    starting: Callable[[str], None] | None = None
    """Called with the name of each file before it is fetched."""


def measured(artifact: Artifact, options: Options) -> tuple[Digests, str] | None:
    """Size and digests of a file, and in words why they are trusted; None where there is no source.

    A file with a digest must have it, unless `again` asks what its source has now.

    Raises:
        DownloadError, IntegrityError, NoGpgError, OSError: it cannot be fetched or trusted.
    """
    if not has_source(artifact):
        return None
    if options.starting:
        options.starting(artifact.name)
    if artifact.locked and not options.again:
        return fetch(artifact, options.cache, advance=options.advance)[1], ""
    _, found = served(artifact, options.cache, advance=options.advance)
    return found, _trust(artifact, found)


def differs(artifact: Artifact, found: Digests) -> bool:
    """Whether a file is another one than is recorded."""
    return any(known and known != now for known, now in (
        (artifact.size, found.size), (artifact.sha256, found.sha256), (artifact.sha512, found.sha512),
    ))  # fmt: skip


def fingerprint(key_url: str, options: Options) -> str:
    """Fingerprint of the key at `key_url`, fetched now: keys expire and are renewed under one address.

    Raises:
        DownloadError, IntegrityError, NoGpgError, OSError: it cannot be fetched, or is not one key.
    """
    file = options.cache / "keys" / key_url.rpartition("/")[2]
    file.unlink(missing_ok=True)
    download(key_url, file)
    found = key_fingerprints(file)
    if len(found) != 1:
        raise IntegrityError(f"{key_url} holds {len(found)} keys: choose one by hand")
    return found[0]


def _trust(artifact: Artifact, found: Digests) -> str:
    """GitHub's own digest must agree; where nobody vouches for a file, that is said."""
    try:
        known = asset_sha256(artifact.url or "")
    except DownloadError as error:
        return f"{FIRST_USE} (GitHub could not be asked for its digest: {error})"
    if known and known != found.sha256:
        raise IntegrityError(
            f"refused {artifact.name}: its sha256 is {found.sha256[:16]}..., GitHub's API has {known[:16]}..."
        )
    if known:
        return "GitHub's API has the same digest"
    return "" if artifact.signature_url or artifact.locked else FIRST_USE

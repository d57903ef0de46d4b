"""What can be recorded of one file or repository key: fetched from its maker and compared."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ultracluster.software import Artifact
from ultracluster.supply.artifacts import fetch, has_source, served
from ultracluster.supply.downloads import SMALL, Advance, DownloadError, download
from ultracluster.supply.integrity import Digests, IntegrityError, NoGpgError, key_fingerprints

FIRST_USE = "its maker publishes neither digest nor signature: what came today is trusted from now on"
State = Literal["locked", "unchanged", "changed", "skipped", "failed"]
SITE = "https://github.com"
API = "https://api.github.com"
_ASSET = re.compile(r"/(?P<repository>[^/]+/[^/]+)/releases/download/(?P<tag>[^/]+)/(?P<name>[^/]+)")
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
    """Options of a run of `software lock`."""

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
    _, digests = served(artifact, options.cache, advance=options.advance)
    return digests, _trust(artifact, digests)


def differs(artifact: Artifact, digests: Digests) -> bool:
    """Whether a file is another one than is recorded."""
    return any(recorded and recorded != now for recorded, now in (
        (artifact.size, digests.size), (artifact.sha256, digests.sha256), (artifact.sha512, digests.sha512),
    ))  # fmt: skip


def fingerprint(key_url: str, options: Options) -> str:
    """Fingerprint of the key at `key_url`, fetched now: keys expire and are renewed under one address.

    Raises:
        DownloadError, IntegrityError, NoGpgError, OSError: it cannot be fetched, or is not one key.
    """
    file = options.cache / "keys" / key_url.rpartition("/")[2]
    file.unlink(missing_ok=True)
    download(key_url, file, most=SMALL)
    fingerprints = key_fingerprints(file)
    if len(fingerprints) != 1:
        raise IntegrityError(f"{key_url} holds {len(fingerprints)} keys: choose one by hand")
    return fingerprints[0]


def _trust(artifact: Artifact, digests: Digests) -> str:
    """GitHub's own digest must agree; where nothing vouches for a file, that is said."""
    try:
        published = asset_sha256(artifact.url or "")
    except DownloadError as error:
        return f"{FIRST_USE} (GitHub could not be asked for its digest: {error})"
    if published and published != digests.sha256:
        raise IntegrityError(
            f"refused {artifact.name}: its sha256 is {digests.sha256[:16]}..., "
            f"GitHub's API has {published[:16]}..."
        )
    if published:
        return "GitHub's API has the same digest"
    return "" if artifact.signature_url or artifact.locked else FIRST_USE


def asset_sha256(url: str) -> str | None:
    """SHA-256 that GitHub itself keeps of the release asset at `url` (`assets[].digest`, since June 2025);
    None if it is none, or GitHub keeps no digest of it.

    Archives that GitHub makes of a tag (`/archive/refs/tags/`) are no assets and have none.

    Raises:
        DownloadError: GitHub's API does not answer, or limits the requests of this address.
    """
    match = _ASSET.fullmatch(url.removeprefix(SITE)) if url.startswith(f"{SITE}/") else None
    if match is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "release.json"
        download(f"{API}/repos/{match['repository']}/releases/tags/{match['tag']}", file, most=SMALL)
        try:
            release: Any = json.loads(file.read_bytes())
            assets: list[dict[str, Any]] = release["assets"]
        except (ValueError, KeyError, TypeError):
            raise DownloadError(f"GitHub's API says nothing usable about {url}") from None
    for asset in assets:
        algorithm, _, digest = str(asset.get("digest") or "").partition(":")
        if (
            asset.get("name") == match["name"]
            and algorithm == "sha256"
            and re.fullmatch("[0-9a-f]{64}", digest)
        ):
            return digest
    return None

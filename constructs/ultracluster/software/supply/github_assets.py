"""The digest that GitHub itself keeps of a file of a release (`assets[].digest`, since June 2025)."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from ultracluster.software.supply.downloads import DownloadError, download

SITE = "https://github.com"
API = "https://api.github.com"
_ASSET = re.compile(r"/(?P<repository>[^/]+/[^/]+)/releases/download/(?P<tag>[^/]+)/(?P<name>[^/]+)")


def asset_sha256(url: str) -> str | None:
    """SHA-256 of the release asset at `url`; None if it is none, or GitHub keeps no digest of it.

    Archives that GitHub makes of a tag (`/archive/refs/tags/`) are no assets and have none.

    Raises:
        DownloadError: GitHub's API does not answer, or limits the requests of this address.
    """
    found = _ASSET.fullmatch(url.removeprefix(SITE)) if url.startswith(f"{SITE}/") else None
    if found is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "release.json"
        download(f"{API}/repos/{found['repository']}/releases/tags/{found['tag']}", file)
        try:
            release: Any = json.loads(file.read_bytes())
            assets: list[dict[str, Any]] = release["assets"]
        except (ValueError, KeyError, TypeError):
            raise DownloadError(f"GitHub's API says nothing usable about {url}") from None
    for asset in assets:
        algorithm, _, digest = str(asset.get("digest") or "").partition(":")
        if (
            asset.get("name") == found["name"]
            and algorithm == "sha256"
            and re.fullmatch("[0-9a-f]{64}", digest)
        ):
            return digest
    return None

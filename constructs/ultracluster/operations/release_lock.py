"""Filling a lock file: download, check the signature, hash, write back."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ultracluster.operations.artifacts import fetch
from ultracluster.operations.downloads import Advance, DownloadError, download
from ultracluster.operations.integrity import IntegrityError, NoGpgError, key_fingerprints
from ultracluster.software import Artifact, read_lock
from ultracluster.software.lock_text import written

FIRST_USE = "its maker publishes neither digest nor signature: what came today is trusted from now on"


@dataclass(frozen=True, slots=True)
class Locked:
    """What became of one file or repository key."""

    component: str
    name: str
    state: str
    """`locked`, `unchanged`, `skipped` or `failed`."""
    message: str = ""


def lock_release(
    file: Path,
    *,
    cache: Path,
    components: Sequence[str] = (),
    again: bool = False,
    advance: Advance | None = None,
    starting: Callable[[str], None] | None = None,
) -> list[Locked]:
    """Fill size, SHA-256 and repository keys of a lock file, in place and in one step.

    What has a digest already must still have it. Files that fail leave their entry as it was.

    Args:
        components: only these; all by default.
        again: check what is locked completely, too.

    Raises:
        InvalidLockError: the file is no lock file.
    """
    read_lock(file)
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    before = written(data)
    results: list[Locked] = []
    for component, part in data["components"].items():
        if components and component not in components:
            continue
        for row in part.get("artifacts", ()):
            if starting:
                starting(row["name"])
            results.append(_artifact(component, row, cache, again, advance))
        for row in part.get("packages", ()):
            repository: dict[str, Any] = row.get("repository") or {}
            if repository.get("key_url") and not repository.get("key_fingerprint"):
                results.append(_key(component, repository, cache))
    if written(data) != before:
        _replace(file, written(data))
        read_lock(file)
    return results


def record_package_sets(file: Path, sets: dict[str, str]) -> None:
    """Record which packages a mirror holds, in place and in one step.

    Args:
        sets: SHA-256 of the list of packages by `<os>-<arch>`; those of others stay.

    Raises:
        OSError: the file cannot be written.
    """
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    before: dict[str, str] = data.get("package_sets", {})
    after = dict(sorted({**before, **sets}.items()))
    if after != before:
        data["package_sets"] = after
        _replace(file, written(data))


def _artifact(
    component: str, row: dict[str, Any], cache: Path, again: bool, advance: Advance | None
) -> Locked:
    artifact = Artifact.model_validate(row)
    name = artifact.name
    if artifact.url is None:
        return Locked(component, name, "skipped", "no address is recorded")
    if artifact.locked and artifact.size and artifact.sha256 and not again:
        return Locked(component, name, "unchanged")
    try:
        _, found = fetch(artifact, cache, advance=advance)
    except (DownloadError, IntegrityError, NoGpgError, OSError) as error:
        return Locked(component, name, "failed", str(error))
    message = FIRST_USE if artifact.integrity == "to-be-locked" else ""
    change: dict[str, Any] = {"size": found.size, "sha256": found.sha256}
    if artifact.integrity == "to-be-locked":
        change["integrity"] = "checksum"
    if all(row.get(key) == value for key, value in change.items()):
        return Locked(component, name, "unchanged")
    filled = _in_order(row, change)
    row.clear()
    row.update(filled)
    return Locked(component, name, "locked", message)


def _key(component: str, repository: dict[str, Any], cache: Path) -> Locked:
    url: str = repository["key_url"]
    file = cache / "keys" / url.rpartition("/")[2]
    try:
        file.unlink(missing_ok=True)
        download(url, file)
        found = key_fingerprints(file)
    except (DownloadError, IntegrityError, NoGpgError, OSError) as error:
        return Locked(component, url, "failed", str(error))
    if len(found) != 1:
        return Locked(component, url, "failed", f"{url} holds {len(found)} keys: choose one by hand")
    repository["key_fingerprint"] = found[0]
    return Locked(component, url, "locked", f"key {found[0]}, trusted from now on: compare it with its maker")


_ORDER = ("os", "arch", "url", "name", "size", "sha256", "sha512", "integrity")


def _in_order(row: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Existing keys stay where they are; a new one goes where shipped locks have it."""
    result: dict[str, Any] = {}
    new = {key: value for key, value in change.items() if key not in row}
    for key, value in row.items():
        for candidate in list(new):
            if key in _ORDER and _ORDER.index(candidate) < _ORDER.index(key):
                result[candidate] = new.pop(candidate)
        result[key] = change.get(key, value)
    return {**result, **new}


def _replace(file: Path, text: str) -> None:
    """The old file or the new one, never half of one."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(file.stat().st_mode & 0o777)
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

"""Filling a lock file: download, check the signature, hash, write back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ultracluster.config.file_write import write
from ultracluster.software import Artifact, read_lock
from ultracluster.software.lock_text import written
from ultracluster.supply.locking import EXPECTED, Locked, Options, differs, fingerprint, measured


def lock_release(file: Path, options: Options, components: Sequence[str] = ()) -> list[Locked]:
    """Fill size, SHA-256 and repository keys of a lock file, in place and in one step.

    What is recorded is never overwritten: with `again` its source is asked, and a difference is reported.
    Files that fail leave their entry as it was.

    Args:
        components: only these; all by default.

    Raises:
        InvalidLockError: the file is no lock file.
        OSError: it cannot be written.
    """
    read_lock(file)
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    before = written(data)
    results: list[Locked] = []
    keys: dict[str, str | Exception] = {}
    for component, part in data["components"].items():
        if components and component not in components:
            continue
        results += [_artifact(component, row, options) for row in part.get("artifacts", ())]
        for row in part.get("packages", ()):
            repository: dict[str, Any] = row.get("repository") or {}
            if repository.get("key_url") and (options.again or not repository.get("key_fingerprint")):
                results.append(_key(component, repository, options, keys))
    if written(data) != before:
        write(file, written(data))
        read_lock(file)
    return list({result.name: result for result in reversed(results)}.values())[
        ::-1
    ]  # one key serves several


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
        write(file, written(data))


def _artifact(component: str, row: dict[str, Any], options: Options) -> Locked:
    artifact = Artifact.model_validate(row)
    name = artifact.name
    if artifact.locked and artifact.size and artifact.sha256 and not options.again:
        return Locked(component, name, "unchanged")
    try:
        answer = measured(artifact, options)
    except EXPECTED as error:
        return Locked(component, name, "failed", str(error))
    if answer is None:
        return Locked(component, name, "skipped", "no address is recorded")
    digests, message = answer
    if differs(artifact, digests):
        return Locked(component, name, "changed", (
            f"its source has sha256 {digests.sha256}, {digests.size:,} bytes; what is recorded stays: "
            "ask its maker why, and remove the digest to take the new one"
        ))  # fmt: skip
    change: dict[str, Any] = {"size": digests.size, "sha256": digests.sha256}
    if artifact.integrity == "to-be-locked":
        change["integrity"] = "checksum"
    if all(row.get(key) == value for key, value in change.items()):
        return Locked(component, name, "unchanged")
    filled = _in_order(row, change)
    row.clear()
    row.update(filled)
    return Locked(component, name, "locked", message)


def _key(
    component: str, repository: dict[str, Any], options: Options, fingerprints: dict[str, str | Exception]
) -> Locked:
    url: str = repository["key_url"]
    recorded: str | None = repository.get("key_fingerprint")
    if url not in fingerprints:
        try:
            fingerprints[url] = fingerprint(url, options)
        except EXPECTED as error:
            fingerprints[url] = error
    key_today = fingerprints[url]
    if isinstance(key_today, Exception):
        return Locked(component, url, "failed", str(key_today))
    if recorded is None:
        repository["key_fingerprint"] = key_today
        words = f"key {key_today}, trusted from now on: compare it with its maker"
        return Locked(component, url, "locked", words)
    if recorded != key_today:
        words = f"its source has key {key_today}; what is recorded ({recorded}) stays: ask its maker why"
        return Locked(component, url, "changed", words)
    return Locked(component, url, "unchanged")


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

"""Writing the lock of one environment: what its nodes could need beyond their image, and that image.

What the release leaves open is fetched from its maker and recorded; so is a file whose maker changes it under
one name, because the release's digest of it is of some day only. What is recorded stays until `again`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ultracluster.account.aws import Account
from ultracluster.config import Environment
from ultracluster.config.file_write import write
from ultracluster.software import (
    Artifact,
    Component,
    EnvironmentLock,
    InvalidLockError,
    Release,
    environment_lock,
    load_release,
)
from ultracluster.software.environment_lock import UNVERSIONED, lock_file_of
from ultracluster.software.first_boot import GroupBoot, group_boot, node_of
from ultracluster.supply.boot_images import resolved_images
from ultracluster.supply.locking import EXPECTED, Locked, Options, differs, fingerprint, measured

_MACHINES = {"x86_64": "x86_64", "arm64": "aarch64"}  # as EC2 and as `uname -m` name them


@dataclass(frozen=True, slots=True)
class Need:
    """A component that some group could install, and where."""

    component: str
    part: Component
    places: frozenset[tuple[str, str]]
    """Operating systems and processors."""
    installed: bool = False
    """True if it is certain that some group installs it."""

    def fits(self, os: Sequence[str], arch: Sequence[str]) -> bool:
        return any((not os or system in os) and machine in arch for system, machine in self.places)


def lock_environment(
    environment: Environment,
    file: Path,
    options: Options,
    *,
    account: Account | None = None,
    today: date | None = None,
) -> list[Locked]:
    """Write or complete the lock next to the environment file `file`, in one step.

    Nothing is written where nothing had to be recorded, and nothing that is recorded changes unless `again`
    is asked for. What could not be reached is one `failed` line and stays open.

    Args:
        account: who resolves images; without one they stay as they are, and those that lack are `failed`.
        today: the day that is recorded.

    Raises:
        InvalidLockError: the lock, or that of the release, is damaged or of another environment.
        UnknownReleaseError: there is no such release.
        OSError: it cannot be written.
    """
    target = lock_file_of(file)
    release = load_release(environment.software.release)
    earlier = _earlier_lock(environment, target)
    day = (today or date.today()).isoformat()
    before: dict[str, Any] = (
        earlier.model_dump(mode="json", by_alias=True, exclude_none=True) if earlier else {}
    )
    if earlier and earlier.release != release.release:
        before = {}  # of another release: what still holds is recorded again, with today's date
    needs = list(needs_of(environment, release))
    results: list[Locked] = []
    content: dict[str, dict[str, Any]] = {name: {} for name in ("files", "keys", "images")}
    for need in needs:
        for artifact in need.part.artifacts:
            if need.fits(artifact.os, artifact.arch) and artifact.name not in content["files"]:
                results += _file(need, artifact, before.get("files", {}), content["files"], options, day)
    for component, key_url in _open_keys(needs):
        results += _key(component, key_url, before.get("keys", {}), content["keys"], options, day)
    content["images"] = dict(before.get("images", {}))
    results += resolved_images(environment, account, content["images"], again=options.again, day=day)
    lock = {
        "schema": 1,
        "environment": environment.name,
        "release": release.release,
        **{name: dict(sorted(rows.items())) for name, rows in content.items()},
    }
    if earlier is not None or any(content.values()):
        EnvironmentLock.model_validate(lock)
        text = json.dumps(lock, indent=2, ensure_ascii=False) + "\n"
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            write(target, text)
    return results


def _earlier_lock(environment: Environment, file: Path) -> EnvironmentLock | None:
    """The environment's lock as it is, None where there is none.

    Raises:
        InvalidLockError: it is damaged, or of another environment.
    """
    remedy = "remove it, or take back the one that was committed"
    try:
        earlier = environment_lock(file)
    except InvalidLockError as error:
        raise InvalidLockError(f"{error}\n{remedy}") from None
    if earlier and earlier.environment != environment.name:
        raise InvalidLockError(
            f"{file} is of environment {earlier.environment}, not {environment.name}: {remedy}"
        )
    return earlier


def needs_of(environment: Environment, release: Release) -> Iterator[Need]:
    """What nodes install on their image, or would if it were locked, or may have to: all but what is sure."""
    systems: dict[str, set[tuple[str, str]]] = {}
    sure: set[str] = set()
    for boot, here in _boots(environment, release):
        for fit in boot.fits:
            if fit.outcome != "not-needed" and not (fit.outcome == "kept" and fit.certain):
                systems.setdefault(fit.component, set()).update(here)
            if fit.outcome == "installs" and fit.certain:
                sure.add(fit.component)
    for component, part in release.components.items():
        if component in systems:
            yield Need(component, part, frozenset(systems[component]), component in sure)


def places(environment: Environment, release: Release) -> set[tuple[str, str]]:
    """Operating systems and processors (`uname -m`) of an environment's nodes."""
    return {place for _, here in _boots(environment, release) for place in here}


def _boots(environment: Environment, release: Release) -> Iterator[tuple[GroupBoot, set[tuple[str, str]]]]:
    """Each group on its image; where that is not known, on any system of the release."""
    systems = set(release.systems)
    for name, group in environment.node_groups.items():
        boot = group_boot(environment, name, release)
        machine = _MACHINES[node_of(environment, group).architecture]
        yield boot, {(system, machine) for system in ({boot.image.os} if boot.image else systems)}


def _file(
    need: Need,
    artifact: Artifact,
    before: dict[str, Any],
    after: dict[str, Any],
    options: Options,
    day: str,
) -> list[Locked]:
    """One line for what had to be recorded; none for what the release has."""
    name, found_before = artifact.name, before.get(artifact.name)
    changes = need.part.version == UNVERSIONED
    if artifact.locked and not changes:
        return []
    if found_before and not options.again:
        after[name] = found_before
        return [Locked(need.component, name, "unchanged")]
    try:
        # what is open, and what its maker changes, is asked for at its source
        answer = measured(artifact, Options(options.cache, True, options.advance, options.starting))
    except EXPECTED as error:
        if found_before:
            after[name] = found_before
        if artifact.locked or found_before:
            words = f"not asked: {error}; what is recorded stays"
            return [Locked(need.component, name, "skipped", words)]
        return [Locked(need.component, name, "failed", str(error))]
    if answer is None:
        return [Locked(need.component, name, "skipped", "no address is recorded")]
    digests, words = answer
    entry = {"sha256": digests.sha256, "size": digests.size, "recorded": day}
    if artifact.url:
        entry["from"] = artifact.url
    if found_before and found_before["sha256"] == digests.sha256:
        after[name] = found_before
        return [Locked(need.component, name, "unchanged")]
    after[name] = entry
    if found_before:
        was = f"{found_before['sha256'][:16]}... of {found_before['recorded']}"
        words = f"was {was}, is {digests.sha256[:16]}... now"
        return [Locked(need.component, name, "changed", words)]
    if changes and artifact.locked:
        words = "as the release records it"
        if differs(artifact, digests):
            words = (
                f"its source has sha256 {digests.sha256[:16]}... today, the release recorded another: "
                "trusted from now on"
            )
    return [Locked(need.component, name, "locked", words)]


def _open_keys(needs: list[Need]) -> Iterator[tuple[str, str]]:
    """Components and the addresses of keys without a fingerprint, each address once."""
    seen: set[str] = set()
    for need in needs:
        for entry in need.part.packages:
            where = entry.repository
            if where is None or where.key_fingerprint or not where.key_url or where.key_url in seen:
                continue
            if need.fits(entry.os, entry.arch):
                seen.add(where.key_url)
                yield need.component, where.key_url


def _key(
    component: str,
    key_url: str,
    before: dict[str, Any],
    after: dict[str, Any],
    options: Options,
    day: str,
) -> list[Locked]:
    found_before = before.get(key_url)
    if found_before:
        after[key_url] = found_before
        if not options.again:
            return [Locked(component, key_url, "unchanged")]
    try:
        fingerprints = fingerprint(key_url, options)
    except EXPECTED as error:
        if found_before:
            words = f"not asked: {error}; what is recorded stays"
            return [Locked(component, key_url, "skipped", words)]
        return [Locked(component, key_url, "failed", str(error))]
    if found_before and found_before["fingerprint"] == fingerprints:
        return [Locked(component, key_url, "unchanged")]
    after[key_url] = {"fingerprint": fingerprints, "recorded": day}
    words = f"key {fingerprints}, trusted from now on: compare it with its maker"
    if found_before:
        return [Locked(component, key_url, "changed", f"was {found_before['fingerprint']}; {words}")]
    return [Locked(component, key_url, "locked", words)]

"""The lock of one environment: what completes its release, and the images that its nodes boot.

`environments/<name>.lock` lies next to `environments/<name>.yaml`, is written by `ultracluster software lock
--for <name>` and committed: nodes verify by it what the release itself leaves open.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from ultracluster.config.base import Line, Model
from ultracluster.config.file_text import text_of
from ultracluster.software.artifact import Sha256, Url
from ultracluster.software.lock import RELEASE_NAME, InvalidLockError, Release, no_duplicates

Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]

UNVERSIONED = "unversioned"
"""Version of a component whose maker changes the file under one name."""


class LockedFile(Model):
    """One file as its maker served it."""

    sha256: Sha256
    size: Annotated[int, Field(gt=0)]
    """Bytes."""
    recorded: Day
    origin: Annotated[Url | None, Field(alias="from")] = None
    """Where it came from; none for a wheel, which pip fetched."""


class LockedKey(Model):
    """One repository key as its maker served it."""

    fingerprint: Annotated[str, Field(pattern=r"^[0-9A-F]{40}$")]
    recorded: Day


class LockedImage(Model):
    """The image that the nodes of one group boot."""

    image: Annotated[str, Field(pattern=r"^ami-[0-9a-f]{8,17}$")] | None = None
    release: Line | None = None
    """Its maker's number, where the orchestrator takes one: `1.34.12-20261012`."""
    parameter: Line | None = None
    """SSM parameter that gave it."""
    recorded: Day


class EnvironmentLock(Model):
    """Everything that was locked for one environment."""

    schema_version: Annotated[Literal[1], Field(alias="schema")]
    environment: Line
    """Name of the environment."""
    release: Annotated[str, Field(pattern=RELEASE_NAME)]
    """The release that it completes."""
    files: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")], LockedFile] = {}
    """By the name of the file."""
    keys: dict[Url, LockedKey] = {}
    """By the address of the key."""
    images: dict[Line, LockedImage] = {}
    """By node group."""

    def for_nodes(self) -> dict[str, dict[str, str]]:
        """`locked` of cluster.json: `files` by name as `sha256:<hex>`, `keys` by address."""
        return {
            "files": {name: f"sha256:{entry.sha256}" for name, entry in sorted(self.files.items())},
            "keys": {url: entry.fingerprint for url, entry in sorted(self.keys.items())},
        }

    def faults(self, environment: str, release: str) -> list[str]:
        """Why it is not the lock of this environment with this release, one sentence each."""
        problems: list[str] = []
        if self.environment != environment:
            problems.append(f"it is of environment {self.environment}, not {environment}")
        if self.release != release:
            problems.append(f"it completes release {self.release}, and the environment has {release}")
        return problems


def lock_file_of(environment: Path | str) -> Path:
    """The lock of an environment, by its file or its name: `prod` is `environments/prod.lock`."""
    file = Path(environment)
    if file.suffix in (".yaml", ".yml"):
        return file.with_suffix(".lock")
    return file if file.suffix == ".lock" else Path("environments") / f"{environment}.lock"


def environment_lock(environment: Path | str) -> EnvironmentLock | None:
    """The lock of an environment, by its file or its name; None if there is none.

    Raises:
        InvalidLockError: it is damaged; the message names the file and every fault.
    """
    file = lock_file_of(environment)
    try:
        text = text_of(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidLockError(f"{file}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InvalidLockError(f"{file} is not JSON: {error}") from None
    try:
        data: Any = json.loads(text, object_pairs_hook=no_duplicates)
        return EnvironmentLock.model_validate(data)
    except ValidationError as error:
        faults = [
            f"  {'.'.join(str(part) for part in fault['loc']) or 'lock'}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        ]
        raise InvalidLockError("\n".join([f"{file} is no lock of an environment:", *faults])) from None
    except RecursionError:
        raise InvalidLockError(f"{file} is no lock file: its values lie in one another too deep") from None
    except ValueError as error:
        raise InvalidLockError(f"{file} is not JSON: {error}") from None


def completed(release: Release, lock: EnvironmentLock | None) -> Release:
    """The release with what the lock of an environment adds: as its nodes see it.

    What the release itself records stays, except files whose maker changes them under one name: there
    the environment's digest, which is younger, holds. A lock of another release changes nothing.
    """
    if lock is None or lock.release != release.release or not (lock.files or lock.keys):
        return release
    data = release.model_dump(mode="json", by_alias=True)
    for part in data["components"].values():
        for artifact in part["artifacts"]:
            locked_file = lock.files.get(artifact["name"])
            digest = artifact["sha256"] or artifact["sha512"]
            if locked_file and (not digest or part["version"] == UNVERSIONED):
                artifact |= {"size": locked_file.size, "sha256": locked_file.sha256, "sha512": None}
                if artifact["integrity"] == "to-be-locked":
                    artifact["integrity"] = "checksum"
        for entry in part["packages"]:
            where: dict[str, Any] = entry["repository"] or {}
            key = lock.keys.get(where.get("key_url") or "")
            if key and not where["key_fingerprint"]:
                where["key_fingerprint"] = key.fingerprint
    return Release.model_validate(data)

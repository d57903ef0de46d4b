"""The packages of a release for one system and processor, with all that they need: what a mirror holds.

    packages-<os>-<arch>.json    the list: each package with digest and the files it needs; the lock file has
                                 its SHA-256 under `package_sets`
    Packages                     index for apt, or
    primary.xml, repomd.xml      index for dnf; the list has their SHA-256

So a node verifies all of it from the lock file that it was given, whoever can write to the mirror.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ultracluster.software import Artifact, Release
from ultracluster.supply.artifacts import has_source
from ultracluster.supply.package_closure import Closure, Package
from ultracluster.supply.package_entries import entries, is_apt

if TYPE_CHECKING:
    from ultracluster.supply.repositories import Writer

_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]")
_ARCHIVES = Path(__file__).with_name("package_archives.json")


@dataclass(frozen=True, slots=True)
class MirroredPackages:
    """The set, ready to be uploaded."""

    name: str
    """`<os>-<arch>`, as the lock file has it."""
    packages: tuple[Artifact, ...]
    files: tuple[Path, ...]
    """Index and, last, the list: files that were made here."""

    @property
    def sha256(self) -> str:
        """Digest of the list."""
        return _digest(self.files[-1].read_bytes())


@cache
def known_archives() -> dict[str, Any]:
    """The distributions' own archives, with their source."""
    return json.loads(_ARCHIVES.read_text(encoding="utf-8"))


def systems(release: Release) -> list[tuple[str, str]]:
    """Operating systems and processors for which a release names packages of a repository."""
    return sorted(
        {
            (system, arch)
            for part in release.components.values()
            for entry in part.packages
            for system in entry.os
            for arch in entry.arch
            if entry.repository or is_apt(system)
        }
    )


def unlocked(release: Release, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """One line for each repository that has no pinned key."""
    keys: dict[str, dict[str, None]] = {}
    for pair in pairs:
        for component, entry in entries(release, *pair):
            where = entry.repository
            if where and not (where.key_url and where.key_fingerprint):
                keys.setdefault(where.url, {})[component] = None
    return [
        f"{', '.join(components)}: the key of {url} has no fingerprint: `ultracluster software lock` first"
        for url, components in keys.items()
    ]


def resolve(
    release: Release, system: str, arch: str, cache: Path, archives: dict[str, Any]
) -> MirroredPackages:
    """Read the repositories and choose: nothing but indexes is downloaded.

    Args:
        archives: as `known_archives` gives them.

    Raises:
        MissingExtraError: what reads repositories is not installed.
        ClosureError: a package or a dependency is nowhere.
        DownloadError, IntegrityError, NoGpgError, OSError: an index cannot be read or trusted.
    """
    closure, written = _closure(release, system, arch, cache, archives)
    chosen = sorted(closure.chosen, key=lambda package: (package.name, package.version, package.sha256))
    files = {package: f"{package.sha256[:16]}/{_file_name(package)}" for package in chosen}
    pairs = list(files.items())
    index = written(pairs)
    content = {
        "schema": 1,
        "release": release.release,
        "os": system,
        "arch": arch,
        "wanted": _wanted(release, system, arch),
        "index": [{"path": path, "sha256": _digest(text.encode())} for path, text in index.items()],
        "packages": [
            {
                "name": package.name,
                "version": package.version,
                "specs": list(package.specs),
                "file": file,
                "size": package.size,
                "sha256": package.sha256,
                "url": package.url,
                "repository": package.repository,
                "needs": sorted(files[required] for required in closure.chosen[package]),
            }
            for package, file in pairs
        ],
    }
    texts = {path.rpartition("/")[2]: text for path, text in index.items()}
    texts[list_name(system, arch)] = json.dumps(content, indent=1) + "\n"
    return _ready(system, arch, content, [_kept(cache, name, text) for name, text in texts.items()])


def recorded(
    release: Release,
    system: str,
    arch: str,
    cache: Path,
    from_mirror: Callable[[str, str], bytes | None],
) -> MirroredPackages | None:
    """The set that the lock file records, from the cache or the mirror.

    None if neither has it, or if the release names other packages by now.

    Args:
        from_mirror: called with SHA-256 and name; the object's content, or None.
    """

    def find(digest: str, name: str) -> Path | None:
        file = cache / digest[:16] / name
        if not file.is_file() or _digest(file.read_bytes()) != digest:
            content = from_mirror(digest, name)
            if content is None or _digest(content) != digest:
                return None
            _kept(cache, name, content.decode())
        return file

    digest = release.package_sets.get(f"{system}-{arch}")
    packages_list = find(digest, list_name(system, arch)) if digest else None
    if packages_list is None:
        return None
    content: dict[str, Any] = json.loads(packages_list.read_text(encoding="utf-8"))
    if content["wanted"] != _wanted(release, system, arch):
        return None
    index = [find(row["sha256"], row["path"].rpartition("/")[2]) for row in content["index"]]
    files = [file for file in index if file]
    return _ready(system, arch, content, [*files, packages_list]) if len(files) == len(index) else None


class MissingExtraError(Exception):
    """Packages that only the mirror needs are not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"install what reads package repositories first: pip install 'ultracluster[mirror]' "
            f"(there is no module {name})"
        )


def _closure(
    release: Release, system: str, arch: str, cache: Path, archives: dict[str, Any]
) -> tuple[Closure, Writer]:
    try:
        # it needs the extra `mirror`
        from ultracluster.supply.repositories import closure_of
    except ModuleNotFoundError as error:
        name = error.name or ""
        if name.partition(".")[0] not in ("debian", "univers"):
            raise
        raise MissingExtraError(name) from None
    return closure_of(release, system, arch, cache, archives)


def list_name(system: str, arch: str) -> str:
    """Name of the list."""
    return f"packages-{system}-{arch}.json"


def _ready(system: str, arch: str, content: dict[str, Any], files: list[Path]) -> MirroredPackages:
    packages = [
        Artifact.model_validate(
            {
                "os": [system],
                "arch": [arch],
                "name": row["file"].partition("/")[2],
                "integrity": "checksum",
                **{key: row[key] for key in ("url", "size", "sha256")},
            }
        )
        for row in content["packages"]
    ]
    return MirroredPackages(f"{system}-{arch}", tuple(packages), tuple(files))


def _kept(cache: Path, name: str, text: str) -> Path:
    file = cache / _digest(text.encode())[:16] / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def _wanted(release: Release, system: str, arch: str) -> list[str]:
    """What the set was made for: with other names or repositories it is out of date."""
    return sorted(
        " ".join([name, *([where.url, where.suite or "/"] if (where := entry.repository) else [])])
        for _, entry in entries(release, system, arch)
        for name in entry.names
    )


def _file_name(package: Package) -> str:
    """The name in the mirror: without the characters that an object key or a URL would have to escape."""
    return _UNSAFE.sub("_", package.url.rpartition("/")[2])


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def left_out(release: Release, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """One line for each file without an address and each package that comes from elsewhere."""
    files = [
        f"{component}: {artifact.name} has no address"
        for component, artifact in release.artifacts()
        if not has_source(artifact)
    ]
    packages = [
        f"{name}: {', '.join(entry.names)} on {system} {arch} "
        + (
            "come from a package repository, the image has to bring them"
            if entry.repository
            else "come from the system's own repositories, which are S3 buckets of the Region"
        )
        for name, part in release.components.items()
        for entry in part.packages
        for system in entry.os
        for arch in entry.arch
        if (system, arch) not in pairs or not (entry.repository or is_apt(system))
    ]
    return files + packages

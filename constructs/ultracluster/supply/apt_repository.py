"""apt repositories: signed index, verified, and the index of a part of them.

Trust goes from the pinned key to `Release`, from there by SHA-256 to `Packages`, and from there to each
package. `Release` with its detached `Release.gpg` is read: the same content as `InRelease`.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path

from debian.deb822 import Packages, PkgRelation, Release
from debian.debian_support import Version

from ultracluster.software import Artifact
from ultracluster.supply.artifacts import fetch
from ultracluster.supply.downloads import SMALL, download
from ultracluster.supply.integrity import IntegrityError, check_signature
from ultracluster.supply.package_closure import Closure, ClosureError, Index, Need, Package

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_NAME = re.compile(r"^Package:[ \t]*(\S+)", re.MULTILINE)
_ARCHITECTURE = re.compile(r"^Architecture:[ \t]*(\S+)", re.MULTILINE)
_PROVIDES = re.compile(r"^Provides:[ \t]*(.*(?:\n[ \t].*)*)", re.MULTILINE)
_OF_EVERY_IMAGE = re.compile(r"^(?:Essential:[ \t]*yes|Priority:[ \t]*(?:required|important))", re.MULTILINE)
_PLACE = re.compile(r"^(?:Filename|Size|MD5sum|SHA1|SHA256|SHA512):.*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class AptSource:
    """One suite of a repository and the key that signs it."""

    url: str
    suite: str
    """Suite and components (`jammy main universe`), or `/` for a flat repository."""
    key_url: str
    key_fingerprint: str


def compare(first: str, second: str) -> int:
    """Debian's order of versions."""
    left, right = Version(first), Version(second)
    return (left > right) - (left < right)


def new_index() -> Index:
    """An empty index; every dependency has to be in it."""
    return Index(compare, strict=True)


def read(source: AptSource, arch: str, cache: Path, index: Index) -> list[str]:
    """Put what the repository has for a processor into `index`.

    Args:
        arch: as `uname -m` names it.

    Returns:
        The names that its maker counts as part of every system.

    Raises:
        DownloadError: it does not answer.
        IntegrityError: it is not signed by the key, too old, or not what its signed part says.
        NoGpgError: there is no `gpg`.
    """
    base, parts = source.url.rstrip("/"), source.suite.split()
    flat = parts[0].endswith("/")
    root = f"{base}/{parts[0].strip('/')}".rstrip("/") if flat else f"{base}/dists/{parts[0]}"
    release = _release(source, root, cache)
    folders = [""] if flat else [f"{part}/binary-{ARCHITECTURES[arch]}/" for part in parts[1:]]
    everywhere: list[str] = []
    for folder in folders:
        for text in _packages(release, root, folder, cache):
            everywhere += _entry(text, source.url, base, ARCHITECTURES[arch], index)
    return everywhere


def _release(source: AptSource, root: str, cache: Path) -> Release:
    place = cache / "indexes" / hashlib.sha256(root.encode()).hexdigest()[:16]
    files = {name: place / name for name in ("Release", "Release.gpg", "key")}
    for (name, file), url in zip(
        files.items(), (f"{root}/Release", f"{root}/Release.gpg", source.key_url), strict=True
    ):
        file.with_name(f"{name}.part").unlink(missing_ok=True)  # half of an older one would be mixed in
        file.unlink(missing_ok=True)
        download(url, file, most=SMALL)
    try:
        check_signature(files["Release"], files["Release.gpg"], files["key"], source.key_fingerprint)
        release = Release(files["Release"].read_text(encoding="utf-8"))
    except (IntegrityError, UnicodeDecodeError) as error:
        raise IntegrityError(f"{root}/Release: {error}") from None
    until = release.get("Valid-Until")
    if until and parsedate_to_datetime(until.replace("UTC", "+0000")) < datetime.now(UTC):
        raise IntegrityError(f"{root}/Release: it was valid until {until}")
    return release


def _packages(release: Release, root: str, folder: str, cache: Path) -> Iterator[str]:
    """The entries of one index."""
    rows = {row["name"].removeprefix("./"): row for row in release.get("SHA256") or ()}
    name = next((path for end in (".xz", ".gz", "") if (path := f"{folder}Packages{end}") in rows), None)
    if name is None:
        raise IntegrityError(f"{root}/Release lists no {folder}Packages with a SHA256")
    row = rows[name]
    by_hash = release.get("Acquire-By-Hash") == "yes"
    place = f"{folder}by-hash/SHA256/{row['sha256']}" if by_hash else name
    if int(row["size"]) == 0:
        return
    artifact = Artifact.model_validate(
        {
            "os": ["debian0"],  # an index is for none: only the check of the file counts here
            "arch": ["x86_64"],
            "url": f"{root}/{place}",
            "name": name.rpartition("/")[2],
            "size": int(row["size"]),
            "sha256": row["sha256"],
            "integrity": "checksum",
        }
    )
    content = fetch(artifact, cache)[0].read_bytes()
    if name.endswith(".xz"):
        content = lzma.decompress(content)
    elif name.endswith(".gz"):
        content = gzip.decompress(content)
    yield from (text for text in re.split(r"\n[ \t]*\n", content.decode()) if text.strip())


def _entry(text: str, repository: str, base: str, architecture: str, index: Index) -> list[str]:
    """Add one entry; its name if it belongs to every system."""
    name, where = _NAME.search(text), _ARCHITECTURE.search(text)
    if name is None or where is None or where[1] not in (architecture, "all"):
        return []
    provided = _PROVIDES.search(text)
    virtual = [part.split("(")[0].strip() for part in provided[1].split(",")] if provided else []
    index.add(name[1], virtual, partial(_package, text, repository, base))
    return [name[1]] if _OF_EVERY_IMAGE.search(text) else []


def _package(text: str, repository: str, base: str) -> Package:
    entry = Packages(text)
    name, version = entry["Package"], entry["Version"]
    if not entry.get("SHA256"):
        raise IntegrityError(f"{repository} records no SHA256 of {name} {version}")
    needs: list[tuple[Need, ...]] = []
    for kind in ("Pre-Depends", "Depends"):
        if entry.get(kind):
            needs += [tuple(_need(relation) for relation in group) for group in _relations(entry[kind])]
    provides = [_need(relation) for group in _relations(entry.get("Provides", "")) for relation in group]
    return Package(
        name=name,
        version=version,
        url=f"{base}/{entry['Filename'].removeprefix('./')}",
        size=int(entry["Size"]),
        sha256=entry["SHA256"],
        repository=repository,
        needs=tuple(needs),
        provides=tuple((need.name, need.version) for need in provides),
        record=text.strip("\n") + "\n",
        specs=(f"{name}={version}",),
    )


def _relations(text: str) -> list[list[PkgRelation.ParsedRelation]]:
    return PkgRelation.parse_relations(text) if text.strip() else []


def _need(relation: PkgRelation.ParsedRelation) -> Need:
    version = relation["version"]
    if version is None:
        return Need(relation["name"])
    return Need(relation["name"], {"<<": "<", ">>": ">"}.get(version[0], version[0]), version[1])


def of_every_image(names: Sequence[str], index: Index) -> list[Package]:
    """What any image has: these packages, as old as the repository has them, and what they need.

    Args:
        names: essential, required and important packages.
        index: of the suite as it was first published.
    """
    closure = Closure(index)
    for name in dict.fromkeys(names):
        try:
            closure.add(index.named(name)[-1])
        except ClosureError:  # then it is installed on no system either
            continue
    return list(closure.chosen)


def written(packages: Sequence[tuple[Package, str]]) -> dict[str, str]:
    """The index of these packages as a flat repository, by file name.

    Args:
        packages: each with the path of its file below the index.
    """
    entries = [
        f"{_PLACE.sub('', package.record).rstrip()}\nFilename: ./{file}\nSize: {package.size}\n"
        f"SHA256: {package.sha256}\n"
        for package, file in packages
    ]
    return {"Packages": "\n".join(entries)}

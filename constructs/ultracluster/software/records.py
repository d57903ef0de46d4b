"""Rows of a lock file held against what public sources record (`catalog/software_records.json`).

A row that differs from its record is a contradiction; so is a host, suite, key, package or version that no
record knows for its repository. A row that no source names exactly is not checked, and counted as such.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field, ValidationError

import ultracluster.catalog
from ultracluster.config.base import Many, Model
from ultracluster.config.file_text import text_of
from ultracluster.software.artifact import Artifact, PackageSet, Repository, Sha256
from ultracluster.software.lock import Component, InvalidLockError, Release, read_lock, releases_folder

FILE = Path(ultracluster.catalog.__file__).with_name("software_records.json")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
Place = Annotated[str, Field(pattern=r"^[a-z]+[0-9][0-9.]*-(x86_64|aarch64)$")]


class Source(Model):
    """A public source."""

    what: Annotated[str, Field(min_length=10)]
    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]


class FileRecord(Model):
    """A file as a source records it."""

    component: str
    version: str
    host: str
    """Empty where a package index serves it under a name of its own."""
    path: str = ""
    """Path of its address, with the leading slash."""
    key_url: str | None = None
    key_fingerprint: str | None = None
    """Key that signs it; the signature's address begins with the file's."""
    size: int | None = None
    sha256: Sha256 | None = None
    sha512: str | None = None
    """Without any digest: the file is published, and no source records its digest."""
    source: str


class PackageRecord(Model):
    """A package, or a version of it, as a source records it."""

    name: str
    version: str | None = None
    """None: the source names the package only."""
    places: Many[Place]
    """Systems and processors for which the source names it."""
    source: str


class RepositoryRecord(Model):
    """A package repository and what it is known to hold."""

    name: str
    urls: dict[str, Many[Place]]
    """Its addresses, each with the systems and processors that it is for."""
    suites: Many[str]
    key_urls: Many[str] = ()
    key_fingerprint: str
    source: str
    packages: Many[PackageRecord]


class Records(Model):
    """The whole file; a lock file of your own may have such a file beside it."""

    about: dict[str, str] = {}
    sources: dict[str, Source]
    files: dict[str, FileRecord] = {}
    repositories: Many[RepositoryRecord] = ()
    systems: dict[str, Many[PackageRecord]] = {}
    """Packages of the system's own repositories, by system (`ubuntu24.04`, or `ubuntu` for all of them)."""

    @property
    def known_systems(self) -> set[str]:
        """Every system that a repository is recorded for."""
        return {
            place.rpartition("-")[0]
            for repository in self.repositories
            for places in repository.urls.values()
            for place in places
        }


class Row(NamedTuple):
    """One file or package of a lock file as it compares with the records."""

    component: str
    name: str
    """Name of the file, or of the package with its version."""
    line: int
    """In the lock file: of the value that contradicts, else of the name."""
    state: Literal["checked", "open", "contradiction"]
    detail: str
    """Describe what the record says, or what is not recorded."""


@dataclass(frozen=True, slots=True)
class Checked:
    """State how the rows of a lock file compare with the records."""

    file: Path
    rows: tuple[Row, ...]

    @property
    def total(self) -> int:
        return len(self.rows)

    @property
    def checked(self) -> int:
        """Rows that agree with a record of exactly this."""
        return sum(row.state == "checked" for row in self.rows)

    @property
    def open(self) -> tuple[Row, ...]:
        """Rows that no source names exactly."""
        return tuple(row for row in self.rows if row.state == "open")

    @property
    def contradictions(self) -> tuple[str, ...]:
        """Each contradiction with file and line."""
        return tuple(
            f"{self.file}:{row.line}: {row.component}: {row.detail}"
            for row in self.rows
            if row.state == "contradiction"
        )

    @property
    def sentence(self) -> str:
        return f"{self.checked} of {self.total} artefacts checked against a record"


class _ContradictionError(Exception):
    """Describe what a record says otherwise; `text` is the value of the lock file that differs."""

    def __init__(self, text: str, detail: str) -> None:
        super().__init__(detail)
        self.text = text


class _NotRecordedError(Exception):
    """Describe what no source names exactly."""


@cache
def records() -> Records:
    """The records of this package."""
    return Records.model_validate_json(FILE.read_text(encoding="utf-8"))


def records_for(file: Path) -> Records:
    """The records that a lock file is held against.

    Beside a lock file of your own, `<release>.records.json` adds what you vouch for yourself.

    Raises:
        InvalidLockError: that file cannot be read or is not a file of records.
    """
    own = file.with_suffix(".records.json")
    if file.parent == releases_folder() or not own.is_file():
        return records()
    try:
        mine = Records.model_validate_json(text_of(own))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise InvalidLockError(f"{own} is not a file of records: {where}: {fault['msg']}") from None
    except (OSError, ValueError) as error:
        raise InvalidLockError(f"{own} is not a file of records: {error}") from None
    return mine.model_copy(
        update={
            "files": {**records().files, **mine.files},
            "repositories": (*mine.repositories, *records().repositories),
            "systems": {**records().systems, **mine.systems},
        }
    )


def checked(file: Path, release: Release | None = None) -> Checked:
    """Hold every file and package of a lock file against the records.

    Args:
        file: the lock file; contradictions name it and the line.
        release: its content where the caller has read it already, or has completed it.

    Raises:
        InvalidLockError: the lock file, or the file of records beside it, cannot be used.
    """
    release = release or read_lock(file)
    records = records_for(file)
    lines = _Lines(text_of(file))
    rows: list[Row] = []
    for component, part in release.components.items():
        for artifact in part.artifacts:
            texts = [value for _, value in _values(artifact)]
            check = partial(_check_file, records, component, part.version, artifact)
            rows.append(_row(component, artifact.name, check, lines.of(texts)))
        for entry in part.packages:
            here = lines.of([*entry.names, *(value for _, value in _values(entry.repository))])
            for spec in entry.names:
                check = partial(_check_package, records, part, entry, spec)
                rows.append(_row(component, spec, check, here))
    return Checked(file, tuple(rows))


def _row(component: str, name: str, check: Callable[[], str], lines: dict[str, int]) -> Row:
    try:
        return Row(component, name, lines[name], "checked", check())
    except _NotRecordedError as error:
        return Row(component, name, lines[name], "open", str(error))
    except _ContradictionError as error:
        return Row(component, name, lines.get(error.text, lines[name]), "contradiction", str(error))


def _check_file(records: Records, component: str, version: str, artifact: Artifact) -> str:
    """The source that records exactly this file."""
    host = urlsplit(artifact.url).hostname or "" if artifact.url else ""
    record = records.files.get(artifact.name)
    hosts = {file.host for file in records.files.values()}
    if host and host not in hosts:
        raise _ContradictionError(artifact.url or "", f"no record knows the host {host}")
    if record is None:
        raise _ContradictionError(artifact.name, f"no record knows the file {artifact.name}")
    if host and record.host and host != record.host:
        raise _ContradictionError(artifact.url or "", f"{artifact.name} is at {record.host}, not {host}")
    _check_address(artifact, record)
    _check_systems(records, artifact, artifact.name)
    if (component, version) != (record.component, record.version):
        detail = f"{artifact.name} is {record.component} {record.version}, not {component} {version}"
        raise _ContradictionError(artifact.name, detail)
    if artifact.size and record.size and artifact.size != record.size:
        detail = f"{artifact.name} has {record.size:,} bytes, not {artifact.size:,}"
        raise _ContradictionError(artifact.name, detail)
    agreed = False
    for algorithm in ("sha256", "sha512"):
        ours: str | None = getattr(artifact, algorithm)
        theirs: str | None = getattr(record, algorithm)
        if ours and theirs and ours != theirs:
            detail = f"the {algorithm} of {artifact.name} is {ours[:16]}..., recorded is {theirs[:16]}..."
            raise _ContradictionError(ours, f"{detail} ({_source(records, record.source)})")
        agreed = agreed or bool(ours and ours == theirs)
    if not agreed:
        raise _NotRecordedError(f"no digest to compare: {_source(records, record.source)}")
    return _source(records, record.source)


def _check_address(artifact: Artifact, record: FileRecord) -> None:
    """Compare the addresses and the key of a file with its record."""
    path = urlsplit(artifact.url or "").path
    if path and record.path and path != record.path:
        raise _ContradictionError(artifact.url or "", f"{artifact.name} is at {record.path}, not {path}")
    signature = artifact.signature_url
    if signature and artifact.url and not signature.startswith(artifact.url):
        raise _ContradictionError(signature, f"{signature} is no signature of {artifact.url}")
    _check_key(artifact.name, artifact, [record.key_url] if record.key_url else [], record.key_fingerprint)


def _check_key(name: str, ours: Artifact | Repository, urls: Sequence[str], fingerprint: str | None) -> None:
    """Compare a key with what is recorded of it; what is not recorded is not compared."""
    if ours.key_fingerprint and fingerprint and ours.key_fingerprint != fingerprint:
        detail = f"the key of {name} is {fingerprint}, not {ours.key_fingerprint}"
        raise _ContradictionError(ours.key_fingerprint, detail)
    if ours.key_url and urls and ours.key_url not in urls:
        detail = f"the key of {name} is at {', '.join(urls)}, not {ours.key_url}"
        raise _ContradictionError(ours.key_url, detail)


def _check_package(records: Records, part: Component, entry: PackageSet, spec: str) -> str:
    """The source that records exactly this package for each system and processor of its row."""
    if not _has_version(part, entry):
        raise _ContradictionError(
            spec, f"no package here has version {part.version}: {', '.join(entry.names)}"
        )
    _check_systems(records, entry, spec)
    places = {f"{system}-{machine}" for system in entry.os for machine in entry.arch}
    if entry.repository is None:
        packages = [record for system in entry.os for record in _of_system(records, system)]
        label = f"the repositories of {', '.join(entry.os)}"
    else:
        repository = _repository(records, entry.repository, places)
        packages, label = list(repository.packages), repository.name
    name, version = _split(spec, {record.name for record in packages})
    named = [package for package in packages if package.name == name]
    if not named:
        raise _ContradictionError(spec, f"no record knows the package {name} in {label}")
    versions = dict.fromkeys(record.version for record in named if record.version)
    if version and versions and not any(fnmatchcase(record, version) for record in versions):
        raise _ContradictionError(
            spec, f"{label} has {name} {', '.join(versions)} by the records, not {version}"
        )
    exact = [record for record in named if not version or fnmatchcase(record.version or "", version)]
    missing = places - {place for record in exact for place in record.places}
    if missing:
        raise _NotRecordedError(f"no source names {spec} for {', '.join(sorted(missing))}")
    return _source(records, next(record.source for record in exact if places.intersection(record.places)))


def _check_systems(records: Records, row: Artifact | PackageSet, name: str) -> None:
    """Compare the systems of a row with those that any repository is recorded for."""
    if strange := sorted(set(row.os) - records.known_systems):
        raise _ContradictionError(name, f"no record knows the system {strange[0]} of {name}")


def _has_version(part: Component, entry: PackageSet) -> bool:
    """Return whether a package has the version of its component; the one without any has each."""
    if part.kind != "packages":
        return True
    numbered = [spec for spec in entry.names if re.search(r"[=-][0-9]", spec)]
    return not numbered or any(
        version in spec for spec in numbered for version in (part.version, part.version.replace(".", "-"))
    )


def _repository(records: Records, where: Repository, places: set[str]) -> RepositoryRecord:
    """The record of a package repository."""
    host = urlsplit(where.url).hostname
    address = where.url.rstrip("/")
    matches = [
        repository
        for repository in records.repositories
        if any(url.rstrip("/") == address for url in repository.urls)
    ]
    if not matches:
        hosts = {
            urlsplit(url).hostname
            for repository_record in records.repositories
            for url in repository_record.urls
        }
        what = f"the repository {where.url}" if host in hosts else f"the host {host}"
        raise _ContradictionError(where.url, f"no record knows {what}")
    record = matches[0]
    theirs = {place for url, them in record.urls.items() if url.rstrip("/") == address for place in them}
    if places - theirs:
        detail = f"{where.url} is for {', '.join(sorted(theirs))}, not {', '.join(sorted(places - theirs))}"
        raise _ContradictionError(where.url, detail)
    suites = record.suites or ("",)
    if (where.suite or "") not in suites:
        detail = f"no record knows the suite {where.suite!r} of {where.url}: {', '.join(record.suites)}"
        raise _ContradictionError(where.suite or where.url, detail)
    _check_key(record.name, where, record.key_urls, record.key_fingerprint)
    return record


def _of_system(records: Records, system: str) -> tuple[PackageRecord, ...]:
    return (*records.systems.get(system.rstrip("0123456789."), ()), *records.systems.get(system, ()))


def _split(spec: str, names: Iterable[str]) -> tuple[str, str]:
    """Name and version of `name=version` (apt) or `name-version` (dnf); no version is empty."""
    name, equals, version = spec.partition("=")
    if equals or spec in names:
        return name, version
    for package_name in sorted(names, key=len, reverse=True):
        if spec.startswith(f"{package_name}-") and spec[len(package_name) + 1 :][:1].isdigit():
            # a release may leave the package's own number out: `name-4.6.0` is `4.6.0-1`
            version = spec[len(package_name) + 1 :]
            return package_name, version if "-" in version or "*" in version else f"{version}-*"
    return re.sub(r"-[0-9].*$", "", spec), ""


def _source(all_records: Records, name: str) -> str:
    source = all_records.sources.get(name) or records().sources[name]
    return f"{source.what}, {source.date}"


def _values(what: Artifact | Repository | None) -> Iterator[tuple[str, str]]:
    """The texts of a row, by field."""
    if what:
        yield from ((key, text) for key, text in what.model_dump().items() if isinstance(text, str))


class _Lines:
    """State where texts stand in a lock file, as often as they are asked for in the order of the file."""

    def __init__(self, text: str) -> None:
        self._where: dict[str, list[int]] = defaultdict(list)
        for number, line in enumerate(text.splitlines(), start=1):
            for word in _STRING.findall(line):
                self._where[json.loads(word)].append(number)

    def of(self, texts: list[str]) -> dict[str, int]:
        """The line of each text at its next place."""
        result: dict[str, int] = {}
        for text in dict.fromkeys(texts):
            places = self._where[text]
            result[text] = places.pop(0) if len(places) > 1 else places[0] if places else 1
        return result

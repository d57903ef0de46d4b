"""Ask the sources of a release from this machine: every address, index, key and digest.

Nothing is installed, and a great file is not fetched: what an answer proves stands in it. `proven` is a
digest or a signed index; `there` is a file of the right kind and size whose digest nobody compared.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from ultracluster.software import Artifact, Release, Repository
from ultracluster.supply.artifacts import fetch
from ultracluster.supply.downloads import SMALL, DownloadError, Limits, download, head, limited
from ultracluster.supply.integrity import IntegrityError, NoGpgError, key_fingerprints
from ultracluster.supply.locking import asset_sha256
from ultracluster.supply.package_closure import ClosureError, Index
from ultracluster.supply.package_entries import is_apt

State = Literal["proven", "there", "differs", "gone", "unanswered", "not-asked"]
WHOLE = 8 << 20
"""Bytes up to which a file is fetched and its digest compared."""
_BEGINS = {
    ".tar.gz": b"\x1f\x8b",
    ".deb": b"!<arch>\n",
    ".rpm": b"\xed\xab\xee\xdb",
    ".zip": b"PK",
    ".whl": b"PK",
}
Places = Collection[tuple[str, str]]
"""Operating systems with processors (`uname -m`)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of a source about one file or package."""

    component: str
    what: str
    """The file, or the package with the address of its repository."""
    state: State
    """`proven`, `there`, `differs`, `gone`, `unanswered` or `not-asked`."""
    detail: str
    """Describe what the answer proves, or what is wrong."""

    @property
    def bad(self) -> bool:
        """Return whether nodes would not get what the release says."""
        return self.state in ("differs", "gone")


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """One file, or one repository with all that a release takes from it."""

    what: str
    components: tuple[str, ...]
    ask: Callable[[], list[Answer]]
    """Raises nothing that a source may cause."""


class _Spec(NamedTuple):
    component: str
    spec: str
    arch: str
    apt: bool


class _DiffersError(Exception):
    """Describe what a source has is not what the release says."""


def questions(
    release: Release,
    cache: Path,
    limits: Limits,
    *,
    needs: Mapping[str, Places] | None = None,
    answers_of_github: Callable[[str], str | None] = asset_sha256,
) -> Iterator[SourceQuestion]:
    """Every source of a release, each as one question.

    Args:
        cache: folder that keeps indexes of repositories between runs.
        limits: how long the questions may take; `until` counts for all of them together.
        needs: only these components, each for these systems and processors; None is everything.
        answers_of_github: the digest that GitHub itself keeps of a release asset.
    """
    repositories: dict[tuple[Repository | None, str], list[_Spec]] = defaultdict(list)
    seen: set[str] = set()
    for name, part in release.components.items():
        places = None if needs is None else needs.get(name, ())
        for artifact in part.artifacts:
            if artifact.name not in seen and _wanted(places, artifact.os, artifact.arch):
                seen.add(artifact.name)
                yield SourceQuestion(
                    artifact.name,
                    (name,),
                    lambda file=artifact, of=name: [_file(of, file, cache, limits, answers_of_github)],
                )
        for entry in part.packages:
            for system, arch in _wanted(places, entry.os, entry.arch):
                key = entry.repository, "" if entry.repository else system
                for spec in entry.names:
                    spec_row = _Spec(name, spec, arch, is_apt(system))
                    if spec_row not in repositories[key]:
                        repositories[key].append(spec_row)
    for (repository, system), specs in repositories.items():
        names = tuple(dict.fromkeys(spec_row.component for spec_row in specs))
        if repository is None:
            yield SourceQuestion(system, names, lambda of=specs, at=system: list(_of_system(of, at)))
        else:
            yield SourceQuestion(
                repository.url, names, lambda of=specs, at=repository: _repository(at, of, cache, limits)
            )


def _wanted(places: Places | None, os: Sequence[str], arch: Sequence[str]) -> list[tuple[str, str]]:
    if places is None:
        return [(system, machine) for system in os or ("",) for machine in arch]
    return [(system, machine) for system, machine in places if machine in arch and (not os or system in os)]


def _of_system(specs: list[_Spec], system: str) -> Iterator[Answer]:
    for name, spec in dict.fromkeys((spec_row.component, spec_row.spec) for spec_row in specs):
        detail = f"from {system}'s own repositories, which each node has set up for its Region"
        yield Answer(name, spec, "not-asked", detail)


def _failed(error: Exception) -> tuple[State, str]:
    """Return what an error means for a source."""
    match error:
        case DownloadError(status=int(status)) if status in (401, 403, 404, 410):
            return "gone", str(error)
        case IntegrityError() | ClosureError() | _DiffersError():
            return "differs", str(error)
        case NoGpgError() | ImportError():
            return "not-asked", str(error)
        case _:
            return "unanswered", str(error)


_EXPECTED = (
    *(DownloadError, IntegrityError, NoGpgError, ClosureError, _DiffersError, OSError, ImportError),
    *(ValueError, EOFError),
)
"""ValueError and EOFError: an index that is cut or is no index at all."""


def _file(
    component: str,
    artifact: Artifact,
    cache: Path,
    limits: Limits,
    answers_of_github: Callable[[str], str | None],
) -> Answer:
    if artifact.url is None:
        detail = "pip fetches it from the index that it is set up for: `ultracluster software lock` does so"
        return Answer(component, artifact.name, "not-asked", detail)
    try:
        with limited(limits):
            state, detail = _looked_at(artifact, artifact.url, cache, answers_of_github)
    except _EXPECTED as error:
        state, detail = _failed(error)
    return Answer(component, artifact.name, state, detail)


def _looked_at(
    artifact: Artifact, url: str, cache: Path, answers_of_github: Callable[[str], str | None]
) -> tuple[State, str]:
    answer = head(url)
    if answer.is_page:
        raise _DiffersError(f"{url} answers with a web page and not with {artifact.name}")
    begins = next((start for end, start in _BEGINS.items() if artifact.name.endswith(end)), b"")
    if not answer.first.startswith(begins):
        raise _DiffersError(f"{url} does not begin like {artifact.name}: {answer.first[:8]!r}")
    if artifact.size and answer.size not in (None, artifact.size):
        raise _DiffersError(f"{url} has {answer.size:,} bytes, the release records {artifact.size:,}")
    if artifact.digest and answer.size is not None and answer.size <= WHOLE:
        with tempfile.TemporaryDirectory(prefix="ultracluster-") as folder:
            fetch(artifact, Path(folder))
        return "proven", f"its {artifact.digest[0]} is the release's" + _signed(artifact)
    if artifact.signature_url and artifact.key_url and artifact.key_fingerprint:
        _pinned(artifact.key_url, artifact.key_fingerprint)
        if head(artifact.signature_url).is_page:
            raise _DiffersError(f"{artifact.signature_url} answers with a web page and not with a signature")
    size = f"{answer.size:,} bytes" if answer.size is not None else "of unknown size"
    try:
        published = answers_of_github(url)
    except DownloadError:
        published = None
    if published and artifact.sha256:
        if published != artifact.sha256:
            raise _DiffersError(
                f"GitHub's API has sha256 {published[:16]}... of {artifact.name}, "
                f"the release {artifact.sha256[:16]}..."
            )
        return "proven", f"GitHub's API has the release's sha256; {size}"
    nothing = "" if artifact.digest else "; the release has no digest of it, so nodes refuse it"
    if artifact.integrity == "signature":
        nothing = "; signature and pinned key are there" + ("" if artifact.digest else ", no digest is")
    return "there", f"{size}; its content was not compared{nothing}"


def _signed(artifact: Artifact) -> str:
    return ", and its signature is of the pinned key" if artifact.signature_url else ""


def _pinned(key_url: str, fingerprint: str) -> None:
    """Check that the key at an address is the pinned one."""
    with tempfile.TemporaryDirectory(prefix="ultracluster-") as folder:
        key = Path(folder) / "key"
        download(key_url, key, most=SMALL)
        fingerprints = key_fingerprints(key)
    if fingerprint not in fingerprints:
        raise _DiffersError(f"{key_url} is key {', '.join(fingerprints)}, the release pins {fingerprint}")


def _repository(where: Repository, specs: list[_Spec], cache: Path, limits: Limits) -> list[Answer]:
    def all_of_them(state: State, detail: str) -> list[Answer]:
        pairs = dict.fromkeys((spec_row.component, spec_row.spec) for spec_row in specs)
        return [Answer(name, f"{spec} at {where.url}", state, detail) for name, spec in pairs]

    if not (where.key_url and where.key_fingerprint):
        return all_of_them("differs", f"{where.url} has no pinned key: nodes refuse it")
    answers: list[Answer] = []
    try:
        with limited(limits):
            _pinned(where.key_url, where.key_fingerprint)
            for arch in dict.fromkeys(spec_row.arch for spec_row in specs):
                index = _index(where, arch, specs[0].apt, cache)
                for spec_row in specs:
                    if spec_row.arch == arch:
                        answers.append(_package(spec_row, where, index))
    except _EXPECTED as error:
        return all_of_them(*_failed(error))
    return answers


def _index(where: Repository, arch: str, apt: bool, cache: Path) -> Index:
    """Return what a repository has, signed by the pinned key."""
    try:
        # they need the extra `mirror`
        from ultracluster.supply import apt_repository, dnf_repository
    except ImportError as error:
        raise ImportError(f"reading package indexes needs ultracluster[mirror] ({error})") from None
    key_url, fingerprint = where.key_url or "", where.key_fingerprint or ""
    if apt:
        index = apt_repository.new_index()
        source = apt_repository.AptSource(where.url, where.suite or "/", key_url, fingerprint)
        apt_repository.read(source, arch, cache, index)
    else:
        index = dnf_repository.new_index()
        dnf_repository.read(where.url, key_url, fingerprint, arch, cache, index)
    return index


def _package(asked_spec: _Spec, where: Repository, index: Index) -> Answer:
    """Return whether a signed index has a package, and whether its file answers."""
    what = f"{asked_spec.spec} at {where.url}"
    matches = index.matching(asked_spec.spec, where.url)
    if not matches:
        name = asked_spec.spec.partition("=")[0]
        others = [package.version for package in index.named(name)][:3]
        has = f"it has {name} {', '.join(others)}" if others else f"it has no {name} at all"
        detail = f"the signed index has no {asked_spec.spec} for {asked_spec.arch}: {has}"
        return Answer(asked_spec.component, what, "differs", detail)
    package = matches[0]
    try:
        answer = head(package.url)
    except DownloadError as error:
        return Answer(asked_spec.component, what, *_failed(error))
    if answer.is_page or answer.size not in (None, package.size):
        detail = f"{package.url} is not the file of {package.size:,} bytes that the signed index lists"
        return Answer(asked_spec.component, what, "differs", detail)
    host = urlsplit(where.url).hostname
    detail = f"{package.version} is in the index that {host} signs with the pinned key, and its file answers"
    return Answer(asked_spec.component, what, "proven", detail)

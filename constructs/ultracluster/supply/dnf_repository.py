"""dnf repositories: signed index, verified, and the index of a part of them.

Trust goes from the pinned key to `repomd.xml`, from there by checksum to `primary.xml`, and from there to
each package. What Amazon Linux 2023 itself has is in no mirror: its repositories are S3 buckets of the
Region, which nodes reach through the gateway endpoint (Amazon Linux 2023 User Guide).
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from univers.rpm import vercmp  # pyright: ignore[reportUnknownVariableType]

from ultracluster.software import Artifact
from ultracluster.supply.artifacts import fetch
from ultracluster.supply.downloads import SMALL, download
from ultracluster.supply.integrity import IntegrityError, check_signature
from ultracluster.supply.package_closure import Index, Need, Package

_COMMON, _REPO, _RPM = (f"http://linux.duke.edu/metadata/{name}" for name in ("common", "repo", "rpm"))
_OPERATORS = {"LT": "<", "LE": "<=", "EQ": "=", "GE": ">=", "GT": ">"}


def compare(first: str, second: str) -> int:
    """rpm's order of `epoch:version-release`; a release counts only where both have one."""
    left, right = _parts(first), _parts(second)
    for a, b in zip(left, right, strict=True):
        order: int = vercmp(a, b) if a and b else 0
        if order:
            return order
    return 0


def _parts(version: str) -> tuple[str, str, str]:
    epoch, colon, rest = version.rpartition(":")
    number, _, release = rest.partition("-")
    return (epoch if colon else "0"), number, release


def new_index() -> Index:
    """An empty index; what it does not have, the node's own repositories have."""
    return Index(compare, strict=False)


def read(url: str, key_url: str, key_fingerprint: str, arch: str, cache: Path, index: Index) -> None:
    """Put what the repository at `url` has for a processor into `index`.

    Args:
        arch: as `uname -m` names it.

    Raises:
        DownloadError: it does not answer, or has no signature.
        IntegrityError: it is not signed by the key, or not what its signed part says.
        NoGpgError: there is no `gpg`.
    """
    base = url.rstrip("/")
    place = cache / "indexes" / hashlib.sha256(base.encode()).hexdigest()[:16]
    files = {name: place / name for name in ("repomd.xml", "repomd.xml.asc", "key")}
    for (name, file), address in zip(
        files.items(),
        (f"{base}/repodata/repomd.xml", f"{base}/repodata/repomd.xml.asc", key_url),
        strict=True,
    ):
        file.with_name(f"{name}.part").unlink(missing_ok=True)  # half of an older one would be mixed in
        file.unlink(missing_ok=True)
        download(address, file, most=SMALL)
    try:
        check_signature(files["repomd.xml"], files["repomd.xml.asc"], files["key"], key_fingerprint)
    except IntegrityError as error:
        raise IntegrityError(f"{base}/repodata/repomd.xml: {error}") from None
    for entry in _primary(base, files["repomd.xml"], cache).iterfind(f"{{{_COMMON}}}package"):
        if _text(entry, "arch") in (arch, "noarch"):
            index.add(
                _text(entry, "name"),
                [row.get("name", "") for row in _rows(entry, "provides")],
                partial(_package, entry, url, base),
            )


def _primary(base: str, repomd: Path, cache: Path) -> ElementTree.Element:
    # only what the pinned key has signed comes to this parser
    data = ElementTree.parse(repomd).getroot().find(f"{{{_REPO}}}data[@type='primary']")  # noqa: S314
    checksum = data.find(f"{{{_REPO}}}checksum") if data is not None else None
    location = data.find(f"{{{_REPO}}}location") if data is not None else None
    if checksum is None or location is None or checksum.get("type") != "sha256":
        raise IntegrityError(f"{base}/repodata/repomd.xml names no primary index with a SHA-256")
    path = location.get("href", "")
    openers = {".gz": gzip.decompress, ".xz": lzma.decompress, ".xml": bytes}
    opener = openers.get(Path(path).suffix)
    if opener is None:
        raise IntegrityError(f"{base}/{path} is not compressed with gzip or xz: it cannot be read")
    artifact = Artifact.model_validate(
        {
            "os": ["al2023"],
            "arch": ["x86_64"],
            "url": f"{base}/{path}",
            "name": path.rpartition("/")[2],
            "sha256": checksum.text,
            "integrity": "checksum",
        }
    )
    return ElementTree.fromstring(opener(fetch(artifact, cache)[0].read_bytes()))  # noqa: S314 - verified


def _package(entry: ElementTree.Element, repository: str, base: str) -> Package:
    name = _text(entry, "name")
    version = _version(entry.find(f"{{{_COMMON}}}version"))
    checksum, size, location = (
        entry.find(f"{{{_COMMON}}}{part}") for part in ("checksum", "size", "location")
    )
    if checksum is None or size is None or location is None or checksum.get("type") != "sha256":
        raise IntegrityError(f"{repository} records no SHA-256 of {name} {version}")
    bare = version.partition("-")[0].rpartition(":")[2], version.rpartition(":")[2]
    return Package(
        name=name,
        version=version,
        url=f"{location.get(_XML_BASE, base).rstrip('/')}/{location.get('href', '')}",
        size=int(size.get("package", "0")),
        sha256=checksum.text or "",
        repository=repository,
        needs=tuple((_need(row),) for row in _rows(entry, "requires")),
        provides=tuple((row.get("name", ""), _version(row)) for row in _rows(entry, "provides")),
        record=ElementTree.tostring(entry, encoding="unicode"),
        specs=tuple(f"{name}-{spec}" for spec in dict.fromkeys((*bare, version))),
    )


_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"


def _rows(entry: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return entry.findall(f"{{{_COMMON}}}format/{{{_RPM}}}{kind}/{{{_RPM}}}entry")


def _text(entry: ElementTree.Element, name: str) -> str:
    return entry.findtext(f"{{{_COMMON}}}{name}", "")


def _version(row: ElementTree.Element | None) -> str:
    if row is None or not row.get("ver"):
        return ""
    epoch, release = row.get("epoch", "0"), row.get("rel", "")
    return f"{f'{epoch}:' if epoch != '0' else ''}{row.get('ver')}{f'-{release}' if release else ''}"


def _need(row: ElementTree.Element) -> Need:
    operator = _OPERATORS.get(row.get("flags", ""), "")
    return Need(row.get("name", ""), operator, _version(row) if operator else "")


def written(packages: Sequence[tuple[Package, str]]) -> dict[str, str]:
    """The index of these packages in one folder, by path in it.

    Args:
        packages: each with the path of its file below the index.
    """
    for prefix, namespace in (("", _COMMON), ("rpm", _RPM)):
        ElementTree.register_namespace(prefix, namespace)
    metadata = ElementTree.Element(f"{{{_COMMON}}}metadata", {"packages": str(len(packages))})
    for package, file in packages:
        entry = ElementTree.fromstring(package.record)  # noqa: S314 - of a verified index
        for location in entry.findall(f"{{{_COMMON}}}location"):
            location.attrib = {"href": file}
        metadata.append(entry)
    primary = ElementTree.tostring(metadata, encoding="unicode", xml_declaration=False)
    primary = f'<?xml version="1.0" encoding="UTF-8"?>\n{primary}\n'
    digest = hashlib.sha256(primary.encode()).hexdigest()
    repomd = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<repomd xmlns="{_REPO}"><revision>0</revision><data type="primary">'
        f'<checksum type="sha256">{digest}</checksum><location href="repodata/primary.xml"/>'
        f"<timestamp>0</timestamp><size>{len(primary.encode())}</size></data></repomd>\n"
    )
    return {"repodata/primary.xml": primary, "repodata/repomd.xml": repomd}

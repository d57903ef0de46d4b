"""One archive of what an examination found, for AWS Support: without secrets, without names of people.

bundle = make_bundle(found, papers, redaction, environment="prod", versions={...})
bundle.entries       # name, bytes and digest of each file
bundle.archive()     # a .tar.gz, the same bytes for the same content
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from ultracluster.account.doctor.bundle_sources import Papers
from ultracluster.account.doctor.examination import Examination, Source
from ultracluster.account.doctor.redaction import Redaction

LARGEST = 2 << 20
"""Characters of one file; of a longer text the end is kept, as in a log."""
ROOT = "ultracluster-bundle"
_MANIFEST, _README = "manifest.json", "README.txt"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the archive."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files that may leave the account.

    Attributes:
        files: content by name, in their order.
        sources: what was asked, and how it ended.
        removed: how many secrets of each kind are no longer there.
        pseudonyms: names by pseudonym; not in the files.
    """

    files: Mapping[str, bytes]
    sources: list[Source]
    removed: Mapping[str, int]
    pseudonyms: Mapping[str, str]

    @property
    def entries(self) -> list[Entry]:
        return [Entry(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in self.files.items()]

    @property
    def silent(self) -> list[Source]:
        """Sources that did not answer."""
        return [one for one in self.sources if one.state == "not readable"]

    def archive(self) -> bytes:
        """The files as .tar.gz; nothing in it depends on when, where and by whom it is made."""
        written = io.BytesIO()
        with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name, data in self.files.items():
                member = tarfile.TarInfo(f"{ROOT}/{name}")
                member.size, member.mode = len(data), 0o644
                archive.addfile(member, io.BytesIO(data))
        return gzip.compress(written.getvalue(), mtime=0)


def make_bundle(
    found: Examination,
    papers: Papers,
    redaction: Redaction,
    *,
    environment: str,
    versions: Mapping[str, Any],
) -> Bundle:
    """Put together what may be shown.

    Args:
        papers: files of further sources; those of one that has not answered are left out.
        redaction: knows names of people; learns those that the texts have.
        versions: what the environment runs, and who has made the bundle.
    """
    raw = _raw(found, papers) | {"versions.json": dict(versions)}
    for content in raw.values():
        redaction.learn(content if isinstance(content, str) else _json(content))
    for one in found.sources:
        redaction.learn(f"{one.name}\n{one.why}")
    files: dict[str, bytes] = {}
    for name in sorted(raw):
        content = raw[name]
        if isinstance(content, str):
            clean = redaction.text(_end(content))
        else:
            clean = _json(redaction.value(json.loads(_json(content))))
        files[_file_name(redaction.text(name), files)] = clean.encode("utf-8", "replace")
    sources = [Source(redaction.text(one.name), one.state, redaction.text(one.why)) for one in found.sources]
    bundle = Bundle(files, sources, dict(redaction.removed), redaction.pseudonyms)
    manifest = {
        "environment": redaction.text(environment),
        "files": [asdict(one) for one in bundle.entries],
        "sources": [asdict(one) for one in sources],
        "not_answered": [one.name for one in bundle.silent],
        "removed": dict(sorted(redaction.removed.items())),
    }
    head = {_README: _readme(bundle).encode(), _MANIFEST: _json(manifest).encode()}
    return Bundle(head | files, sources, bundle.removed, redaction.pseudonyms)


def _raw(found: Examination, papers: Papers) -> dict[str, Any]:
    labels = found.labels
    raw: dict[str, Any] = {
        "facts.json": [asdict(fact) for fact in found.facts],
        "causes.json": [
            {
                "id": one.failure.id,
                "cause": one.failure.cause,
                "evidence": [labels[number] for number in one.evidence],
                "sources": list(one.failure.sources),
            }
            for one in found.diagnoses
        ],
    }
    raw |= {f"logs/{name}.tail.log": "\n".join(lines) for name, lines in found.logs.items()}
    if found.quotes:
        raw["given.log"] = "\n".join(one.text for one in found.quotes)
    for asked, files in papers.values():
        if asked.ended.is_set() and asked.source and asked.source.state == "read":
            raw |= files
    return raw


def _end(text: str) -> str:
    """The last lines: a line that is cut could hold half a secret."""
    return text if len(text) <= LARGEST else text[-LARGEST:].partition("\n")[2]


def _readme(bundle: Bundle) -> str:
    lines = [
        "What `ultracluster doctor --bundle` found of a cluster on AWS. causes.json has the likely causes,",
        "facts.json what each source said; manifest.json lists files, sources and what was removed.",
        "",
        "[removed: KIND] stands for a secret. user-XXXXXXXX is a person, the same one everywhere; who sent",
        "this can find out who it is. Account ids, resource ids and private addresses are as they were.",
        "",
        "Not answered:" if bundle.silent else "Every source answered.",
        *(f"  {one.name}: {one.why}" for one in bundle.silent),
    ]
    return "\n".join(lines) + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=_plain) + "\n"


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _file_name(name: str, taken: Mapping[str, bytes]) -> str:
    """A name that no program takes for a way out of its folder, once."""
    parts = [re.sub(r"[^\w.=-]", "_", part).strip(".") or "_" for part in name.split("/") if part]
    plain = "/".join(parts)[-180:].lstrip("/")
    number, free = 1, plain
    while free in taken or free in (_MANIFEST, _README):
        number += 1
        free = f"{plain}.{number}"
    return free

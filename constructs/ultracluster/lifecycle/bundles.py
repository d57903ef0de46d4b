"""What the nodes of one group are given: the scripts that they run and their `cluster.json`.

As a folder, or as one file that unpacks itself where nodes are handed a file. The same scripts and
configuration give the same bytes on every machine and with every version of Python and zlib: the checksum is
part of what a deployment compares, and another one replaces nodes.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tarfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ultracluster.lifecycle.selection import files_of, tool_files
from ultracluster.scripts_folder import CONFIGURATION, name_in_folder, own_step, scripts_folder

HEAD = "files/self_extracting.sh"
"""Unpacks what follows its last line, and runs the entry that its first argument names."""
_NAME = 12
"""Digits of a hash that name a folder."""
_LARGEST_BLOCK = 0xFFFF  # of deflate, stored
NODE_FILE = "node.sh"
"""All scripts of a group in one file, below its prefix."""
OWN_STEPS = "own_steps"
"""Folder of the team's own steps among the scripts."""
TOOLS = "tools"
"""Where the proofs for people lie next to the folders of the groups; always the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Files for one folder in S3.

    Attributes:
        folder: its name below that of the cluster: the hash of the content, or `tools`.
        files: content by path.
        configuration: written as `cluster.json` next to them, completed by what is known only after deploy;
            None where the files hold all.
        sha256: 64 hex digits: of the one file, as PCS's `Checksum` takes them, or of the scripts and the
            configuration of a folder, whose first twelve are its name; empty for others.
    """

    folder: str
    files: Mapping[str, bytes]
    configuration: Mapping[str, Any] | None = None
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFiles:
    """The scripts of one way to boot nodes: read once, however many groups boot so."""

    root: Path
    paths: Sequence[Path]

    @classmethod
    def of(cls, *entries: str, release: object = None, also: Sequence[str] = ()) -> NodeFiles:
        """What nodes with these entries (without `.sh`) read.

        Args:
            release: as their `cluster.json` names it; every release where it names none.
            also: further files, by their path among the scripts.

        Raises:
            ValueError: an entry, the release or a file does not exist.
        """
        root = scripts_folder()
        named = release if isinstance(release, str) else None
        return cls(root=root, paths=files_of(root, entries, release=named, also=also))

    def bundles(
        self, by_group: Mapping[str, Mapping[str, Any]], groups: Iterable[str], *, one_file: bool = False
    ) -> dict[str, Bundle]:
        """What each of the groups is given, by group.

        Args:
            by_group: `cluster.json` by group.
            groups: those that run scripts.
            one_file: nodes are handed one file instead of a folder.

        Raises:
            ValueError: a group has no configuration.
        """
        names = list(groups)
        if missing := [name for name in names if name not in by_group]:
            raise ValueError(f"there is no script configuration of the group {', '.join(missing)}")
        make = self.in_one_file if one_file else self.in_folder
        return {name: make(by_group[name]) for name in names}

    def in_folder(self, configuration: Mapping[str, Any]) -> Bundle:
        """Every file by its own, with `cluster.json` next to them."""
        sha256 = content_digest(self.root, self.paths, configuration)
        return Bundle(
            folder=sha256[:_NAME],
            files=_contents(self.root, self.paths) | own_steps_of(configuration),
            configuration=configuration,
            sha256=sha256,
        )

    def in_one_file(self, configuration: Mapping[str, Any]) -> Bundle:
        """One file that unpacks itself, for nodes that are handed a file and its checksum."""
        text = one_file(self.root, dict(configuration), self.paths)
        return Bundle(
            folder=content_hash(self.root, self.paths, configuration),
            files={NODE_FILE: text.content},
            sha256=text.sha256,
        )


def own_steps_of(configuration: Mapping[str, Any]) -> dict[str, bytes]:
    """The team's own steps that a `cluster.json` names, by their path among the scripts.

    Their digests are part of it, so they are in the hash of the scripts, too.
    """
    groups: Mapping[str, Mapping[str, Any]] = configuration.get("node_groups") or {}
    steps: list[Mapping[str, str]] = [step for group in groups.values() for step in group.get("steps") or ()]
    return {f"{OWN_STEPS}/{step['file']}": own_step(step["sha256"]) for step in steps}


def tools(configuration: Mapping[str, Any]) -> list[Bundle]:
    """What people run on nodes, with a `cluster.json` that tells of all groups; nothing without one."""
    root = scripts_folder()
    if not configuration:
        return []
    return [Bundle(folder=TOOLS, files=_contents(root, tool_files(root)), configuration=configuration)]


def configuration_text(configuration: Mapping[str, Any]) -> bytes:
    """`cluster.json` as it is uploaded."""
    return json.dumps(configuration, sort_keys=True, indent=1).encode()


def _contents(root: Path, paths: Sequence[Path]) -> dict[str, bytes]:
    return {name_in_folder(root, path): path.read_bytes() for path in paths}


def content_hash(folder: Path, files: Sequence[Path], configuration: Mapping[str, Any]) -> str:
    """Twelve hex digits that change when one of the files, its mode or the configuration changes."""
    return content_digest(folder, files, configuration)[:_NAME]


def content_digest(folder: Path, files: Sequence[Path], configuration: Mapping[str, Any]) -> str:
    """All 64 hex digits of it."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(name_in_folder(folder, file).encode() + b"\0")
        digest.update(b"x" if file.stat().st_mode & 0o100 else b"-")
        digest.update(file.read_bytes() + b"\0")
    digest.update(json.dumps(configuration, sort_keys=True).encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class OneFile:
    """The file and its digest."""

    content: bytes
    sha256: str
    """64 hex digits, as PCS's `Checksum` takes them."""


def one_file(folder: Path, configuration: dict[str, Any], files: Sequence[Path]) -> OneFile:
    """Scripts of `folder` and `configuration` as `cluster.json` behind a head that unpacks them.

    Called as `FILE ENTRY [ARGUMENT...]`, where an entry is a script directly below the folder, without `.sh`.

    Args:
        folder: the lifecycle scripts.
        configuration: what the scripts must know, all known at synth.
        files: those of the folder that the nodes run.
    """
    head = (folder / HEAD).read_bytes()
    content = head + _stored(_archive(folder, configuration, files))
    return OneFile(content=content, sha256=hashlib.sha256(content).hexdigest())


def _archive(folder: Path, configuration: dict[str, Any], files: Sequence[Path]) -> bytes:
    """A tar archive without anything that differs between machines: times, owners, order."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for file in files:
            name = name_in_folder(folder, file)
            if name not in (HEAD, CONFIGURATION):
                _add(archive, name, file.read_bytes(), executable=bool(file.stat().st_mode & 0o100))
        for name, content in sorted(own_steps_of(configuration).items()):
            _add(archive, name, content, executable=False)
        text = json.dumps(configuration, sort_keys=True, indent=1)
        _add(archive, CONFIGURATION, text.encode(), executable=False)
    return data.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes, *, executable: bool) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    member.mode = 0o755 if executable else 0o644
    archive.addfile(member, io.BytesIO(content))


def _stored(data: bytes) -> bytes:
    """`data` as gzip without compression (RFC 1951, 1952): what a compressor writes is its release's own."""
    blocks = [data[start : start + _LARGEST_BLOCK] for start in range(0, len(data), _LARGEST_BLOCK)]
    body = b"".join(
        struct.pack("<BHH", number == len(blocks), len(block), len(block) ^ 0xFFFF) + block
        for number, block in enumerate(blocks, start=1)
    )
    header = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    return header + body + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFF_FFFF)


__all__ = [
    "CONFIGURATION",
    "HEAD",
    "NODE_FILE",
    "TOOLS",
    "Bundle",
    "NodeFiles",
    "OneFile",
    "configuration_text",
    "content_hash",
    "one_file",
    "tools",
]

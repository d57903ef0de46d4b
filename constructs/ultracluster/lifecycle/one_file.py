"""Lifecycle scripts as one file that unpacks itself, where nodes are handed a file and not a folder.

The same scripts and configuration give the same bytes on every machine and with every version of Python and
zlib: the checksum is part of what a deployment compares, and another one replaces nodes.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ultracluster.scripts_folder import CONFIGURATION, name_in_folder

HEAD = "files/self_extracting.sh"
"""Unpacks what follows its last line, and runs the entry that its first argument names."""
_LARGEST_BLOCK = 0xFFFF  # of deflate, stored


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

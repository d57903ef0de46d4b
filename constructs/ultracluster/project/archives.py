"""Reads tar archives without writing outside of the folder that they are for.

`TarFile.extractall(filter="data")` does so from Python 3.11.4 on; Debian 12 has 3.11.2.
"""

from __future__ import annotations

from pathlib import Path
from tarfile import TarFile


def extract(archive: TarFile, folder: Path) -> None:
    """Write the files, folders and symbolic links of an archive to a folder, executable where they were.

    Raises:
        ValueError: something in the archive is of another kind, or would be outside of the folder.
    """
    root = folder.resolve()
    for member in archive:
        place = root / member.name
        target = place.parent / member.linkname if member.issym() else place
        if not (place.resolve().is_relative_to(root) and target.resolve().is_relative_to(root)):
            raise ValueError(f"{member.name} leads out of the archive")
        if member.isdir():
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if member.issym():
            place.symlink_to(member.linkname)
        elif content := archive.extractfile(member) if member.isreg() else None:
            place.write_bytes(content.read())
            place.chmod(0o755 if member.mode & 0o100 else 0o644)
        else:
            raise ValueError(f"{member.name} is no file, folder or symbolic link")

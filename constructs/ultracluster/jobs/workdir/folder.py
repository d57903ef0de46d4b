"""Files of a working folder that travel, and their archive: the same content is the same bytes.

Names, contents, links and the executable bit count. Times, owners, other bits of the mode, empty folders and
the order on the disk do not. The archive is not compressed: what zlib writes differs between versions.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ultracluster.config.file_text import opened, text_of
from ultracluster.config.plain_text import clipped, one_line

IGNORE_FILES = (".gitignore", ".ultraclusterignore")
"""In each folder; a line of the second counts more than those of the first."""
NEVER = (".git", ".hg", ".svn")
"""Folders that no ignore file has to name."""
MOST_FILES = 100_000
"""Each is a file on Lustre's metadata server, and made again for each version of the folder."""
MOST_MB = 5000
"""S3 takes 5 GB in one request, whose checksum is that of the whole (S3 User Guide, "Uploading objects")."""
_MB = 1_000_000
Ignored = Callable[[str], bool | None]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a link of a folder."""

    name: str
    """Path below the folder, with `/`."""
    size: int
    executable: bool = False
    link: str = ""
    """Target, as it is written; empty for a file."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Files and links that travel."""

    path: Path
    entries: tuple[Entry, ...]
    """In the order of their names."""

    @property
    def size(self) -> int:
        return sum(one.size for one in self.entries)


def read_folder(path: Path, *, limit_mb: int) -> Folder:
    """Look at a folder; no file is read but those that say what is ignored.

    Args:
        path: the folder.
        limit_mb: megabytes that its files may have together.

    Raises:
        ValueError: it cannot travel; one line says what is in the way, and what to do.
    """
    try:
        root = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not root.is_dir():
        raise ValueError(f"{path}: is no folder")
    if root == Path.home().resolve() or root in Path.home().resolve().parents:
        raise ValueError(
            f"{path}: is or holds your home folder, where keys and tokens lie: name the project's folder"
        )
    found: list[Entry] = []
    size, largest = 0, dict[str, int]()
    for one in _walk(root, path):
        found.append(one)
        size += one.size
        top = one.name.partition("/")[0]
        largest[top] = largest.get(top, 0) + one.size
        if size > limit_mb * _MB or len(found) > MOST_FILES:
            raise ValueError(_too_large(path, limit_mb, len(found) > MOST_FILES, largest))
    if not found:
        raise ValueError(f"{path}: holds no file that is not ignored")
    return Folder(root, tuple(sorted(found, key=lambda one: one.name.encode())))


def write_archive(folder: Folder, file: io.BufferedRandom | io.BytesIO) -> str:
    """Write the archive; its SHA-256.

    Args:
        file: empty, open for reading and writing.

    Raises:
        ValueError: a file is not any more what it was, or cannot be read.
        OSError: the archive cannot be written.
    """
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8") as archive:
        for one in folder.entries:
            member = tarfile.TarInfo(one.name)  # time, owner and group are 0 in it
            if one.link:
                member.type, member.linkname, member.mode = tarfile.SYMTYPE, one.link, 0o777
                archive.addfile(member)
                continue
            member.size, member.mode = one.size, 0o555 if one.executable else 0o444
            _add(archive, member, folder.path / one.name)
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return digest


def _add(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    try:
        content = opened(path, member.size)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    with content:
        if os.fstat(content.fileno()).st_size != member.size:
            raise ValueError(f"{path}: changed while it was read; submit it again when nothing writes there")
        try:
            archive.addfile(member, content)
        except OSError as error:
            if "unexpected end of data" not in str(error):
                raise
            raise ValueError(f"{path}: became shorter while it was read; submit it again") from None


def _walk(root: Path, named: Path) -> Iterator[Entry]:
    """Files and links that are not ignored.

    Args:
        root: the folder.
        named: how the person wrote it.
    """
    pending: list[tuple[str, tuple[tuple[int, Ignored], ...]]] = [("", ())]
    while pending:
        below, rules = pending.pop()
        place = root / below
        try:
            with os.scandir(place) as listing:
                children = sorted(listing, key=lambda one: one.name)
        except OSError as error:
            raise ValueError(f"{named / below}: cannot be read ({error.strerror}): ignore it") from None
        names = {one.name for one in children}
        if rule := _rule(place, names):
            rules = (*rules, (len(below), rule))
        folders: list[str] = []
        for one in children:
            name = f"{below}{one.name}"
            is_folder = one.is_dir(follow_symlinks=False)
            if (is_folder and one.name in NEVER) or _ignored(rules, f"{name}/" if is_folder else name):
                continue
            if not name.isprintable():
                raise ValueError(
                    f"{one_line(repr(name))}: a name that is not printable UTF-8 does not travel: rename or "
                    "ignore it"
                )
            if is_folder:
                folders.append(f"{name}/")
            else:
                yield _entry(one, name, root, named)
        pending += [(one, rules) for one in reversed(folders)]


def _entry(one: os.DirEntry[str], name: str, root: Path, named: Path) -> Entry:
    shown = one_line(str(named / name))
    try:
        about = one.stat(follow_symlinks=False)
        if stat.S_ISLNK(about.st_mode):
            return Entry(name, 0, link=_link(Path(one.path), shown, root))
    except OSError as error:
        raise ValueError(f"{shown}: cannot be read ({error.strerror}): ignore it") from None
    if not stat.S_ISREG(about.st_mode):
        raise ValueError(f"{shown}: is a pipe, socket or device, and does not travel: ignore it")
    return Entry(name, about.st_size, executable=bool(about.st_mode & stat.S_IXUSR))


def _link(path: Path, shown: str, root: Path) -> str:
    """Target of a link, which is inside of the folder."""
    target = str(path.readlink())
    inside = not target.startswith("/") and Path(os.path.realpath(path)).is_relative_to(root)
    if not inside or not target.isprintable():
        raise ValueError(
            f"{shown}: leads outside of the folder, to {clipped(one_line(repr(target)), 200)}: ignore it, or "
            "put a copy in its place"
        )
    return target


def _rule(place: Path, names: set[str]) -> Ignored | None:
    """Rule of the ignore files of a folder; None where it has none."""
    lines: list[str] = []
    for name in IGNORE_FILES:
        if name not in names:
            continue
        try:
            lines += text_of(place / name).splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", "it is not UTF-8")
            raise ValueError(f"{place / name}: cannot be read ({why})") from None
    if not any(line.strip() for line in lines):
        return None
    try:
        from pathspec import GitIgnoreSpec
    except ModuleNotFoundError:
        raise ValueError(
            f"{place}: reading its ignore file requires a package: pip install 'ultracluster[workdir]'"
        ) from None
    try:
        spec = GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        why = one_line(str(error))
        raise ValueError(f"{place}: a line of its ignore file is no pattern ({why})") from None
    return lambda name: spec.check_file(name).include


def _ignored(rules: tuple[tuple[int, Ignored], ...], name: str) -> bool:
    """True if the nearest ignore file that decides on it ignores it."""
    for start, rule in reversed(rules):
        said = rule(name[start:])
        if said is not None:
            return said
    return False


def _too_large(path: Path, limit_mb: int, many: bool, sizes: dict[str, int]) -> str:
    top = sorted(sizes.items(), key=lambda one: (-one[1], one[0]))[:3]
    parts = ", ".join(f"{one_line(name)} ({size / _MB:,.0f} MB)" for name, size in top)
    what = f"{MOST_FILES:,} files" if many else f"{limit_mb:,} MB"
    less = "" if many else f", or raise --workdir-limit (at most {MOST_MB:,} MB)"
    return (
        f"{path}: has more than {what}. Largest until there: {parts}. List data in "
        f"{IGNORE_FILES[1]}{less}; data belongs on Lustre or in S3"
    )


__all__ = ["IGNORE_FILES", "MOST_FILES", "MOST_MB", "Entry", "Folder", "read_folder", "write_archive"]

"""A working folder: what of it travels, what is refused, and that the same content is the same archive."""

from __future__ import annotations

import io
import os
import random
import socket
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ultracluster.jobs.workdir import folder as folders
from ultracluster.jobs.workdir.folder import read_folder, write_archive

DIGEST = "b4cf13bc262cd0dd6cc57a2f23b2fb4b77b99839d071c50628cabffc56a3dbec"
NAMES = st.text("abü .-_#!", min_size=1, max_size=6).filter(lambda one: one not in (".", "..", ".git"))
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map("/".join),
    st.tuples(st.binary(max_size=30), st.booleans()),
    min_size=1,
    max_size=8,
)

pytestmark = pytest.mark.slow  # starts programs or listens


def laid(root: Path, files: dict[str, tuple[bytes, bool]], seed: int = 0) -> Path:
    """A folder with these files, made in an order and with times and modes that nothing says."""
    chance = random.Random(seed)  # noqa: S311 - order of writing
    names = list(files)
    chance.shuffle(names)
    for name in names:
        content, executable = files[name]
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(chance.choice((0o700, 0o755, 0o777)) if executable else chance.choice((0o600, 0o644)))
        os.utime(path, (chance.randrange(10**9), chance.randrange(10**9)))
    return root


def packed(path: Path) -> tuple[str, bytes]:
    file = io.BytesIO()
    digest = write_archive(read_folder(path, limit_mb=1), file)
    return digest, file.getvalue()


def whole(files: dict[str, tuple[bytes, bool]]) -> bool:
    """No file is where a folder has to be."""
    return not any(other.startswith(f"{one}/") for one in files for other in files)


@settings(max_examples=40, deadline=None)
@given(files=TREES.filter(whole), seed=st.integers(1, 99))
def test_the_same_content_is_the_same_archive(
    files: dict[str, tuple[bytes, bool]], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    one, other = (laid(tmp_path_factory.mktemp("w"), files, number) for number in (0, seed))
    (other / "empty!!").mkdir()

    digest, archive = packed(one)

    assert packed(other) == (digest, archive)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = {member.name: member for member in tar}
        assert set(members) == set(files)
        for name, (content, executable) in files.items():
            member = members[name]
            stream = tar.extractfile(member)
            assert stream and stream.read() == content
            assert bool(member.mode & 0o111) == executable and not member.mode & 0o222
            assert (member.mtime, member.uid, member.gid, member.uname) == (0, 0, 0, "")


@settings(max_examples=25, deadline=None)
@given(files=TREES.filter(whole), data=st.data())
def test_other_content_is_another_archive(
    files: dict[str, tuple[bytes, bool]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    name = data.draw(st.sampled_from(sorted(files)))
    content, executable = files[name]
    changed = data.draw(
        st.sampled_from(
            [
                {**files, name: (content + b"x", executable)},
                {**files, name: (content, not executable)},
                {one: value for one, value in files.items() if one != name} | {f"{name}z": files[name]},
            ]
        )
    )
    root = tmp_path_factory.mktemp("w")
    assert packed(laid(root / "a", files))[0] != packed(laid(root / "b", changed))[0]


def test_the_digest_stays_from_version_to_version(tmp_path: Path) -> None:
    """Of jobs that wait the archive must be found again; another Python must not name it otherwise."""
    long = f"{'ü' * 60}/{'b' * 90}"
    files = {"train.py": (b"print(1)\n", False), "a/run.sh": (b"#!/bin/sh\n", True), long: (b"", False)}
    laid(tmp_path, files)
    (tmp_path / "current").symlink_to("a")
    digest, archive = packed(tmp_path)
    assert digest == DIGEST
    listed = subprocess.run(["tar", "-t"], input=archive, capture_output=True, check=True).stdout
    assert len(listed.splitlines()) == 4


@pytest.mark.parametrize(
    ("lines", "stays"),
    [
        ("*.pt\n!keep.pt\n/data/\n", {"train.py", "keep.pt", "sub/data/y", "sub/z.log"}),
        ("data\n", {"train.py", "a.pt", "keep.pt", "sub/z.log"}),
        ("*\n!*.py\n", {"train.py"}),
        ("# nothing\n\n", {"train.py", "a.pt", "keep.pt", "data/x", "sub/data/y", "sub/z.log"}),
    ],
)
def test_an_ignore_file_says_what_stays(lines: str, stays: set[str], tmp_path: Path) -> None:
    for name in ("train.py", "a.pt", "keep.pt", "data/x", "sub/data/y", "sub/z.log", ".git/HEAD"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / ".gitignore").write_text(lines)
    found = {one.name for one in read_folder(tmp_path, limit_mb=1).entries}
    assert found - {".gitignore"} == stays
    ignored = subprocess.run(  # git itself says the same
        ["git", "init", "-q", str(tmp_path / "g")], check=False, capture_output=True
    )
    if ignored.returncode == 0:
        judged = subprocess.run(
            ["git", f"--git-dir={tmp_path}/g/.git", f"--work-tree={tmp_path}", "ls-files", "--others",
             "--exclude-standard", "--", ".", ":!g"],
            check=True, capture_output=True, text=True, cwd=tmp_path,
        )  # fmt: skip
        assert set(judged.stdout.split()) - {".gitignore"} == stays


def test_the_nearest_ignore_file_counts_and_ours_after_gits(tmp_path: Path) -> None:
    for name in ("a.log", "b.log", "sub/a.log", "sub/deep/b.log", "sub/deep/c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / ".gitignore").write_text("*.log\n.*ignore\n")
    (tmp_path / ".ultraclusterignore").write_text("!a.log\n")
    (tmp_path / "sub" / ".gitignore").write_text("a.log\n!deep/b.log\n")
    found = {one.name for one in read_folder(tmp_path, limit_mb=1).entries}
    assert found == {"a.log", "sub/deep/b.log", "sub/deep/c.txt"}


def test_without_the_extra_an_ignore_file_is_refused_and_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("")
    monkeypatch.setitem(sys.modules, "pathspec", None)
    assert len(read_folder(tmp_path, limit_mb=1).entries) == 1
    (tmp_path / ".gitignore").write_text("secret.txt\n")
    with pytest.raises(ValueError, match=r"pip install 'ultracluster\[workdir\]'"):
        read_folder(tmp_path, limit_mb=1)


def pipe(root: Path) -> None:
    os.mkfifo(root / "x")


def bound(root: Path) -> None:
    here = Path.cwd()
    os.chdir(root)  # the name of a socket is short
    try:
        socket.socket(socket.AF_UNIX).bind("x")
    finally:
        os.chdir(here)


def large(root: Path) -> None:
    with (root / "x").open("wb") as file:
        os.truncate(file.fileno(), 100_000_000_000)  # a hole: it takes no room here


REFUSED = {
    "pipe": (pipe, "x: is a pipe, socket or device"),
    "socket": (bound, "x: is a pipe, socket or device"),
    "100 GB": (large, r"has more than 1 MB. Largest until there: x \(100,000 MB\)"),
    "link outside": (
        lambda root: (root / "x").symlink_to("../elsewhere"),
        "leads outside of the folder, to '../elsewhere'",
    ),
    "link to a place of its own": (lambda root: (root / "x").symlink_to("/etc/passwd"), "leads outside"),
    "link inside by its whole path": (
        lambda root: (root / "x").symlink_to(root / "train.py"),
        "leads outside",
    ),
    "link over a link": (
        lambda root: [(root / "x").symlink_to("d/../../o"), (root / "d").mkdir()],
        "leads outside",
    ),
    "name of many lines": (lambda root: (root / "a\nb").touch(), r"'a\\nb': a name that is not printable"),
    "name that is no text": (
        lambda root: Path(os.fsdecode(os.fsencode(root) + b"/\xff")).touch(),
        "not printable",
    ),
    "ignore file that is a pipe": (
        lambda root: os.mkfifo(root / ".gitignore"),
        "cannot be read .it is a pipe",
    ),
    "ignore file that is no text": (
        lambda root: (root / ".gitignore").write_bytes(b"\xff"),
        "it is not UTF-8",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_travel_is_refused_in_one_row(what: str, tmp_path: Path) -> None:
    make, said = REFUSED[what]
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "train.py").write_text("")
    read_folder(tmp_path / "w", limit_mb=1)
    make(tmp_path / "w")
    with pytest.raises(ValueError, match=said) as refused:
        read_folder(tmp_path / "w", limit_mb=1)
    assert "\n" not in str(refused.value)


def test_what_is_ignored_is_not_refused(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / ".ultraclusterignore").write_text("x\nvenv/\n")
    pipe(tmp_path)
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "python").symlink_to("/usr/bin/python3")
    assert [one.name for one in read_folder(tmp_path, limit_mb=1).entries] == [
        ".ultraclusterignore",
        "train.py",
    ]


def test_links_inside_travel_as_links(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f").write_text("1")
    (tmp_path / "l").symlink_to("a")
    (tmp_path / "round").symlink_to("round")
    found = {one.name: one.link for one in read_folder(tmp_path, limit_mb=1).entries}
    assert found == {"a/f": "", "l": "a", "round": "round"}


@pytest.mark.parametrize(
    ("path", "said"),
    [("absent", "No such file"), ("file", "is no folder"), ("empty", "no file that is not ignored")],
)
def test_no_folder_is_refused(path: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=said):
        read_folder(tmp_path / path, limit_mb=1)


def test_a_home_is_no_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "ada"))
    (tmp_path / "home" / "ada" / "code").mkdir(parents=True)
    (tmp_path / "home" / "ada" / "code" / "a.py").touch()
    for refused in (tmp_path / "home" / "ada", tmp_path / "home", Path("/")):
        with pytest.raises(ValueError, match="is or holds your home folder"):
            read_folder(refused, limit_mb=1)
    assert read_folder(tmp_path / "home" / "ada" / "code", limit_mb=1).size == 0


def test_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MOST_FILES", 3)
    for number in range(4):
        (tmp_path / str(number)).touch()
    with pytest.raises(ValueError, match="more than 3 files"):
        read_folder(tmp_path, limit_mb=1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda file: file.write_text("longer"), "more than 3 bytes"),
        (lambda file: file.write_text("1"), "changed while it was read"),
        (lambda file: file.unlink(), "cannot be read"),
        (lambda file: (file.unlink(), os.mkfifo(file)), "it is a pipe"),
    ],
)
def test_a_file_that_changes_meanwhile_is_refused(change: object, said: str, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("abc")
    found = read_folder(tmp_path, limit_mb=1)
    assert callable(change)
    change(file)
    with pytest.raises(ValueError, match=said):
        write_archive(found, io.BytesIO())

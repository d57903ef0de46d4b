"""Files of strangers: read with a bound, and never waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ultracluster.config import InvalidEnvironmentError, load
from ultracluster.config.file_text import bytes_of, kind_of, real, text_of
from ultracluster.model.own_steps import OwnStep
from ultracluster.plan.price_file import read_prices
from ultracluster.software.environment_lock import environment_lock
from ultracluster.software.lock import InvalidLockError, read_lock

KINDS = ["pipe", "folder", "loop", "device", "long", "nul", "none"]


@pytest.fixture
def odd(tmp_path: Path) -> dict[str, Path]:
    """What is no file, by its kind."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "endless").symlink_to("/dev/zero")
    names = {"device": "endless", "long": "x" * 300, "nul": "a\0b"}
    return {kind: tmp_path / names.get(kind, kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_only_files_are_read(kind: str, odd: dict[str, Path]) -> None:
    with pytest.raises(OSError, match=r".") as caught:
        bytes_of(odd[kind])
    assert caught.value.strerror
    assert kind_of(odd[kind]) != "file"
    assert real(odd[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_every_reader_says_so(kind: str, odd: dict[str, Path], tmp_path: Path) -> None:
    """An environment may name each of them: a pipe would be waited for without end."""
    file = odd[kind]
    with pytest.raises(InvalidEnvironmentError, match="CFG001"):
        load(file)
    with pytest.raises(InvalidLockError):
        read_lock(file)
    assert OwnStep("x.sh", file).content is None
    assert read_prices(file).faults or kind == "none"
    if kind in ("pipe", "device"):
        lock = tmp_path / "prod.lock"
        lock.symlink_to(file)
        with pytest.raises(InvalidLockError):
            environment_lock(lock)


def test_no_more_than_the_bound(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10)

    assert bytes_of(tmp_path / "a", 10) == b"x" * 10
    with pytest.raises(OSError, match="more than 9 bytes"):
        bytes_of(tmp_path / "a", 9)


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfa")

    assert text_of(tmp_path / "a") == "a"
    assert kind_of(tmp_path / "a") == "file"

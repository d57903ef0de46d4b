"""Broken lock files: each is refused in words, or is one; never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from depth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import SNIPPETS
from project import ROOT

from ultracluster.software.environment_lock import environment_lock
from ultracluster.software.lock import InvalidLockError, read_lock

pytestmark = pytest.mark.slow

RELEASES = sorted((ROOT / "lifecycle_scripts" / "releases").glob("*.lock"))
OF_AN_ENVIRONMENT = b"""{
  "schema": 1, "environment": "fuzz", "release": "2026.11",
  "files": {"a.run": {"sha256": "%s", "size": 10, "recorded": "2026-11-22", "from": "https://a.example/a.run"}},
  "keys": {"https://a.example/key": {"fingerprint": "%s", "recorded": "2026-11-22"}},
  "images": {"gpu": {"image": "ami-0123456789abcdef0", "recorded": "2026-11-22"}}
}""" % (b"a" * 64, b"A" * 40)
JSON_SNIPPETS = (
    b'"',
    b"{",
    b"[",
    b"null",
    b"NaN",
    b"1e999",
    b"9" * 5000,
    b'{"a":' * 3000,
    b",",
    b"\\u0000",
    b"\\ud800",
    b"-",
)


@st.composite
def broken(draw: st.DrawFn, text: bytes) -> bytes:
    """Bytes with one to four of them changed, taken away or added."""
    made = bytearray(text)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(made)))
        if draw(st.booleans()):
            made[place:place] = draw(st.sampled_from(SNIPPETS + JSON_SNIPPETS))
        else:
            del made[place : place + draw(st.integers(1, 30))]
    return bytes(made)


def same(count: int) -> settings:
    return settings(
        max_examples=count, derandomize=True, database=None, deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip


def told(reader: Callable[[Path], object], file: Path) -> None:
    """The file is read, or refused by its name."""
    why = ""
    try:
        reader(file)
    except InvalidLockError as error:
        why = str(error)
    assert not why or str(file) in why


@same(examples(10))
@given(data=st.data())
def test_a_release(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    shipped = data.draw(st.sampled_from(RELEASES))
    file: Path = tmp_path_factory.getbasetemp() / shipped.name
    file.write_bytes(data.draw(broken(shipped.read_bytes())))
    told(read_lock, file)


@same(examples(20))
@given(text=broken(OF_AN_ENVIRONMENT))
def test_the_lock_of_an_environment(text: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    file: Path = tmp_path_factory.getbasetemp() / "fuzz.lock"
    file.write_bytes(text)
    told(environment_lock, file)

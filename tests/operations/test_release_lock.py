"""`release lock`: what it fills in, what it refuses, and that a file is never half written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ultracluster.operations import release_lock
from ultracluster.operations.release_lock import lock_release
from ultracluster.software import InvalidLockError

Lock = Callable[..., Path]

pytestmark = pytest.mark.usefixtures("no_pause")


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    def lock(file: Path, **options: Any) -> dict[str, Any]:
        return {found.name: found for found in lock_release(file, cache=tmp_path / "cache", **options)}

    return lock


def artifact(file: Path, number: int = 0) -> dict[str, Any]:
    return list(json.loads(file.read_text())["components"].values())[number]["artifacts"][0]


def test_what_was_open_is_locked_and_keeps_its_order(shop: Any, lock_file: Lock, run: Any) -> None:
    file = lock_file(tool={"integrity": "to-be-locked"}, data={})
    found = run(file)["tool.bin"]
    filled = artifact(file)
    assert found.state == "locked"
    assert "trusted from now on" in found.message
    assert filled["sha256"] == hashlib.sha256(shop.files["tool.bin"]).hexdigest()
    assert (filled["size"], filled["integrity"]) == (300_000, "checksum")
    assert list(filled) == ["os", "arch", "url", "name", "size", "sha256", "integrity"]


def test_a_known_digest_is_confirmed_and_the_size_filled(lock_file: Lock, run: Any) -> None:
    file = lock_file(tool={})
    before = artifact(file)["sha256"]
    assert run(file)["tool.bin"].message == ""
    assert artifact(file)["sha256"] == before
    assert artifact(file)["size"] == 300_000


def test_a_second_run_changes_and_downloads_nothing(shop: Any, lock_file: Lock, run: Any) -> None:
    file = lock_file(tool={"integrity": "to-be-locked"})
    run(file)
    before = file.read_bytes()
    shop.sent.clear()
    assert run(file)["tool.bin"].state == "unchanged"
    assert (file.read_bytes(), shop.sent) == (before, [])
    assert run(file, again=True)["tool.bin"].state == "unchanged"


def test_a_digest_that_no_longer_holds_is_a_failure(shop: Any, lock_file: Lock, run: Any) -> None:
    file = lock_file(tool={}, data={"integrity": "to-be-locked"})
    shop.files["tool.bin"] = b"evil" * 75_000
    found = run(file)
    assert found["tool.bin"].state == "failed"
    assert "its sha256 is" in found["tool.bin"].message
    assert artifact(file)["size"] is None
    assert found["data.bin"].state == "locked"  # the others are not held back


def test_only_the_components_that_were_named(lock_file: Lock, run: Any) -> None:
    file = lock_file(tool={}, data={})
    assert set(run(file, components=["gdrcopy"])) == {"data.bin"}


def test_no_address_is_skipped(lock_file: Lock, run: Any) -> None:
    file = lock_file(tool={"integrity": "to-be-locked", "url": ...})
    before = file.read_bytes()
    assert run(file)["tool.bin"].state == "skipped"
    assert file.read_bytes() == before


def test_a_signature_decides_and_its_digest_is_recorded(
    shop: Any, lock_file: Lock, run: Any, signers: Any
) -> None:
    right, stranger = signers
    shop.files |= {"tool.bin": b"content", "tool.sig": right.sign(b"content"), "tool.key": right.key}
    signed = {
        "integrity": "signature",
        "signature_url": shop.url("tool.sig"),
        "key_url": shop.url("tool.key"),
        "key_fingerprint": right.fingerprint,
    }
    file = lock_file(tool=signed)
    assert run(file)["tool.bin"].state == "locked"
    assert artifact(file)["sha256"] == hashlib.sha256(b"content").hexdigest()
    assert artifact(file)["integrity"] == "signature"

    shop.files["tool.sig"] = stranger.sign(b"content")
    file = lock_file(tool=signed)
    assert "refused tool.bin" in run(file)["tool.bin"].message
    assert "sha256" not in artifact(file)


def test_a_third_partys_digest_must_agree_with_what_is_signed(
    shop: Any, lock_file: Lock, run: Any, signers: Any
) -> None:
    right, _ = signers
    shop.files |= {"tool.bin": b"content", "tool.sig": right.sign(b"content"), "tool.key": right.key}
    file = lock_file(
        tool={
            "integrity": "signature",
            "sha256": "0" * 64,
            "signature_url": shop.url("tool.sig"),
            "key_url": shop.url("tool.key"),
            "key_fingerprint": right.fingerprint,
        }
    )
    assert "the release records 0000000000000000" in run(file)["tool.bin"].message


def test_the_key_of_a_repository_is_pinned(shop: Any, lock_file: Lock, run: Any, signers: Any) -> None:
    right, stranger = signers
    shop.files["repo.key"] = right.key
    file = lock_file(tool={})
    content = json.loads(file.read_text())
    part = content["components"]["efa-installer"]
    repository = {"url": shop.url("repo"), "key_url": shop.url("repo.key")}
    part["packages"] = [{"os": ["al2023"], "arch": ["x86_64"], "names": ["tool"], "repository": repository}]
    file.write_text(json.dumps(content))
    found = run(file)[shop.url("repo.key")]
    pinned = json.loads(file.read_text())["components"]["efa-installer"]["packages"][0]["repository"]
    assert pinned["key_fingerprint"] == right.fingerprint
    assert "compare it with its maker" in found.message

    shop.files["repo.key"] = right.key + stranger.key
    file.write_text(json.dumps(content))
    assert "holds 2 keys" in run(file)[shop.url("repo.key")].message


def test_a_write_that_fails_leaves_the_old_file(
    lock_file: Lock, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = lock_file(tool={"integrity": "to-be-locked"})
    before = file.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(release_lock.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        run(file)
    assert file.read_bytes() == before
    assert [found.name for found in file.parent.glob("*.lock*")] == [file.name]
    assert not list(file.parent.glob(".*.lock.*"))


def test_what_is_no_lock_file_is_not_touched(tmp_path: Path, run: Any) -> None:
    file = tmp_path / "2030.01.lock"
    file.write_text("{}")
    with pytest.raises(InvalidLockError):
        run(file)
    assert file.read_text() == "{}"

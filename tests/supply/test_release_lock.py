"""`software lock`: what it fills in, what it refuses, and that a file is never half written."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ultracluster.software import InvalidLockError
from ultracluster.supply import locking
from ultracluster.supply.locking import Options
from ultracluster.supply.release_lock import lock_release

Lock = Callable[..., Path]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_pause")]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    def lock(file: Path, components: Any = (), **options: Any) -> dict[str, Any]:
        done = lock_release(file, Options(tmp_path / "cache", **options), components)
        return {found.name: found for found in done}

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


def test_what_changed_at_its_source_is_reported_and_not_taken(shop: Any, lock_file: Lock, run: Any) -> None:
    file = lock_file(tool={"integrity": "to-be-locked"})
    run(file)
    before = file.read_bytes()
    shop.files["tool.bin"] = b"another" * 9
    assert run(file)["tool.bin"].state == "unchanged"
    found = run(file, again=True)["tool.bin"]
    assert found.state == "changed"
    assert hashlib.sha256(b"another" * 9).hexdigest() in found.message
    assert file.read_bytes() == before


def test_what_has_no_digest_is_fetched_again_and_never_taken_from_the_cache(
    shop: Any, lock_file: Lock, run: Any
) -> None:
    """One name for ever, as the archive of FSx has it: two locks made at different times."""
    run(lock_file(tool={"integrity": "to-be-locked"}))
    shop.files["tool.bin"] = b"of today" * 9
    file = lock_file(tool={"integrity": "to-be-locked"})
    run(file)
    assert artifact(file)["sha256"] == hashlib.sha256(b"of today" * 9).hexdigest()


def test_an_old_beginning_without_a_tag_is_not_continued(
    shop: Any, lock_file: Lock, run: Any, tmp_path: Path
) -> None:
    file = lock_file(tool={"integrity": "to-be-locked"})
    part = tmp_path / "cache" / "served" / "tool.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"of August" * 100)
    run(file)
    assert artifact(file)["sha256"] == hashlib.sha256(shop.files["tool.bin"]).hexdigest()


ASSET = "NVIDIA/enroot/releases/download/v4.2.1/enroot_4.2.1-1_arm64.deb"


@pytest.fixture
def github(shop: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """GitHub in the shop: an asset, and what its API says of the release."""
    monkeypatch.setattr(locking, "SITE", shop.url("github"))
    monkeypatch.setattr(locking, "API", shop.url("api"))

    def serve(content: bytes, **asset: Any) -> None:
        shop.files[f"github/{ASSET}"] = content
        assets: list[dict[str, Any]] = [{"name": "another.deb", "digest": "sha256:" + "0" * 64}]
        assets.append({"name": ASSET.rpartition("/")[2], "digest": None, **asset})
        answer = {"tag_name": "v4.2.1", "draft": False, "assets": assets}
        shop.files["api/repos/NVIDIA/enroot/releases/tags/v4.2.1"] = json.dumps(answer).encode()

    return serve


def asset(shop: Any) -> dict[str, Any]:
    return {"integrity": "to-be-locked", "url": shop.url(f"github/{ASSET}"), "name": "enroot.deb"}


def test_an_asset_of_a_release_has_githubs_own_digest(
    shop: Any, lock_file: Lock, run: Any, github: Any
) -> None:
    github(b"package", digest=f"sha256:{hashlib.sha256(b'package').hexdigest()}")
    found = run(lock_file(tool=asset(shop)))["enroot.deb"]
    assert (found.state, found.message) == ("locked", "GitHub's API has the same digest")


def test_an_asset_that_github_knows_otherwise_is_refused(
    shop: Any, lock_file: Lock, run: Any, github: Any
) -> None:
    github(b"package", digest="sha256:" + "a" * 64)
    file = lock_file(tool=asset(shop))
    found = run(file)["enroot.deb"]
    assert found.state == "failed"
    assert "GitHub's API has aaaaaaaaaaaaaaaa" in found.message
    assert "sha256" not in artifact(file)


@pytest.mark.parametrize("what", ["no digest", "limited", "no JSON"])
def test_where_github_says_nothing_first_use_is_said(
    shop: Any, lock_file: Lock, run: Any, github: Any, what: str
) -> None:
    github(b"package")
    api = "api/repos/NVIDIA/enroot/releases/tags/v4.2.1"
    if what == "limited":
        shop.status[api] = [403]
    elif what == "no JSON":
        shop.files[api] = b"<html>"
    found = run(lock_file(tool=asset(shop)))["enroot.deb"]
    assert found.state == "locked"
    assert "trusted from now on" in found.message
    assert ("GitHub could not be asked" in found.message) == (what != "no digest")


def test_the_archive_of_a_tag_is_no_asset(shop: Any, lock_file: Lock, run: Any, github: Any) -> None:
    github(b"package")
    shop.files["github/NVIDIA/gdrcopy/archive/refs/tags/v2.6.tar.gz"] = b"archive"
    tag = {**asset(shop), "url": shop.url("github/NVIDIA/gdrcopy/archive/refs/tags/v2.6.tar.gz")}
    assert "trusted from now on" in run(lock_file(tool=tag))["enroot.deb"].message
    assert not [path for path, _, _ in shop.sent if path.startswith("api/")]


WHEEL = "nixl_cu13-1.5.1-cp312-cp312-manylinux_2_28_x86_64.whl"
PURE = "nixl-1.5.1-py3-none-any.whl"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package index that pip is set up for: a folder with real wheels."""
    folder = tmp_path / "index"
    folder.mkdir()
    for file in (WHEEL, PURE):
        name, info = file.partition("-")[0], f"{file.partition('-')[0]}-1.5.1.dist-info"
        with zipfile.ZipFile(folder / file, "w") as wheel:
            about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5.1\nRequires-Python: >=3.9\n"
            wheel.writestr(f"{info}/METADATA", about)
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\n")
            wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


@pytest.mark.parametrize("name", [WHEEL, PURE])
def test_a_wheel_without_an_address_comes_with_pip(name: str, index: Path, lock_file: Lock, run: Any) -> None:
    """Also one for another Python and machine than this one."""
    file = lock_file(tool={"integrity": "to-be-locked", "url": ..., "name": name})
    assert run(file)[name].state == "locked"
    assert artifact(file)["sha256"] == hashlib.sha256((index / name).read_bytes()).hexdigest()
    assert "url" not in artifact(file)


def test_a_wheel_that_the_index_does_not_have(index: Path, lock_file: Lock, run: Any) -> None:
    (index / WHEEL).unlink()
    found = run(lock_file(tool={"integrity": "to-be-locked", "url": ..., "name": WHEEL}))[WHEEL]
    assert found.state == "failed"
    assert "pip does not find it" in found.message


def test_a_key_that_was_replaced_at_its_address_is_reported(
    shop: Any, lock_file: Lock, run: Any, signers: Any
) -> None:
    """Two repositories have the same key: it is asked for once and reported once."""
    right, stranger = signers
    shop.files["repo.key"] = right.key
    file = lock_file(tool={})
    content = json.loads(file.read_text())
    repository = {"key_url": shop.url("repo.key")}
    content["components"]["efa-installer"]["packages"] = [
        {
            "os": ["al2023"],
            "arch": [arch],
            "names": ["tool"],
            "repository": {"url": shop.url(arch), **repository},
        }
        for arch in ("x86_64", "aarch64")
    ]
    file.write_text(json.dumps(content))
    run(file)
    assert [path for path, _, _ in shop.sent].count("repo.key") == 1
    before = file.read_bytes()
    shop.files["repo.key"] = stranger.key
    found = run(file, again=True)[shop.url("repo.key")]
    assert found.state == "changed"
    assert stranger.fingerprint in found.message
    assert file.read_bytes() == before


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

    monkeypatch.setattr("os.fsync", full)
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

"""The mirror: real downloads, real signatures, moto's S3."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from package_repositories import BUCKET, LOCK, keys
from processes import forked, until
from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli.main import app
from ultracluster.software import EnvironmentLock, read_lock
from ultracluster.supply import mirror as module
from ultracluster.supply.artifacts import fetch
from ultracluster.supply.mirror import Selection, mirror_release
from ultracluster.supply.mirror_bucket import MirrorError

Lock = Callable[..., Path]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_pause")]


@pytest.fixture
def mirror(s3: Any, tmp_path: Path) -> Callable[..., Any]:
    def run(file: Path, **options: Any) -> Any:
        options = {"bucket": BUCKET, "prefix": "p", "cache": tmp_path / "cache", "s3": s3, **options}
        return mirror_release(file, **options)

    return run


def key_of(content: bytes, name: str) -> str:
    return f"p/2030.01/{hashlib.sha256(content).hexdigest()[:16]}/{name}"


def test_files_and_then_the_lock_file_are_where_nodes_look(
    shop: Any, lock_file: Lock, mirror: Any, s3: Any
) -> None:
    file = lock_file(tool={}, data={})
    done = mirror(file)
    expected = {key_of(shop.files[name], name) for name in ("tool.bin", "data.bin")}
    assert set(done.uploaded) == keys(s3) == expected | {LOCK}
    for name in ("tool.bin", "data.bin"):
        answer = s3.get_object(Bucket=BUCKET, Key=key_of(shop.files[name], name))
        assert answer["Body"].read() == shop.files[name]
        assert answer["Metadata"]["sha256"] == hashlib.sha256(shop.files[name]).hexdigest()
    assert s3.get_object(Bucket=BUCKET, Key=LOCK)["Body"].read() == file.read_bytes()


def test_a_second_run_downloads_and_uploads_nothing(
    shop: Any, lock_file: Lock, mirror: Any, s3: Any, tmp_path: Path
) -> None:
    file = lock_file(tool={}, data={})
    mirror(file)
    shop.sent.clear()
    again = mirror(file, cache=tmp_path / "another-cache")
    assert (again.uploaded, len(again.present), shop.sent) == ([], 3, [])


def test_a_dry_run_changes_nothing(shop: Any, lock_file: Lock, mirror: Any, s3: Any) -> None:
    done = mirror(lock_file(tool={}), dry_run=True)
    assert len(done.uploaded) == 2
    assert (keys(s3), shop.sent) == (set(), [])


def test_a_truncated_download_is_completed(shop: Any, lock_file: Lock, mirror: Any) -> None:
    file = lock_file(tool={"size": 300_000})
    shop.cut_after["tool.bin"] = 1000
    mirror(file)
    assert [asked for _, asked, _ in shop.sent] == ["", "bytes=1000-"]


def test_a_tampered_artifact_is_refused_and_nothing_of_it_uploaded(
    shop: Any, lock_file: Lock, mirror: Any, s3: Any, tmp_path: Path
) -> None:
    file = lock_file(tool={}, data={})
    honest = shop.files["data.bin"]
    shop.files["tool.bin"] = b"evil" * 75_000
    with pytest.raises(MirrorError, match=r"efa-installer: refused tool\.bin: its sha256 is") as caught:
        mirror(file)
    assert len(caught.value.reasons) == 1
    assert keys(s3) == {key_of(honest, "data.bin")}  # and no lock file: it is no mirror yet
    assert not [found for found in (tmp_path / "cache").rglob("tool.bin*") if found.is_file()]


def test_a_poisoned_cache_is_not_believed(
    shop: Any, lock_file: Lock, mirror: Any, s3: Any, tmp_path: Path
) -> None:
    file = lock_file(tool={})
    digest = hashlib.sha256(shop.files["tool.bin"]).hexdigest()[:16]
    place = tmp_path / "cache" / digest / "tool.bin"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"evil")
    mirror(file)
    body = s3.get_object(Bucket=BUCKET, Key=key_of(shop.files["tool.bin"], "tool.bin"))["Body"].read()
    assert body == shop.files["tool.bin"]


def test_an_object_of_another_size_is_replaced(shop: Any, lock_file: Lock, mirror: Any, s3: Any) -> None:
    file = lock_file(tool={"size": 300_000})
    key = key_of(shop.files["tool.bin"], "tool.bin")
    digest = hashlib.sha256(shop.files["tool.bin"]).hexdigest()
    s3.put_object(Bucket=BUCKET, Key=key, Body=b"half", Metadata={"sha256": digest, "size": "300000"})
    assert key in mirror(file).uploaded
    assert s3.head_object(Bucket=BUCKET, Key=key)["ContentLength"] == 300_000


@pytest.mark.parametrize("recorded", ["sha256", "sha512"])
def test_either_digest_names_the_object(shop: Any, lock_file: Lock, mirror: Any, recorded: str) -> None:
    digest = hashlib.new(recorded, bytes([1]) * 300_000).hexdigest()
    file = lock_file(tool={recorded: digest})
    done = mirror(file)
    assert f"p/2030.01/{digest[:16]}/tool.bin" in done.uploaded
    assert mirror(file).uploaded == []


def test_what_has_no_digest_is_refused_before_anything_is_fetched(
    shop: Any, lock_file: Lock, mirror: Any, s3: Any
) -> None:
    file = lock_file(tool={}, data={"integrity": "to-be-locked"})
    with pytest.raises(MirrorError, match=r"data\.bin has no digest, run `ultracluster software lock`"):
        mirror(file)
    assert (keys(s3), shop.sent) == (set(), [])


def changed(file: Path, component: str, **changes: Any) -> Path:
    content = json.loads(file.read_text())
    content["components"][component] |= changes
    file.write_text(json.dumps(content))
    return file


def test_what_is_optional_and_nobody_asked_for_holds_nothing_up(
    shop: Any, lock_file: Lock, mirror: Any, s3: Any
) -> None:
    """Not even where it has no digest."""
    file = changed(lock_file(tool={}, data={"integrity": "to-be-locked"}), "gdrcopy", need="optional")
    done = mirror(file)
    assert done.left_out == ["gdrcopy: it is optional, `--component gdrcopy` asks for it"]
    assert keys(s3) == {key_of(shop.files["tool.bin"], "tool.bin"), LOCK}
    with pytest.raises(MirrorError, match=r"data\.bin has no digest"):
        mirror(file, selection=Selection(optional=["gdrcopy"]))
    file = changed(lock_file(tool={}, data={}), "gdrcopy", need="optional")
    assert (
        key_of(shop.files["data.bin"], "data.bin")
        in mirror(file, selection=Selection(optional=["gdrcopy"])).uploaded
    )


def test_files_for_other_systems_hold_nothing_up(shop: Any, lock_file: Lock, mirror: Any, s3: Any) -> None:
    file = lock_file(tool={}, data={"integrity": "to-be-locked", "arch": ["aarch64"]})
    mirror(file, selection=Selection(only=lambda system, arch: (system, arch) == ("ubuntu22.04", "x86_64")))
    assert keys(s3) == {key_of(shop.files["tool.bin"], "tool.bin"), LOCK}


def test_the_lock_of_an_environment_completes_the_release(
    shop: Any, lock_file: Lock, mirror: Any, s3: Any
) -> None:
    file = lock_file(tool={}, data={"integrity": "to-be-locked"})
    content = shop.files["data.bin"]
    found = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "recorded": "2030-01-01"}
    lock = EnvironmentLock.model_validate(
        {"schema": 1, "environment": "prod", "release": "2030.01", "files": {"data.bin": found}}
    )
    before = file.read_bytes()
    assert key_of(content, "data.bin") in mirror(file, lock=lock).uploaded
    assert file.read_bytes() == before  # what the environment adds is not the release's


def test_a_wheel_without_an_address_comes_with_pip(
    lock_file: Lock, mirror: Any, s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "tool-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
    wheel = tmp_path / "index" / name
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tool-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tool\nVersion: 1.0\n")
        archive.writestr("tool-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr("tool-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    done = mirror(lock_file(tool={"url": ..., "name": name, "sha256": digest}))
    assert f"p/2030.01/{digest[:16]}/{name}" in done.uploaded
    assert done.left_out == []


def test_what_has_no_address_is_left_out_and_said(lock_file: Lock, mirror: Any) -> None:
    file = lock_file(tool={}, data={"integrity": "to-be-locked", "url": ..., "note": "by hand"})
    done = mirror(file)
    assert done.left_out == ["gdrcopy: data.bin has no address"]


def test_a_dead_address_leaves_the_rest_for_the_next_run(
    shop: Any, lock_file: Lock, mirror: Any, s3: Any
) -> None:
    file = lock_file(tool={}, data={"url": "http://127.0.0.1:9/data.bin"})
    with pytest.raises(MirrorError, match=r"gdrcopy: http://127\.0\.0\.1:9/data\.bin: .*5 attempts"):
        mirror(file)
    assert LOCK not in keys(s3)
    shop.sent.clear()
    assert len(mirror(lock_file(tool={}, data={})).uploaded) == 2
    assert {path for path, _, _ in shop.sent} == {"data.bin"}


def test_a_bucket_that_is_not_there(lock_file: Lock, mirror: Any) -> None:
    with pytest.raises(MirrorError, match="s3://no-such-bucket: there is no such bucket"):
        mirror(lock_file(tool={}), bucket="no-such-bucket")


def test_large_files_go_up_in_parts_with_the_key_that_was_named(
    shop: Any, lock_file: Lock, mirror: Any, s3: Any
) -> None:
    shop.files["tool.bin"] = os.urandom(1 << 20) * 18
    arn = "arn:aws:kms:us-east-1:111122223333:key/0f6d8f9c-0000-4000-8000-000000000000"
    mirror(lock_file(tool={}), kms_key=arn)
    head = s3.head_object(Bucket=BUCKET, Key=key_of(shop.files["tool.bin"], "tool.bin"))
    assert head["ServerSideEncryption"] == "aws:kms"
    assert head["SSEKMSKeyId"] == arn
    assert head["ETag"].rstrip('"').endswith("-2")  # two parts
    assert s3.head_object(Bucket=BUCKET, Key=LOCK)["SSEKMSKeyId"] == arn


def signed(shop: Any, signer: Any, key: Any = None) -> dict[str, Any]:
    """An artifact that `signer` signed, beside the key file of `key`."""
    content = b"signed" * 50_000
    shop.files |= {
        "tool.bin": content,
        "tool.bin.sig": signer.sign(content),
        "tool.key": (key or signer).key,
    }
    return {
        "integrity": "signature",
        "sha256": hashlib.sha256(content).hexdigest(),
        "signature_url": shop.url("tool.bin.sig"),
        "key_url": shop.url("tool.key"),
        "key_fingerprint": signer.fingerprint,
    }


def test_a_good_signature_is_checked_and_uploaded(
    shop: Any, lock_file: Lock, mirror: Any, signers: Any
) -> None:
    right, _ = signers
    assert len(mirror(lock_file(tool=signed(shop, right))).uploaded) == 2


@pytest.mark.parametrize("what", ["stranger", "stranger-with-own-key", "bad", "none"])
def test_a_wrong_signature_is_refused_and_nothing_uploaded(
    shop: Any, lock_file: Lock, mirror: Any, s3: Any, signers: Any, what: str
) -> None:
    right, stranger = signers
    artifact = signed(shop, right)
    if what == "stranger":  # signed by another key than the one that is published
        shop.files["tool.bin.sig"] = stranger.sign(shop.files["tool.bin"])
    elif what == "stranger-with-own-key":  # both replaced: only the pinned fingerprint tells
        shop.files["tool.bin.sig"] = stranger.sign(shop.files["tool.bin"])
        shop.files["tool.key"] = stranger.key
    elif what == "bad":
        shop.files["tool.bin.sig"] = right.sign(b"something else")
    else:
        shop.files["tool.bin.sig"] = b"no signature at all"
    with pytest.raises(MirrorError, match=r"refused tool\.bin"):
        mirror(lock_file(tool=artifact))
    assert keys(s3) == set()


def test_without_gpg_nothing_signed_is_uploaded(
    shop: Any, lock_file: Lock, mirror: Any, s3: Any, signers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = lock_file(tool=signed(shop, signers[0]))
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MirrorError, match="install GnuPG"):
        mirror(file)
    assert keys(s3) == set()


def test_killed_in_the_middle_the_next_run_goes_on(
    shop: Any, lock_file: Lock, mirror: Any, s3: Any, tmp_path: Path
) -> None:
    """kill -9 of a real process during a download; what it had is not fetched again."""
    shop.files["tool.bin"] = os.urandom(1 << 20) * 8
    file = lock_file(tool={})
    cache = tmp_path / "cache"
    ((_, artifact),) = read_lock(file).artifacts()

    def stop_at_two_mebibytes(_: int) -> None:
        if _arrived(cache) >= 2 << 20:
            signal.pause()

    child = forked(lambda: fetch(artifact, cache, advance=stop_at_two_mebibytes))
    until(lambda: _arrived(cache) >= 2 << 20)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    there = _arrived(cache)
    assert 0 < there < 8 << 20
    shop.sent.clear()

    mirror(file)

    assert shop.bytes_of("tool.bin") == (8 << 20) - there
    assert LOCK in keys(s3)


def _arrived(cache: Path) -> int:
    return sum(part.stat().st_size for part in cache.rglob("*.part"))


def test_an_interrupt_stops_all_downloads(
    shop: Any, lock_file: Lock, mirror: Any, s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "as_completed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        mirror(lock_file(tool={}, data={}))
    assert LOCK not in keys(s3)


def test_one_file_for_two_systems_is_one_object(lock_file: Lock, mirror: Any) -> None:
    file = lock_file(tool={})
    content = json.loads(file.read_text())
    artifacts = content["components"]["efa-installer"]["artifacts"]
    artifacts.append({**artifacts[0], "os": ["al2023"]})
    file.write_text(json.dumps(content))
    assert len(mirror(file).uploaded) == 2


def test_the_mirror_of_an_environment_is_for_its_nodes(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`software mirror --for prod`: its release, bucket, prefix, systems and processors."""
    monkeypatch.chdir(ROOT)
    client = boto3.client("s3", region_name="us-east-2")
    where = {"LocationConstraint": "us-east-2"}
    client.create_bucket(Bucket="example-software-mirror", CreateBucketConfiguration=where)
    said = CliRunner().invoke(app, ["software", "mirror", "--for", "prod", "--no-packages", "--dry-run"])
    assert said.exit_code == 0, said.output
    uploads = [line.split()[-1] for line in said.output.splitlines() if line.startswith("would upload")]
    place = "s3://example-software-mirror/ultracluster/hyperpod-slurm-2026.09/"
    assert all(one.startswith(place) for one in uploads)
    files = {one.rpartition("/")[2] for one in uploads}
    assert {"enroot_4.2.1-1_amd64.deb", "aws-efa-installer-1.50.0.tar.gz"} <= files
    assert not [name for name in files if "arm64" in name or name.endswith((".whl", ".rpm"))]
    assert "nixl: it is optional" in said.output

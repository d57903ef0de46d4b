"""`software lock` and `software mirror` as commands: what they print and how they end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from command_line import Ended, ultracluster
from moto import mock_aws
from typer.testing import CliRunner

from ultracluster.cli.main import app

Lock = Callable[..., Path]


def lock(file: Path, *options: str) -> Ended:
    return ultracluster("software", "lock", str(file), "--cache", str(file.parent / "cache"), *options)


def test_lock_prints_the_difference_and_warns_of_first_use(lock_file: Lock) -> None:
    file = lock_file(tool={"integrity": "to-be-locked"})
    result = lock(file)
    assert result.returncode == 0, result.stderr
    assert '-              "integrity": "to-be-locked"' in _squeezed(result.stdout)
    assert '+              "integrity": "checksum"' in _squeezed(result.stdout)
    assert "trusted from now on" in result.stderr
    again = lock(file)
    assert (again.returncode, again.stdout) == (0, "")


def _squeezed(text: str) -> str:
    """Lines with the indentation of the entry, whatever its depth."""
    return "\n".join(line[:1] + " " * 14 + line[1:].strip() for line in text.splitlines())


def test_lock_fails_for_what_is_not_as_recorded(lock_file: Lock) -> None:
    file = lock_file(tool={"sha256": "0" * 64})
    before = file.read_bytes()
    result = lock(file)
    assert result.returncode == 1
    assert "failed     efa-installer: refused tool.bin" in result.stderr
    assert "Traceback" not in result.stderr
    assert file.read_bytes() == before


@pytest.mark.usefixtures("no_pause")
def test_mirror_says_what_it_did_and_what_to_write(
    shop: Any, lock_file: Lock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    for name in [name for name in os.environ if name.startswith("AWS_PROFILE")]:
        monkeypatch.delenv(name)
    file = lock_file(tool={})
    options = ["--bucket", "example-software", "--prefix", "p", "--region", "us-east-1"]
    command = ["software", "mirror", "--release", str(file), "--cache", str(tmp_path / "cache"), *options]
    with mock_aws():
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="example-software")
        first, second = CliRunner().invoke(app, command), CliRunner().invoke(app, command)
        shop.files["tool.bin"] = b"evil"
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="another-bucket")
        command[command.index("example-software")] = "another-bucket"
        (tmp_path / "cache").rename(tmp_path / "old-cache")
        third = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    assert "uploaded  s3://example-software/p/2030.01/2030.01.lock" in first.stdout
    assert "mirror: s3://example-software/p" in first.stdout
    assert "0 uploaded, 2 there already" in second.stdout
    assert third.exit_code == 1
    assert "missing  efa-installer: refused tool.bin" in third.stderr
    assert "The mirror is not complete" in third.stderr

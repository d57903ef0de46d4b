"""A shop of artifacts, a lock file of what it has, and a real key to sign with."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import artifact_server
import pytest
from botocore.client import BaseClient
from needs import need

RELEASE = "2030.01"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Credentials that lead nowhere, and no settings of this machine."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture(autouse=True)
def only_documented_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the package itself asks of AWS in any of these tests is in permissions.json."""
    made: set[tuple[str, str]] = set()
    real: Any = BaseClient._make_api_call

    def recorded(client: Any, operation: str, asked: dict[str, Any]) -> Any:
        if _from_the_package():
            made.add((client.meta.service_model.service_name, operation))
        return real(client, operation, asked)

    monkeypatch.setattr(BaseClient, "_make_api_call", recorded)
    yield
    unknown = made - _documented()
    assert not unknown, f"run tools/permissions_from_calls.py, or teach it to see {sorted(unknown)}"


def _from_the_package() -> bool:
    """Whether the nearest code outside of the SDK is the package's, and not a test's own."""
    frame = sys._getframe(2)
    while frame.f_back and {"botocore", "boto3", "patience.py"} & set(Path(frame.f_code.co_filename).parts):
        frame = frame.f_back
    return str(_PACKAGE) in frame.f_code.co_filename


_PACKAGE = Path(__file__).parents[2] / "constructs" / "ultracluster"


@cache
def _documented() -> set[tuple[str, str]]:
    file = _PACKAGE / "account" / "permissions.json"
    return {(row["service"], row["operation"]) for row in json.loads(file.read_text())["calls"]}


@pytest.fixture
def shop() -> Iterator[Any]:
    with artifact_server.serving(artifact_server.Shop()) as open_shop:
        yield open_shop


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other at once."""
    from ultracluster.supply import downloads

    monkeypatch.setattr(downloads.download, "__kwdefaults__", {
        **(downloads.download.__kwdefaults__ or {}), "pause": lambda _: None, "timeout": 5,
    })  # fmt: skip


@pytest.fixture
def lock_file(shop: Any, tmp_path: Path) -> Callable[..., Path]:
    """Writes a lock file: `lock_file(tool={"integrity": "checksum"}, data={...})`.

    Each component is one file of the shop, 300 kB unless the shop has it; a digest is filled in where
    `integrity` is `checksum` and none is given.
    """

    def write(**components: dict[str, Any]) -> Path:
        parts: dict[str, Any] = {}
        for number, (name, changes) in enumerate(components.items()):
            file = f"{name}.bin"
            content = shop.files.setdefault(file, bytes([number + 1]) * 300_000)
            artifact: dict[str, Any] = {
                "os": ["ubuntu22.04"],
                "arch": ["x86_64"],
                "url": shop.url(file),
                "name": file,
                "size": None,
                "integrity": "checksum",
                **changes,
            }
            if artifact["integrity"] == "checksum" and not {"sha256", "sha512"} & set(changes):
                artifact["sha256"] = hashlib.sha256(content).hexdigest()
            artifact = {key: value for key, value in artifact.items() if value is not ...}
            parts[_COMPONENTS[number]] = {
                "version": "9.0",
                "kind": "artifact",
                "need": "wanted",
                "constraint": "None: it is a test.",
                "source": "this test",
                "artifacts": [artifact],
            }
        release = {
            "schema": 2,
            "families": ["plain"],
            "release": RELEASE,
            "date": "2030-01-01",
            "summary": "For a test.",
            "components": parts,
        }
        file = tmp_path / f"{RELEASE}.lock"
        file.write_text(json.dumps(release, indent=2) + "\n")
        return file

    return write


_COMPONENTS = ("efa-installer", "gdrcopy", "enroot", "pyxis", "nccl-tests")


class Signer:
    """A GPG key of its own, made for this test run."""

    def __init__(self, home: Path, name: str) -> None:
        self.home = home / name
        self.home.mkdir(mode=0o700, parents=True)
        self._gpg(
            "--passphrase", "", "--quick-generate-key", f"{name} <{name}@example.com>", "ed25519", "sign", "0"
        )
        rows = self._gpg("--with-colons", "--list-keys").decode().splitlines()
        self.fingerprint = next(row.split(":")[9] for row in rows if row.startswith("fpr"))
        self.key = self._gpg("--armor", "--export")
        self._signed: dict[bytes, bytes] = {}

    def sign(self, content: bytes) -> bytes:
        """Sign each content once: many tests publish the same files."""
        if content not in self._signed:
            file = self.home / "content"
            file.write_bytes(content)
            self._signed[content] = self._gpg("--output", "-", "--detach-sign", str(file))
        return self._signed[content]

    def _gpg(self, *arguments: str) -> bytes:
        command = ["gpg", "--homedir", str(self.home), "--batch", "--pinentry-mode", "loopback", *arguments]
        return subprocess.run(command, capture_output=True, check=True).stdout


@pytest.fixture(scope="session")
def signers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Signer, Signer]]:
    """The right key and a stranger's."""
    need("gpg")
    # a socket of gpg-agent wants a short path
    with tempfile.TemporaryDirectory(prefix="gpg") as home:
        made = Signer(Path(home), "right"), Signer(Path(home), "stranger")
        yield made
        for one in made:
            subprocess.run(["gpgconf", "--homedir", str(one.home), "--kill", "all"], check=False)

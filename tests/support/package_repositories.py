"""Real packages in really signed repositories, a mirror of them in moto's S3, and what a node finds there."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from ultracluster.software import read_lock
from ultracluster.supply.mirror import mirror_release

BUCKET = "example-software"
PAIR = "ubuntu22.04-x86_64"
LOCK = "p/2030.01/2030.01.lock"
VENDOR = {
    "tool": {"Version": "1:2.0-1", "Depends": "libtool (>= 2.0), editor | nowhere, libc6 (>= 2.35), shell"},
    "libtool": {"Version": "2.1-1~rc1", "Pre-Depends": "newlib (>= 3.0)"},
    "modules-1.0-aws": {"Version": "5", "Depends": "linux-image-1.0-aws, libtool (= 2.1-1~rc1)"},
    "aside": {"Version": "1"},
}
OLDER = {"tool": {"Version": "1:1.9-1"}, "libtool": {"Version": "2.0-1"}}
DISTRIBUTION = {
    "libc6": {"Version": "2.35-0", "Priority": "required"},
    "shell": {"Version": "5", "Essential": "yes", "Depends": "libshell"},
    "libshell": {"Version": "5"},
    "newlib": {"Version": "2.9", "Priority": "important"},
    "vi": {"Version": "9", "Provides": "editor (= 9)", "Depends": "absent | vi-data"},
    "vi-data": {"Version": "9"},
}
UPDATES = {"newlib": {"Version": "3.1"}, "libc6": {"Version": "2.35-1", "Priority": "required"}}
CHOSEN = {"tool", "libtool", "newlib", "vi", "vi-data"}


@pytest.fixture(scope="session")
def debs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, dict[str, str]], tuple[str, bytes]]:
    """Builds a package: its control paragraph and its file."""
    folder = tmp_path_factory.mktemp("debs")
    built: dict[str, tuple[str, bytes]] = {}

    def build(name: str, fields: dict[str, str]) -> tuple[str, bytes]:
        control = "".join(
            f"{key}: {value}\n"
            for key, value in {
                "Package": name,
                "Architecture": "amd64",
                "Maintainer": "Test <test@example.org>",
                "Description": f"{name}\n more about it",
                **fields,
            }.items()
        )
        if control not in built:
            tree = folder / str(len(built))
            (tree / "DEBIAN").mkdir(parents=True)
            (tree / "DEBIAN").chmod(0o755)  # dpkg-deb refuses what a umask of 077 leaves
            (tree / "DEBIAN/control").write_text(control)
            file = folder / f"{len(built)}.deb"
            subprocess.run(
                ["dpkg-deb", "--build", "--root-owner-group", str(tree), str(file)],
                check=True,
                capture_output=True,
            )
            built[control] = control, file.read_bytes()
        return built[control]

    return build


class Repositories:
    """A maker's flat repository and a distribution's archive, each signed by its own key."""

    def __init__(self, shop: Any, debs: Any, signers: Any) -> None:
        self.shop, self.debs = shop, debs
        self.vendor_key, self.archive_key = signers
        self.head = ""
        self.suffix = ".xz"
        shop.files |= {"vendor.key": self.vendor_key.key, "archive.key": self.archive_key.key}

    def publish(self, vendor: Any = VENDOR, older: Any = OLDER, updates: Any = UPDATES) -> None:
        index = self.pool("vendor", older) + self.pool("vendor", vendor)
        self.sign("vendor", {"Packages": index}, self.vendor_key)
        for suite, packages in (("stable", DISTRIBUTION), ("stable-updates", updates)):
            text = self.pool("debian", packages)
            self.sign(f"debian/dists/{suite}", {"main/binary-amd64/Packages": text}, self.archive_key)

    def pool(self, place: str, packages: Any) -> str:
        text = ""
        for name, fields in packages.items():
            control, content = self.debs(name, fields)
            file = f"pool/{name}_{fields['Version'].rpartition(':')[2]}_amd64.deb"
            self.shop.files[f"{place}/{file}"] = content
            text += f"{control}Filename: ./{file}\nSize: {len(content)}\n"
            text += f"SHA256: {hashlib.sha256(content).hexdigest()}\n\n"
        return text

    def sign(self, root: str, indexes: dict[str, str], signer: Any) -> None:
        pack = {".xz": lzma.compress, ".gz": gzip.compress, "": bytes}[self.suffix]
        release = f"Suite: stable\n{self.head}SHA256:\n"
        for name, text in indexes.items():
            content = pack(text.encode())
            digest = hashlib.sha256(content).hexdigest()
            folder = f"{root}/{name}".rpartition("/")[0]
            path = f"{folder}/by-hash/SHA256/{digest}" if "By-Hash" in self.head else f"{root}/{name}"
            self.shop.files[path + ("" if "By-Hash" in self.head else self.suffix)] = content
            release += f" {digest} {len(content)} {name}{self.suffix}\n"
        self.shop.files[f"{root}/Release"] = release.encode()
        self.shop.files[f"{root}/Release.gpg"] = signer.sign(release.encode())

    def archives(self) -> dict[str, Any]:
        row = {
            "os": "ubuntu22.04",
            "arch": "x86_64",
            "url": self.shop.url("debian"),
            "suites": ["stable main", "stable-updates main"],
            "key_url": self.shop.url("archive.key"),
            "key_fingerprint": self.archive_key.fingerprint,
        }
        return {"kernel": ["linux-image-*"], "archives": [row]}


@pytest.fixture
def repositories(shop: Any, debs: Any, signers: Any) -> Repositories:
    made = Repositories(shop, debs, signers)
    made.publish()
    return made


@pytest.fixture
def lock(shop: Any, repositories: Repositories, tmp_path: Path) -> Callable[..., Path]:
    def write(*names: str, **changes: Any) -> Path:
        repository = {
            "url": shop.url("vendor/"),
            "suite": "/",
            "key_url": shop.url("vendor.key"),
            "key_fingerprint": repositories.vendor_key.fingerprint,
        }
        entry = {"os": ["ubuntu22.04"], "arch": ["x86_64"], "names": list(names or ["tool=1:2.0-*"])}
        part = {
            "version": "2.0",
            "kind": "packages",
            "need": "wanted",
            "constraint": "None: it is a test.",
            "source": "this test",
            "packages": [{**entry, "repository": {**repository, **changes}}],
        }
        content = {
            "schema": 2,
            "families": ["plain"],
            "release": "2030.01",
            "date": "2030-01-01",
            "summary": "For a test.",
            "components": {"dcgm": part},
        }
        file = tmp_path / "2030.01.lock"
        file.write_text(json.dumps(content))
        return file

    return write


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        yield client


@pytest.fixture
def mirror(s3: Any, repositories: Repositories, tmp_path: Path) -> Callable[..., Any]:
    def run(file: Path, **options: Any) -> Any:
        options = {
            "bucket": BUCKET,
            "prefix": "p",
            "cache": tmp_path / "cache",
            "s3": s3,
            "archives": repositories.archives(),
            **options,
        }
        return mirror_release(file, **options)

    return run


def keys(s3: Any) -> set[str]:
    return {row["Key"] for row in s3.list_objects_v2(Bucket=BUCKET).get("Contents", ())}


def body(s3: Any, key: str) -> bytes:
    return s3.get_object(Bucket=BUCKET, Key=f"p/2030.01/{key}")["Body"].read()


def listed(s3: Any, file: Path, pair: str = PAIR) -> dict[str, Any]:
    """The list of packages, as a node finds it: from the lock file in the mirror, each step by digest."""
    recorded = json.loads(s3.get_object(Bucket=BUCKET, Key=LOCK)["Body"].read())["package_sets"][pair]
    assert read_lock(file).package_sets[pair] == recorded
    content = body(s3, f"{recorded[:16]}/packages-{pair}.json")
    assert hashlib.sha256(content).hexdigest() == recorded
    return json.loads(content)


def downloaded(s3: Any, content: dict[str, Any], folder: Path) -> Path:
    """All of a set in a folder, as a node lays it out."""
    rows = [(row["path"], row["sha256"]) for row in content["index"]]
    rows += [(row["file"], row["sha256"]) for row in content["packages"]]
    for path, digest in rows:
        found = body(s3, f"{digest[:16]}/{path.rpartition('/')[2]}")
        assert hashlib.sha256(found).hexdigest() == digest
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(found)
    return folder


def names(content: dict[str, Any]) -> set[str]:
    return {row["name"] for row in content["packages"]}

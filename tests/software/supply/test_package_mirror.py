"""Packages in the mirror: real packages in really signed repositories, moto's S3, and apt as the judge."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import boto3
import pytest
from moto import mock_aws

from ultracluster.software import read_lock
from ultracluster.software.supply import release_lock
from ultracluster.software.supply.mirror import mirror_release
from ultracluster.software.supply.mirror_bucket import MirrorError

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
Change = Callable[[Any], object]

pytestmark = pytest.mark.usefixtures("no_pause")


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


def test_what_is_named_and_all_that_it_needs(lock: Any, mirror: Any, s3: Any) -> None:
    """Not what every image has, unless a newer one is needed; not what has only a similar name."""
    file = lock()
    done = mirror(file)
    content = listed(s3, file)
    assert names(content) == CHOSEN
    versions = {row["name"]: row["version"] for row in content["packages"]}
    assert (versions["tool"], versions["newlib"], versions["libtool"]) == ("1:2.0-1", "3.1", "2.1-1~rc1")
    assert done.package_sets == {PAIR: len(CHOSEN)}
    needs = {row["name"]: {one.rpartition("/")[2] for one in row["needs"]} for row in content["packages"]}
    assert needs["tool"] == {"libtool_2.1-1_rc1_amd64.deb", "vi_9_amd64.deb"}
    assert len(keys(s3)) == len(CHOSEN) + 3  # Packages, the list, the lock file


@pytest.mark.parametrize("suffix", [".xz", ".gz", ""])
def test_apt_installs_it_with_nothing_but_the_mirror(
    repositories: Repositories, lock: Any, mirror: Any, s3: Any, tmp_path: Path, suffix: str
) -> None:
    """apt itself resolves the set, on a system that has what every image has."""
    repositories.suffix = suffix
    repositories.publish()
    file = lock()
    mirror(file)
    folder = downloaded(s3, listed(s3, file), tmp_path / "node")
    said = simulated(folder, tmp_path / "apt", repositories.debs, "tool=1:2.0-1")
    installed = {line.split()[1] for line in said.splitlines() if line.startswith("Inst ")}
    assert installed == CHOSEN


def simulated(folder: Path, state: Path, debs: Any, *wanted: str) -> str:
    for path in ("lists/partial", "archives/partial", "etc"):
        (state / path).mkdir(parents=True)
    status = "".join(
        debs(name, DISTRIBUTION[name])[0] + "Status: install ok installed\n\n"
        for name in ("libc6", "shell", "libshell", "newlib")
    )
    (state / "status").write_text(status)
    (state / "sources.list").write_text(f"deb [trusted=yes] file:{folder} ./\n")
    options = {
        "Dir::State": state,
        "Dir::State::status": state / "status",
        "Dir::State::Lists": state / "lists",
        "Dir::Cache": state,
        "Dir::Etc": state / "etc",
        "Dir::Etc::SourceList": state / "sources.list",
        "APT::Architecture": "amd64",
        "APT::Update::Error-Mode": "any",
        "APT::Sandbox::User": "",
    }
    command = ["apt-get", *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]
    for arguments in (["update"], ["--simulate", "--no-install-recommends", "install", *wanted]):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_second_run_asks_no_repository_and_changes_nothing(
    shop: Any, repositories: Repositories, lock: Any, mirror: Any, tmp_path: Path
) -> None:
    file = lock()
    mirror(file)
    before = file.read_bytes()
    repositories.publish(vendor={**VENDOR, "libtool": {"Version": "2.2-1"}})
    for cache in (tmp_path / "cache", tmp_path / "another"):
        shop.sent.clear()
        again = mirror(file, cache=cache)
        assert (again.uploaded, shop.sent, file.read_bytes()) == ([], [], before)
        assert again.package_sets == {PAIR: len(CHOSEN)}


@pytest.mark.parametrize("how", ["renew", "another name"])
def test_packages_are_chosen_again_when_asked_for(
    repositories: Repositories, lock: Any, mirror: Any, s3: Any, how: str
) -> None:
    file = lock()
    mirror(file)
    repositories.publish(vendor={**VENDOR, "libtool": {"Version": "2.2-1"}})
    if how == "another name":
        file.write_text(file.read_text().replace("tool=1:2.0-*", "tool"))
    mirror(file, renew=how == "renew")
    assert ("libtool", "2.2-1") in {(row["name"], row["version"]) for row in listed(s3, file)["packages"]}


def test_another_bucket_gets_the_same_set(
    repositories: Repositories, lock: Any, mirror: Any, s3: Any
) -> None:
    file = lock()
    mirror(file)
    before = file.read_bytes()
    repositories.publish(vendor={**VENDOR, "libtool": {"Version": "2.2-1"}})
    s3.create_bucket(Bucket="another-bucket")
    assert len(mirror(file, bucket="another-bucket").uploaded) == len(CHOSEN) + 3
    assert file.read_bytes() == before


def test_a_dry_run_changes_nothing(shop: Any, lock: Any, mirror: Any, s3: Any) -> None:
    file = lock()
    before = file.read_bytes()
    done = mirror(file, dry_run=True)
    assert len(done.uploaded) == len(CHOSEN) + 3
    assert (keys(s3), file.read_bytes()) == (set(), before)
    assert not [path for path, _, _ in shop.sent if path.endswith(".deb")]


def test_without_packages_the_lock_file_stays(shop: Any, lock: Any, mirror: Any, s3: Any) -> None:
    file = lock()
    before = file.read_bytes()
    done = mirror(file, packages=False)
    assert (keys(s3), shop.sent, file.read_bytes()) == ({LOCK}, [], before)
    assert "the image has to bring them" in done.left_out[0]


def test_only_the_systems_that_are_asked_for(lock: Any, mirror: Any, shop: Any) -> None:
    done = mirror(lock(), only=lambda system, arch: arch == "aarch64")
    assert (done.package_sets, shop.sent) == ({}, [])


def flip(repositories: Repositories, name: str) -> None:
    content = repositories.shop.files[name]
    repositories.shop.files[name] = bytes([content[0] ^ 1]) + content[1:]


TAMPERED: dict[str, tuple[Change, str]] = {
    "the index": (lambda r: flip(r, "vendor/Packages.xz"), r"refused Packages\.xz: its sha256 is"),
    "the index of the distribution": (
        lambda r: flip(r, "debian/dists/stable-updates/main/binary-amd64/Packages.xz"),
        r"refused Packages\.xz",
    ),
    "the signed file": (
        lambda r: r.shop.files.update({"vendor/Release": r.shop.files["vendor/Release"] + b"More: yes\n"}),
        "signature does not match",
    ),
    "another signer": (
        lambda r: r.shop.files.update(
            {"vendor/Release.gpg": r.archive_key.sign(r.shop.files["vendor/Release"])}
        ),
        "vendor/Release: refused Release",
    ),
    "another signer with its key": (
        lambda r: r.shop.files.update(
            {
                "vendor/Release.gpg": r.archive_key.sign(r.shop.files["vendor/Release"]),
                "vendor.key": r.archive_key.key,
            }
        ),
        "the release pins",
    ),
    "no signature": (lambda r: r.shop.files.pop("vendor/Release.gpg"), "HTTP 404"),
    "no index": (
        lambda r: r.sign("vendor", {}, r.vendor_key),
        "lists no Packages with a SHA256",
    ),
    "an old index": (
        lambda r: (setattr(r, "head", "Valid-Until: Sat, 01 Jan 2022 00:00:00 UTC\n"), r.publish()),
        "it was valid until Sat, 01 Jan 2022",
    ),
    "a dependency that is nowhere": (
        lambda r: r.publish(vendor={**VENDOR, "libtool": {"Version": "2.1", "Depends": "a (>= 1) | b"}}),
        r"libtool 2\.1 needs a \(>= 1\) \| b, which no repository has",
    ),
    "a dependency that is too old": (
        lambda r: r.publish(updates={"libc6": {"Version": "2.36"}}),
        r"libtool 2\.1-1~rc1 needs newlib \(>= 3\.0\), which no repository has",
    ),
    "the package itself": (lambda r: r.publish(vendor={}), r"dcgm: .*/vendor/ has no tool=1:2\.0-\*"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_what_cannot_be_trusted_stops_it_before_anything_is_uploaded(
    repositories: Repositories, lock: Any, mirror: Any, s3: Any, what: str
) -> None:
    change, says = TAMPERED[what]
    file = lock()
    before = file.read_bytes()
    change(repositories)
    with pytest.raises(MirrorError, match=says) as caught:
        mirror(file)
    assert len(caught.value.reasons) == 1
    assert caught.value.reasons[0].startswith(f"packages of {PAIR}: ")
    assert (keys(s3), file.read_bytes()) == (set(), before)


def test_a_tampered_package_is_refused_and_the_rest_stays_for_the_next_run(
    shop: Any, repositories: Repositories, lock: Any, mirror: Any, s3: Any
) -> None:
    file = lock()
    before = file.read_bytes()
    flip(repositories, "debian/pool/vi_9_amd64.deb")
    with pytest.raises(MirrorError, match=r"packages of .*: refused vi_9_amd64\.deb: its sha256"):
        mirror(file)
    assert len(keys(s3)) == len(CHOSEN) - 1  # neither index nor list nor lock file
    assert file.read_bytes() == before

    flip(repositories, "debian/pool/vi_9_amd64.deb")
    shop.sent.clear()
    mirror(file)
    assert [path for path, _, _ in shop.sent if path.endswith(".deb")] == ["debian/pool/vi_9_amd64.deb"]
    assert names(listed(s3, file)) == CHOSEN


def test_a_repository_without_a_pinned_key(lock: Any, mirror: Any, shop: Any) -> None:
    with pytest.raises(
        MirrorError, match=r"dcgm: the key of .* has no fingerprint, run `ultracluster release"
    ):
        mirror(lock(key_fingerprint=None))
    assert shop.sent == []


def test_an_index_by_its_digest(repositories: Repositories, lock: Any, mirror: Any, s3: Any) -> None:
    """Where a repository offers that, an update between the two files does not matter."""
    repositories.shop.files = {
        name: content for name, content in repositories.shop.files.items() if "Packages" not in name
    }
    repositories.head = "Acquire-By-Hash: yes\n"
    repositories.publish()
    file = lock()
    mirror(file)
    assert names(listed(s3, file)) == CHOSEN


def test_kernel_modules_are_there_for_every_kernel(
    repositories: Repositories, lock: Any, mirror: Any, s3: Any
) -> None:
    """Nodes ask for those of their own kernel, which no mirror brings; what nothing fits is left out."""
    modules = {
        f"lustre-client-modules-{kernel}-aws": {"Version": "2.15", "Depends": f"linux-image-{kernel}, {more}"}
        for kernel, more in (("6.8.0-1", "libtool"), ("6.8.0-2", "libtool"), ("6.5.0-9", "gone"))
    }
    utils = {"lustre-client-utils": {"Version": "2.15"}}
    repositories.publish(vendor={**VENDOR, **modules, **utils})
    file = lock("lustre-client-modules-aws")
    mirror(file)
    assert names(listed(s3, file)) == {
        "lustre-client-modules-6.8.0-1-aws",
        "lustre-client-modules-6.8.0-2-aws",
        "lustre-client-utils",
        "libtool",
        "newlib",
    }


def test_a_lock_file_that_cannot_be_written(lock: Any, mirror: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(release_lock, "replaced", refuse)
    with pytest.raises(MirrorError, match=r"2030\.01\.lock: the packages cannot be recorded in it \(Perm"):
        mirror(lock())


PRIMARY = Path(__file__).with_name("primary.xml")


class DnfRepository:
    """A repository as createrepo_c writes it; what the packages contain does not matter to a mirror."""

    def __init__(self, shop: Any, signer: Any) -> None:
        self.shop, self.signer = shop, signer
        shop.files["rpm.key"] = signer.key

    def publish(self, primary: str) -> None:
        packed = gzip.compress(primary.encode())
        digest = hashlib.sha256(packed).hexdigest()
        repomd = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<repomd xmlns="http://linux.duke.edu/metadata/repo">'
            f'<data type="primary"><checksum type="sha256">{digest}</checksum>'
            '<location href="repodata/primary.xml.gz"/></data></repomd>\n'
        ).encode()
        self.shop.files |= {
            "rpm/repodata/primary.xml.gz": packed,
            "rpm/repodata/repomd.xml": repomd,
            "rpm/repodata/repomd.xml.asc": self.signer.sign(repomd),
        }


@pytest.fixture
def rpms(shop: Any, signers: Any) -> DnfRepository:
    made = DnfRepository(shop, signers[0])
    primary = PRIMARY.read_text()
    for line in primary.splitlines():
        if 'location href="' in line:
            name = line.split('"')[1]
            shop.files[f"rpm/{name}"] = name.rpartition(".")[0].rpartition(".")[0].encode()
    made.publish(primary)
    return made


@pytest.fixture
def rpm_lock(shop: Any, rpms: DnfRepository, lock: Any) -> Callable[..., Path]:
    def write(*names: str) -> Path:
        file = lock(
            *names,
            url=shop.url("rpm"),
            suite=None,
            key_url=shop.url("rpm.key"),
            key_fingerprint=rpms.signer.fingerprint,
        )
        content = json.loads(file.read_text())
        entries = content["components"]["dcgm"]["packages"]
        entries[0]["os"] = ["al2023"]
        entries.append({"os": ["al2023"], "arch": ["x86_64"], "names": ["lustre-client"]})
        file.write_text(json.dumps(content))
        return file

    return write


@pytest.mark.parametrize("asked", ["container-tool-1.20.1-1", "container-tool-1.20.1", "container-tool-1.2*"])
def test_rpm_packages_with_what_their_repository_has_of_their_needs(
    rpm_lock: Any, mirror: Any, s3: Any, tmp_path: Path, asked: str
) -> None:
    """glibc, /bin/sh and conditions are left to the system's own repositories."""
    file = rpm_lock(asked)
    done = mirror(file)
    content = listed(s3, file, "al2023-x86_64")
    assert {(row["name"], row["version"]) for row in content["packages"]} == {
        ("container-tool", "1.20.1-1"),
        ("container-tool-base", "1.20.1-1"),
        ("libcontainer1", "1:1.20.1-1"),
    }
    assert [line for line in done.left_out if "lustre-client on al2023" in line and "S3 buckets" in line]

    folder = downloaded(s3, content, tmp_path / "node")
    primary = (folder / "repodata/primary.xml").read_bytes()
    assert hashlib.sha256(primary).hexdigest() in (folder / "repodata/repomd.xml").read_text()
    hrefs = {row.get("href", "") for row in ElementTree.fromstring(primary).iter() if row.get("href")}  # noqa: S314
    assert hrefs == {row["file"] for row in content["packages"]}
    assert all((folder / href).is_file() for href in hrefs)
    assert mirror(file).uploaded == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("rpm/repodata/primary.xml.gz", r"refused primary\.xml\.gz: its sha256"),
        ("rpm/repodata/repomd.xml", "signature does not match"),
        ("rpm/repodata/repomd.xml.asc", r"refused repomd\.xml"),
        ("rpm/libcontainer1-1.20.1-1.x86_64.rpm", r"refused libcontainer1-1\.20\.1-1\.x86_64\.rpm"),
    ],
)
def test_a_tampered_rpm_repository(
    rpms: DnfRepository, rpm_lock: Any, mirror: Any, s3: Any, name: str, says: str
) -> None:
    file = rpm_lock("container-tool-1.20.1-1")
    content = rpms.shop.files[name]
    rpms.shop.files[name] = b"no signature at all" if name.endswith(".asc") else content[:-1] + b" "
    with pytest.raises(MirrorError, match=says):
        mirror(file)
    assert LOCK not in keys(s3)


def test_an_rpm_that_is_not_there(rpm_lock: Any, mirror: Any) -> None:
    with pytest.raises(MirrorError, match=r"dcgm: .*/rpm has no container-tool-9 for x86_64"):
        mirror(rpm_lock("container-tool-9"))


KILLED = """
import json, sys, time
from pathlib import Path
import boto3
from moto import mock_aws
from ultracluster.software.supply.mirror import mirror_release
class Slow:
    def start(self, name, size):
        return lambda count: time.sleep(30 if name.startswith("vi-data") else 0)
with mock_aws():
    s3 = boto3.client("s3", region_name="us-east-1")
    s3.create_bucket(Bucket="a-bucket")
    mirror_release(Path(sys.argv[1]), bucket="a-bucket", cache=Path(sys.argv[2]), s3=s3, progress=Slow(),
                   jobs=1, archives=json.loads(sys.argv[3]))
"""


def test_killed_in_the_middle_the_next_run_goes_on(
    shop: Any, repositories: Repositories, lock: Any, mirror: Any, s3: Any, tmp_path: Path
) -> None:
    """kill -9 while the last package comes: nothing is recorded, and what had come is not fetched again."""
    file = lock()
    before = file.read_bytes()
    arguments = [str(file), str(tmp_path / "cache"), json.dumps(repositories.archives())]
    process = subprocess.Popen([sys.executable, "-c", KILLED, *arguments])
    last = "debian/pool/vi-data_9_amd64.deb"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not shop.bytes_of(last):
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert file.read_bytes() == before
    shop.sent.clear()

    mirror(file)

    assert {path for path, _, _ in shop.sent if path.endswith(".deb")} <= {last}
    assert names(listed(s3, file)) == CHOSEN


def test_a_system_that_the_release_has_no_packages_for() -> None:
    command = ["ultracluster", "release", "mirror", "--bucket", BUCKET, "--release", "2026.11"]
    done = subprocess.run([*command, "--os", "ubuntu20.04"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--os ubuntu20.04: the release has packages for al2023, ubuntu22.04" in done.stderr

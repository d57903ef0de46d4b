"""The scripts in a real Debian root: real apt, dpkg, flock, curl and gpg.

debootstrap makes the root; packages are built here and served on 127.0.0.1. Where there is no
debootstrap, no right to use it or no archive, the tests are skipped.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from debian_archive import Key, Package, Server, make_archive, output
from debian_root import enter, make_root

TOOLS = ["dpkg-deb", "gpg"]
BUCKET = "example-software"
SLOW = "/slow"  # while this file is in the root, installing any of these does not end
HOOKS = "usr/share/enroot/hooks.d"


def package(name: str, version: str, files: dict[str, str], depends: str = "") -> Package:
    slow = f"#!/bin/sh\n[ ! -e {SLOW} ] || sleep 600\n"
    return Package(name=name, version=version, files=files, depends=depends, postinst=slow)


PACKAGES = [
    package(
        "enroot",
        "4.2.1-1",
        {
            "usr/bin/enroot": "#!/bin/sh\necho 4.2.1\n",
            f"{HOOKS}/50-slurm-pmi.sh": "#!/bin/sh\n",
            f"{HOOKS}/50-slurm-pytorch.sh": "#!/bin/sh\n",
        },
        "squash-tools",
    ),
    package(
        "nvidia-container-toolkit",
        "1.20.1-1",
        {"usr/bin/nvidia-ctk": "#!/bin/sh\necho NVIDIA Container Toolkit CLI version 1.20.1\n"},
    ),
    package("libnccl2", "2.30.7-1+cuda13.3", {"usr/lib/libnccl.so.2.30.7": ""}, "cuda-common (>= 13)"),
    package("cuda-common", "13.3-1", {"usr/share/cuda-common": ""}),
    package("squash-tools", "4.6-1", {"usr/bin/mksquash": "#!/bin/sh\n"}),
]


@dataclass
class Node:
    root: Path
    server: Server
    fingerprint: str

    def start(self, *options: str, network: bool = True) -> subprocess.Popen[str]:
        bake = ["/scripts/bake.sh", "--release", "2026.11", "--accelerator", "none", "--efa", "no"]
        deadlines = {
            "ULTRACLUSTER_SPREAD": "0",
            "ULTRACLUSTER_FETCH_DEADLINE": "60",
            "ULTRACLUSTER_PACKAGES_DEADLINE": "300",
        }
        return subprocess.Popen(
            enter(self.root, *bake, *options, network=network),
            env={"PATH": os.environ["PATH"]} | deadlines,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *options: str, network: bool = True) -> str:
        process = self.start(*options, network=network)
        said, _ = process.communicate(timeout=600)
        return f"{said}status {process.returncode}"

    def states(self) -> dict[str, str]:
        """Of the last run's steps; the line behind them is about the run."""
        report = (self.root / "var/log/ultracluster/report.jsonl").read_text().splitlines()
        *before, last = map(json.loads, report)
        assert last["run"] == "ended"
        steps = itertools.takewhile(lambda line: "step" in line, reversed(before))
        return {line["step"]: line["state"] for line in steps}

    def lock(self, **changes: Mapping[str, object]) -> None:
        url = self.server.url
        here = {"os": ["debian12"], "arch": ["x86_64", "aarch64"]}
        deb = self.server.folder / "enroot_4.2.1-1_all.deb"
        artifact = {
            "url": f"{url}/{deb.name}",
            "name": deb.name,
            "size": deb.stat().st_size,
            "sha256": hashlib.sha256(deb.read_bytes()).hexdigest(),
            "integrity": "checksum",
        }
        repository = {
            "url": f"{url}/",
            "suite": "/",
            "key_url": f"{url}/key.asc",
            "key_fingerprint": self.fingerprint,
        }
        components: dict[str, dict[str, object]] = {
            "enroot": {
                "version": "4.2.1",
                "kind": "artifact",
                "artifacts": [here | artifact],
                "packages": [here | {"names": ["squash-tools"]}],
            },
            "nccl": {
                "version": "2.30.7",
                "kind": "packages",
                "packages": [here | {"names": ["libnccl2=2.30.7-1+cuda13.3"], "repository": repository}],
            },
            "container-toolkit": {
                "version": "1.20.1",
                "kind": "packages",
                "packages": [
                    here | {"names": ["nvidia-container-toolkit=1.20.1-1"], "repository": repository}
                ],
            },
        }
        for name, change in changes.items():
            components[name] |= change
        for component in components.values():
            component |= {"need": "required", "constraint": "None: it is a test.", "source": "this test"}
        head = {
            "schema": 2,
            "families": ["plain"],
            "release": "2026.11",
            "date": "2026-11-01",
            "summary": "For a test.",
        }
        self.lock_file.write_text(json.dumps({**head, "components": components}))

    @property
    def archive(self) -> dict[str, object]:
        """The same repository, as the archive of the distribution."""
        url = self.server.url
        key = {"key_url": f"{url}/key.asc", "key_fingerprint": self.fingerprint}
        return {"os": "debian12", "arch": "x86_64", "url": f"{url}/", "suites": ["/"], **key}

    def system_has(self, repository: str) -> None:
        """The repository that the system itself is set up for."""
        (self.root / "etc/apt/sources.list").write_text(f"{repository}\n")

    @property
    def lock_file(self) -> Path:
        return self.root / "scripts/releases/2026.11.lock"

    def reset(self) -> None:
        subprocess.run(
            ["chroot", self.root, "dpkg", "--purge", "--force-all", *(one.name for one in PACKAGES)],
            capture_output=True,
            check=False,
        )
        for path in ["etc/ultracluster", "var/log/ultracluster", "run/ultracluster"]:
            shutil.rmtree(self.root / path, ignore_errors=True)
        for file in (self.root / "etc/apt/sources.list.d").glob("*"):
            file.unlink()
        shutil.rmtree(self.root / "var/lib/apt/lists", ignore_errors=True)  # as an image has them
        self.system_has(f"deb [trusted=yes] {self.server.url} ./")
        (self.root / SLOW.lstrip("/")).unlink(missing_ok=True)
        shutil.rmtree(self.root / "bucket", ignore_errors=True)
        self.server.asked.clear()
        self.lock()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("debian")
    root, web = folder / "root", folder / "web"
    make_root(root, tools=TOOLS)
    key = Key.make(folder / "gnupg")
    make_archive(web, PACKAGES, key)
    with Server(web).running() as server:
        yield Node(root, server, key.fingerprint)
    shutil.rmtree(root)


@pytest.fixture
def node(built: Node) -> Node:
    built.reset()
    return built


def test_a_bare_system_is_brought_to_the_release(node: Node) -> None:
    assert node.run().endswith("status 0")
    states = node.states()
    assert {step for step, state in states.items() if state == "installed"} == {
        "nccl",
        "container_toolkit",
        "enroot",
        "enroot_config",
        "environment",
        "holds",
    }
    held = subprocess.run(
        ["chroot", node.root, "apt-mark", "showhold"], capture_output=True, text=True, check=True
    )
    assert held.stdout.split() == ["enroot", "libnccl2", "nvidia-container-toolkit"]
    assert not (node.root / "var/lib/ultracluster/work").exists()

    node.server.asked.clear()
    assert node.run().endswith("status 0")
    assert set(node.states().values()) == {"already", "skipped"}
    assert node.server.asked == []


def test_a_transfer_that_is_cut_and_a_tampered_file(node: Node) -> None:
    node.server.cut.add("enroot_4.2.1-1_all.deb")
    assert node.run().endswith("status 0")

    node.reset()
    node.lock(enroot={"artifacts": [tampered(node)]})
    said = node.run()
    assert said.endswith("status 1")
    assert "FAILED enroot: refused http://127.0.0.1:" in said.splitlines()[-2]
    assert not (node.root / "usr/bin/enroot").exists()


def tampered(node: Node) -> dict[str, object]:
    lock = json.loads((node.root / "scripts/releases/2026.11.lock").read_text())
    artifact = lock["components"]["enroot"]["artifacts"][0]
    return artifact | {"sha256": hashlib.sha256(b"another file").hexdigest()}


def test_a_repository_with_another_key_is_refused(node: Node) -> None:
    node.fingerprint, right = "0" * 40, node.fingerprint
    node.lock()
    node.fingerprint = right
    said = node.run()
    assert said.endswith("status 1")
    assert "key.asc: it is not the key 0000" in said.splitlines()[-2]
    assert not (node.root / "usr/lib/libnccl.so.2.30.7").exists()


def test_the_locks_of_apt_and_dpkg_are_waited_for(node: Node) -> None:
    """The system's timers hold them at a first boot; what enroot depends on is in the system's own lists."""
    node.lock(**{name: {"accelerator": "nvidia"} for name in ("nccl", "container-toolkit")})
    lists = node.root / "var/lib/apt/lists/lock"
    lists.parent.mkdir()
    log = node.root / "var/log/provision/provisioning.log"
    log.unlink(missing_ok=True)
    with (
        lists.open("w") as of_lists,
        (node.root / "var/lib/dpkg/lock-frontend").open("w") as lock,
    ):
        fcntl.lockf(of_lists, fcntl.LOCK_EX)
        fcntl.lockf(lock, fcntl.LOCK_EX)
        process = node.start()
        refused = "Could not get lock /var/lib/apt/lists/lock"
        until(lambda: log.exists() and refused in log.read_text(), "apt-get update", process)
        fcntl.lockf(of_lists, fcntl.LOCK_UN)
        until(lambda: installing(process), "apt-get install", process)
        time.sleep(1)
        assert process.poll() is None
        fcntl.lockf(lock, fcntl.LOCK_UN)
        said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said


def test_killed_inside_dpkg_the_next_run_completes_it(node: Node) -> None:
    (node.root / SLOW.lstrip("/")).touch()
    process = node.start()
    status = node.root / "var/lib/dpkg/status"
    until(
        lambda: any(state in status.read_text() for state in ("half-configured", "unpacked")),
        "the package's own script",
        process,
    )
    kill_all_in(node.root)
    process.communicate()
    (node.root / SLOW.lstrip("/")).unlink()
    said = node.run()
    assert said.endswith("status 0"), said
    assert "completing what an interrupted package installation has left" in said
    assert node.states()["enroot"] in ("installed", "already")


def until(condition: Callable[[], bool], what: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline and process.poll() is None, f"never came to {what}"
        time.sleep(0.05)


def kill_all_in(root: Path) -> None:
    """Until none is left: apt starts dpkg in a session of its own, perhaps between a look and a kill."""
    while pids := [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if is_in(root, entry)]:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def is_in(root: Path, process: Path) -> bool:
    """Whether it is the root folder of the process; a dead one has none."""
    try:
        return (process / "root").readlink() == root
    except OSError:
        return False


def installing(process: subprocess.Popen[str]) -> bool:
    words = output("ps", "-ww", "-o", "args=", "--sid", str(process.pid))
    return any(line.startswith("apt-get") and " install " in line for line in words.splitlines())


def mirrored(node: Node, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mirror the release to an S3 of moto, and put the bucket's content where the node's `aws` looks."""
    import boto3
    from moto import mock_aws

    from ultracluster.supply.mirror import Selection, mirror_release

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket=BUCKET)
        mirror_release(
            node.lock_file,
            bucket=BUCKET,
            prefix="p",
            cache=cache,
            s3=s3,
            selection=Selection(only=lambda system, arch: arch == "x86_64"),
            archives={"kernel": [], "archives": [node.archive]},
        )
        for row in s3.list_objects_v2(Bucket=BUCKET)["Contents"]:
            file = node.root / "bucket" / row["Key"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(s3.get_object(Bucket=BUCKET, Key=row["Key"])["Body"].read())
    aws = node.root / "usr/local/bin/aws"
    aws.write_text(
        f'#!/bin/sh\nfor last; do from=$to to=$last; done\ncp "/bucket/${{from#s3://{BUCKET}/}}" "$to"\n'
    )
    aws.chmod(0o755)


def test_packages_come_from_the_mirror_without_a_network(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirrored(node, tmp_path, monkeypatch)
    options = ("--mirror", f"s3://{BUCKET}/p")
    node.system_has("deb http://127.0.0.1:9/debian bookworm main")
    node.server.asked.clear()

    said = node.run(*options, network=False)

    assert said.endswith("status 0"), said
    assert {step for step, state in node.states().items() if state == "installed"} >= {
        "nccl",
        "container_toolkit",
        "enroot",
    }
    assert (node.root / "usr/share/cuda-common").exists()
    assert (node.root / "usr/bin/mksquash").exists()  # what enroot's own package depends on
    assert node.server.asked == []
    assert not (node.root / "var/lib/ultracluster/work").exists()
    assert not list((node.root / "etc/apt/sources.list.d").glob("ultracluster*"))


def test_a_tampered_package_in_the_mirror_is_refused(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirrored(node, tmp_path, monkeypatch)
    (package,) = (node.root / "bucket").rglob("cuda-common_*.deb")
    honest = package.read_bytes()
    package.write_bytes(honest[:-1] + b"!")
    said = node.run("--mirror", f"s3://{BUCKET}/p", network=False)
    assert said.endswith("status 1")
    assert "FAILED nccl: nccl: refused s3://" in said.splitlines()[-2]
    assert not (node.root / "usr/lib/libnccl.so.2.30.7").exists()

    package.write_bytes(honest)
    assert node.run("--mirror", f"s3://{BUCKET}/p", network=False).endswith("status 0")

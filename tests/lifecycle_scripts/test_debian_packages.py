"""The packages of every shipped release, from signed archives, with real apt and dpkg in a Debian root.

Packages of the same names, versions and dependencies (release_packages.json) are in archives of the same
form as their makers', beside newer ones that must not come instead. Of the release's lock only addresses,
keys and digests are replaced. The root calls itself Ubuntu, whose packages the releases name.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from debian_archive import Key, Server, output
from debian_root import enter, make_root
from release_archives import KERNEL, LOCKS, entries, place_of, serve

OURS = ["etc/ultracluster", "var/log/ultracluster", "run/ultracluster", "var/lib/apt/lists", "opt"]
OURS += ["lib/modules", "usr/src", "etc/apt/sources.list.d", "scripts/releases"]
IMAGE_TOOLS = {
    "usr/sbin/modinfo": '#!/bin/sh\nsed -n "s/^$2=//p" "/lib/modules/$(uname -r)/updates/dkms/$3.ko"\n',
    # A unit that no package has brought cannot be enabled.
    "usr/bin/systemctl": """#!/bin/sh
for unit; do :; done
case $1 in
  enable) "$0" cat "$unit" && touch "/etc/systemd/enabled-$unit" ;;
  is-enabled) [ -e "/etc/systemd/enabled-$unit" ] ;;
  cat) ls /lib/systemd/system/$unit /etc/systemd/system/$unit | grep -q . ;;
esac
""",
}
# As on a node whose Lustre has GPUDirect Storage, with its traffic on TCP
GDS = {"LUSTRE_EFA": "yes", "LUSTRE_PATH": "/fsx", "NODE_GDS": "yes", "NODE_LUSTRE_EFA_INTERFACES": "0"}
ASKED = ("dcgm-exporter",)
"""Packages that a release brings where they are asked for."""


@dataclass
class Node:
    root: Path
    server: Server
    key: Key
    own: frozenset[str]
    """Names of the packages that the root has by itself."""

    def output(self, *command: str) -> str:
        return output("chroot", self.root, *command)

    def installed(self) -> dict[str, str]:
        """Version by name."""
        lines = self.output(
            "dpkg-query", "--show", "--showformat=${db:Status-Status} ${Package} ${Version}\\n"
        )
        words = (line.split() for line in lines.splitlines())
        return {name: version for status, name, version in words if status == "installed"}

    def becomes(self, system: str, lock: dict[str, Any]) -> None:
        """An image of this system for this release, with its driver and without all else."""
        if ours := sorted(set(self.installed()) - self.own):
            self.output("dpkg", "--purge", "--force-all", *ours)
        for path in OURS:
            shutil.rmtree(self.root / path, ignore_errors=True)
        (self.root / "etc/apt/sources.list.d").mkdir()
        (self.root / "scripts/releases").mkdir()
        modules = self.root / "lib/modules" / KERNEL / "updates/dkms"
        modules.mkdir(parents=True)
        driver = lock["components"]["nvidia-driver"]["version"]
        (modules / "nvidia.ko").write_text(f"version={driver}\nlicense=Dual MIT/GPL\n")
        (self.root / f"usr/src/nvidia-{driver}").mkdir(parents=True)
        (self.root / "etc/os-release").unlink(missing_ok=True)
        number = system.removeprefix("ubuntu")
        (self.root / "etc/os-release").write_text(f'ID=ubuntu\nVERSION_ID="{number}"\n')
        key = "/usr/share/keyrings/system.asc"
        (self.root / key.lstrip("/")).parent.mkdir(exist_ok=True)
        self.key.export(self.root / key.lstrip("/"))
        (self.root / "etc/apt/sources.list").write_text(
            f"deb [signed-by={key}] {self.server.url}/system ./\n"
        )

    def bake(self, lock: dict[str, Any], *, accelerator: str, **more: str) -> str:
        """What a run of the release's own family prints, with its status behind it."""
        (self.root / "scripts/releases" / f"{lock['release']}.lock").write_text(json.dumps(self.local(lock)))
        efa = "yes" if accelerator == "nvidia" else "no"
        options = ["--release", lock["release"], "--family", lock["families"][0]]
        asked = [word for name in ASKED if name in lock["components"] for word in ("--component", name)]
        done = subprocess.run(
            enter(
                self.root, "/scripts/bake.sh", *options, "--accelerator", accelerator, "--efa", efa, *asked
            ),
            env={
                "PATH": os.environ["PATH"],
                "ULTRACLUSTER_SPREAD": "0",
                "ULTRACLUSTER_FETCH_DEADLINE": "60",
                "ULTRACLUSTER_PACKAGES_DEADLINE": "60",
            }
            | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return f"{done.stdout}status {done.returncode}"

    def local(self, lock: dict[str, Any]) -> dict[str, Any]:
        """The lock, with our server's addresses, keys and digests."""
        lock = json.loads(json.dumps(lock))
        for component in lock["components"].values():
            for entry in component.get("packages", []):
                if repository := entry.get("repository"):
                    url = f"{self.server.url}/{place_of(repository['url'])}"
                    repository |= {
                        "url": url,
                        "key_url": f"{url}/key.asc",
                        "key_fingerprint": self.key.fingerprint,
                    }
            for artifact in component.get("artifacts", []):
                artifact["url"] = f"{self.server.url}/files/{artifact['name']}"
                if (file := self.server.folder / "files" / artifact["name"]).exists():
                    artifact.pop("sha512", None)
                    artifact["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
                    artifact["size"] = file.stat().st_size
        return lock

    def outcomes(self) -> dict[str, str]:
        """By component, of the only run."""
        lines = (self.root / "var/log/ultracluster/report.jsonl").read_text().splitlines()
        return {
            name: entry["outcome"]
            for line in map(json.loads, lines)
            for name, entry in line.get("components", {}).items()
        }


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("packages")
    root, web = folder / "root", folder / "web"
    make_root(root, tools=["dpkg-deb", "gpg"])
    for name, text in IMAGE_TOOLS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
        (root / name).chmod(0o755)
    (root / "etc/systemd").mkdir(exist_ok=True)
    key = Key.make(folder / "gnupg")
    serve(web, key)
    with Server(web).running() as server:
        node = Node(root, server, key, frozenset())
        node.own = frozenset(node.installed())
        yield node
    shutil.rmtree(root)


def pinned(lock: dict[str, Any], system: str, accelerator: str) -> tuple[set[str], dict[str, str]]:
    """Components that this release brings as packages, and the versions that it names, by package."""
    components: set[str] = set()
    versions: dict[str, str] = {}
    for name, component, entry in entries(lock):
        if system not in entry["os"] or component["accelerator"] not in ("any", accelerator):
            continue
        if name in ("efa-installer", "enroot") and accelerator != "nvidia":
            continue
        components.add(name)
        versions |= {
            package: version
            for package, _, version in (one.partition("=") for one in entry["names"])
            if version
        }
    return components, versions


def nvidia_releases() -> Iterator[Any]:
    """In every run those that name a version which no other does; the others with DEPTH=deep."""
    pins = {name: set(pinned(lock, "ubuntu24.04", "nvidia")[1].items()) for name, lock in LOCKS.items()}
    for name in LOCKS:
        others = set[tuple[str, str]]().union(*(pins[other] for other in pins if other != name))
        again = pins[name] <= others
        if again:
            del pins[name]
        yield pytest.param(name, marks=pytest.mark.deep if again else ())


@pytest.mark.parametrize("release", nvidia_releases())
def test_nvidia(node: Node, release: str) -> None:
    lock = LOCKS[release]
    node.becomes("ubuntu24.04", lock)
    said = node.bake(lock, accelerator="nvidia", **GDS)
    assert said.endswith("status 0"), said
    components, versions = pinned(lock, "ubuntu24.04", "nvidia")
    outcomes = node.outcomes()
    assert {name: outcomes.get(name) for name in components} == dict.fromkeys(components, "installed"), said
    check_versions(node, versions)
    installed = node.installed()
    assert {f"lustre-client-modules-{KERNEL}", "lustre-client-utils"} <= set(installed)
    assert "lustre-client-modules-aws" not in installed  # it would follow the newest kernel
    assert {"enroot", "enroot+caps", "libcap2-bin", "squashfs-tools"} <= set(installed)
    assert (node.root / "usr/src/nvidia-fs.built-for").read_text() == "NVFS_MAX_PEER_DEVS=128, 128\n"

    held = set(node.output("apt-mark", "showhold").split())
    assert {"libnccl2", "efa", "libfabric1-aws", "enroot", f"lustre-client-modules-{KERNEL}"} <= held
    node.output("apt-get", "update")
    upgrade = node.output("apt-get", "--simulate", "dist-upgrade")
    assert not {line.split()[1] for line in upgrade.splitlines() if line.startswith("Inst ")} & held
    candidate = node.output("apt-cache", "policy", "nvidia-driver-580-open")
    assert ("Candidate: (none)" in candidate) == ("plain" not in lock["families"][0]), candidate


def neuron_releases() -> list[str]:
    """One of those that name the same packages."""
    pins = {json.dumps(pinned(lock, "ubuntu22.04", "neuron")[1]): name for name, lock in LOCKS.items()}
    return list(pins.values())


@pytest.mark.parametrize("release", neuron_releases())
def test_neuron(node: Node, release: str) -> None:
    """Also that an image without lists of its own archive gets what the packages depend on from there."""
    lock = LOCKS[release]
    node.becomes("ubuntu22.04", lock)
    said = node.bake(lock, accelerator="neuron")
    assert said.endswith("status 0"), said
    components, versions = pinned(lock, "ubuntu22.04", "neuron")
    outcomes = node.outcomes()
    assert {name: outcomes.get(name) for name in components} == dict.fromkeys(components, "installed"), said
    check_versions(node, versions)


def check_versions(node: Node, versions: dict[str, str]) -> None:
    installed = node.installed()
    assert versions
    for name, version in versions.items():
        assert installed.get(name, "").startswith(version.partition("*")[0]), (
            name,
            version,
            installed.get(name),
        )


def test_a_package_that_cannot_be_set_up_harms_no_other(node: Node) -> None:
    lock = json.loads(json.dumps(LOCKS["hyperpod-slurm-2026.09"]))
    others = ("nccl", "container-toolkit", "enroot", "dcgm", "lustre-client")
    keep = ("kernel", "nvidia-driver", "nvidia-fs", "lustre-efa-setup", *others)
    lock["components"] = {name: lock["components"][name] for name in keep}
    node.becomes("ubuntu24.04", lock)
    (node.root / "usr/src/nvidia-fs.built-for").mkdir()  # its script cannot write there
    said = node.bake(lock, accelerator="nvidia", **GDS)
    assert said.endswith("status 0"), said
    outcomes = node.outcomes()
    assert outcomes["nvidia-fs"] == "degraded"
    assert "nvidia-fs-dkms cannot be set up" in said.splitlines()[-2]
    assert {name: outcomes[name] for name in others} == dict.fromkeys(others, "installed")
    assert node.output("dpkg", "--audit") == ""
    assert not {"nvidia-fs", "nvidia-fs-dkms"} & set(node.installed())


def test_a_version_that_the_archive_lacks_is_the_last_line(node: Node) -> None:
    lock = json.loads(json.dumps(LOCKS["hyperpod-slurm-2026.09"]))
    for _, _, entry in entries({"components": {"neuron-driver": lock["components"]["neuron-driver"]}}):
        entry["names"] = ["aws-neuronx-dkms=2.30.9.0*"]
    node.becomes("ubuntu22.04", lock)
    said = node.bake(lock, accelerator="neuron")
    assert said.endswith("status 1"), said
    last = said.splitlines()[-2]
    assert last.startswith("FAILED neuron: cannot install aws-neuronx-dkms=2.30.9.0*: "), last
    assert "Version '2.30.9.0*' for 'aws-neuronx-dkms' was not found" in last

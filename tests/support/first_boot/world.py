"""A node before its first boot, in a folder: system, hardware, image and what the orchestrator left there.

The commands that would change a system are the fakes of the scripts' own tests; what they know of this node
lies below `fake`.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from first_boot.contents import Contents, UnknownSystemError
from first_boot.faults import Faults
from first_boot.hardware import lay_hardware
from first_boot.image_software import lay_image
from first_boot.makers import offer_packages, serve_files
from first_boot.sandbox import Sandbox
from project import ROOT

from ultracluster.catalog import InstanceType
from ultracluster.catalog.images import Image
from ultracluster.lifecycle.bundles import own_steps_of
from ultracluster.model.mounts import Mounts
from ultracluster.scripts_folder import own_release
from ultracluster.software import Release

_SYSTEMS = {"ubuntu": "ubuntu", "debian": "debian", "al": "amzn", "rhel": "rhel", "rocky": "rocky"}
"""ID in /etc/os-release, by how records name a system."""
ADDRESS = "10.1.0.21"
CONTROLLER = "10.1.0.10"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOf:
    """The node whose first boot is rehearsed."""

    group: str
    role: str
    kind: InstanceType
    orchestrator: str
    cluster: dict[str, Any]
    """Its cluster.json."""
    mounts: Mounts
    """What the orchestrator hands over at deploy, beside cluster.json."""

    @property
    def efa_interfaces(self) -> int:
        return int(self.cluster["node_groups"][self.group].get("efa_interfaces") or 0)


def _documents(box: Sandbox, node: NodeOf) -> None:
    """What the node pulls: a document without users, which nothing of it changes."""
    text = {"schema": 1, "document": "users", "cluster": node.cluster["cluster"], "users": [], "groups": []}
    text["homes"] = {"root": "/home", "mount": None}
    folder = box.fake / "state"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "users.json").write_text(json.dumps(text))


def os_release(image: Image) -> tuple[str, str]:
    """ID and VERSION_ID of the image's /etc/os-release.

    Raises:
        UnknownSystemError: what the record calls the system is none of the known ones.
    """
    parts = re.fullmatch(r"([a-z]+)(\d[\d.]*)", image.os)
    if not parts or parts[1] not in _SYSTEMS:
        known = ", ".join(f"{name}<version>" for name in _SYSTEMS)
        raise UnknownSystemError(
            f"{image.id}: its record has the operating system {image.os!r}, of which nothing is known "
            f"(known are {known}): correct `os` in the record"
        )
    return _SYSTEMS[parts[1]], parts[2]


def make_world(
    folder: Path,
    *,
    node: NodeOf,
    image: Image,
    found: Contents,
    release: Release,
    lustre_module: bool,
    faults: Faults | None = None,
) -> Sandbox:
    """Write all of it below `folder`.

    Args:
        found: what the image brings.
        lustre_module: whether repositories have the Lustre client for this kernel.
        faults: what is wrong with the node.

    Raises:
        UnknownSystemError: the system of the image is not known.
    """
    faults = faults or Faults()
    box = Sandbox(folder)
    shutil.copytree(ROOT / "lifecycle_scripts", box.scripts, ignore=shutil.ignore_patterns("*.md"))
    if own := own_release(release.release):
        shutil.copy(own, box.scripts / "releases")
    for name, content in own_steps_of(node.cluster).items():
        (box.scripts / name).parent.mkdir(exist_ok=True)
        (box.scripts / name).write_bytes(content)
    (box.scripts / "cluster.json").write_text(json.dumps(node.cluster, indent=1))
    _documents(box, node)
    _system(box, node, image, found)
    lay_image(box, image=image, kind=node.kind, found=found)
    striped = image.node_family in ("dlami", "pcs", "hyperpod-eks") and node.kind.local_nvme_disks > 0
    lay_hardware(box, kind=node.kind, efa=node.efa_interfaces, striped=striped, faults=faults)
    if striped and image.node_family != "hyperpod-eks":
        (box.root / "opt/dlami/nvme").mkdir(parents=True)
        box.mounted("253:9", "/opt/dlami/nvme", "ext4", "/dev/mapper/vg.01-lv_ephemeral")
    _ORCHESTRATORS[node.orchestrator](box, node, found)
    if found["pyxis"]:
        _pyxis(box, image)
    if faults.home_of is not None:
        (box.root / "home" / str(node.cluster["session_user"])).mkdir(parents=True)
        box.owned(f"home/{node.cluster['session_user']}", faults.home_of)
    offer_packages(box, release, kernel=str(found["kernel"]), lustre_module=lustre_module)
    serve_files(box, release, cluster=node.cluster, image=image)
    return box


PAM_SSHD = """\
@include common-auth
account required pam_nologin.so
@include common-account
@include common-session
@include common-password
"""
"""As Ubuntu has it; of AL2023 the names of what it includes differ."""


def _system(box: Sandbox, node: NodeOf, image: Image, found: Contents) -> None:
    system, version = os_release(image)
    debian = system in ("ubuntu", "debian")
    box.write("etc/os-release", f'ID={system}\nVERSION_ID="{version}"\n')
    box.write("etc/fstab", "UUID=0123 / ext4 defaults 0 1\n")
    user = found.get("login_user") or "ubuntu"
    box.write("etc/passwd", f"root:x:0:0::/root:/bin/bash\n{user}:x:1000:1000::/home/{user}:/bin/bash\n")
    box.write("etc/group", f"root:x:0:\n{'sudo' if debian else 'wheel'}:x:27:{user}\n{user}:x:1000:\n")
    box.write("etc/skel/.bashrc", "")
    box.program("usr/sbin/sshd", "usepam yes")
    box.write("usr/lib/security/pam_access.so", "")
    box.write("etc/pam.d/sshd", PAM_SSHD)
    box.write("etc/pam.d/common-session", "session required pam_unix.so\nsession optional pam_systemd.so\n")
    box.write(f"home/{user}/.bashrc", "")
    box.owned(f"home/{user}", 1000)
    box.write("proc/self/mountinfo", "25 1 259:0 / / rw,relatime shared:1 - ext4 /dev/root rw\n")
    memory = int(node.kind.memory_gib * 1048576) or 16_000_000
    box.write(
        "proc/meminfo", f"MemTotal:  {memory} kB\nHugePages_Total:       0\nHugepagesize:       2048 kB\n"
    )
    for index in (1, 2, 3):
        box.write(f"proc/sys/net/ipv4/neigh/default/gc_thresh{index}", "128\n")
    box.tell("processor", "aarch64" if image.arch == "arm64" else "x86_64")
    box.tell("kernel", str(found["kernel"]))
    box.tell("free_mib", "100000")
    box.tell("huge_pages_free", "1000000")
    box.tell("remove_ipc", "true")
    box.tell("addresses", CONTROLLER if node.role == "controller" else ADDRESS)
    box.tell("fsx_interfaces", str(node.kind.lustre_efa_interfaces))
    box.tell("processors", str(node.kind.vcpu or 8))
    box.program("usr/sbin/logrotate")  # of every server image of these systems
    for name in ("calls", "changes"):
        box.tell(name, "")
    (box.fake / "lvm").mkdir()
    (box.fake / "lvm/pvs").touch()
    # apt's or dnf's side: only one of them is on a system
    for command in ("dnf", "rpm") if debian else ("apt-get", "apt-mark", "dpkg", "dpkg-query"):
        (box.bin / command).unlink(missing_ok=True)
    if not found.get("dnf_versionlock") and not debian:
        box.tell("no_versionlock", "")


# What the orchestrator has done before our entry runs


def _on_hyperpod_slurm(box: Sandbox, node: NodeOf, found: Contents) -> None:
    _resource_config(box, node, "Slurm")
    (box.root / "opt/sagemaker").mkdir(parents=True)
    box.mounted("259:99", "/opt/sagemaker", "xfs", "/dev/nvme99n1")
    _slurm(box, node, found, "opt/slurm")
    # HyperPod mounts before on-init-complete
    if "mounts" in node.cluster:
        mount_shared(box, node)


def mount_shared(box: Sandbox, node: NodeOf) -> None:
    """Mount the file systems that the orchestrator mounts by itself."""
    for kind, mount in node.mounts.items():
        if kind == "further_lustre":
            continue  # left to our scripts
        path = str(mount["path"])
        (box.root / path[1:]).mkdir(parents=True, exist_ok=True)
        if kind == "openzfs":
            box.mounted("0:61", path, "nfs4", f"{mount['dns_name']}:{mount['volume_path']}")
            continue
        box.mounted("0:60", path, "lustre", f"10.1.0.9@tcp:/{mount['mount_name']}")
        for module in ("lustre", "libcfs", "lnet"):
            (box.root / "sys/module" / module).mkdir(parents=True, exist_ok=True)


def _on_hyperpod_eks(box: Sandbox, node: NodeOf, found: Contents) -> None:
    _resource_config(box, node, "Kubernetes")
    (box.root / "opt/sagemaker").mkdir(parents=True)
    if node.kind.local_nvme_disks:
        group = found["second_volume"]
        box.mounted("253:9", "/opt/sagemaker", "ext4", f"/dev/mapper/{group}-lv_ephemeral")
    else:
        box.mounted("259:99", "/opt/sagemaker", "xfs", "/dev/nvme99n1")
    box.program("usr/bin/kubelet")
    for unit in ("kubelet", "containerd"):
        box.unit(unit, active=False)


def _on_eks(box: Sandbox, node: NodeOf, found: Contents) -> None:
    box.program("usr/bin/nodeadm")
    box.program("usr/bin/kubelet")
    box.write("etc/eks/image-credential-provider/config.json", "{}")
    for unit in ("kubelet", "containerd"):
        box.unit(unit, active=False)


def _on_parallelcluster(box: Sandbox, node: NodeOf, found: Contents) -> None:
    kinds = {"controller": "HeadNode", "login": "LoginNode", "compute": "ComputeFleet"}
    box.write("etc/parallelcluster/cfnconfig", f"stack_name=a\ncfn_node_type={kinds[node.role]}\n")
    _slurm(box, node, found, "opt/slurm")


def _on_pcs(box: Sandbox, node: NodeOf, found: Contents) -> None:
    version = str(node.cluster.get("slurm_version") or "25.11")
    _slurm(box, node, found, f"opt/aws/pcs/scheduler/slurm-{version}")
    (box.root / f"etc/aws/pcs/scheduler/slurm-{version}").mkdir(parents=True)


def _slurm(box: Sandbox, node: NodeOf, found: Contents, folder: str) -> None:
    version = found["slurm"] or "25.11.4"
    box.program(f"{folder}/bin/srun", f"slurm {version}")
    box.program(f"{folder}/bin/scontrol")
    box.write(f"{folder}/include/slurm/spank.h", "")
    box.write(f"{folder}/etc/slurm.conf", f"SlurmctldHost=ip-10-1-0-10({CONTROLLER})\n")
    box.unit("slurmctld" if node.role == "controller" else "slurmd", active=False)
    box.unit("munge", active=True)


def _pyxis(box: Sandbox, image: Image) -> None:
    """Where the record says, and in the plugstack only where the image switches it on."""
    place = image.places.get("pyxis")
    path = place.path if place else "/usr/local/lib/slurm/spank_pyxis.so"
    box.write(path[1:], "")
    settings = "opt/slurm/etc" if place and place.enabled else "opt/parallelcluster/examples/spank"
    box.write(f"{settings}/plugstack.conf", f"required {path}\n")


def _resource_config(box: Sandbox, node: NodeOf, cluster_type: str) -> None:
    def instance(name: str, address: str) -> dict[str, Any]:
        return {
            "InstanceName": name,
            "InstanceId": "i-0a",
            "AgentIpAddress": "172.16.0.1",
            "CustomerIpAddress": address,
        }

    address = CONTROLLER if node.role == "controller" else ADDRESS
    groups = [
        {
            "Name": node.group,
            "InstanceType": node.kind.hyperpod_name,
            "Instances": [instance("me", address)],
        }
    ]
    if node.role != "controller":
        groups.append(
            {"Name": "other", "InstanceType": "ml.m5.xlarge", "Instances": [instance("head", CONTROLLER)]}
        )
    document = {
        "ClusterConfig": {"ClusterName": node.cluster["cluster"]},
        "ClusterType": cluster_type,
        "SlurmConfig": {"PrimaryControllerIp": CONTROLLER, "SecondaryControllerIps": []},
        "InstanceGroups": groups,
    }
    if cluster_type != "Slurm":
        del document["SlurmConfig"]
    box.write("opt/ml/config/resource_config.json", json.dumps(document))


_ORCHESTRATORS = {
    "hyperpod-slurm": _on_hyperpod_slurm,
    "hyperpod-eks": _on_hyperpod_eks,
    "parallelcluster": _on_parallelcluster,
    "pcs": _on_pcs,
    "eks": _on_eks,
}

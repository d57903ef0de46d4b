"""A node before its first boot, in a folder: system, hardware, image and what the orchestrator left there.

The commands that would change a system are the fakes of the scripts' own tests; what they know of this node
lies below `fake`.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from first_boot.contents import Contents
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


def make_world(
    folder: Path, *, node: NodeOf, image: Image, found: Contents, release: Release, lustre_module: bool
) -> Sandbox:
    """Write all of it below `folder`.

    Args:
        found: what the image brings.
        lustre_module: whether repositories have the Lustre client for this kernel.
    """
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
    _hardware(box, node, image)
    lay_image(box, image=image, kind=node.kind, found=found)
    _ORCHESTRATORS[node.orchestrator](box, node, found)
    offer_packages(box, release, kernel=str(found["kernel"]), lustre_module=lustre_module)
    serve_files(box, release, cluster=node.cluster)
    return box


def _system(box: Sandbox, node: NodeOf, image: Image, found: Contents) -> None:
    name, version = {"ubuntu22.04": ("ubuntu", "22.04"), "ubuntu24.04": ("ubuntu", "24.04")}.get(
        image.os, ("amzn", "2023")
    )
    box.write("etc/os-release", f'ID={name}\nVERSION_ID="{version}"\n')
    box.write("etc/fstab", "UUID=0123 / ext4 defaults 0 1\n")
    user = found.get("login_user") or "ubuntu"
    box.write("etc/passwd", f"root:x:0:0::/root:/bin/bash\n{user}:x:1000:1000::/home/{user}:/bin/bash\n")
    box.write(f"home/{user}/.bashrc", "")
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
    for name in ("calls", "changes"):
        box.tell(name, "")
    (box.fake / "lvm").mkdir()
    (box.fake / "lvm/pvs").touch()
    # apt's or dnf's side: only one of them is on a system
    for command in ("apt-get", "apt-mark", "dpkg", "dpkg-query") if image.os == "al2023" else ("dnf", "rpm"):
        (box.bin / command).unlink(missing_ok=True)
    if not found.get("dnf_versionlock") and image.os == "al2023":
        box.tell("no_versionlock", "")


def _hardware(box: Sandbox, node: NodeOf, image: Image) -> None:
    kind = node.kind
    box.write("sys/devices/virtual/dmi/id/product_name", f"{kind.name}\n")
    disks = ["/dev/nvme0n1 259:0 ext4 Amazon Elastic Block Store"]
    content = "image" if image.node_family in ("dlami", "pcs") and kind.local_nvme_disks else "-"
    for number in range(1, kind.local_nvme_disks + 1):
        disks.append(f"/dev/nvme{number}n1 259:{number} {content} Amazon EC2 NVMe Instance Storage")
    box.tell("disks", "\n".join(disks))
    if content == "image":
        (box.root / "opt/dlami/nvme").mkdir(parents=True)
        box.mounted("253:9", "/opt/dlami/nvme", "ext4", "/dev/mapper/vg.01-lv_ephemeral")
    accelerators = kind.accelerator.count if kind.accelerator else 0
    maker = kind.accelerator.manufacturer if kind.accelerator else ""
    devices = [("0x10de", "0x2330", "0x030200")] * accelerators if maker == "NVIDIA" else []
    devices += [("0x1d0f", "0x7364", "0x088000")] * accelerators if maker == "AWS" else []
    devices += [("0x1d0f", "0xefa2", "0x020000")] * node.efa_interfaces
    for address, (vendor, device, device_class) in enumerate(devices, start=1):
        folder = f"sys/bus/pci/devices/0000:{address:02x}:00.0"
        box.write(f"{folder}/vendor", f"{vendor}\n")
        box.write(f"{folder}/device", f"{device}\n")
        box.write(f"{folder}/class", f"{device_class}\n")
    for number in range(node.efa_interfaces):
        folder = box.root / f"sys/class/infiniband/efa_{number}/device"
        folder.mkdir(parents=True)
        (folder / "driver").symlink_to("../../../bus/pci/drivers/efa")


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
    box.mounted("259:99", "/opt/sagemaker", "xfs", "/dev/nvme99n1")
    for unit in ("kubelet", "containerd"):
        box.unit(unit, active=False)


def _on_eks(box: Sandbox, node: NodeOf, found: Contents) -> None:
    box.program("usr/bin/nodeadm")
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
    if found["pyxis"]:
        box.write(f"{folder}/lib/slurm/spank_pyxis.so", "")
        box.write(
            f"{folder}/etc/plugstack.conf.d/pyxis.conf", f"required /{folder}/lib/slurm/spank_pyxis.so\n"
        )
        box.write(f"{folder}/etc/plugstack.conf", "include plugstack.conf.d/*\n")
    box.unit("slurmctld" if node.role == "controller" else "slurmd", active=False)
    box.unit("munge", active=True)


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

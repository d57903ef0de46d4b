"""A node in a folder, made from the record of its image: files, kernel modules, packages, units and disks.

The commands that would change a system are the fakes of tests/lifecycle; what they know of this node lies below
`fake`. What the makers serve are stand-ins, each of which has the digest that the release has for the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from first_boot.contents import Contents
from project import ROOT

from ultracluster.catalog import InstanceType
from ultracluster.catalog.images import Image
from ultracluster.software import Release

LIFECYCLE_TESTS = ROOT / "tests" / "lifecycle"
FAKES = (LIFECYCLE_TESTS / "fakes", Path(__file__).with_name("fakes"))
REAL_COMMANDS = (
    "awk basename bash cat chgrp chmod chown cmp comm cp cut date dirname env expr find flock grep gzip head id install kill ln ls "
    "mkdir mktemp mv printf ps readlink realpath rm rmdir sed seq setsid sha256sum sha512sum sleep sort stat tail tar tee timeout "
    "touch tr uniq wc xargs"
).split()
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
    mounts: dict[str, Any]
    """What the orchestrator hands over at deploy, beside cluster.json."""


class World:
    """The folders of one node."""

    def __init__(
        self, folder: Path, *, node: NodeOf, image: Image, found: Contents, release: Release
    ) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.fake = folder / "fake"
        self.scripts = folder / "scripts"
        self.bin = folder / "bin"
        self.real = folder / "real"
        self._node = node
        self._image = image
        self._found = found
        self._release = release
        self._machine = "aarch64" if image.arch == "arm64" else "x86_64"
        for path in (
            self.root,
            self.fake / "modules",
            self.fake / "packages",
            self.fake / "packages.d",
            self.bin,
            self.real,
        ):
            path.mkdir(parents=True)

    def make(self, *, modules_offered: bool) -> None:
        """Write all of it.

        Args:
            modules_offered: whether repositories have the Lustre client for this kernel.
        """
        self._commands()
        self._scripts()
        self._system()
        self._hardware()
        self._image_software()
        self._orchestrator()
        self._packages(modules_offered=modules_offered)
        self._web()

    def environment(self) -> dict[str, str]:
        """Of the entry script: waits of fractions of a second, nothing of this machine's own."""
        # long enough for a loaded machine; what the sandbox does not have fails at once
        deadlines = dict.fromkeys(("NODE", "DNS", "MOUNT", "SLURM", "SLURMD", "PACKAGES"), "2") | {
            "FETCH": "20"
        }
        return {
            "PATH": f"{self.bin}:{self.real}",
            "ULTRACLUSTER_ROOT": str(self.root),
            "FAKE": str(self.fake),
            "REAL": str(self.real),
            "ULTRACLUSTER_LINGER": "0",
            "ULTRACLUSTER_SPREAD_SECONDS": "0",
            "ULTRACLUSTER_RETRY_PAUSE": "0.02",
            "ULTRACLUSTER_RETRY_LONGEST_PAUSE": "0.1",
            "ULTRACLUSTER_RUN_DEADLINE": "10",
        } | {f"ULTRACLUSTER_{name}_DEADLINE": value for name, value in deadlines.items()}

    # --- what every node has ---

    def _commands(self) -> None:
        for name in REAL_COMMANDS:
            if found := shutil.which(name):
                (self.real / name).symlink_to(found)
        (self.real / "python3").symlink_to(Path(sys.executable).resolve())
        for folder in FAKES:
            for file in folder.iterdir():
                link = self.bin / file.name
                link.unlink(missing_ok=True)
                link.symlink_to(file)

    def _scripts(self) -> None:
        shutil.copytree(ROOT / "lifecycle_scripts", self.scripts, ignore=shutil.ignore_patterns("*.md"))
        (self.scripts / "cluster.json").write_text(json.dumps(self._node.cluster, indent=1))

    def _system(self) -> None:
        name, version = {"ubuntu22.04": ("ubuntu", "22.04"), "ubuntu24.04": ("ubuntu", "24.04")}.get(
            self._image.os, ("amzn", "2023")
        )
        self.write("etc/os-release", f'ID={name}\nVERSION_ID="{version}"\n')
        self.write("etc/fstab", "UUID=0123 / ext4 defaults 0 1\n")
        user = self._found.get("login_user") or "ubuntu"
        self.write("etc/passwd", f"root:x:0:0::/root:/bin/bash\n{user}:x:1000:1000::/home/{user}:/bin/bash\n")
        self.write(f"home/{user}/.bashrc", "")
        self.write("proc/self/mountinfo", "25 1 259:0 / / rw,relatime shared:1 - ext4 /dev/root rw\n")
        memory = int(self._node.kind.memory_gib * 1048576) or 16_000_000
        self.write(
            "proc/meminfo", f"MemTotal:  {memory} kB\nHugePages_Total:       0\nHugepagesize:       2048 kB\n"
        )
        for index in (1, 2, 3):
            self.write(f"proc/sys/net/ipv4/neigh/default/gc_thresh{index}", "128\n")
        self.tell("processor", self._machine)
        self.tell("kernel", str(self._found["kernel"]))
        self.tell("free_mib", "100000")
        self.tell("huge_pages_free", "1000000")
        self.tell("remove_ipc", "true")
        self.tell("addresses", CONTROLLER if self._node.role == "controller" else ADDRESS)
        self.tell("fsx_interfaces", str(self._node.kind.lustre_efa_interfaces))
        self.tell("processors", str(self._node.kind.vcpu or 8))
        for name in ("calls", "changes"):
            self.tell(name, "")
        (self.fake / "lvm").mkdir()
        (self.fake / "lvm/pvs").touch()
        # apt's or dnf's side: only one of them is on a system
        for name in ("apt-get", "apt-mark", "dpkg", "dpkg-query") if name == "amzn" else ("dnf", "rpm"):
            (self.bin / name).unlink(missing_ok=True)
        if not self._found.get("dnf_versionlock") and self._image.os == "al2023":
            self.tell("no_versionlock", "")

    def _hardware(self) -> None:
        kind = self._node.kind
        self.write("sys/devices/virtual/dmi/id/product_name", f"{kind.name}\n")
        disks = ["/dev/nvme0n1 259:0 ext4 Amazon Elastic Block Store"]
        content = "image" if self._image.node_family in ("dlami", "pcs") and kind.local_nvme_disks else "-"
        for number in range(1, kind.local_nvme_disks + 1):
            disks.append(f"/dev/nvme{number}n1 259:{number} {content} Amazon EC2 NVMe Instance Storage")
        self.tell("disks", "\n".join(disks))
        if content == "image":
            (self.root / "opt/dlami/nvme").mkdir(parents=True)
            self._mounted("253:9", "/opt/dlami/nvme", "ext4", "/dev/mapper/vg.01-lv_ephemeral")
        address = 0
        accelerators = kind.accelerator.count if kind.accelerator else 0
        maker = kind.accelerator.manufacturer if kind.accelerator else ""
        devices = [("0x10de", "0x2330", "0x030200")] * accelerators if maker == "NVIDIA" else []
        devices += [("0x1d0f", "0x7364", "0x088000")] * accelerators if maker == "AWS" else []
        devices += [("0x1d0f", "0xefa2", "0x020000")] * self._efa
        for vendor, device, device_class in devices:
            address += 1
            folder = f"sys/bus/pci/devices/0000:{address:02x}:00.0"
            self.write(f"{folder}/vendor", f"{vendor}\n")
            self.write(f"{folder}/device", f"{device}\n")
            self.write(f"{folder}/class", f"{device_class}\n")
        for number in range(self._efa):
            folder = self.root / f"sys/class/infiniband/efa_{number}/device"
            folder.mkdir(parents=True)
            (folder / "driver").symlink_to("../../../bus/pci/drivers/efa")

    @property
    def _efa(self) -> int:
        return int(self._node.cluster["node_groups"][self._node.group].get("efa_interfaces") or 0)

    # --- what the image brings ---

    def _image_software(self) -> None:
        found = self._found
        kind = self._node.kind
        maker = kind.accelerator.manufacturer if kind.accelerator else ""
        for field, module in (("efa_kmod", "efa"), ("lustre_client", "lustre"), ("nvidia_fs", "nvidia_fs")):
            self._module(module, found[field])
        self._module("kefalnd", "1.2.2" if found["lustre_client"] else None)
        if found["lustre_client"]:
            self.program("usr/sbin/mount.lustre")
            self.program("usr/sbin/lctl")
            package = "lustre-client" if self._image.os == "al2023" else "lustre-client-utils"
            self._package(package, found["lustre_client"])
        if maker == "NVIDIA" and (driver := found["nvidia_driver"]):
            self._module("nvidia", driver, loaded=True)
            self.write(
                "proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX Open Kernel Module  {driver}\n"
            )
            (self.root / f"usr/src/nvidia-{driver}").mkdir(parents=True)
            self._unit("nvidia-persistenced", active=True)
            self._unit("nvidia-fabricmanager", active=True)
            self._package("nvidia-fabricmanager", str(found["fabric_manager"]))
            self.program("usr/bin/nvidia-smi", "| CUDA Version: 13.2 |")
        self._module("gdrdrv", found["gdrdrv"] if maker == "NVIDIA" else None, loaded=True)
        self._module("neuron", found["neuron_driver"] if maker == "AWS" else None, loaded=True)
        if maker == "AWS" and found["neuron_driver"]:
            self.write("dev/neuron0", "")
        for field, package in (
            ("neuron_runtime", "aws-neuronx-runtime-lib"),
            ("neuron_collectives", "aws-neuronx-collectives"),
        ):
            if value := found[field]:
                self._package(package, value)
        self._libraries()
        self._tools()

    def _libraries(self) -> None:
        found = self._found
        if efa := found["efa_installer"]:
            libfabric = found["libfabric"] or "2.4.0amzn1.0"
            self.write("opt/amazon/efa_installed_packages", f"# EFA installer version: {efa}\n")
            self.program(
                "opt/amazon/efa/bin/fi_info",
                f"fi_info: {libfabric}",
                f"libfabric: {libfabric}",
                "libfabric api: 2.4",
            )
            self.write("opt/amazon/efa/include/rdma/fabric.h", "")
            self.write("opt/amazon/efa/lib/libfabric.so.1", "")
        if plugin := found["aws_ofi_nccl"]:
            self.write(
                "opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so",
                f"\0NET/OFI Initializing aws-ofi-nccl {plugin}\0",
            )
        folders = (found["cuda_all"] or found["cuda_default"] or "").split()
        for version in folders:
            self.write(
                f"usr/local/cuda-{version}/version.json", json.dumps({"cuda": {"version": f"{version}.0"}})
            )
            self.write(f"usr/local/cuda-{version}/include/cuda.h", "")
            self.program(f"usr/local/cuda-{version}/bin/nvcc")
        if folders:
            (self.root / "usr/local/cuda").symlink_to(f"cuda-{found['cuda_default'] or folders[-1]}")
        if nccl := found["nccl"]:
            self._package(
                "libnccl2" if self._image.os.startswith("ubuntu") else "libnccl", f"{nccl}-1+cuda13.2"
            )
        if gdrcopy := found["gdrcopy_lib"]:
            short = ".".join(gdrcopy.split(".")[:2])
            folder = (
                f"usr/lib/{self._machine}-linux-gnu" if self._image.os.startswith("ubuntu") else "usr/lib64"
            )
            self.write(f"{folder}/libgdrapi.so.{short}", "")
            self._package("libgdrapi" if self._image.os.startswith("ubuntu") else "gdrcopy", f"{gdrcopy}-1")

    def _tools(self) -> None:
        found = self._found
        if version := found["container_toolkit"]:
            self.program("usr/bin/nvidia-ctk", f"NVIDIA Container Toolkit CLI version {version}")
            self._package("nvidia-container-toolkit", f"{version}-1")
        if version := found["dcgm"]:
            self.program("usr/bin/dcgmi", "", f"dcgmi  version: {version}")
            self._unit("nvidia-dcgm", active=True)
        if version := found["enroot"]:
            self.program("usr/bin/enroot", version)
            self._package("enroot", f"{version}-1")
        if version := found["containerd"]:
            self.program("usr/bin/containerd", f"containerd github.com/containerd/containerd v{version}")
            self._unit("containerd", active=True)
        if found["docker"]:
            self._unit("docker", active=True)
        if found["fsx_efa_setup"]:
            self._unit("configure-efa-fsx-lustre-client", active=True)
        self._package("linux-image-aws" if self._image.os.startswith("ubuntu") else "kernel6.12", "1.0-1")

    # --- what the orchestrator has done before our entry runs ---

    def _orchestrator(self) -> None:
        getattr(self, f"_on_{self._node.orchestrator.replace('-', '_')}")()

    def _on_hyperpod_slurm(self) -> None:
        self._resource_config("Slurm")
        self._slurm("opt/slurm")
        for kind, path in (("lustre", "/fsx"), ("openzfs", "/home")):
            # mounted by HyperPod before on-init-complete
            if mount := self._node.cluster.get("mounts", {}).get(kind):
                where = str(mount.get("path", path))
                (self.root / where[1:]).mkdir(parents=True, exist_ok=True)
                if kind == "lustre":
                    self._mounted("0:60", where, "lustre", f"10.1.0.9@tcp:/{mount['mount_name']}")
                    for module in ("lustre", "libcfs", "lnet"):
                        (self.root / "sys/module" / module).mkdir(parents=True, exist_ok=True)
                else:
                    self._mounted("0:61", where, "nfs4", f"{mount['dns_name']}:{mount['volume_path']}")

    def _on_hyperpod_eks(self) -> None:
        self._resource_config("Kubernetes")
        (self.root / "opt/sagemaker").mkdir(parents=True)
        self._mounted("259:99", "/opt/sagemaker", "xfs", "/dev/nvme99n1")
        for unit in ("kubelet", "containerd"):
            self._unit(unit, active=False)

    def _on_eks(self) -> None:
        self.program("usr/bin/nodeadm")
        self.write("etc/eks/image-credential-provider/config.json", "{}")
        for unit in ("kubelet", "containerd"):
            self._unit(unit, active=False)

    def _on_parallelcluster(self) -> None:
        kinds = {"controller": "HeadNode", "login": "LoginNode", "compute": "ComputeFleet"}
        self.write("etc/parallelcluster/cfnconfig", f"stack_name=a\ncfn_node_type={kinds[self._node.role]}\n")
        self._slurm("opt/slurm")

    def _on_pcs(self) -> None:
        version = str(self._node.cluster.get("slurm_version") or "25.11")
        self._slurm(f"opt/aws/pcs/scheduler/slurm-{version}")
        (self.root / f"etc/aws/pcs/scheduler/slurm-{version}").mkdir(parents=True)

    def _slurm(self, folder: str) -> None:
        version = self._found["slurm"] or "25.11.4"
        self.program(f"{folder}/bin/srun", f"slurm {version}")
        self.program(f"{folder}/bin/scontrol")
        self.write(f"{folder}/include/slurm/spank.h", "")
        self.write(f"{folder}/etc/slurm.conf", f"SlurmctldHost=ip-10-1-0-10({CONTROLLER})\n")
        if self._found["pyxis"]:
            self.write(f"{folder}/lib/slurm/spank_pyxis.so", "")
            self.write(
                f"{folder}/etc/plugstack.conf.d/pyxis.conf", f"required /{folder}/lib/slurm/spank_pyxis.so\n"
            )
            self.write(f"{folder}/etc/plugstack.conf", "include plugstack.conf.d/*\n")
        self._unit("slurmctld" if self._node.role == "controller" else "slurmd", active=False)
        self._unit("munge", active=True)

    def _resource_config(self, cluster_type: str) -> None:
        def instance(name: str, address: str) -> dict[str, Any]:
            return {
                "InstanceName": name,
                "InstanceId": "i-0a",
                "AgentIpAddress": "172.16.0.1",
                "CustomerIpAddress": address,
            }

        node = self._node
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
        self.write("opt/ml/config/resource_config.json", json.dumps(document))

    # --- what the node can get ---

    def _packages(self, *, modules_offered: bool) -> None:
        """Every package that the release names, and what its installation does."""
        kernel = self._found["kernel"]
        for component in self._release.components.values():
            for entry in component.packages:
                for name in entry.names:
                    plain = name.partition("=")[0] if "=" in name else name
                    self._offers(plain, "")
        effects = dict(_EFFECTS)
        effects[f"lustre-client-modules-{kernel}"] = (
            'echo 2.15.6 >"$FAKE/modules/lustre"; echo 1.2.2 >"$FAKE/modules/kefalnd"'
        )
        effects["lustre-client"] = (
            f"{effects[f'lustre-client-modules-{kernel}']}\n{_EFFECTS['lustre-client-utils']}"
        )
        for name, effect in effects.items():
            self._offers(name, effect)
        if not modules_offered:
            for file in (self.fake / "packages.d").glob("lustre-client*"):
                if file.name != "lustre-client-utils":
                    file.unlink()

    def _offers(self, name: str, effect: str) -> None:
        (self.fake / "packages.d" / name).write_text(f"{_PROGRAM}{effect}\n")

    def _web(self) -> None:
        web, digests, s3 = self.fake / "web", self.fake / "digests", self.fake / "s3"
        for folder in (web, digests, s3):
            folder.mkdir()
        mirror = str(self._node.cluster.get("mirror") or "").removeprefix("s3://")
        locked = self._node.cluster.get("locked", {}).get("files", {})
        for name, component in self._release.components.items():
            for artifact in component.artifacts:
                content = _stand_in(name, component.version, artifact.name)
                (web / artifact.name).write_bytes(content)
                claimed = ":".join(artifact.digest) if artifact.digest else locked.get(artifact.name, "")
                algorithm, _, digest = claimed.partition(":")
                if digest:
                    own = hashlib.new(algorithm, content).hexdigest()
                    (digests / f"{own}.{algorithm}sum").write_text(f"{digest}\n")
                if digest and mirror:
                    mirrored = s3 / mirror / self._release.release / digest[:16] / artifact.name
                    mirrored.parent.mkdir(parents=True, exist_ok=True)
                    mirrored.write_bytes(content)
            for entry in component.packages:
                if (repository := entry.repository) and repository.key_url:
                    keys = self._node.cluster.get("locked", {}).get("keys", {})
                    fingerprint = repository.key_fingerprint or keys.get(repository.key_url, "0" * 40)
                    (web / repository.key_url.rpartition("/")[2]).write_text(f"KEY {fingerprint}\n")

    # --- small things ---

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def program(self, path: str, *lines: str) -> None:
        self.write(path, "#!/usr/bin/env bash\n" + "".join(f"echo '{line}'\n" for line in lines))
        (self.root / path).chmod(0o755)

    def tell(self, name: str, text: str) -> None:
        (self.fake / name).write_text(text + "\n" if text else "")

    def _module(self, name: str, version: str | None, *, loaded: bool = False) -> None:
        if not version:
            return
        (self.fake / "modules" / name).write_text(f"{version}\n")
        if loaded:
            (self.root / "sys/module" / name).mkdir(parents=True, exist_ok=True)
            self.write(f"sys/module/{name}/version", f"{version}\n")

    def _package(self, name: str, version: str) -> None:
        (self.fake / "packages" / name).write_text(f"{version}\n")

    def _unit(self, name: str, *, active: bool) -> None:
        folder = self.fake / "units" / name
        folder.mkdir(parents=True, exist_ok=True)
        if active:
            (folder / "enabled").touch()
            (folder / "active").touch()

    def _mounted(self, number: str, path: str, kind: str, source: str) -> None:
        with (self.root / "proc/self/mountinfo").open("a") as file:
            file.write(f"40 1 {number} / {path} rw,relatime shared:2 - {kind} {source} rw\n")


_PROGRAM = dedent(
    """\
    program() {
      mkdir -p "$ULTRACLUSTER_ROOT${1%/*}"
      { echo '#!/usr/bin/env bash' && printf 'echo %q\\n' "${@:2}"; } >"$ULTRACLUSTER_ROOT$1"
      chmod +x "$ULTRACLUSTER_ROOT$1"
    }
    plain=${VERSION#*:} plain=${plain%%-*}
    """
)
_NVIDIA_FS = 'echo "$plain" >"$FAKE/modules/nvidia_fs"'
_CUDA = """\
mkdir -p "$ULTRACLUSTER_ROOT"/usr/local/cuda-13.2/{bin,include}
echo '{"cuda": {"version": "13.2.0"}}' >"$ULTRACLUSTER_ROOT/usr/local/cuda-13.2/version.json"
touch "$ULTRACLUSTER_ROOT/usr/local/cuda-13.2/include/cuda.h"
program /usr/local/cuda-13.2/bin/nvcc
ln -sfn cuda-13.2 "$ULTRACLUSTER_ROOT/usr/local/cuda\""""
_EFFECTS = {
    "cuda-toolkit-13-2": _CUDA,
    "nvidia-container-toolkit": 'program /usr/bin/nvidia-ctk "NVIDIA Container Toolkit CLI version $plain"',
    "datacenter-gpu-manager-4-core": 'program /usr/bin/dcgmi "" "dcgmi  version: $plain"; mkdir -p "$FAKE/units/nvidia-dcgm"',
    "enroot": 'program /usr/bin/enroot "$plain"',
    "enroot+caps": "",
    "lustre-client-utils": "program /usr/sbin/mount.lustre; program /usr/sbin/lctl",
    "aws-neuronx-dkms": 'echo "${plain%%\\**}" >"$FAKE/modules/neuron"; mkdir -p "$ULTRACLUSTER_ROOT/dev"; touch "$ULTRACLUSTER_ROOT/dev/neuron0"',
    "nvidia-fs": _NVIDIA_FS,
    "nvidia-fs-dkms": _NVIDIA_FS,
}


def _stand_in(component: str, version: str, name: str) -> bytes:
    """What a maker's file is replaced by: its installer does what the maker's would leave behind."""
    if name.endswith((".deb", ".rpm")):
        return name.encode()
    if name.endswith((".zip", ".whl")):
        return _zip(_FILES.get(component, {"README": ""}), f"{component}/")
    top = name.removesuffix(".tar.gz")
    if component == "efa-installer":
        top = "aws-efa-installer"
    return _tar(
        {
            path: text.replace("@VERSION@", version)
            for path, text in _FILES.get(component, {"README": ""}).items()
        },
        top,
    )


_INSTALLER = """\
#!/usr/bin/env bash
set -euo pipefail
amazon=$ULTRACLUSTER_ROOT/opt/amazon
mkdir -p "$amazon/efa/include/rdma" "$amazon/efa/bin" "$amazon/efa/lib" "$amazon/ofi-nccl/lib"
echo 3.3.0 >"$FAKE/modules/efa"
[[ $* != *--minimal* ]] || exit 0
touch "$amazon/efa/include/rdma/fabric.h" "$amazon/efa/lib/libfabric.so.1"
printf '#!/usr/bin/env bash\\necho fi_info: 2.6.0amzn1.0\\necho libfabric: 2.6.0amzn1.0\\necho libfabric api: 2.6\\n' >"$amazon/efa/bin/fi_info"
chmod +x "$amazon/efa/bin/fi_info"
printf '\\0NET/OFI Initializing aws-ofi-nccl 1.21.1\\0' >"$amazon/ofi-nccl/lib/libnccl-net-ofi.so"
printf '# EFA installer version: @VERSION@\\n' >"$amazon/efa_installed_packages"
"""
_FILES: dict[str, dict[str, str]] = {
    "efa-installer": {"efa_installer.sh": _INSTALLER},
    "aws-ofi-nccl": {
        "configure": '#!/usr/bin/env bash\necho "${1#--prefix=}" >prefix\n',
        "make.fake": '[[ $1 == install ]] || exit 0\nmkdir -p "$DESTDIR$(cat prefix)/lib"\n'
        "printf '\\0NET/OFI Initializing aws-ofi-nccl @VERSION@\\0' >\"$DESTDIR$(cat prefix)/lib/libnccl-net-ofi.so\"\n",
    },
    "gdrcopy": {
        "src/gdrdrv/gdrdrv.c": "",
        "make.fake": 'mkdir -p "$prefix/lib" "$prefix/bin"; touch "$prefix/lib/libgdrapi.so.@VERSION@"\n',
    },
    "pyxis": {"make.fake": 'mkdir -p "$libdir/slurm"; touch "$libdir/slurm/spank_pyxis.so"\n'},
    "nccl-tests": {
        "make.fake": 'mkdir -p "$BUILDDIR"; echo >"$BUILDDIR/all_reduce_perf"; chmod +x "$BUILDDIR/all_reduce_perf"\n'
    },
    "lustre-efa-setup": {
        # binds what it should only where Lustre's modules are loaded after it
        "setup.sh": 'unit=$FAKE/units/configure-efa-fsx-lustre-client\nmkdir -p "$unit" "$FAKE/lnet"\n'
        'if [[ -e $ULTRACLUSTER_ROOT/sys/module/libcfs ]]; then echo 1; else cat "$FAKE/fsx_interfaces"; fi >"$FAKE/lnet/efa"\n'
        'mkdir -p "$ULTRACLUSTER_ROOT"/sys/module/{libcfs,lnet}\ntouch "$unit"/{enabled,active}\n'
    },
    "nixl": {"nixl/__init__.py": ""},
}


def _tar(files: dict[str, str], top: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(f"{top}/{path}")
            member.size = len(text.encode())
            member.mode = 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


def _zip(files: dict[str, str], top: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, text in files.items():
            archive.writestr(f"{top}{path}", text)
    return data.getvalue()

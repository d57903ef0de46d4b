"""What an image brings: kernel modules, libraries, tools and units, as its record has them."""

from __future__ import annotations

import json

from first_boot.contents import Contents
from first_boot.sandbox import MAKERS, Sandbox

from ultracluster.catalog import InstanceType
from ultracluster.catalog.images import Image

_PACKAGED = {
    "gdrcopy_lib": "/usr/lib/{machine}-linux-gnu/libgdrapi.so.{short}",
    "container_toolkit": "/usr/bin/nvidia-ctk",
    "dcgm": "/usr/bin/dcgmi",
    "enroot": "/usr/bin/enroot",
    "containerd": "/usr/bin/containerd",
}
"""Where packages put a component, of which records say nothing else."""
_PACKAGED_RPM = {"gdrcopy_lib": "/usr/lib64/libgdrapi.so.{short}"}
_CUDA_OF_DRIVERS = {"570": "12.8", "575": "12.9", "580": "13.0", "590": "13.1", "595": "13.2"}
"""CUDA that drivers of a branch bring (CUDA Toolkit Release Notes, table of driver versions)."""


def lay_image(box: Sandbox, *, image: Image, kind: InstanceType, found: Contents) -> None:
    """Write what the image brings for a node of this type."""
    maker = kind.accelerator.manufacturer if kind.accelerator else ""
    debian = image.os.startswith("ubuntu")
    for field, module in (("efa_kmod", "efa"), ("lustre_client", "lustre"), ("nvidia_fs", "nvidia_fs")):
        box.module(module, found[field])
    box.module("kefalnd", "1.2.2" if found["lustre_client"] else None)
    if found["lustre_client"]:
        box.program("usr/sbin/mount.lustre")
        box.program("usr/sbin/lctl")
        package = "lustre-client-utils" if debian else "lustre-client"
        box.package(package, found["lustre_client"])
    if maker == "NVIDIA" and (driver := found["nvidia_driver"]):
        box.module("nvidia", driver, loaded=True)
        box.write("proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX Open Kernel Module  {driver}\n")
        (box.root / f"usr/src/nvidia-{driver}").mkdir(parents=True)
        box.unit("nvidia-persistenced", active=True)
        box.unit("nvidia-fabricmanager", active=True)
        box.package("nvidia-fabricmanager", str(found["fabric_manager"]))
        if cuda := _CUDA_OF_DRIVERS.get(driver.partition(".")[0]):
            box.program("usr/bin/nvidia-smi", f"| CUDA Version: {cuda} |")
    (box.root / "dev").mkdir(exist_ok=True)
    box.tell("modules/gdrdrv.device", "")
    if maker == "NVIDIA" and found["gdrdrv"]:
        box.module("gdrdrv", found["gdrdrv"], loaded=True)
        box.write("dev/gdrdrv", "")
    box.module("neuron", found["neuron_driver"] if maker == "AWS" else None, loaded=True)
    for field, package in (
        ("neuron_runtime", "aws-neuronx-runtime-lib"),
        ("neuron_collectives", "aws-neuronx-collectives"),
    ):
        if value := found[field]:
            box.package(package, value)
    _libraries(box, image, found)
    _tools(box, image, found)


def _libraries(box: Sandbox, image: Image, found: Contents) -> None:
    ubuntu = image.os.startswith("ubuntu")
    if efa := found["efa_installer"]:
        libfabric = found["libfabric"] or "2.4.0amzn1.0"
        box.write("opt/amazon/openmpi/include/mpi.h", "")
        box.write("opt/amazon/efa_installed_packages", f"# EFA installer version: {efa}\n")
        box.write("opt/amazon/efa/bin/fi_info", (MAKERS / "files/efa-installer/fi_info").read_text())
        (box.root / "opt/amazon/efa/bin/fi_info").chmod(0o755)
        box.write("opt/amazon/efa/bin/fi_info.version", f"{libfabric}\n")
        box.write("opt/amazon/efa/include/rdma/fabric.h", "")
        box.write(place(image, "libfabric", libfabric), "")
    if plugin := found["aws_ofi_nccl"]:
        box.write(
            place(image, "aws_ofi_nccl", plugin),
            f"\0NET/OFI Initializing aws-ofi-nccl {plugin}\0",
        )
    folders = (found["cuda_all"] or found["cuda_default"] or "").split()
    for version in folders:
        box.write(f"usr/local/cuda-{version}/version.json", json.dumps({"cuda": {"version": f"{version}.0"}}))
        box.write(f"usr/local/cuda-{version}/include/cuda.h", "")
        box.program(f"usr/local/cuda-{version}/bin/nvcc")
    if folders:
        (box.root / "usr/local/cuda").symlink_to(f"cuda-{found['cuda_default'] or folders[-1]}")
    if nccl := found["nccl"]:
        box.package("libnccl2" if ubuntu else "libnccl", f"{nccl}-1+cuda13.2")
    if gdrcopy := found["gdrcopy_lib"]:
        box.write(place(image, "gdrcopy_lib", gdrcopy), "")
        box.package("libgdrapi" if ubuntu else "gdrcopy", f"{gdrcopy}-1")


def _tools(box: Sandbox, image: Image, found: Contents) -> None:
    if version := found["container_toolkit"]:
        box.program(
            place(image, "container_toolkit", version), f"NVIDIA Container Toolkit CLI version {version}"
        )
        box.package("nvidia-container-toolkit", f"{version}-1")
    if version := found["dcgm"]:
        box.program(place(image, "dcgm", version), "", f"dcgmi  version: {version}")
        box.unit("nvidia-dcgm", active=True)
    if version := found["enroot"]:
        for hook in ("50-slurm-pmi.sh", "50-slurm-pytorch.sh"):
            box.write(f"usr/share/enroot/hooks.d/{hook}", "")
        box.program(place(image, "enroot", version), version)
        box.package("enroot", f"{version}-1")
    if version := found["containerd"]:
        box.program(
            place(image, "containerd", version), f"containerd github.com/containerd/containerd v{version}"
        )
        box.unit("containerd", active=True)
    if found["docker"]:
        box.unit("docker", active=True)
    if found["fsx_efa_setup"]:
        box.unit("configure-efa-fsx-lustre-client", active=True)
    box.package("linux-image-aws" if image.os.startswith("ubuntu") else "kernel6.12", "1.0-1")


def place(image: Image, field: str, version: str) -> str:
    """Where the image has a component, below the root: by its record, else where its package puts it."""
    known = image.places.get(field)
    ubuntu = image.os.startswith("ubuntu")
    path = known.path if known else _PACKAGED[field] if ubuntu else _PACKAGED_RPM.get(field, _PACKAGED[field])
    machine = "aarch64" if image.arch == "arm64" else "x86_64"
    return path[1:].format(machine=machine, short=".".join(version.split(".")[:2]))

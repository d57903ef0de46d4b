"""What an image brings: kernel modules, libraries, tools and units, as its record has them."""

from __future__ import annotations

import json

from first_boot.contents import Contents
from first_boot.makers import MAKERS
from first_boot.sandbox import Sandbox

from ultracluster.catalog import InstanceType
from ultracluster.catalog.images import Image


def lay_image(box: Sandbox, *, image: Image, kind: InstanceType, found: Contents) -> None:
    """Write what the image brings for a node of this type."""
    maker = kind.accelerator.manufacturer if kind.accelerator else ""
    for field, module in (("efa_kmod", "efa"), ("lustre_client", "lustre"), ("nvidia_fs", "nvidia_fs")):
        box.module(module, found[field])
    box.module("kefalnd", "1.2.2" if found["lustre_client"] else None)
    if found["lustre_client"]:
        box.program("usr/sbin/mount.lustre")
        box.program("usr/sbin/lctl")
        package = "lustre-client" if image.os == "al2023" else "lustre-client-utils"
        box.package(package, found["lustre_client"])
    if maker == "NVIDIA" and (driver := found["nvidia_driver"]):
        box.module("nvidia", driver, loaded=True)
        box.write("proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX Open Kernel Module  {driver}\n")
        (box.root / f"usr/src/nvidia-{driver}").mkdir(parents=True)
        box.unit("nvidia-persistenced", active=True)
        box.unit("nvidia-fabricmanager", active=True)
        box.package("nvidia-fabricmanager", str(found["fabric_manager"]))
        box.program("usr/bin/nvidia-smi", "| CUDA Version: 13.2 |")
    box.module("gdrdrv", found["gdrdrv"] if maker == "NVIDIA" else None, loaded=True)
    box.module("neuron", found["neuron_driver"] if maker == "AWS" else None, loaded=True)
    if maker == "AWS" and found["neuron_driver"]:
        box.write("dev/neuron0", "")
    for field, package in (
        ("neuron_runtime", "aws-neuronx-runtime-lib"),
        ("neuron_collectives", "aws-neuronx-collectives"),
    ):
        if value := found[field]:
            box.package(package, value)
    _libraries(box, image, found)
    _tools(box, image, found)


def _libraries(box: Sandbox, image: Image, found: Contents) -> None:
    if efa := found["efa_installer"]:
        libfabric = found["libfabric"] or "2.4.0amzn1.0"
        box.write("opt/amazon/efa_installed_packages", f"# EFA installer version: {efa}\n")
        box.write("opt/amazon/efa/bin/fi_info", (MAKERS / "files/efa-installer/fi_info").read_text())
        (box.root / "opt/amazon/efa/bin/fi_info").chmod(0o755)
        box.write("opt/amazon/efa/bin/fi_info.version", f"{libfabric}\n")
        box.write("opt/amazon/efa/include/rdma/fabric.h", "")
        box.write("opt/amazon/efa/lib/libfabric.so.1", "")
    if plugin := found["aws_ofi_nccl"]:
        box.write(
            "opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so",
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
        box.package("libnccl2" if image.os.startswith("ubuntu") else "libnccl", f"{nccl}-1+cuda13.2")
    if gdrcopy := found["gdrcopy_lib"]:
        short = ".".join(gdrcopy.split(".")[:2])
        folder = f"usr/lib/{_machine(image)}-linux-gnu" if image.os.startswith("ubuntu") else "usr/lib64"
        box.write(f"{folder}/libgdrapi.so.{short}", "")
        box.package("libgdrapi" if image.os.startswith("ubuntu") else "gdrcopy", f"{gdrcopy}-1")


def _tools(box: Sandbox, image: Image, found: Contents) -> None:
    if version := found["container_toolkit"]:
        box.program("usr/bin/nvidia-ctk", f"NVIDIA Container Toolkit CLI version {version}")
        box.package("nvidia-container-toolkit", f"{version}-1")
    if version := found["dcgm"]:
        box.program("usr/bin/dcgmi", "", f"dcgmi  version: {version}")
        box.unit("nvidia-dcgm", active=True)
    if version := found["enroot"]:
        for hook in ("50-slurm-pmi.sh", "50-slurm-pytorch.sh"):
            box.write(f"usr/share/enroot/hooks.d/{hook}", "")
        box.program("usr/bin/enroot", version)
        box.package("enroot", f"{version}-1")
    if version := found["containerd"]:
        box.program("usr/bin/containerd", f"containerd github.com/containerd/containerd v{version}")
        box.unit("containerd", active=True)
    if found["docker"]:
        box.unit("docker", active=True)
    if found["fsx_efa_setup"]:
        box.unit("configure-efa-fsx-lustre-client", active=True)
    box.package("linux-image-aws" if image.os.startswith("ubuntu") else "kernel6.12", "1.0-1")


def _machine(image: Image) -> str:
    return "aarch64" if image.arch == "arm64" else "x86_64"

"""The devices of a sandboxed node, as its kernel and drivers show them: GPUs, Neuron, EFA, local disks."""

from __future__ import annotations

import json
from functools import cache

from first_boot.faults import Faults
from first_boot.sandbox import Sandbox
from project import ROOT

from ultracluster.catalog import InstanceType

_GPU, _NEURON, _EFA = (
    ("0x10de", "0x2330", "0x030200"),
    ("0x1d0f", "0x7364", "0x088000"),
    ("0x1d0f", "0xefa2", "0x020000"),
)
"""Vendor, device and class on the PCI bus."""


def lay_hardware(box: Sandbox, *, kind: InstanceType, efa: int, striped: bool, faults: Faults) -> None:
    """Write the devices of a node, served by their drivers where these are there.

    Args:
        efa: interfaces of EFA that the node was started with.
        striped: the image makes one volume of the local disks, which it mounts later.
    """
    box.write("sys/devices/virtual/dmi/id/product_name", f"{kind.name}\n")
    box.write("proc/sys/kernel/random/boot_id", "01234567-89ab-cdef-0123-456789abcdef\n")
    _disks(box, kind.local_nvme_disks - faults.disks, striped=striped)
    number = kind.accelerator.count if kind.accelerator else 0
    maker = kind.accelerator.manufacturer if kind.accelerator else ""
    devices = {"NVIDIA": [_GPU], "AWS": [_NEURON]}.get(maker, []) * number + [_EFA] * efa
    addresses = [_on_bus(box, slot, *device) for slot, device in enumerate(devices, start=1)]
    if maker == "NVIDIA" and (box.fake / "modules/nvidia").exists():
        _gpus(box, kind, number - faults.gpus, linked=bool(kind.nvswitch or kind.imex))
    if maker == "AWS" and (box.fake / "modules/neuron").exists():
        for index in range(number - faults.gpus):
            box.write(f"dev/neuron{index}", "")
            stats = f"sys/devices/virtual/neuron_device/neuron{index}/stats/hardware"
            for counter in ("sram_ecc_uncorrected", "mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected"):
                box.write(f"{stats}/{counter}", "0\n")
    # the EFA installer, which brings a driver where there is none, shows those that lie aside
    folder = "sys/class/infiniband" if (box.fake / "modules/efa").exists() else "../fake/infiniband"
    for index, address in enumerate(addresses[number : len(addresses) - faults.efa_devices]):
        _efa_device(box, index, address, folder=folder)


def _on_bus(box: Sandbox, slot: int, vendor: str, device: str, device_class: str) -> str:
    address = f"0000:{slot:02x}:00.0"
    folder = f"sys/devices/pci0000:00/{address}"
    for name, text in (("vendor", vendor), ("device", device), ("class", device_class)):
        box.write(f"{folder}/{name}", f"{text}\n")
    link = box.root / "sys/bus/pci/devices" / address
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(f"../../../devices/pci0000:00/{address}")
    return address


def _efa_device(box: Sandbox, index: int, address: str, *, folder: str) -> None:
    (box.root / "sys/bus/pci/drivers/efa").mkdir(parents=True, exist_ok=True)
    driver = box.root / f"sys/devices/pci0000:00/{address}/driver"
    driver.symlink_to("../../../bus/pci/drivers/efa")
    name = f"{folder}/efa_{index}"
    box.write(f"{name}/ports/1/state", "4: ACTIVE\n")
    for counter in ("rdma_read_bytes", "rdma_write_bytes", "rx_drops", "retrans_timeout_events"):
        box.write(f"{name}/ports/1/hw_counters/{counter}", "0\n")
    (box.root / name / "device").symlink_to(f"../../../devices/pci0000:00/{address}")


def _gpus(box: Sandbox, kind: InstanceType, number: int, *, linked: bool) -> None:
    assert kind.accelerator
    name = f"NVIDIA {kind.accelerator.name}"
    for path in ("gpus", "gpus/links"):
        (box.fake / path).mkdir(exist_ok=True)
    box.tell("gpus/count", str(number))
    box.tell("gpus/name", name)
    if number == 0:
        box.tell("gpus/text", "No devices were found")
        box.tell("gpus/status", "6")
    for index in range(number):
        box.write(f"dev/nvidia{index}", "")
    box.write("dev/nvidiactl", "")
    links = _links().get(kind.accelerator.name, 18) if linked else 0
    lines = [
        f"GPU {index}: {name} (UUID: GPU-0123-{index})\n"
        + "".join(f"\t Link {link}: 26.562 GB/s\n" for link in range(links))
        for index in range(number)
    ]
    box.tell("gpus/links/text", "".join(lines).rstrip())


@cache
def _links() -> dict[str, int]:
    document = json.loads((ROOT / "lifecycle_scripts/health/faults.json").read_text())
    generations = document["generations"].values()
    return {name: links for row in generations for name, links in row.get("nvlinks", {}).items()}


def _disks(box: Sandbox, number: int, *, striped: bool) -> None:
    """The root volume and local disks: as lsblk lists them, and as their controllers show themselves."""
    models = ["Amazon Elastic Block Store", *["Amazon EC2 NVMe Instance Storage"] * number]
    lines = []
    for index, model in enumerate(models):
        content = "ext4" if index == 0 else "image" if striped else "-"
        lines.append(f"/dev/nvme{index}n1 259:{index} {content} {model}")
        box.write(f"sys/class/nvme/nvme{index}/model", f"{model}\n")
        box.write(f"sys/class/nvme/nvme{index}/state", "live\n")
    box.tell("disks", "\n".join(lines))

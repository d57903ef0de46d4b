"""Instances that MIG makes of a node's GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ultracluster.catalog import InstanceType
from ultracluster.catalog.mig import balanced_profiles, mig_profiles, places_on_gpu
from ultracluster.config.nodes import NodeGroup

GPU = "nvidia.com/gpu"


def gpu_layouts(group: NodeGroup, instance_type: InstanceType) -> Sequence[Mapping[str, int]]:
    """Instances of each profile, for each GPU of a node; none of a GPU that stays whole."""
    accelerator = instance_type.accelerator
    count = accelerator.count if accelerator else 0
    layout = group.mig_layout
    if group.mig_profile:
        most = mig_profiles(instance_type).get(group.mig_profile, 0)
        return ({group.mig_profile: most},) * count
    if layout == "all-balanced":
        return (balanced_profiles(instance_type),) * count
    if isinstance(layout, Mapping):
        return (layout,) * count
    whole: Mapping[str, int] = {}
    return layout or (whole,) * count


def slurm_gres(layouts: Sequence[Mapping[str, int]], gpu_type: str) -> str:
    """`Gres` of a Slurm node with these GPUs: instances of each profile, and whole GPUs by their type."""
    found: dict[str, int] = {}
    for layout in layouts:
        for name, count in (layout or {gpu_type: 1}).items():
            found[name] = found.get(name, 0) + count
    return ",".join(f"gpu:{name}:{count}" for name, count in found.items())


def node_layouts(layouts: Sequence[Mapping[str, int]], instance_type: InstanceType) -> list[str]:
    """Profiles of each GPU with their places, as `nvidia-smi mig -cgi` takes them; empty of a GPU that stays
    whole."""
    return [
        ",".join(f"{profile}:{start}" for profile, start in places_on_gpu(instance_type, layout) or ())
        for layout in layouts
    ]


def mig_resources(layouts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Resources that the device plugin offers for these GPUs by its strategy `mixed`: one of each profile,
    and whole GPUs."""
    found: dict[str, int] = {}
    for layout in layouts:
        for profile, count in layout.items():
            name = mig_resource(profile)
            found[name] = found.get(name, 0) + count
    if whole := sum(not layout for layout in layouts):
        found[GPU] = whole
    return found


def mig_resource(profile: str) -> str:
    """As pods ask for it: `nvidia.com/mig-1g.10gb.me` of `1g.10gb+me`."""
    return f"nvidia.com/mig-{profile.replace('+', '.')}"


__all__ = ["GPU", "gpu_layouts", "mig_resource", "mig_resources", "node_layouts", "slurm_gres"]

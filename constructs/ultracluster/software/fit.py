"""What a node does with each component of a release on an image: kept, installed, degraded or refused.

The lifecycle scripts (lib/software.sh) decide the same on the node; this says it before there is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from ultracluster.catalog.images import Image
from ultracluster.catalog.install_minutes import install_minutes
from ultracluster.catalog.lustre_kernels import lustre_efa_kernel, lustre_kernels
from ultracluster.software.image_facts import ANY_VERSION, Found, efa_module, found, minimal_efa
from ultracluster.software.installing import Installing, Lack, Sources, installing
from ultracluster.software.lock import Component, Need, Release
from ultracluster.software.solver import instance_rows
from ultracluster.software.versions import Version

Outcome = Literal["kept", "installs", "degraded", "refuses", "not-needed"]

ON_KUBERNETES = frozenset(
    {
        "nvidia-driver",
        "fabric-manager",
        "efa-installer",
        "neuron-driver",
        "gdrcopy",
        "lustre-client",
        "lustre-efa-setup",
        "nvidia-fs",
        "container-toolkit",
    }
)
"""What reaches into the kernel, and the toolkit: pods bring the rest themselves (`lib/steps.sh`)."""
METRICS = frozenset({"node-exporter", "dcgm-exporter", "prometheus"})
"""What collects metrics on Slurm nodes: without it the view is the poorer, and no node is refused."""
_EVERY_ROLE = frozenset({"lustre-client", "pyxis", "slurm", "node-exporter", "prometheus"})
_WITH_EFA = frozenset({"efa-installer", "libfabric", "aws-ofi-nccl"})
_MACHINES = {"x86_64": "x86_64", "arm64": "aarch64"}  # as EC2 and as `uname -m` name them


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What decides on one node which components it needs."""

    role: str
    instance_type: str
    architecture: str
    """`x86_64` or `arm64`."""
    accelerator: Literal["nvidia", "neuron", "none"]
    efa_interfaces: int
    nvswitch: bool
    """The fabric manager runs on the node."""
    lustre: Literal["none", "tcp", "efa"]
    gds: bool
    """GPUDirect Storage is asked for, and this type can do it."""
    kubernetes: bool
    gpu: str = ""
    """Its accelerator as the EC2 API names it (`H200`)."""
    local_nvme_disks: int = 0
    components: frozenset[str] = frozenset()
    """Optional components that the environment asks for."""
    strict: bool = False
    sources: Sources = "internet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What a node does with one component."""

    component: str
    need: Need
    outcome: Outcome
    found: str | None
    """Version on the image; None where it has none or that is not known."""
    preferred: str
    detail: str
    """Why, or what is lost."""
    source: str
    """Where it is installed from; empty where nothing is."""
    minutes: float
    """An estimate of what installing it takes."""
    certain: bool
    """Rests on confirmed facts only."""
    known: bool = True
    """Whether anybody says if the image has it; what is not known is looked for on the node."""
    older: str = ""
    """Version that the GPU family of a kept one should have, or the release prefers; empty if it is met."""
    lack: Lack = ""
    """Why it could not be installed, where it is or may be absent; empty where it could."""


def fit(image: Image | None, release: Release, node: Node) -> tuple[Fit, ...]:
    """What a node on `image` does with each component of `release`, in the order of the release.

    Args:
        image: None is an image of which nothing is known.
    """
    return _fits(_Same(image), _Same(release), node)


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """Key of a cache, which keeps the object: compared by identity, because its content has no hash."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@lru_cache(maxsize=1000)
def _fits(image_key: _Same, release_key: _Same, node: Node) -> tuple[Fit, ...]:
    """Several rules and the plan ask this of the same group."""
    image: Image | None = image_key.value
    release: Release = release_key.value
    fits: dict[str, Fit] = {}
    for name, part in release.components.items():
        if name != "kernel":
            fits[name] = _fit(name, part, image, release, node, fits)
    return tuple(fits.values())


def unneeded(name: str, part: Component, node: Node) -> str:
    """Why a node has no use for a component; empty where it has."""
    if node.kubernetes and (node.role != "compute" or name not in ON_KUBERNETES):
        return "pods bring it themselves" if node.role == "compute" else f"a {node.role} node needs none"
    if node.role != "compute" and name not in _EVERY_ROLE:
        return f"a {node.role} node needs none"
    if part.accelerator not in ("any", node.accelerator):
        return f"it is for nodes with {part.accelerator}, this one has {node.accelerator}"
    needed = name in node.components
    match name:
        case "fabric-manager" if not node.nvswitch:
            return "no NVSwitch on the node"
        case "lustre-client" if node.lustre == "none":
            return "no Lustre file system"
        case "lustre-efa-setup":
            needed = node.lustre == "efa" and node.role == "compute"
            return "" if needed else "Lustre uses TCP here"
        case "nvidia-fs":
            return "" if node.gds and node.lustre == "efa" else "no GPUDirect Storage here"
        case _ if name in _WITH_EFA and node.efa_interfaces == 0:
            return "no EFA interfaces"
        case _:
            return "" if needed or part.need != "optional" else "optional, and not asked for"


def _fit(
    name: str, part: Component, image: Image | None, release: Release, node: Node, before: dict[str, Fit]
) -> Fit:
    def answer(
        outcome: Outcome, detail: str, *, source: str = "", certain: bool = False, lack: Lack = ""
    ) -> Fit:
        minutes = install_minutes(name, part.kind) if outcome == "installs" else 0
        return Fit(
            component=name,
            need=part.need,
            outcome=outcome,
            found=here.text,
            preferred=preferred or part.version,
            detail=detail,
            source=source,
            minutes=minutes,
            certain=certain,
            known=here.state != "unknown",
            older=_older(name, here, preferred, node) if outcome == "kept" else "",
            lack=lack,
        )

    preferred, floor = _wanted(name, part, image, node)
    here = found(
        name,
        image,
        kubernetes=node.kubernetes,
        module_only=node.kubernetes and node.lustre == "tcp",
    )
    if reason := unneeded(name, part, node):
        return answer("not-needed", reason, certain=True)
    carrier = before.get("efa-installer")
    if part.kind == "bundled" and carrier and carrier.outcome == "installs":
        here = Found("present", here.version if here.state == "version" else None)
        return answer("kept", "the EFA installer brings it")
    state, why = _state(name, here, preferred, floor, strict=node.strict)
    sure = here.confirmed and (node.strict or state != "below" or _confirmed(part, node))
    if state in ("kept", "perhaps"):
        return answer("kept", why, certain=here.confirmed and state == "kept")
    if state == "newer":
        return answer("refuses", f"{why}, and strict allows no other", certain=here.confirmed)
    way = _way(name, part, image, release, node)
    if state == "unknown":
        if part.kind == "image" or not way.source:
            return answer("kept", f"unknown; if it is absent, {way.why_not}", lack=way.lack)
        return answer("installs", "unknown: detected on the node, installed if absent", source=way.source)
    if way.source:
        doubt = _kernel_doubt(name, image)
        return answer("installs", f"{why}{doubt}", source=way.source, certain=sure and not doubt)
    strict = node.strict and name not in METRICS
    fatal = strict or (part.need == "required" and (state == "absent" or _confirmed(part, node)))
    return answer("refuses" if fatal else "degraded", f"{why}; {way.why_not}", certain=sure, lack=way.lack)


def _wanted(name: str, part: Component, image: Image | None, node: Node) -> tuple[str | None, str | None]:
    """The preferred version and the floor that a found version is compared with."""
    preferred = part.version if part.version[:1].isdigit() else None
    lowest = part.floor_of(node.instance_type)
    floor = lowest.version if lowest else None
    if name == "nvidia-driver" and floor:  # images differ in patch levels
        floor = floor.partition(".")[0]
    if name == "efa-installer" and minimal_efa(image):
        module = part.provides.get("efa") or (efa_module(preferred) if preferred else None)
        return module, efa_module(floor) if floor else None
    return preferred, floor


def _state(
    name: str, here: Found, preferred: str | None, floor: str | None, *, strict: bool
) -> tuple[Literal["kept", "perhaps", "below", "absent", "unknown", "newer"], str]:
    """Where what is here stands, and the words for it."""
    if here.state == "unknown":
        return "unknown", ""
    if here.state == "absent":
        return "absent", "the image has none"
    if here.state == "present" or name in ANY_VERSION or preferred is None:
        return "kept", "its version is not known" if here.version is None else "the image's own"
    assert here.version is not None
    version = Version(here.version)
    if version >= Version(preferred) and not strict:
        return "kept", ""
    if strict:
        if version.within(Version(preferred)) or version == Version(preferred):
            return "kept", ""
        if here.state == "at-least" and version < Version(preferred):
            return "unknown", ""
        order = "newer" if version > Version(preferred) else "below"
        return order, f"{here.text} is not {preferred}"
    if floor is None or version >= Version(floor):
        return "kept", f"the release prefers {preferred}"
    if here.state == "at-least":
        return "perhaps", f"at least {here.version}, the floor is {floor}"
    return "below", f"{here.version} is below {floor}"


def _older(name: str, here: Found, preferred: str | None, node: Node) -> str:
    """Return what a kept version is below; a doubtful figure is reported and changes nothing."""
    # the fabric manager is right by the driver's version
    if here.version is None or here.state == "at-least" or name in {*ANY_VERSION, "fabric-manager"}:
        return ""
    version = Version(here.version)
    for row in instance_rows(node.gpu, node.instance_type):
        for requirement in row.require:
            if (
                requirement.fact == name
                and requirement.op == ">="
                and version < Version(str(requirement.value))
            ):
                return f"{here.version}, {row.title}"
    # an image may leave the suffix out: 2.7.0 is not older than 2.7.0amzn2.0, 2.5 is older than 2.5.2;
    # of GDRCopy, Kubernetes nodes have the module alone, which calls 2.5.2 2.5
    rest = (preferred or "").removeprefix(here.version)
    suffix = rest[:1].isalpha() or (name == "gdrcopy" and node.kubernetes and rest[:1] == ".")
    if preferred and version < Version(preferred) and not suffix:
        return f"{here.version}, the release prefers {preferred}"
    return ""


def _confirmed(part: Component, node: Node) -> bool:
    floor = part.floor_of(node.instance_type)
    return floor is not None and floor.mark == "confirmed"


def _way(name: str, part: Component, image: Image | None, release: Release, node: Node) -> Installing:
    os = image.os if image else None
    kernel = _kernel(image)
    if name == "lustre-efa-setup" and os and kernel:
        lowest = lustre_efa_kernel(os)
        if lowest and Version(kernel) < Version(lowest):
            why = f"Lustre uses EFA from kernel {lowest} on, the image has {kernel}"
            return Installing("", "not-there", why)
    machine = _MACHINES.get(node.architecture, "x86_64")
    return installing(release, name, part, os=os, machine=machine, sources=node.sources)


def _kernel(image: Image | None) -> str | None:
    fact = image.fact("kernel") if image else None
    return fact.value if fact and isinstance(fact.value, str) else None


def _kernel_doubt(name: str, image: Image | None) -> str:
    """What to say of a kernel that FSx's matrix does not name; it is tried all the same."""
    kernel = _kernel(image)
    if name != "lustre-client" or image is None or kernel is None or in_matrix(image.os, kernel):
        return ""
    return f"; kernel {kernel} is not in FSx's matrix and is tried"


def in_matrix(os: str, kernel: str) -> bool:
    """Whether FSx names a Lustre client for a kernel of an operating system."""
    version = Version(kernel)
    return any(
        version >= Version(low) and (version <= Version(high) or kernel.startswith((f"{high}.", f"{high}-")))
        for low, high in lustre_kernels(os)
    )


def lost(fits: tuple[Fit, ...]) -> Iterator[Fit]:
    """What a node would lack, or fail for."""
    yield from (fit for fit in fits if fit.outcome in ("degraded", "refuses"))

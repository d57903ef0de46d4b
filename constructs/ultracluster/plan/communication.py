"""Estimate what a parallel layout sends in each training step: bytes and seconds, by link.

Formulas, per accelerator and step, for T tokens, P parameters, L layers of width h in 16 bits:

- tensor: four all-reduces of activations a layer, 8 h (tp-1)/tp values a token (Narayanan et al. 2021,
  Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, section 3.2);
- data: gradients are reduced and weights gathered, 2 P (dp-1)/dp values of its share, or 3 P where weights
  are sharded, too (Rajbhandari et al. 2020, ZeRO, section 7);
- pipeline: activations forward and their gradients backward between stages (Narayanan et al., section 3.2);
- context: keys and values pass round the ring, forward once and backward with their gradients (Liu et al.
  2023, Ring Attention with Blockwise Transformers);
- experts: tokens go to their experts and come back, forward and backward (Lepikhin et al. 2020, GShard).

Ranks are placed as Megatron places them: tensor, context, data (experts inside it), pipeline outermost.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from ultracluster.acceptance.curves import gate
from ultracluster.catalog.accelerator_speeds import AcceleratorSpeed, accelerator_speed
from ultracluster.plan.groups import GroupPlan

Kind = Literal["tensor", "context", "experts", "data", "pipeline"]
Link = Literal["link", "EFA"]

BYTES: Final = 2
"""Size of a value that is sent: 16 bits."""
WIDTH_PER_LAYER: Final = 128
"""Width of a layer over the number of layers (The Llama 3 Herd of Models, table 3: 102 to 130)."""
VALUES_PER_LAYER: Final = 12
"""Parameters of a layer over the square of its width (Narayanan et al. 2021, section 5.1)."""
KEY_SHARE: Final = 1 / 8
"""Width of keys, and of values, over that of a layer (The Llama 3 Herd of Models, table 3: 8 of 64 heads)."""
EXPERTS_PER_TOKEN: Final = 8
"""Experts that one token visits (DeepSeek-V3 Technical Report, section 4.2)."""
OPTIMIZER_BYTES: Final = 30
"""Read and written for one parameter in a step of Adam: 16 read, 14 written (ZeRO, section 3.1)."""

_NAMES: Final = ("dp", "fsdp", "tp", "pp", "ep", "cp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Number of ways in which each kind of parallelism splits the work."""

    dp: int = 1
    tp: int = 1
    pp: int = 1
    ep: int = 1
    """Ways that experts are split; part of dp."""
    cp: int = 1
    sharded: bool = False
    """Weights are sharded over dp and gathered for each pass (`fsdp=`)."""

    @property
    def accelerators(self) -> int:
        """Number of accelerators that it takes."""
        return self.dp * self.tp * self.pp * self.cp


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of training, and how it is split."""

    layout: Layout
    parameters: float
    active: float
    """Parameters that one token meets; all of them unless the model is a mixture of experts."""
    tokens: float
    """Tokens of all accelerators in one step."""
    mfu: float
    """Share of the peak that is taken to be reached, 0 to 1."""
    precision: str
    """Number format of the matrix products: `bf16`, `fp8`, `fp4`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes that one kind of parallelism sends over one kind of link."""

    kind: Kind
    link: str
    """`NVLink`, `NeuronLink` or `EFA`."""
    gigabytes: float
    """10^9 bytes that each accelerator sends in a step."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Communication:
    """The estimate of one layout on one group."""

    group: str
    step: Step
    step_seconds: float
    """Time of a step at the given MFU, which includes communication that is not hidden."""
    compute_seconds: float
    """Time of its matrix products at the peak."""
    optimizer_seconds: float
    """Time of reading and writing the optimizer's state."""
    link_gbps: float | None
    """GB/s of one accelerator over the link of its domain; None: not published, or PCIe."""
    efa_gbps: float | None
    """GB/s of one accelerator's share of EFA."""
    link_source: str
    efa_source: str
    traffic: tuple[Traffic, ...]
    unknown: tuple[Kind, ...]
    """Kinds whose link has no published speed."""
    across: tuple[Kind, ...]
    """Tensor and context parallelism that leaves the domain."""

    @property
    def dominates(self) -> Traffic | None:
        """The longest of them; None where nothing is sent."""
        return max(self.traffic, key=lambda one: one.seconds, default=None)

    @property
    def busiest_seconds(self) -> float:
        """Time of the link that is busy the longest: links work side by side."""
        busy: dict[str, float] = {}
        for one in self.traffic:
            busy[one.link] = busy.get(one.link, 0) + one.seconds
        return max(busy.values(), default=0)

    @property
    def mfu_without_overlap(self) -> float:
        """The most that can be reached where nothing is hidden behind matrix products."""
        busy = sum(one.seconds for one in self.traffic) + self.compute_seconds + self.optimizer_seconds
        return self.compute_seconds / busy


def read_layout(text: str) -> Layout:
    """The layout that `dp=64,tp=8` means.

    Raises:
        ValueError: it is none; the message says why and what works.
    """
    found: dict[str, int] = {}
    for part in text.replace(" ", "").lower().split(","):
        match = re.fullmatch(r"([a-z]+)=(\d{1,7})", part)
        if not match or match[1] not in _NAMES:
            raise ValueError(f"{part!r}: write dp=64,tp=8, with any of {', '.join(_NAMES)}")
        if match[1] in found:
            raise ValueError(f"{match[1]} stands there twice: keep one")
        if int(match[2]) < 1:
            raise ValueError(f"{part}: a number of ways is 1 or more")
        found[match[1]] = int(match[2])
    if "dp" in found and "fsdp" in found:
        raise ValueError("dp and fsdp exclude each other: keep fsdp where weights are sharded")
    sharded = "fsdp" in found
    layout = Layout(
        dp=found.get("fsdp", found.get("dp", 1)),
        **{name: found.get(name, 1) for name in ("tp", "pp", "ep", "cp")},
        sharded=sharded,
    )
    if layout.dp % layout.ep:
        nearest = math.gcd(layout.dp, layout.ep)
        raise ValueError(
            f"ep={layout.ep} does not divide dp={layout.dp}: experts are split inside dp; ep={nearest} works"
        )
    return layout


def communication(group: GroupPlan, step: Step) -> Communication:
    """The estimate for a group.

    Raises:
        ValueError: the layout does not fit the group, or nothing is known of its accelerators.
    """
    per_node = group.accelerators // group.greatest if group.accelerators else 0
    if not per_node or group.domain is None:
        raise ValueError(f"group {group.name} has no accelerators whose links are known")
    speed = accelerator_speed(group.accelerator)
    if speed is None:
        raise ValueError(f"no peaks are published for {group.accelerator}, so there is no estimate")
    peak = speed.tflops.get(step.precision)
    if peak is None:
        raise ValueError(
            f"no peak of {step.precision} is published for {group.accelerator}: "
            f"take --precision {' or '.join(speed.tflops)}"
        )
    _check_size(group, step.layout, per_node)
    used = step.layout.accelerators
    flops = 6 * step.active * step.tokens / used
    link, link_source = _link_speed(group, speed)
    efa, efa_source = _efa_speed(group, per_node)
    traffic: list[Traffic] = []
    unknown: list[Kind] = []
    across: list[Kind] = []
    for kind, inside, outside, crosses in _sent(step, max(1, group.domain.size)):
        for name, sent, gbps in ((group.domain.link or "PCIe", inside, link), ("EFA", outside, efa)):
            if sent and not gbps:
                unknown.append(kind)
            elif sent and gbps:
                traffic.append(Traffic(kind=kind, link=name, gigabytes=sent / 1e9, seconds=sent / 1e9 / gbps))
        if crosses and kind in ("tensor", "context"):
            across.append(kind)
    return Communication(
        group=group.name,
        step=step,
        step_seconds=flops / (peak * 1e12 * step.mfu),
        compute_seconds=flops / (peak * 1e12),
        optimizer_seconds=step.parameters / used * OPTIMIZER_BYTES / (speed.memory_gbps * 1e9),
        link_gbps=link,
        efa_gbps=efa,
        link_source=link_source,
        efa_source=efa_source,
        traffic=tuple(traffic),
        unknown=tuple(dict.fromkeys(unknown)),
        across=tuple(across),
    )


def shape(active: float) -> tuple[float, float]:
    """Layers and width of a model of usual proportions."""
    width = (WIDTH_PER_LAYER * active / VALUES_PER_LAYER) ** (1 / 3)
    return width / WIDTH_PER_LAYER, width


def _check_size(group: GroupPlan, layout: Layout, per_node: int) -> None:
    used = layout.accelerators
    if used > group.accelerators:
        rest = used // layout.dp
        fits = max(group.accelerators // rest, 0)
        hint = f"dp={fits} works" if fits else "fewer of the other ways are needed first"
        raise ValueError(
            f"the layout takes {used:,} accelerators, {group.name} has {group.accelerators:,}: {hint}"
        )
    if used > per_node and used % per_node:
        rest = used // layout.dp
        step = per_node // math.gcd(per_node, rest)
        nearest = max(step, layout.dp // step * step)
        raise ValueError(
            f"the layout takes {used:,} accelerators, which is no whole number of nodes with {per_node}: "
            f"dp={nearest} takes {nearest * rest:,}"
        )


def _sent(step: Step, domain: int) -> Iterator[tuple[Kind, float, float, bool]]:
    """Kind, bytes that one accelerator sends inside its domain and outside, whether its groups leave it."""
    layout = step.layout
    layers, width = shape(step.active)
    local = layers / layout.pp
    tokens = step.tokens / (layout.dp * layout.cp)
    stride = 1
    if layout.tp > 1:
        sent = local * tokens * 4 * width * BYTES
        yield ("tensor", *_ring(2 * sent, layout.tp, stride, domain))
    stride *= layout.tp
    if layout.cp > 1:
        # each chunk passes on to all others; over EFA by the one rank at the border of its domain
        chunk = local * tokens * 2 * width * KEY_SHARE / layout.tp * BYTES
        inside, outside, crosses = _ring(3 * chunk * layout.cp, layout.cp, stride, domain)
        yield "context", inside, outside * _members(layout.cp, stride, domain), crosses
    stride *= layout.cp
    if layout.ep > 1:
        sent = 4 * local * tokens / layout.tp * EXPERTS_PER_TOKEN * width * BYTES
        members = _members(layout.ep, stride, domain)
        yield (
            "experts",
            sent * (members - 1) / layout.ep,
            sent * (layout.ep - members) / layout.ep,
            members < layout.ep,
        )
    # experts are already split inside dp, so that fewer ranks have the same
    ranks = layout.dp // layout.ep
    if ranks > 1:
        weights = step.parameters / (layout.tp * layout.pp * layout.ep) * BYTES
        passes = 3 if layout.sharded else 2
        yield ("data", *_ring(passes * weights, ranks, stride * layout.ep, domain))
    if layout.pp > 1:
        sent = 2 * tokens * width * BYTES / layout.tp
        outer = stride * layout.dp
        leaves = outer >= domain
        yield "pipeline", 0.0 if leaves else sent, sent if leaves else 0.0, leaves


def _members(size: int, stride: int, domain: int) -> int:
    """Ranks of a group that are in one domain."""
    return min(size, max(1, domain // stride))


def _ring(sent: float, size: int, stride: int, domain: int) -> tuple[float, float, bool]:
    """Bytes of one accelerator inside its domain and over EFA, for a ring of this many ranks; does it leave.

    A ring sends (n-1)/n of `sent` on each hop. Where several ranks of a domain share a ring, only one hop
    of theirs leaves it, and all of their interfaces carry it.
    """
    members = _members(size, stride, domain)
    domains = math.ceil(size / members)
    inside = sent * (size - 1) / size if members > 1 else 0.0
    outside = sent * (domains - 1) / domains / members if domains > 1 else 0.0
    return inside, outside, domains > 1


def _link_speed(group: GroupPlan, speed: AcceleratorSpeed) -> tuple[float | None, str]:
    published = gate(group.instance_type, "single")
    if speed.link_gbps is None or not (group.domain and group.domain.link):
        return None, ""
    if published and published.busbw <= speed.link_gbps:
        return published.busbw, "acceptance gate"
    return speed.link_gbps, "line rate"


def _efa_speed(group: GroupPlan, per_node: int) -> tuple[float | None, str]:
    if not group.efa_gbps_per_node:
        return None, ""
    line_rate = group.efa_gbps_per_node / 8
    published = gate(group.instance_type, "fabric")
    if published and published.busbw <= line_rate:
        return published.busbw / per_node, "acceptance gate"
    return line_rate / per_node, "line rate"

"""What stands on the cards of a picture."""

from __future__ import annotations

from typing import assert_never

from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.plan.cost_parts import CostPart
from ultracluster.plan.cost_summary import rough
from ultracluster.plan.environment_plan import FileSystemPlan, GroupPlan, Plan, bandwidth
from ultracluster.plan.picture_canvas import shorten


def services(orchestrator: OrchestratorKind) -> list[tuple[str, list[str]]]:
    """Symbol and words of what AWS runs of the orchestrator."""
    hyperpod = ("hyperpod", ["HyperPod", "SageMaker runs, checks", "and replaces the nodes"])
    kubernetes = ("eks", ["Amazon EKS", "Kubernetes", "control plane"])
    match orchestrator:
        case "hyperpod-slurm":
            return [hyperpod]
        case "hyperpod-eks":
            return [kubernetes, hyperpod]
        case "eks":
            return [kubernetes]
        case "pcs":
            return [("slurm", ["AWS PCS", "Slurm controller,", "run by AWS"])]
        case "parallelcluster":  # its head node is one of the groups
            return []
        case _ as never:
            assert_never(never)


def cost_and_boot(plan: Plan, group: GroupPlan) -> str:
    """`about 707,000 USD/month; first boot: 2.5 min, degraded`; empty where neither is known."""
    parts: list[str] = []
    for part in plan.cost.parts:
        if part.group == group.name:
            parts.append(_month(part))
    for boot in plan.first_boot:
        if boot.group == group.name and boot.components:
            state = ", FAILS" if boot.refuses else ", degraded" if boot.degraded else ""
            minutes = f"{boot.minutes:g} min" if boot.minutes else "nothing to install"
            parts.append(f"first boot: {minutes}{state}")
    return "; ".join(parts)


def _month(part: CostPart) -> str:
    if part.per_month is None:
        return "not priced"
    if part.most_per_month is None:
        return f"about {rough(part.per_month)} USD/month"
    return f"{rough(part.per_month)} to {rough(part.most_per_month)} USD/month"


def compute_lines(group: GroupPlan) -> list[str]:
    """A compute group on its card."""
    room = 736 - 64 - 16 * 14 - 24
    lines = [shorten(f"{group.name}: {group.nodes}", room, 14, bold=True)]
    if not group.greatest:
        return [*lines, "no nodes now", group.capacity]
    if group.accelerators:
        lines.append(
            f"{group.accelerators:,} x {group.accelerator}, {group.accelerator_memory_gib:,.0f} GiB"
            + _domain(group)
        )
    else:
        lines.append(machine(group))
    if group.efa_gbps_per_node:
        count = group.efa_interfaces or "?"
        nics = f"{count} EFA interface{'s' * (count != 1)} a node: {bandwidth(group.efa_gbps_per_node)}"
        lines.append(f"{nics}, {bandwidth(group.efa_gbps)} in all")
    else:
        lines.append("no EFA: TCP" if group.efa_gbps_per_node == 0 else "EFA unknown")
    capacity = f"{group.capacity} {group.capacity_id.rpartition('/')[2]}".strip()
    return [lines[0], *(shorten(line, room, 12) for line in [*lines[1:], capacity])]


def _domain(group: GroupPlan) -> str:
    if group.domain is None:
        return ""
    return f", {group.domain.size} by {group.domain.link}" if group.domain.link else ", by PCIe"


def placement_title(group: GroupPlan) -> str:
    """How its nodes are placed."""
    if group.domain and group.domain.ultraserver:
        return f"UltraServer {group.domain.ultraserver}"
    return {
        "hyperpod": "Placed by HyperPod",
        "cluster": "Cluster placement group",
        "reservation-group": "Placement group of the reservation",
    }.get(
        group.placement,
        "Placed with the Capacity Block" if group.capacity == "capacity-block" else "No placement group",
    )


def file_system_lines(file_system: FileSystemPlan, width: float) -> list[str]:
    """A file system on its card."""
    room = width - 76
    lines = [f"FSx for {file_system.kind} at {file_system.mount_path}"]
    if file_system.id:
        lines.append(f"{file_system.id} (existing)")
    else:
        size = f"{file_system.capacity_gib:,} GiB" if file_system.capacity_gib else "elastic"
        lines.append(f"{size}, {file_system.deployment}")
        speed = f"{file_system.read_mbps:,.0f} MB/s"
        lines.append(
            speed
            if file_system.read_mbps == file_system.write_mbps
            else f"{speed}, {file_system.write_mbps:,.0f} writing"
        )
    return [shorten(lines[0], room, 14, bold=True), *(shorten(line, room, 12) for line in lines[1:])]


def machine(group: GroupPlan) -> str:
    """Processors and memory of a group."""
    cores = "?" if group.vcpu is None else f"{group.vcpu:,}"
    return f"{cores} vCPUs, {'?' if group.memory_gib is None else f'{group.memory_gib:,.0f}'} GiB"

"""What an environment is made of, computed from the file and the catalogue alone."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from ultracluster.config import Environment, Finding
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.storage import ExistingLustre, IntelligentTieringLustre, ScratchLustre
from ultracluster.rules.address_budget import address_budget
from ultracluster.rules.types import instance_type_of


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One node group in figures; None is unknown."""

    name: str
    group: NodeGroup
    accelerators: int
    accelerator_name: str
    accelerator_memory_gib: float
    memory_gib: float | None
    efa_gbps: float | None
    """EFA bandwidth of all nodes of the group in Gbit/s; 0 without EFA."""


def group_plans(config: Environment) -> list[GroupPlan]:
    """The node groups of an environment in figures."""
    plans: list[GroupPlan] = []
    for name, group in config.node_groups.items():
        kind = instance_type_of(config, group)
        accelerator = kind.accelerator if kind else None
        efa: float | None = None
        if kind and kind.efa_interfaces == 0:
            efa = 0
        elif kind and kind.network_gbps:
            efa = kind.network_gbps * group.count
        plans.append(
            GroupPlan(
                name=name,
                group=group,
                accelerators=accelerator.count * group.count if accelerator else 0,
                accelerator_name=accelerator.name if accelerator else "",
                accelerator_memory_gib=accelerator.memory_gib * group.count if accelerator else 0,
                memory_gib=kind.memory_gib * group.count if kind else None,
                efa_gbps=efa,
            )
        )
    return plans


def lustre_line(config: Environment) -> str:
    """Capacity and throughput of the Lustre file system in words."""
    lustre = config.storage.lustre
    if lustre is None:
        return "none"
    if isinstance(lustre, ExistingLustre):
        return f"{lustre.id} (existing) at {lustre.mount_path}"
    fabric = " over EFA" if getattr(lustre, "efa", False) else " over TCP"
    if isinstance(lustre, IntelligentTieringLustre):
        return f"elastic, {lustre.throughput_mbps:,} MB/s{fabric} at {lustre.mount_path}"
    # SCRATCH is 200 MB/s per TiB (FSx for Lustre User Guide, "Performance")
    per_tib = 200 if isinstance(lustre, ScratchLustre) else lustre.throughput_mbps_per_tib
    speed = lustre.capacity_gib / 1000 * per_tib  # AWS counts 1200 GiB as 1.2 TiB
    return (
        f"{lustre.capacity_gib:,} GiB, {speed:,.0f} MB/s{fabric} at {lustre.mount_path} ({lustre.deployment})"
    )


def print_plan(config: Environment, warnings: list[Finding]) -> None:
    """Print the plan of an environment that passed its rules."""
    console = Console(highlight=False)
    account = config.account or "the account of your credentials"
    console.print(
        f"[bold]{config.name}[/bold]: {config.orchestrator.kind} in {config.network.zone_id}, {account}"
    )
    console.print(_groups(config))
    facts = Table(show_header=False, box=None, pad_edge=False)
    facts.add_column(style="dim")
    facts.add_column()
    budget = address_budget(config)
    for name, value in (
        ("Lustre", lustre_line(config)),
        ("home", _open_zfs(config)),
        ("accounting", _accounting(config)),
        ("egress", "NAT gateway" if config.network.egress == "nat" else "closed: VPC endpoints only"),
        ("addresses", f"{budget.total:,} of {budget.usable:,} in {budget.network} (estimate)"),
        ("software", f"release {config.software.release}"),
        ("protected", "yes: data is retained, stacks refuse deletion" if config.protect else "no"),
        ("stacks", " -> ".join(config.stack_names)),
        ("warnings", _warnings(warnings)),
    ):
        facts.add_row(name, value)
    console.print(facts)


def _groups(config: Environment) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("group", "nodes"):
        table.add_column(title, no_wrap=True)
    for title in ("accelerators", "memory", "EFA"):
        table.add_column(title, justify="right", no_wrap=True)
    for plan in group_plans(config):
        group = plan.group
        table.add_row(
            plan.name,
            f"{group.count} x {group.instance_type}",
            f"{plan.accelerators} x {plan.accelerator_name}" if plan.accelerators else "-",
            f"{plan.memory_gib:,.0f} GiB" if plan.memory_gib else "?",
            _bandwidth(plan.efa_gbps),
        )
        if plan.accelerators:
            memory = f"{plan.accelerator_memory_gib:,.0f} GiB"
            table.add_row("", f"[dim]{group.capacity.kind}[/dim]", f"[dim]{memory}[/dim]")
    return table


def _bandwidth(gbps: float | None) -> str:
    if gbps is None:
        return "?"
    if gbps == 0:
        return "-"
    return f"{gbps:,.0f} Gbit/s" if gbps < 10_000 else f"{gbps / 1000:,.1f} Tbit/s"


def _open_zfs(config: Environment) -> str:
    home = config.storage.openzfs
    if home is None:
        return "on Lustre"
    if home.deployment == "existing":
        return f"{home.id} (existing) at {home.mount_path}"
    return f"{home.capacity_gib:,} GiB OpenZFS, {home.throughput_mbps:,} MB/s at {home.mount_path}"


def _accounting(config: Environment) -> str:
    database = config.storage.accounting_database
    if database is None:
        return "on the controller's disk"
    if database.kind == "existing":
        return database.endpoint
    return f"RDS for MySQL, db.{database.instance_class}{', two zones' if database.multi_az else ''}"


def _warnings(warnings: list[Finding]) -> str:
    accepted = sum(bool(warning.acknowledged) for warning in warnings)
    opened = len(warnings) - accepted
    text = f"{opened} open" if opened else "none open"
    return f"{text}, {accepted} acknowledged" if accepted else text

"""What an environment is made of, computed from the file and the catalogue only.

Each subject has a module of its own; this one makes one plan of them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, cast

from ultracluster.config import Finding
from ultracluster.config.orchestrator import OrchestratorKind, ParallelCluster
from ultracluster.model import Cluster
from ultracluster.model.orchestrators import Traits
from ultracluster.model.quota_needs import needs
from ultracluster.plan.boot import BootPlan, boot_lines, boot_plans, step_lines
from ultracluster.plan.communication import Communication, Step, communication
from ultracluster.plan.cost_summary import CostPlan, cost_plan
from ultracluster.plan.groups import GroupPlan, bandwidth, group_notes, group_plan
from ultracluster.plan.network import (
    AddressPlan,
    AddressRow,
    EndpointPlan,
    ZonePlan,
    address_plan,
    endpoint_plans,
    perimeter_words,
    zone_plans,
)
from ultracluster.plan.observability import (
    GroupSeries,
    ObservabilityPlan,
    observability_lines,
    observability_plan,
)
from ultracluster.plan.price_file import PriceFile
from ultracluster.plan.resilience import CheckpointMemory, ResiliencePlan, resilience_lines, resilience_plan
from ultracluster.plan.slurm import SlurmPlan, slurm_lines, slurm_plan
from ultracluster.plan.storage import (
    FileSystemPlan,
    JobBucketPlan,
    RepositoryPlan,
    accounting_place,
    further_lustre_plans,
    home_plan,
    job_bucket_plans,
    lustre_plan,
    repository_plans,
)
from ultracluster.plan.training_model import ModelPlan, model_plan, parameters, size_text

__all__ = [
    "NOT_IN_DOCUMENT",
    "AddressPlan",
    "AddressRow",
    "BootPlan",
    "CheckpointMemory",
    "CostPlan",
    "EndpointPlan",
    "FileSystemPlan",
    "GroupPlan",
    "GroupSeries",
    "ModelPlan",
    "ObservabilityPlan",
    "Plan",
    "QuotaPlan",
    "RepositoryPlan",
    "ResiliencePlan",
    "SlurmPlan",
    "WarningPlan",
    "ZonePlan",
    "bandwidth",
    "boot_lines",
    "group_notes",
    "observability_lines",
    "parameters",
    "plan",
    "resilience_lines",
    "size_text",
    "slurm_lines",
    "step_lines",
]

NOT_IN_DOCUMENT = ("asked_as", "traits")
"""A path of this machine, and facts of the orchestrator, not of the environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaPlan:
    """A service quota of which the environment takes something."""

    service: str
    name: str
    code: str
    amount: float
    unit: str
    why: str
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningPlan:
    """A rule that warns."""

    code: str
    path: str
    message: str
    acknowledged: str
    """The reason given for accepting it; empty while it is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An environment in figures."""

    name: str
    asked_as: str
    """What a command calls it: its name or the path of its file."""
    orchestrator: OrchestratorKind
    traits: Traits
    cluster_name: str
    account: str
    """Empty: that of the credentials."""
    region: str
    zone_id: str
    groups: tuple[GroupPlan, ...]
    lustre: FileSystemPlan | None
    further_lustre: tuple[FileSystemPlan, ...]
    """Beside the first."""
    repositories: tuple[RepositoryPlan, ...]
    job_buckets: tuple[JobBucketPlan, ...]
    """What users' jobs reach in S3 by a role of their own."""
    home: FileSystemPlan | None
    accounting: str
    """Where Slurm's accounting is kept; empty without Slurm."""
    slurm: SlurmPlan | None
    """What slurm.conf says; None without Slurm."""
    egress: str
    """`nat` or `closed`."""
    makes_vpc: bool
    endpoints: tuple[EndpointPlan, ...]
    perimeter: str
    """Whose resources pass the endpoints; empty where none is made."""
    addresses: AddressPlan
    further_zones: tuple[ZonePlan, ...]
    """Other zones in which groups are."""
    quotas: tuple[QuotaPlan, ...]
    model: ModelPlan | None
    communication: Communication | None
    """Estimate of what a training step sends; None without a parallel layout."""
    resilience: ResiliencePlan | None
    """What becomes of jobs when processes or nodes fail; None where HyperPod runs nothing for it."""
    observability: ObservabilityPlan | None
    """What is collected of the cluster, and how much; None where nothing watches it."""
    cost: CostPlan
    software: str
    first_boot: tuple[BootPlan, ...]
    protect: bool
    stacks: tuple[str, ...]
    stacks_of_aws: tuple[str, ...]
    """Stacks of a deploy whose templates are not ours, with roles of their own."""
    warnings: tuple[WarningPlan, ...]

    @property
    def accelerators(self) -> int:
        """Accelerators of all groups."""
        return sum(group.accelerators for group in self.groups)

    @property
    def open_warnings(self) -> tuple[WarningPlan, ...]:
        """Those without a reason for accepting them."""
        return tuple(warning for warning in self.warnings if not warning.acknowledged)

    def document(self) -> dict[str, Any]:
        """The plan as JSON has it; the units are those of the fields."""
        plain = _plain(self)
        return {name: value for name, value in plain.items() if name not in NOT_IN_DOCUMENT}


def plan(
    cluster: Cluster,
    model: float | None = None,
    today: dt.date | None = None,
    *,
    warnings: Sequence[Finding] = (),
    prices: PriceFile | None = None,
    step: Step | None = None,
) -> Plan:
    """The plan of an environment that passed its rules.

    Args:
        model: parameters of a model whose checkpoint is to be timed.
        today: which prices hold; the current day by default.
        warnings: what `ultracluster.rules.enforce` returned.
        prices: those that a team keeps next to the file; they win over the shipped ones.
        step: a step of training whose communication is to be estimated.

    Raises:
        ValueError: the layout does not fit the group with the most accelerators.
    """
    environment, groups = cluster.environment, tuple(map(group_plan, cluster.groups.values()))
    network = environment.network
    return Plan(
        name=environment.name,
        asked_as=environment.asked_as,
        orchestrator=cluster.traits.kind,
        traits=cluster.traits,
        cluster_name=environment.cluster_name,
        account=environment.account or "",
        region=environment.region,
        zone_id=network.zone_id,
        groups=groups,
        lustre=lustre_plan(cluster),
        further_lustre=further_lustre_plans(cluster),
        repositories=repository_plans(cluster),
        job_buckets=job_bucket_plans(cluster),
        home=home_plan(cluster),
        accounting=accounting_place(cluster),
        slurm=slurm_plan(cluster),
        egress=network.egress,
        makes_vpc=network.vpc is None,
        endpoints=endpoint_plans(cluster),
        perimeter=perimeter_words(cluster),
        addresses=address_plan(cluster),
        further_zones=zone_plans(cluster),
        quotas=tuple(
            QuotaPlan(
                service=need.quota.service,
                name=need.quota.name,
                code=need.quota.code,
                amount=need.amount,
                unit=need.unit,
                why=need.why,
                scope=need.scope,
            )
            for need in needs(cluster)
        ),
        model=None if model is None else model_plan(cluster, model, groups),
        communication=(
            None if step is None else communication(max(groups, key=lambda group: group.accelerators), step)
        ),
        resilience=resilience_plan(cluster),
        observability=observability_plan(cluster),
        cost=cost_plan(cluster, today, prices),
        software=environment.software.release,
        first_boot=boot_plans(cluster),
        protect=environment.protect,
        stacks=environment.stack_names,
        stacks_of_aws=_stacks_of_aws(cluster),
        warnings=tuple(
            WarningPlan(
                code=warning.code,
                path=warning.dotted,
                message=warning.message,
                acknowledged=warning.acknowledged or "",
            )
            for warning in warnings
        ),
    )


def _plain(value: Any) -> Any:
    """Data classes with their properties as dictionaries."""
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
        names += [name for name, member in vars(type(value)).items() if isinstance(member, property)]
        names = [name for name in names if not name.startswith("_")]
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple | list):
        return [_plain(one) for one in cast("Sequence[Any]", value)]
    return value


def _stacks_of_aws(cluster: Cluster) -> tuple[str, ...]:
    """docs/parallelcluster.md has their templates and rights."""
    settings = cluster.settings
    if not isinstance(settings, ParallelCluster):
        return ()
    own = f"{cluster.cluster_name} (ParallelCluster's own)"
    if settings.deploy_with != "cloudformation":
        return (own,)
    inside = cluster.environment.stack_name("cluster")
    return (f"ParallelCluster's provider, nested in {inside}", "its policies, nested in the provider", own)

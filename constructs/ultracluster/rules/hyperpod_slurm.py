"""Rules on: HyperPod with Slurm. The cluster: configuration and lifecycle."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.config import Environment
from ultracluster.rules.engine import Breach
from ultracluster.rules.hyperpod import CONTINUOUS
from ultracluster.rules.hyperpod_slurm_groups import RULES, asked

__all__ = ["RULES"]

STRATEGY = "SageMaker Developer Guide, Migrating to API-driven Slurm configuration"
LIFECYCLE = "SageMaker Developer Guide, Customize SageMaker HyperPod clusters with lifecycle scripts"


@RULES.rule(60, "error", "Continuous provisioning has no slurm_config_strategy", source=CONTINUOUS)
def strategy_with_continuous(environment: Environment) -> Iterator[Breach]:
    orchestrator = asked(environment)
    strategy = orchestrator.slurm_config_strategy
    if orchestrator.provisioning == "continuous" and strategy:
        yield Breach(
            ("orchestrator", "slurm_config_strategy"),
            f"`{strategy}` with continuous provisioning: HyperPod refuses any strategy there, "
            "because it always merges.",
            "remove slurm_config_strategy",
        )


@RULES.rule(61, "error", "Classic provisioning has a slurm_config_strategy", source=STRATEGY)
def strategy_with_classic(environment: Environment) -> Iterator[Breach]:
    orchestrator = asked(environment)
    if orchestrator.provisioning == "classic" and not orchestrator.slurm_config_strategy:
        yield Breach(
            ("orchestrator", "slurm_config_strategy"),
            "without a strategy HyperPod takes a default on which AWS's own pages disagree "
            "(managed, merge); managed rolls updates back when a partition was edited by hand.",
            "slurm_config_strategy: merge, which keeps hand edits and leaves the way to "
            "continuous provisioning open",
        )


@RULES.rule(
    62,
    "error",
    "An accounting database goes with continuous provisioning",
    source="SageMaker API reference, ClusterOrchestratorSlurmConfig (AccountingDatabase)",
)
def accounting_is_continuous(environment: Environment) -> Iterator[Breach]:
    database = environment.storage.accounting_database
    if database and asked(environment).provisioning == "classic":
        yield Breach(
            ("storage", "accounting_database"),
            f"an accounting database ({database.kind}) with classic provisioning: HyperPod takes "
            "one with continuous provisioning only.",
            "orchestrator.provisioning: continuous, or remove accounting_database",
        )


@RULES.rule(
    63,
    "warning",
    "A cluster name is used once with one accounting database",
    source="aws-samples/sample-physical-ai-scaffolding-kit#17",
    by_hand="sacctmgr list cluster",
)
def name_used_once(environment: Environment) -> Iterator[Breach]:
    database = environment.storage.accounting_database
    if database and database.kind == "existing":
        name = environment.cluster_name
        yield Breach(
            ("storage", "accounting_database"),
            f"if a cluster `{name}` has written to {database.endpoint} before, Slurm's controller "
            "ends again and again with a cluster id mismatch: each creation has a new id.",
            f"orchestrator.cluster_name: {name}-2 when it was there before; else acknowledge this",
        )


@RULES.rule(
    64,
    "warning",
    "Lifecycle scripts run after the image's own set-up",
    source=f"{LIFECYCLE}; CloudFormation, AWS::SageMaker::Cluster LifeCycleConfig",
)
def lifecycle_on_create(environment: Environment) -> Iterator[Breach]:
    storage = environment.storage
    if asked(environment).lifecycle == "on-create":
        mounts = " and no file system mounted" if storage.lustre or storage.openzfs else ""
        yield Breach(
            ("orchestrator", "lifecycle"),
            "`on-create` runs our scripts instead of the image's set-up: Slurm is not configured "
            f"or started{mounts} unless the scripts do it. One page of AWS says that topology and "
            "mounts are still done: unproven.",
            "on-init-complete",
        )


"""What the image has there; a mount on it, or within it, would hide that."""

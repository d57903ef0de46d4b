"""Rules on HyperPod with Slurm: configuration and lifecycle of the cluster."""

from __future__ import annotations

from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.config.remedy import DROP, anywhere, ask, drop, write
from ultracluster.config.storage import ExistingDatabase, RdsMySql, Storage
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.hyperpod.groups import CONTINUOUS, continuous
from ultracluster.rules.sets import HPS
from ultracluster.rules.sources import BOTOCORE

Database = RdsMySql | ExistingDatabase
STRATEGY = "SageMaker Developer Guide, Migrating to API-driven Slurm configuration"
LIFECYCLE = "SageMaker Developer Guide, Customize SageMaker HyperPod clusters with lifecycle scripts"


@HPS.error(60, CONTINUOUS)
def strategy_with_continuous(hyperpod: HyperPodSlurm) -> Breaches:
    """`slurm_config_strategy` is not set with continuous provisioning."""
    strategy = hyperpod.slurm_config_strategy
    if hyperpod.provisioning == "continuous" and strategy:
        yield at("slurm_config_strategy").breach(
            f"`{strategy}` with continuous provisioning: HyperPod refuses any strategy there, "
            "because it always merges there.",
            drop(),
        )


@HPS.error(61, STRATEGY)
def strategy_with_classic(hyperpod: HyperPodSlurm) -> Breaches:
    """`slurm_config_strategy` is set with classic provisioning."""
    if hyperpod.provisioning == "classic" and not hyperpod.slurm_config_strategy:
        yield at("slurm_config_strategy").breach(
            "without a strategy HyperPod takes a default on which AWS's own pages disagree "
            "(managed, merge); managed rolls updates back when a partition was edited by hand.",
            write("merge").noting("it keeps hand edits and leaves the way to continuous provisioning open"),
        )


@HPS.error(62, "SageMaker API reference, ClusterOrchestratorSlurmConfig (AccountingDatabase)")
def accounting_is_continuous(database: Database, hyperpod: HyperPodSlurm) -> Breaches:
    """An accounting database is only used with continuous provisioning."""
    if hyperpod.provisioning == "classic":
        yield at().breach(
            f"an accounting database ({database.kind}) with classic provisioning: HyperPod only "
            "accepts one with continuous provisioning.",
            continuous(hyperpod) | drop(),
        )


@HPS.warning(
    63,
    "aws-samples/sample-physical-ai-scaffolding-kit#17",
    by_hand="sacctmgr list cluster",
)
def database_of_one_cluster(database: ExistingDatabase, cluster: Cluster) -> Breaches:
    """No two clusters of one name use the same accounting database."""
    name = cluster.environment.cluster_name
    yield at().breach(
        f"if a cluster `{name}` has written to {database.endpoint} before, Slurm's controller "
        "fails again and again with a cluster id mismatch: each new cluster has a new id.",
        ask(
            "action",
            f"set orchestrator.cluster_name: {name}-2 if that name was used before; else acknowledge this",
        ),
    )


@HPS.error(64, f"{LIFECYCLE}; CloudFormation, AWS::SageMaker::Cluster LifeCycleConfig", "2026-11-22")
def lifecycle_on_create(hyperpod: HyperPodSlurm, storage: Storage) -> Breaches:
    """Lifecycle scripts run after the set-up by the image."""
    if hyperpod.lifecycle == "on-create":
        mounts = "mount the file systems, " if storage.lustre or storage.openzfs else ""
        yield at("lifecycle").breach(
            f"`on-create` runs our scripts instead of the image's set-up. They {mounts}move containers to "
            f"large disks, start munge and Slurm, and leave out the rest: {', '.join(LACKING)}. One page "
            "of AWS says that topology and mounts are still set up; this is unproven.",
            write("on-init-complete"),
        )


LACKING = (
    "slurmdbd with its database, and so accounts and limits of teams",
    "ssh keys between nodes",
    "pam_slurm_adopt",
    "SSSD",
    "prolog and epilog with DCGM's map of jobs",
    "log rotation",
)
"""What the image's own set-up does and our scripts for `on-create` do not (awslabs/awsome-distributed-ai,
5.sagemaker-hyperpod, LifecycleScripts/base-config)."""


@HPS.warning(
    69,
    f'{CONTINUOUS} with Slurm ("the default for new clusters"); {BOTOCORE}, '
    "ClusterNodeProvisioningMode (Continuous only)",
    "2026-11-22",
    by_hand="aws sagemaker describe-cluster --cluster-name <cluster> --query NodeProvisioningMode",
)
def classic_provisioning(hyperpod: HyperPodSlurm) -> Breaches:
    """Only existing clusters use classic provisioning."""
    if hyperpod.provisioning == "classic":
        yield at("provisioning").breach(
            "the API has no value for `classic`, so the mode is left out, and AWS says that a new cluster is "
            "then provisioned continuously: HyperPod would refuse slurm_config_strategy.",
            continuous(hyperpod).noting("or acknowledge this for a cluster that was created with it"),
        )


@HPS.error(
    67,
    f"{LIFECYCLE}; SageMaker API reference, ClusterOrchestratorSlurmConfig (AccountingDatabase)",
    "2026-11-22",
)
def accounting_needs_image_setup(hyperpod: HyperPodSlurm, storage: Storage) -> Breaches:
    """The image sets up the accounting database."""
    if storage.accounting_database and hyperpod.lifecycle == "on-create":
        yield at("lifecycle").breach(
            "with `on-create` slurmdbd.conf is not written: slurmdbd never starts, and the accounting "
            "database stays empty.",
            write("on-init-complete") | anywhere({("storage", "accounting_database"): DROP}),
        )


@HPS.warning(
    68,
    "SageMaker Developer Guide: Using an external accounting database with SageMaker HyperPod Slurm clusters",
    "2026-11-22",
    by_hand="aws sagemaker describe-cluster --cluster-name <cluster> --query "
    "'InstanceGroups[].[InstanceGroupName,CurrentImageReleaseVersion]'",
)
def accounting_is_permanent(_: Database) -> Breaches:
    """An accounting database requires a new image and cannot be removed later."""
    yield at().breach(
        "the cluster requires an image of HyperPod made after 2026-08-30, and keeps this database: going "
        "back to the one on the controller is reported not to work.",
        ask(
            "action",
            "acknowledge this for a new cluster, which gets the newest image; for an existing one check "
            "its image first",
        ),
    )


@HPS.warning(
    70,
    "SageMaker Developer Guide: IAM role for SageMaker HyperPod (one for each instance group)",
    "2026-11-22",
)
def database_password_per_role(hyperpod: HyperPodSlurm, storage: Storage) -> Breaches:
    """One IAM role for all nodes lets every node read the accounting database's password."""
    if storage.accounting_database and hyperpod.node_roles == "one":
        yield at("node_roles").breach(
            "with one role for all nodes whoever gets the credentials of any node reads the password with "
            "which slurmdbd writes all jobs, accounts and limits.",
            write("each").noting("or acknowledge this for a cluster that was made so and must stay"),
        )

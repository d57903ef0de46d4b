"""What the lifecycle scripts must know of their cluster: the static part of `cluster.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ultracluster.catalog.node_facts import type_facts
from ultracluster.config import Environment
from ultracluster.config.environment import Access
from ultracluster.config.lustre import LustreFacts
from ultracluster.config.orchestrator import ParallelCluster, Pcs
from ultracluster.config.session_user import IMAGE_USERS
from ultracluster.model import mounts
from ultracluster.model.cluster import Cluster, Group
from ultracluster.model.directory import told_directory, told_ssh
from ultracluster.model.health import health_settings
from ultracluster.model.job_access import job_access_roles
from ultracluster.model.mig import gpu_layouts, node_layouts
from ultracluster.model.mounts import LustreMount
from ultracluster.model.observability import metrics_settings
from ultracluster.model.own_steps import steps_of_group
from ultracluster.model.slurm_topology import head_writes_topology
from ultracluster.software.environment_lock import environment_lock

HYPERPOD_DATA_VOLUME = "/opt/sagemaker"
"""Where HyperPod mounts the second volume of a node (SageMaker API reference, ClusterEbsVolumeConfig)."""
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]")
"""What is no token: in an app the Region may be known only at deploy."""
_PARALLELCLUSTER_OWN_MINUTES = 5
"""Of ParallelCluster's bootstrap timeout, for what it does itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptConfigurations:
    """What the lifecycle scripts read as `cluster.json`, before anything is deployed."""

    by_group: Mapping[str, Mapping[str, object]]
    """What the nodes of a group read, by group."""
    of_all: Mapping[str, object] = field(default_factory=dict[str, object])
    """What the proofs that people run read: all groups in full."""

    @property
    def release(self) -> object:
        """The release that the nodes are brought to; None where no group names one."""
        return next((one["release"] for one in self.by_group.values() if "release" in one), None)


def script_configurations(
    cluster: Cluster,
    *,
    locked: Mapping[str, object] | None = None,
    slurm: Mapping[str, object] | None = None,
) -> ScriptConfigurations:
    """Those of a cluster.

    Args:
        cluster: what the environment comes to.
        locked: as `script_configuration` takes it.
        slurm: settings of slurm.conf, for controllers that the service runs.
    """
    return ScriptConfigurations(
        by_group={
            name: script_configuration(cluster, name, locked=locked)
            | ({"slurm": dict(slurm)} if slurm and group.role == "controller" else {})
            for name, group in cluster.groups.items()
        },
        of_all=script_configuration(cluster, locked=locked),
    )


def script_configuration(
    cluster: Cluster, *groups: str, locked: Mapping[str, object] | None = None
) -> dict[str, object]:
    """The part of `cluster.json` that is known at synth; mounts are added when they are deployed.

    Nodes of a group get the group itself and, of others, the controllers: what they need to find them. So a
    change of another group is no change of theirs.

    Args:
        cluster: what the environment comes to.
        groups: the groups whose nodes read it; all, with all their facts, by default.
        locked: digests and key fingerprints that complete the release's lock: `files` and `keys`; by default
            those of the environment's own lock.
    """
    config = cluster.environment
    mounted = _mounted(cluster, groups)
    told: dict[str, object] = {
        "schema": 1,
        "environment": config.name,
        "cluster": config.cluster_name,
        "orchestrator": cluster.traits.kind,
        "release": config.software.release,
        "mirror": config.software.mirror,
        # optional parts of the release that this environment asks for
        "components": ["nvidia-fs"] if any(one.gds for one in mounted) else [],
        # PCS images have several Slurm releases side by side
        "slurm_version": config.orchestrator.slurm_version if isinstance(config.orchestrator, Pcs) else None,
        "budget_minutes": _budget_minutes(cluster),
        "node_groups": {
            name: _group(cluster, group) if not groups or name in groups else {"role": group.role}
            for name, group in cluster.groups.items()
            if not groups or name in groups or group.role == "controller"
        },
    }
    if config.session_user not in IMAGE_USERS:
        told["session_user"] = config.session_user
    if config.software.strict:
        told["strict"] = True
    if cluster.traits.slurm:
        told["metadata"] = _metadata(config.access)
        if found := health_settings(cluster):
            told["health"] = found
    # nodes without a controller among them do not change with it
    if head_writes_topology(cluster) and any(cluster.groups[name].role == "controller" for name in groups):
        told["topology"] = "tree"
    pulls = cluster.traits.slurm and cluster.runs_scripts and _REGION.fullmatch(cluster.region)
    if job_access_roles(cluster) or pulls or "topology" in told:
        told["region"] = cluster.region
    if directory := told_directory(cluster):
        told["directory"] = directory
    if ssh := told_ssh(cluster):
        told["job_ssh"] = ssh
    if metrics := metrics_settings(cluster, *groups):
        told["metrics"] = metrics
    if kept := _locked(config) if locked is None else locked:
        told["locked"] = dict(kept)
    if cluster.traits.kubernetes and mounted:
        # Pods mount, through the CSI driver. The name of the file system is not known yet and not needed;
        # that there is one, and how it is reached, is. Of several, one with EFA: nodes prepare for it.
        told["mounts"] = mounts.told(
            LustreMount(
                path=max(mounted, key=lambda one: one.efa).mount_path,
                dns_name="csi.invalid",
                mount_name="csi",
                efa=any(one.efa for one in mounted),
            )
        )
    return told


def _mounted(cluster: Cluster, groups: Sequence[str]) -> list[LustreFacts]:
    """The Lustre file systems of some groups; of all, without any."""
    return [
        lustre
        for lustre in cluster.lustres.values()
        if not groups or any(lustre.mounted_by(name) for name in groups)
    ]


def _locked(config: Environment) -> Mapping[str, object] | None:
    lock = environment_lock(config.file)
    if lock is None or lock.faults(config.name, config.software.release) or not (lock.files or lock.keys):
        return None
    return lock.for_nodes()


def _group(cluster: Cluster, group: Group) -> dict[str, object]:
    return {
        "role": group.role,
        "instance_type": group.settings.instance_type,
        **(type_facts(group.type) if group.type else {}),
        **_lustre_efa(cluster, group),
        **_gpudirect_storage(cluster, group),
        **(
            {"lustre": list(cluster.lustres_of(group.name))}
            if cluster.mounts_differ and not cluster.traits.kubernetes
            else {}
        ),
        "data_volume": HYPERPOD_DATA_VOLUME if cluster.traits.hyperpod else None,
        **({"job_access": True} if group.role in job_access_roles(cluster) else {}),
        **_own_steps(cluster, group),
        **_mig(group),
    }


def _mig(group: Group) -> dict[str, object]:
    """Layouts of the GPUs where our step cuts them; on Kubernetes the MIG manager does."""
    if not (group.settings.mig_key and group.type and group.traits.slurm_by_group):
        return {}
    return {"mig": node_layouts(gpu_layouts(group.settings, group.type), group.type)}


def _metadata(access: Access) -> dict[str, object]:
    users = {"users": list(access.metadata_users)} if access.metadata_users else {}
    return {"for": access.node_metadata, **users}


def _own_steps(cluster: Cluster, group: Group) -> dict[str, object]:
    steps = [step.for_node() for step in steps_of_group(cluster.environment, group.name)]
    return {"steps": steps} if steps else {}


def _lustre_efa(cluster: Cluster, group: Group) -> dict[str, object]:
    """The EFA interfaces that Lustre's client keeps, where a file system allows fewer than the type binds."""
    usual = group.type and group.type.lustre_efa_interfaces
    most = cluster.lustre_efa_interfaces(group.name)
    return {"lustre_efa_interfaces": most, "lustre_efa_limited": True} if most != usual else {}


def _gpudirect_storage(cluster: Cluster, group: Group) -> dict[str, object]:
    """Whether nodes get nvidia-fs: where the environment asks for it and FSx supports the type."""
    if not any(one.gds for one in cluster.lustres_of(group.name).values()):
        return {"gds": False}
    kind = group.type
    return {} if kind is None or kind.lustre_gds_client is None else {"gds": kind.lustre_gds_client}


def _budget_minutes(cluster: Cluster) -> int | None:
    """How long the scripts may run; None where nothing ends a node that takes its time (HyperPod)."""
    if isinstance(cluster.settings, ParallelCluster):
        return cluster.settings.bootstrap_timeout_minutes - _PARALLELCLUSTER_OWN_MINUTES
    return cluster.traits.joining_minutes

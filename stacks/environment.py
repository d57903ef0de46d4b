"""All stacks of one environment, and which of them waits for which.

Cut by what is tried again together, and by what is slow. CloudFormation waits for whole stacks: what a slow
resource does not need is never in a stack that it waits for.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import Annotations, Stack, Tags
from constructs import Construct

from ultracluster.clusters.composition.buckets import existing_buckets
from ultracluster.clusters.composition.keys import encrypt_logs
from ultracluster.clusters.composition.network import existing_network
from ultracluster.clusters.composition.parts import NetworkParts, ObservabilityParts, StorageParts
from ultracluster.clusters.composition.storage import existing_file_systems
from ultracluster.config import Environment
from ultracluster.config.environment import ENVIRONMENT_TAG, STACK_PARTS, StackPart
from ultracluster.model import Cluster, resolve
from ultracluster.model.stack_guards import GUARDED_PARTS
from ultracluster.model.unlocked_images import unlocked_images
from ultracluster.security.governance import govern, prepare
from ultracluster.software.locked_images import waits_for_first_deploy, with_locked_images
from ultracluster.stacks.buckets import BucketStack
from ultracluster.stacks.cluster import ClusterStack
from ultracluster.stacks.egress import EgressStack
from ultracluster.stacks.foundation import FoundationStack
from ultracluster.stacks.network import NetworkStack
from ultracluster.stacks.protection import ProtectionStack
from ultracluster.stacks.repositories import RepositoryStack
from ultracluster.stacks.storage import StorageStack

WAITS_FOR: dict[StackPart, tuple[StackPart, ...]] = {
    "foundation": (),
    "observability": ("foundation",),
    "network": (),
    "egress": ("foundation", "network"),
    "buckets": ("foundation",),
    "storage": ("foundation", "network"),
    "repositories": ("buckets", "storage"),
    "control-plane": ("foundation", "network"),
    "system": ("foundation", "observability", "network", "egress", "control-plane"),
    "cluster": ("foundation", "observability", "network", "egress", "buckets", "storage"),
    "workloads": ("observability", "egress", "storage", "control-plane", "system"),
    "protection": ("foundation", "observability", "buckets", "storage", "control-plane"),
    "alarms": ("foundation", "observability", "storage"),
}
"""What must be there before a stack, by the last part of its name. All are named, not only the last of
several in a row: a stack that does not exist passes nothing on."""


def build(scope: Construct, environment: Environment) -> list[Stack]:
    """Add the stacks of an environment to an app, in the order in which they are deployed.

    What exists as a whole has no stack. Nodes boot the images of the environment's lock. The environment is
    resolved here, once; stacks read the cluster.
    """
    environment = with_locked_images(environment)
    cluster = resolve(environment)
    env = cdk.Environment(account=environment.account, region=environment.region)
    stacks: dict[StackPart, Stack] = {}
    prepare(scope, environment.governance)
    key_arn = environment.storage.key.arn if environment.storage.key else ""
    if environment.makes_foundation:
        stacks["foundation"] = foundation = FoundationStack(scope, cluster, env=env)
        key_arn = foundation.key_arn
    observability = None
    if environment.observability:
        # loaded when it is needed: it brings CDK modules that the others do not need
        from ultracluster.stacks.observability import ObservabilityStack

        watching = ObservabilityStack(scope, cluster, env=env, key_arn=key_arn)
        stacks["observability"], observability = watching, watching.parts
    if environment.makes_network:
        stacks["network"] = network_stack = NetworkStack(scope, cluster, env=env)
        network = network_stack.parts
    else:
        network = existing_network(cluster)
    if environment.makes_egress:
        stacks["egress"] = EgressStack(scope, cluster, env=env, network=network, key_arn=key_arn)
    storage = _add_storage(scope, cluster, stacks, env=env, network=network, key_arn=key_arn)
    if cluster.traits.kubernetes:
        # loaded when it is needed: these bring CDK modules that the others do not need
        from ultracluster.stacks.control_plane import ControlPlaneStack
        from ultracluster.stacks.system import SystemStack

        stacks["control-plane"] = ControlPlaneStack(scope, cluster, env=env, network=network, key_arn=key_arn)
        stacks["system"] = SystemStack(
            scope, cluster, env=env, network=network, key_arn=key_arn, observability=observability
        )
    if environment.makes_protection:
        stacks["protection"] = ProtectionStack(
            scope,
            cluster,
            env=env,
            key_arn=key_arn,
            database_id=storage.file_systems.database_id,
            guarded=[stack.stack_name for part, stack in stacks.items() if part in GUARDED_PARTS],
        )
    _add_cluster(
        scope,
        cluster,
        stacks,
        env=env,
        network=network,
        storage=storage,
        key_arn=key_arn,
        observability=observability,
    )
    if waits_for_first_deploy(environment):
        _note_unlocked(stacks["cluster"], cluster)
    _order(cluster, stacks)
    for stack in stacks.values():
        _mark(stack, environment)
    return [stacks[part] for part in STACK_PARTS if part in stacks]


def _mark(stack: Stack, environment: Environment) -> None:
    """Add what all stacks of an environment have: tags, governance, the key of logs."""
    Tags.of(stack).add(ENVIRONMENT_TAG, environment.name)
    for name, value in environment.tags.items():
        Tags.of(stack).add(name, value)
    govern(stack, environment.governance)
    encrypt_logs(stack, environment)


def _add_storage(
    scope: Construct,
    cluster: Cluster,
    stacks: dict[StackPart, Stack],
    *,
    env: cdk.Environment,
    network: NetworkParts,
    key_arn: str,
) -> StorageParts:
    """Add buckets, file systems and their associations with S3, as far as the environment makes them."""
    environment = cluster.environment
    if environment.makes_buckets:
        stacks["buckets"] = bucket_stack = BucketStack(scope, cluster, env=env, key_arn=key_arn)
        buckets = bucket_stack.parts
    else:
        buckets = existing_buckets(environment.storage)
    if environment.makes_storage:
        stacks["storage"] = storage_stack = StorageStack(
            scope, cluster, env=env, network=network, key_arn=key_arn
        )
        file_systems = storage_stack.parts
    else:
        file_systems = existing_file_systems(environment.storage)
    storage = StorageParts(buckets=buckets, file_systems=file_systems)
    if environment.all_data_repositories:
        stacks["repositories"] = RepositoryStack(scope, cluster, env=env, storage=storage)
    return storage


def _add_cluster(
    scope: Construct,
    cluster: Cluster,
    stacks: dict[StackPart, Stack],
    *,
    env: cdk.Environment,
    network: NetworkParts,
    storage: StorageParts,
    key_arn: str,
    observability: ObservabilityParts | None,
) -> None:
    """Add the cluster, and what is there after it: volumes for jobs, alarms."""
    stacks["cluster"] = ClusterStack(
        scope,
        cluster,
        env=env,
        network=network,
        storage=storage,
        key_arn=key_arn,
        observability=observability,
    )
    if cluster.traits.kubernetes:
        from ultracluster.stacks.workloads import WorkloadStack

        stacks["workloads"] = WorkloadStack(
            scope, cluster, env=env, network=network, storage=storage, observability=observability
        )
    if observability:
        from ultracluster.stacks.alarms import AlarmStack

        stacks["alarms"] = AlarmStack(
            scope, cluster, env=env, storage=storage, observability=observability, key_arn=key_arn
        )


def _note_unlocked(stack: Stack, cluster: Cluster) -> None:
    """A note, not a warning: the first deploy of `ultracluster deploy` locks the images itself."""
    if unlocked := unlocked_images(cluster):
        Annotations.of(stack).add_info_v2(
            "ultracluster:unlocked-images",
            f"{', '.join(unlocked)} boot the newest image of the day: `ultracluster deploy` locks first, "
            f"`ultracluster software lock --for {cluster.environment.asked_as}` does it alone.",
        )


def _order(cluster: Cluster, stacks: dict[StackPart, Stack]) -> None:
    """Let each stack wait for what it needs; the CDK does not see it in the names of exports."""
    waits = dict(WAITS_FOR)
    if cluster.traits.kubernetes:
        # no node of these mounts anything: pods do
        waits["cluster"] = ("foundation", "observability", "network", "egress", "control-plane")
        # EKS takes one update at a time: the protection of the control plane is one, and comes last
        waits["protection"] = (*waits["protection"], "system", "cluster", "workloads")
    if cluster.traits.kubernetes and cluster.traits.hyperpod:
        waits["cluster"] = (*waits["cluster"], "buckets")
        waits["workloads"] = (*waits["workloads"], "cluster")
    if cluster.karpenter or getattr(cluster.settings, "create_nodes", "") == "after-system":
        waits["cluster"] = (*waits["cluster"], "system")
    for part, stack in stacks.items():
        for first in waits[part]:
            if first in stacks:
                stack.add_stack_dependency(stacks[first])

"""All stacks of one environment, and which of them waits for which.

Cut by what is tried again together, and by what is slow. CloudFormation waits for whole stacks: what a slow
resource does not need is never in a stack that it waits for.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import Stack, Tags
from constructs import Construct

from stacks.buckets import BucketStack, existing_buckets
from stacks.cluster import ClusterStack
from stacks.egress import EgressStack
from stacks.foundation import FoundationStack
from stacks.network import NetworkStack, existing_network
from stacks.parts import StorageParts
from stacks.protection import ProtectionStack
from stacks.repositories import RepositoryStack
from stacks.storage import StorageStack, existing_file_systems
from ultracluster.config import Environment
from ultracluster.config.orchestrator import KUBERNETES
from ultracluster.software.locked_images import with_locked_images

WAITS_FOR: dict[str, tuple[str, ...]] = {
    "foundation": (),
    "network": (),
    "egress": ("foundation", "network"),
    "buckets": ("foundation",),
    "storage": ("foundation", "network"),
    "repositories": ("buckets", "storage"),
    "control-plane": ("foundation", "network"),
    "protection": ("foundation", "storage", "control-plane"),
    "system": ("foundation", "network", "egress", "control-plane"),
    "cluster": ("foundation", "network", "egress", "buckets", "storage"),
    "workloads": ("egress", "storage", "control-plane", "system"),
}
"""What must be there before a stack, by the last part of its name. All are named, not only the last of
several in a row: a stack that is not made hands nothing on."""


def build(scope: Construct, config: Environment) -> list[Stack]:
    """Add the stacks of an environment to an app, in the order in which they are deployed.

    What exists as a whole has no stack. Nodes boot the images of the environment's lock.
    """
    config = with_locked_images(config)
    env = cdk.Environment(account=config.account, region=config.region)
    made: dict[str, Stack] = {}

    def called(part: str) -> str:
        return f"{config.name}-{part}"

    key_arn = config.storage.key.arn if config.storage.key else ""
    if config.makes_foundation:
        made["foundation"] = foundation = FoundationStack(scope, called("foundation"), config=config, env=env)
        key_arn = foundation.key_arn
    if config.makes_network:
        made["network"] = network_stack = NetworkStack(scope, called("network"), config=config, env=env)
        network = network_stack.parts
    else:
        network = existing_network(config)
    if config.makes_egress:
        made["egress"] = EgressStack(
            scope, called("egress"), config=config, env=env, network=network, key_arn=key_arn
        )
    if config.makes_buckets:
        made["buckets"] = bucket_stack = BucketStack(
            scope, called("buckets"), config=config, env=env, key_arn=key_arn
        )
        buckets = bucket_stack.parts
    else:
        buckets = existing_buckets(config)
    if config.makes_storage:
        made["storage"] = storage_stack = StorageStack(
            scope, called("storage"), config=config, env=env, network=network, key_arn=key_arn
        )
        file_systems = storage_stack.parts
    else:
        file_systems = existing_file_systems(config)
    if config.data_repositories:
        assert file_systems.lustre
        made["repositories"] = RepositoryStack(
            scope, called("repositories"), config=config, env=env,
            file_system_id=file_systems.lustre.file_system_id, data_bucket=buckets.data,
        )  # fmt: skip
    storage = StorageParts(
        key_arn=key_arn,
        scripts_bucket=buckets.scripts,
        upload_role_arn=buckets.upload_role_arn,
        lustre=file_systems.lustre,
        open_zfs=file_systems.open_zfs,
        accounting=file_systems.accounting,
    )
    kubernetes = config.orchestrator.kind in KUBERNETES
    if kubernetes:
        # loaded when it is asked for: these bring CDK modules that the others do not need
        from stacks.control_plane import ControlPlaneStack
        from stacks.system import SystemStack

        made["control-plane"] = ControlPlaneStack(
            scope, called("control-plane"), config=config, env=env, network=network, key_arn=key_arn
        )
        made["system"] = SystemStack(
            scope, called("system"), config=config, env=env, network=network, key_arn=key_arn
        )
    if config.protect and (kubernetes or config.makes_database):
        made["protection"] = ProtectionStack(
            scope,
            called("protection"),
            config=config,
            env=env,
            key_arn=key_arn,
            database_id=file_systems.database_id,
        )
    made["cluster"] = ClusterStack(
        scope, called("cluster"), config=config, env=env, network=network, storage=storage
    )
    if kubernetes:
        from stacks.workloads import WorkloadStack

        made["workloads"] = WorkloadStack(
            scope, called("workloads"), config=config, env=env, network=network, storage=storage
        )
    _order(config, made)
    for stack in made.values():
        Tags.of(stack).add("ultracluster:environment", config.name)
        for name, value in config.tags.items():
            Tags.of(stack).add(name, value)
    return [made[name.removeprefix(f"{config.name}-")] for name in config.stack_names]


def _order(config: Environment, made: dict[str, Stack]) -> None:
    """Let each stack wait for what it needs; the CDK does not see it in the names of exports."""
    waits = dict(WAITS_FOR)
    if config.orchestrator.kind in KUBERNETES:
        # no node of these mounts anything: pods do
        waits["cluster"] = ("foundation", "network", "egress", "control-plane")
    if config.orchestrator.kind == "hyperpod-eks":
        waits["cluster"] = (*waits["cluster"], "buckets")
        waits["workloads"] = (*waits["workloads"], "cluster")
    if getattr(config.orchestrator, "karpenter", None):
        waits["cluster"] = (*waits["cluster"], "system")
    for part, stack in made.items():
        for first in waits[part]:
            if first in made:
                stack.add_stack_dependency(made[first])

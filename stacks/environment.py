"""All stacks of one environment."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import Tags
from constructs import Construct

from stacks.cluster import ClusterStack
from stacks.network import NetworkStack, existing_network
from stacks.storage import StorageStack, existing_storage
from ultracluster.config import Environment
from ultracluster.config.orchestrator import KUBERNETES


def build(scope: Construct, config: Environment) -> list[cdk.Stack]:
    """Add the stacks of an environment to an app, in the order in which they are deployed.

    An environment whose network exists as a whole has no network stack; likewise its storage. A Kubernetes
    control plane waits for the network alone: it is made beside the file system.
    """
    env = cdk.Environment(account=config.account, region=config.region)
    stacks: list[cdk.Stack] = []
    if config.makes_network:
        network_stack = NetworkStack(scope, f"{config.name}-network", config=config, env=env)
        stacks.append(network_stack)
        network = network_stack.parts
    else:
        network = existing_network(config)
    if config.makes_storage:
        storage_stack = StorageStack(scope, f"{config.name}-storage", config=config, env=env, network=network)
        stacks.append(storage_stack)
        storage = storage_stack.parts
    else:
        storage = existing_storage(config)
    if config.orchestrator.kind in KUBERNETES:
        # loaded when it is asked for: it brings CDK modules that the others do not need
        from stacks.control_plane import SUFFIX, ControlPlaneStack

        stacks.append(
            ControlPlaneStack(scope, f"{config.name}-{SUFFIX}", config=config, env=env, network=network)
        )
    cluster_stack = ClusterStack(
        scope, f"{config.name}-cluster", config=config, env=env, network=network, storage=storage
    )
    for stack in stacks:
        if config.makes_network and stack is not stacks[0]:
            stack.add_stack_dependency(stacks[0])
        cluster_stack.add_stack_dependency(stack)
    stacks.append(cluster_stack)
    for stack in stacks:
        Tags.of(stack).add("ultracluster:environment", config.name)
        for name, value in config.tags.items():
            Tags.of(stack).add(name, value)
    return stacks

"""All stacks of one environment."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import Tags
from constructs import Construct

from stacks.cluster import ClusterStack
from stacks.network import NetworkStack, existing_network
from stacks.storage import StorageStack, existing_storage
from ultracluster.config import Environment


def build(scope: Construct, config: Environment) -> list[cdk.Stack]:
    """Add the stacks of an environment to an app, in the order in which they are deployed.

    An environment whose network exists as a whole has no network stack; likewise its storage.
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
    stacks.append(
        ClusterStack(
            scope, f"{config.name}-cluster", config=config, env=env, network=network, storage=storage
        )
    )
    for stack, after in zip(stacks[1:], stacks, strict=False):
        stack.add_stack_dependency(after)
    for stack in stacks:
        Tags.of(stack).add("ultracluster:environment", config.name)
        for name, value in config.tags.items():
            Tags.of(stack).add(name, value)
    return stacks

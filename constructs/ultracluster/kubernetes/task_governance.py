"""HyperPod's task governance: teams as compute quotas, priorities as the cluster's one scheduler policy.

Requests as the API writes them (SageMaker API reference, CreateComputeQuota, CreateClusterSchedulerConfig),
which are the properties of CloudFormation's types, too. A deploy makes what has a type in the Region, and a
script for the AWS CLI the rest.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from string import Template
from typing import Any

from ultracluster.catalog.hyperpod_eks import has_governance_type
from ultracluster.model import Cluster
from ultracluster.model.team_shares import PRIORITIES, Pool, limits, pools, quotas, total_amount

Properties = dict[str, Any]
QUOTA, POLICY = "AWS::SageMaker::ComputeQuota", "AWS::SageMaker::ClusterSchedulerConfig"

_SCRIPT = Template("""\
#!/usr/bin/env bash
# Task governance of $name: the cluster's policy, and the teams' quotas. Run it again after every change of
# `teams`; quotas of teams that were removed: aws sagemaker delete-compute-quota. CloudFormation is not known
# to have $lacks in $region, so that the template cannot make them.
set -euo pipefail
export AWS_REGION=$region
cluster=$$(aws sagemaker describe-cluster --cluster-name $cluster --query ClusterArn --output text)

# policy NAME CONFIGURATION: a cluster has one
policy() {
  local found id version
  found=$$(aws sagemaker list-cluster-scheduler-configs --cluster-arn "$$cluster" --output text \\
    --query 'ClusterSchedulerConfigSummaries[].[ClusterSchedulerConfigId,ClusterSchedulerConfigVersion]|[0]')
  read -r id version <<<"$$found"
  if [[ $$id == None ]]; then
    aws sagemaker create-cluster-scheduler-config --cluster-arn "$$cluster" \\
      --name "$$1" --scheduler-config "$$2"
  else
    aws sagemaker update-cluster-scheduler-config --cluster-scheduler-config-id "$$id" \\
      --target-version "$$version" --scheduler-config "$$2"
  fi
}

# quota TEAM CONFIGURATION TARGET
quota() {
  local -r team=$$1 options=(--compute-quota-config "$$2" --compute-quota-target "$$3")
  local found id version
  found=$$(aws sagemaker list-compute-quotas --cluster-arn "$$cluster" \\
    --name-contains "$$team" --output text \\
    --query "ComputeQuotaSummaries[?Name=='$$team'].[ComputeQuotaId,ComputeQuotaVersion]|[0]")
  read -r id version <<<"$$found"
  if [[ $$id == None ]]; then
    aws sagemaker create-compute-quota --cluster-arn "$$cluster" --name "$$team" --activation-state Enabled \\
      "$${options[@]}"
  else
    aws sagemaker update-compute-quota --compute-quota-id "$$id" --target-version "$$version" "$${options[@]}"
  fi
}

""")


def scheduler_config() -> Properties:
    """`SchedulerConfig` of the cluster: priorities, and fair shares of what is idle."""
    return {
        "PriorityClasses": [{"Name": name, "Weight": weight} for name, weight in PRIORITIES.items()],
        "FairShare": "Enabled",
        "IdleResourceSharing": "Enabled",
    }


def compute_quotas(cluster: Cluster) -> dict[str, Properties]:
    """For each team the request of CreateComputeQuota, without `ClusterArn`.

    Raises:
        ValueError: quotas that the cluster does not have, or a limit that cannot be told of one group.
    """
    pool_of = {pool.group: pool for pool in pools(cluster)}
    requests: dict[str, Properties] = {}
    for name, quota in quotas(cluster).items():
        team = cluster.environment.teams[name]
        sharing: Properties = {"Strategy": "LendAndBorrow"}
        limit = limits(cluster, team)
        if limit is not None:
            more = {group: limit.get(group, 0) - quota.get(group, 0) for group in pool_of}
            if total_amount(team.limit) <= total_amount(team.quota):
                sharing = {"Strategy": "Lend" if team.lend else "DontLend"}
            else:
                sharing["AbsoluteBorrowLimits"] = _resources(
                    pool_of, {group: max(0, amount) for group, amount in more.items()}
                )
        requests[name] = {
            "Name": name,
            "ComputeQuotaConfig": {
                "ComputeQuotaResources": _resources(pool_of, quota),
                "ResourceSharingConfig": sharing,
                "PreemptTeamTasks": "LowerPriority" if team.preempt_own else "Never",
            },
            "ComputeQuotaTarget": {"TeamName": name, "FairShareWeight": team.weight},
            "ActivationState": "Enabled",
        }
    return requests


def governance_resources(cluster: Cluster) -> dict[str, tuple[str, Properties]]:
    """Resources of task governance in the template: type, properties without `ClusterArn`, by construct id.

    Empty without teams, and where CloudFormation is not known to have the types.

    Raises:
        ValueError: as `compute_quotas`.
    """
    if not cluster.environment.teams:
        return {}
    resources: dict[str, tuple[str, Properties]] = {}
    if has_governance_type(POLICY, cluster.region):
        policy = {"Name": cluster.environment.name, "SchedulerConfig": scheduler_config()}
        resources["Policy"] = (POLICY, policy)
    if has_governance_type(QUOTA, cluster.region):
        for name, request in compute_quotas(cluster).items():
            resources[f"Quota-{name}"] = (QUOTA, request)
    return resources


def governance_script(cluster: Cluster) -> str:
    """A shell script that makes or updates with the AWS CLI what the template does not have; empty where it
    has all.

    Raises:
        ValueError: as `compute_quotas`.
    """
    in_template = {kind for kind, _ in governance_resources(cluster).values()}
    if in_template == {QUOTA, POLICY}:
        return ""
    head = _SCRIPT.substitute(
        name=cluster.environment.name,
        lacks=" and ".join(sorted({QUOTA, POLICY} - in_template)),
        region=shlex.quote(cluster.region),
        cluster=shlex.quote(cluster.environment.cluster_name),
    )
    lines: list[str] = []
    if POLICY not in in_template:
        lines.append(shlex.join(["policy", cluster.environment.name, json.dumps(scheduler_config())]))
    for name, request in compute_quotas(cluster).items() if QUOTA not in in_template else ():
        lines.append(
            shlex.join(
                [
                    "quota",
                    name,
                    json.dumps(request["ComputeQuotaConfig"]),
                    json.dumps(request["ComputeQuotaTarget"]),
                ]
            )
        )
    return head + "".join(f"{line}\n" for line in lines)


def _resources(pool_of: Mapping[str, Pool], amounts: Mapping[str, int]) -> list[Properties]:
    """Accelerators by instance type; groups of one type count together."""
    totals: dict[tuple[str, str], int] = {}
    for group, total in amounts.items():
        for resource, amount in pool_of[group].resources(total).items():
            key = (pool_of[group].instance_type.hyperpod_name, resource.removeprefix("nvidia.com/"))
            totals[key] = totals.get(key, 0) + amount
    return [
        {
            "InstanceType": instance_type,
            **(
                {"AcceleratorPartition": {"Type": resource, "Count": amount}}
                if resource.startswith("mig-")
                else {"Accelerators": amount}
            ),
        }
        for (instance_type, resource), amount in totals.items()
        if amount
    ]

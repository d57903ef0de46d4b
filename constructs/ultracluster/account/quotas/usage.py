"""How much of a quota is in use by everything but the environment itself, from what the account has.

An environment that is deployed already must not be counted twice: what bears its tag, and its own HyperPod
cluster, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal

from ultracluster.account.aws import Account, existing
from ultracluster.account.services import Marks, service_of
from ultracluster.catalog import instance_type
from ultracluster.catalog.quotas import Quota, ec2_quota, quota, quota_by_type
from ultracluster.config.capacity import TrainingPlan
from ultracluster.config.environment import ENVIRONMENT_TAG
from ultracluster.model import Cluster
from ultracluster.model.quota_needs import Need


class Usage:
    """Counts of one account and Region, each read once. Not for several threads at once."""

    def __init__(self, account: Account, cluster: Cluster) -> None:
        self._account = account
        self._cluster = cluster

    def of(self, need: Need) -> float | None:
        """Return what else is in use; None where no cheap call has it.

        Raises:
            botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError: it cannot be read.
        """
        if need.scope == "resource" or (need.scope == "cluster" and need.quota.service != "vpc"):
            return 0  # a limit of one thing that is ours
        if need.instance_type and need.quota == quota_by_type("reserved-capacity", need.instance_type):
            return self._reserved(need.instance_type)
        if need.quota.service == "sagemaker":
            return self._hyperpod(need)
        if need.quota.service == "ec2" and need.quota.unit == "vCPUs":
            return self._vcpus(need.quota)
        count = self._counts.get(need.quota)
        return count() if count else None

    @cached_property
    def _counts(self) -> dict[Quota, Callable[[], float]]:
        lists: dict[str, Callable[[], float]] = {
            "elastic-ips": lambda: self._foreign(
                self._account.client("ec2").describe_addresses()["Addresses"]
            ),
            "vpcs": lambda: self._described("describe_vpcs", "Vpcs"),
            "subnets": lambda: self._described("describe_subnets", "Subnets", self._in_vpc("vpc-id")),
            "internet-gateways": lambda: self._described("describe_internet_gateways", "InternetGateways"),
            "egress-only-gateways": lambda: self._described(
                "describe_egress_only_internet_gateways", "EgressOnlyInternetGateways"
            ),
            "nat-gateways": self._nat_gateways,
            "network-interfaces": lambda: self._described("describe_network_interfaces", "NetworkInterfaces"),
            "interface-endpoints": lambda: self._described(
                "describe_vpc_endpoints",
                "VpcEndpoints",
                [*self._in_vpc("vpc-id"), {"Name": "vpc-endpoint-type", "Values": ["Interface"]}],
            ),
            "security-groups": lambda: self._described("describe_security_groups", "SecurityGroups"),
            "prometheus-workspaces": lambda: self._workspaces("amp"),
            "grafana-workspaces": lambda: self._workspaces("grafana"),
            "eks-clusters": self._eks_clusters,
            "db-instances": self._databases,
            "openzfs-file-systems": lambda: sum(1 for _ in self._file_systems("OPENZFS")),
            "openzfs-capacity": lambda: sum(
                system["StorageCapacity"] for system in self._file_systems("OPENZFS")
            ),
            "openzfs-throughput": lambda: sum(
                system.get("OpenZFSConfiguration", {}).get("ThroughputCapacity", 0)
                for system in self._file_systems("OPENZFS")
            ),
            "lustre-intelligent-tiering-throughput": lambda: sum(
                system.get("LustreConfiguration", {}).get("ThroughputCapacity", 0)
                for system in self._file_systems("LUSTRE")
            ),
            "lustre-intelligent-tiering-cache": lambda: sum(
                system.get("LustreConfiguration", {}).get("DataReadCacheConfiguration", {}).get("SizeGiB", 0)
                for system in self._file_systems("LUSTRE")
            ),
        }
        counts = {quota(key): count for key, count in lists.items()}
        for kind, deployments in _LUSTRE.items():
            counts[quota(f"lustre-{kind}-file-systems")] = lambda types=deployments: sum(
                1 for _ in self._lustre(types)
            )
            counts[quota(f"lustre-{kind}-capacity")] = lambda types=deployments: sum(
                one.get("StorageCapacity", 0)
                for one in self._lustre(types)
                if one.get("StorageType") == "SSD"
            )
        return counts

    def _described(
        self, operation: str, key: str, filters: list[dict[str, Any]] | None = None, **more: Any
    ) -> int:
        pages = self._account.client("ec2").get_paginator(operation).paginate(Filters=filters or [], **more)
        return sum(self._foreign(page[key]) for page in pages)

    def _foreign(self, rows: list[dict[str, Any]]) -> int:
        return sum(not self._own(row.get("Tags") or row.get("TagSet") or []) for row in rows)

    def _own(self, tags: list[Mapping[str, str]]) -> bool:
        own = (ENVIRONMENT_TAG, self._cluster.name)
        return any((tag.get("Key"), tag.get("Value")) == own for tag in tags)

    def _in_vpc(self, name: str) -> list[dict[str, Any]]:
        vpc = self._cluster.environment.network.vpc
        return [{"Name": name, "Values": [vpc.id]}] if vpc else []

    def _workspaces(self, service: Literal["amp", "grafana"]) -> int:
        """Of Prometheus or Grafana, by their tags."""
        own = {ENVIRONMENT_TAG: self._cluster.name}.items()
        client = self._account.client("amp") if service == "amp" else self._account.client("grafana")
        pages = client.get_paginator("list_workspaces").paginate()
        return sum(
            not own <= (workspace.get("tags") or {}).items()
            for page in pages
            for workspace in page["workspaces"]
        )

    def _nat_gateways(self) -> int:
        ec2 = self._account.client("ec2")
        zone = [{"Name": "availability-zone-id", "Values": [self._cluster.environment.network.zone_id]}]
        pages = ec2.get_paginator("describe_subnets").paginate(Filters=zone)
        subnets = {subnet["SubnetId"] for page in pages for subnet in page["Subnets"]}
        states = [{"Name": "state", "Values": ["pending", "available"]}]
        pages = ec2.get_paginator("describe_nat_gateways").paginate(Filters=states)
        return sum(
            self._foreign([gateway])
            for page in pages
            for gateway in page["NatGateways"]
            if gateway.get("SubnetId") in subnets
        )

    @cached_property
    def _instances(self) -> list[dict[str, Any]]:
        states = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        pages = self._account.client("ec2").get_paginator("describe_instances").paginate(Filters=states)
        return [
            instance
            for page in pages
            for reservation in page["Reservations"]
            for instance in reservation["Instances"]
            if not self._own(instance.get("Tags") or []) and not self._node(instance.get("Tags") or [])
        ]

    def _node(self, tags: list[Mapping[str, str]]) -> bool:
        """Return whether an instance is one of the environment's own cluster."""
        marks = self._marks
        return marks is not None and marks.on({tag["Key"]: tag["Value"] for tag in tags})

    @cached_property
    def _marks(self) -> Marks | None:
        """Return how the instances of the environment's own cluster are known; None where there is none."""
        service = service_of(self._cluster)
        if service is None:
            return None
        return existing(lambda: service.marks(self._account, self._cluster), "ResourceNotFoundException")

    def _vcpus(self, wanted: Quota) -> int:
        """vCPUs of running instances. A Capacity Block counts against no quota; a reservation without an
        instance does, and is not seen here."""
        total = 0
        for instance in self._instances:
            lifecycle = instance.get("InstanceLifecycle", "")
            if lifecycle == "capacity-block":
                continue
            name = str(instance["InstanceType"])
            purchase = "spot" if lifecycle == "spot" else "on-demand"
            if ec2_quota(name.partition(".")[0], purchase) != wanted:
                continue
            type_ = instance_type(name)
            options: dict[str, int] = instance.get("CpuOptions") or {}
            total += (
                type_.vcpu if type_ else options.get("CoreCount", 0) * (options.get("ThreadsPerCore") or 1)
            )
        return total

    @cached_property
    def _clusters(self) -> list[dict[str, Any]]:
        sagemaker = self._account.client("sagemaker")
        names = [
            summary["ClusterName"]
            for page in sagemaker.get_paginator("list_clusters").paginate()
            for summary in page["ClusterSummaries"]
        ]
        return [
            group
            for name in names
            if name != self._cluster.cluster_name
            for group in sagemaker.describe_cluster(ClusterName=name).get("InstanceGroups", [])
        ]

    def _hyperpod(self, need: Need) -> float:
        """Nodes of other clusters: those that are there, or still wanted."""
        wanted = f"ml.{need.instance_type}" if need.instance_type else ""
        spot = "spot" in need.quota.name.casefold()
        total = 0
        for group in self._clusters:
            is_spot = "Spot" in (group.get("CapacityRequirements") or {})
            if wanted and (group.get("InstanceType") != wanted or spot != is_spot):
                continue
            if not wanted and spot and not is_spot:
                continue
            total += max(group.get("CurrentCount", 0), group.get("TargetCount", 0))
        return total

    def _reserved(self, name: str) -> float:
        """Instances in other training plans; the environment's own plan is its need."""
        plans = (group.capacity for group in self._cluster.groups.values())
        own = {plan.arn for plan in plans if isinstance(plan, TrainingPlan)}
        pages = self._account.client("sagemaker").get_paginator("list_training_plans").paginate()
        return sum(
            capacity.get("TotalInstanceCount", 0)
            for page in pages
            for plan in page["TrainingPlanSummaries"]
            if plan["TrainingPlanArn"] not in own and plan.get("Status") in ("Pending", "Scheduled", "Active")
            for capacity in plan.get("ReservedCapacitySummaries", [])
            if capacity.get("InstanceType") == f"ml.{name}"
        )

    def _eks_clusters(self) -> int:
        pages = self._account.client("eks").get_paginator("list_clusters").paginate()
        return sum(name != self._cluster.cluster_name for page in pages for name in page["clusters"])

    def _databases(self) -> int:
        pages = self._account.client("rds").get_paginator("describe_db_instances").paginate()
        return sum(not self._own(row.get("TagList", [])) for page in pages for row in page["DBInstances"])

    @cached_property
    def _all_file_systems(self) -> list[dict[str, Any]]:
        pages = self._account.client("fsx").get_paginator("describe_file_systems").paginate()
        return [
            system
            for page in pages
            for system in page["FileSystems"]
            if not self._own(system.get("Tags", []))
        ]

    def _file_systems(self, kind: str) -> Iterator[dict[str, Any]]:
        return (system for system in self._all_file_systems if system.get("FileSystemType") == kind)

    def _lustre(self, deployments: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        return (
            system
            for system in self._file_systems("LUSTRE")
            if system.get("LustreConfiguration", {}).get("DeploymentType") in deployments
            and system.get("StorageType") != "INTELLIGENT_TIERING"
        )


_LUSTRE = {
    "scratch": ("SCRATCH_1", "SCRATCH_2"),
    "persistent-1": ("PERSISTENT_1",),
    "persistent-2": ("PERSISTENT_2",),
}

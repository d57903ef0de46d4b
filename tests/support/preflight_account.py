"""An account for preflight: moto for what it supports; else answers held against the SDK's own model."""

from __future__ import annotations

from copy import copy
from datetime import UTC, datetime
from fnmatch import fnmatch
from typing import Any, ClassVar

import boto3
from hyperpod_service import account as known_account
from hyperpod_service import answer, refusal
from moto.ssm.models import Parameter, ssm_backends
from project import ROOT

from ultracluster.account.preflight.rows import Row, Situation
from ultracluster.config import Environment, load
from ultracluster.model import resolve
from ultracluster.model.quota_needs import needs

OWNER = "123456789012"
"""Moto's account."""
NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
ROLE = f"arn:aws:sts::{OWNER}:assumed-role/operator/me"
CUSTOM = (
    ("service-quotas", "ListServiceQuotas"),
    ("service-quotas", "ListAWSDefaultServiceQuotas"),
    ("service-quotas", "ListRequestedServiceQuotaChangeHistoryByQuota"),
    ("service-quotas", "RequestServiceQuotaIncrease"),
    ("ec2", "DescribeCapacityReservations"),
    ("ec2", "DescribeCapacityBlockStatus"),
    ("sagemaker", "ListClusters"),
    ("sagemaker", "DescribeCluster"),
    ("sagemaker", "DescribeTrainingPlan"),
    ("sagemaker", "ListTrainingPlans"),
    ("iam", "SimulatePrincipalPolicy"),
    ("eks", "DescribeAddonVersions"),
    ("pcs", "ListClusters"),
    ("pcs", "ListComputeNodeGroups"),
    ("fsx", "DescribeFileSystems"),
    ("rds", "DescribeDBEngineVersions"),
    ("s3", "HeadBucket"),
    ("cloudtrail", "DescribeTrails"),
    ("cloudtrail", "GetTrailStatus"),
    ("guardduty", "ListDetectors"),
    ("guardduty", "GetDetector"),
    ("config", "DescribeConfigurationRecorderStatus"),
)


class Clients(dict[tuple[str, str], Any]):
    """The clients of an account: those of earlier tests, each with the handlers that it began with.

    A client takes 15 ms, and preflight asks more than a dozen services.
    """

    known: ClassVar[dict[str, dict[tuple[str, str], tuple[Any, Any]]]] = {}

    def __init__(self, region: str) -> None:
        super().__init__()
        self._known = self.known.setdefault(region, {})
        for key, (client, events) in self._known.items():
            client.meta.events = copy(events)
            super().__setitem__(key, client)

    def __setitem__(self, key: tuple[str, str], client: Any) -> None:
        self._known[key] = (client, copy(client.meta.events))
        super().__setitem__(key, client)


class World:
    """An account in which everything is well, until a test breaks it.

    Attributes:
        quotas: every quota that the environment needs, by name: value, code and what else AWS lists.
        refused: exceptions by (service, operation).
        asked: operations that change something, with their parameters.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.account = known_account(environment.region)
        self.account._clients = Clients(environment.region)
        object.__setattr__(self.account._identity, "account", OWNER)
        object.__setattr__(self.account._identity, "arn", ROLE)
        self.quotas: dict[str, dict[str, Any]] = {}
        self.defaults: dict[str, dict[str, Any]] = {}
        for number, need in enumerate(needs(resolve(environment))):
            self.quotas[need.quota.name] = {
                "ServiceCode": need.quota.service,
                "QuotaCode": need.quota.code or f"L-{number:08X}",
                "QuotaName": need.quota.name,
                "Value": need.amount * 2 + 10,
                "Adjustable": True,
            }
        self.requests: dict[str, list[dict[str, Any]]] = {}
        self.reservations: list[dict[str, Any]] = []
        self.blocks: list[dict[str, Any]] = []
        self.plans: dict[str, dict[str, Any]] = {}
        self.clusters: dict[str, dict[str, Any]] = {}
        self.pcs: list[dict[str, Any]] = []
        self.file_systems: list[dict[str, Any]] = []
        self.mysql = ["8.4.10"]
        """Versions that RDS offers."""
        self.buckets: dict[str, str | int] = {}
        self.denied: set[str] = set()
        self.addons: dict[str, list[str]] = {}
        self.refused: dict[tuple[str, str], Exception] = {}
        self.trails = {"organization": True}
        """Whether a trail logs, by name."""
        self.detectors = {"d1": "ENABLED"}
        """Status by id."""
        self.recorders = {"default": True}
        """Whether a recorder of AWS Config records, by name."""
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.images: dict[str, dict[str, Any]] = {}
        for service, operation in CUSTOM:
            answer(self.account.client(service), operation, self._reply(service, operation))

    def refuse(self, service: str, operation: str, code: str, message: str = "") -> None:
        """Let a call fail; also one that moto answers."""
        error = refusal(code, message, operation)
        self.refused[service, operation] = error
        if (service, operation) not in CUSTOM:
            answer(self.account.client(service), operation, self._reply(service, operation))

    def _reply(self, service: str, operation: str) -> Any:
        method = getattr(self, f"_{service}_{operation}".replace("-", "_"), None)

        def reply(asked: dict[str, Any]) -> dict[str, Any]:
            if (service, operation) in self.refused:
                raise self.refused[service, operation]
            assert method is not None
            return method(asked)

        return reply

    def _cloudtrail_DescribeTrails(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"trailList": [{"Name": name, "TrailARN": self._trail(name)} for name in self.trails]}

    def _cloudtrail_GetTrailStatus(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        names = {self._trail(name): name for name in self.trails}
        return {"IsLogging": self.trails[names[asked["Name"]]]}

    @staticmethod
    def _trail(name: str) -> str:
        return f"arn:aws:cloudtrail:us-east-1:999988887777:trail/{name}"

    def _guardduty_ListDetectors(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"DetectorIds": list(self.detectors)}

    def _guardduty_GetDetector(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"Status": self.detectors[asked["DetectorId"]], "ServiceRole": ROLE}

    def _config_DescribeConfigurationRecorderStatus(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        rows = [{"name": name, "recording": on} for name, on in self.recorders.items()]
        return {"ConfigurationRecordersStatus": rows}

    def _service_quotas_ListServiceQuotas(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return self._page(self.quotas, asked)

    def _service_quotas_ListAWSDefaultServiceQuotas(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return self._page(self.defaults, asked)

    def _page(self, quotas: dict[str, dict[str, Any]], asked: dict[str, Any]) -> dict[str, Any]:
        """Two quotas on each page, so that whoever reads one page misses the rest."""
        rows = [row for row in quotas.values() if row["ServiceCode"] == asked["ServiceCode"]]
        first = int(asked.get("NextToken", 0))
        more = {"NextToken": str(first + 2)} if first + 2 < len(rows) else {}
        return {"Quotas": rows[first : first + 2], **more}

    def _service_quotas_ListRequestedServiceQuotaChangeHistoryByQuota(  # noqa: N802
        self, asked: dict[str, Any]
    ) -> dict[str, Any]:
        return {"RequestedQuotas": self.requests.get(asked["QuotaCode"], [])}

    def _service_quotas_RequestServiceQuotaIncrease(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self.asked.append(("RequestServiceQuotaIncrease", asked))
        made = {"Id": f"r{len(self.asked)}", "Status": "PENDING", "Created": NOW, **asked}
        self.requests.setdefault(asked["QuotaCode"], []).append(made)
        return {"RequestedQuota": made}

    def _ec2_DescribeCapacityReservations(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        ids = asked.get("CapacityReservationIds")
        rows = [row for row in self.reservations if not ids or row["CapacityReservationId"] in ids]
        if ids and len(rows) < len(ids):
            raise refusal("InvalidCapacityReservationId.NotFound", "no such reservation")
        return {"CapacityReservations": rows}

    def _ec2_DescribeCapacityBlockStatus(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"CapacityBlockStatuses": self.blocks}

    def _sagemaker_ListClusters(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        names = sorted(self.clusters)
        first = int(asked.get("NextToken", 0))
        more = {"NextToken": str(first + 1)} if first + 1 < len(names) else {}
        return {
            "ClusterSummaries": [
                {
                    "ClusterArn": f"arn:aws:sagemaker:us-west-2:{OWNER}:cluster/abcdefghijk{first}",
                    "ClusterName": name,
                    "CreationTime": NOW,
                    "ClusterStatus": self.clusters[name].get("ClusterStatus", "InService"),
                }
                for name in names[first : first + 1]
            ],
            **more,
        }

    def _sagemaker_DescribeCluster(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if asked["ClusterName"] not in self.clusters:
            raise refusal("ResourceNotFound", "no such cluster", "DescribeCluster")
        return {
            "ClusterArn": f"arn:aws:sagemaker:us-west-2:{OWNER}:cluster/abcdefghijkl",
            "ClusterStatus": "InService",
            **self.clusters[asked["ClusterName"]],
        }

    def _sagemaker_DescribeTrainingPlan(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if asked["TrainingPlanName"] not in self.plans:
            raise refusal("ResourceNotFound", "no such plan", "DescribeTrainingPlan")
        return self.plans[asked["TrainingPlanName"]]

    def _sagemaker_ListTrainingPlans(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"TrainingPlanSummaries": list(self.plans.values())}

    def _iam_SimulatePrincipalPolicy(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self.asked.append(("SimulatePrincipalPolicy", asked))
        return {
            "EvaluationResults": [
                {
                    "EvalActionName": action,
                    "EvalResourceName": resource,
                    "EvalDecision": "implicitDeny" if action in self.denied else "allowed",
                }
                for action in asked["ActionNames"]
                for resource in asked.get("ResourceArns", ["*"])
            ]
        }

    def _eks_DescribeAddonVersions(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        name = asked["addonName"]
        versions = self.addons.get(name, [])
        return {"addons": [{"addonName": name, "addonVersions": [{"addonVersion": one} for one in versions]}]}

    def _pcs_ListClusters(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"clusters": self.pcs}

    def _pcs_ListComputeNodeGroups(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        raise refusal("ResourceNotFoundException", "no such cluster")

    def _fsx_DescribeFileSystems(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        ids = asked.get("FileSystemIds")
        rows = [row for row in self.file_systems if not ids or row["FileSystemId"] in ids]
        if ids and not rows:
            raise refusal("FileSystemNotFound", "no such file system")
        return {"FileSystems": rows}

    def _rds_DescribeDBEngineVersions(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        assert (asked["Engine"], asked["DBParameterGroupFamily"]) == ("mysql", "mysql8.4")
        return {"DBEngineVersions": [{"EngineVersion": one, "Status": "available"} for one in self.mysql]}

    def public_parameter(self, name: str, value: str) -> None:
        """A parameter below `/aws/service/`, where SSM lets nobody write."""
        store: Any = ssm_backends[OWNER][self.environment.region]._parameters
        store[name] = [
            Parameter(
                account_id=OWNER,
                name=name,
                value=value,
                parameter_type="String",
                description=None,
                allowed_pattern=None,
                keyid=None,
                last_modified_date=NOW,
                version=1,
                data_type="text",
            )
        ]

    def public_image(
        self, ami: str, name: str, created: str = "2026-09-17T08:00:00.000Z", **more: Any
    ) -> None:
        """An AMI that Amazon owns."""
        self.images[ami] = {
            "ImageId": ami,
            "Name": name,
            "CreationDate": created,
            "State": "available",
            **more,
        }

    def _ec2_DescribeImages(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if "ImageIds" in asked:
            return {"Images": [self.images[one] for one in asked["ImageIds"] if one in self.images]}
        assert asked["Owners"] == ["amazon"], asked
        ((pattern,),) = [one["Values"] for one in asked["Filters"]]
        return {"Images": [one for one in self.images.values() if fnmatch(one["Name"], pattern)]}

    def _s3_HeadBucket(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        found = self.buckets.get(asked["Bucket"], 404)
        if isinstance(found, int):
            raise refusal(str(found))
        return {"BucketRegion": found}


def images_of_today(world: World) -> None:
    """The images that AWS publishes, as the catalogue knows the newest of them."""
    answer(world.account.client("ec2"), "DescribeImages", world._ec2_DescribeImages)
    hyperpod = "/aws/service/sagemaker-hyperpod/ami"
    for arch in ("x86_64", "arm64"):
        for number, kind in enumerate(("slurm-ubuntu-22.04", "eks-1.34-amazon-linux-2023"), start=1):
            ami = f"ami-{arch[0]}{number:016x}".replace("x", "e")
            world.public_parameter(f"{hyperpod}/{arch}/{kind}/latest/ami-id", ami)
            world.public_image(ami, f"HyperPod {kind} {arch} 20260917")
        for variant in ("standard", "nvidia", "neuron"):
            base = f"/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/{arch}/{variant}"
            name = f"amazon-eks-node-al2023-{arch}-{variant}-1.34-v20261012"
            for path in ("recommended", name):
                world.public_parameter(f"{base}/{path}/release_version", "1.34.12-20261012")
        name = f"aws-parallelcluster-3.16.1-ubuntu-2204-lts-hvm-{arch}-202609080900"
        world.public_image(
            f"ami-{arch[0]}0000000000000009".replace("x", "e"), name, "2026-11-17T09:00:00.000Z"
        )


def shipped(name: str, **changes: Any) -> Environment:
    return load(ROOT / "environments" / f"{name}.yaml").environment.model_copy(update=changes)


def rows_of(family: Any, world: World) -> list[Row]:
    """The rows of one family of questions."""
    situation = Situation(world.account, resolve(world.environment), lambda: NOW)
    return [row for question in family.questions(situation) for row in question.answer()]


def ask(family: Any, world: World) -> dict[str, Row]:
    return {row.what: row for row in rows_of(family, world)}


def furnish(world: World) -> None:
    """Put into moto what a ready account has: the bootstrap, service-linked roles, the deployer's role."""
    region = world.environment.region
    images_of_today(world)
    boto3.client("ssm", region).put_parameter(
        Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String"
    )
    iam = boto3.client("iam", region)
    iam.create_role(RoleName="operator", Path="/people/", AssumeRolePolicyDocument="{}")
    for service in ("hyperpod.sagemaker", "fsx", "eks", "eks-nodegroup", "autoscaling", "pcs", "rds", "spot"):
        name = {
            "hyperpod.sagemaker": "AmazonSageMakerHyperPod",
            "fsx": "AmazonFSx",
            "eks": "AmazonEKS",
            "eks-nodegroup": "AmazonEKSNodegroup",
            "autoscaling": "AutoScaling",
            "pcs": "PCS",
            "rds": "RDS",
            "spot": "EC2Spot",
        }[service]
        iam.create_role(
            RoleName=f"AWSServiceRoleFor{name}",
            Path=f"/aws-service-role/{service}.amazonaws.com/",
            AssumeRolePolicyDocument="{}",
        )

"""A PCS cluster in another team's stack, and questions to ask of its template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from templates import Synthesised, app_in

from ultracluster import ClusterKey, EfaSecurityGroup, PcsCluster
from ultracluster.config.capacity import CapacityBlock
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.pcs import Pcs
from ultracluster.guard import already_judged
from ultracluster.security.acknowledgements import acknowledge

IMAGE = "ami-0123456789abcdef0"
ID = "cr-0123456789abcdef0"
BLOCK = CapacityBlock(kind="capacity-block", id=ID)


def login(count: int = 1) -> NodeGroup:
    return NodeGroup(role="login", instance_type="m7i.2xlarge", count=count, image=IMAGE)


def compute(kind: str = "p5.48xlarge", **changes: Any) -> NodeGroup:
    fields: dict[str, Any] = {"count": 2, "partition": "train", "image": IMAGE}
    return NodeGroup(role="compute", instance_type=kind, **(fields | changes))


class Bench:
    """Another team's stack, with its own VPC, group, key and bucket; rules have tests of their own."""

    def __init__(
        self, app: App, name: str = "research", region: str = "us-east-2", *, judged: bool = False
    ) -> None:
        self.stack = Stack(app, name, env=Environment(account="111122223333", region=region))
        if not judged:
            already_judged(self.stack)
        self.vpc = ec2.Vpc.from_vpc_attributes(
            self.stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=[f"{region}a"]
        )
        self.subnet = ec2.Subnet.from_subnet_attributes(
            self.stack, "Subnet", subnet_id="subnet-0123456789abcdef0", availability_zone=f"{region}a"
        )
        acknowledge(
            self.subnet, {"@aws-cdk/aws-ec2:noSubnetRouteTableId": "nothing asks for its routes here"}
        )
        self.group = EfaSecurityGroup(self.stack, "Efa", vpc=self.vpc)
        self.key = ClusterKey(self.stack, "Key").key

    def add(self, name: str = "cluster", /, **arguments: Any) -> PcsCluster:
        groups: dict[str, NodeGroup] = {"login": login(), "train": compute()}
        defaults: dict[str, Any] = {
            "cluster_name": name,
            "config": Pcs(kind="pcs"),
            "node_groups": groups,
            "subnet": self.subnet,
            "security_groups": [self.group.security_group],
            "key": self.key,
            "scripts_bucket": s3.Bucket.from_bucket_name(self.stack, f"Bucket{name}", "example-scripts"),
        }
        return PcsCluster(self.stack, name, **(defaults | arguments))


def made(tmp_path: Path, **arguments: Any) -> Synthesised:
    app = app_in(tmp_path, validate=False)
    Bench(app).add(**arguments)
    return unjudged(app, tmp_path)


def unjudged(app: App, folder: Path) -> Synthesised:
    """Templates alone; what a rule refuses is raised."""
    app.synth()
    return Synthesised(folder)


def bare(tmp_path: Path, **arguments: Any) -> Synthesised:
    """Without lifecycle scripts, which most tests are not about."""
    config = arguments.pop("config", Pcs(kind="pcs"))
    return made(tmp_path, config=config.model_copy(update={"lifecycle": "none"}), **arguments)


def group_of(made: Synthesised, name: str) -> dict[str, Any]:
    groups = made.resources("AWS::PCS::ComputeNodeGroup").values()
    return next(one["Properties"] for one in groups if one["Properties"]["Name"] == name)


def template_of(made: Synthesised, name: str) -> dict[str, Any]:
    logical_id = group_of(made, name)["CustomLaunchTemplate"]["TemplateId"]["Ref"]
    return made.templates["research"]["Resources"][logical_id]["Properties"]["LaunchTemplateData"]


def only(made: Synthesised, kind: str) -> dict[str, Any]:
    (resource,) = made.resources(kind).values()
    return resource["Properties"]

"""Clusters in an app of another team, told only what each must be told, and what their nodes are given."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2

from ultracluster.catalog.pcs import pcs_image_parameter
from ultracluster.clusters.cluster import ClusterConstruct
from ultracluster.clusters.eks.cluster import EksCluster
from ultracluster.clusters.hyperpod.eks import HyperPodEksCluster
from ultracluster.clusters.hyperpod.slurm import HyperPodSlurmCluster
from ultracluster.clusters.parallelcluster.cluster import ParallelClusterCluster
from ultracluster.clusters.pcs.cluster import PcsCluster
from ultracluster.config.nodes import NodeGroup
from ultracluster.lifecycle.bundles import HEAD, NODE_FILE
from ultracluster.scripts_folder import scripts_folder

REGION = "us-east-2"
IMAGE = pcs_image_parameter("x86_64")
MARK = b"<<marker:0xbaba:"


def group(role: Any, instance_type: str, count: int, **more: Any) -> NodeGroup:
    return NodeGroup(role=role, instance_type=instance_type, count=count, **more)


SLURM: Mapping[str, NodeGroup] = {
    "head": group("controller", "m5.xlarge", 1),
    "train": group("compute", "p5.48xlarge", 2, partition="train"),
}
PCS: Mapping[str, NodeGroup] = {
    "login": group("login", "m5.xlarge", 1, image=IMAGE),
    "train": group("compute", "p5.48xlarge", 2, partition="train", image=IMAGE),
}
KUBERNETES: Mapping[str, NodeGroup] = {
    "system": group("system", "m5.xlarge", 2),
    "train": group("compute", "p5.48xlarge", 2),
}


class Team:
    """A stack of theirs with a VPC that was imported."""

    def __init__(self, app: App, *, region: str | None = REGION, name: str = "research") -> None:
        env = Environment(account="111122223333", region=region) if region else None
        self.stack = Stack(app, name, env=env)
        self.vpc = ec2.Vpc.from_vpc_attributes(
            self.stack,
            "Vpc",
            vpc_id="vpc-0123456789abcdef0",
            vpc_cidr_block="10.0.0.0/16",
            availability_zones=[f"{REGION}a", f"{REGION}b"],
            private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
            private_subnet_route_table_ids=["rtb-0123456789abcdef0", "rtb-0123456789abcdef1"],
        )
        self.subnet = self.vpc.private_subnets[0]

    def add(self, kind: str, /, construct_id: str = "Cluster", **more: Any) -> ClusterConstruct:
        """A cluster of a kind, with `more` in the place of what it is told otherwise."""
        return MAKERS[kind](self, construct_id, more)


def _slurm(team: Team, construct_id: str, more: dict[str, Any]) -> ClusterConstruct:
    told: dict[str, Any] = {"vpc": team.vpc, "subnet": team.subnet, "node_groups": SLURM}
    return HyperPodSlurmCluster(team.stack, construct_id, **(told | more))


def _pcs(team: Team, construct_id: str, more: dict[str, Any]) -> ClusterConstruct:
    told: dict[str, Any] = {"vpc": team.vpc, "subnet": team.subnet, "node_groups": PCS}
    return PcsCluster(team.stack, construct_id, **(told | more))


def _parallelcluster(team: Team, construct_id: str, more: dict[str, Any]) -> ClusterConstruct:
    told: dict[str, Any] = {"vpc": team.vpc, "subnet": team.subnet, "node_groups": SLURM}
    return ParallelClusterCluster(team.stack, construct_id, **(told | more))


def _kubernetes(team: Team) -> dict[str, Any]:
    return {
        "vpc": team.vpc,
        "subnet": team.subnet,
        "control_plane_subnets": team.vpc.private_subnets,
        "node_groups": KUBERNETES,
    }


def _eks(team: Team, construct_id: str, more: dict[str, Any]) -> ClusterConstruct:
    return EksCluster(team.stack, construct_id, **(_kubernetes(team) | more))


def _hyperpod_eks(team: Team, construct_id: str, more: dict[str, Any]) -> ClusterConstruct:
    return HyperPodEksCluster(team.stack, construct_id, **(_kubernetes(team) | more))


MAKERS: Mapping[str, Callable[[Team, str, dict[str, Any]], ClusterConstruct]] = {
    "hyperpod-slurm": _slurm,
    "pcs": _pcs,
    "parallelcluster": _parallelcluster,
    "eks": _eks,
    "hyperpod-eks": _hyperpod_eks,
}


def uploaded(folder: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """What an assembly uploads for nodes: the files of each folder, or of each file that unpacks itself."""
    for file in sorted(folder.glob("asset.*")):
        if file.suffix == ".zip":
            yield from _folders(file)
        elif file.suffix == ".run":
            yield file.name, _unpacked(file.read_bytes())


def _folders(file: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    folders: dict[str, dict[str, bytes]] = {}
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            folder, _, path = name.partition("/")
            folders.setdefault(folder, {})[path] = archive.read(name)
    for folder, files in folders.items():
        if NODE_FILE in files:
            yield folder, _unpacked(files[NODE_FILE])
        elif "cluster.json" in files:
            yield folder, files


def _unpacked(content: bytes) -> dict[str, bytes]:
    head = (scripts_folder() / HEAD).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(content[len(head) :]), mode="r:gz") as archive:
        members = [one for one in archive.getmembers() if one.isfile()]
        return {one.name: (archive.extractfile(one) or io.BytesIO()).read() for one in members}


def deployed(configuration: bytes) -> dict[str, Any]:
    """cluster.json as the upload writes it, with names in the place of what is known only then."""
    text = configuration
    number = 0
    while MARK + str(number).encode() + b">>" in text:
        text = text.replace(MARK + str(number).encode() + b">>", f"later-{number}".encode())
        number += 1
    assert b"Token[" not in text and b"<<marker" not in text
    told: dict[str, Any] = json.loads(text)
    if "state_uri" in told:
        told["state_uri"] = "s3://later/research/state"
    return told


def node_facts(files: Mapping[str, bytes], home: Path, *, group: str, role: str, kind: str) -> dict[str, str]:
    """What a node of the group finds out with the very scripts that are uploaded; it must not refuse.

    Args:
        files: of one folder.
        home: an empty folder, into which they are written.
        group: name of the node's group.
        role: of the group.
        kind: instance type of the node.
    """
    for name, content in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(content)
    (home / "cluster.json").write_text(json.dumps(deployed(files["cluster.json"])))
    code = f"""
        set -u
        export ULTRACLUSTER_ROOT={home} ULTRACLUSTER_HOME={home}
        export NODE_HERE='{role}|{group}|{kind}|0|0|0'
        source "$ULTRACLUSTER_HOME/lib/log.sh"; source "$ULTRACLUSTER_HOME/lib/node.sh"
        node::addresses() {{ :; }}; node::primary_address() {{ echo 10.0.0.9; }}
        node::describe
    """
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)

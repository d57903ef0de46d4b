"""PCS clusters in a stranger's stack: network cards, placement, scripts, and what the API takes."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from botocore.session import get_session
from botocore.validate import ParamValidator
from cdk_nag import AwsSolutionsChecks
from templates import Synthesised, app_in, cfn_lint, finish

from ultracluster import ClusterKey, EfaSecurityGroup, LustreMount, OpenZfsMount, PcsCluster
from ultracluster.catalog import instance_types
from ultracluster.clusters.pcs.cluster import ENTRY, ROLE_PATH
from ultracluster.config.capacity import Capacity, CapacityBlock, OnDemand, Reservation, Spot
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.pcs import PROLOG, Pcs
from ultracluster.config.slurm import Partition
from ultracluster.lifecycle.bundles import NODE_FILE
from ultracluster.lifecycle.one_file import HEAD, one_file
from ultracluster.lifecycle.selection import files_of
from ultracluster.model.cluster_json import ScriptConfigurations
from ultracluster.scripts_folder import scripts_folder
from ultracluster.security.acknowledgements import acknowledge
from ultracluster.security.cluster_key import PCS

Get = Callable[[str], Synthesised]
IMAGE = "ami-0123456789abcdef0"
ID = "cr-0123456789abcdef0"
BLOCK = CapacityBlock(kind="capacity-block", id=ID)
MODEL = get_session().get_service_model("pcs")
EFA_TYPES = {name: known for name, known in instance_types().items() if known.efa_interfaces != 0}
CONFIGURATION: dict[str, object] = {"schema": 1, "release": "2026.11", "node_groups": {}}


SCRIPTS = files_of(scripts_folder(), [ENTRY], release="2026.11")


def login(count: int = 1) -> NodeGroup:
    return NodeGroup(role="login", instance_type="m7i.2xlarge", count=count, image=IMAGE)


def compute(kind: str = "p5.48xlarge", **changes: Any) -> NodeGroup:
    fields: dict[str, Any] = {"count": 2, "partition": "train", "image": IMAGE}
    return NodeGroup(role="compute", instance_type=kind, **(fields | changes))


class Bench:
    """Another team's stack, with its own VPC, group, key and bucket."""

    def __init__(self, app: App, name: str = "research", region: str = "us-east-2") -> None:
        self.stack = Stack(app, name, env=Environment(account="111122223333", region=region))
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
        self.key = ClusterKey(self.stack, "Key", launched_by=[PCS]).key

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
            "script_configurations": ScriptConfigurations(
                by_group={"login": {**CONFIGURATION, "node_groups": {"login": {}}}, "train": CONFIGURATION}
                | dict.fromkeys(arguments.get("node_groups", {}), CONFIGURATION)
            ),
        }
        return PcsCluster(self.stack, name, **(defaults | arguments))


def made(tmp_path: Path, **arguments: Any) -> Synthesised:
    app = app_in(tmp_path, validate=False)
    Bench(app).add(**arguments)
    return unjudged(app, tmp_path)


def unjudged(app: App, folder: Path) -> Synthesised:
    """Templates alone: without a validator there is no report to read."""
    app.synth()
    names = {file.name.removesuffix(".template.json"): file for file in folder.glob("*.template.json")}
    templates = {name: json.loads(file.read_text()) for name, file in names.items()}
    return Synthesised(folder, templates, set(), {})


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


def test_it_stands_alone_in_a_strangers_stack(tmp_path: Path) -> None:
    """Strict validation, cdk-nag and cfn-lint find nothing; every mount is there."""
    app = app_in(tmp_path)
    Bench(app).add(
        lustre=LustreMount(
            dns_name="fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com", mount_name="abcdefgh", efa=True
        ),
        open_zfs=OpenZfsMount(dns_name="fs-0fedcba9876543210.fsx.us-east-2.amazonaws.com"),
        mirror="s3://example-mirror/releases",
    )
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    result = finish(app, tmp_path)

    assert result.findings == set()
    assert cfn_lint([str(tmp_path / "research.template.json")], "us-east-2") == ""
    script = group_of(result, "train")["NodeLifecycleActions"]["Stages"]["NodeBootstrapped"][0]
    assert script["Arguments"] == [
        "pcs_node",
        *("--lustre", "/fsx", "fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com", "abcdefgh", "yes"),
        *("--openzfs", "/home", "fs-0fedcba9876543210.fsx.us-east-2.amazonaws.com", "/fsx"),
        *("--group", "train"),
    ]
    assert (script["ExecutionPolicy"], script["OnError"]) == ("EVERY_BOOT", "TERMINATE")


# Network cards


@pytest.fixture(scope="module")
def every_efa_type(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """A group of each EFA type; more than PCS makes, but no test of CloudFormation's."""
    groups = {
        logical(name): compute(name, capacity=BLOCK if known.ultraserver else OnDemand())
        for name, known in EFA_TYPES.items()
    }
    return bare(tmp_path_factory.mktemp("types"), node_groups=groups)


def logical(name: str) -> str:
    return "t" + name.replace(".", "").replace("-", "")


@pytest.mark.parametrize("name", EFA_TYPES)
def test_each_efa_type_has_all_its_efas(name: str, every_efa_type: Synthesised) -> None:
    """`efa`, as PCS's guide has it; on p6e-gb200 alone EC2 takes `efa-only`."""
    known = EFA_TYPES[name]
    interfaces = template_of(every_efa_type, logical(name))["NetworkInterfaces"]
    kinds = [one["InterfaceType"] for one in interfaces]
    cards = [one["NetworkCardIndex"] for one in interfaces if one["InterfaceType"] != "interface"]
    ultraserver = bool(known.ultraserver and known.efa_interfaces is None)

    assert kinds.count("efa-only" if ultraserver else "efa") == (
        known.recommended_efa_interfaces[0] if ultraserver else known.efa_interfaces
    )
    assert len(set(cards)) == len(cards), "one EFA on a card at most"
    assert (0 in cards) == known.efa_on_card_0
    assert (interfaces[0]["NetworkCardIndex"], interfaces[0]["DeviceIndex"]) == (0, 0)
    assert kinds[0] != "efa-only"


def test_every_interface_has_the_group_and_the_template_has_none_beside(every_efa_type: Synthesised) -> None:
    for name in EFA_TYPES:
        data = template_of(every_efa_type, logical(name))
        assert "SecurityGroupIds" not in data
        assert len({json.dumps(one["Groups"]) for one in data["NetworkInterfaces"]}) == 1
        assert all("SubnetId" not in one for one in data["NetworkInterfaces"])


def test_efa_only_where_it_is_asked_for_and_none_on_login_nodes(tmp_path: Path) -> None:
    result = bare(
        tmp_path,
        config=Pcs(kind="pcs", efa_interface="efa-only"),
        node_groups={
            "login": login().model_copy(update={"instance_type": "g6e.12xlarge"}),
            "train": compute(),
        },
    )

    kinds = [one["InterfaceType"] for one in template_of(result, "train")["NetworkInterfaces"]]
    assert kinds == ["interface", *["efa-only"] * 32]
    assert len(template_of(result, "login")["NetworkInterfaces"]) == 1


# Capacity and placement

RESERVED = {"kind": "reservation", "id": ID}


@pytest.mark.parametrize(
    ("capacity", "placed", "purchase", "market", "target"),
    [
        (OnDemand(), True, "ONDEMAND", None, None),
        (Spot(kind="spot", allocation="capacity-optimized"), True, "SPOT", None, None),
        (Reservation(kind="reservation", id=ID), False, "ONDEMAND", None, ID),
        (Reservation(kind="reservation"), False, "ONDEMAND", None, "open"),
        (BLOCK, False, "CAPACITY_BLOCK", "capacity-block", ID),
    ],
    ids=["on-demand", "spot", "reservation", "open reservation", "block"],
)
def test_a_placement_group_never_beside_a_reservation_or_block(
    capacity: Capacity, placed: bool, purchase: str, market: str | None, target: str | None, tmp_path: Path
) -> None:
    """Instances in a group do not match what was reserved outside it (awslabs/awsome-distributed-ai#353)."""
    result = bare(tmp_path, node_groups={"train": compute(capacity=capacity)})
    data, group = template_of(result, "train"), group_of(result, "train")
    groups = result.resources("AWS::EC2::PlacementGroup")
    reserved = data.get("CapacityReservationSpecification", {})

    assert len(groups) == placed
    assert ("Placement" in data) == placed
    assert group["PurchaseOption"] == purchase
    assert data.get("InstanceMarketOptions", {}).get("MarketType") == market
    assert data["InstanceType"] == "p5.48xlarge"
    if target == "open":
        assert reserved == {"CapacityReservationPreference": "open"}
    else:
        found = reserved.get("CapacityReservationTarget", {}).get("CapacityReservationId")
        assert found == target
    if isinstance(capacity, Spot):
        assert group["SpotOptions"] == {"AllocationStrategy": "capacity-optimized"}
    else:
        assert "SpotOptions" not in group


def test_a_placement_group_can_be_declined(tmp_path: Path) -> None:
    result = bare(tmp_path, node_groups={"train": compute(capacity=OnDemand(), placement_group="none")})

    assert not result.resources("AWS::EC2::PlacementGroup")
    assert "Placement" not in template_of(result, "train")


def test_a_reservation_made_in_a_group_is_launched_into_that_very_group(tmp_path: Path) -> None:
    reserved = Reservation(kind="reservation", id=ID, placement_group="theirs")
    result = bare(tmp_path, node_groups={"train": compute(capacity=reserved)})

    assert template_of(result, "train")["Placement"] == {"GroupName": "theirs"}
    assert not result.resources("AWS::EC2::PlacementGroup")


def test_nodes_that_train_together_share_a_group_and_others_do_not(tmp_path: Path) -> None:
    groups = {
        "first": compute(),
        "second": compute(),
        "other": compute("p4d.24xlarge", partition="other"),
        "plain": compute("m7i.2xlarge", partition="plain"),
    }
    result = bare(tmp_path, node_groups=groups)
    placed = {name: template_of(result, name).get("Placement") for name in groups}

    assert placed["first"] == placed["second"] != placed["other"]
    assert placed["plain"] is None
    assert len(result.resources("AWS::EC2::PlacementGroup")) == 2


def test_what_cannot_be_launched_is_refused(tmp_path: Path) -> None:
    bench = Bench(app_in(tmp_path))

    with pytest.raises(ValueError, match=r"group 'train' has no image"):
        bench.add("a", node_groups={"train": compute(image=None)})
    with pytest.raises(ValueError, match=r"role 'controller': PCS has login and compute"):
        bench.add("b", node_groups={"head": compute().model_copy(update={"role": "controller"})})
    with pytest.raises(ValueError, match=r"needs a scripts_bucket"):
        bench.add("c", scripts_bucket=None)
    with pytest.raises(ValueError, match=r"sold inside UltraServers"):
        bench.add("d", node_groups={"rack": compute("p6e-gb200.36xlarge")})
    with pytest.raises(ValueError, match=r"unknown instance type 'p99.48xlarge'"):
        bench.add("e", node_groups={"train": compute("p99.48xlarge")})


# Clusters one after the other


def test_clusters_of_one_region_are_made_one_after_the_other(tmp_path: Path) -> None:
    """PCS refuses a second cluster while one is in CREATING."""
    app = app_in(tmp_path, validate=False)
    none = Pcs(kind="pcs", lifecycle="none")
    here = Bench(app, "first")
    here.add("alpha", config=none)
    here.add("beta", config=none)
    Bench(app, "second").add("gamma", config=none)
    Bench(app, "abroad", region="us-west-2").add("delta", config=none)
    result = unjudged(app, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())["artifacts"]
    clusters = {
        resource["Properties"]["Name"]: (path.split("/")[1], resource)
        for path, resource in result.resources("AWS::PCS::Cluster").items()
    }

    assert clusters["alpha"][1].get("DependsOn") is None
    assert clusters["beta"][1]["DependsOn"] == [clusters["alpha"][0]]
    assert "first" in manifest["second"]["dependencies"]
    assert not {"first", "second"} & set(manifest["abroad"]["dependencies"])


# Scripts


def test_the_checksum_is_that_of_the_file_which_is_uploaded(tmp_path: Path) -> None:
    result = made(tmp_path)
    (upload,) = result.resources("Custom::CDKBucketDeployment").values()
    (key,) = upload["Properties"]["SourceObjectKeys"]
    with zipfile.ZipFile(tmp_path / f"asset.{key}") as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    sources = {
        group["Properties"]["Name"]: group["Properties"]["NodeLifecycleActions"]["Stages"][
            "NodeBootstrapped"
        ][0]["ScriptSource"]
        for group in result.resources("AWS::PCS::ComputeNodeGroup").values()
    }
    prefix = upload["Properties"]["DestinationBucketKeyPrefix"]

    assert prefix == "cluster" and set(sources) == {"login", "train"}
    for source in sources.values():
        path = source["ScriptLocation"].removeprefix(f"s3://example-scripts/{prefix}/")
        assert re.fullmatch(rf"[0-9a-f]{{12}}/{NODE_FILE}", path)
        assert source["Checksum"] == hashlib.sha256(content[path]).hexdigest()
    assert sources["login"] != sources["train"]


def test_the_file_holds_the_scripts_of_the_entry_and_the_configuration(tmp_path: Path) -> None:
    folder = scripts_folder()
    head = (folder / HEAD).read_bytes()
    content = one_file(folder, dict(CONFIGURATION), SCRIPTS).content
    scripts = {file.relative_to(folder).as_posix(): file for file in SCRIPTS}
    assert HEAD not in scripts and {"pcs_node.sh", "steps/imex.sh", "releases/2026.11.lock"} <= set(scripts)
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(content.removeprefix(head)))) as archive:
        inside = {one.name: (one, archive.extractfile(one)) for one in archive.getmembers()}
        texts = {name: file.read() for name, (_, file) in inside.items() if file}

    assert set(texts) == {*scripts, "cluster.json"}
    assert json.loads(texts.pop("cluster.json")) == CONFIGURATION
    for name, text in texts.items():
        assert text == scripts[name].read_bytes()
        assert bool(inside[name][0].mode & 0o100) == bool(scripts[name].stat().st_mode & 0o100)


def test_bash_and_tar_unpack_it(tmp_path: Path) -> None:
    """Run as PCS runs it, with an entry that is not there: unpacking is all that happens."""
    file = tmp_path / "downloaded"
    file.write_bytes(one_file(scripts_folder(), dict(CONFIGURATION), SCRIPTS).content)
    result = subprocess.run(
        ["bash", str(file), "nothing"],
        env={"PATH": os.environ["PATH"], "ULTRACLUSTER_ROOT": str(tmp_path / "root")},
        capture_output=True,
        text=True,
        check=False,
    )
    (unpacked,) = (tmp_path / "root/opt/ultracluster/unpacked").iterdir()

    assert (result.returncode, result.stderr) == (2, "there is no entry nothing.sh in downloaded\n")
    assert (unpacked / "pcs_node.sh").stat().st_mode & 0o100
    assert json.loads((unpacked / "cluster.json").read_text()) == CONFIGURATION


def test_the_same_scripts_are_the_same_bytes_wherever_they_lie(tmp_path: Path) -> None:
    """Another checksum replaces nodes: times, owners and the compressor's release must not count."""
    copy = tmp_path / "elsewhere"
    shutil.copytree(scripts_folder(), copy)
    for file in copy.rglob("*"):
        os.utime(file, (1, 1))
    first = one_file(scripts_folder(), {"a": 1, "b": 2}, SCRIPTS)
    files = [copy / file.relative_to(scripts_folder()) for file in SCRIPTS]

    assert one_file(copy, {"b": 2, "a": 1}, files) == first
    assert one_file(copy, {"a": 1, "b": 3}, files) != first
    (copy / "pcs_node.sh").chmod(0o644)
    assert one_file(copy, {"a": 1, "b": 2}, files) != first


def test_without_lifecycle_nothing_is_uploaded_and_nothing_runs(tmp_path: Path) -> None:
    result = bare(tmp_path, scripts_bucket=None)

    assert not result.resources("Custom::CDKBucketDeployment")
    assert "NodeLifecycleActions" not in group_of(result, "train")


# Slurm


@pytest.mark.parametrize(
    ("kind", "config", "gres", "record"),
    [
        ("p5.48xlarge", {}, "gpu:h100:8", {"Type": "h100", "File": "/dev/nvidia[0-7]"}),
        ("p5.4xlarge", {}, "gpu:h100:1", {"Type": "h100", "File": "/dev/nvidia0"}),
        ("g6e.12xlarge", {}, "gpu:l40s:4", {"Type": "l40s", "File": "/dev/nvidia[0-3]"}),
        ("p5.48xlarge", {"slurm_version": "26.05"}, None, None),
        ("p5.48xlarge", {"gpu_types": False}, None, None),
        ("trn2.48xlarge", {}, None, None),
        ("m7i.2xlarge", {}, None, None),
    ],
)
def test_gpus_by_type(
    kind: str, config: dict[str, Any], gres: str | None, record: dict[str, str] | None, tmp_path: Path
) -> None:
    result = bare(tmp_path, config=Pcs(kind="pcs", **config), node_groups={"train": compute(kind)})
    slurm = group_of(result, "train").get("SlurmConfiguration")

    if gres is None or record is None:
        assert slurm is None
    else:
        assert slurm == {
            "GresCustomSettings": [{"Name": "gpu"} | record],
            "SlurmCustomSettings": [{"ParameterName": "Gres", "ParameterValue": gres}],
        }


@pytest.mark.parametrize(
    ("asked", "nodes", "size"),
    [(None, 31, "SMALL"), (None, 32, "MEDIUM"), ("large", 1, "LARGE"), (None, 512, "LARGE")],
)
def test_the_smallest_size_that_holds_login_and_compute_nodes(
    asked: Any, nodes: int, size: str, tmp_path: Path
) -> None:
    groups = {"login": login(), "train": compute(count=0, max_count=nodes)}
    result = bare(tmp_path, config=Pcs(kind="pcs", size=asked), node_groups=groups)

    assert only(result, "AWS::PCS::Cluster")["Size"] == size
    assert group_of(result, "login")["ScalingConfiguration"] == {"MinInstanceCount": 1, "MaxInstanceCount": 1}
    assert group_of(result, "train")["ScalingConfiguration"] == {
        "MinInstanceCount": 0,
        "MaxInstanceCount": nodes,
    }


def test_one_queue_for_each_partition_with_its_settings(tmp_path: Path) -> None:
    config = Pcs(
        kind="pcs",
        partitions={
            "train": Partition(slurm_settings={"MaxTime": "1-00:00:00"}),
            "shared": Partition(exclusive=False, slurm_settings={"PriorityTier": 2}),
        },
    )
    groups = {
        "login": login(),
        "first": compute(),
        "second": compute(),
        "small": compute("g6e.12xlarge", partition="shared"),
    }
    result = bare(tmp_path, config=config, node_groups=groups)
    queues = {
        queue["Properties"]["Name"]: queue["Properties"]
        for queue in result.resources("AWS::PCS::Queue").values()
    }
    settings = {
        name: {
            one["ParameterName"]: one["ParameterValue"]
            for one in queue["SlurmConfiguration"]["SlurmCustomSettings"]
        }
        for name, queue in queues.items()
    }

    assert settings == {
        "train": {"MaxTime": "1-00:00:00", "OverSubscribe": "EXCLUSIVE", "Default": "YES"},
        "shared": {"PriorityTier": "2"},
    }
    assert {name: len(queue["ComputeNodeGroupConfigurations"]) for name, queue in queues.items()} == {
        "train": 2,
        "shared": 1,
    }


RACK = {"rack": compute("p6e-gb200.36xlarge", count=18, partition="rack", capacity=BLOCK)}
IMEX = {"Prolog": PROLOG, "PrologFlags": "Alloc,NoHold"}


@pytest.mark.parametrize(
    ("groups", "config", "expected"),
    [
        (RACK, {}, IMEX),
        ({"train": compute()}, {}, {}),
        ({"trn2": compute("trn2u.48xlarge", capacity=BLOCK)}, {}, {}),  # NeuronLink knows no IMEX
        (RACK, {"imex": False}, {}),
        (RACK, {"lifecycle": "none"}, {}),  # nobody would put the prolog there
        (RACK, {"slurm_settings": {"MinJobAge": 300}}, IMEX | {"MinJobAge": "300"}),
        (
            RACK,
            {"slurm_settings": {"prologflags": "Alloc"}},
            {"Prolog": PROLOG, "prologflags": "Alloc"},
        ),
        (
            RACK,
            {"slurm_settings": {"Prolog": "/mine"}},
            {"Prolog": "/mine", "PrologFlags": "Alloc,NoHold"},
        ),
    ],
)
def test_ultraservers_run_the_imex_prolog(
    tmp_path: Path, groups: dict[str, NodeGroup], config: dict[str, Any], expected: dict[str, str]
) -> None:
    asked = Pcs(kind="pcs", **config)
    result = made(tmp_path, config=asked, node_groups={"login": login(), **groups})
    settings = only(result, "AWS::PCS::Cluster")["SlurmConfiguration"].get("SlurmCustomSettings", [])

    assert {one["ParameterName"]: one["ParameterValue"] for one in settings} == expected


def test_the_scripts_put_the_prolog_where_slurm_looks_for_it() -> None:
    step = (scripts_folder() / "steps" / "imex.sh").read_text()

    assert f"readonly PROLOG={PROLOG}\n" in step


def test_what_is_said_of_a_partition_is_not_said_twice(tmp_path: Path) -> None:
    said = Partition(slurm_settings={"oversubscribe": "EXCLUSIVE", "default": "NO"})
    queue = only(bare(tmp_path, config=Pcs(kind="pcs", partitions={"train": said})), "AWS::PCS::Queue")

    assert [one["ParameterName"] for one in queue["SlurmConfiguration"]["SlurmCustomSettings"]] == [
        "oversubscribe",
        "default",
    ]


def test_who_the_nodes_are_and_that_they_wait_for_their_policy(tmp_path: Path) -> None:
    result = bare(tmp_path, node_tags={"project": "models"})
    (role,) = result.resources("AWS::IAM::Role").values()
    profile = only(result, "AWS::IAM::InstanceProfile")
    policy_id, policy = next(iter(result.resources("AWS::IAM::Policy").items()))
    actions = {s["Sid"]: s["Action"] for s in policy["Properties"]["PolicyDocument"]["Statement"]}
    tags = template_of(result, "train")["TagSpecifications"]

    assert role["Properties"]["Path"] == profile["Path"] == ROLE_PATH
    assert actions["RegisterNode"] == "pcs:RegisterComputeNodeGroupInstance"
    for group in result.resources("AWS::PCS::ComputeNodeGroup").values():
        assert policy_id.split("/")[1] in group["DependsOn"]
    assert [{"Key": "project", "Value": "models"} in one["Tags"] for one in tags] == [True] * 3


# The API's own model

KNOWN = {
    "clusterId": "pcs_0123456789",
    "computeNodeGroupId": "pcs_0123456789",
    "iamInstanceProfileArn": "arn:aws:iam::111122223333:instance-profile/aws-pcs/nodes",
    "id": "lt-0123456789abcdef0",
    "version": "1",
    "subnetIds": "subnet-0123456789abcdef0",
    "securityGroupIds": "sg-0123456789abcdef0",
    "scriptLocation": "s3://example-scripts/cluster/0123456789ab/node.sh",
    "arguments": "fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com",
}
"""What a deploy puts in place of each token, by field of the API."""
RENAMED: dict[str, dict[str, str]] = {
    "AWS::PCS::Cluster": {"name": "clusterName"},
    "AWS::PCS::ComputeNodeGroup": {"name": "computeNodeGroupName", "clusterId": "clusterIdentifier"},
    "AWS::PCS::Queue": {"name": "queueName", "clusterId": "clusterIdentifier"},
}
OPERATIONS = {
    "AWS::PCS::Cluster": "CreateClusterRequest",
    "AWS::PCS::ComputeNodeGroup": "CreateComputeNodeGroupRequest",
    "AWS::PCS::Queue": "CreateQueueRequest",
}


def request(kind: str, properties: dict[str, Any]) -> dict[str, Any]:
    """CloudFormation's properties as the API takes them."""
    fields: dict[str, Any] = as_api(properties, "")
    if "scalingConfiguration" in fields and "customLaunchTemplate" in fields:
        template = fields["customLaunchTemplate"]
        fields["customLaunchTemplate"] = {"id": template["templateId"], "version": template["version"]}
    return {RENAMED[kind].get(name, name): value for name, value in fields.items()}


def as_api(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref")):
            return KNOWN.get(key) or KNOWN["id"]
        if key in ("tags", "gresCustomSettings"):
            return value
        return {small(name): as_api(part, small(name)) for name, part in value.items()}
    if isinstance(value, list):
        return [as_api(part, key) for part in value]
    return value


def small(name: str) -> str:
    return "s3VersionId" if name == "S3VersionId" else name[0].lower() + name[1:]


def problems(value: Any, shape: Any, path: str) -> Iterator[str]:
    """What the client-side validator of botocore leaves to the service: patterns and enumerations."""
    if shape.type_name == "structure":
        for name, part in value.items():
            yield from problems(part, shape.members[name], f"{path}.{name}")
    elif shape.type_name == "list":
        for index, part in enumerate(value):
            yield from problems(part, shape.member, f"{path}[{index}]")
    elif shape.type_name == "string":
        pattern, longest = shape.metadata.get("pattern"), shape.metadata.get("max")
        if (pattern and not re.fullmatch(pattern, value)) or (longest and len(value) > longest):
            yield f"{path}: {value!r}"
        if shape.enum and value not in shape.enum:
            yield f"{path}: {value!r} is none of {shape.enum}"


def refused(kind: str, properties: dict[str, Any]) -> list[str]:
    shape = MODEL.shape_for(OPERATIONS[kind])
    # CloudFormation reads parameters before it asks the service
    text = re.sub(r"\{\{resolve:ssm:[^}]+\}\}", IMAGE, json.dumps(properties))
    fields = request(kind, json.loads(text))
    report = ParamValidator().validate(fields, shape).generate_report()
    return ([report] if report else []) + list(problems(fields, shape, ""))


@pytest.mark.parametrize("kind", OPERATIONS)
def test_the_api_takes_what_is_shipped(kind: str, synthesised: Get) -> None:
    resources = synthesised("pcs-p6-b200").resources(kind)

    assert resources
    for resource in resources.values():
        assert refused(kind, resource["Properties"]) == []


def test_the_check_can_fail(synthesised: Get) -> None:
    kind = "AWS::PCS::ComputeNodeGroup"
    for resource in synthesised("pcs-p6-b200").resources(kind).values():
        properties = resource["Properties"]
        assert "under_score" in refused(kind, properties | {"Name": "under_score"})[0]
        assert "latest" in refused(kind, properties | {"AmiId": "latest"})[0]
        assert "PurchaseOption" in str(refused(kind, properties | {"PurchaseOption": "PurchaseOption"}))
        assert refused(kind, properties | {"ScalingConfiguration": {"MinInstanceCount": -1}})

"""A PCS cluster in another team's stack: what stands in it, in which order, and what is refused."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Validations
from cdk_nag import AwsSolutionsChecks
from pcs_support import (
    Bench,
    bare,
    compute,
    group_of,
    login,
    made,
    only,
    template_of,
    unjudged,
)
from templates import app_in, cfn_lint, finish

from ultracluster import LustreFileSystem, OpenZfsFileSystem
from ultracluster.catalog.pcs import pcs_image_parameter
from ultracluster.clusters.pcs.cluster import ROLE_PATH
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.pcs import Pcs
from ultracluster.lifecycle.bundles import NODE_FILE


def test_it_stands_alone_in_a_strangers_stack(tmp_path: Path) -> None:
    """Strict validation, cdk-nag and cfn-lint find nothing; every mount is there."""
    app = app_in(tmp_path)
    bench = Bench(app, judged=True)
    image = pcs_image_parameter("x86_64")
    bench.add(
        node_groups={
            name: one.model_copy(update={"image": image})
            for name, one in {"login": login(), "train": compute()}.items()
        },
        lustre=LustreFileSystem.from_lustre_attributes(
            bench.stack,
            "Lustre",
            file_system_id="fs-0123456789abcdef0",
            dns_name="fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com",
            mount_name="abcdefgh",
            efa=True,
        ),
        open_zfs=OpenZfsFileSystem.from_open_zfs_attributes(
            bench.stack,
            "OpenZfs",
            file_system_id="fs-0fedcba9876543210",
            dns_name="fs-0fedcba9876543210.fsx.us-east-2.amazonaws.com",
        ),
        mirror="s3://example-mirror/releases",
    )
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    result = finish(app, tmp_path)

    # which packages a mirror holds is recorded in the release that was mirrored; an app has no lock of images
    expected = ("SOF004", "IMG007")
    assert result.findings == {(f"Annotation::ultracluster:{rule}", "research/cluster") for rule in expected}
    assert cfn_lint([tmp_path / "research.template.json"], "us-east-2") == ""
    script = group_of(result, "train")["NodeLifecycleActions"]["Stages"]["NodeBootstrapped"][0]
    assert script["Arguments"] == [
        "pcs_node",
        *("--lustre", "/fsx", "fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com", "abcdefgh", "yes"),
        *("--openzfs", "/home", "fs-0fedcba9876543210.fsx.us-east-2.amazonaws.com", "/fsx"),
        *("--state", script["Arguments"][11]),
        *("--group", "train"),
    ]
    assert script["Arguments"][11] == "s3://example-scripts/cluster/state"
    assert (script["ExecutionPolicy"], script["OnError"]) == ("EVERY_BOOT", "TERMINATE")


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ({"train": compute(image=None)}, "node_groups.train.image: "),
        ({"head": compute().model_copy(update={"role": "controller"})}, "node_groups.head.role: "),
        ({"rack": compute("p6e-gb200.36xlarge")}, "sold .*UltraServers"),
        ({"train": compute("p99.48xlarge")}, "node_groups.train.instance_type: .*no instance type `p99.48xl"),
    ],
)
def test_what_cannot_be_made_is_refused_in_the_words_of_rules(
    groups: dict[str, NodeGroup], says: str, tmp_path: Path
) -> None:
    bench = Bench(app_in(tmp_path), judged=True)

    with pytest.raises(ValueError, match=says):
        bench.add(node_groups=groups)


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

    names = {logical_id for logical_id, _ in clusters.values()}
    waits = {name: names.intersection(one.get("DependsOn", [])) for name, (_, one) in clusters.items()}
    assert waits == {"alpha": set(), "beta": {clusters["alpha"][0]}, "gamma": set(), "delta": set()}
    assert "first" in manifest["second"]["dependencies"]
    assert not {"first", "second"} & set(manifest["abroad"]["dependencies"])


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


def test_without_lifecycle_nothing_is_uploaded_and_nothing_runs(tmp_path: Path) -> None:
    result = bare(tmp_path, scripts_bucket=None)

    assert not result.resources("Custom::CDKBucketDeployment")
    assert "NodeLifecycleActions" not in group_of(result, "train")


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


def test_who_the_nodes_are_and_that_they_wait_for_their_policy(tmp_path: Path) -> None:
    result = bare(tmp_path, node_tags={"project": "models"})
    tags = template_of(result, "train")["TagSpecifications"]
    profiles = result.resources("AWS::IAM::InstanceProfile")
    policies = {
        policy["Properties"]["Roles"][0]["Ref"]: (name.split("/")[1], policy["Properties"]["PolicyDocument"])
        for name, policy in result.resources("AWS::IAM::Policy").items()
    }

    for one in (*result.resources("AWS::IAM::Role").values(), *profiles.values()):
        assert one["Properties"]["Path"] == ROLE_PATH
    groups = result.resources("AWS::PCS::ComputeNodeGroup").values()
    assert len({str(group["Properties"]["IamInstanceProfileArn"]) for group in groups}) == len(profiles) == 2
    for group in groups:
        profile = group["Properties"]["IamInstanceProfileArn"]["Fn::GetAtt"][0]
        (role,) = next(p["Properties"]["Roles"] for name, p in profiles.items() if name.endswith(profile))
        policy, document = policies[role["Ref"]]
        actions = {s["Sid"]: s["Action"] for s in document["Statement"]}
        assert policy in group["DependsOn"]
        assert actions["RegisterNode"] == "pcs:RegisterComputeNodeGroupInstance"
    assert [{"Key": "project", "Value": "models"} in one["Tags"] for one in tags] == [True] * 3


def test_a_cluster_over_ipv6_is_asked_for_only_where_it_is_wanted(tmp_path: Path) -> None:
    """By default the property is left out: it is create-only, and clusters that exist stay."""
    both = [
        bare(tmp_path / name, config=Pcs(kind="pcs", network_type=name), node_groups={"train": compute()})
        for name in ("ipv4", "ipv6")
    ]
    networks = [only(one, "AWS::PCS::Cluster")["Networking"] for one in both]
    assert [one.get("NetworkType") for one in networks] == [None, "IPV6"]

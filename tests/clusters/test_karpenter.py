"""Karpenter on EKS: the objects that it reads, what its controller may do, and what waits for what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from rules_support import changed, environment_data, loaded
from templates import Synthesised, Template, assembly, cfn_lint, many, statements

from ultracluster.catalog import InstanceType, instance_types
from ultracluster.catalog.eks import charts, node_image_date
from ultracluster.config import InvalidEnvironmentError
from ultracluster.config.capacity import Capacity, CapacityBlock, OnDemand, Reservation, Spot
from ultracluster.config.kubernetes import Eks
from ultracluster.config.nodes import NodeGroup, Taint
from ultracluster.kubernetes.karpenter import karpenter_charts, node_class, node_pool
from ultracluster.model import resolve
from ultracluster.model.network_cards import network_card_plan
from ultracluster.rules import check

FIELDS = json.loads(Path(__file__).with_name("karpenter_fields.json").read_text())["kinds"]
KEY = "arn:aws:kms:us-east-2:111122223333:key/12345678-1234-1234-1234-123456789012"
ID = "cr-0a1b2c3d4e5f60718"
BLOCK = CapacityBlock(kind="capacity-block", id=ID)
P5 = instance_types()["p5.48xlarge"]
TYPES = [t for t in instance_types().values() if t.accelerator and t.efa_interfaces and not t.ultraserver]
CHANGES: dict[str, Any] = {
    "tags": {"project": "vision"},
    "node_groups.burst": {"role": "compute", "instance_type": "p5.48xlarge", "count": 0, "max_count": 8},
    "node_groups.Block": {
        "role": "compute",
        "instance_type": "p5.48xlarge",
        "count": 2,
        "capacity": {"kind": "capacity-block", "id": ID},
    },
    "node_groups.notebooks": {
        "role": "compute",
        "instance_type": "g6.4xlarge",
        "count": 0,
        "max_count": 3,
        "gpu_time_slices": 4,
        "capacity": {"kind": "spot"},
    },
    "orchestrator.karpenter": {"groups": ["burst", "Block", "notebooks"], "idle_minutes": 20},
}


def a_group(known: InstanceType = P5, **fields: Any) -> NodeGroup:
    return NodeGroup(**{"role": "compute", "instance_type": known.name, "count": 0, "max_count": 4} | fields)


def a_class(group: NodeGroup | None = None, known: InstanceType = P5, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "kubernetes_version": "1.34",
        "instance_profile": "nodes",
        "subnet_id": "subnet-0123456789abcdef0",
        "security_group_ids": ["sg-0123456789abcdef0"],
        "key_arn": KEY,
    }
    return node_class("Train", group or a_group(known), known, **given | more)


def a_pool(group: NodeGroup | None = None, known: InstanceType = P5) -> dict[str, Any]:
    return node_pool("Train", group or a_group(known), known, idle_minutes=10)


# --- the objects, against the table of Karpenter's own fields --------------------------------------------

KINDS = {"string": str, "boolean": bool, "integer": int, "array": list, "object": dict}


def faults(value: Any, field: dict[str, Any], at: str = "spec") -> Iterator[str]:
    """What Karpenter's definitions, read strictly, say against a value."""
    if type(value) is not KINDS[field["type"]]:
        yield f"{at}: {value!r} is no {field['type']}"
        return
    if value not in field.get("choices", [value]):
        yield f"{at}: {value!r} is none of {field['choices']}"
    if isinstance(value, int) and not field.get("least", value) <= value <= field.get("most", value):
        yield f"{at}: {value} is out of range"
    if isinstance(value, list):
        if len(value) > field.get("most_items", len(value)):
            yield f"{at}: too many"
        for index, one in enumerate(value):
            yield from faults(one, field["each"], f"{at}[{index}]")
    if isinstance(value, dict):
        yield from (f"{at}.{name} is missing" for name in field.get("required", []) if name not in value)
        for name, one in value.items():
            if name in field.get("fields", {}):
                yield from faults(one, field["fields"][name], f"{at}.{name}")
            elif not field.get("values"):
                yield f"{at}.{name}: there is no such field"


def all_faults(manifest: dict[str, Any]) -> list[str]:
    kind = FIELDS[manifest["kind"]]
    said = list(faults(manifest["spec"], kind["spec"]))
    if manifest["apiVersion"] != kind["apiVersion"] or set(manifest) != {
        "apiVersion", "kind", "metadata", "spec"
    }:  # fmt: skip
        said.append("wrong head")
    return said


CAPACITIES: list[tuple[Capacity, list[str], dict[str, str] | None]] = [
    (OnDemand(), ["on-demand"], None),
    (Spot(kind="spot"), ["spot"], None),
    (Reservation(kind="reservation", id=ID), ["reserved"], {"id": ID}),
    (Reservation(kind="reservation"), ["reserved", "on-demand"], {"instanceMatchCriteria": "open"}),
    (BLOCK, ["reserved"], {"id": ID}),
]


@pytest.mark.parametrize(("capacity", "types", "selected"), CAPACITIES)
def test_capacity_is_selected_explicitly(
    capacity: Capacity, types: list[str], selected: dict[str, str] | None
) -> None:
    group = a_group(capacity=capacity)
    made, pool = a_class(group), a_pool(group)

    assert all_faults(made) + all_faults(pool) == []
    assert made["spec"].get("capacityReservationSelectorTerms") == ([selected] if selected else None)
    wanted = {one["key"]: one["values"] for one in pool["spec"]["template"]["spec"]["requirements"]}
    assert wanted["karpenter.sh/capacity-type"] == types


def test_a_resource_group_cannot_be_selected() -> None:
    arn = "arn:aws:resource-groups:us-east-2:111122223333:group/a"
    with pytest.raises(ValueError, match="not by the resource group"):
        a_class(a_group(capacity=Reservation(kind="reservation", resource_group_arn=arn)))


@pytest.mark.parametrize("known", TYPES, ids=lambda t: t.name)
def test_every_type_with_efa_has_its_interfaces(known: InstanceType) -> None:
    made, pool = a_class(known=known), a_pool(known=known)
    interfaces = made["spec"]["networkInterfaces"]
    places = [(one["networkCardIndex"], one["deviceIndex"]) for one in interfaces]
    efas = [one["networkCardIndex"] for one in interfaces if one["interfaceType"] == "efa-only"]

    assert all_faults(made) + all_faults(pool) == []
    # rules of the definition that stand beside its fields
    assert interfaces[0] == {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
    assert len(set(places)) == len(places) and len(set(efas)) == len(efas)
    assert len(interfaces) == len(network_card_plan(known)) and len(efas) == known.efa_interfaces
    assert "associatePublicIPAddress" not in made["spec"]
    (arch,) = [
        one["values"]
        for one in pool["spec"]["template"]["spec"]["requirements"]
        if one["key"] == "kubernetes.io/arch"
    ]
    assert arch == ["arm64" if known.architecture == "arm64" else "amd64"]


def test_a_type_without_efa_has_one_interface_and_no_public_address() -> None:
    made = a_class(known=instance_types()["g6.4xlarge"])

    assert all_faults(made) == []
    assert len(made["spec"]["networkInterfaces"]) == 1 and made["spec"]["associatePublicIPAddress"] is False


def test_nodes_are_launched_as_by_a_launch_template() -> None:
    spec = a_class(placement_group="mine", user_data="#!/bin/bash\n", tags={"Name": "a"})["spec"]
    (volume,) = spec["blockDeviceMappings"]

    assert spec["amiSelectorTerms"] == [{"alias": f"al2023@v{node_image_date('1.34')}"}]
    assert volume["ebs"]["encrypted"] is True and volume["ebs"]["kmsKeyID"] == KEY
    assert volume["ebs"]["volumeSize"] == "200Gi" and "snapshotID" not in volume["ebs"]
    assert spec["metadataOptions"]["httpTokens"] == "required"
    assert spec["metadataOptions"]["httpPutResponseHopLimit"] == 1
    assert spec["placementGroupSelector"] == {"name": "mine"}
    assert spec["instanceProfile"] == "nodes" and "role" not in spec, "one of the two"
    assert spec["userData"].startswith("#!") and spec["tags"] == {"Name": "a"}


def test_an_image_of_ones_own_is_named_alone() -> None:
    spec = a_class(a_group(image="ami-0123456789abcdef0"))["spec"]

    assert spec["amiSelectorTerms"] == [{"id": "ami-0123456789abcdef0"}]
    assert spec["amiFamily"] == "AL2023", "it must be said where no alias says it"


def test_an_elastic_pool_grows_from_nothing_to_the_greatest_number() -> None:
    spec = a_pool()["spec"]

    assert "replicas" not in spec
    assert spec["limits"] == {"nodes": "4", "cpu": str(4 * P5.vcpu)}
    assert spec["disruption"]["consolidationPolicy"] == "WhenEmpty"
    assert spec["disruption"]["consolidateAfter"] == "10m"
    assert spec["template"]["spec"]["expireAfter"] == "Never"


def test_a_static_pool_has_no_limit_but_its_nodes() -> None:
    made = a_pool(a_group(count=2, max_count=None))

    assert all_faults(made) == []
    assert made["spec"]["replicas"] == 2 and made["spec"]["limits"] == {"nodes": "2"}
    assert "weight" not in made["spec"]


def test_no_job_loses_its_node_to_a_newer_image() -> None:
    budgets = {one["reasons"][0]: one["nodes"] for one in a_pool()["spec"]["disruption"]["budgets"]}

    assert budgets == {"Drifted": "0", "Empty": "100%"}


def test_labels_and_taints_are_those_of_managed_nodes() -> None:
    template = a_pool()["spec"]["template"]
    assert template["metadata"]["labels"] == {
        "nvidia.com/gpu.present": "true",
        "ultracluster/node-group": "Train",
        "ultracluster/role": "compute",
    }
    assert template["spec"]["taints"] == [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    ]
    own = a_pool(a_group(labels={"team": "a"}, taints=(Taint(key="team", effect="NoExecute"),)))
    assert own["spec"]["template"]["metadata"]["labels"]["team"] == "a"
    assert own["spec"]["template"]["spec"]["taints"] == [{"key": "team", "effect": "NoExecute"}]


def test_names_have_no_capitals_and_belong_together() -> None:
    made, pool = a_class(), a_pool()

    assert made["metadata"]["name"] == pool["metadata"]["name"] == "train"
    assert pool["spec"]["template"]["spec"]["nodeClassRef"] == {
        "group": made["apiVersion"].partition("/")[0],
        "kind": made["kind"],
        "name": "train",
    }


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("networkInterface", [], "no such field"),
        ("amiFamily", "AL2022", "none of"),
        ("detailedMonitoring", "yes", "no boolean"),
        ("subnetSelectorTerms", ..., "is missing"),
        ("networkInterfaces", [{"deviceIndex": -1}], "out of range"),
        ("networkInterfaces", [{"interfaceType": "efa"}], "none of"),
    ],
)  # fmt: skip
def test_the_check_of_fields_can_fail(path: str, value: Any, says: str) -> None:
    made = a_class()
    if value is ...:
        del made["spec"][path]
    else:
        made["spec"][path] = value
    assert any(says in one for one in all_faults(made))


# --- charts ----------------------------------------------------------------------------------------------


def charts_of(**changes: Any) -> list[Any]:
    data = changed(environment_data("eks-p5en"), {**CHANGES, **changes})
    cluster = resolve(loaded(data).environment)
    assert isinstance(cluster.settings, Eks)
    return list(karpenter_charts(cluster, cluster.settings, queue="interruptions"))


def test_definitions_come_before_the_controller() -> None:
    definitions, controller = charts_of()

    assert definitions.name == "karpenter-crd" and controller.name == "karpenter"
    assert definitions.version == controller.version == "1.14.1"
    assert sorted(controller.values) == charts()["karpenter"]["keys"]
    assert sorted(definitions.values) == charts()["karpenter-crd"]["keys"]
    settings = controller.values["settings"]
    assert settings["clusterName"] == "eks-p5en" and settings["interruptionQueue"] == "interruptions"
    assert settings["isolatedVPC"] is False
    assert settings["featureGates"] == {"staticCapacity": True, "nodeRepair": True}
    assert controller.values["replicas"] == 2


def test_alpha_features_are_on_only_where_they_are_needed() -> None:
    changes = {
        "node_groups.Block": ...,
        "orchestrator.karpenter": {"groups": ["burst"]},
        "orchestrator.node_repair": {"enabled": False},
        "node_groups.system.count": 1,
    }
    _, controller = charts_of(**changes)

    assert controller.values["settings"]["featureGates"] == {"staticCapacity": False, "nodeRepair": False}
    assert controller.values["replicas"] == 1, "a second one would wait for ever"


def test_hyperpod_has_its_own() -> None:
    data = changed(environment_data("hyperpod-eks-p5"), {"orchestrator.karpenter": {"groups": ["train"]}})
    with pytest.raises(InvalidEnvironmentError, match="it belongs to eks"):
        loaded(data)


# --- the stack -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made() -> Synthesised:
    one = loaded(changed(environment_data("eks-p5en"), CHANGES))
    assert not [finding for finding in check(one) if finding.blocks]
    return assembly(one.environment)


@pytest.fixture(scope="module")
def system(made: Synthesised) -> Template:
    """Where Karpenter is."""
    return made.templates["eks-p5en-system"]


@pytest.fixture(scope="module")
def nodes(made: Synthesised) -> Template:
    """Where its pools are."""
    return made.templates["eks-p5en-cluster"]


def the(template: Template, kind: str, holds: str = "") -> str:
    (found,) = [
        name
        for name, one in template["Resources"].items()
        if one["Type"] == kind and holds in name + json.dumps(one)
    ]
    return found


def objects(template: Template) -> dict[str, list[dict[str, Any]]]:
    """What each resource applies; values that are known later only are written `late`."""
    made: dict[str, list[dict[str, Any]]] = {}
    for name, one in template["Resources"].items():
        if one["Type"] == "Custom::AWSCDK-EKS-KubernetesResource":
            text = one["Properties"]["Manifest"]
            if isinstance(text, dict):
                text = "".join(part if isinstance(part, str) else "late" for part in text["Fn::Join"][1])
            made[name] = json.loads(text)
    return made


def needs(template: Template, logical_id: str) -> set[str]:
    found: set[str] = set()
    pending = [logical_id]
    while pending:
        one = template["Resources"][pending.pop()]
        text = json.dumps(one.get("Properties", {}))
        near = set(many(one.get("DependsOn", [])))
        near |= {name for name in template["Resources"] if f'"{name}"' in text}
        found, pending = found | near, pending + list(near - found)
    return found


def test_nothing_is_found_against_it(made: Synthesised) -> None:
    assert made.findings == set()
    assert cfn_lint(made.files, "us-east-2") == ""


def test_managed_groups_are_the_others(system: Template, nodes: Template) -> None:
    managed = [
        one["Properties"]["Labels"]["ultracluster/node-group"]
        for one in (*system["Resources"].values(), *nodes["Resources"].values())
        if one["Type"] == "AWS::EKS::Nodegroup"
    ]
    pools = {
        one["metadata"]["name"]: one
        for applied in objects(nodes).values()
        for one in applied
        if one["kind"] == "NodePool"
    }

    assert sorted(managed) == ["system", "train"]
    assert sorted(pools) == ["block", "burst", "notebooks"]
    labels = pools["notebooks"]["spec"]["template"]["metadata"]["labels"]
    assert labels["nvidia.com/device-plugin.config"] == "time-slices-4"


def test_what_is_applied_has_the_fields_of_karpenter(nodes: Template) -> None:
    ours = [one for applied in objects(nodes).values() for one in applied if one["kind"] in FIELDS]

    assert len(ours) == 6
    assert [fault for one in ours for fault in all_faults(one)] == []
    classes = {one["metadata"]["name"]: one["spec"] for one in ours if one["kind"] == "EC2NodeClass"}
    assert "placementGroupSelector" in classes["burst"], "on demand, with EFA"
    assert "placementGroupSelector" not in classes["block"], "a block is a place of its own"
    assert "placementGroupSelector" not in classes["notebooks"]
    assert "eks_user_data --group burst" in classes["burst"]["userData"]
    assert classes["burst"]["tags"] == {"Name": "eks-p5en-cluster/burst", "project": "vision"}
    for one in ours:  # the head of an object is Kubernetes' own
        head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": one["metadata"]}
        kubernetes_validate.validate(head, "1.34", strict=True)


def test_pools_wait_for_karpenter_and_karpenter_for_its_rights(made: Synthesised, system: Template) -> None:
    """And it is still there when they go: stacks are deleted in the opposite order."""
    chart = "Custom::AWSCDK-EKS-HelmChart"
    definitions, controller = the(system, chart, '"karpenter-crd"'), the(system, chart, '"karpenter"')
    rights = the(system, "AWS::IAM::Policy", "LaunchFromOwnTemplates")
    manifest = json.loads((made.folder / "manifest.json").read_text())["artifacts"]

    assert "eks-p5en-system" in manifest["eks-p5en-cluster"]["dependencies"]
    assert {definitions, rights, the(system, "AWS::EKS::PodIdentityAssociation")} <= needs(system, controller)
    assert the(system, "AWS::EKS::AccessEntry", "EC2_LINUX") in needs(system, controller)
    assert the(system, "AWS::EKS::Nodegroup", '"system"') in needs(system, controller)


def test_the_queue_is_encrypted_and_eventbridge_alone_writes_to_it(system: Template) -> None:
    queue = system["Resources"][the(system, "AWS::SQS::Queue")]["Properties"]
    rule = the(system, "AWS::Events::Rule", "aws.health")
    document = system["Resources"][the(system, "AWS::SQS::QueuePolicy")]["Properties"]["PolicyDocument"]
    (deny,) = [one for one in document["Statement"] if one["Effect"] == "Deny"]
    (allow,) = [one for one in document["Statement"] if one["Effect"] == "Allow"]

    assert queue["SqsManagedSseEnabled"] is True and queue["MessageRetentionPeriod"] == 300
    assert deny["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert allow["Principal"] == {"Service": "events.amazonaws.com"}
    assert rule in json.dumps(allow["Condition"]["ArnEquals"]["aws:SourceArn"])
    pattern = system["Resources"][rule]["Properties"]["EventPattern"]
    assert "EC2 Spot Instance Interruption Warning" in pattern["detail-type"]


def test_the_controller_touches_this_clusters_nodes_alone(system: Template) -> None:
    rights = the(system, "AWS::IAM::Policy", "LaunchFromOwnTemplates")
    said = {one["Sid"]: one for name, one in statements(system) if name == rights}
    nodes = system["Resources"][the(system, "AWS::EKS::AccessEntry", "EC2_LINUX")]["Properties"][
        "PrincipalArn"
    ]

    for sid in ("LaunchFromOwnTemplates", "LaunchNodes", "TagNewNodes", "TagOwnNodes", "EndOwnNodes"):
        assert "kubernetes.io/cluster/eks-p5en" in json.dumps(said[sid]["Condition"]), sid
    assert said["GiveNodesTheirRole"]["Resource"] == nodes
    assert not [one for one in said.values() if any(":*" in action for action in many(one["Action"]))]
    assert not [
        action
        for one in said.values()
        for action in many(one["Action"])
        if action.startswith("iam:") and action not in ("iam:PassRole", "iam:ListInstanceProfiles")
    ]
    anything = {sid for sid, one in said.items() if one["Resource"] == "*"}
    assert anything == {"DescribeNetwork", "Prices", "FindProfiles"}
    size = len(json.dumps([one for name, one in statements(system) if name == rights], separators=(",", ":")))
    assert size < 10_240, "IAM quotas: inline policies of a role"


def test_karpenters_nodes_have_a_role_and_scripts_and_a_key(made: Synthesised, system: Template) -> None:
    nodes = system["Resources"][the(system, "AWS::EKS::AccessEntry", "EC2_LINUX")]["Properties"][
        "PrincipalArn"
    ]
    role = nodes["Fn::GetAtt"][0]
    policies = [
        json.dumps(one["Properties"])
        for one in system["Resources"].values()
        if one["Type"] == "AWS::IAM::Policy" and {"Ref": role} in one["Properties"]["Roles"]
    ]
    (key,) = made.resources("AWS::KMS::Key").values()
    may = json.dumps(key["Properties"]["KeyPolicy"])

    assert any("ReadScripts" in one for one in policies)
    assert "AWSServiceRoleForEC2Spot" in may and "AWSServiceRoleForAutoScaling" in may


def test_an_ultraserver_is_refused_where_rules_were_not_asked() -> None:
    changes = {
        **CHANGES,
        "node_groups.Block.instance_type": "p6e-gb200.36xlarge",
    }
    config = loaded(changed(environment_data("eks-p5en"), changes)).environment
    with pytest.raises(ValueError, match="no type for Karpenter"):
        assembly(config, checked=False)

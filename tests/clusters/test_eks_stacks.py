"""EKS environments as a whole: what waits for what, who may do what, and what an existing network changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded
from templates import Synthesised, Template, assembly, cfn_lint, many, statements

from ultracluster.rules import check

Get = Callable[[str], Synthesised]
NAMES = ["eks-p5en", "eks-trn2"]
VPC = {"id": "vpc-0123456789abcdef0", "cidr": "10.96.0.0/16"}
SUBNETS = ["subnet-0123456789abcdef1", "subnet-0123456789abcdef2"]


def plane(made: Synthesised) -> Template:
    (found,) = [template for name, template in made.templates.items() if name.endswith("-control-plane")]
    return found


def part(made: Synthesised, name: str) -> Template:
    """The template whose stack's name ends so."""
    (found,) = [template for stack, template in made.templates.items() if stack.endswith(f"-{name}")]
    return found


def waits(made: Synthesised) -> dict[str, set[str]]:
    """Stacks that a stack waits for, by the last part of its name."""
    manifest = json.loads((made.folder / "manifest.json").read_text())["artifacts"]
    prefix = next(iter(made.templates)).removesuffix("-buckets") + "-"
    return {
        key.removeprefix(prefix): {
            one.removeprefix(prefix) for one in manifest[key].get("dependencies", []) if one in made.templates
        }
        for key in made.templates
    }


def groups(template: Template) -> dict[str, str]:
    """Logical id of each node group by its name."""
    return {
        resource["Properties"]["Labels"]["ultracluster/node-group"]: logical_id
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == "AWS::EKS::Nodegroup"
    }


def needs(template: Template, logical_id: str) -> set[str]:
    """Everything that CloudFormation makes before a resource."""
    found: set[str] = set()
    pending = [logical_id]
    while pending:
        resource = template["Resources"][pending.pop()]
        near = set(many(resource.get("DependsOn", []))) | set(references(resource.get("Properties", {})))
        new = (near & template["Resources"].keys()) - found
        found |= new
        pending += new
    return found


def references(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from references(one)
    elif isinstance(value, dict):
        if "Ref" in value:
            yield value["Ref"]
        if "Fn::GetAtt" in value:
            yield value["Fn::GetAtt"][0]
        for one in value.values():
            yield from references(one)


def imports(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from imports(one)
    elif isinstance(value, dict):
        if isinstance(value.get("Fn::ImportValue"), str):
            yield value["Fn::ImportValue"]
        for one in value.values():
            yield from imports(one)


# --- what waits for what -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "group"), [("eks-p5en", "train"), ("eks-trn2", "trn2")])
def test_accelerated_nodes_wait_for_nothing_that_they_do_not_need(
    name: str, group: str, synthesised: Get
) -> None:
    made = synthesised(name)
    template = part(made, "cluster")
    before = needs(template, groups(template)[group])
    addons = {
        one["Properties"]["AddonName"]
        for one in plane(made)["Resources"].values()
        if one["Type"] == "AWS::EKS::Addon"
    }

    # the three without which a node does not become ready are there with the control plane
    assert addons == {"eks-pod-identity-agent", "vpc-cni", "kube-proxy"}
    assert waits(made)["cluster"] == {"foundation", "network", "egress", "control-plane"}
    assert {template["Resources"][one]["Type"] for one in before} == {
        "AWS::EC2::LaunchTemplate",
        "AWS::IAM::Policy",
        "AWS::IAM::Role",
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_control_plane_is_made_beside_the_file_system(name: str, synthesised: Get) -> None:
    made = synthesised(name)

    assert waits(made)["control-plane"] == waits(made)["storage"] == {"foundation", "network"}
    assert waits(made)["workloads"] >= {"storage", "control-plane", "system"}
    assert {one.removeprefix(f"{name}-").partition("-")[0] for one in imports(plane(made))} == {
        "foundation",
        "network",
    }


@pytest.mark.parametrize("name", NAMES)
def test_no_node_chart_or_manifest_can_take_the_control_plane_back(name: str, synthesised: Get) -> None:
    kinds = {one["Type"] for one in plane(synthesised(name))["Resources"].values()}

    assert not {one for one in kinds if one.startswith("Custom::")}
    assert "AWS::EKS::Nodegroup" not in kinds


@pytest.mark.parametrize("name", [*NAMES, "hyperpod-eks-p5"])
def test_helm_gives_up_before_its_function_is_ended(name: str, synthesised: Get) -> None:
    """Else nobody says why."""
    made = synthesised(name)
    limits = [
        function["Properties"]["Timeout"]
        for path, function in made.resources("AWS::Lambda::Function").items()
        if "KubectlProviderHandler" in path
    ]
    waits = [
        int(chart["Properties"]["Timeout"].removesuffix("s"))
        for chart in made.resources("Custom::AWSCDK-EKS-HelmChart").values()
        if chart["Properties"].get("Wait")
    ]

    assert waits and limits == [900]
    assert max(waits) <= 600


@pytest.mark.parametrize("name", NAMES)
def test_dns_and_drivers_wait_for_system_nodes(name: str, synthesised: Get) -> None:
    template = part(synthesised(name), "system")
    system = groups(template)["system"]
    waiting = {
        resource["Properties"]["AddonName"]
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == "AWS::EKS::Addon" and system in needs(template, logical_id)
    }

    assert waiting == {"coredns", "aws-ebs-csi-driver", "aws-fsx-csi-driver", "eks-node-monitoring-agent"}


@pytest.mark.parametrize("name", [*NAMES, "hyperpod-eks-p5"])
def test_the_monitoring_agent_watches_gpus_whatever_taints_their_nodes_have(
    name: str, synthesised: Get
) -> None:
    """Without its DCGM server on them the agent calls GPU nodes faulty, and node repair ends them."""
    (agent,) = [
        one["Properties"]
        for one in part(synthesised(name), "system")["Resources"].values()
        if one["Type"] == "AWS::EKS::Addon" and one["Properties"]["AddonName"] == "eks-node-monitoring-agent"
    ]

    assert json.loads(agent["ConfigurationValues"])["dcgmAgent"]["tolerations"] == [{"operator": "Exists"}]


@pytest.mark.parametrize("name", NAMES)
def test_volumes_name_what_the_storage_stack_made(name: str, synthesised: Get) -> None:
    template = part(synthesised(name), "workloads")
    manifests = {
        key: json.dumps(one["Properties"]["Manifest"])
        for key, one in template["Resources"].items()
        if one["Type"] == "Custom::AWSCDK-EKS-KubernetesResource"
    }
    text = "".join(manifests.values())

    assert f"{name}-storage-LustreDnsName" in text and f"{name}-storage-LustreMountName" in text
    assert ("nfs" in text) == (name == "eks-p5en")
    assert "/scratch" in text


# --- who may do what ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_no_role_carries_a_managed_policy(name: str, synthesised: Get) -> None:
    for stack, template in synthesised(name).templates.items():
        for logical_id, resource in template["Resources"].items():
            if resource["Type"] == "AWS::IAM::Role":
                assert "ManagedPolicyArns" not in resource["Properties"], f"{stack}/{logical_id}"


def test_only_admins_and_the_handler_may_use_the_cluster(synthesised: Get) -> None:
    template = plane(synthesised("eks-p5en"))
    entries = [
        r["Properties"] for r in template["Resources"].values() if r["Type"] == "AWS::EKS::AccessEntry"
    ]
    (cluster,) = [r["Properties"] for r in template["Resources"].values() if r["Type"] == "AWS::EKS::Cluster"]

    assert cluster["AccessConfig"] == {
        "AuthenticationMode": "API",
        "BootstrapClusterCreatorAdminPermissions": False,
    }
    assert len(entries) == 2
    assert "arn:aws:iam::111122223333:role/platform-engineers" in [one["PrincipalArn"] for one in entries]
    for one in entries:
        (policy,) = one["AccessPolicies"]
        assert json.dumps(policy["PolicyArn"]).count("AmazonEKSClusterAdminPolicy") == 1


def test_roles_of_pods_are_for_this_cluster_alone(synthesised: Get) -> None:
    made = synthesised("eks-p5en")
    documents = [
        r["Properties"]["AssumeRolePolicyDocument"]
        for r in (*plane(made)["Resources"].values(), *part(made, "system")["Resources"].values())
        if r["Type"] == "AWS::IAM::Role"
        and "pods.eks.amazonaws.com" in json.dumps(r["Properties"]["AssumeRolePolicyDocument"])
    ]

    assert len(documents) == 3  # VPC CNI, EBS, FSx
    for document in documents:
        (statement,) = document["Statement"]
        assert statement["Action"] == ["sts:AssumeRole", "sts:TagSession"]
        assert "cluster/eks-p5en" in json.dumps(statement["Condition"]["ArnEquals"]["aws:SourceArn"])


def test_nodes_read_our_scripts_of_the_assets_and_nothing_else(synthesised: Get) -> None:
    """Also older ones: while a group is updated, nodes still start with the former file."""
    template = part(synthesised("eks-p5en"), "cluster")
    (read,) = [one for _, one in statements(template) if one.get("Sid") == "ReadScripts"]

    assert read["Action"] == "s3:GetObject"
    assert json.dumps(read["Resource"]).count("*") == 1 and "/*.run" in json.dumps(read["Resource"])


# --- the cluster -------------------------------------------------------------------------------------------


def test_the_cluster_is_private_encrypted_protected_and_logs_everything(synthesised: Get) -> None:
    made = synthesised("eks-p5en")
    template = plane(made)
    (cluster,) = [r["Properties"] for r in template["Resources"].values() if r["Type"] == "AWS::EKS::Cluster"]

    assert cluster["Name"] == "eks-p5en" and cluster["Version"] == "1.36"
    assert cluster["ResourcesVpcConfig"]["EndpointPrivateAccess"] is True
    assert cluster["ResourcesVpcConfig"]["EndpointPublicAccess"] is False
    assert len(cluster["ResourcesVpcConfig"]["SubnetIds"]) == 2
    assert len(cluster["Logging"]["ClusterLogging"]["EnabledTypes"]) == 5
    assert cluster["EncryptionConfig"][0]["Resources"] == ["secrets"]
    assert "eks-p5en-foundation-KeyArn" in json.dumps(cluster["EncryptionConfig"])
    assert cluster["BootstrapSelfManagedAddons"] is False
    assert cluster["UpgradePolicy"] == {"SupportType": "STANDARD"}
    assert cluster["ComputeConfig"] == {"Enabled": False}  # no Auto Mode
    groups = made.resources("AWS::Logs::LogGroup")
    (own,) = [
        p for p, r in groups.items() if r["Properties"].get("LogGroupName") == "/aws/eks/eks-p5en/cluster"
    ]
    # EKS makes it again while a control plane goes, so it is in another stack
    assert own.startswith("eks-p5en-foundation/")
    assert "KmsKeyId" in groups[own]["Properties"]
    assert groups[own]["DeletionPolicy"] == "RetainExceptOnCreate"


def test_the_key_lets_auto_scaling_launch_encrypted_nodes(synthesised: Get) -> None:
    template = part(synthesised("eks-p5en"), "foundation")
    (key,) = [r["Properties"] for r in template["Resources"].values() if r["Type"] == "AWS::KMS::Key"]

    assert "AWSServiceRoleForAutoScaling" in json.dumps(key["KeyPolicy"])


def test_the_control_plane_has_a_subnet_in_each_of_two_zones_beside_the_nodes(synthesised: Get) -> None:
    template = synthesised("eks-p5en").templates["eks-p5en-network"]["Resources"]
    subnets = {
        r["Properties"]["CidrBlock"]: r["Properties"]["AvailabilityZoneId"]
        for r in template.values()
        if r["Type"] == "AWS::EC2::Subnet"
    }

    assert subnets["10.96.0.0/17"] == "use2-az2"
    assert {subnets["10.96.255.160/27"], subnets["10.96.255.128/27"]} == {"use2-az1", "use2-az2"}


# --- other environments ------------------------------------------------------------------------------------


def built(changes: dict[str, Any], base: str = "eks-p5en") -> Synthesised:
    one = loaded(changed(environment_data(base), changes))
    assert not [finding for finding in check(one) if finding.blocks], check(one)
    made = assembly(one.environment)
    assert made.findings == set()
    assert cfn_lint(made.files, one.environment.region) == ""
    return made


def test_a_network_that_exists_and_a_public_endpoint_and_capabilities() -> None:
    made = built(
        {
            "network": {
                "zone_id": "use2-az2",
                "vpc": VPC,
                "subnet": {"id": "subnet-0123456789abcdef0", "cidr": "10.96.0.0/17"},
                "security_group": {"id": "sg-0123456789abcdef0"},
            },
            "orchestrator.second_zone_id": ...,
            "orchestrator.control_plane_subnet_ids": SUBNETS,
            "orchestrator.endpoint": {"kind": "public", "cidrs": ["203.0.113.7/32"]},
            "orchestrator.capabilities": {
                "argo_cd": {
                    "idc_instance_arn": "arn:aws:sso:::instance/ssoins-0123456789abcdef",
                    "idc_region": "us-east-2",
                    "roles": [{"role": "admin", "groups": ["11111111-2222-3333-4444-555555555555"]}],
                },
                "ack": {"disabled_services": ["rds"]},
                "kro": True,
            },
            "orchestrator.scaling_tier": "2xl",
            "orchestrator.kubeflow_trainer": True,
        },
    )
    resources = plane(made)["Resources"].values()
    (cluster,) = [r["Properties"] for r in resources if r["Type"] == "AWS::EKS::Cluster"]
    capabilities = {
        r["Properties"]["Type"]: r["Properties"] for r in resources if r["Type"] == "AWS::EKS::Capability"
    }

    parts = ("foundation", "buckets", "storage", "repositories", "control-plane", "protection", "system")
    assert set(made.templates) == {f"eks-p5en-{one}" for one in (*parts, "cluster", "workloads")}
    assert cluster["ResourcesVpcConfig"]["SubnetIds"] == SUBNETS
    assert cluster["ResourcesVpcConfig"]["SecurityGroupIds"] == ["sg-0123456789abcdef0"]
    assert cluster["ResourcesVpcConfig"]["PublicAccessCidrs"] == ["203.0.113.7/32"]
    assert cluster["ControlPlaneScalingConfig"] == {"Tier": "tier-2xl"}
    assert set(capabilities) == {"ARGOCD", "ACK", "KRO"}
    mapping = capabilities["ARGOCD"]["Configuration"]["ArgoCd"]["RbacRoleMappings"][0]
    assert mapping["Identities"] == [{"Id": "11111111-2222-3333-4444-555555555555", "Type": "SSO_GROUP"}]
    assert list(imports(plane(made))) == ["eks-p5en-foundation-KeyArn"] * len(list(imports(plane(made))))


def test_a_block_that_has_not_begun_is_an_empty_group_that_is_filled_when_it_begins() -> None:
    """Else its Auto Scaling group finds no instances, and the creation fails with it."""
    block = {"kind": "capacity-block", "id": "cr-0123456789abcdef0", "starts": "2027-01-05T11:30:00Z"}
    made = built({"node_groups.train.capacity": block})
    template = part(made, "cluster")["Resources"]
    (group,) = [one["Properties"] for one in template.values() if one["Type"] == "AWS::EKS::Nodegroup"]
    (schedule,) = [one for one in template.values() if one["Type"] == "AWS::Scheduler::Schedule"]
    asked = json.dumps(schedule["Properties"]["Target"])

    assert group["ScalingConfig"] == {"MinSize": 0, "DesiredSize": 0, "MaxSize": 8}
    assert schedule["Properties"]["ScheduleExpression"] == "at(2027-01-05T11:30:00)"
    assert schedule["Properties"]["ScheduleExpressionTimezone"] == "UTC"
    assert schedule["Properties"]["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert "scheduler:::aws-sdk:eks:updateNodegroupConfig" in asked and "NodegroupName" in asked
    assert '\\"MinSize\\":8,\\"DesiredSize\\":8' in asked.replace(" ", "")
    assert [
        one["Action"] for _, one in statements(part(made, "cluster")) if one.get("Sid") == "FillGroups"
    ] == ["eks:UpdateNodegroupConfig"]


def test_a_closed_network_and_no_storage_of_our_own() -> None:
    registry = "oci://111122223333.dkr.ecr.us-east-2.amazonaws.com/charts"
    made = built(
        {
            "network.egress": "closed",
            "orchestrator.chart_repository": registry,
            "orchestrator.lifecycle": "none",
            "storage.lustre": ...,
            "storage.key": {
                "arn": "arn:aws:kms:us-east-2:111122223333:key/12345678-1234-1234-1234-123456789012"
            },
        },
        "eks-trn2",
    )
    resources = part(made, "system")["Resources"].values()
    charts = [r["Properties"] for r in resources if r["Type"] == "Custom::AWSCDK-EKS-HelmChart"]

    assert {one["Repository"] for one in charts} == {f"{registry}/{one['Chart']}" for one in charts}
    assert not made.resources("AWS::KMS::Key")
    addons = {r["Properties"]["AddonName"] for r in resources if r["Type"] == "AWS::EKS::Addon"}
    assert "aws-fsx-csi-driver" not in addons
    assert "Custom::AWSCDK-EKS-KubernetesResource" not in json.dumps(part(made, "workloads"))

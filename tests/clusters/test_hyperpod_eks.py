"""HyperPod on EKS: what waits for what, what is applied to the cluster, who may do what."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import kubernetes_validate
import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from project import ROOT
from rules_support import changed, environment_data, loaded
from templates import Synthesised, Template, assembly, cfn_lint, many, statements

from ultracluster import HyperPodEksCluster
from ultracluster.catalog import instance_type
from ultracluster.catalog.eks_calendar import kubernetes_releases
from ultracluster.clusters.eks.control_plane import EksControlPlane
from ultracluster.config.nodes import NodeGroup
from ultracluster.kubernetes.charts import device_charts
from ultracluster.kubernetes.hyperpod_eks import health_agent, karpenter_pools, namespace, service_rights
from ultracluster.model import resolve

Get = Callable[[str], Synthesised]
NAME = "hyperpod-eks-p5"
EKS_ARN = "arn:aws:eks:us-east-2:111122223333:cluster/train"
WORKSPACE = "arn:aws:aps:us-east-2:111122223333:workspace/ws-12345678-1234-1234-1234-123456789012"
ROLE = "arn:aws:iam::111122223333:role/"
OPTIONS: dict[str, Any] = {
    "orchestrator.scheduler": "none",
    "orchestrator.task_governance": True,
    "teams": {"research": {"quota": 16}},
    "orchestrator.autoscaling": {"max_nodes": 8},
    "orchestrator.observability": {"workspace_arn": WORKSPACE},
    "orchestrator.inference": {
        "execution_role_arn": f"{ROLE}inference",
        "load_balancer_role_arn": f"{ROLE}load-balancer",
        "autoscaler_role_arn": f"{ROLE}keda",
        "certificate_bucket": "example-certificates",
    },
    "orchestrator.addon_versions": {"cert-manager": "v1.18.2-eksbuild.9"},
    "node_groups.elastic": {"role": "compute", "instance_type": "g6e.12xlarge", "count": 0},
}


def cluster_template(made: Synthesised) -> Template:
    return made.templates[f"{NAME}-cluster"]


def the(template: Template, kind: str) -> str:
    """Logical id of the only resource of a type."""
    (found,) = [name for name, one in template["Resources"].items() if one["Type"] == kind]
    return found


def objects(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """(logical id, Kubernetes object) of all that is applied."""
    for name, resource in template["Resources"].items():
        if resource["Type"] == "Custom::AWSCDK-EKS-KubernetesResource":
            text = resource["Properties"]["Manifest"]
            for one in json.loads(text) if isinstance(text, str) else []:
                yield name, one


def needs(template: Template, logical_id: str) -> set[str]:
    """Everything that CloudFormation makes before a resource."""
    found: set[str] = set()
    pending = [logical_id]
    while pending:
        resource = template["Resources"][pending.pop()]
        near = {*many(resource.get("DependsOn", [])), *mentioned(resource.get("Properties", {}))}
        new = (near & template["Resources"].keys()) - found
        found |= new
        pending += new
    return found


def mentioned(value: Any, function: str = "") -> Iterator[str]:
    """Logical ids and names of imports in a value."""
    if isinstance(value, list):
        for one in value:
            yield from mentioned(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            if key in ("Ref", "Fn::ImportValue") and isinstance(one, str):
                yield one
            elif key == "Fn::GetAtt":
                yield one[0]
            yield from mentioned(one)


def test_the_cluster_waits_for_what_the_service_needs(synthesised: Get) -> None:
    template = cluster_template(synthesised(NAME))
    before = needs(template, the(template, "AWS::SageMaker::Cluster"))
    applied = {(one["kind"], one["metadata"]["name"]) for name, one in objects(template) if name in before}
    policies = [name for name in before if template["Resources"][name]["Type"] == "AWS::IAM::Policy"]

    assert {
        ("Namespace", "aws-hyperpod"),
        ("DaemonSet", "health-monitoring-agent"),
        ("ClusterRole", "hyperpod-patching"),
        ("ClusterRoleBinding", "job-auto-restart"),
    } <= applied
    assert any(name.startswith("ClusterRoleDefaultPolicy") for name in policies)
    assert any(template["Resources"][name]["Type"] == "Custom::CDKBucketDeployment" for name in before), (
        "the scripts are not there yet"
    )


def test_the_namespace_is_there_before_what_is_in_it(synthesised: Get) -> None:
    template = cluster_template(synthesised(NAME))
    (home,) = [name for name, one in objects(template) if one["kind"] == "Namespace"]

    within = {name for name, one in objects(template) if one["metadata"].get("namespace") == "aws-hyperpod"}
    assert len(within) == 2
    assert all(home in needs(template, name) for name in within)


def test_the_cluster_waits_for_no_file_system_chart_or_system_node(synthesised: Get) -> None:
    """Neither its stack nor anything in it names one: what is slow beside it is made beside it."""
    made = synthesised(NAME)
    manifest = json.loads((made.folder / "manifest.json").read_text())["artifacts"]
    text = json.dumps(cluster_template(made))

    assert set(manifest[f"{NAME}-cluster"]["dependencies"]) & made.templates.keys() == {
        f"{NAME}-{part}"
        for part in ("foundation", "network", "egress", "buckets", "control-plane", "observability")
    }
    assert "Lustre" not in text and "OpenZfs" not in text
    assert "Custom::AWSCDK-EKS-HelmChart" not in text
    assert "AWS::EKS::Addon" not in text


def test_a_file_system_of_others_admits_the_nodes_before_volumes_are_made() -> None:
    existing = {
        "deployment": "existing",
        "id": "fs-0123456789abcdef0",
        "dns_name": "fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com",
        "mount_name": "abcdefgh",
        "security_group_id": "sg-0123456789abcdef0",
    }
    config = loaded(changed(environment_data(NAME), {"storage.lustre": existing})).environment
    made = assembly(config, checked=False)
    template = made.templates[f"{NAME}-workloads"]
    admissions = {
        name
        for name, one in template["Resources"].items()
        if one["Type"].startswith("AWS::EC2::SecurityGroup")
    }
    (volume,) = {name for name, one in objects(template) if "fs-0123456789abcdef0" in json.dumps(one)}

    assert admissions
    assert admissions <= needs(template, volume)
    assert "AWS::EC2::SecurityGroup" not in json.dumps(cluster_template(made))


def test_nodes_carry_what_charts_and_volumes_look_for(synthesised: Get) -> None:
    template = cluster_template(synthesised(NAME))
    (group,) = template["Resources"][the(template, "AWS::SageMaker::Cluster")]["Properties"]["InstanceGroups"]

    assert group["KubernetesConfig"] == {
        "Labels": {
            "nvidia.com/gpu.present": "true",
            "ultracluster/node-group": "train",
            "ultracluster/role": "compute",
        }
    }


def test_device_plugins_know_hyperpods_names_of_types() -> None:
    changes = {"node_groups.train.instance_types": ["p5en.48xlarge"]}
    for base, names in (
        (NAME, ["ml.p5.48xlarge", "ml.p5en.48xlarge"]),
        ("eks-p5en", ["p5en.48xlarge"]),
    ):
        data = changed(environment_data(base), changes if base == NAME else {})
        (plugin,) = [
            one
            for one in device_charts(resolve(loaded(data).environment))
            if one.name == "aws-efa-k8s-device-plugin"
        ]
        assert plugin.values["supportedInstanceLabels"]["values"] == names


@pytest.mark.parametrize(("base", "name"), [(NAME, "ml.trn2.48xlarge"), ("eks-trn2", "trn2.48xlarge")])
def test_the_neuron_plugin_knows_the_types(base: str, name: str) -> None:
    changes = {"node_groups.train.instance_type": "trn2.48xlarge"} if base == NAME else {}
    charts = device_charts(resolve(loaded(changed(environment_data(base), changes)).environment))
    (plugin,) = [one for one in charts if one.name == "neuron-helm-chart"]

    assert plugin.values["neuronInstances"] == [name]


def test_nodes_may_do_what_kubernetes_asks_and_no_more(synthesised: Get) -> None:
    template = cluster_template(synthesised(NAME))
    by_sid = {
        statement["Sid"]: statement
        for name, statement in statements(template)
        if name.startswith("ClusterRoleDefaultPolicy")
    }
    actions = {action for statement in by_sid.values() for action in many(statement["Action"])}

    assert {
        "ec2:AssignPrivateIpAddresses",
        "ec2:AttachNetworkInterface",
        "ecr:BatchGetImage",
        "eks-auth:AssumeRoleForPodIdentity",
        "fsx:DescribeFileSystems",
    } <= actions
    assert by_sid["PodIdentity"]["Resource"] == {"Fn::ImportValue": f"{NAME}-control-plane-ClusterArn"}
    assert not {action for action in actions if action.endswith("*")}
    assert "ecr:PutImage" not in actions


def test_a_slurm_node_may_none_of_it(synthesised: Get) -> None:
    actions = {
        action
        for template in synthesised("dev").templates.values()
        for name, statement in statements(template)
        if name.startswith("ClusterRoleDefaultPolicy")
        for action in many(statement["Action"])
    }
    assert "fsx:DescribeFileSystems" in actions
    assert not {one for one in actions if one.startswith(("ecr:", "eks-auth:"))}


@pytest.fixture(scope="module")
def with_options() -> Synthesised:
    config = loaded(changed(environment_data(NAME), OPTIONS)).environment
    return assembly(config)


def test_every_option_is_accepted(with_options: Synthesised) -> None:
    assert with_options.findings == set()
    assert cfn_lint(with_options.folder.glob("*-cluster.template.json"), "us-east-2") == ""


def test_addons_are_pinned_and_come_after_the_nodes(with_options: Synthesised) -> None:
    template, system = with_options.templates[f"{NAME}-workloads"], with_options.templates[f"{NAME}-system"]
    manifest = json.loads((with_options.folder / "manifest.json").read_text())["artifacts"]

    def addons(template: Template) -> dict[str, str]:
        return {
            one["Properties"]["AddonName"]: name
            for name, one in template["Resources"].items()
            if one["Type"] == "AWS::EKS::Addon"
        }

    identity = the(template, "AWS::EKS::PodIdentityAssociation")
    manager = system["Resources"][addons(system)["cert-manager"]]

    assert set(addons(template)) == {
        *(f"amazon-sagemaker-hyperpod-{one}" for one in ("taskgovernance", "training-operator")),
        *(f"amazon-sagemaker-hyperpod-{one}" for one in ("observability", "inference")),
        "aws-mountpoint-s3-csi-driver",
        "metrics-server",
    }
    assert manager["Properties"]["AddonVersion"] == "v1.18.2-eksbuild.9"
    assert all(
        "AddonVersion" in template["Resources"][one]["Properties"] for one in addons(template).values()
    )
    quota = the(template, "AWS::SageMaker::ComputeQuota")
    assert addons(template)["amazon-sagemaker-hyperpod-taskgovernance"] in needs(template, quota)
    assert template["Resources"][quota]["Properties"]["ComputeQuotaTarget"]["TeamName"] == "research"
    after = manifest[f"{NAME}-workloads"]["dependencies"]
    assert {f"{NAME}-cluster", f"{NAME}-system"} <= set(after)
    operator = addons(template)["amazon-sagemaker-hyperpod-training-operator"]
    assert identity in needs(template, operator)
    assert template["Resources"][identity]["Properties"]["Namespace"] == "aws-hyperpod"


def test_karpenters_pools_come_after_the_cluster_and_are_for_empty_groups(with_options: Synthesised) -> None:
    template = cluster_template(with_options)
    cluster = the(template, "AWS::SageMaker::Cluster")
    pools = {
        one["kind"]: (name, one) for name, one in objects(template) if one["metadata"]["name"] == "elastic"
    }

    assert set(pools) == {"HyperpodNodeClass", "NodePool"}
    assert pools["HyperpodNodeClass"][1]["spec"] == {"instanceGroups": ["elastic"]}
    assert pools["NodePool"][1]["spec"]["limits"] == {"cpu": str(8 * 48)}
    assert all(cluster in needs(template, name) for name, _ in pools.values())
    assert not [one for _, one in objects(template) if one["metadata"]["name"] == "train"]


def test_karpenter_may_scale_this_accounts_clusters_and_no_more(with_options: Synthesised) -> None:
    template = cluster_template(with_options)
    found = [
        statement
        for name, statement in statements(template)
        if name.startswith("ClusterAutoScalingRole")
        for _ in [0]
        if "Sid" in statement
    ]
    actions = {action for statement in found for action in many(statement["Action"])}

    assert actions == {
        "kms:CreateGrant",
        "kms:DescribeKey",
        "sagemaker:BatchAddClusterNodes",
        "sagemaker:BatchDeleteClusterNodes",
    }
    assert all(statement["Condition"] for statement in found)


@pytest.mark.parametrize("release", kubernetes_releases())
def test_kubernetes_takes_what_is_applied(release: str) -> None:
    types = [known for name in ("p5.48xlarge", "trn2.48xlarge") if (known := instance_type(name))]
    made = [namespace(), *service_rights(), *health_agent(types, region="us-east-2")]

    assert [one["metadata"]["name"] for one in made if one["kind"] == "DaemonSet"] == [
        "health-monitoring-agent",
        "health-monitoring-agent-non-nvidia",
    ]
    for one in made:
        kubernetes_validate.validate(one, release, strict=True)


def test_the_check_of_manifests_can_fail() -> None:
    (agent,) = [one for one in health_agent(p5(), region="us-east-2") if one["kind"] == "DaemonSet"]
    agent["spec"]["template"]["spec"]["toleration"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(agent, "1.34", strict=True)


def test_the_agents_image_is_the_regions_own_or_a_copy() -> None:
    def image(region: str, copy: str | None = None) -> str:
        (agent,) = [
            one for one in health_agent(p5(), region=region, image=copy) if one["kind"] == "DaemonSet"
        ]
        return agent["spec"]["template"]["spec"]["containers"][0]["image"]

    assert image("eu-west-1").startswith("533267293120.dkr.ecr.eu-west-1.amazonaws.com/")
    assert image("ap-northeast-2").startswith("767398015722.dkr.ecr.us-east-1.amazonaws.com/")
    assert image("eu-west-1", "example.com/agent:1") == "example.com/agent:1"


def test_pools_have_names_that_kubernetes_takes() -> None:
    (known,) = p5()
    node_class, pool = karpenter_pools({"Train-A": known}, max_nodes=2, idle_minutes=5)

    assert node_class["metadata"]["name"] == pool["metadata"]["name"] == "train-a"
    assert node_class["spec"]["instanceGroups"] == ["Train-A"]
    assert pool["spec"]["disruption"] == {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5m"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"capacity": {"kind": "capacity-block", "id": "cr-0123456789abcdef0"}},
            "training plan is to HyperPod",
        ),
        ({"mig_profile": "1g.5gb"}, "`1g.5gb` on p5.48xlarge .H100.: its profiles are 1g.10gb"),
    ],
)
def test_a_stranger_is_told_what_cannot_be(change: dict[str, Any], why: str) -> None:
    stack = Stack(App(), "Alone")
    group = NodeGroup.model_validate(
        {"role": "compute", "instance_type": "p5.48xlarge", "count": 1, **change}, strict=False
    )
    with pytest.raises(ValueError, match=why):
        HyperPodEksCluster(
            stack,
            "Cluster",
            node_groups={"train": group},
            control_plane=EksControlPlane.from_cluster_attributes(
                stack,
                "Plane",
                cluster_name="train",
                kubectl_handler_arn="arn:aws:lambda:us-east-2:111122223333:function:handler",
                kubernetes_version="1.36",
            ),
            subnet=ec2.Subnet.from_subnet_id(stack, "Subnet", "subnet-0123456789abcdef0"),
            security_groups=[
                ec2.SecurityGroup.from_security_group_id(stack, "Nodes", "sg-0123456789abcdef0")
            ],
            key=cast("kms.IKey", kms.Key(stack, "Key")),
            scripts_bucket=s3.Bucket.from_bucket_name(stack, "Scripts", "example-scripts"),
            agent_image="111122223333.dkr.ecr.us-east-2.amazonaws.com/agent:1",
        )


def p5() -> list[Any]:
    known = instance_type("p5.48xlarge")
    assert known
    return [known]


def test_the_entry_script_is_there() -> None:
    assert (Path(ROOT) / "lifecycle_scripts" / "hyperpod_eks_on_create.sh").exists()

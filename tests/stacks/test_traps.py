"""Traps that have bitten others, each with the assertion that would have caught it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from project import CLOSED, ENVIRONMENTS, environments_of
from rules_support import changed, environment_data, loaded
from templates import Synthesised, assembly, finish

from ultracluster.clusters.hyperpod.slurm import ENTRIES
from ultracluster.lifecycle.bundles import content_hash
from ultracluster.scripts_folder import FORBIDDEN, script_files, scripts_folder

Get = Callable[[str], Synthesised]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_nodes_may_send_everything_to_each_other_and_nothing_to_the_world(
    name: str, synthesised: Get
) -> None:
    """`allow_all_outbound=True` would drop the self egress rule, and EFA with it."""
    made = synthesised(name)
    (own,) = [
        k for k in made.templates[f"{name}-network"]["Resources"] if re.fullmatch(r"Nodes[0-9A-F]{8}", k)
    ]
    group = {"Fn::GetAtt": [own, "GroupId"]}
    out = [
        rule["Properties"]
        for rule in made.resources("AWS::EC2::SecurityGroupEgress").values()
        if rule["Properties"]["GroupId"] == group
    ]
    into = [
        rule["Properties"]
        for rule in made.resources("AWS::EC2::SecurityGroupIngress").values()
        if rule["Properties"]["GroupId"] == group
    ]
    inline = made.templates[f"{name}-network"]["Resources"][own]["Properties"]["SecurityGroupEgress"]

    assert [(r["IpProtocol"], r["DestinationSecurityGroupId"]) for r in out] == [("-1", group)]
    assert [(r["IpProtocol"], r["SourceSecurityGroupId"]) for r in into] == [("-1", group)]
    if name in CLOSED:  # what lets them out to endpoints is in the egress stack: test_perimeter.py
        assert [r["CidrIp"] for r in inline] == ["255.255.255.255/32"]
        return
    assert {(r["IpProtocol"], r["FromPort"], r["ToPort"]) for r in inline} == {
        ("tcp", 80, 80),
        ("tcp", 443, 443),
    }


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_security_group_lets_the_world_in(name: str, synthesised: Get) -> None:
    made = synthesised(name)
    rules = [rule["Properties"] for rule in made.resources("AWS::EC2::SecurityGroupIngress").values()]
    for group in made.resources("AWS::EC2::SecurityGroup").values():
        rules += group["Properties"].get("SecurityGroupIngress", [])

    assert not [rule for rule in rules if rule.get("CidrIp") == "0.0.0.0/0" or "CidrIpv6" in rule]


def test_the_file_system_waits_for_its_self_rules(synthesised: Get) -> None:
    """Else FSx finds port 988 closed and refuses the group."""
    template = synthesised("dev").templates["dev-storage"]
    (file_system,) = _of(template, "AWS::FSx::FileSystem").values()
    self_rules = {
        logical_id
        for kind in ("Ingress", "Egress")
        for logical_id, rule in _of(template, f"AWS::EC2::SecurityGroup{kind}").items()
        if logical_id.startswith("LustreItself") and rule["Properties"]["IpProtocol"] == "tcp"
    }

    assert len(self_rules) == 4  # 988 and 1018-1023, in and out
    assert set(file_system["DependsOn"]) == self_rules


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_file_system_has_one_group_of_its_own_for_ever(name: str, synthesised: Get) -> None:
    """Changing the list replaces the file system, so it holds one group that is made beside it."""
    for path, file_system in synthesised(name).resources("AWS::FSx::FileSystem").items():
        (group,) = file_system["Properties"]["SecurityGroupIds"]
        stack, logical_id = path.split("/")
        own = group["Fn::GetAtt"][0]

        assert own in synthesised(name).templates[stack]["Resources"]
        assert own.removesuffix(own[-8:]).startswith(logical_id[:-8])


def test_lustre_over_efa_admits_all_traffic_both_ways(synthesised: Get) -> None:
    template = synthesised("prod").templates["prod-storage"]
    names = {
        logical_id.removesuffix(logical_id[-8:])
        for kind in ("Ingress", "Egress")
        for logical_id, rule in _of(template, f"AWS::EC2::SecurityGroup{kind}").items()
        if logical_id.startswith("Lustre") and rule["Properties"]["IpProtocol"] == "-1"
    }

    assert names == {
        "LustreItselfIngressAll",
        "LustreItselfEgressAll",
        "LustreClientsIngressAll",
        "LustreClientsEgressAll",
        "LustreClientsBackIngressAll",
        "LustreClientsBackEgressAll",
    }


def test_associations_are_made_one_after_the_other(synthesised: Get) -> None:
    associations = _of(
        synthesised("prod").templates["prod-repositories"], "AWS::FSx::DataRepositoryAssociation"
    )

    assert len(associations) == 2
    assert [a.get("DependsOn") for a in associations.values()] == [None, [next(iter(associations))]]


@pytest.mark.parametrize("name", environments_of("hyperpod-slurm"))
def test_hyperpod_has_one_subnet_and_an_explicit_orchestrator(name: str, synthesised: Get) -> None:
    """Of several subnets the service picks one; without an orchestrator it reads the legacy file."""
    ((_, cluster),) = synthesised(name).resources("AWS::SageMaker::Cluster").items()

    assert len(cluster["Properties"]["VpcConfig"]["Subnets"]) == 1
    assert "Slurm" in cluster["Properties"]["Orchestrator"]


def test_classic_provisioning_names_its_strategy_and_continuous_has_none() -> None:
    classic = _cluster(
        {"orchestrator.provisioning": "classic", "orchestrator.slurm_config_strategy": "merge"}
    )
    continuous = _cluster({})

    assert classic["Orchestrator"] == {"Slurm": {"SlurmConfigStrategy": "Merge"}}
    assert "NodeProvisioningMode" not in classic
    assert continuous["Orchestrator"] == {"Slurm": {}}
    assert continuous["NodeProvisioningMode"] == "Continuous"


@pytest.mark.parametrize("name", [*environments_of("hyperpod-slurm"), *environments_of("hyperpod-eks")])
def test_the_mode_of_provisioning_is_always_written(name: str, synthesised: Get) -> None:
    """AWS's pages do not agree on the default."""
    ((_, cluster),) = synthesised(name).resources("AWS::SageMaker::Cluster").items()

    assert cluster["Properties"]["NodeProvisioningMode"] == "Continuous"


def test_a_group_is_made_in_the_release_of_the_image_that_is_asked_for() -> None:
    cluster = _cluster({"node_groups.gpu.image_release": "2.1.0"})
    releases = {g["InstanceGroupName"]: g.get("ImageReleaseVersion") for g in cluster["InstanceGroups"]}

    assert releases == {"controller": None, "login": None, "gpu": "2.1.0"}


@pytest.mark.parametrize(
    ("changes", "user"),
    [
        ({}, "ubuntu"),
        ({"orchestrator.os": "alinux2023"}, "ec2-user"),
        ({"orchestrator.os": "rhel9"}, "ec2-user"),
        ({"orchestrator.os": "rocky9"}, "rocky"),
        ({"orchestrator": {"kind": "pcs", "root_device": "/dev/xvda"}}, "ec2-user"),
        ({"orchestrator": {"kind": "pcs"}}, "ubuntu"),
        ({"orchestrator": {"kind": "eks"}}, "ec2-user"),
    ],
)
def test_the_administrators_user_follows_the_image(changes: dict[str, Any], user: str) -> None:
    """Session Manager makes none: "failed to start pty since RunAs user ubuntu does not exist". Nodes make
    people's user."""
    made = loaded(changed(environment_data("parallelcluster-p5"), changes)).environment

    assert made.admin_user == user
    assert made.session_user == "ultracluster"


PARAMETER = "/images/train:3"


def test_an_image_may_be_a_parameter_everywhere() -> None:
    """A dynamic reference: of a parameter of the template CloudFormation takes the newest value each time."""
    wanted = f"{{{{resolve:ssm:{PARAMETER}}}}}"
    for name, group in (
        ("pcs-p6-b200", "train"),
        ("dev", "gpu"),
        ("parallelcluster-p5", "reserved"),
        ("eks-p5en", "train"),
    ):
        changes: dict[str, Any] = {f"node_groups.{group}.image": PARAMETER}
        if name == "parallelcluster-p5":  # one image for the whole queue
            changes["node_groups.more.image"] = PARAMETER
        if name == "eks-p5en":
            changes["orchestrator.service_cidr"] = "172.20.0.0/16"
        made = assembly(loaded(changed(environment_data(name), changes)).environment)
        text = json.dumps(made.templates)

        assert wanted in text, name
        assert not made.findings, name
        assert "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>" not in text, name


def test_customer_keys_on_volumes_only_with_continuous_provisioning() -> None:
    classic = _cluster(
        {"orchestrator.provisioning": "classic", "orchestrator.slurm_config_strategy": "merge"}
    )
    continuous = _cluster({})

    assert "VolumeKmsKeyId" not in json.dumps(classic)
    for group in continuous["InstanceGroups"]:
        volumes = [c["EbsVolumeConfig"] for c in group["InstanceStorageConfigs"] if "EbsVolumeConfig" in c]
        assert all("VolumeKmsKeyId" in volume for volume in volumes)
        assert [volume.get("RootVolume", False) for volume in volumes] == [True, False]
        assert ["VolumeSizeInGB" in volume for volume in volumes] == [False, True]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_literal_partition(name: str, synthesised: Get) -> None:
    for stack, template in synthesised(name).templates.items():
        given = {  # from the environment files
            "arn:aws:sagemaker:us-east-2:111122223333:training-plan",
            "arn:aws:iam::111122223333:role/platform-engineers",
        }
        text = json.dumps(template)
        for arn in given:
            text = text.replace(arn, "")
        assert "arn:aws:" not in text, stack


@pytest.mark.parametrize("region", ["us-gov-west-1", "cn-north-1"])
def test_other_partitions_synthesise(region: str) -> None:
    zone = {"us-gov-west-1": "usgw1-az1", "cn-north-1": "cnn1-az1"}[region]
    data = changed(environment_data("dev"), {"region": region, "network.zone_id": zone})

    made = assembly(loaded(data).environment)

    assert "arn:aws:" not in json.dumps(made.templates)


def test_a_changed_script_mode_or_setting_is_a_changed_prefix(tmp_path: Any) -> None:
    """Replaced nodes must not run older scripts than the cluster asks for."""
    script = tmp_path / "step.sh"
    script.write_text("true\n")
    script.chmod(0o644)
    hashes = {content_hash(tmp_path, [script], {"release": release}) for release in ("2026.11", "2026.12")}
    script.chmod(0o755)
    hashes.add(content_hash(tmp_path, [script], {"release": "2026.11"}))
    script.write_text("false\n")
    hashes.add(content_hash(tmp_path, [script], {"release": "2026.11"}))

    assert len(hashes) == 4


def test_the_prefix_of_the_nodes_is_the_one_that_is_uploaded_to(synthesised: Get) -> None:
    template = synthesised("dev").templates["dev-cluster"]
    ((upload_id, upload),) = _of(template, "Custom::CDKBucketDeployment").items()
    ((_, cluster),) = _of(template, "AWS::SageMaker::Cluster").items()
    uris = {
        group["InstanceGroupName"]: group["LifeCycleConfig"]["SourceS3Uri"]["Fn::Join"][1][-1]
        for group in cluster["Properties"]["InstanceGroups"]
    }

    assert upload["Properties"]["DestinationBucketKeyPrefix"] == "dev"
    assert all(re.fullmatch("/dev/[0-9a-f]{12}", uri) for uri in uris.values())
    assert len(set(uris.values())) == len(uris)
    assert upload_id in cluster["DependsOn"]
    assert upload["Properties"]["Prune"] is False
    assert upload["Properties"]["RetainOnDelete"] is True


def test_the_legacy_configuration_never_lies_beside_the_scripts(tmp_path: Any) -> None:
    (tmp_path / "provisioning_parameters.json").write_text("{}")

    with pytest.raises(ValueError, match=r"provisioning_parameters\.json"):
        script_files(tmp_path)
    assert all(file.name != FORBIDDEN for file in script_files(scripts_folder()))


def test_what_python_leaves_behind_is_no_script(tmp_path: Any) -> None:
    """A check that was run in a checkout must not change what nodes get."""
    for name in ("health/watch.py", "health/__pycache__/watch.cpython-311.pyc", "health/README.md", ".git/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")

    assert [file.name for file in script_files(tmp_path)] == ["watch.py"]


@pytest.mark.parametrize("entry", ENTRIES.values())
def test_entry_scripts_lie_directly_below_the_prefix_and_may_run(entry: str) -> None:
    file = scripts_folder() / entry

    assert file.is_file()
    assert file.stat().st_mode & 0o111


def test_node_counts_never_move_the_node_subnet() -> None:
    """A subnet's CIDR cannot change: EC2 would replace it, and HyperPod the whole cluster."""
    few, many = (_subnets({"node_groups.gpu.count": count}) for count in (1, 600))

    assert few == many


def test_an_unplaced_app_needs_no_account() -> None:
    made = assembly(loaded(environment_data("dev")).environment)

    assert not json.loads((made.folder / "manifest.json").read_text()).get("missing")


def test_strangers_find_no_validation_error_without_our_feature_flags(tmp_path: Any) -> None:
    """Another team's app has other flags; the constructs must not depend on ours."""
    from aws_cdk import App

    from ultracluster.stacks import build

    app = App(outdir=str(tmp_path))
    build(app, loaded(environment_data("prod")).environment)

    assert finish(app, tmp_path).findings == set()


def _of(template: dict[str, Any], kind: str) -> dict[str, Any]:
    return {logical_id: r for logical_id, r in template["Resources"].items() if r["Type"] == kind}


def _cluster(changes: dict[str, Any]) -> dict[str, Any]:
    config = loaded(changed(environment_data("dev"), changes)).environment
    ((_, cluster),) = assembly(config, checked=False).resources("AWS::SageMaker::Cluster").items()
    return cluster["Properties"]


def _subnets(changes: dict[str, Any]) -> list[str]:
    config = loaded(changed(environment_data("dev"), changes)).environment
    made = assembly(config, checked=False)
    return sorted(subnet["Properties"]["CidrBlock"] for subnet in made.resources("AWS::EC2::Subnet").values())


@pytest.mark.parametrize("name", ["eks-p5en", "pcs-p6-b200"])
def test_root_volumes_keep_up_with_container_images(name: str, synthesised: Get) -> None:
    """gp3's 125 MiB/s take ten minutes for an image of 40 GB, written and read."""
    speeds: dict[str, tuple[Any, Any]] = {}
    for template in synthesised(name).resources("AWS::EC2::LaunchTemplate").values():
        data = template["Properties"]["LaunchTemplateData"]
        (volume,) = data["BlockDeviceMappings"]
        speeds[data["InstanceType"]] = (volume["Ebs"].get("Throughput"), volume["Ebs"].get("Iops"))

    assert {speeds[kind] for kind in speeds if kind.startswith("p")} == {(1000, 4000)}
    assert {speeds[kind] for kind in speeds if kind.startswith("m")} == {(None, None)}

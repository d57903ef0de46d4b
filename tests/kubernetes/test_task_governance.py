"""Task governance: quotas by the service's own model, and the script that sends them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from botocore.session import get_session
from botocore.validate import validate_parameters
from cfnlint.helpers import REGIONS as REGIONS_OF_CFN_LINT
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER, ResourceNotFoundError
from jsonschema import Draft7Validator
from kubernetes_support import environment

from ultracluster.catalog import hyperpod_eks as catalog
from ultracluster.kubernetes import task_governance
from ultracluster.kubernetes.task_governance import (
    POLICY,
    QUOTA,
    compute_quotas,
    governance_resources,
    governance_script,
    scheduler_config,
)
from ultracluster.model import resolve

# --- HyperPod's task governance ---------------------------------------------------------------------------

GOVERNED: dict[str, Any] = {
    "orchestrator.task_governance": True,
    "orchestrator.scheduler": "none",
    "teams": {
        "research": {"quota": 16, "limit": 24, "weight": 5},
        "product": {"quota": 8, "limit": 8, "lend": False, "preempt_own": False},
        "guests": {},
    },
}


def test_the_service_s_own_model_takes_every_quota() -> None:
    env = environment(GOVERNED, base="hyperpod-eks-p5")
    service = get_session().get_service_model("sagemaker")
    arn = "arn:aws:sagemaker:us-east-2:111122223333:cluster/abcdefghijkl"
    shape = service.operation_model("CreateComputeQuota").input_shape
    for request in compute_quotas(resolve(env)).values():
        validate_parameters({**request, "ClusterArn": arn}, shape)
    policy = {"Name": "teams", "ClusterArn": arn, "SchedulerConfig": scheduler_config()}
    validate_parameters(policy, service.operation_model("CreateClusterSchedulerConfig").input_shape)
    strategies = service.shape_for("ResourceSharingStrategy").enum
    found = [one["ComputeQuotaConfig"] for one in compute_quotas(resolve(env)).values()]

    assert [one["ResourceSharingConfig"]["Strategy"] for one in found] == [
        "LendAndBorrow",
        "DontLend",
        "LendAndBorrow",
    ]
    assert {one["ResourceSharingConfig"]["Strategy"] for one in found} <= set(strategies)
    assert {one["PreemptTeamTasks"] for one in found} <= set(service.shape_for("PreemptTeamTasks").enum)
    assert found[0]["ResourceSharingConfig"]["AbsoluteBorrowLimits"] == [
        {"InstanceType": "ml.p5.48xlarge", "Accelerators": 8}
    ]
    types = service.shape_for("ClusterInstanceType").enum
    assert {one["InstanceType"] for each in found for one in each["ComputeQuotaResources"]} <= set(types)


def test_mig_instances_are_counted_as_the_service_names_them() -> None:
    changes = {
        "orchestrator.task_governance": True,
        "orchestrator.gpu_plugin": "gpu-operator",
        "node_groups.train.mig_profile": "1g.10gb",
        "teams": {"research": {"quota": 14}},
    }
    (resources,) = compute_quotas(resolve(environment(changes, base="hyperpod-eks-p5")))["research"][
        "ComputeQuotaConfig"
    ]["ComputeQuotaResources"]
    known = get_session().get_service_model("sagemaker").shape_for("MIGProfileType").enum

    assert resources["AcceleratorPartition"] == {"Type": "mig-1g.10gb", "Count": 14}
    assert resources["AcceleratorPartition"]["Type"] in known


REGIONS: dict[str, tuple[bool, bool]] = {
    # quotas, policy: what CloudFormation has a type for
    "both": (True, True),
    "quotas": (True, False),
    "policy": (False, True),
    "none": (False, False),
}


@pytest.mark.parametrize("name", REGIONS)
def test_the_script_makes_what_the_template_does_not(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quota, policy = REGIONS[name]
    monkeypatch.setattr(
        task_governance, "has_governance_type", lambda kind, _: {QUOTA: quota, POLICY: policy}[kind]
    )
    cluster = resolve(environment(GOVERNED, base="hyperpod-eks-p5"))
    made = {kind for kind, _ in governance_resources(cluster).values()}
    script = governance_script(cluster)

    assert made == {kind for kind, there in ((QUOTA, quota), (POLICY, policy)) if there}
    assert bool(script) != (quota and policy)
    assert ("\nquota research " in script) != quota
    assert ("\npolicy hyperpod-eks-p5 " in script) != policy


@pytest.mark.parametrize("kind", [QUOTA, POLICY])
def test_regions_are_those_of_the_published_schemas(kind: str) -> None:
    def has(region: str) -> bool:
        try:
            return bool(PROVIDER_SCHEMA_MANAGER.get_resource_schema(region, kind))
        except ResourceNotFoundError:
            return False

    for region in REGIONS_OF_CFN_LINT:
        if region.count("-") == 2 and "iso" not in region:
            assert catalog.has_governance_type(kind, region) == has(region), region


def test_the_published_schemas_take_what_the_template_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_governance, "has_governance_type", lambda *_: True)
    arn = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"
    for kind, properties in governance_resources(
        resolve(environment(GOVERNED, base="hyperpod-eks-p5"))
    ).values():
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
        validator = Draft7Validator(schema)
        assert [one.message for one in validator.iter_errors({"ClusterArn": arn, **properties})] == []
        assert list(validator.iter_errors({"ClusterArn": arn, **properties, "Foo": 1}))


@pytest.fixture
def by_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Region without the types."""
    monkeypatch.setattr(task_governance, "has_governance_type", lambda *_: False)


@pytest.mark.slow
@pytest.mark.usefixtures("by_script")
def test_the_script_asks_for_what_the_commands_have(tmp_path: Path) -> None:
    file = tmp_path / "quotas.sh"
    file.write_text(governance_script(resolve(environment(GOVERNED, base="hyperpod-eks-p5"))))
    subprocess.run(["shellcheck", file], check=True)
    subprocess.run(["shfmt", "-d", "-i", "2", "-ci", file], check=True)
    service = get_session().get_service_model("sagemaker")
    text = file.read_text()

    for operation, command in (
        ("CreateComputeQuota", "create-compute-quota"),
        ("UpdateComputeQuota", "update-compute-quota"),
        ("ListComputeQuotas", "list-compute-quotas"),
        ("CreateClusterSchedulerConfig", "create-cluster-scheduler-config"),
        ("UpdateClusterSchedulerConfig", "update-cluster-scheduler-config"),
        ("ListClusterSchedulerConfigs", "list-cluster-scheduler-configs"),
    ):
        members = service.operation_model(operation).input_shape.members  # pyright: ignore[reportAttributeAccessIssue]
        options = {re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() for name in members}
        used = re.search(rf"aws sagemaker {command}((?:[^\n]|(?<=\\)\n)*)", text)
        assert used
        own = set(re.findall(r"--([a-z-]+)", used[1])) - {"output", "query"}
        assert own <= options, own - options
    for summary, read in (
        ("ComputeQuotaSummary", {"ComputeQuotaId", "ComputeQuotaVersion", "Name"}),
        ("ClusterSchedulerConfigSummary", {"ClusterSchedulerConfigId", "ClusterSchedulerConfigVersion"}),
    ):
        assert read <= set(service.shape_for(summary).members)


@pytest.mark.slow
@pytest.mark.usefixtures("by_script")
@pytest.mark.parametrize("known", [False, True])
def test_the_script_makes_what_is_missing_and_updates_what_is_there(known: bool, tmp_path: Path) -> None:
    """With a stand-in for the AWS CLI that writes down what it is asked, and knows everything or nothing."""
    aws = tmp_path / "aws"
    found = "id-1\t7" if known else "None"
    aws.write_text(
        "#!/usr/bin/env bash\n"
        f'echo "$2" "${{@:3}}" >>{tmp_path}/asked\n'
        f"case $2 in describe-*) echo arn:cluster ;; list-*) printf '{found}\\n' ;; esac\n"
    )
    aws.chmod(0o755)
    text = governance_script(resolve(environment(GOVERNED, base="hyperpod-eks-p5")))
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["bash"], input=text, text=True, env=path, check=True)
    asked = (tmp_path / "asked").read_text().splitlines()
    verb = "update" if known else "create"

    made = [line.split()[0] for line in asked if not line.startswith(("describe-", "list-"))]
    assert made == [f"{verb}-cluster-scheduler-config", *[f"{verb}-compute-quota"] * 3]
    where = (
        "--compute-quota-id id-1 --target-version 7" if known else "--cluster-arn arn:cluster --name research"
    )
    assert any(line.startswith(f"{verb}-compute-quota {where}") for line in asked)

"""The MPI operator: Kubernetes takes its objects, and its definition takes the acceptance job."""

from __future__ import annotations

import json
from typing import Any

import kubernetes_validate
import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML
from rules_support import changed, environment_data, loaded
from templates import assembly, cfn_lint

from ultracluster.acceptance.job import manifest
from ultracluster.catalog.eks import kubernetes_releases
from ultracluster.kubernetes.mpi_operator import job_definition, mpi_operator

SCHEMA: dict[str, Any] = job_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def strict(node: dict[str, Any]) -> dict[str, Any]:
    """The schema without its leave to have more fields, but where it says nothing of them: pods."""
    made = {key: value for key, value in node.items() if key != "x-kubernetes-preserve-unknown-fields"}
    if "properties" in made:
        made["properties"] = {name: strict(one) for name, one in made["properties"].items()}
        made["additionalProperties"] = False
    return made


def spec_faults(spec: dict[str, Any]) -> list[str]:
    validator = Draft202012Validator(strict(SCHEMA["properties"]["spec"]))
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(spec)]


def acceptance_job(kind: str = "p5.48xlarge") -> dict[str, Any]:
    text = manifest(kind, 4, image="registry.example.com/nccl-tests:1")
    return json.loads(json.dumps(next(iter(YAML(typ="safe").load_all(text)))))


@pytest.mark.parametrize("release", kubernetes_releases())
def test_kubernetes_takes_every_object(release: str) -> None:
    made = mpi_operator()

    assert [one["kind"] for one in made] == [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "ClusterRole",
        "Deployment",
    ]
    for one in made:
        kubernetes_validate.validate(one, release, strict=True)


def test_the_check_of_objects_can_fail() -> None:
    broken = mpi_operator()[-1]
    broken["spec"]["template"]["spec"]["container"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, "1.34", strict=True)


@pytest.mark.parametrize("kind", ["p4d.24xlarge", "p5.48xlarge", "p6-b300.48xlarge"])
def test_the_definition_takes_the_acceptance_job(kind: str) -> None:
    job = acceptance_job(kind)
    definition = job_definition()["spec"]

    assert job["apiVersion"] == f"{definition['group']}/{definition['versions'][0]['name']}"
    assert job["kind"] == definition["names"]["kind"]
    assert spec_faults(job["spec"]) == []
    for role in ("Launcher", "Worker"):  # what the definition leaves open is a pod of Kubernetes
        template = job["spec"]["mpiReplicaSpecs"][role]["template"]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": template["spec"]}
        kubernetes_validate.validate(pod, "1.34", strict=True)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"slotsPerWorkers": 8}, "slotsPerWorkers"),
        ({"slotsPerWorker": "8"}, "not of type 'integer'"),
        ({"mpiReplicaSpecs": {"Worker": {"template": {"spec": {}}}}}, "'Launcher' is a required"),
        ({"mpiReplicaSpecs": {"Launcher": {"replicas": 2, "template": {"spec": {}}}}}, "maximum of 1"),
        ({"runPolicy": {"cleanPodPolicy": "Some"}}, "is not one of"),
    ],
)
def test_the_definition_refuses_what_is_no_job(change: dict[str, Any], says: str) -> None:
    found = spec_faults(acceptance_job()["spec"] | change)

    assert any(says in one for one in found), found


def test_what_the_operator_writes_is_kept() -> None:
    """Nothing that it or Kueue adds is pruned: every open object keeps unknown fields."""
    spec = SCHEMA["properties"]["spec"]
    roles = spec["properties"]["mpiReplicaSpecs"]["properties"]

    for one in (SCHEMA["properties"]["status"], spec, spec["properties"]["runPolicy"], *roles.values()):
        assert one["x-kubernetes-preserve-unknown-fields"] is True
    assert roles["Worker"]["properties"]["template"]["properties"]["spec"] == {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    assert job_definition()["spec"]["versions"][0]["subresources"] == {"status": {}}


def test_the_operator_may_do_what_it_does_and_no_more() -> None:
    role = mpi_operator()[3]
    rights = {
        (resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]
    }

    assert {
        ("mpijobs/status", "update"),
        ("mpijobs/finalizers", "update"),
        ("jobs", "create"),
        ("pods", "delete"),
        ("secrets", "create"),
    } <= rights
    assert not {one for one in rights if "*" in one or one[0] == "pods/exec"}
    assert ("secrets", "delete") not in rights and "leases" not in {one for one, _ in rights}


def test_a_copy_of_the_image_and_arguments_that_start_it() -> None:
    def container(**arguments: Any) -> dict[str, Any]:
        return mpi_operator(**arguments)[-1]["spec"]["template"]["spec"]["containers"][0]

    assert container()["image"] == "docker.io/mpioperator/mpi-operator:0.8.0"
    assert container(image="copy:1")["image"] == "copy:1"
    assert container()["args"], "without any the image prints its help"


@pytest.mark.parametrize("base", ["eks-p5en", "hyperpod-eks-p5"])
def test_both_kinds_of_cluster_have_it_as_an_option(base: str) -> None:
    changes = {"orchestrator.mpi_operator": True, "orchestrator.mpi_operator_image": "copy.example.com/mpi:1"}
    config = loaded(changed(environment_data(base), changes)).environment
    made = assembly(config)
    template = made.templates[f"{base}-system"]
    applied = [
        one["Properties"]["Manifest"]
        for one in template["Resources"].values()
        if one["Type"] == "Custom::AWSCDK-EKS-KubernetesResource" and "mpijobs" in json.dumps(one)
    ]

    assert made.findings == set()
    assert cfn_lint([made.folder / f"{base}-system.template.json"], config.region) == ""
    assert [len(json.loads(one)) for one in applied] == [9]
    assert "copy.example.com/mpi:1" in applied[0]

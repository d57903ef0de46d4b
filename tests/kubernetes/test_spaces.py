"""Templates, quotas and rights of spaces, before the definitions that the add-on brings."""

from __future__ import annotations

from typing import Any

import pytest
from crd_fields import problems
from kubernetes_support import environment
from project import ROOT

from ultracluster.config import load
from ultracluster.config.hyperpod_spaces import HyperPodSpaces, SpacesWebUi
from ultracluster.kubernetes.isolation import network_policies
from ultracluster.kubernetes.spaces import space_objects, space_values
from ultracluster.kubernetes.team_admission import team_objects
from ultracluster.kubernetes.teams import team_rights
from ultracluster.model import Cluster, resolve

OVERLAY = ROOT / "environments" / "wishes" / "spaces.yaml"
BASE = "hyperpod-eks-p5"
TEAMS = {"teams": {"research": {"quota": 8}, "product": {"quota": 8}}}
WEB = SpacesWebUi(
    domain="spaces.example.com",
    certificate_arn="arn:aws:acm:us-east-2:111122223333:certificate/12345678-1234-1234-1234-123456789012",
    key_arn="arn:aws:kms:us-east-2:111122223333:key/12345678-1234-1234-1234-123456789012",
)


def made(spaces: dict[str, Any] | None = None, **changes: Any) -> Cluster:
    asked = {"group": "train", **(spaces or {})}
    keys = {key.replace("__", "."): value for key, value in changes.items()}
    return resolve(environment({"orchestrator.spaces": asked, **keys}, base=BASE))


def of_kind(cluster: Cluster, kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["namespace"]: one for one in space_objects(cluster) if one["kind"] == kind}


@pytest.mark.parametrize("release", ["1.34", "1.36"])
def test_every_object_has_the_fields_of_its_definition(release: str) -> None:
    for cluster in (resolve(load(OVERLAY).environment), made(), made({"gpus": 1}, **TEAMS)):
        objects = space_objects(cluster)
        assert len(objects) >= 4
        for one in objects:
            assert problems(one, kubernetes=release) == []


def test_a_field_that_is_none_is_found() -> None:
    (template,) = of_kind(made(), "WorkspaceTemplate").values()
    template["spec"]["idleShutdownTimeoutMinutes"] = 5
    assert problems(template)


def test_each_team_has_a_template_and_a_number_of_spaces() -> None:
    cluster = made({"cpu": 4, "memory_gib": 16, "gpus": 1, "per_team": 3, "idle_minutes": 30}, **TEAMS)
    templates, quotas = of_kind(cluster, "WorkspaceTemplate"), of_kind(cluster, "ResourceQuota")

    assert set(templates) == set(quotas) == {"research", "product"}
    spec = templates["research"]["spec"]
    assert templates["research"]["metadata"]["labels"] == {"workspace.jupyter.org/default-template": "true"}
    bounds = {name: one["max"] for name, one in spec["resourceBounds"]["resources"].items()}
    assert bounds == {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
    assert spec["defaultResources"]["requests"] == {"cpu": "4", "memory": "16Gi"}
    assert spec["defaultNodeSelector"] == {"ultracluster/node-group": "train"}
    assert spec["defaultIdleShutdown"]["idleTimeoutInMinutes"] == 30
    assert spec["idleShutdownOverrides"] == {"allow": True, "maxIdleTimeoutInMinutes": 30}
    assert (spec["defaultAccessType"], spec["allowCustomImages"]) == ("OwnerOnly", False)
    # as the team's namespace asks for
    assert spec["defaultPodSecurityContext"]["runAsNonRoot"] is True
    assert spec["defaultContainerSecurityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert quotas["research"]["spec"]["hard"] == {"count/workspaces.workspace.jupyter.org": "3"}


def test_a_team_with_a_user_has_spaces_of_it() -> None:
    cluster = resolve(load(OVERLAY).environment)
    context = of_kind(cluster, "WorkspaceTemplate")["research"]["spec"]["defaultPodSecurityContext"]
    assert {context[key] for key in ("runAsUser", "runAsGroup", "fsGroup")} == {1000}


def test_editors_that_connect_ask_for_memory() -> None:
    (template,) = of_kind(made({"remote_ide": True}), "WorkspaceTemplate").values()
    assert template["spec"]["resourceBounds"]["resources"]["memory"]["min"] == "8Gi"


def test_no_space_is_of_another_template() -> None:
    policy, binding = space_objects(made(**TEAMS))[-2:]
    (rule,) = policy["spec"]["validations"]
    (chosen,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]

    assert "object.spec.templateRef.name == 'ultracluster'" in rule["expression"]
    assert chosen["values"] == ["product", "research"]


def test_task_governance_counts_spaces_in_namespaces_of_its_own() -> None:
    cluster = made(orchestrator__task_governance=True, orchestrator__scheduler="none", **TEAMS)
    template = of_kind(cluster, "WorkspaceTemplate")["hyperpod-ns-research"]

    labels = {one["key"]: one["value"] for one in template["spec"]["baseLabels"]}
    assert labels["kueue.x-k8s.io/queue-name"] == "hyperpod-ns-research-localqueue"
    # they are made after the deploy, with what else belongs there
    assert template in team_objects(cluster)


def test_members_make_spaces_and_enter_them() -> None:
    def groups(cluster: Cluster) -> set[str]:
        role, *_ = team_rights(cluster)
        return {rule["apiGroups"][0] for rule in role["rules"]}

    wanted = {"connection.workspace.jupyter.org", "workspace.jupyter.org"}
    assert wanted <= groups(made(**TEAMS))
    assert not wanted & groups(resolve(environment(TEAMS, base=BASE)))


@pytest.mark.parametrize("web", [False, True])
def test_the_router_alone_reaches_spaces_besides_their_team(web: bool) -> None:
    cluster = made({"web_ui": WEB.model_dump()} if web else {}, **TEAMS)
    text = str(network_policies(cluster, "research"))
    assert ("jupyter-k8s-system" in text) == web


def test_values_of_the_add_on() -> None:
    plain = space_values(HyperPodSpaces(group="train"), ssm_role_arn=None)
    assert plain["jupyter-k8s-aws-hyperpod"] == {"remoteAccess": {"enabled": False}}
    whole = space_values(HyperPodSpaces(group="train", web_ui=WEB), ssm_role_arn="arn")
    here = whole["jupyter-k8s-aws-hyperpod"]

    assert here["remoteAccess"] == {"enabled": True, "ssmManagedNodeRole": "arn"}
    # the add-on's own default is internet-facing
    assert here["clusterWebUI"]["alb"] == {"scheme": "internal"}


def test_without_spaces_there_is_nothing() -> None:
    assert space_objects(resolve(environment({}, base=BASE))) == ()
    assert space_objects(resolve(environment({}))) == ()

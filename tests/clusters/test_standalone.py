"""Every cluster with its defaults in another team's app: valid, and nodes accept what it uploads."""

from __future__ import annotations

from pathlib import Path

import pytest
from aws_cdk import Validations
from cdk_nag import AwsSolutionsChecks
from cluster_schema import faults
from foreign_clusters import KUBERNETES, MAKERS, PCS, REGION, SLURM, Team, deployed, node_facts, uploaded
from templates import Synthesised, app_in, cfn_lint, finish

from ultracluster.model import TRAITS
from ultracluster.software import newest_release

GROUPS = {
    "hyperpod-slurm": SLURM,
    "parallelcluster": SLURM,
    "pcs": PCS,
    "eks": KUBERNETES,
    "hyperpod-eks": KUBERNETES,
}
LEFT_TO_THE_CALLER = {
    # who may use a Kubernetes cluster nobody can guess; EKS asks for the full release of an image
    "Annotation::ultracluster:EKS007",
    "Annotation::ultracluster:IMG007",
    "Annotation::@aws-cdk/aws-eks:clusterMustManuallyTagSubnet",  # the CDK's, of imported subnets
}


@pytest.fixture(scope="module", params=MAKERS)
def standing(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Synthesised]:
    """A cluster of each kind, synthesised."""
    folder = tmp_path_factory.mktemp(request.param)
    app = app_in(folder)
    Team(app).add(request.param)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return request.param, finish(app, folder)


def test_validation_and_nag_find_nothing(standing: tuple[str, Synthesised]) -> None:
    _, made = standing
    assert {rule for rule, _ in made.findings} <= LEFT_TO_THE_CALLER
    assert cfn_lint([made.folder / "research.template.json"], REGION) == ""


def test_nodes_accept_what_is_uploaded(standing: tuple[str, Synthesised], tmp_path: Path) -> None:
    kind, made = standing
    found = dict(uploaded(made.folder))
    seen: set[str] = set()
    newest = next(newest_release(row.software_family).release for row in TRAITS.values() if row.kind == kind)
    for name, files in found.items():
        told = deployed(files["cluster.json"])
        assert faults(told) == []
        assert told["orchestrator"] == kind
        assert told["release"] == newest
        for group in (one for one, facts in told["node_groups"].items() if "instance_type" in facts):
            settings = GROUPS[kind][group]
            facts = node_facts(
                files, tmp_path / name / group, group=group, role=settings.role, kind=settings.instance_type
            )
            assert (facts["NODE_GROUP"], facts["NODE_ROLE"]) == (group, settings.role)
            assert facts["CLUSTER_RELEASE"] == told["release"]
            seen.add(group)
    # EKS manages system nodes, which run no scripts of ours
    assert seen >= {name for name, one in GROUPS[kind].items() if one.role != "system"}

"""Rules on Kubernetes on EKS, each broken and mended."""

from __future__ import annotations

import copy
import re
from datetime import date
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded
from rules_table import cases, found, table_tests

from ultracluster.catalog import instance_types
from ultracluster.catalog.eks import (
    addon_version,
    addons,
    ami_type,
    kubectl_release,
    kubernetes_releases,
    node_image_date,
)
from ultracluster.catalog.eks_calendar import kubernetes_support, read_on, releases_in_standard_support
from ultracluster.catalog.hyperpod_eks import hyperpod_kubernetes_agreed
from ultracluster.catalog.images import Family, newest
from ultracluster.config.capacity import CapacityBlock, OnDemand, Spot
from ultracluster.config.kubernetes import Eks, HyperPodEks, Karpenter, PublicEndpoint
from ultracluster.model import resolve
from ultracluster.model.capacity import decide
from ultracluster.rules import check
from ultracluster.rules.eks import releases as eks_releases
from ultracluster.rules.engine import run
from ultracluster.rules.sets import EKS

BASE = "eks-p5en"
SYSTEM = {"role": "system", "instance_type": "m5.2xlarge", "count": 2}
BLOCK = {"kind": "capacity-block", "id": "cr-0123456789abcdef0"}
IMAGE = "ami-0123456789abcdef0"
TRAIN = "node_groups.train"

BURST = {"role": "compute", "instance_type": "g6e.12xlarge", "count": 0, "max_count": 8}
# `node_groups` first: what comes after changes the group
KARPENTER: dict[str, Any] = {"node_groups.burst": BURST, "orchestrator.karpenter": {"groups": ["burst"]}}


@pytest.fixture(autouse=True)
def that_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eks_releases, "today", lambda: date(2026, 11, 20))


test_breaks_and_is_mended, test_advice_works = table_tests(cases=cases("eks"))


@pytest.mark.parametrize(
    ("release", "on", "rules"),
    [
        ("1.36", date(2026, 11, 20), set()),
        ("1.35", date(2026, 11, 26), set()),
        ("1.35", date(2026, 11, 27), {"EKS014"}),
        ("1.34", date(2026, 12, 1), {"EKS014"}),
        ("1.34", date(2026, 12, 2), {"EKS012"}),
        ("1.34", date(2027, 12, 1), {"EKS012"}),
        ("1.34", date(2027, 12, 2), {"EKS001"}),
        ("1.31", date(2026, 11, 25), {"EKS012", "EKS015"}),
        ("1.31", date(2026, 11, 26), {"EKS001", "EKS015"}),
        ("1.36", date(2030, 1, 1), {"EKS001"}),
    ],
)
def test_what_is_said_of_a_release_depends_on_the_day(
    release: str, on: date, rules: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eks_releases, "today", lambda: on)
    ours = {rule.id for rule in eks_releases.EKS.rules}

    said = {one.code for one in found(EKS, {"orchestrator.kubernetes_version": release}, BASE)}

    assert said & ours == rules


@pytest.mark.parametrize("kind", [Eks, HyperPodEks])
def test_the_default_release_is_the_newest_in_standard_support_with_images(
    kind: type[Eks] | type[HyperPodEks],
) -> None:
    family: Family = "hyperpod-eks" if kind is HyperPodEks else "eks-al2023-nvidia"
    lasting = [
        release
        for release in releases_in_standard_support(read_on())
        if all(newest(family=family, arch=arch, kubernetes=release) for arch in ("x86_64", "arm64"))
    ]
    if kind is HyperPodEks:  # of the newest AWS's pages disagree: HPE120
        lasting = [one for one in lasting if one <= hyperpod_kubernetes_agreed()]
    assert kind.model_fields["kubernetes_version"].default == lasting[-1]


@pytest.mark.parametrize(
    ("day", "told"), [("2026-11-27", False), ("2027-01-20", False), ("2027-02-01", True)]
)
def test_hyperpods_newest_agreed_release_is_told_of_later(
    day: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eks_releases, "today", lambda: date.fromisoformat(day))
    data = changed(environment_data("hyperpod-eks-p5"), {"orchestrator.kubernetes_version": "1.35"})
    assert ("EKS014" in {one.code for one in check(loaded(data))}) is told


def test_kubectl_may_speak_to_every_release_in_standard_support() -> None:
    ours = int(kubectl_release().partition(".")[2])
    assert all(abs(int(one.partition(".")[2]) - ours) <= 1 for one in releases_in_standard_support(read_on()))


def test_the_calendar_is_that_of_fourteen_and_twelve_months() -> None:
    """EKS User Guide: standard support is 14 months from the release on EKS, extended 12 more."""
    for release in kubernetes_releases():
        row = kubernetes_support(release)
        assert row
        assert 420 <= (row.standard_ends - row.on_eks).days <= 430, release
        assert row.extended_ends == row.standard_ends.replace(year=row.standard_ends.year + 1), release


def test_groups_of_karpenter_are_no_managed_node_groups() -> None:
    changes = {f"node_groups.more{number}": SYSTEM for number in range(28)}
    large = {"node_groups.burst.max_count": 451, "node_groups.burst.image": IMAGE}
    assert found(EKS, {**changes, **KARPENTER, **large}, BASE) == []


def test_settings_and_groups_are_judged_without_a_file() -> None:
    settings = Eks(
        kind="eks",
        endpoint=PublicEndpoint(kind="public", cidrs=("0.0.0.0/0",)),
        karpenter=Karpenter(groups=("burst",)),
        kubeflow_trainer=True,
        jobset=False,
        second_zone_id="use2-az2",
    )
    changes = {**KARPENTER, "node_groups.burst.labels": {"Team Name": "a"}, "node_groups.burst.count": 1}
    group = resolve(loaded(changed(environment_data(BASE), changes)).environment).groups["burst"]

    assert [(one.code, one.dotted) for one in check(settings)] == [
        ("EKS006", "endpoint.cidrs[0]"),
        ("EKS007", ""),
        ("EKS011", "kubeflow_trainer"),
    ]
    assert {("EKS023", ("labels", "Team Name")), ("EKS052", ("max_count",))} <= {
        (one.code, one.path) for one in check(group)
    }


def test_hyperpod_on_eks_is_judged_by_those_that_are_about_both() -> None:
    data = changed(environment_data(BASE), {
        "orchestrator": {"kind": "hyperpod-eks", "second_zone_id": "use2-az2", "admins": []},
        f"{TRAIN}.image": IMAGE,
    })  # fmt: skip
    codes = {one.code for one in run(EKS.rules, loaded(copy.deepcopy(data)))}

    assert {"EKS002", "EKS007"} <= codes
    assert "EKS028" not in codes  # images are HyperPod's own subject


@pytest.mark.parametrize(
    "known", [t for t in instance_types().values() if t.accelerator], ids=lambda t: t.name
)
def test_every_accelerated_type_has_an_image_with_its_driver(known: Any) -> None:
    kind = ami_type(known)

    assert kind
    assert ("NEURON" in kind) == (known.accelerator.manufacturer == "AWS")
    assert ("ARM" in kind) == (known.architecture == "arm64")
    assert "STANDARD" not in kind


def test_kinds_of_images_are_those_of_cloudformation() -> None:
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-2", "AWS::EKS::Nodegroup").schema
    ours = {ami_type(known) for known in instance_types().values()} - {None}

    assert len(ours) == 5 and ours <= set(schema["properties"]["AmiType"]["enum"])
    assert set(schema["properties"]["CapacityType"]["enum"]) >= {"ON_DEMAND", "SPOT", "CAPACITY_BLOCK"}


def test_versions_carry_their_kubernetes_release() -> None:
    for release in kubernetes_releases():
        assert re.fullmatch(r"2026\d{4}", node_image_date(release))
        assert addon_version("kube-proxy", release).startswith(f"v{release}.")
        for name in addons():
            assert re.fullmatch(r"v\d+\.\d+\.\d+-eksbuild\.\d+", addon_version(name, release)), name
    with pytest.raises(KeyError):
        addon_version("vpc-cni", "1.20")


def test_purchases_are_capacity_types_of_eks() -> None:
    known = instance_types()["p5.48xlarge"]
    said = [
        decide(capacity, orchestrator="eks", placement="none", instance_type=known).purchase
        for capacity in (OnDemand(), Spot(kind="spot"), CapacityBlock(**BLOCK))  # pyright: ignore[reportArgumentType]
    ]
    assert said == ["ON_DEMAND", "SPOT", "CAPACITY_BLOCK"]

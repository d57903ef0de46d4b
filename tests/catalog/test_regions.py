"""Look-ups of Regions and zones."""

import dataclasses

import pytest

from tools import catalog_from_authorities as authorities
from ultracluster.catalog import connected_zone, is_local_zone, nearest_regions, region, regions, zone_region
from ultracluster.catalog.files import catalog_file


def test_a_region_by_its_name() -> None:
    oregon = region("us-west-2")
    assert oregon is not None
    assert (oregon.partition, oregon.dns_suffix, oregon.zone_prefix) == (
        "aws",
        "amazonaws.com",
        "usw2",
    )
    assert oregon.zone_ids == ("usw2-az1", "usw2-az2", "usw2-az3", "usw2-az4")
    assert oregon.hyperpod is True
    assert oregon.fsx is True
    assert region("us-west-3") is None


def test_partitions_differ() -> None:
    assert {r.dns_suffix for r in regions().values() if r.partition == "aws-cn"} == {"amazonaws.com.cn"}
    assert {r.name for r in regions().values() if r.partition == "aws-us-gov"} == {
        "us-gov-east-1",
        "us-gov-west-1",
    }


def test_what_cfn_lint_does_not_know_is_unknown() -> None:
    unknown = {r.name for r in regions().values() if r.hyperpod is None}
    assert unknown == {r.name for r in regions().values() if r.fsx is None}
    schemas = authorities.package("cfnlint") / "data/schemas/providers"
    assert unknown == {n for n in regions() if not (schemas / f"{n}.json").exists()}


def test_hyperpod_exists_where_cloudformation_has_it() -> None:
    # read off CloudFormation's Region list on 2026-11-20
    commercial = {r.name for r in regions().values() if r.hyperpod and r.partition == "aws"}
    assert commercial == {
        "ap-northeast-1",
        "ap-northeast-2",
        "ap-south-1",
        "ap-south-2",
        "ap-southeast-1",
        "ap-southeast-2",
        "ap-southeast-3",
        "ap-southeast-4",
        "ca-central-1",
        "eu-central-1",
        "eu-north-1",
        "eu-south-2",
        "eu-west-1",
        "eu-west-2",
        "sa-east-1",
        "us-east-1",
        "us-east-2",
        "us-west-1",
        "us-west-2",
    }


@pytest.mark.parametrize(
    ("zone", "name"),
    [
        ("use1-az1", "us-east-1"),
        ("usw2-az4", "us-west-2"),
        ("apne1-az4", "ap-northeast-1"),
        ("usgw1-az1", "us-gov-west-1"),
        ("use1-atl2-az1", "us-east-1"),
        ("cnn1-pkx1-az1", "cn-north-1"),
        ("use1-wl1-bos-wlz1", "us-east-1"),
        ("us-east-1a", "us-east-1"),
        ("us-east-1-dfw-2a", "us-east-1"),
        ("us-west-2-phx-2a", "us-west-2"),
        ("us-east-1-wl1-bos-wlz-1", "us-east-1"),
        ("eusc-de-east-1b", "eusc-de-east-1"),
    ],
)
def test_the_region_of_a_zone(zone: str, name: str) -> None:
    found = zone_region(zone)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "zone",
    ["", "use1", "us-east-1", "use1-a1", "use9-az1", "use12-az1", "us-east-1-az1", "xuse1-az1"],
)
def test_what_is_no_zone_has_no_region(zone: str) -> None:
    assert zone_region(zone) is None


@pytest.mark.parametrize("name", regions())
def test_every_zone_id_leads_to_its_region(name: str) -> None:
    for zone in regions()[name].zone_ids:
        assert zone_region(zone) is regions()[name]


def test_prefixes_are_not_shared() -> None:
    prefixes = [r.zone_prefix for r in regions().values() if r.zone_prefix]
    assert len(prefixes) == len(set(prefixes))


@pytest.mark.parametrize(
    ("wrong", "best"),
    [
        ("us-east", ["us-east-1", "us-east-2"]),
        ("US-West-3", ["us-west-1", "us-west-2"]),
        ("us-east-1a", ["us-east-1"]),
        ("euwest1", ["eu-west-1"]),
        ("the moon", []),
    ],
)
def test_suggestions_for_a_wrong_name(wrong: str, best: list[str]) -> None:
    assert nearest_regions(wrong)[: max(len(best), 1)] == best


def test_nothing_can_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        regions()["us-east-1"].fsx = False  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError):
        regions()["us-east-1"] = regions()["us-east-2"]  # pyright: ignore[reportIndexIssue]


def test_a_local_zone_is_connected_to_a_zone_of_its_region() -> None:
    assert connected_zone("use1-atl2-az1") == "use1-az5"
    assert connected_zone("use1-az5") is connected_zone("use1-wl1-bos-wlz1") is None
    for local, parent in catalog_file("local_zones")["parent_zones"].items():
        assert is_local_zone(local) and not is_local_zone(parent)
        assert zone_region(local) == zone_region(parent) is not None

"""The catalogue against botocore, cfn-lint and moto: whoever knows better makes a test fail."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tools import catalog_from_authorities as authorities
from ultracluster.catalog import InstanceType, figure, instance_types, offered_zone_ids, regions

KNOWN = json.loads((Path(__file__).parent / "known_disagreements.json").read_text())
TYPES = list(instance_types().values())
BY_HAND = json.loads((authorities.CATALOG / "instances.json").read_text())["types"]

# Training types that the catalogue leaves out on purpose.
LEFT_OUT = json.loads((Path(authorities.__file__).with_name("facts.json")).read_text())["left_out"]


def unlike_ec2(types: Iterable[InstanceType]) -> list[str]:
    """Types whose rows and EC2's API contradict each other."""
    known = authorities.enum("ec2", "InstanceType")
    return [t.name for t in types if (t.name in known) == bool(t.announced)]


def test_every_type_exists_in_ec2_or_is_announced() -> None:
    assert unlike_ec2(TYPES) == [], "a misspelt name, or `announced` is out of date"


def test_a_misspelt_type_and_an_outdated_announcement_are_found() -> None:
    p5, day = instance_types()["p5.48xlarge"], "2026-11-20"
    new = replace(p5, name="p7.48xlarge", announced=day)
    assert unlike_ec2([p5, new]) == []
    assert unlike_ec2([replace(p5, announced=day), replace(p5, name="p5.49xlarge")]) == [
        "p5.48xlarge",
        "p5.49xlarge",
    ]


def test_an_announcement_has_a_source() -> None:
    announced = [t for t in TYPES if t.announced]
    assert all(date.fromisoformat(t.announced) and t.sources for t in announced)


def test_whether_hyperpod_has_a_type_is_unknown_of_announced_types_only() -> None:
    """The list of HyperPod's types is in the same botocore: what is not on it is refused."""
    assert [t.name for t in TYPES if t.hyperpod is None and not t.announced] == []


def test_every_hyperpod_type_is_known_and_no_other_is_called_one() -> None:
    offered = authorities.enum("sagemaker", "ClusterInstanceType")
    ours = {t.hyperpod_name for t in TYPES if t.hyperpod}
    assert offered - ours == set(), "HyperPod types that the catalogue lacks"
    assert ours - offered == set(), "no longer HyperPod types"


def test_training_plans_are_sold_for_these_types() -> None:
    offered = authorities.enum("sagemaker", "ReservedCapacityInstanceType")
    assert {t.hyperpod_name for t in TYPES if t.training_plan} == offered


def test_no_new_training_type_goes_unnoticed() -> None:
    training = {n for n in authorities.enum("ec2", "InstanceType") if re.match(r"p[5-9]|trn", n)}
    assert training - set(instance_types()) == set(LEFT_OUT)


def region_changes(types: Iterable[InstanceType]) -> list[str]:
    """One line for each row whose Regions are not those that cfn-lint derives."""
    changes: list[str] = []
    for t in types:
        for field, ours, theirs in (
            ("regions", t.regions, authorities.priced_in("aws_ec2_instance", t.name)),
            (
                "hyperpod_regions",
                t.hyperpod_regions,
                authorities.priced_in("aws_sagemaker_cluster", t.hyperpod_name),
            ),
        ):
            if list(ours) != theirs:
                new, gone = sorted(set(theirs) - set(ours)), sorted(set(ours) - set(theirs))
                changes.append(f"{t.name} {field}: new {new}, gone {gone}; now {theirs}")
    return changes


def test_regions_are_those_of_cfn_lint() -> None:
    assert region_changes(TYPES) == []


def test_a_changed_region_is_told_by_row_and_new_value() -> None:
    row = InstanceType(name="trn2.48xlarge", regions=("mars-1",), hyperpod_regions=())
    changes = region_changes([row])
    assert changes[0].startswith("trn2.48xlarge regions: new ")
    assert "gone ['mars-1']; now " in changes[0]


def test_every_region_of_a_type_is_a_region() -> None:
    assert {r for t in TYPES for r in (*t.regions, *t.hyperpod_regions)} <= set(regions())


def test_hyperpod_exists_wherever_hyperpod_types_are_priced() -> None:
    # Two Regions have prices and no CloudFormation type: HyperPod by API alone.
    priced = {r for t in TYPES for r in t.hyperpod_regions}
    assert {r for r in priced if not regions()[r].hyperpod} == {"ap-southeast-5", "eu-central-2"}


def api_figures(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What the API says of one type, in our words."""
    network, storage = answer["NetworkInfo"], answer.get("InstanceStorageInfo", {})
    cards = network["NetworkCards"]
    device = authorities.accelerators(answer)
    return {
        "vcpu": answer["VCpuInfo"]["DefaultVCpus"],
        "memory_gib": answer["MemoryInfo"]["SizeInMiB"] / 1024,
        "architecture": answer["ProcessorInfo"]["SupportedArchitectures"][0],
        "accelerator": [device[k] for k in ("manufacturer", "name", "count")] if device else None,
        "accelerator.memory_gib": device["memory_gib"] if device else None,
        "network_gbps": authorities.gigabits(network["NetworkPerformance"]),
        "network_gbps of all cards": sum(card["PeakBandwidthInGbps"] for card in cards),
        "gbps of card 0 in words": authorities.gigabits(cards[0]["NetworkPerformance"]),
        "network_cards": network["MaximumNetworkCards"],
        "network_interfaces": network["MaximumNetworkInterfaces"],
        "network_interfaces_per_card": max(card["MaximumNetworkInterfaces"] for card in cards),
        "efa_interfaces": network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        "efa_only": any("efa-only" in card["InterfaceTypes"] for card in cards),
        "efa_on_card_0": "efa-only" in cards[0]["InterfaceTypes"],
        "cards": [
            [
                card["NetworkCardIndex"],
                card["BaselineBandwidthInGbps"],
                card["PeakBandwidthInGbps"],
                card["MaximumNetworkInterfaces"],
                card["InterfaceTypes"],
            ]
            for card in cards
        ],
        "ipv4_per_interface": network["Ipv4AddressesPerInterface"],
        "local_nvme_disks": sum(disk["Count"] for disk in storage.get("Disks", [])),
        "local_nvme_gb": storage.get("TotalSizeInGB", 0),
        "threads_per_core": answer["VCpuInfo"].get("ValidThreadsPerCore", []),
        "spot": "spot" in answer["SupportedUsageClasses"],
    }


def our_figures(t: InstanceType) -> dict[str, Any]:
    """The same figures from the catalogue."""
    device, rows = t.accelerator, t.network_cards_api
    same = ("vcpu", "memory_gib", "architecture", "network_gbps", "network_cards", "spot")
    same += ("network_interfaces", "network_interfaces_per_card", "efa_interfaces", "efa_only")
    same += ("efa_on_card_0", "ipv4_per_interface", "local_nvme_disks", "local_nvme_gb")
    return {field: getattr(t, field) for field in same} | {
        "accelerator": [device.manufacturer, device.name, device.count] if device else None,
        "accelerator.memory_gib": device.memory_gib if device else None,
        "network_gbps of all cards": t.network_gbps,
        "gbps of card 0 in words": rows[0].peak_gbps if rows else None,
        "cards": [
            [card, row.baseline_gbps, row.peak_gbps, row.interfaces, list(row.interface_types)]
            for row in rows
            for card in range(row.first, row.last + 1)
        ],
        "threads_per_core": list(t.threads_per_core),
    }


def disagreements() -> dict[tuple[str, str], list[Any]]:
    """[theirs, ours] by type and field wherever moto's API answers and the catalogue differ."""
    found: dict[tuple[str, str], list[Any]] = {}
    for t in TYPES:
        if t.name not in authorities.api():
            found[t.name, "type"] = ["absent", "present"]
            continue
        answer = authorities.api()[t.name]
        theirs, ours = api_figures(answer), our_figures(t)
        found |= {(t.name, f): [theirs[f], ours[f]] for f in theirs if theirs[f] != ours[f]}
        if t.name in BY_HAND:
            on_demand = [
                "on-demand" in answer["SupportedUsageClasses"],
                any(figure(f"ec2.{t.name}", region) for region in regions()),
            ]
            if on_demand[0] != on_demand[1]:
                found[t.name, "sold on demand"] = on_demand
            for region in regions():
                zones = [
                    [z for z in authorities.zone_ids(region) if offers(region, z, t.name)],
                    list(offered_zone_ids(t.name, region)),
                ]
                if zones[0] != zones[1]:
                    found[t.name, f"zones of {region}"] = zones
    return found


def offers(region: str, zone_id: str, name: str) -> bool:
    """EC2's offerings, as moto ships them, have the type in this zone."""
    file = f"{authorities.OFFERINGS}/{region}.json.gz"
    if not (authorities.package("moto") / file).exists():
        return False
    return {"InstanceType": name, "Location": zone_id} in authorities.data("moto", file)


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], list[Any]]:
    return disagreements()


def test_figures_are_those_of_the_ec2_api(found: dict[tuple[str, str], list[Any]]) -> None:
    listed = {(row["type"], row["field"]) for row in KNOWN}
    unexpected = [
        f"{name} {field}: the EC2 API has {theirs}, the catalogue {ours}"
        for (name, field), (theirs, ours) in found.items()
        if (name, field) not in listed and not instance_types()[name].announced
    ]
    assert unexpected == [], "correct the row, or list it with a reason"


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: f"{row['type']} {row['field']}")
def test_a_known_disagreement_still_exists(
    row: dict[str, Any], found: dict[tuple[str, str], list[Any]]
) -> None:
    assert row["reason"]
    now = found.get((row["type"], row["field"]))
    assert now is not None, "both agree now: take it off known_disagreements.json"
    assert now == [row["api"], row["ours"]], "the figures of a known disagreement have changed"

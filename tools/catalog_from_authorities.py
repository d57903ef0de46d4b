#!/usr/bin/env python
"""Rewrites the catalogue's generated files from what botocore, cfn-lint and moto ship.

    python tools/catalog_from_authorities.py

general_instances.json: every instance type of HyperPod that instances.json does not hold by hand.
regions.json: every Region that botocore knows. rds_classes.json: instance classes of RDS for MySQL.
tests/catalog compares them with a fresh run.
"""

import gzip
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

CATALOG = Path(__file__).parent.parent / "constructs" / "ultracluster" / "catalog"
OFFERINGS = "ec2/resources/instance_type_offerings/availability-zone-id"
Row = dict[str, Any]

# The API does not tell the Nitro generation; families that no source names stay without one.
NITRO = {
    **dict.fromkeys(("m5", "m6g", "t3"), 2),
    **dict.fromkeys(("c5n", "g4dn", "g5", "i3en"), 3),
    **dict.fromkeys(("c6a", "c6i", "c7g", "g6", "g6e", "gr6", "m6a", "m6i", "m7g", "m7i"), 4),
    **dict.fromkeys(("r6i", "r7i"), 4),
    **dict.fromkeys(("c8g", "m8g"), 5),
    **dict.fromkeys(("c8a", "g7", "g7e", "m8a"), 6),
}
NITRO_SOURCE = (
    "Nitro generations: EC2 User Guide 'Elastic Fabric Adapter', supported instance types (cited "
    "by a third-party review of 2026-08-01); EC2 instance types guide, general purpose families"
)


def general_instances() -> Row:
    """The document of general_instances.json."""
    names = sorted(name.removeprefix("ml.") for name in enum("sagemaker", "ClusterInstanceType"))
    by_hand = json.loads((CATALOG / "instances.json").read_text())["types"]
    plans = enum("sagemaker", "ReservedCapacityInstanceType")
    types: dict[str, Row] = {}
    for name in names:
        if name not in by_hand:
            types[name] = {
                **(described(name, api()[name]) if name in api() else {"vcpu": None}),
                "hyperpod": True,
                **({"training_plan": True} if f"ml.{name}" in plans else {}),
                "hyperpod_regions": priced_in("aws_sagemaker_cluster", f"ml.{name}"),
                "regions": priced_in("aws_ec2_instance", name),
            }
    about = {
        "what": "HyperPod's instance types that instances.json does not hold: controllers, logins, "
        "smaller accelerated sizes. Written by tools/catalog_from_authorities.py.",
        "date": schema_date(),
        "unknown": "a missing key or null = the default of InstanceType, for figures unknown",
        "families": "what all sizes of a family here have in common",
        "sources": [
            f"EC2 DescribeInstanceTypes as shipped by moto {version('moto')} (undated)",
            f"HyperPod and training plans: botocore {version('botocore')}, sagemaker enums",
            f"Regions: cfn-lint {version('cfn-lint')}, derived from AWS price lists",
            NITRO_SOURCE,
            "HyperPod addresses: estimates by the rule that AWS publishes for P5 (instances.json)",
        ],
    }
    return {"about": about, **by_family(types)}


def by_family(types: Mapping[str, Row]) -> dict[str, dict[str, Row]]:
    """The rows, with what all sizes of a family have in common stated once, for the family."""
    sizes: dict[str, list[Row]] = {}
    for name, row in types.items():
        sizes.setdefault(family(name), []).append(row)
    families = {
        name: {k: v for k, v in rows[0].items() if all(k in row and row[k] == v for row in rows)}
        for name, rows in sizes.items()
        if len(rows) > 1
    }
    own = {
        name: {k: v for k, v in row.items() if k not in families.get(family(name), {})}
        for name, row in types.items()
    }
    return {"families": families, "types": own}


def family(name: str) -> str:
    """p5en of p5en.48xlarge."""
    return name.partition(".")[0]


def described(name: str, answer: Mapping[str, Any]) -> Row:
    """Our row for one answer of DescribeInstanceTypes; what has the default is left out."""
    network, cpu = answer["NetworkInfo"], answer["VCpuInfo"]
    cards = network["NetworkCards"]
    efa = network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    efa_only = any("efa-only" in card["InterfaceTypes"] for card in cards)
    per_card = {card["MaximumNetworkInterfaces"] for card in cards}
    ipv4, nitro = network["Ipv4AddressesPerInterface"], NITRO.get(family(name))
    row: Row = {
        "vcpu": cpu["DefaultVCpus"],
        "memory_gib": number(answer["MemoryInfo"]["SizeInMiB"] / 1024),
        "architecture": answer["ProcessorInfo"]["SupportedArchitectures"][0],
    }
    if devices := accelerators(answer):
        row["accelerator"] = devices
    row |= {
        "network_gbps": gigabits(network["NetworkPerformance"]),
        "network_cards": network["MaximumNetworkCards"],
        "network_interfaces": network["MaximumNetworkInterfaces"],
        "network_interfaces_per_card": per_card.pop() if len(per_card) == 1 else None,
        "efa_interfaces": efa,
        "efa_layout_rule": "SINGLE_CARD" if efa else "NO_EFA",
        "network_cards_api": [
            {
                "first": card["NetworkCardIndex"],
                "last": card["NetworkCardIndex"],
                "baseline_gbps": card["BaselineBandwidthInGbps"],
                "peak_gbps": card["PeakBandwidthInGbps"],
                "interfaces": card["MaximumNetworkInterfaces"],
                "interface_types": card["InterfaceTypes"],
            }
            for card in cards
        ],
        "nitro": nitro,
        "ipv4_per_interface": ipv4,
        "hyperpod_addresses_slurm": len(cards),
        "hyperpod_addresses_eks": ipv4 + len(cards) - 1,
        "threads_per_core": cpu.get("ValidThreadsPerCore", []),
        "spot": "spot" in answer["SupportedUsageClasses"],
    }
    if len(cards) > 1 and efa:
        raise SystemExit(f"{name} has several network cards with EFA: add it to instances.json")
    if efa:
        row |= {"efa_only": efa_only, "efa_on_card_0": True}
        if (nitro or 0) >= 4 and not name.startswith("trn2"):
            row |= {"lustre_efa_client": True, "lustre_efa_interfaces": 1}
    if answer.get("InstanceStorageInfo", {}).get("NvmeSupport") in ("required", "supported"):
        storage = answer["InstanceStorageInfo"]
        row["local_nvme_disks"] = sum(disk["Count"] for disk in storage["Disks"])
        row["local_nvme_gb"] = storage["TotalSizeInGB"]
    return row


def accelerators(answer: Mapping[str, Any]) -> Row | None:
    """Our accelerator row for one answer of DescribeInstanceTypes, or None."""
    gpus = answer.get("GpuInfo", {}).get("Gpus", [])
    chips = answer.get("NeuronInfo", {}).get("NeuronDevices", [])
    if not (devices := gpus or chips):
        return None
    count = sum(device["Count"] for device in devices)
    mib = sum(device["Count"] * device["MemoryInfo"]["SizeInMiB"] for device in devices)
    return {
        "name": devices[0]["Name"],
        "manufacturer": devices[0].get("Manufacturer", "AWS"),
        "count": count,
        "memory_gib": number(round(mib / 1024, 2)),
    }


def regions() -> Row:
    """The document of regions.json."""
    rows: dict[str, Row] = {}
    for partition in data("botocore", "data/partitions.json")["partitions"]:
        for name in sorted(partition["regions"]):
            if not name.endswith("-global"):
                rows[name] = {
                    "partition": partition["id"],
                    "dns_suffix": partition["outputs"]["dnsSuffix"],
                    "zone_prefix": zone_prefix(name),
                    "zone_ids": zone_ids(name),
                    "zone_lacks": zone_lacks(name),
                    "hyperpod": has_resource(name, "AWS::SageMaker::Cluster"),
                    "fsx": has_resource(name, "AWS::FSx::FileSystem"),
                    "pcs": has_resource(name, "AWS::PCS::Cluster"),
                    "budgets": has_resource(name, "AWS::Budgets::Budget"),
                    "prometheus": offered(name, "AWS::APS::Workspace", "aps"),
                    "grafana": offered(name, "AWS::Grafana::Workspace", "grafana"),
                }
    about = {
        "what": "AWS Regions. Written by tools/catalog_from_authorities.py.",
        "date": schema_date(),
        "unknown": "null or an empty list = unknown, never 'no'",
        "sources": [
            f"partition, dns_suffix: botocore {version('botocore')}",
            f"hyperpod, fsx, pcs, budgets: types in cfn-lint {version('cfn-lint')}'s provider schemas",
            "prometheus, grafana: the same and botocore's endpoints; null where one has it and one not",
            f"zone_ids: prices.csv; EC2's offerings as shipped by moto {version('moto')} (undated)",
            "zone_lacks: the same offerings, by family, Local Zones left out",
            "zone_prefix: form of all known zone ids; that alone where there are none (EC2 would settle)",
        ],
    }
    return {"about": about, "regions": rows}


def rds_classes() -> Row:
    """The document of rds_classes.json."""
    schemas = data("cfnlint", "data/schemas/extensions/aws_rds_dbinstance/dbinstanceclass_enum.json")
    there: dict[str, set[str]] = {}
    for region, schema in schemas.items():
        for branch in schema["allOf"]:
            asked = branch["if"]["properties"]
            if asked["Engine"].get("const") == "mysql":
                names = branch["then"]["properties"]["DBInstanceClass"]["enum"]
                there.setdefault(region, set()).update(name.removeprefix("db.") for name in names)
    sizes: dict[str, set[str]] = {}
    for name in set().union(*there.values()):
        sizes.setdefault(family(name), set()).add(name.partition(".")[2])
    about = {
        "what": "Instance classes of RDS for MySQL, without `db.`: sizes by family, and the families of each "
        "Region. Written by tools/catalog_from_authorities.py.",
        "date": schema_date(),
        "unknown": "a family or a Region that is missing proves nothing",
        "sources": [f"cfn-lint {version('cfn-lint')}, derived from AWS price lists"],
    }
    return {
        "about": about,
        "sizes": {name: sorted(sizes[name]) for name in sorted(sizes)},
        "regions": {region: sorted({family(one) for one in there[region]}) for region in sorted(there)},
    }


def zone_prefix(region: str) -> str | None:
    """use1 of us-east-1, usgw1 of us-gov-west-1; None for isolated and sovereign Regions."""
    form = re.fullmatch(r"([a-z]{2})(-gov)?-([a-z]+)-(\d)", region)
    if form is None or form[3] in ("iso", "isob"):
        return None
    compass = re.findall("north|south|central|east|west", form[3])
    gov = "g" if form[2] else ""
    return form[1] + gov + "".join(word[0] for word in compass) + form[4]


def zone_ids(region: str) -> list[str]:
    """Zone ids of the Region in EC2's offerings and in prices.csv."""
    zones: set[str] = set()
    if (package("moto") / OFFERINGS / f"{region}.json.gz").exists():
        zones |= {row["Location"] for row in data("moto", f"{OFFERINGS}/{region}.json.gz")}
    for line in (CATALOG / "prices.csv").read_text().splitlines()[1:]:
        _, place, ids = line.split(",")[:3]
        if place == region:
            zones |= set(filter(None, ids.split(";")))
    return sorted(zones)


def zone_lacks(region: str) -> dict[str, list[str]]:
    """Availability Zones of the Region -> families of types that others of its zones have, and they not."""
    if not (package("moto") / OFFERINGS / f"{region}.json.gz").exists():
        return {}
    ours = {family(name) for name in json.loads((CATALOG / "general_instances.json").read_text())["types"]}
    zones: dict[str, set[str]] = {}
    for row in data("moto", f"{OFFERINGS}/{region}.json.gz"):
        if re.fullmatch(r"[a-z0-9]+-az\d+", row["Location"]):
            zones.setdefault(row["Location"], set()).add(family(row["InstanceType"]))
    there = ours & set().union(*zones.values()) if zones else set[str]()
    return {zone: sorted(there - has) for zone, has in sorted(zones.items()) if there - has}


def offered(region: str, kind: str, service: str) -> bool | None:
    """Whether CloudFormation has a resource type in a Region, and botocore an endpoint of its service; None
    where they do not agree."""
    partitions = data("botocore", "data/endpoints.json")["partitions"]
    listed = any(region in one["services"].get(service, {}).get("endpoints", ()) for one in partitions)
    return listed if listed == has_resource(region, kind) else None


def has_resource(region: str, resource: str) -> bool | None:
    """Whether CloudFormation has the resource type there; None where cfn-lint has no schemas."""
    file = f"data/schemas/providers/{region}.json"
    return resource in data("cfnlint", file) if (package("cfnlint") / file).exists() else None


def priced_in(table: str, name: str) -> list[str]:
    """Regions in whose price list cfn-lint found the type."""
    tables = data("cfnlint", f"data/schemas/extensions/{table}/instancetype_enum.json")
    return sorted(r for r, schema in tables.items() if "-" in r and name in schema["enum"])


def api() -> Mapping[str, Any]:
    """DescribeInstanceTypes answers by type, as moto ships them."""
    return data("moto", "ec2/resources/instance_types.json.gz")


@cache
def enum(service: str, shape: str) -> frozenset[str]:
    """Values of an enum in botocore's newest model of the service."""
    edition = max((package("botocore") / "data" / service).iterdir()).name
    model = data("botocore", f"data/{service}/{edition}/service-2.json.gz")
    return frozenset(model["shapes"][shape]["enum"])


def schema_date() -> str:
    return data("cfnlint", "data/schemas/version.json")["schema_date"][:10]


@cache
def data(module: str, file: str) -> Any:
    content = (package(module) / file).read_bytes()
    return json.loads(gzip.decompress(content) if file.endswith(".gz") else content)


@cache
def package(module: str) -> Path:
    """Directory of an installed package, found without importing it."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{module} is not installed: run `make setup-dev`")
    return Path(spec.origin).parent


def gigabits(performance: str) -> float | None:
    """Gbit/s of a text such as "Up to 12.5 Gigabit", "3200 Gigabit" or "4x 100 Gigabit"."""
    figure = re.search(r"(?:(\d+)x )?([\d.]+) Gigabit", performance)
    return number(int(figure[1] or 1) * float(figure[2])) if figure else None


def number(value: float) -> float:
    return int(value) if value == int(value) else value


def render(document: Row) -> str:
    """JSON with one line per row, so that a change shows as the rows it touches."""
    sections: list[str] = []
    for name, section in document.items():
        rows = [f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in section.items()]
        sections.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(rows) + "\n  }")
    return "{\n" + ",\n".join(sections) + "\n}\n"


if __name__ == "__main__":
    (CATALOG / "general_instances.json").write_text(render(general_instances()))
    (CATALOG / "regions.json").write_text(render(regions()))
    (CATALOG / "rds_classes.json").write_text(render(rds_classes()))

"""EC2 instance types and UltraServers as AWS offers them.

`instances.json` holds the accelerated types and what whole families have in common, `ultraservers.json` the
UltraServers, both kept by hand; `general_instances.json`, every other type that HyperPod takes, is written by
`tools/catalog_from_authorities.py`. Their headers name source and date. All that rules, figures, node scripts
and acceptance jobs need to know of a type is a column here: nothing else lists types.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

from ultracluster.catalog.files import catalog_file, record
from ultracluster.catalog.instance_facts import Accelerator, InstanceType, NetworkCards, UltraServer

_NITRO_WITH_LUSTRE_EFA = 4
"""FSx for Lustre User Guide, "EFA-enabled file systems"."""


_FILES = ("general_instances", "instances")


@cache
def instance_types() -> Mapping[str, InstanceType]:
    """Every known instance type by EC2 name; read-only."""
    names = (name for file in _FILES for name in catalog_file(file)["types"])
    return MappingProxyType({name: type_ for name in names if (type_ := instance_type(name))})


@cache
def families() -> Mapping[str, Mapping[str, Any]]:
    """What whole families have in common, as `instances.json` has it; read-only."""
    return MappingProxyType(catalog_file("instances")["families"])


def family_facts(family: str) -> Mapping[str, Any]:
    """The columns that all types of a family share ("p5en"); empty for a family that has none."""
    return families().get(family, {})


_OTHERS = ("parallelcluster", "nccl", "hyperpod_slurm")
"""Keys that are no columns of `InstanceType`: `catalog.parallelcluster`, `acceptance.curves` and
`model.slurm_topology` read them."""


@cache
def rows_with(key: Literal["parallelcluster", "nccl", "hyperpod_slurm"]) -> Mapping[str, Any]:
    """What families and types of `instances.json` have under a key that is no column, by their names."""
    rows = catalog_file("instances")["families"] | catalog_file("instances")["types"]
    return MappingProxyType({name: row[key] for name, row in rows.items() if key in row})


@cache
def instance_type(name: str) -> InstanceType | None:
    """The type that EC2 calls `name`, or None if the catalogue does not know it."""
    documents = (catalog_file(file) for file in reversed(_FILES))
    document = next((document for document in documents if name in document["types"]), None)
    if document is None:
        return None
    family = name.partition(".")[0]
    facts = {
        "sources": document["about"].get("sources", []),
        **family_facts(family),
        **document.get("families", {}).get(family, {}),
        **document["types"][name],
    }
    columns = {key: value for key, value in facts.items() if key not in _OTHERS}
    gates = facts.get("nccl", {}).get("gates", ())
    columns["nccl_two_nodes_judged"] = any(gate["run"] == "two nodes" for gate in gates)
    return _instance_type(name, columns)


@cache
def example_type() -> str:
    """A type that people train on, where words need an example or a question a default."""
    return catalog_file("instances")["example"]


@cache
def ultraservers() -> Mapping[str, UltraServer]:
    """Every known UltraServer by name; read-only."""
    rows = catalog_file("ultraservers")["ultraservers"]
    members = {name: one.name for one in instance_types().values() for name in one.ultraserver}
    return MappingProxyType(
        {name: record(UltraServer, row, name=name, member=members.get(name)) for name, row in rows.items()}
    )


def ultraserver(name: str) -> UltraServer | None:
    """The UltraServer called `name` ("u-p6e-gb200x72"), or None if the catalogue lacks it."""
    return ultraservers().get(name)


def _instance_type(name: str, row: Mapping[str, Any]) -> InstanceType:
    fields = _frozen({key: value for key, value in row.items() if value is not None})
    if "accelerator" in fields:
        fields["accelerator"] = Accelerator(**fields["accelerator"])
    if "network_cards_api" in fields:
        cards = tuple(record(NetworkCards, row) for row in fields["network_cards_api"])
        fields["network_cards_api"] = cards
        fields.setdefault("efa_cards", _efa_cards(cards))
    elif "efa_cards" not in fields and (assumed := _assumed_cards(fields)):
        fields |= {"efa_cards": assumed, "efa_cards_assumed": True}
    nitro = fields.get("nitro")
    if fields.get("efa_interfaces") == 0 or (nitro and nitro < _NITRO_WITH_LUSTRE_EFA):
        fields.setdefault("lustre_efa_client", False)
    client = fields.get("lustre_efa_client")
    if client is False:
        fields.setdefault("lustre_efa_interfaces", 0)
    if client is False or (client and "accelerator" not in fields):
        fields.setdefault("lustre_gds_client", False)  # what it reads into is the memory of an accelerator
    return InstanceType(name=name, **fields)


def _efa_cards(cards: tuple[NetworkCards, ...]) -> tuple[int, ...]:
    with_efa = (row for row in cards if "efa" in row.interface_types)
    return tuple(card for row in with_efa for card in range(row.first, row.last + 1))


def _assumed_cards(row: Mapping[str, Any]) -> tuple[int, ...]:
    """One EFA per card; none where the numbers of cards and EFAs do not allow it, or are unknown."""
    first, efas = 0 if row.get("efa_on_card_0", True) else 1, row.get("efa_interfaces") or 0
    return tuple(range(first, first + efas)) if first + efas <= row.get("network_cards", 1) else ()


def _frozen(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with its JSON arrays as tuples."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}  # pyright: ignore[reportUnknownArgumentType]

"""Look-ups of instance types and UltraServers, and what their rows must keep to."""

import dataclasses
import datetime as dt
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rows import for_each

from tools import catalog_from_authorities as authorities
from ultracluster.catalog import (
    InstanceType,
    instance_type,
    instance_types,
    instances,
    nearest_instance_types,
    ultraserver,
    ultraservers,
)

TYPES = list(instance_types().values())
BY_HAND = json.loads((authorities.CATALOG / "instances.json").read_text())


def known(name: str) -> InstanceType:
    found = instance_type(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "efa", "ultracluster"),
    [
        ("p5en.48xlarge", 3, None),
        ("p6e-gb200.36xlarge", 4, 3),
        ("p4d.24xlarge", 1, None),
        ("g6e.48xlarge", None, None),
    ],
)
def test_generations_are_those_that_aws_publishes(
    name: str, efa: int | None, ultracluster: int | None
) -> None:
    """That of EFA does not follow from Nitro's: EC2's API has Nitro 5 of p6e-gb200."""
    found = instance_types()[name]

    assert (found.efa_generation, found.ultracluster) == (efa, ultracluster)


def test_a_type_by_its_ec2_name() -> None:
    p5 = known("p5.48xlarge")
    assert (p5.family, p5.hyperpod_name, p5.architecture) == ("p5", "ml.p5.48xlarge", "x86_64")
    assert p5.accelerator is not None
    assert (p5.accelerator.manufacturer, p5.accelerator.name) == ("NVIDIA", "H100")
    assert (p5.accelerator.count, p5.accelerator.memory_gib) == (8, 640)
    assert (p5.hyperpod_addresses_slurm, p5.hyperpod_addresses_eks) == (32, 81)
    assert p5.declared is False
    assert instance_type("ml.p5.48xlarge") is None
    assert instance_type("p5.49xlarge") is None


def test_types_for_controllers_are_there_too() -> None:
    m5 = known("m5.2xlarge")
    assert (m5.vcpu, m5.memory_gib, m5.accelerator, m5.efa_interfaces) == (8, 32, None, 0)
    assert known("g5.xlarge").accelerator is not None


def test_what_nobody_has_verified_is_none() -> None:
    gb200 = known("p6e-gb200.36xlarge")
    assert gb200.efa_interfaces is None
    assert gb200.network_interfaces_per_card is None
    assert gb200.recommended_efa_interfaces == (4, 8)
    assert known("g6.48xlarge").gpu_direct_rdma is None


def test_cards_that_take_an_efa() -> None:
    assert known("p5.48xlarge").efa_cards == tuple(range(32))
    assert known("p6-b300.48xlarge").efa_cards == tuple(range(1, 17))
    assert known("p6e-gb200.36xlarge").efa_cards[:4] == (1, 5, 9, 13)
    assert known("m5.2xlarge").efa_cards == ()


@for_each("t", TYPES, ids=lambda t: t.name)
def test_a_row_does_not_contradict_itself(t: InstanceType) -> None:
    assert t.vcpu > 0
    assert t.memory_gib > 0
    assert t.architecture in ("x86_64", "arm64")
    assert t.sources, "a row without a source"
    assert t.efa_layout_rule in BY_HAND["efa_layout_rules"]
    assert (t.efa_layout_rule == "NO_EFA") == (t.efa_interfaces == 0)
    assert len(t.efa_cards) >= (t.efa_interfaces or 0)
    assert t.efa_on_card_0 == (0 in t.efa_cards)
    if t.network_cards_api:
        assert t.network_cards_api[-1].last + 1 == t.network_cards
    assert (t.local_nvme_disks == 0) == (t.local_nvme_gb == 0)
    assert set(t.threads_per_core) <= {1, 2}
    assert set(t.ultraserver) <= set(ultraservers())


@for_each("t", [t for t in TYPES if not t.announced], ids=lambda t: t.name)
def test_lustre_clients_follow_the_rule_of_the_guide(t: InstanceType) -> None:
    client = t.efa_interfaces != 0 and (t.nitro or 0) >= 4 and not t.name.startswith("trn2")
    assert t.lustre_efa_client == client
    assert t.lustre_gds_client == (t.family in ("p5", "p5e", "p5en", "p6-b200", "p6-b300"))
    assert t.lustre_efa_interfaces is not None and (t.lustre_efa_interfaces > 0) == client
    if t.efa_interfaces is not None:
        assert t.lustre_efa_interfaces <= t.efa_interfaces
        assert t.efa_interfaces == 0 or t.nitro is not None, "EFA type of unknown Nitro generation"


@for_each("t", TYPES, ids=lambda t: t.name)
def test_hyperpod_addresses_follow_the_rule_of_p5(t: InstanceType) -> None:
    assert t.hyperpod_addresses_verified == (t.name == "p5.48xlarge")
    if t.hyperpod:
        assert t.ipv4_per_interface is not None
        assert t.hyperpod_addresses_slurm == t.network_cards
        assert t.hyperpod_addresses_eks == t.ipv4_per_interface + t.network_cards - 1
    else:
        assert t.hyperpod_addresses_slurm is None


@pytest.mark.parametrize("file", ["instances", "general_instances", "ultraservers", "regions"])
def test_every_file_says_how_old_it_is(file: str) -> None:
    about = json.loads((authorities.CATALOG / f"{file}.json").read_text())["about"]
    assert dt.date.fromisoformat(about["date"])
    assert about["what"]
    assert about["unknown"]


@pytest.mark.parametrize(
    ("wrong", "best"),
    [
        ("p5.49xlarge", ["p5.4xlarge", "p5.48xlarge"]),
        ("ml.p5.49xlarge", ["p5.4xlarge", "p5.48xlarge"]),
        ("p5en", ["p5en.48xlarge"]),
        ("P4D.24xlarge ", ["p4d.24xlarge"]),
        ("p6b200.48xlarge", ["p6-b200.48xlarge"]),
        ("trn2.32xlarge", ["trn2.3xlarge", "trn2.48xlarge", "trn1.32xlarge"]),
        ("gb200", ["p6e-gb200.36xlarge"]),
        ("banana", []),
        ("", []),
    ],
)
def test_suggestions_for_a_wrong_name(wrong: str, best: list[str]) -> None:
    assert nearest_instance_types(wrong)[: max(len(best), 1)] == best


def test_suggestions_from_given_candidates_only() -> None:
    candidates = ["g5.48xlarge", "p5e.48xlarge"]
    assert nearest_instance_types("p5.48xlarge", candidates=candidates)[0] == "p5e.48xlarge"
    assert nearest_instance_types("p5.48xlarge", count=1) == ["p5.48xlarge"]
    assert nearest_instance_types("p5.48xlarge", candidates=[]) == []


def test_nothing_can_be_changed() -> None:
    p5 = known("p5.48xlarge")
    with pytest.raises(dataclasses.FrozenInstanceError):
        p5.vcpu = 1  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError):
        instance_types()["p5.48xlarge"] = p5  # pyright: ignore[reportIndexIssue]
    assert not hasattr(p5, "__dict__")
    for t in TYPES:
        hash(t)  # only tuples all the way down have one


def test_files_are_read_once() -> None:
    assert instance_types() is instance_types()
    assert ultraservers() is ultraservers()


def test_a_declared_type_needs_little_more_than_its_name() -> None:
    declared = InstanceType(
        name="p6e-gb300.36xlarge", vcpu=144, memory_gib=960, architecture="arm64", declared=True
    )
    assert (declared.family, declared.hyperpod_name) == ("p6e-gb300", "ml.p6e-gb300.36xlarge")
    assert declared.efa_interfaces is None


def test_a_row_of_nulls_is_a_known_name() -> None:
    row = {"vcpu": None, "memory_gib": None, "accelerator": None, "hyperpod": True}
    named = instances._instance_type("p9.huge", row)  # pyright: ignore[reportPrivateUsage]
    assert (named.name, named.hyperpod, named.vcpu, named.efa_interfaces) == (
        "p9.huge",
        True,
        0,
        None,
    )


@pytest.mark.parametrize("u", ultraservers().values(), ids=lambda u: u.name)
def test_an_ultraserver_is_the_sum_of_its_members(u: instances.UltraServer) -> None:
    assert ultraserver(u.name) is u
    assert u.sources
    if u.member is None:
        assert not u.published
        return
    member = known(u.member)
    assert member.accelerator is not None
    assert u.name in member.ultraserver
    assert u.vcpu == u.instances * member.vcpu
    assert u.memory_gib == u.instances * member.memory_gib
    assert u.accelerators == u.instances * member.accelerator.count
    assert u.accelerator_memory_gib == u.instances * member.accelerator.memory_gib


def test_ultraserver_names_of_hyperpod_are_in_botocore() -> None:
    model = (authorities.package("botocore") / "data" / "sagemaker").rglob("service-2.json.gz")
    text = json.dumps(
        [authorities.data("botocore", f"data/sagemaker/{m.parent.name}/{m.name}") for m in model]
    )
    for u in ultraservers().values():
        if u.hyperpod_name:
            assert u.hyperpod_name in text
    assert ultraserver("u-p6e-gb200x144") is None


@pytest.mark.slow
def test_only_the_standard_library_is_imported() -> None:
    program = (
        "import sys; before = set(sys.modules); from ultracluster import catalog;"
        "catalog.instance_types(); catalog.regions(); catalog.figure('ec2.p5.48xlarge', 'us-east-1');"
        "print(*{m.partition('.')[0] for m in set(sys.modules) - before})"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path("/")
    )
    assert set(run.stdout.split()) - sys.stdlib_module_names == {"ultracluster"}

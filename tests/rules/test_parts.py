"""Rules judge parts: one that stands by itself, as a construct has it, and those of a whole file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from project import ENVIRONMENTS, ROOT
from rules_support import changed, environment_data, loaded

from ultracluster.catalog import Region, region
from ultracluster.config import Environment, Finding, load
from ultracluster.config.base import Model
from ultracluster.config.findings import YamlPath
from ultracluster.config.lustre import LustreFacts
from ultracluster.config.network import ExistingVpc, FurtherZone, Network
from ultracluster.config.storage import (
    Backups,
    DataRepository,
    NewOpenZfs,
    Persistent2SsdLustre,
    RdsMySql,
    Storage,
)
from ultracluster.model import Cluster, Group, Traits, resolve
from ultracluster.rules import all_rules, check
from ultracluster.rules.parts import parts_in, parts_of

LUSTRE = Persistent2SsdLustre(deployment="persistent-2-ssd", capacity_gib=5000, throughput_mbps_per_tib=250)


def places(findings: list[Finding]) -> dict[str, str]:
    return {finding.code: finding.dotted for finding in findings}


def test_a_lustre_file_system_is_judged_without_any_file() -> None:
    (finding,) = check(LUSTRE)
    assert (finding.code, finding.path, finding.blocks) == ("FSX002", ("capacity_gib",), True)
    assert finding.instead == "capacity_gib: 4800 or 7200"
    assert [option[0].path for option in finding.remedy.options] == [("capacity_gib",)] * 2
    assert check(LUSTRE.model_copy(update={"capacity_gib": 4800})) == []


def test_with_efa_the_rule_of_efa_speaks_instead() -> None:
    found = check(LUSTRE.model_copy(update={"efa": True, "metadata_iops": None}))
    assert places(found) == {"FSX010": "metadata_iops", "FSX011": "capacity_gib"}


def test_parts_of_a_part_have_paths_from_it() -> None:
    links = {"/a": DataRepository(prefix="s3://tokens/en/")}
    linked = LUSTRE.model_copy(update={"capacity_gib": 4800, "data_repositories": links})
    assert places(check(linked)) == {"FSX056": "data_repositories./a.prefix"}
    storage = Storage(lustre=linked, openzfs=zfs(capacity_gib=1))
    assert places(check(storage)) == {
        "FSX056": "lustre.data_repositories./a.prefix",
        "FSX041": "openzfs.capacity_gib",
    }


def test_remedies_of_a_part_are_at_its_own_keys() -> None:
    links = {"/a": DataRepository(), "/b": DataRepository()}
    linked = LUSTRE.model_copy(update={"capacity_gib": 4800, "data_repositories": links})
    (finding,) = check(linked)
    assert finding.code == "FSX053"
    assert {change.path for change in finding.remedy.options[0]} == {
        ("data_repositories", "/a", "prefix"),
        ("data_repositories", "/b", "prefix"),
    }


def test_with_its_region_more_rules_speak() -> None:
    whole = LUSTRE.model_copy(update={"capacity_gib": 4800})
    assert places(check(whole, region("ap-southeast-6"))) == {"FSX034": ""}
    assert check(whole, region("us-west-2")) == []
    homes = zfs(deployment="single-az-ha-1", throughput_mbps=128)
    assert check(homes) == []
    assert places(check(homes, region("us-west-2"))) == {"FSX042": "deployment"}


def test_with_region_and_network_the_zone_is_judged() -> None:
    whole = LUSTRE.model_copy(update={"capacity_gib": 4800, "throughput_mbps_per_tib": 1000})
    there = (region("us-east-1"), Network(zone_id="use1-dfw2-az1"))
    assert places(check(whole, *there)) == {"FSX033": "throughput_mbps_per_tib"}
    assert check(whole, there[0]) == []


def test_what_is_only_known_is_not_judged() -> None:
    """A Region without HyperPod, and a network that is wrong itself, are no findings on the file system."""
    whole = LUSTRE.model_copy(update={"capacity_gib": 4800})
    wrong = Network(zone_id="usw2-az1", cidr="10.0.0.0/8")
    assert check(whole, wrong) == []
    assert places(check(wrong)) == {"NET001": "cidr"}


def test_a_rule_that_needs_a_cluster_is_silent_about_a_part_by_itself() -> None:
    over_efa = LUSTRE.model_copy(update={"capacity_gib": 19200, "efa": True})
    assert check(over_efa) == []
    cluster = resolve(load(ROOT / "environments" / "dev.yaml").environment)
    without_clients = Cluster(
        environment=cluster.environment,
        traits=cluster.traits,
        groups=cluster.with_role("controller"),
    )
    assert places(check(over_efa, without_clients)) == {"FSX012": "efa"}


def test_an_environment_and_its_cluster_are_parts_too() -> None:
    environment = loaded(changed(environment_data(), {"storage.lustre.capacity_gib": 5000})).environment
    for whole in (environment, resolve(environment)):
        assert places(check(whole)) == {"FSX002": "storage.lustre.capacity_gib"}


def test_a_network_and_a_group_by_themselves() -> None:
    vpc = ExistingVpc(id="vpc-0123456789abcdef0", cidr="10.20.0.0/16")
    assert places(check(Network(zone_id="usw2-az1", vpc=vpc))) == {"NET012": "vpc"}
    wrong = loaded(changed(environment_data(), {"node_groups.gpu.instance_type": "g6e.13xlarge"}))
    found = check(resolve(wrong.environment).groups["gpu"])
    assert places(found)["ENV006"] == "instance_type"


def test_a_database_by_itself() -> None:
    database = RdsMySql(kind="rds-mysql", instance_class="m7g.large2")
    assert places(check(database)) == {"DATA027": "instance_class"}
    same = RdsMySql(kind="rds-mysql", second_zone_id="usw2-az1")
    assert places(check(same, Network(zone_id="usw2-az1"))) == {"DATA022": "second_zone_id"}
    # of a Local Zone, the first subnet is in the zone of the Region
    behind = {"usw2-az1": FurtherZone(cidr="10.0.128.0/20")}
    local = Network(zone_id="usw2-lax1-az1", further_zones=behind)
    assert places(check(same, local)) == {"DATA022": "second_zone_id"}


def zfs(**more: Any) -> NewOpenZfs:
    return NewOpenZfs(**{"deployment": "single-az-ha-2", "capacity_gib": 64, "throughput_mbps": 160, **more})


def models(annotation: Any) -> Iterator[type[Model]]:
    """The models of the configuration that a field may hold, and those that these may hold."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models(field.annotation)
    for inner in get_args(annotation):
        yield from models(inner)


@pytest.fixture(scope="module")
def kinds_of_parts() -> set[type]:
    """What may be a part of a file: the models of the configuration, and what is resolved from them."""
    return {*models(Environment), Cluster, Group, Traits, Region, LustreFacts}


def test_every_rule_takes_a_part_that_files_have(kinds_of_parts: set[type]) -> None:
    """Each member of a union, too: of one that is never a part the rule would say nothing."""
    dead = [
        f"{rule.id} {kind}"
        for rule in all_rules()
        for taken in rule.takes
        for kind in (get_args(taken) or (taken,))
        if kind not in (type(None), object) and not any(issubclass(part, kind) for part in kinds_of_parts)
    ]
    assert dead == []


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_parts_of_a_file_are_of_these_kinds_and_stand_where_they_say(
    name: str, kinds_of_parts: set[type]
) -> None:
    source = load(ROOT / "environments" / f"{name}.yaml")
    parts = list(parts_of(resolve(source.environment)))
    assert {type(part) for _, part in parts} <= kinds_of_parts
    assert {Cluster, Environment, Traits, Region, Group, LustreFacts, Network, Storage} <= {
        type(part) for _, part in parts
    }
    for path, part in parts:
        if isinstance(part, Model):
            assert at(source.environment, path) is part, path


def at(value: Any, path: YamlPath) -> Any:
    """What stands at a path of the configuration."""
    for key in path:
        value = getattr(value, str(key)) if isinstance(value, Model) else value[key]
    return value


def test_parts_in_a_thing_begin_with_the_thing() -> None:
    assert next(parts_in(LUSTRE)) == ((), LUSTRE)
    assert [path for path, part in parts_in(LUSTRE) if isinstance(part, Backups)] == [("backups",)]


TAKE_THE_WHOLE_FILE = 120
"""Rules that take the environment where a part would do; the number may only fall."""


def test_few_rules_take_the_whole_file() -> None:
    whole = [rule.id for rule in all_rules() if rule.takes[0] is Environment]
    assert len(whole) <= TAKE_THE_WHOLE_FILE, whole
    rooms = ("ENV", "NET", "FSX", "MNT", "DATA")
    mine = {code for code in whole if code.startswith(rooms)}
    # tags, ARNs, the file of prices
    assert mine == {"ENV009", "ENV010", "ENV011", "ENV012", "ENV013", "ENV016", "ENV019", "ENV034"}

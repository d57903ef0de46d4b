"""A cluster made of parts comes to what the same environment file comes to."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from cluster_schema import faults
from project import ENVIRONMENTS, ROOT

from ultracluster.config import Environment, load
from ultracluster.config.base import is_token
from ultracluster.config.environment import Access
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.model import Cluster, resolve
from ultracluster.model.cluster_json import script_configurations
from ultracluster.model.mounts import Accounting, LustreMount, OpenZfsMount
from ultracluster.model.standalone import LATER, StandaloneStorage, standalone
from ultracluster.rules import check
from ultracluster.software import newest_release

GROUPS = {
    "controller": NodeGroup(role="controller", instance_type="m5.xlarge", count=1),
    "train": NodeGroup(role="compute", instance_type="p5.48xlarge", count=2),
}
NAME = "fs-0123456789abcdef0"


def of_parts(environment: Environment) -> Cluster:
    lustre, zfs = environment.lustre, environment.storage.openzfs
    return standalone(
        environment.orchestrator,
        environment.node_groups,
        cluster_name=environment.cluster_name,
        region=environment.region,
        storage=StandaloneStorage(
            lustre=lustre
            and LustreMount(
                dns_name=f"{NAME}.fsx.{environment.region}.amazonaws.com",
                mount_name="abcdefgh",
                path=lustre.mount_path,
                efa=lustre.efa,
                gds=lustre.gds,
                file_system_id=NAME,
            ),
            open_zfs=zfs
            and OpenZfsMount(dns_name=f"{NAME}.fsx.{environment.region}.amazonaws.com", path=zfs.mount_path),
            accounting=Accounting(endpoint=LATER, secret_arn=LATER)
            if environment.storage.accounting_database
            else None,
        ),
        release=environment.software.release,
        mirror=environment.software.mirror,
        instance_types=environment.instance_types,
        observability=environment.observability,
        further_zones=tuple(environment.network.further_zones),
    )


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_nodes_are_told_the_same(name: str) -> None:
    environment = load(ROOT / "environments" / f"{name}.yaml").environment
    mine, theirs = of_parts(environment), resolve(environment)
    told, asked = script_configurations(mine, locked={}), script_configurations(theirs, locked={})
    assert told.by_group == asked.by_group
    assert told.of_all == asked.of_all


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_rules_find_the_same_in_what_was_given(name: str) -> None:
    loaded = load(ROOT / "environments" / f"{name}.yaml")

    def given(part: Any) -> set[tuple[str, str]]:
        return {
            (one.code, one.dotted)
            for one in check(part)
            # no command locks the images of constructs, so that IMG007 does not wait for the first deploy
            if one.path[0] in ("node_groups", "software") and one.code != "IMG007"
        }

    assert given(of_parts(loaded.environment)) == given(loaded)


def test_without_anything_else_the_newest_release_of_the_orchestrator_is_taken() -> None:
    cluster = standalone(HyperPodSlurm(), GROUPS, cluster_name="Research-1")
    assert cluster.environment.software.release == newest_release("hyperpod-slurm").release
    assert (cluster.name, cluster.cluster_name, cluster.home) == ("research-1", "Research-1", None)
    told = script_configurations(cluster, locked={})
    for configuration in (*told.by_group.values(), told.of_all):
        assert not faults(configuration)
        assert LATER not in str(configuration)
    assert is_token(LATER)


@pytest.mark.parametrize(
    ("given", "name"),
    [("x" * 63, "x" * 30), ("Eval-2", "eval-2"), ("2026", "c2026"), ("a" * 29 + "-b", "a" * 29)],
)
def test_the_name_of_a_cluster_gives_one_of_an_environment(given: str, name: str) -> None:
    assert standalone(HyperPodSlurm(), GROUPS, cluster_name=given).name == name


@pytest.mark.parametrize("who", ["services", "everyone"])
def test_who_reaches_the_metadata_can_be_said(who: Literal["services", "everyone"]) -> None:
    cluster = standalone(
        HyperPodSlurm(),
        {"head": NodeGroup(role="controller", instance_type="m5.xlarge", count=1)},
        cluster_name="mine",
        access=Access(node_metadata=who, metadata_users=("collector",)),
    )
    told = script_configurations(cluster).by_group["head"]
    assert told["metadata"] == {"for": who, "users": ["collector"]}

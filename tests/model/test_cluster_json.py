"""cluster.json: what the writer makes, what the schema publishes, and what the scripts' own tests read."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cluster_schema import SCHEMA, cluster_of, faults
from first_boot.rehearsal import node_of
from project import ENVIRONMENTS, ROOT
from rules_support import changed, environment_data, loaded

from ultracluster.catalog import instance_types
from ultracluster.config import load
from ultracluster.model import mounts, resolve
from ultracluster.model.cluster_json import script_configurations, type_facts
from ultracluster.model.mounts import LustreMount, OpenZfsMount

HERE = Path(__file__).parents[1] / "lifecycle_scripts"
BATS_CLUSTER = json.loads((HERE / "cluster.json").read_text())
BATS_TYPES: dict[str, dict[str, Any]] = json.loads((HERE / "types.json").read_text())
MOUNTS = mounts.told(
    LustreMount(dns_name="fs-0123.fsx.us-east-1.amazonaws.com", mount_name="abcdefgh", efa=True),
    OpenZfsMount(dns_name="fs-4567.fsx.us-east-1.amazonaws.com"),
)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_what_shipped_environments_write_and_rehearse_is_valid(name: str) -> None:
    environment = load(ROOT / "environments" / f"{name}.yaml").environment
    locked = {"files": {"a.zip": "sha256:00"}, "keys": {"https://example.org/key": "a" * 40}}
    made = [
        script_configurations(resolve(environment)),
        script_configurations(resolve(environment), locked=locked),
    ]

    for told in [one for all_of in made for one in [*all_of.by_group.values(), all_of.of_all]]:
        assert faults(told) == []
        assert faults({**told, "mounts": MOUNTS}) == []
    for group in environment.node_groups:
        assert faults(node_of(environment, group).cluster) == []


@pytest.mark.parametrize(
    ("asked", "others", "told"),
    [
        (None, None, {"lustre_efa_interfaces": 8}),
        (8, None, {"lustre_efa_interfaces": 8}),
        (2, None, {"lustre_efa_interfaces": 2, "lustre_efa_limited": True}),
        (4, 1, {"lustre_efa_interfaces": 1, "lustre_efa_limited": True}),
    ],
)
def test_nodes_keep_as_many_efa_interfaces_as_each_of_their_file_systems_allows(
    asked: int | None, others: int | None, told: dict[str, Any]
) -> None:
    efa = {
        "deployment": "persistent-2-ssd",
        "capacity_gib": 9600,
        "throughput_mbps_per_tib": 500,
        "efa": True,
    }
    further = {"more": {**efa, "mount_path": "/more", "efa_interfaces_per_client": others}} if others else {}
    changes = {
        "node_groups.gpu.instance_type": "p5.48xlarge",
        "storage.lustre": {**efa, "efa_interfaces_per_client": asked},
        "storage.further_lustre": further,
    }
    cluster = resolve(loaded(changed(environment_data("dev"), changes)).environment)
    written = script_configurations(cluster).of_all
    assert faults(written) == []
    group: Any = written["node_groups"]
    assert {key: value for key, value in group["gpu"].items() if key.startswith("lustre_efa")} == told
    assert group["login"]["lustre_efa_interfaces"] == 0


def test_every_type_has_valid_facts() -> None:
    groups = {one.name: {"role": "compute", **type_facts(one)} for one in instance_types().values()}
    assert faults({**BATS_CLUSTER, "node_groups": groups}) == []


def test_the_schema_is_closed_and_describes_its_keys() -> None:
    """A key that the writer adds has to be published, and the scripts' readers find what it means."""
    schema = json.loads(SCHEMA.read_text())
    group = schema["$defs"]["group"]

    assert faults({**cluster_of("p5.48xlarge"), "unheard": 1})
    for place in (schema, group):
        assert place["additionalProperties"] is False
        undescribed = [key for key, row in place["properties"].items() if "description" not in row]
        assert set(undescribed) <= {"schema", "role"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        {"schema": 2},
        {"node_groups": {"gpu": {"role": "worker"}}},
        {"node_groups": {"gpu": {"role": "compute", "accelerators": "8"}}},
        {"node_groups": {"gpu": {"role": "compute", "nvswitch": None}}},
        {"budget_minutes": "25"},
        {"mirror": "https://bucket"},
        {"cluster": "dev\nCLUSTER_MIRROR=s3://theirs"},
        {"locked": "all"},
        {"mounts": {"lustre": {"path": "fsx", "dns_name": "a", "mount_name": "b"}}},
        {"mounts": {"openzfs": {"path": "/home", "dns_name": "a b", "volume_path": "/fsx"}}},
    ],
    ids=str,
)
def test_what_the_scripts_refuse_the_schema_refuses(wrong: dict[str, Any], tmp_path: Path) -> None:
    cluster = {**BATS_CLUSTER, **wrong}
    assert faults(cluster)

    if "accelerators" in str(wrong) or "nvswitch" in str(wrong):
        return  # read where a node of that group asks
    (tmp_path / "cluster.json").write_text(json.dumps(cluster))
    code = f"""
        export ULTRACLUSTER_ROOT={tmp_path} ULTRACLUSTER_HOME={ROOT / "lifecycle_scripts"}
        export NODE_HERE='compute||p5.48xlarge|8|0|32'
        source "$ULTRACLUSTER_HOME/lib/log.sh"; source "$ULTRACLUSTER_HOME/lib/node.sh"
        node::addresses() {{ :; }}; node::primary_address() {{ :; }}
        ULTRACLUSTER_HOME={tmp_path}; node::describe"""
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
    assert "NODE_ERROR=" in done.stdout, done
    assert done.returncode == 78


def test_the_bats_tests_read_a_valid_file() -> None:
    assert faults(BATS_CLUSTER) == []
    for group in BATS_CLUSTER["node_groups"].values():
        facts = type_facts(instance_types()[group["instance_type"]])
        facts = {
            key: value for key, value in facts.items() if key != "gds"
        }  # the environment has a word on it
        assert {key: group.get(key) for key in facts} == facts
    for name, row in BATS_TYPES.items():
        assert row == type_facts(instance_types()[name]), f"{name}: json.dumps(type_facts(...)) has the row"
        assert faults({**BATS_CLUSTER, "node_groups": {"gpu": {"role": "compute", **row}}}) == []

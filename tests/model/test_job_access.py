"""Which nodes hand out the role of jobs, and what `cluster.json` tells them."""

from __future__ import annotations

from typing import Any

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configurations
from ultracluster.model.job_access import job_access_roles

ASKED = {"storage.job_buckets": [{"bucket": "example-data"}]}


@pytest.mark.parametrize(
    ("name", "changes", "roles"),
    [
        ("dev", {}, ()),
        ("dev", ASKED, ("compute", "login")),
        # people log in where Slurm's controller is
        ("dev", ASKED | {"node_groups.login": None}, ("compute", "controller")),
        ("pcs-p6-b200", ASKED, ("compute", "login")),
        ("dev", ASKED | {"orchestrator.lifecycle": "none"}, ()),
        ("eks-p5en", ASKED, ()),
    ],
)
def test_nodes_with_users_hand_it_out(name: str, changes: dict[str, Any], roles: tuple[str, ...]) -> None:
    data = changed(environment_data(name), changes)
    data["node_groups"] = {name: group for name, group in data["node_groups"].items() if group}
    cluster = resolve(loaded(data).environment)
    assert job_access_roles(cluster) == roles
    told = script_configurations(cluster).by_group
    for group, configuration in told.items():
        own: Any = configuration["node_groups"]
        assert own[group].get("job_access", False) is (cluster.groups[group].role in roles)
        # the documents of the state are there as well
        tells = roles or (cluster.traits.slurm and cluster.runs_scripts)
        assert configuration.get("region") == (cluster.region if tells else None)


def test_metadata_are_for_services_on_slurm_nodes_only() -> None:
    def told(name: str, changes: dict[str, Any]) -> list[object]:
        environment = loaded(changed(environment_data(name), changes)).environment
        configurations = script_configurations(resolve(environment))
        return [one.get("metadata") for one in (*configurations.by_group.values(), configurations.of_all)]

    assert set(map(str, told("dev", {}))) == {"{'for': 'services'}"}
    further = {"access.metadata_users": ["collector"], "access.node_metadata": "services"}
    assert told("dev", further)[0] == {"for": "services", "users": ["collector"]}
    assert told("dev", {"access.node_metadata": "everyone"})[0] == {"for": "everyone"}
    assert set(told("eks-p5en", {})) == {None}

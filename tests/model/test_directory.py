"""What `cluster.json` tells nodes of a directory, and of who reaches them by SSH."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from cluster_schema import faults
from directory_cases import DIRECTORY
from project import ROOT
from rules_support import changed, environment_data, loaded

from ultracluster.model import Cluster, resolve
from ultracluster.model.cluster_json import script_configurations
from ultracluster.model.endpoints import closed_endpoints

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g"
USERS = {"users": {"alice": {"uid": 2001, "keys": [KEY]}}}


def cluster(name: str, changes: dict[str, Any]) -> Cluster:
    return resolve(loaded(changed(environment_data(name), changes)).environment)


def told(name: str, changes: dict[str, Any]) -> dict[str, Any]:
    found = script_configurations(cluster(name, changes))
    for one in (*found.by_group.values(), found.of_all):
        assert faults(one) == []
    return dict(found.of_all)


@pytest.mark.parametrize(
    ("name", "home"), [("prod", "/home/%u"), ("dev", "/fsx/home/%u"), ("pcs-p6-b200", "/home/%u")]
)
def test_nodes_learn_of_the_directory_and_not_its_password(name: str, home: str) -> None:
    found = told(name, {"directory": DIRECTORY})["directory"]
    assert found["home"] == home
    assert (found["ids"], found["id_range"], found["schema"]) == (
        "posix",
        [5000, 4_294_967_294],
        "rfc2307bis",
    )
    assert found["secret"] == DIRECTORY["password_secret_arn"]
    assert not [key for key in found if "password" in key]


@pytest.mark.slow
def test_the_tool_of_the_nodes_takes_what_they_are_told() -> None:
    """Its settings are these keys: what one side renames, the other does not find."""
    more = {"access_filter": "(a=1)", "ca_certificate": "/etc/ca.pem", "kind": "microsoft-ad"}
    settings = told("prod", {"directory": DIRECTORY | more})["directory"]
    code = (
        "import json, runpy, sys\n"
        "tool = runpy.run_path(sys.argv[1])\n"
        "print(tool['conf_of'](json.load(sys.stdin), 'word'))"
    )
    tool = ROOT / "lifecycle_scripts" / "files" / "directory.py"
    conf = subprocess.run(
        ["python3", "-c", code, tool], input=json.dumps(settings), capture_output=True, text=True, check=True
    ).stdout
    lines = conf.splitlines()
    for line in (
        "ldap_uri = ldaps://ldap.example.com",
        "ldap_schema = ad",
        "ldap_id_mapping = true",
        "ldap_access_order = filter, expire",
        "ldap_tls_cacert = /etc/ca.pem",
        "override_homedir = /home/%u",
        "ldap_default_authtok = word",
    ):
        assert line in lines


def test_others_set_it_up_on_parallelcluster_and_nobody_without_scripts() -> None:
    assert "directory" not in told("parallelcluster-p5", {"directory": DIRECTORY})
    assert "directory" not in told("eks-p5en", {"directory": DIRECTORY})
    assert "directory" not in told("dev", {"directory": DIRECTORY, "orchestrator.lifecycle": "none"})


@pytest.mark.parametrize("name", ["dev", "pcs-p6-b200"])
def test_without_a_way_out_nodes_reach_its_password(name: str) -> None:
    closed = {"network.egress": "closed", "storage.accounting_database": None}
    without = {one.service for one in closed_endpoints(cluster(name, closed))}
    asked = {one.service for one in closed_endpoints(cluster(name, closed | {"directory": DIRECTORY}))}
    assert asked - without == {"secretsmanager"}


@pytest.mark.parametrize(
    ("name", "changes", "admins"),
    [
        ("dev", {}, None),
        ("dev", USERS, ["ubuntu"]),
        ("dev", {"directory": DIRECTORY}, ["ubuntu"]),
        ("dev", {"access": {"node_ssh": "jobs"}}, ["ubuntu"]),
        ("dev", USERS | {"access": {"node_ssh": "open"}}, None),
        ("parallelcluster-p5", USERS, ["ubuntu"]),
        ("pcs-p6-b200", USERS | {"orchestrator.root_device": "/dev/xvda"}, ["ec2-user"]),
        ("eks-p5en", {"access": {"node_ssh": "jobs"}}, None),
        ("dev", USERS | {"orchestrator.lifecycle": "none"}, None),
    ],
)
def test_ssh_is_for_jobs_where_people_have_accounts(
    name: str, changes: dict[str, Any], admins: list[str] | None
) -> None:
    found = told(name, changes).get("job_ssh")
    assert found == (None if admins is None else {"admins": admins})

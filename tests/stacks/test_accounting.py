"""Slurm's accounting database between the stacks of an environment, and in an upgrade of a deployed one."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from templates import Synthesised

from ultracluster.change import Change, blast_radius
from ultracluster.change.changes import Verdict

Get = Callable[[str], Synthesised]
NAMES = ["prod", "parallelcluster-p5"]
ADDED = ("AccountingUser", "AccountingAdmitUser")
"""Resources that a database had not while slurmdbd was its master user."""


def before(templates: dict[str, Any], name: str) -> dict[str, Any]:
    """The templates as they were deployed by releases in which slurmdbd was the master user."""
    old = copy.deepcopy(templates)
    storage, cluster = old[f"{name}-storage"], old[f"{name}-cluster"]
    for one in [one for one in storage["Resources"] if one.startswith(ADDED)]:
        del storage["Resources"][one]
    for one in ("AccountingUserSecretArn", "AccountingUserFunction"):
        del storage["Outputs"][one]
    (parameters,) = of(storage, "AWS::RDS::DBParameterGroup").values()
    parameters["Properties"]["Parameters"]["require_secure_transport"] = "OFF"
    text = json.dumps(cluster).replace("AccountingUserSecretArn", "AccountingSecretArn")
    old[f"{name}-cluster"] = json.loads(text.replace('"UserName": "slurmdbd"', '"UserName": "slurm"'))
    return old


def of(template: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: one for name, one in template["Resources"].items() if one["Type"] == kind}


def upgrade(name: str, synthesised: Get) -> list[Change]:
    new = synthesised(name).templates
    old = before(new, name)
    assert old != new
    return [one for one in blast_radius(old, new) if one.reason != "new"]


def test_an_upgrade_of_hyperpod_moves_slurmdbd_and_takes_one_right(synthesised: Get) -> None:
    found = upgrade("prod", synthesised)

    (taken,) = [one for one in found if one.verdict is not Verdict.IN_PLACE]
    assert taken.verdict is Verdict.AT_RISK and "prod-storage-AccountingSecretArn" in taken.reason
    moved = [one for one in found if one.path == "Orchestrator.Slurm.AccountingDatabase.SecretArn"]
    assert moved and "moves slurmdbd of the running cluster" in moved[0].reason


def test_an_upgrade_of_parallelcluster_asks_for_a_stopped_fleet(synthesised: Get) -> None:
    found = upgrade("parallelcluster-p5", synthesised)

    (stopped,) = [one for one in found if one.verdict is not Verdict.IN_PLACE]
    assert stopped.path.endswith("Database.UserName")
    assert stopped.reason.startswith("the fleet must be stopped: `pcluster update-compute-fleet")
    (tls,) = [one for one in found if one.path == "Parameters.require_secure_transport"]
    assert "connections that are open stay" in tls.reason


@pytest.mark.parametrize("name", NAMES)
def test_an_upgrade_touches_neither_the_database_nor_its_master(name: str, synthesised: Get) -> None:
    kinds = ("AWS::RDS::DBInstance", "AWS::SecretsManager::SecretTargetAttachment", "AWS::RDS::DBSubnetGroup")
    storage = synthesised(name).templates[f"{name}-storage"]
    untouched = {one for kind in kinds for one in of(storage, kind)}

    assert len(untouched) == 3
    assert not untouched & {one.logical_id for one in upgrade(name, synthesised)}


@pytest.mark.parametrize("name", NAMES)
def test_what_deployed_clusters_import_is_still_exported(name: str, synthesised: Get) -> None:
    outputs = synthesised(name).templates[f"{name}-storage"]["Outputs"]

    assert {"AccountingSecretArn", "AccountingUserSecretArn"} <= outputs.keys()
    cluster = json.dumps(synthesised(name).templates[f"{name}-cluster"])
    assert f"{name}-storage-AccountingUserSecretArn" in cluster
    assert f"{name}-storage-AccountingSecretArn" not in cluster


@pytest.mark.parametrize("name", NAMES)
def test_only_the_function_outside_reads_the_masters_secret(name: str, synthesised: Get) -> None:
    """Neither by its id in the storage stack nor by the import of its export in any other."""
    templates = synthesised(name).templates
    storage = templates[f"{name}-storage"]
    (attached,) = of(storage, "AWS::SecretsManager::SecretTargetAttachment").values()
    master = attached["Properties"]["SecretId"]["Ref"]
    readers = {
        (stack, logical_id)
        for stack, template in templates.items()
        for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::Role")
        for logical_id, one in of(template, kind).items()
        if master in json.dumps(one) or f"{name}-storage-AccountingSecretArn" in json.dumps(one)
    }

    (reader,) = readers
    assert reader[0] == f"{name}-storage" and "Broker" in reader[1]


@pytest.mark.parametrize(("name", "required"), [("prod", "OFF"), ("parallelcluster-p5", "ON")])
def test_tls_is_required_where_slurmdbd_is_known_to_speak_it(
    name: str, required: str, synthesised: Get
) -> None:
    (group,) = of(synthesised(name).templates[f"{name}-storage"], "AWS::RDS::DBParameterGroup").values()

    assert group["Properties"]["Parameters"]["require_secure_transport"] == required

"""Every shipped environment boots: its entry scripts run over its images, known ones and invented ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from first_boot.contents import Variant
from first_boot.judge import differences, prediction
from first_boot.rehearsal import Boot, boots, on_newest, rehearsed
from project import ENVIRONMENTS, ROOT
from rules_support import changed, environment_data, loaded

from ultracluster.account.wait.evidence import last_word
from ultracluster.catalog.images import Fact
from ultracluster.config import Environment, load
from ultracluster.software import Release

NO_MODULE = Variant(newer=True, repositories="lack")
VARIANTS = (
    Variant(unknowns="absent"),
    Variant(unknowns="at-floor"),
    Variant(newer=True, repositories="offer"),
    NO_MODULE,
)


def _boots(name: str) -> Iterator[Boot]:
    environment = load(ROOT / "environments" / f"{name}.yaml").environment
    for boot in boots(environment, variants=VARIANTS):
        yield boot
        if newest := on_newest(boot):
            yield newest


EVERY = {boot.key: boot for name in ENVIRONMENTS for boot in _boots(name)}
"""Boots that differ in nothing that a node could see are one."""


@pytest.mark.parametrize("boot", EVERY.values(), ids=lambda boot: boot.title)
def test_a_node_boots_as_the_plan_says(boot: Boot) -> None:
    outcome = rehearsed(boot)
    assert outcome.status == 0, outcome.log
    end = outcome.report[-1]
    assert end["run"] == "ended"
    word = last_word(outcome.last_line)
    assert word, outcome.last_line
    assert (word.state, list(word.degraded)) == (end["state"], end["degraded"])
    lacking = {name for name, said in outcome.components.items() if said["outcome"] == "degraded"}
    assert word.state == "degraded" if lacking else word.state in ("ready", "degraded")
    assert lacking <= set(word.degraded)
    assert not list(differences(boot, outcome, prediction(boot))), outcome.log


def test_every_environment_is_rehearsed() -> None:
    assert {boot.config.name for boot in EVERY.values()} == set(ENVIRONMENTS)


def test_a_node_of_a_rack_has_its_own_file_system_beside_the_one_for_all() -> None:
    """HyperPod has mounted the first, over TCP; the other is with EFA."""
    environment = load(ROOT / "environments/wishes/several-lustre.yaml").environment
    boot = next(one for one in boots(environment) if one.group == "rack1")
    outcome = rehearsed(boot)
    assert outcome.status == 0, outcome.log
    said = {line["step"]: line["message"] for line in outcome.report if "step" in line}
    assert "mounts=/fast:lustre,/fsx:lustre,/home:nfs4" in said["proof"]
    assert said["filesystems"] == "mounted: lustre /fsx"
    assert "EFA interfaces" in said["lustre_efa"]


def test_a_node_of_pcs_is_told_of_further_file_systems_by_arguments() -> None:
    fast = {"deployment": "scratch-2", "capacity_gib": 1200, "mount_path": "/fast", "groups": ["train"]}
    data = changed(environment_data("pcs-p6-b200"), {"storage.further_lustre": {"fast": fast}})
    for boot in boots(loaded(data).environment):
        said = {line["step"]: line["message"] for line in rehearsed(boot).report if "step" in line}
        assert ("/fast:lustre" in said["proof"]) == (boot.group == "train")


def _dev_gpu() -> Boot:
    environment = load(ROOT / "environments/dev.yaml").environment
    return next(boot for boot in boots(environment) if boot.group == "gpu")


@pytest.mark.parametrize(
    ("field", "value", "variant", "says"),
    [
        ("nvidia_driver", False, Variant(), "FAILED nvidia_driver: "),
        ("nvidia_driver", "535.183.01", Variant(), "FAILED nvidia_driver: "),
        (
            "lustre_client",
            False,
            NO_MODULE,
            "FAILED lustre_client: no Lustre client for kernel 6.11.0-",
        ),
    ],
    ids=["no driver", "a driver of an old branch", "no Lustre client for an unknown kernel"],
)
def test_what_training_cannot_run_without_ends_the_node(
    field: str, value: str | bool, variant: Variant, says: str
) -> None:
    boot = replace(_dev_gpu(), variant=variant)
    values = {**boot.image.values, field: Fact(value, "confirmed", "rehearsal", "")}
    boot = replace(boot, image=replace(boot.image, values=values))
    outcome = rehearsed(boot)
    assert outcome.status == 1
    assert outcome.last_line.startswith(says)
    name = field.replace("_", "-")
    assert outcome.components[name]["outcome"] == "refused"
    fatal = tuple(one for one in prediction(boot) if one.component == name or one.outcome == "refuses")
    assert not list(differences(boot, outcome, fatal))


@pytest.mark.parametrize("name", ["dev", "pcs-p6-b200", "parallelcluster-p5"])
def test_login_nodes_keep_metadata_for_services_and_hand_out_the_role_of_jobs(name: str) -> None:
    asked = changed(environment_data(name), {"storage.job_buckets": [{"bucket": "example-data"}]})
    environment = loaded(asked).environment
    boot = next(boot for boot in boots(environment) if environment.node_groups[boot.group].role == "login")
    outcome = rehearsed(boot)
    steps = {line["step"]: (line["state"], line["message"]) for line in outcome.report if "step" in line}
    assert steps["metadata"] == ("installed", "in force (nft), passing: 0"), outcome.log
    assert steps["job_access"] == ("installed", "arn:aws:iam::111122223333:role/jobs"), outcome.log


def _with_metrics(name: str) -> Environment:
    return loaded(changed(environment_data(name), {"observability": {}})).environment


@pytest.mark.parametrize("name", ["dev", "trainium", "pcs-p6-b200", "parallelcluster-p5"])
def test_nodes_that_send_metrics_boot_as_the_plan_says(name: str) -> None:
    """Exporters and the agent are installed where the plan says it; GPU-less nodes have nothing of GPUs."""
    found = {(boot.node.role, boot.node.kind.accelerator): boot for boot in boots(_with_metrics(name))}
    for boot in found.values():
        outcome = rehearsed(boot)
        assert outcome.status == 0, outcome.log
        steps = {line["step"]: line["state"] for line in outcome.report if "step" in line}
        assert steps["metrics"] == steps["node_exporter"] == "installed", outcome.log
        assert (steps["dcgm_exporter"] == "installed") is _has_gpus_or_the_head(boot), outcome.log
        assert not list(differences(boot, outcome, prediction(boot))), outcome.log


def _has_gpus_or_the_head(boot: Boot) -> bool:
    """The head node of ParallelCluster has the parts of prolog and epilog for all."""
    if boot.node.role == "controller":
        return boot.node.orchestrator == "parallelcluster"
    maker = boot.node.kind.accelerator.manufacturer if boot.node.kind.accelerator else ""
    return boot.node.role == "compute" and maker == "NVIDIA"


def test_a_node_joins_without_exporters_that_it_cannot_have() -> None:
    """What their makers serve is not what is locked: the view is degraded, and the last line says so."""
    names = ("node-exporter", "prometheus", "dcgm-exporter")
    boot = next(boot for boot in boots(_with_metrics("dev")) if boot.group == "gpu")
    served = boot.release.model_dump(mode="json", by_alias=True)
    for name in names:
        part = served["components"][name]
        for artifact in part["artifacts"]:
            artifact |= {"sha256": None, "integrity": "to-be-locked"}
        for entry in part["packages"]:
            entry["repository"]["key_fingerprint"] = None
    outcome = rehearsed(replace(boot, release=Release.model_validate(served)))
    assert outcome.status == 0, outcome.log
    assert {outcome.components[name]["outcome"] for name in names} == {"degraded"}, outcome.log
    assert "prometheus: no metrics of it reach the workspace" in outcome.last_line

"""Every shipped environment boots: its entry scripts run over its images, known ones and invented ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from first_boot import rehearsal
from first_boot.contents import Variant
from first_boot.faults import Faults
from first_boot.judge import WELL, differences, lacking, prediction
from first_boot.rehearsal import Boot, Outcome, boots, on_newest, rehearsed
from first_boot.sandbox import Sandbox
from first_boot.world import make_world
from project import ENVIRONMENTS, ROOT
from rules_support import changed, environment_data, loaded

from ultracluster.catalog.images import Fact, Image, Place
from ultracluster.config import Environment, load
from ultracluster.software.last_word import last_word
from ultracluster.software.node_image import node_image

NO_MODULE = Variant(newer=True, repositories="lack")
AT_FLOOR = Variant(unknowns="at-floor")
VARIANTS = (Variant(), AT_FLOOR, Variant(newer=True), NO_MODULE)


def _boots(name: str) -> Iterator[Boot]:
    environment = load(ROOT / "environments" / f"{name}.yaml").environment
    for boot in boots(environment, variants=VARIANTS):
        yield boot
        if newest := on_newest(boot):
            yield newest


EVERY = {boot.key: boot for name in ENVIRONMENTS for boot in _boots(name)}
"""Boots that differ in nothing that a node could see are one."""


def _recorded(boot: Boot) -> Image | None:
    return node_image(boot.config, boot.group).image


def _sort(boot: Boot) -> tuple[object, ...]:
    """The same for boots whose variant changes the same components, on the same kind of node."""
    node, variant = boot.node, boot.variant
    recorded = boot.image == _recorded(boot)
    accelerator = node.kind.accelerator and node.kind.accelerator.manufacturer
    if variant == Variant() and recorded and node.role == "compute":
        return (boot.key,)
    if variant == AT_FLOOR:
        return (variant, boot.image.os, accelerator)
    # the compute nodes of every environment boot the newest image and an invented one, too
    environment = boot.config.name if node.role == "compute" and (variant.newer or not recorded) else ""
    image = (boot.image.family, boot.image.os, boot.image.arch) if recorded else (boot.image.family,)
    if variant.newer:
        image = ()  # one invented image: over the recorded one it is newer than the newest known, too
    if variant == Variant(newer=True):
        environment = accelerator = ""  # the Lustre client is installed, which no other software depends on
    mirrored = recorded and not variant.newer and node.role == "login" and bool(node.cluster.get("mirror"))
    return (variant, image, node.role, accelerator, environment, mirrored)


WITH_ALL = {("dev", "login"), ("pcs-p6-b200", "login")}
WITH_ALL |= {("parallelcluster-p5", role) for role in ("controller", "login")}


def _params() -> Iterator[Any]:
    """In every run each compute group on its image, and one boot of each sort besides; all in a deep run."""
    seen: set[tuple[object, ...]] = set()
    for boot in EVERY.values():
        again = _sort(boot) in seen or (boot.variant == AT_FLOOR and boot.node.role != "compute")
        # what a newer image changes for all roles fails on compute nodes and on the controller, too
        again = again or (boot.node.role == "login" and boot.variant.newer)
        again = again or (boot.node.role != "compute" and boot.image != _recorded(boot))
        # these boot with all that an environment may ask for (`_with_all`)
        again = again or (boot.variant == Variant() and (boot.config.name, boot.node.role) in WITH_ALL)
        seen.add(_sort(boot))
        yield pytest.param(boot, marks=pytest.mark.deep if again else (), id=boot.title)


PLANNED = {"prod/train": {"nvidia-fs": "nvidia_fs", "dcgm-exporter": "dcgm_exporter"}}
"""What nodes of shipped environments lack on the images of their records, as `plan` says, and the step that
says so: prod reads a mirror, of which its release records no packages. All other groups are READY."""


_BOOTED: dict[str, Outcome] = {}


def _booted(boot: Boot) -> Outcome:
    """The outcome of a boot that several tests look at."""
    if boot.key not in _BOOTED:
        _BOOTED[boot.key] = rehearsed(boot)
    return _BOOTED[boot.key]


@pytest.mark.parametrize("boot", list(_params()))
def test_a_node_boots_as_the_plan_says(boot: Boot) -> None:
    """Word and reasons of the last line, each component and each step (first_boot/judge.py)."""
    outcome = _booted(boot)
    assert outcome.status == 0, outcome.log
    assert outcome.report[-1]["run"] == "ended"
    predicted = prediction(boot)
    assert not list(differences(boot, outcome, predicted)), outcome.log
    if boot.variant == Variant() and boot.image == _recorded(boot):
        planned = PLANNED.get(f"{boot.config.name}/{boot.group}", {})
        assert lacking(boot, predicted) == set(planned)
        assert {step for step, (state, _) in outcome.said.items() if state not in WELL} == set(
            planned.values()
        )
        assert outcome.last_line.startswith("DEGRADED " if planned else "READY "), outcome.last_line


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


def _dev_gpu() -> Boot:
    environment = load(ROOT / "environments/dev.yaml").environment
    return next(boot for boot in boots(environment) if boot.group == "gpu")


@cache
def _with_faults() -> tuple[str, ...]:
    """What is said of a node with a GPU and a disk too few, and the home of somebody else."""
    boot = _dev_gpu()
    assert boot.node.efa_interfaces == 1
    boot = replace(boot, faults=Faults(gpus=1, disks=1, home_of=1001))
    outcome = rehearsed(boot)
    assert not outcome.last_line.startswith("READY"), outcome.last_line
    return (*differences(boot, outcome, prediction(boot)), outcome.last_line)


@pytest.mark.parametrize(
    "says",
    [
        r"health check gpu_count: critical missing: 3 GPUs answer, cluster.json has 4; the PCI bus shows 4$",
        r"health check disks: warn missing: 1 local disks of 2$",
        r"proof: (degraded: |gpus is 3, 4 should be there$)",
        r"session_user: degraded: /home/ultracluster belongs to the id 1001, not to ultracluster \(4999\)",
        r"plan says ready without nothing, the node: DEGRADED .*session_user",
    ],
    ids=["a GPU less", "a disk less", "GPUs in proof", "a wrong owner", "the last line"],
)
def test_a_rehearsal_fails_for_what_is_missing(says: str) -> None:
    assert any(re.search(says, line) for line in _with_faults()), _with_faults()


def test_a_rehearsal_fails_for_one_efa_device_of_sixteen() -> None:
    environment = load(ROOT / "environments/eks-p5en.yaml").environment
    boot = replace(next(iter(boots(environment))), faults=Faults(efa_devices=1))
    outcome = rehearsed(boot)
    told = list(differences(boot, outcome, prediction(boot)))
    assert any("efa is 15, 16 should be there" in line for line in told), outcome.log


@pytest.mark.parametrize(
    ("name", "fault", "says"),
    [
        ("eks-p5en", 8, "FAILED proof: no GPUs answer: nvidia-smi (status 6): No devices were found"),
        ("eks-trn2", 16, "FAILED neuron: the neuron module shows no device"),
        ("eks-trn2", 1, "DEGRADED proof: .*15 of 16 Neuron devices"),
    ],
    ids=["no GPU", "no Neuron device", "a Neuron device less"],
)
def test_a_node_without_accelerators_ends_and_one_with_fewer_says_so(
    name: str, fault: int, says: str
) -> None:
    environment = load(ROOT / f"environments/{name}.yaml").environment
    outcome = rehearsed(replace(next(iter(boots(environment))), faults=Faults(gpus=fault)))
    assert re.match(says.replace("(status 6)", r"\(status 6\)"), outcome.last_line), outcome.log
    assert outcome.status == says.startswith("FAILED")


@pytest.mark.parametrize("wish", ["directory-service", "slurm-rest"])
def test_a_node_that_lets_people_in_by_jobs_boots_as_the_plan_says(wish: str) -> None:
    environment = load(ROOT / f"environments/wishes/{wish}.yaml").environment
    boot = next(one for one in boots(environment) if one.node.role == "compute")
    outcome = rehearsed(boot)
    assert outcome.said["job_ssh"][0] == "installed", outcome.log
    assert not list(differences(boot, outcome, prediction(boot))), outcome.log


def test_a_pcs_node_has_its_mig_instances_when_slurm_looks() -> None:
    environment = load(ROOT / "environments/wishes/gres.yaml").environment
    cut, whole = (
        next(one for one in boots(environment) if one.group == name) for name in ("slices", "train")
    )
    outcome = rehearsed(cut)
    assert outcome.said["mig"] == (
        "installed",
        "8 GPUs: 8 x 4g.40gb:0,1g.10gb:4,1g.10gb:5,1g.10gb:6",
    ), outcome.log
    assert not list(differences(cut, outcome, prediction(cut))), outcome.log
    assert rehearsed(whole).said["mig"][0] == "skipped"


def test_a_rehearsal_fails_where_the_image_has_a_component_elsewhere() -> None:
    """Scripts find what is where they look: a record that says another place makes them install it again."""
    boot = _dev_gpu()
    elsewhere = {
        "dcgm": "/opt/nvidia/dcgm/bin/dcgmi",
        "aws_ofi_nccl": "/opt/vendor/lib/libnccl-net-ofi.so",
        "pyxis": "/opt/vendor/lib/slurm/spank_pyxis.so",
    }
    places = {field: Place(path, True, "rehearsal", "2026") for field, path in elsewhere.items()}
    places = {**boot.image.places, **places}
    boot = replace(boot, image=replace(boot.image, places=places))
    outcome = rehearsed(boot)
    told = "\n".join(differences(boot, outcome, prediction(boot)))
    for component in ("dcgm", "aws-ofi-nccl"):
        assert re.search(f"{component}: plan says kept .*, the node (installed|degraded)", told), outcome.log
    assert "/opt/vendor" not in outcome.said["pyxis"][1]
    assert outcome.said["pyxis"][1].startswith("/opt/ultracluster/pyxis-")


def test_proof_and_health_checks_count_the_same_devices_and_few_lines_say_so() -> None:
    boot = _dev_gpu()
    outcome = _booted(boot)
    said = {line["step"]: line["message"] for line in outcome.report if "step" in line}
    kind = boot.node.kind
    assert kind.accelerator
    count = kind.accelerator.count
    efa = boot.node.efa_interfaces
    assert f"gpus={count}/{count} efa={efa}/{efa}" in said["proof"]
    assert not re.search(r"\b(gpu_count|efa):", said["health"]), said["health"]
    assert len(outcome.console) <= 20, outcome.console
    last_but_one = list(outcome.console)[-2]
    assert "all lines of this run: " in last_but_one
    assert last_but_one.endswith("/var/log/ultracluster/run.log")
    assert any(f"gpus={count}/{count}" in line for line in outcome.console)
    assert "wrote /etc/profile.d/ultracluster.sh" in outcome.log


@pytest.mark.parametrize(
    ("field", "value", "variant", "says"),
    [
        ("nvidia_driver", False, Variant(), "FAILED nvidia_driver: "),
        ("nvidia_driver", "515.105.01", Variant(), "FAILED nvidia_driver: "),
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


def test_the_same_driver_ends_a_node_of_b200_and_not_one_of_p5() -> None:
    """As `plan` says: a GPU family has a floor of its own (SWI007). contract.bats has both nodes."""
    kept, refused = (
        _with_driver(name, "565.57.01") for name in ("parallelcluster-p5/reserved", "pcs-p6-b200/train")
    )
    assert not [one for one in prediction(kept) if one.outcome == "refuses"]
    outcome = rehearsed(refused)
    says = "FAILED nvidia_driver: the driver is 565.57.01, p6-b200 needs 570: it comes with the pcs image"
    assert outcome.last_line.startswith(says), outcome.last_line
    predicted = tuple(one for one in prediction(refused) if one.component == "nvidia-driver")
    assert not list(differences(refused, outcome, predicted)), outcome.log


def _with_driver(group: str, version: str) -> Boot:
    name, _, group = group.partition("/")
    environment = load(ROOT / "environments" / f"{name}.yaml").environment
    boot = next(boot for boot in boots(environment) if boot.group == group)
    values = {
        field: Fact(version, "confirmed", "rehearsal", "") for field in ("nvidia_driver", "fabric_manager")
    }
    return replace(boot, image=replace(boot.image, values={**boot.image.values, **values}))


def _with_metrics(name: str, **more: Any) -> Environment:
    return loaded(changed(environment_data(name), {"observability": {}} | more)).environment


@cache
def _with_all(name: str) -> list[tuple[Boot, Outcome]]:
    """One node of each role of the environment with metrics, buckets of jobs and a further file system."""
    more: dict[str, Any] = {"storage.job_buckets": [{"bucket": "example-data"}]}
    if name == "pcs-p6-b200":
        fast = {"deployment": "scratch-2", "capacity_gib": 1200, "mount_path": "/fast", "groups": ["train"]}
        more["storage.further_lustre"] = {"fast": fast}
    by_role = {boot.node.role: boot for boot in boots(_with_metrics(name, **more))}
    if name == "trainium":  # its other nodes are as those of dev
        by_role = {"compute": by_role["compute"]}
    elif name == "dev":  # a controller's exporters are those of ParallelCluster's
        del by_role["controller"]
    return [(boot, rehearsed(boot)) for boot in by_role.values()]


@pytest.mark.parametrize("name", ["dev", "trainium", "pcs-p6-b200", "parallelcluster-p5"])
def test_nodes_that_send_metrics_boot_as_the_plan_says(name: str) -> None:
    """Exporters and the agent are installed where the plan says it; GPU-less nodes have nothing of GPUs."""
    for boot, outcome in _with_all(name):
        assert outcome.status == 0, outcome.log
        steps = {line["step"]: line["state"] for line in outcome.report if "step" in line}
        assert steps["metrics"] == steps["node_exporter"] == "installed", outcome.log
        assert (steps["dcgm_exporter"] == "installed") is _has_gpus_or_the_head(boot), outcome.log
        assert not list(differences(boot, outcome, prediction(boot))), outcome.log


def test_pyxis_of_parallelcluster_is_off_until_the_head_node_names_it() -> None:
    """The image has it below /usr/local and no plugstack.conf (its record); a line of ours switches it on."""
    for boot, outcome in _with_all("parallelcluster-p5"):
        assert outcome.said["pyxis"] == ("installed", _PYXIS), outcome.log
        wrote = "wrote /opt/slurm/etc/plugstack.conf" in outcome.log
        assert wrote is (boot.node.role == "controller"), outcome.log


_PYXIS = "/usr/local/lib/slurm/spank_pyxis.so, for Slurm 25.11.8"


@pytest.mark.parametrize("name", ["dev", "pcs-p6-b200", "parallelcluster-p5"])
def test_login_nodes_keep_metadata_for_services_and_hand_out_the_role_of_jobs(name: str) -> None:
    outcome = next(outcome for boot, outcome in _with_all(name) if boot.node.role == "login")
    steps = {line["step"]: (line["state"], line["message"]) for line in outcome.report if "step" in line}
    assert steps["metadata"] == ("installed", "in force (nft), passing: 0"), outcome.log
    assert steps["job_access"] == ("installed", "arn:aws:iam::111122223333:role/jobs"), outcome.log


def _elsewhere(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Sandbox], object], **variables: str
) -> None:
    """Boots of this test are in a world that `change` has changed, with these variables."""

    def changed_world(folder: Path, **world: Any) -> Sandbox:
        box = make_world(folder, **world)
        usual = box.environment()
        monkeypatch.setattr(box, "environment", lambda: usual | variables)
        change(box)
        return box

    monkeypatch.setattr(rehearsal, "make_world", changed_world)


def test_a_login_node_whose_downloads_all_fail_ends_with_metadata_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither GitHub nor the repositories give an answer: it joins without what needs them, and says so."""

    def without_network(box: Sandbox) -> None:
        (box.fake / "web_down").touch()
        box.tell("apt_broken", "E: Failed to fetch: Could not connect")

    _elsewhere(monkeypatch, without_network, ULTRACLUSTER_FETCH_DEADLINE="0.5")
    environment = _with_metrics("parallelcluster-p5")
    boot = next(boot for boot in boots(environment) if boot.node.role == "login")
    outcome = rehearsed(boot)
    assert outcome.status == 0, outcome.log
    steps = {line["step"]: line["state"] for line in outcome.report if "step" in line}
    word = last_word(outcome.last_line)
    assert steps["metadata"] == "installed", outcome.log
    # the image has pyxis, and its link takes no file
    assert steps["pyxis"] == "installed", outcome.log
    assert word and {"node-exporter", "prometheus"} <= set(word.degraded), outcome.last_line
    assert set(word.degraded) == {"node-exporter", "prometheus"}, outcome.last_line


HANGING = """#!/usr/bin/env bash
[[ $* != *https://github.com/* ]] || exec sleep 3600
exec bash {curl} "$@"
"""


def test_a_host_that_never_answers_costs_its_own_components_half_of_the_run_and_no_other_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """GitHub takes the connection and is silent. The deadline is in proportion to what a boot takes here."""
    usual = next(outcome for boot, outcome in _with_all("parallelcluster-p5") if boot.node.role == "compute")
    needed = max(line["seconds"] for line in usual.report if "run" in line)
    run = max(16.0, 6 * needed)

    def silent(box: Sandbox) -> None:
        curl = (box.bin / "curl").readlink()
        (box.bin / "curl").unlink()
        (box.bin / "curl").write_text(HANGING.format(curl=curl))
        (box.bin / "curl").chmod(0o755)

    # of one file, longer than the run: only the shares of the run end a wait
    _elsewhere(
        monkeypatch, silent, ULTRACLUSTER_RUN_MS=str(int(run * 1000)), ULTRACLUSTER_FETCH_DEADLINE="600"
    )
    boot = next(boot for boot, _ in _with_all("parallelcluster-p5") if boot.node.role == "compute")
    outcome = rehearsed(boot)
    assert outcome.status == 0, outcome.log
    word = last_word(outcome.last_line)
    assert word and set(word.degraded) == {"node-exporter", "prometheus"}, outcome.last_line
    late = "it did not end within 50 % of what was left of the run's 10 min"
    assert word.reason.count(late) == 2, outcome.last_line
    without = {"node_exporter", "metrics"}
    states = {step: state for step, (state, _) in outcome.said.items() if step not in without}
    assert states == {step: state for step, (state, _) in usual.said.items() if step not in without}
    # from another host, behind the same step
    assert states["dcgm_exporter"] == states["metadata"] == "installed"
    waited = sum(line["seconds"] for line in outcome.report if line.get("step") in without)
    others = sum(line["seconds"] for line in outcome.report if line.get("step") not in {None, *without})
    assert others < run / 2 and waited < run / 2 + needed, outcome.log
    assert run * 0.4 < outcome.report[-1]["seconds"] < run, outcome.log


def test_a_node_of_pcs_is_told_of_further_file_systems_by_arguments() -> None:
    for boot, outcome in _with_all("pcs-p6-b200"):
        proof = next(line["message"] for line in outcome.report if line.get("step") == "proof")
        assert ("/fast:lustre" in proof) == (boot.group == "train")


def _has_gpus_or_the_head(boot: Boot) -> bool:
    """The head node of ParallelCluster has the parts of prolog and epilog for all."""
    if boot.node.role == "controller":
        return boot.node.orchestrator == "parallelcluster"
    maker = boot.node.kind.accelerator.manufacturer if boot.node.kind.accelerator else ""
    return boot.node.role == "compute" and maker == "NVIDIA"

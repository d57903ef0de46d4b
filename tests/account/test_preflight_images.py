"""Which image would boot in the account, and what preflight says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import group as hyperpod_group
from moto.ssm.models import ssm_backends
from preflight_account import OWNER, World, images_of_today, rows_of
from rules_support import changed, environment_data, loaded

from ultracluster.account.preflight import Row, images

EKS = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64"
RELEASE = "orchestrator.node_image_release"
HYPERPOD = "/aws/service/sagemaker-hyperpod/ami/x86_64/slurm-ubuntu-22.04/latest/ami-id"
TODAY = "ami-e0000000000000001"
PCS = "/aws/service/pcs/ami/dlami-base-ubuntu2404/x86_64/latest/ami-id"


@pytest.fixture(autouse=True)
def without_a_lock(aws_account: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def world(name: str, changes: dict[str, Any] | None = None) -> World:
    # a Kubernetes release whose images the account below has
    pinned = {"orchestrator.kubernetes_version": "1.34"} if "eks" in name else {}
    made = World(loaded(changed(environment_data(name), pinned | (changes or {}))).environment)
    images_of_today(made)
    return made


def ask(made: World) -> dict[str, Row]:
    rows = rows_of(images, made)
    found = {row.what: row for row in rows}
    assert len(found) == len(rows), "two rows say the same thing"
    return found


def forget(made: World, *names: str) -> None:
    for name in names:
        del ssm_backends[OWNER][made.environment.region]._parameters[name]


def test_the_newest_image_of_the_pinned_date_is_green_and_says_how_to_keep_it() -> None:
    rows = ask(world("eks-p5en"))

    for name in ("system", "train"):
        row = rows[f"image of {name}"]
        assert row.level == "green" and "1.34.12-20261012, the newest" in row.found
        assert "software lock --for eks-p5en" in row.found
    assert rows["first boot of train"] == Row("first boot of train", "green", "installs nothing")
    assert "first boot of system" not in rows


def test_a_newer_image_than_the_pinned_date_would_boot_and_is_judged_by_the_newest_known() -> None:
    made = world("eks-trn2")
    made.public_parameter(f"{EKS}/neuron/recommended/release_version", "1.34.13-20261118")
    rows = ask(made)

    row = rows["image of trn2"]
    assert row.level == "yellow" and "1.34.13-20261118, would boot, 20261012 is pinned" in row.found
    assert "node_image_release: 1.34.13-20261118" in row.do
    assert "judged by eks-al2023-neuron-1.34-x86_64-20261012" in rows["first boot of trn2"].found


@pytest.mark.parametrize(
    ("release", "level", "says"),
    [
        ("1.34.12-20261012", "green", "1.34.12-20261012, the newest is 1.34.13-20261118"),
        ("1.34.11-20261012", "red", "has no 1.34.11-20261012: it has 1.34.12-20261012 of that date"),
        ("1.34.11-20261013", "red", "it has no image of that date"),
    ],
)
def test_a_release_in_full_is_looked_for(release: str, level: str, says: str) -> None:
    made = world("eks-trn2", {RELEASE: release})
    made.public_parameter(f"{EKS}/neuron/recommended/release_version", "1.34.13-20261118")
    rows = ask(made)

    assert rows["image of trn2"].level == level and says in rows["image of trn2"].found
    assert ("first boot of trn2" in rows) is (level == "green")


def test_an_image_that_field_reports_call_bad_is_yellow() -> None:
    made = world("eks-p5en", {RELEASE: "1.34.11-20260930"})
    for variant in ("nvidia", "standard"):
        made.public_parameter(f"{EKS}/{variant}/recommended/release_version", "1.34.11-20260930")
    row = ask(made)["first boot of train"]

    assert row.level == "yellow" and "may panic" in row.found


def test_a_kubernetes_release_without_images_is_red() -> None:
    made = world("eks-trn2")
    forget(made, f"{EKS}/neuron/recommended/release_version")

    assert ask(made)["image of trn2"].level == "red"


def test_what_nodes_install_is_said() -> None:
    row = ask(world("hyperpod-eks-p5"))["first boot of train"]

    assert row.level == "green"
    assert row.found == "installs gdrcopy, lustre-efa-setup, container-toolkit, 4.5 min at the most"


def test_a_newer_hyperpod_image_is_judged_by_the_newest_known() -> None:
    made = world("dev")
    made.public_image(TODAY, "HyperPod Slurm 20261130", "2026-11-30T01:00:00.000Z")
    row = ask(made)["first boot of gpu"]

    assert row.level == "green"
    assert "judged by hyperpod-slurm-ubuntu22.04-x86_64-20260917" in row.found


def test_an_older_hyperpod_image_is_judged_by_its_own_record() -> None:
    made = world("dev", {"software.strict": True})
    made.public_image(TODAY, "HyperPod Slurm", "2026-07-30T01:00:00.000Z")
    row = ask(made)["first boot of gpu"]

    assert row.level == "red"
    assert "nvidia-driver (595.71.05 is not 595.91.07" in row.found


def test_a_parameter_that_hyperpod_does_not_have_is_unknown_and_no_harm() -> None:
    made = world("dev")
    forget(made, HYPERPOD)
    rows = ask(made)

    assert rows["image of controller, login, gpu"].level == "unknown"
    assert rows["first boot of gpu"].level == "green"


@pytest.mark.parametrize(("release", "level"), [("2.1.0", "green"), ("9.9.9", "unknown")])
def test_a_release_of_hyperpod_that_nobody_knows_is_not_green(release: str, level: str) -> None:
    """HyperPod has no call that lists them."""
    row = ask(world("dev", {"node_groups.gpu.image_release": release}))["image of gpu"]

    assert (row.level, release in row.found) == (level, True)
    assert row.do == ("" if level == "green" else "2.0.1 or 2.1.0, or no image_release: the newest")


def test_what_the_group_of_a_cluster_runs_is_said() -> None:
    made = world("dev")
    group = hyperpod_group("controller", 1, "Controller", CurrentImageReleaseVersion="2.1.0")
    made.clusters["dev"] = {"InstanceGroups": [group]}

    assert ask(made)["image of controller, login, gpu"].found == "the cluster's group runs 2.1.0"


def test_parallelclusters_official_image_is_found_by_its_name() -> None:
    row = ask(world("parallelcluster-p5"))["image of head, login, reserved, more"]

    assert row.level == "green"
    assert row.found.startswith("aws-parallelcluster-3.16.1-ubuntu-2204-lts-hvm-x86_64-")


def test_a_release_of_parallelcluster_without_image_is_red() -> None:
    rows = ask(world("parallelcluster-p5", {"orchestrator.version": "3.16.4"}))
    row = rows["image of head, login, reserved, more"]

    assert row.level == "red"
    assert "no official image aws-parallelcluster-3.16.4-ubuntu-2204-lts-hvm-x86_64-*" in row.found
    assert "first boot of head" not in rows


def test_an_image_of_ones_own_is_unknown() -> None:
    made = world("dev", {"node_groups.gpu.image": "ami-0123456789abcdef0"})
    made.public_image("ami-0123456789abcdef0", "ours")
    row = ask(made)["first boot of gpu"]

    assert row.level == "unknown" and "what is on it is not known" in row.found


def test_an_ami_that_the_catalogue_names_is_judged_by_its_record() -> None:
    made = world("eks-p5en", {"node_groups.train.image": "ami-0123456789abcdef0"})
    made.public_image("ami-0123456789abcdef0", "amazon-eks-node-al2023-x86_64-nvidia-1.34-v20260930")
    row = ask(made)["first boot of train"]

    assert row.level == "yellow" and "reported bad" in row.found


def test_a_damaged_lock_of_the_environment_is_red(tmp_path: Path) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "dev.lock").write_text("{")

    assert ask(world("dev"))["first boot of gpu"].level == "red"


def test_a_call_that_is_denied_is_unknown() -> None:
    made = world("eks-p5en")
    made.refuse("ssm", "GetParameter", "AccessDeniedException", "not authorized")

    assert ask(made)["image of train"].level == "unknown"


@pytest.mark.parametrize("name", ["eks-p5en", "eks-trn2", "hyperpod-eks-p5", "pcs-p6-b200"])
def test_an_image_that_is_not_locked_is_a_note_before_the_first_deploy_and_yellow_afterwards(
    name: str,
) -> None:
    made = world(name)
    row = ask(made)["locked images"]
    assert row.level == "green" and "`ultracluster deploy` locks them first" in row.found
    made.account.client("cloudformation").create_stack(
        StackName=f"{name}-cluster", TemplateBody='{"Resources": {"A": {"Type": "AWS::SNS::Topic"}}}'
    )
    row = ask(made)["locked images"]
    assert row.level == "yellow" and f"{name}-cluster is deployed, and " in row.found
    assert f"`ultracluster software lock --for {name}`" in row.do


@pytest.mark.parametrize("name", ["dev", "prod", "trainium", "parallelcluster-p5"])
def test_nothing_is_said_of_locks_where_no_template_resolves_an_image(name: str) -> None:
    assert "locked images" not in ask(world(name))

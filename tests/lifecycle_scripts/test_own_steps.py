"""A team's own steps, from the environment file to the node: who gets them, and each entry runs them."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
from cluster_schema import faults
from first_boot.__main__ import main as rehearse_named
from first_boot.rehearsal import boots, rehearse
from project import ROOT

from ultracluster.cli.plan_markdown import as_markdown
from ultracluster.cli.plan_text import as_text
from ultracluster.config import Environment, load
from ultracluster.config.base_files import EXTENDS_FROM
from ultracluster.lifecycle.bundles import NODE_FILE, NodeFiles
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configuration, script_configurations
from ultracluster.plan.environment_plan import plan, step_lines
from ultracluster.rules import check

STEP = """\
# shellcheck shell=bash
# Writes where the company's proxy is.
# need: {need}
readonly {name}_FILE=/etc/{name}.conf

{name}::detect() {{
  [[ -e $ULTRACLUSTER_ROOT${name}_FILE ]] || step::absent "no ${name}_FILE"
  step::present "${name}_FILE"
}}
{name}::install() {{ files::write "${name}_FILE" <<<"{text}"; }}
{name}::verify() {{ [[ -e $ULTRACLUSTER_ROOT${name}_FILE ]] || step::fail "no ${name}_FILE"; }}
"""


def with_steps(folder: Path, text: str, *, more: str = "") -> Path:
    """An environment file of a team, with two steps beside it."""
    (folder / "lifecycle_steps").mkdir(exist_ok=True)
    for file, need in (("20_agent", "optional"), ("10_proxy", "required")):
        step = STEP.format(name=file[3:], need=need, text="proxy.example:3128")
        (folder / "lifecycle_steps" / f"{file}.sh").write_text(step)
    made = folder / "team.yaml"
    named = "".join(f"  - ./lifecycle_steps/{name}.sh\n" for name in ("20_agent", "10_proxy"))
    made.write_text(f"{text}\nlifecycle_steps:\n{named}{more}")
    return made


def shipped(name: str) -> str:
    return (ROOT / "environments" / f"{name}.yaml").read_text()


def by_kind() -> dict[str, str]:
    """A shipped environment for each orchestrator."""
    found: dict[str, str] = {}
    for file in sorted((ROOT / "environments").glob("*.yaml")):
        found.setdefault(load(file).environment.orchestrator.kind, file.stem)
    return found


@pytest.mark.parametrize(("kind", "name"), by_kind().items())
def test_every_entry_runs_them_after_ours(kind: str, name: str, tmp_path: Path) -> None:
    environment = load(with_steps(tmp_path, shipped(name))).environment
    roles = {one.node.role: one for one in boots(environment)}
    boot = roles.get("login") or roles["compute"]  # a login node boots in half of the time
    outcome = rehearse(boot, tmp_path / "node")

    assert outcome.status == 0, outcome.log
    assert outcome.steps(boot) == {
        "proxy": ("installed", "no /etc/proxy.conf"),
        "agent": ("installed", "no /etc/agent.conf"),
    }
    steps = [line["step"] for line in outcome.report if "step" in line]
    assert steps[-4:] == ["proxy", "agent", "logs", "proof"], steps
    assert (tmp_path / "node/root/etc/proxy.conf").read_text() == "proxy.example:3128\n"
    assert not Path("/etc/proxy.conf").exists()


def chosen(folder: Path, choice: str, group: str = "gpu") -> Environment:
    text = shipped("dev").replace(f"\n  {group}:\n", f"\n  {group}:\n    lifecycle_steps: {choice}\n")
    return load(with_steps(folder, text)).environment


def test_a_group_runs_what_it_chooses(tmp_path: Path) -> None:
    cluster = resolve(chosen(tmp_path, "[agent]"))
    configurations = script_configurations(cluster)

    assert [one["file"] for one in _steps(configurations.by_group["gpu"], "gpu")] == ["20_agent.sh"]
    both = _steps(configurations.by_group["controller"], "controller")
    assert [(one["file"], one["need"]) for one in both] == [
        ("10_proxy.sh", "required"),
        ("20_agent.sh", "optional"),
    ]
    for told in [*configurations.by_group.values(), configurations.of_all]:
        assert faults(dict(told)) == []
    # of others, nodes are told their role only
    assert configurations.by_group["gpu"]["node_groups"]["controller"] == {"role": "controller"}  # type: ignore[index]


def test_none_is_none(tmp_path: Path) -> None:
    told = script_configuration(resolve(chosen(tmp_path, "[]")), "gpu")

    assert "steps" not in told["node_groups"]["gpu"]  # type: ignore[index]


def test_they_travel_with_the_scripts_of_their_groups_only(tmp_path: Path) -> None:
    configurations = script_configurations(resolve(chosen(tmp_path, "[]"))).by_group
    files = NodeFiles.of("hyperpod_on_init_complete", release="hyperpod-slurm-2026.09")
    bundles = files.bundles(configurations, configurations)

    own = {name for name in bundles["controller"].files if name.startswith("own_steps/")}
    assert own == {"own_steps/10_proxy.sh", "own_steps/20_agent.sh"}
    step = (tmp_path / "lifecycle_steps" / "10_proxy.sh").read_bytes()
    assert bundles["controller"].files["own_steps/10_proxy.sh"] == step
    assert not [name for name in bundles["gpu"].files if name.startswith("own_steps/")]


def test_in_one_file_they_lie_beside_the_others(tmp_path: Path) -> None:
    environment = load(with_steps(tmp_path, shipped(by_kind()["pcs"]))).environment
    group = next(iter(environment.node_groups))
    told = script_configuration(resolve(environment), group)
    bundle = NodeFiles.of("pcs_node", release=environment.software.release).in_one_file(told)
    content = bundle.files[NODE_FILE]
    with tarfile.open(fileobj=io.BytesIO(content[content.index(b"\x1f\x8b\x08") :]), mode="r:gz") as archive:
        names = archive.getnames()
    assert {"own_steps/10_proxy.sh", "own_steps/20_agent.sh"} <= set(names)


def test_a_changed_step_is_a_new_hash_of_the_groups_that_run_it(tmp_path: Path) -> None:
    def folders() -> dict[str, str]:
        cluster = resolve(load(tmp_path / "team.yaml").environment)
        told = script_configurations(cluster).by_group
        files = NodeFiles.of("hyperpod_on_init_complete", release="hyperpod-slurm-2026.09")
        return {name: one.folder for name, one in files.bundles(told, told).items()}

    chosen(tmp_path, "[agent]")
    before = folders()
    step = tmp_path / "lifecycle_steps" / "10_proxy.sh"
    step.write_text(step.read_text().replace("3128", "8080"))
    after = folders()

    assert {name for name in before if before[name] != after[name]} == {"controller", "login"}


def test_a_base_file_names_them_from_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EXTENDS_FROM, str(tmp_path / "base"))
    base = tmp_path / "base"
    base.mkdir()
    with_steps(base, shipped("dev"))
    (tmp_path / "envs").mkdir()
    overlay = tmp_path / "envs" / "other.yaml"
    overlay.write_text("extends: ../base/team.yaml\nname: other\n")
    loaded = load(overlay)

    assert loaded.environment.lifecycle_steps[0] == "../base/lifecycle_steps/20_agent.sh"
    assert not [one for one in check(loaded) if one.code.startswith("STP")]
    assert script_configuration(resolve(loaded.environment), "gpu")


def test_the_plan_shows_them(tmp_path: Path) -> None:
    found = plan(resolve(chosen(tmp_path, "[agent]")))
    by_group = {one.group: one.own_steps for one in found.first_boot}

    assert by_group["gpu"] == ("agent",)
    assert by_group["controller"] == ("proxy (required)", "agent")
    assert list(step_lines(found.first_boot)) == ["controller, login: proxy (required), agent", "gpu: agent"]
    assert "your steps" in as_text(found, terminal=False)
    assert "your steps" in as_markdown(found)


def test_the_rehearsal_shows_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REHEARSE_AS_ROOT", "yes")
    chosen(tmp_path, "[agent]", "login")
    light = ("controller", "login")  # GPU nodes take as long as both
    monkeypatch.setattr(
        "first_boot.__main__.boots",
        lambda environment: [one for one in boots(environment) if one.group in light],
    )
    assert rehearse_named([str(tmp_path / "team.yaml")]) == 0

    told = capsys.readouterr().out
    assert "yours     agent (optional) installed: no /etc/agent.conf" in told
    assert "yours     proxy (required) installed: no /etc/proxy.conf" in told


def test_the_rehearsal_runs_nothing_of_ones_own_as_root_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REHEARSE_AS_ROOT", raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    chosen(tmp_path, "[agent]")
    assert rehearse_named([str(tmp_path / "team.yaml")]) == 2
    assert "$ULTRACLUSTER_ROOT" in capsys.readouterr().err


def test_a_step_that_breaks_a_rule_is_not_rehearsed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen(tmp_path, "[agent]")
    (tmp_path / "lifecycle_steps" / "20_agent.sh").write_text("agent::detect() { :; }\n")
    assert rehearse_named([str(tmp_path / "team.yaml")]) == 2
    assert "STP005" in capsys.readouterr().err


def _steps(told: object, group: str) -> list[dict[str, str]]:
    return json.loads(json.dumps(told))["node_groups"][group]["steps"]

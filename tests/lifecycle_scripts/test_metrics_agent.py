"""What a node tells its agent: accepted by Prometheus, bounded, signed, and renewed when it has changed."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from node_agent.agent import FILES, Node, tool

URL = "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-0123/api/v1/remote_write"
TOLD: dict[str, Any] = {
    "scrape_seconds": 30,
    "max_series_per_node": 5000,
    "region": "us-east-1",
    "labels": {"cluster": "dev", "node_group": "gpu"},
    "remote_write_url": URL,
    "role": "compute",
    "instance_type": "p5.48xlarge",
    "accelerator": "nvidia",
    "address": "10.1.0.21",
}
HAS_EXPORTERS = (
    "opt/ultracluster/node-exporter/node_exporter",
    "etc/systemd/system/ultracluster-dcgm-exporter.service",
)
SCONTROL = """\
#!/bin/sh
case "$*" in
  "show config") cat "{folder}/config" ;;
  "--oneliner show topology "*) cat "{folder}/topology" ;;
esac
"""
CONFIG = """\
Configuration data as of 2026-11-22T12:00:00
MetricsType             = metrics/openmetrics
SlurmctldHost[0]        = {host}
SlurmctldPort           = 6817
SLURM_VERSION           = {version}
"""


def made(folder: Path, *, has: tuple[str, ...] = HAS_EXPORTERS, **told: Any) -> Node:
    node = Node(folder, {**TOLD, **told})
    for path in has:
        node.has(path)
    return node


def slurm(
    node: Node,
    *,
    host: str = "head(10.1.0.10)",
    version: str = "25.11.8",
    topology: str = "",
    config: str = CONFIG,
) -> str:
    """A scontrol that answers so; the folder that it is in."""
    folder = node.root / "slurm"
    folder.mkdir(exist_ok=True)
    (folder / "config").write_text(config.format(host=host, version=version))
    (folder / "topology").write_text(topology)
    (folder / "scontrol").write_text(SCONTROL.format(folder=folder))
    (folder / "scontrol").chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def jobs(node: Node) -> list[str]:
    return [one["static_configs"][0]["labels"]["job"] for one in node.configuration["scrape_configs"]]


@pytest.mark.parametrize(
    ("told", "has"),
    [
        ({}, HAS_EXPORTERS),
        (
            {"role_arn": "arn:aws:iam::444455556666:role/metrics-writer", "region": "eu-north-1"},
            HAS_EXPORTERS,
        ),
        ({"role": "controller", "accelerator": "none", "slurm": True}, HAS_EXPORTERS[:1]),
        ({"scrape_seconds": 15}, ()),
    ],
    ids=["a GPU node", "a workspace of another account and Region", "a controller", "no exporter"],
)
def test_promtool_accepts_the_configuration(
    tmp_path: Path, told: dict[str, Any], has: tuple[str, ...]
) -> None:
    node = made(tmp_path, has=has, **told)
    done = node.configure(path=slurm(node, host=f"{_host()}(10.1.0.10)"))
    assert done.returncode == 0, done.stderr
    check = [tool("promtool"), "check", "config", "--agent", str(node.run / "prometheus.yml")]
    judged = subprocess.run(check, capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stdout + judged.stderr


def _host() -> str:
    return subprocess.run(["hostname", "-s"], capture_output=True, text=True, check=True).stdout.strip()


def test_requests_are_signed_for_the_region_of_the_workspace(tmp_path: Path) -> None:
    node = made(tmp_path, role_arn="arn:aws:iam::444455556666:role/writer", region="eu-north-1")
    node.configure()
    (write,) = node.configuration["remote_write"]
    assert write["url"] == URL
    assert write["sigv4"] == {"region": "eu-north-1", "role_arn": "arn:aws:iam::444455556666:role/writer"}
    assert write["queue_config"]["retry_on_http_429"] is True


def test_every_series_says_where_it_is_from(tmp_path: Path) -> None:
    node = made(tmp_path, labels={"cluster": "dev"}, node_group="gpu")
    node.has("proc/77/comm")
    (tmp_path / "proc/77/comm").write_text("slurmd\n")
    (tmp_path / "proc/77/status").write_text("Name:\tslurmd\nUid:\t0\t0\t0\t0\n")
    (tmp_path / "proc/77/cmdline").write_bytes(
        b"/opt/aws/pcs/scheduler/slurm-25.11/sbin/slurmd\0-N\0gpu-7\0-Z\0"
    )
    dmi = tmp_path / "sys/devices/virtual/dmi/id/board_asset_tag"
    dmi.parent.mkdir(parents=True)
    dmi.write_text("i-0123456789abcdef0\n")
    node.configure(
        path=slurm(node, topology="BlockName=block03 BlockIndex=3 Nodes=gpu-[1-18] BlockSize=18\n")
    )
    assert node.configuration["global"]["external_labels"] == {
        "cluster": "dev",
        "instance_id": "i-0123456789abcdef0",
        "instance_type": "p5.48xlarge",
        "node": "gpu-7",
        "node_group": "gpu",
        "rack": "block03",
    }


@pytest.mark.parametrize(
    ("topology", "rack"),
    [
        (
            "SwitchName=s1 Level=0 Nodes=a[1-3]\nSwitchName=top Level=1 Nodes=a[1-9] Switches=s[1-3]\n",
            "s1",
        ),
        ("BlockName=b1 BlockIndex=0 Nodes=a1\nBlockName=b2 BlockIndex=1 Nodes=a2\n", None),
        ("", None),
        ("Topology information is not available\n", None),
    ],
    ids=["the leaf of a tree", "several: none is told", "nothing", "words"],
)
def test_a_rack_is_told_where_slurm_knows_exactly_one(
    tmp_path: Path, topology: str, rack: str | None
) -> None:
    node = made(tmp_path)
    node.configure(path=slurm(node, topology=topology))
    assert node.settings.get("rack") == rack


def test_without_slurm_the_rest_is_there(tmp_path: Path) -> None:
    """On a first boot Slurm may not answer yet: neither rack nor slurmctld, and the host's name."""
    node = made(tmp_path, slurm=True, role="controller")
    assert node.configure().returncode == 0
    labels = node.configuration["global"]["external_labels"]
    assert "rack" not in labels and labels["node"] == node.settings["node"]
    assert jobs(node) == ["node", "dcgm", "agent"]


def test_an_exporter_that_the_node_lacks_is_not_asked(tmp_path: Path) -> None:
    node = made(tmp_path, has=())
    node.configure()
    assert jobs(node) == ["agent"]


def test_only_metrics_of_the_catalogue_are_kept_and_never_more_than_the_budget(tmp_path: Path) -> None:
    node = made(tmp_path)
    node.configure()
    shipped = json.loads((node.metrics / "keep.json").read_text())
    for one in node.configuration["scrape_configs"]:
        job = one["static_configs"][0]["labels"]["job"]
        assert one["sample_limit"] == (5000 if job != "agent" else 2000)
        keep = one["metric_relabel_configs"][0]
        assert keep["action"] == "keep"
        for name in shipped[job]:
            assert re.fullmatch(keep["regex"], name)
        assert not re.fullmatch(keep["regex"], "node_cpu_seconds_total")


def test_a_job_without_a_list_keeps_everything(tmp_path: Path) -> None:
    node = Node(tmp_path, TOLD, keep={})
    node.configure()
    (agent,) = node.configuration["scrape_configs"]
    assert [one["action"] for one in agent["metric_relabel_configs"]] == ["labeldrop"]


# --- who asks slurmctld ---


def test_the_first_controller_asks_slurmctld(tmp_path: Path) -> None:
    node = made(tmp_path, slurm=True, role="controller", address="10.1.0.10")
    node.configure(path=slurm(node))
    found = [one for one in node.configuration["scrape_configs"] if one["job_name"].startswith("slurm")]
    assert [one["metrics_path"] for one in found] == [
        "/metrics/jobs",
        "/metrics/nodes",
        "/metrics/partitions",
        "/metrics/scheduler",
    ]
    assert {one["static_configs"][0]["targets"][0] for one in found} == {"10.1.0.10:6817"}
    assert len({one["job_name"] for one in found}) == 4
    assert node.settings["slurm"] is True


@pytest.mark.parametrize(
    ("version", "config", "address"),
    [
        ("25.05.8", CONFIG, "10.1.0.10"),
        ("25.11.8", CONFIG.replace("metrics/openmetrics", "(null)"), "10.1.0.10"),
        ("25.11.8", CONFIG, "10.1.0.11"),
    ],
    ids=["a release without metrics", "metrics are off", "a second controller"],
)
def test_others_do_not(tmp_path: Path, version: str, config: str, address: str) -> None:
    node = made(tmp_path, slurm=True, role="controller", address=address)
    node.configure(path=slurm(node, version=version, config=config))
    assert "slurm" not in jobs(node)
    assert node.settings["slurm"] is (address == "10.1.0.10"), "our collector asks every release of Slurm"


def test_of_two_login_nodes_one_asks_and_the_other_takes_over(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    nodes = [
        made(tmp_path / name, slurm=True, role="login", address=address, shared=str(shared))
        for name, address in (("a", "10.1.0.11"), ("b", "10.1.0.12"))
    ]

    def asking() -> list[bool]:
        for node in nodes:
            assert node.configure(path=slurm(node)).returncode == 0
        return [node.settings["slurm"] for node in nodes]

    assert asking() == [True, False]
    assert asking() == [True, False]
    (lease,) = (shared / ".ultracluster-metrics").iterdir()
    assert lease.parent.stat().st_mode & 0o777 == 0o700
    _age(lease, 299)
    assert asking() == [True, False], "the holder has renewed it"
    _age(lease, 301)
    assert nodes[1].configure(path=slurm(nodes[1])).returncode == 0
    assert asking() == [False, True]
    lease.write_text("damaged")
    assert sorted(asking()) == [False, True]


def _age(file: Path, seconds: float) -> None:
    at = file.stat().st_mtime - seconds
    os.utime(file, (at, at))


def test_without_a_shared_folder_that_can_be_written_a_login_node_asks(tmp_path: Path) -> None:
    node = made(tmp_path, slurm=True, role="login", shared=str(tmp_path / "nowhere"))
    node.configure(path=slurm(node))
    assert node.settings["slurm"] is True


# --- people on the same node ---


@pytest.mark.parametrize(
    "uids", ["5001\t5001\t5001\t5001", "5001\t0\t0\t0"], ids=["a user", "by sudo or setuid"]
)
def test_a_process_that_a_user_calls_slurmd_gives_the_node_no_name(tmp_path: Path, uids: str) -> None:
    node = made(tmp_path)
    folder = tmp_path / "proc/4711"
    folder.mkdir(parents=True)
    (folder / "comm").write_text("slurmd\n")
    (folder / "cmdline").write_bytes(b"./slurmd\0-N\0somebody-else\0")
    (folder / "status").write_text(f"Name:\tslurmd\nUid:\t{uids}\nGid:\t5001\t5001\t5001\t5001\n")
    node.configure()
    assert node.settings["node"] == _host()


@pytest.mark.parametrize("plant", ["a folder for everybody", "a link", "a link in it"])
def test_a_lease_that_people_could_have_laid_there_is_none(tmp_path: Path, plant: str) -> None:
    """People may write to the shared folder: root follows none of their links and believes no file."""
    shared, victim = tmp_path / "shared", tmp_path / "victim"
    (shared / "theirs").mkdir(parents=True)
    victim.write_text("untouched")
    lease = shared / ".ultracluster-metrics"
    if plant == "a link":
        (victim := tmp_path / "folder").mkdir()
        lease.symlink_to(victim)
    else:
        lease.mkdir()
        lease.chmod(0o777 if plant == "a folder for everybody" else 0o700)
        (lease / "10.1.0.11.new").symlink_to(victim)
    if plant != "a link":
        (lease / "slurm.json").write_text('{"node": "nobody"}')
    node = made(tmp_path / "a", slurm=True, role="login", address="10.1.0.11", shared=str(shared))
    assert node.configure(path=slurm(node)).returncode == 0
    assert node.settings["slurm"] is True
    assert list(victim.iterdir()) == [] if victim.is_dir() else victim.read_text() == "untouched"


def test_an_exporter_cannot_say_that_it_is_another_node_nor_send_the_agent_elsewhere(tmp_path: Path) -> None:
    """Its port is anybody's while it is away, and the agent's account reaches the instance metadata."""
    forged = 'up{node="n",cluster="c",instance_id="i-0",rack="r",node_group="g",instance_type="t"} 1\n'
    node = made(tmp_path)
    node.configure()
    for one in node.configuration["scrape_configs"]:
        assert one["follow_redirects"] is False
        assert one["honor_timestamps"] is False
    (exporter,) = (one for one in node.configuration["scrape_configs"] if one["job_name"] == "node")
    (drop,) = (one for one in exporter["metric_relabel_configs"] if one["action"] == "labeldrop")
    for label in re.findall(r"(\w+)=", forged):
        assert re.fullmatch(drop["regex"], label)


def test_root_writes_nothing_where_the_agents_user_could_lay_a_link() -> None:
    unit = (FILES / "metrics_agent.service").read_text()
    assert "RuntimeDirectory=" not in unit, "systemd gives it to the agent's user"
    assert "--config.file=/run/ultracluster/agent/prometheus.yml" in unit
    assert '"run/ultracluster/agent"' in (FILES / "metrics_agent.py").read_text()


# --- at each start, and each minute ---


def test_a_node_that_gets_its_name_later_tells_the_agent_once(tmp_path: Path) -> None:
    node = made(tmp_path)
    commands = slurm(node)
    reloads = tmp_path / "reloads"
    (tmp_path / "slurm/systemctl").write_text(f'#!/bin/sh\necho "$@" >>"{reloads}"\n')
    (tmp_path / "slurm/systemctl").chmod(0o755)
    node.configure(path=commands)
    node.configure("--refresh", path=commands)
    assert not reloads.exists()
    name = tmp_path / "var/lib/ultracluster/health/node_name.json"
    name.parent.mkdir(parents=True)
    name.write_text('"gpu-7"')
    for _ in range(2):
        node.configure("--refresh", path=commands)
    assert reloads.read_text() == "reload ultracluster-agent.service\n"
    assert node.configuration["global"]["external_labels"]["node"] == "gpu-7"


def test_damaged_settings_start_no_agent_and_say_why(tmp_path: Path) -> None:
    node = made(tmp_path)
    (node.home / "told.json").write_text("{")
    done = node.configure()
    assert (done.returncode, done.stderr) == (1, "told.json does not tell where metrics go\n")


def test_an_agent_that_cannot_read_its_log_starts_anew_without_it(tmp_path: Path) -> None:
    node = made(tmp_path)
    segment = node.state / "wal/00000001"
    segment.parent.mkdir()
    segment.write_text("damaged")
    for _ in range(5):
        assert node.configure().stderr == ""
        assert segment.exists()
    assert "what was not sent yet is given up: 5 starts in 900 s" in node.configure().stderr
    assert not segment.exists()
    assert node.configure().stderr == ""


def test_a_log_without_end_is_given_up(tmp_path: Path) -> None:
    node = made(tmp_path)
    segment = node.state / "wal/00000001"
    segment.parent.mkdir()
    with segment.open("wb") as file:
        file.truncate((1 << 30) + 1)
    assert "is given up: 1073741825 bytes" in node.configure().stderr
    assert not segment.exists()


# --- units ---

UNITS = {
    "metrics_node_exporter.service": "ultracluster-node-exporter.service",
    "metrics_dcgm_exporter.service": "ultracluster-dcgm-exporter.service",
    "metrics_collectors.service": "ultracluster-collectors.service",
    "metrics_neuron.service": "ultracluster-neuron.service",
    "metrics_agent.service": "ultracluster-agent.service",
    "metrics_refresh.service": "ultracluster-agent-refresh.service",
    "metrics_refresh.timer": "ultracluster-agent-refresh.timer",
    "metrics_training.mount": "run-ultracluster-training.mount",
}
_YOUNGER = re.compile(r"Unknown key(?: name)? '(RestartSteps|RestartMaxDelaySec)'")
"""Of systemd 254: older ones say so and go on."""


def test_systemd_understands_the_units(tmp_path: Path) -> None:
    for file, unit in UNITS.items():
        text = (FILES / file).read_text()
        # programs that this machine does not have
        (tmp_path / unit).write_text(re.sub(r"(?m)^(ExecStart=)/(opt|usr/bin/dcgm)\S+", r"\1/bin/true", text))
    command = [tool("systemd-analyze"), "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if str(tmp_path) in line and not _YOUNGER.search(line)]
    assert not said


@pytest.mark.parametrize(
    "file", [name for name in UNITS if name.endswith(".service") and "refresh" not in name]
)
def test_services_are_bounded_and_come_back(file: str) -> None:
    """A crash loop costs a start in 15 seconds, from systemd 254 on one in five minutes, and never ends."""
    settings = dict(re.findall(r"^(\w+)=(.*)$", (FILES / file).read_text(), re.MULTILINE))
    assert settings["Restart"] == "always"
    assert settings["StartLimitIntervalSec"] == "0"
    assert int(settings["RestartSec"]) >= 15
    assert (settings["RestartSteps"], settings["RestartMaxDelaySec"]) == ("6", "300")
    assert int(settings["MemoryMax"].removesuffix("M")) <= 512
    assert int(settings["CPUQuota"].removesuffix("%")) <= 50
    assert int(settings["TasksMax"]) <= 128
    assert settings["WantedBy"] == "multi-user.target", "it outlives a reboot"
    assert settings["NoNewPrivileges"] == "yes"


@pytest.mark.parametrize(
    ("file", "user"),
    [
        ("metrics_node_exporter.service", "ultracluster-metrics"),
        ("metrics_dcgm_exporter.service", "ultracluster-metrics"),
        ("metrics_agent.service", "ultracluster-agent"),
    ],
)
def test_what_listens_has_no_rights_and_listens_to_the_node_only(file: str, user: str) -> None:
    text = (FILES / file).read_text()
    assert f"\nUser={user}\n" in text
    assert "\nCapabilityBoundingSet=\n" in text
    assert re.findall(r"(?:--web\.listen-|--)address=(\S+):\d+", text) == ["127.0.0.1"]
    command = [tool("systemd-analyze"), "security", "--offline=true", "--threshold=40", str(FILES / file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:]


def test_the_gpu_exporter_asks_the_host_engine_that_runs() -> None:
    text = (FILES / "metrics_dcgm_exporter.service").read_text()
    assert "--remote-hostengine-info=127.0.0.1:5555" in text
    assert "PartOf=nvidia-dcgm.service" in text

"""SSH through Session Manager: OpenSSH itself reads the entries, and opens a session through one.

A program stands in for `aws ssm start-session` and the plugin: it refuses another document, target, Region or
parameter, and carries the rest to a real sshd without a port. It cannot judge AWS: whether IAM allows the
session, and whether the agent of the node answers.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from hyperpod_service import HyperPod, account, node
from needs import need
from ruamel.yaml import YAML
from typer.testing import CliRunner

from ultracluster.account import aws, ssh_config
from ultracluster.account.nodes.node import Node
from ultracluster.account.ssh_config import Host, Login, NoKeyError
from ultracluster.cli import connect as command
from ultracluster.config import Environment
from ultracluster.config.directory import Directory

ENVIRONMENTS = Path(__file__).parents[2] / "environments"
ALICE = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5c0g1n3Zr8yq4o4l7bY9d3b1o8yQm2c2wV0y5o6b7k"
BOB = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK5c0g1n3Zr8yq4o4l7bY9d3b1o8yQm2c2wV0y5o6b7k"
TARGET = "sagemaker-cluster:abcdefghijkl_gpu-i-00000000000000010"
STAND_IN = """
import json, os, sys
from pathlib import Path
folder = Path({folder!r})
words = sys.argv[1:]
options = dict(zip(words[2::2], words[3::2]))
with (folder / "asked").open("a") as asked:
    asked.write(json.dumps(words) + "\\n")
known = json.loads((folder / "known.json").read_text())
wrong = {{name: options.get(name) for name, value in known.items() if options.get(name) != value}}
wrong |= {{name: options[name] for name in options.keys() - known}}
if words[:2] != ["ssm", "start-session"] or len(words) != 2 + 2 * len(options) or wrong:
    sys.exit(f"An error occurred (AccessDeniedException) when calling the StartSession operation: {{wrong}}")
os.execv({sshd!r}, [{sshd!r}, "-i", "-e", "-f", str(folder / "sshd_config")])
"""


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir(mode=0o700)
    return tmp_path


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, home: Path) -> Callable[..., Any]:
    """What the command prints for an environment with these keys of users."""
    made = account()
    service = HyperPod(made)
    service.nodes.append(node(2, "login"))
    service.nodes.append(node(30, status="Pending", InstanceId=""))
    monkeypatch.setattr(aws, "Account", lambda **_: made)

    def invoke(*words: str, base: str = "dev", keys: Mapping[str, list[str]] | None = None) -> Any:
        data = YAML(typ="safe").load(ENVIRONMENTS / f"{base}.yaml")
        given = {"alice": [f"{ALICE} alice@example.com"], "bob": [BOB]} if keys is None else keys
        data["users"] = {
            name: {"uid": 2001 + at, "keys": some} for at, (name, some) in enumerate(given.items())
        }
        file = home / f"{base}.yaml"
        with file.open("w") as out:
            YAML(typ="safe").dump(data, out)
        app = typer.Typer()
        app.command()(command.connect)
        return CliRunner().invoke(app, [str(file), "--ssh-config", *words])

    return invoke


def public(home: Path, name: str, key: str, *, private: bool = True) -> None:
    (home / ".ssh" / f"{name}.pub").write_text(f"{key} of this machine\n")
    if private:
        (home / ".ssh" / name).write_text("not read by anybody here\n")


def read_by_openssh(text: str, host: str, home: Path) -> dict[str, str]:
    """What OpenSSH makes of it for a host."""
    need("ssh")
    file = home / "ssh_config"
    file.write_text(text)
    said = subprocess.run(["ssh", "-G", "-F", str(file), host], capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in said.stdout.splitlines() if " " in line)


def test_openssh_reads_an_entry_for_each_node_that_runs(printed: Callable[..., Any], home: Path) -> None:
    public(home, "id_ed25519", ALICE)
    result = printed()
    assert result.exit_code == 0, result.output
    assert "1 not running, without an entry" in result.stderr
    names = [line.split()[1:] for line in result.stdout.splitlines() if line.startswith("Host ")]
    assert names[0] == ["dev", "dev-ip-10-1-0-2"] and ["dev-ip-10-1-0-16"] in names
    assert len({one for some in names for one in some}) == len(names) + 1

    read = read_by_openssh(result.stdout, "dev-ip-10-1-0-16", home)
    assert {name: read[name] for name in ("hostname", "user", "port", "identitiesonly", "identityfile")} == {
        "hostname": "i-00000000000000010", "user": "alice", "port": "22", "identitiesonly": "yes",
        "identityfile": "~/.ssh/id_ed25519",
    }  # fmt: skip
    assert read["stricthostkeychecking"] == "accept-new"
    assert read["proxycommand"] == (
        "aws ssm start-session --region us-west-2 --document-name AWS-StartSSHSession "
        f"--target {TARGET} --parameters portNumber=%p"
    )
    first, login = (read_by_openssh(result.stdout, name, home) for name in ("dev", "dev-ip-10-1-0-2"))
    assert first["proxycommand"] == login["proxycommand"] and "_login-i-" in first["proxycommand"]
    # a name of another environment is none of ours
    assert "proxycommand" not in read_by_openssh(result.stdout, "dev-eu", home)


def test_one_node(printed: Callable[..., Any], home: Path) -> None:
    public(home, "id_ed25519", ALICE)
    assert [line for line in printed("gpu-16").stdout.splitlines() if line.startswith("Host ")] == [
        "Host dev-ip-10-1-0-16"
    ]


@pytest.mark.parametrize(
    ("words", "keys", "why"),
    [
        ([], {}, "no user of dev has keys"),
        (["--as", "carol"], {"alice": [ALICE], "carol": []}, "write users.carol.keys"),
        ([], {"alice": [ALICE]}, "no user has a key of"),
        (["gpu-99"], None, "no such node"),
        (["--exec"], None, "not with --exec"),
        (["--admin"], None, "not with --exec, --admin"),
        (["gpu-16", "--job", "7"], None, "goes with --as and a node or --job"),
        (["--as", "alice", "--job", "7; reboot"], None, "is no job of Slurm"),
        (["gpu-i-"], None, "no such node"),
    ],
)
def test_refused(
    printed: Callable[..., Any], home: Path, words: list[str], keys: dict[str, list[str]] | None, why: str
) -> None:
    if keys is None:
        public(home, "id_ed25519", ALICE)
    result = printed(*words, keys=keys)
    assert result.exit_code == 2 and why in " ".join(result.output.split()), result.output
    assert not result.stdout and "Traceback" not in result.output


@pytest.mark.parametrize("base", ["eks-p5en", "hyperpod-eks-p5"])
def test_nodes_of_kubernetes_have_no_accounts_of_users(printed: Callable[..., Any], base: str) -> None:
    result = printed(base=base, keys={})
    assert result.exit_code == 2 and "job shell` opens a pod" in " ".join(result.output.split())


def test_whose_key_is_on_this_machine(printed: Callable[..., Any], home: Path) -> None:
    public(home, "work", BOB, private=False)  # an agent has the private one
    (home / ".ssh" / "odd name.pub").write_text(f"{ALICE}\n")
    (home / ".ssh" / "binary.pub").write_bytes(b"\xff\xfe")
    (home / ".ssh" / "folder.pub").mkdir()
    assert "IdentityFile ~/.ssh/work.pub" in printed().stdout
    public(home, "id_ed25519", ALICE)
    several = printed()
    assert several.exit_code == 2 and "several users have" in several.output
    assert "--as alice or --as bob" in " ".join(several.output.split())
    assert "User bob" in printed("--as", "bob").stdout

    (home / ".ssh" / "work.pub").unlink()
    unknown = printed("--as", "bob")
    assert "IdentityFile" not in unknown.stdout and "no key of bob is below ~/.ssh" in unknown.stderr


def test_people_of_a_directory_have_keys_that_nobody_knows_here(home: Path) -> None:
    data = YAML(typ="safe").load(ENVIRONMENTS / "dev.yaml") | {"users": {}}
    directory = {
        "uris": ["ldaps://ad.example.com"], "base": "dc=example,dc=com", "servers": ["10.9.0.0/24"],
    }  # fmt: skip
    config = Environment.model_validate(data | {"name": "dev"})
    config = config.model_copy(update={"directory": Directory.model_construct(**directory)})
    assert ssh_config.login(config, "Ann.Lee@corp", home) == Login("Ann.Lee@corp")
    for wrong in ("", "ann lee", "%h", "-oProxyCommand=x", "a\nHost *"):
        with pytest.raises(NoKeyError):
            ssh_config.login(config, wrong, home)
    with pytest.raises(NoKeyError, match="has no keys"):
        ssh_config.login(config.model_copy(update={"directory": None}), "ann", home)


def test_an_instance_of_the_account_and_a_profile(home: Path) -> None:
    entry = Host(("prod",), Node("i-0123", "login", "running", dns="ip-10-0-0-9.ec2.internal"))
    text = ssh_config.ssh_config([entry], Login("alice"), region="us-east-1", profile="50% lab")
    read = read_by_openssh(text, "prod", home)
    assert read["proxycommand"] == (
        "aws ssm start-session --region us-east-1 --document-name AWS-StartSSHSession --target i-0123 "
        "--profile '50%% lab' --parameters portNumber=%p"
    )


def test_a_job_has_an_entry_for_each_node() -> None:
    nodes = [Node("i-1", "gpu", "Running"), Node("i-2", "gpu", "Running")]
    assert [one.names for one in ssh_config.job_hosts("dev", "42_7", nodes)] == [
        ("dev-job-42_7",),
        ("dev-job-42_7-2",),
    ]


def test_the_nodes_of_a_job_are_those_that_slurm_says(
    printed: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ultracluster.account.sessions import Session
    from ultracluster.jobs.queue import slurm_queue

    public(home, "id_ed25519", ALICE)
    session = Session("i-1", "doc", "us-west-2", "")
    monkeypatch.setattr(command, "person_session", lambda *_: (session, "ultracluster", "login"))
    monkeypatch.setattr(command, "missing_programs", lambda: "")
    said = ["10.1.0.17", "ip-10-1-0-16"]
    monkeypatch.setattr(slurm_queue.SlurmQueue, "addresses", lambda *_: said)

    text = printed("--job", "42").stdout
    first, second = (read_by_openssh(text, name, home) for name in ("dev-job-42", "dev-job-42-2"))
    assert first["hostname"].endswith("11") and second["hostname"].endswith("10")
    for addresses, why in (([], "runs on no node"), (["10.9.9.9"], "AWS does not list: 10.9.9.9")):
        said[:] = addresses
        result = printed("--job", "42")
        assert result.exit_code == 2 and why in " ".join(result.output.split())


class Way:
    """The stand-in, an sshd behind it, and what is known of it."""

    def __init__(self, folder: Path) -> None:
        need("ssh", "ssh-keygen", "sshd")
        self.folder, self.user = folder, pwd.getpwuid(os.getuid()).pw_name
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        for name in ("host", "alice", "bob"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(words, check=True)
        (folder / "keys").write_text((folder / "alice.pub").read_text())
        (folder / "sshd_config").write_text(
            f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/keys\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
        )
        self.known = {
            "--region": "us-west-2", "--document-name": "AWS-StartSSHSession", "--target": TARGET,
            "--parameters": "portNumber=22",
        }  # fmt: skip
        tools = folder / "bin"
        tools.mkdir()
        code = STAND_IN.format(folder=str(folder), sshd=shutil.which("sshd"))
        (folder / "aws.py").write_text(code)
        (tools / "aws").write_text(f'#!/bin/sh\nexec {sys.executable} {folder}/aws.py "$@"\n')
        (tools / "aws").chmod(0o755)

    def ssh(self, key: str = "alice", **changes: str) -> subprocess.CompletedProcess[str]:
        """Run a command there; `changes` are of what Session Manager knows."""
        known = self.known | {f"--{name.replace('_', '-')}": value for name, value in changes.items()}
        (self.folder / "known.json").write_text(json.dumps(known))
        entry = Host(("dev-gpu",), Node("i-00000000000000010", "gpu", "Running"))
        text = ssh_config.ssh_config(
            [entry], Login(self.user, str(self.folder / key)), region="us-west-2", cluster_id="abcdefghijkl"
        )
        (self.folder / "config").write_text(f"UserKnownHostsFile {self.folder}/known_hosts\n{text}")
        words = ["ssh", "-F", str(self.folder / "config"), "-o", "BatchMode=yes", "dev-gpu", "echo arrived"]
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            words, capture_output=True, text=True, timeout=60, env=os.environ | {"PATH": path}, check=False
        )


def test_openssh_opens_a_session_through_the_stand_in(tmp_path: Path) -> None:
    way = Way(tmp_path)
    done = way.ssh()
    assert done.returncode == 0 and done.stdout == "arrived\n", done.stderr
    assert (tmp_path / "known_hosts").read_text().startswith("i-00000000000000010 ")
    asked = json.loads((tmp_path / "asked").read_text().splitlines()[0])
    assert asked[:2] == ["ssm", "start-session"] and asked[-1] == "portNumber=22"

    other = way.ssh("bob")
    assert other.returncode == 255 and "Permission denied (publickey)" in other.stderr
    for name, value in {
        "target": "i-1",
        "region": "eu-west-1",
        "document_name": "Own",
        "parameters": "22",
    }.items():
        refused = way.ssh(**{name: value})
        assert refused.returncode == 255 and "AccessDeniedException" in refused.stderr


def test_another_machine_in_its_place_is_refused(tmp_path: Path) -> None:
    """The first key of an instance is taken, a second one is not."""
    way = Way(tmp_path)
    assert way.ssh().returncode == 0
    (tmp_path / "host").unlink()
    shutil.copy(tmp_path / "bob", tmp_path / "host")
    assert "HOST IDENTIFICATION HAS CHANGED" in way.ssh().stderr

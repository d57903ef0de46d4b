"""Who reaches the instance metadata of a node, tried in network namespaces: a node, a service at its address,
and a container behind a bridge. The rules are those of the step, taken by a real kernel through nftables, and
through iptables where a node has no more."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from needs import need
from other_users import folder_for_all
from project import ROOT

SCRIPTS = ROOT / "lifecycle_scripts"
TOOL = SCRIPTS / "files" / "metadata_access.sh"
IPV4, IPV6, AGENTS = "169.254.169.254", "[fd00:ec2::254]", "169.254.170.2"
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
"""One that users may run."""
USER, SERVICE, FURTHER = 1000, 998, 997
REFUSED = 7
"""Of curl."""
COMMANDS = """awk bash cat chmod cp curl cut date dirname env flock grep head id install mkdir mv python3 rm
sed setpriv sh sha256sum sleep sort tail tee timeout tr unshare"""
SERVER = """
import http.server, socket
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
class Metadata(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"role")
    def log_message(self, *words): pass
server = Server(("::", 80), Metadata)
print("ready", flush=True)
server.serve_forever()
"""
SYSTEMCTL = """#!/bin/sh
[ "$1" != is-enabled ] || { [ -e "$STATE/enabled" ]; exit; }
[ "$1" != enable ] || : >"$STATE/enabled"
[ "$1" != disable ] || rm "$STATE/enabled"
"""
MPTCP = f"""
import socket
try:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as client:
        client.settimeout(120)
        raise SystemExit(client.connect_ex(({IPV4!r}, 80)))
except OSError:  # a kernel without it
    raise SystemExit(111)
"""


class Node:
    """A network namespace as a node, one as AWS and one as a container; commands see one firewall tool."""

    def __init__(self, folder: Path, firewall: tuple[str, ...]) -> None:
        self.root, self.state, self.bin = folder / "root", folder / "state", folder / "bin"
        for path in (self.root / "run", self.state, self.bin):
            path.mkdir(parents=True)
        for name in (*COMMANDS.split(), *firewall):
            found = PYTHON if name == "python3" else shutil.which(name)
            assert found, name
            # iptables looks at the name by which it is called
            (self.bin / name).symlink_to(os.path.realpath(found) if name == "python3" else found)
        (self.bin / "systemctl").write_text(SYSTEMCTL)
        users = {"cwagent": SERVICE, "collector": FURTHER, "ubuntu": USER}
        lines = "".join(f"{name}) echo {name}:x:{uid}:{uid}::/:/bin/sh ;;\n" for name, uid in users.items())
        each = f"for name; do\ncase $name in\n{lines}*) status=2 ;;\nesac\ndone\n"
        (self.bin / "getent").write_text(f"#!/bin/sh\nshift\n{each}exit ${{status:-0}}\n")
        for name in ("systemctl", "getent"):
            (self.bin / name).chmod(0o755)
        self.processes: list[subprocess.Popen[str]] = []
        self.node, self.aws, self.container = self._space(), self._space(), self._space()
        self._wire()
        server = subprocess.Popen(
            ["nsenter", f"--net=/proc/{self.aws}/ns/net", sys.executable, "-c", SERVER],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes.append(server)
        assert server.stdout and server.stdout.readline() == "ready\n"

    def _space(self) -> int:
        process = subprocess.Popen(["unshare", "--net", "sleep", "600"], text=True)
        self.processes.append(process)
        ours = Path("/proc/self/ns/net").readlink()
        while Path(f"/proc/{process.pid}/ns/net").readlink() == ours:
            time.sleep(0.005)
        return process.pid

    def _wire(self) -> None:
        def ip(space: int, *lines: str) -> None:
            for line in lines:
                subprocess.run(["nsenter", f"--net=/proc/{space}/ns/net", "ip", *line.split()], check=True)

        ip(self.node, "link set lo up", f"link add aws0 type veth peer name eth0 netns {self.aws}")
        ip(self.node, f"link add docker0 type veth peer name eth0 netns {self.container}")
        ip(self.node, "addr add 10.0.0.1/30 dev aws0", "addr add 10.0.1.1/30 dev docker0")
        ip(self.node, "addr add fd00:ec2::1/64 dev aws0 nodad", "link set aws0 up", "link set docker0 up")
        ip(self.aws, "addr add 10.0.0.2/30 dev eth0", f"addr add {IPV4}/32 dev eth0")
        ip(self.aws, f"addr add {AGENTS}/32 dev eth0", "addr add fd00:ec2::254/64 dev eth0 nodad")
        ip(self.aws, "link set eth0 up", "route add 10.0.1.0/30 via 10.0.0.1")
        ip(self.node, f"route add {IPV4}/32 dev aws0", f"route add {AGENTS}/32 dev aws0")
        ip(
            self.container,
            "addr add 10.0.1.2/30 dev eth0",
            "link set eth0 up",
            "route add default via 10.0.1.1",
        )
        forward = "echo 1 >/proc/sys/net/ipv4/ip_forward"
        subprocess.run(["nsenter", f"--net=/proc/{self.node}/ns/net", "sh", "-c", forward], check=True)

    def run(self, *command: str, space: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        here = {"PATH": str(self.bin), "ULTRACLUSTER_ROOT": str(self.root), "STATE": str(self.state)}
        return subprocess.run(
            [shutil.which("nsenter") or "", f"--net=/proc/{space or self.node}/ns/net", *command],
            env=here | environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def asks(self, uid: int, host: str = IPV4, *before: str, space: int = 0) -> int:
        """How curl ends where a user asks for metadata; `before` is what starts it."""
        who = ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--")
        curl = ("curl", "--silent", "--noproxy", "*", "--max-time", "120", f"http://{host}/")
        return self.run(*(who if uid else ()), *before, *curl, space=space).returncode

    def tool(self, verb: str) -> subprocess.CompletedProcess[str]:
        return self.run("bash", str(TOOL), verb)

    def step(self, verb: str, **facts: str) -> tuple[int, str]:
        """One verb of the step, and what it told."""
        told = self.state / "told"
        facts = {"CLUSTER_METADATA": "services", "CLUSTER_METADATA_USERS": "collector"} | facts
        line = f'bash "{SCRIPTS}/lib/run_verb.sh" metadata {verb} 3>"{told}"'
        done = self.run("sh", "-c", line, ULTRACLUSTER_HOME=str(SCRIPTS), **facts)  # pyright: ignore[reportArgumentType]
        return done.returncode, told.read_text() + done.stdout + done.stderr

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


@pytest.fixture(params=[("nft",), ("iptables", "ip6tables")], ids=["nftables", "iptables"])
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    need("ip", "unshare", "nsenter", "setpriv", "curl", *request.param, root=True)
    with folder_for_all() as folder:
        made = Node(folder, request.param)
        try:
            yield made
        finally:
            made.end()


def test_metadata_are_for_services_only(node: Node) -> None:
    everybody = {uid: node.asks(uid) for uid in (0, USER, SERVICE)}
    assert set(everybody.values()) == {0}, everybody
    assert node.step("detect")[0] == 10  # absent
    status, said = node.step("install")
    assert status == 0, said
    for host in (IPV4, IPV6, AGENTS):
        assert node.asks(0, host) == 0, host
        assert node.asks(SERVICE, host) == 0, host
        assert node.asks(FURTHER, host) == 0, host
        assert node.asks(USER, host) == REFUSED, host
    # a user namespace, as enroot and rootless containers have: root there is the user here
    assert node.asks(USER, IPV4, "unshare", "--user", "--map-root-user") == REFUSED
    assert node.asks(USER, IPV4, "unshare", "--user", "--map-root-user", "unshare", "--user") == REFUSED
    # a socket whose connection the kernel opens by itself
    mptcp = node.run("setpriv", f"--reuid={USER}", "--clear-groups", "--", "python3", "-c", MPTCP)
    assert mptcp.returncode == 111, mptcp.stderr
    # root of a container behind a bridge
    assert node.asks(0, space=node.container) == REFUSED
    status, said = node.step("look")
    assert status == 0 and f"passing: 0 {FURTHER} {SERVICE}" in said, said


def test_a_second_run_changes_nothing_and_a_change_is_taken_up(node: Node) -> None:
    assert node.step("install")[0] == 0
    before = node.tool("status").stdout
    rules = ("nft", "list", "ruleset") if (node.bin / "nft").exists() else ("iptables", "-S")
    listed = node.run(*rules).stdout
    assert node.tool("up").returncode == 0
    assert node.run(*rules).stdout == listed
    # the further service goes: so does its way
    status, said = node.step("detect", CLUSTER_METADATA_USERS="")
    assert status == 10, said
    assert node.step("install", CLUSTER_METADATA_USERS="")[0] == 0
    assert node.asks(FURTHER) == REFUSED and node.asks(SERVICE) == 0
    assert node.tool("status").stdout != before
    assert len(node.run(*rules).stdout) < len(listed)


def test_what_others_flush_is_seen_and_repaired(node: Node) -> None:
    assert node.step("install")[0] == 0
    if (node.bin / "nft").exists():
        node.run("nft", "flush", "ruleset")
    else:
        node.run("iptables", "-F", "OUTPUT")
    assert node.asks(USER) == 0
    status, said = node.step("look")
    assert status == 10 and "not in force" in said
    assert node.step("install")[0] == 0
    assert node.asks(USER) == REFUSED and node.asks(0) == 0


def test_taken_away_everybody_reaches_them_again(node: Node) -> None:
    assert node.step("install")[0] == 0
    assert node.step("detect", CLUSTER_METADATA="everyone")[0] == 10
    status, said = node.step("install", CLUSTER_METADATA="everyone")
    assert status == 0, said
    assert [node.asks(uid) for uid in (0, USER)] == [0, 0]
    assert node.asks(0, space=node.container) == 0
    assert node.tool("down").returncode == 0
    assert node.step("detect", CLUSTER_METADATA="everyone")[0] == 20  # not applicable
    assert not list((node.root / "etc").rglob("*metadata*"))


def test_verify_tries_it(node: Node) -> None:
    """Rules that are in force and let users through are told."""
    assert node.step("install")[0] == 0
    assert node.tool("probe").returncode == 0
    if (node.bin / "nft").exists():
        words = node.run("nft", "list", "ruleset").stdout.split()
        chain = next(word for word in words if word.startswith("services_"))
        node.run("nft", "insert", "rule", "inet", "ultracluster_metadata", chain, "accept")
    else:
        words = node.run("iptables", "-S").stdout.split()
        chain = next(word for word in words if word.startswith("ULTRACLUSTER_"))
        node.run("iptables", "-I", chain, "1", "-j", "RETURN")
    status, said = node.step("look")
    assert status == 1 and "a user without rights is not refused" in said, said


def test_parallelclusters_own_rules_stay(node: Node) -> None:
    """Its chain (imds-access.sh of its cookbook) refuses whom ours lets pass; its tables may be restored."""
    need("iptables", "iptables-save", "iptables-restore", root=True)
    tools = {name: shutil.which(name) or "" for name in ("iptables", "iptables-save", "iptables-restore")}
    node.run(tools["iptables"], "--new", "PARALLELCLUSTER_IMDS")
    node.run(tools["iptables"], "-A", "OUTPUT", "--destination", IPV4, "-j", "PARALLELCLUSTER_IMDS")
    accept = ["-j", "ACCEPT", "-m", "owner", "--uid-owner", "0"]
    node.run(tools["iptables"], "-A", "PARALLELCLUSTER_IMDS", "--destination", IPV4, *accept)
    node.run(tools["iptables"], "-A", "PARALLELCLUSTER_IMDS", "--destination", IPV4, "-j", "REJECT")
    saved = node.run(tools["iptables-save"]).stdout
    assert "PARALLELCLUSTER_IMDS" in saved
    assert node.step("install")[0] == 0
    assert (node.asks(0), node.asks(SERVICE), node.asks(USER)) == (0, REFUSED, REFUSED)
    (node.state / "rules").write_text(saved)
    node.run("sh", "-c", f'{tools["iptables-restore"]} <"$STATE/rules"')
    if (node.bin / "nft").exists():
        assert node.tool("status").returncode == 0
    else:  # which is why the unit comes after ParallelCluster's
        assert node.tool("up").returncode == 0
    assert (node.asks(0), node.asks(USER)) == (0, REFUSED)


def test_without_a_tool_the_node_is_told_to_lack_it(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", str(TOOL), "up"],
        env={"PATH": str(_only(tmp_path)), "ULTRACLUSTER_ROOT": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stderr == "this image has neither nft nor iptables\n"


def _only(folder: Path) -> Path:
    for name in ("bash", "cut", "getent", "sed", "sha256sum", "sort"):
        (folder / name).symlink_to(shutil.which(name) or "")
    return folder


def test_the_unit_comes_before_users_and_slurm() -> None:
    unit = (SCRIPTS / "files" / "metadata_access.service").read_text()
    settings = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line)
    before, after = set(settings["Before"].split()), set(settings["After"].split())
    assert {"systemd-user-sessions.service", "slurmd.service", "docker.service"} <= before
    assert {"nftables.service", "parallelcluster-iptables.service"} <= after
    assert not before & after

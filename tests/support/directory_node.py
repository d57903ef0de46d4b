"""A node in a Debian root with namespaces of its own, a real slapd with TLS in it, and the scripts' frame."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ADDRESS, HOST, SERVER = "10.9.9.9", "gpu-1", "ldap.example.com"
BASE, READER, SECRET = "dc=example,dc=com", "cn=reader,dc=example,dc=com", "re#ader; 'pass' %1"
ARN = "arn:aws:secretsmanager:eu-north-1:111122223333:secret:reader-AbCdEf"
_LEADER = """
mount --make-rprivate / && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" &&
mount -t tmpfs run "$0/run" && mount -t tmpfs home "$0/home" && hostname gpu-1 && mkdir -p "$0/run/sshd" &&
ip link set lo up && ip address add 10.9.9.9/32 dev lo && touch "$0/run/up" &&
exec chroot "$0" bash -c "sleep infinity & wait"  # which also takes in daemons that end
"""
_SYSTEMCTL = """#!/bin/sh
for last; do :; done
echo "$*" >>/run/systemctl
runs() { [ -e /run/sssd.pid ] && kill -0 "$(cat /run/sssd.pid)" 2>/dev/null; }
end() { ! runs || { kill "$(cat /run/sssd.pid)"; while runs; do sleep 0.1; done; }; }
case $1:$last in
  is-active:sssd.service) runs ;;
  stop:sssd.service) end ;;
  restart:sssd.service) end; rm -f /run/sssd.pid; sssd -D ;;
  enable:*) shift; mkdir -p /run/enabled; for unit; do touch "/run/enabled/$unit"; done ;;
  disable:*) shift; for unit; do rm -f "/run/enabled/$unit"; done ;;
  is-enabled:*) [ -e "/run/enabled/$last" ] ;;
esac
"""
_IP = f"""#!/bin/sh
case $* in *address*) echo '1: lo inet {ADDRESS}/32 scope global lo' ;; *) exit 1 ;; esac
"""
_AWS = """#!/bin/sh
echo "$*" >>/run/aws
[ -e /etc/secret.json ] || { echo "An error occurred (AccessDeniedException): not authorized" >&2; exit 254; }
cat /etc/secret.json
"""
_TEXT, _BYTES, _NUMBER = (f"1.3.6.1.4.1.1466.115.121.1.{number}" for number in (15, 40, 27))
_SLAPD = f"""include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
attributetype ( 1.1.2.1 NAME 'sAMAccountName' EQUALITY caseIgnoreMatch SYNTAX {_TEXT} SINGLE-VALUE )
attributetype ( 1.1.2.2 NAME 'objectSid' EQUALITY octetStringMatch SYNTAX {_BYTES} SINGLE-VALUE )
attributetype ( 1.1.2.3 NAME 'userAccountControl' EQUALITY integerMatch SYNTAX {_NUMBER} SINGLE-VALUE )
attributetype ( 1.1.2.4 NAME 'primaryGroupID' EQUALITY integerMatch SYNTAX {_NUMBER} SINGLE-VALUE )
attributetype ( 1.1.2.5 NAME 'groupType' EQUALITY integerMatch SYNTAX {_NUMBER} SINGLE-VALUE )
objectclass ( 1.1.2.6 NAME 'user' SUP organizationalPerson STRUCTURAL
  MAY ( sAMAccountName $ objectSid $ userAccountControl $ primaryGroupID ) )
objectclass ( 1.1.2.7 NAME 'group' SUP top STRUCTURAL MUST cn
  MAY ( sAMAccountName $ objectSid $ groupType $ member ) )
pidfile /run/slapd.pid
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCACertificateFile /pki/ca.pem
TLSCertificateFile /pki/server.pem
TLSCertificateKeyFile /pki/server.key
security ssf=128
require bind
database mdb
directory /srv/ldap
suffix "{BASE}"
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{READER}" read by * none
"""
_RESOURCES = {
    "ClusterType": "Slurm",
    "SlurmConfig": {"PrimaryControllerIp": "10.9.9.1"},
    "InstanceGroups": [
        {
            "Name": "gpu",
            "InstanceType": "ml.p5.48xlarge",
            "Instances": [{"InstanceName": "gpu-1", "InstanceId": "i-0c", "CustomerIpAddress": ADDRESS}],
        }
    ],
}


def settings(**changes: Any) -> dict[str, Any]:
    """`directory` of cluster.json, of an LDAP server."""
    return {
        "kind": "ldap",
        "uris": [f"ldaps://{SERVER}"],
        "start_tls": False,
        "ca": "",
        "search_base": BASE,
        "bind_dn": READER,
        "secret": ARN,
        "ids": "posix",
        "id_range": [5000, 60000],
        "schema": "rfc2307",
        "access_filter": "(employeeType=hpc)",
        "home": "/home/%u",
        "shell": "/bin/bash",
    } | changes


class DirectoryNode:
    """Ends with `end`, and everything in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._directory: Mapping[str, Any] | None = None
        self._prepare()
        self._leader = subprocess.Popen(
            [
                "unshare",
                "--mount",
                "--net",
                "--uts",
                "--pid",
                "--fork",
                "--kill-child",
                "sh",
                "-c",
                _LEADER,
                root,
            ],
        )
        self.until(lambda: self._inside() is not None, "the namespaces")

    def end(self) -> None:
        self._leader.send_signal(signal.SIGKILL)
        self._leader.wait()

    # --- what runs in it ---

    def run(
        self, *command: str, text: str | None = None, seconds: int = 600, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """A command in the node; both outputs together."""
        inside = self._inside()
        assert inside
        return subprocess.run(
            ["nsenter", "--target", inside, "--mount", "--net", "--uts", "--pid", "--root", "--wd", *command],
            env={"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"} | variables,
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )

    def ssh(
        self, user: str, password: str, command: str = "id", *more: str
    ) -> subprocess.CompletedProcess[str]:
        """A login with a password, at the node's own sshd."""
        ask = self.root / "usr/local/bin/ask"
        ask.write_text('#!/bin/sh\nprintf "%s\\n" "$WORD"\n')
        ask.chmod(0o755)
        options = [
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "LogLevel=ERROR",
        ]
        return self.run(
            "ssh", *options, *more, "-o", "NumberOfPasswordPrompts=1", f"{user}@{ADDRESS}", command,
            SSH_ASKPASS="/usr/local/bin/ask", SSH_ASKPASS_REQUIRE="force", WORD=password, DISPLAY="none",
        )  # fmt: skip

    def step(self, name: str, directory: Mapping[str, Any] | None = None, **cluster: Any) -> dict[str, Any]:
        """Runs one step in the scripts' own frame; its line of the report, with the run's last line."""
        if directory is not None:
            cluster["directory"] = directory
        self.write("scripts/cluster.json", json.dumps(_CLUSTER | cluster))
        code = f"set -euo pipefail; source /scripts/lib/entry.sh; entry::main {name}"
        run = self.run(
            "bash",
            "-c",
            code,
            ULTRACLUSTER_LINGER="0",
            ULTRACLUSTER_CONSOLE="all",
            ULTRACLUSTER_SPREAD="0",
            ULTRACLUSTER_RETRY_PAUSE="0.1",
        )
        assert run.returncode == 0, run.stdout
        lines = (self.root / "var/log/ultracluster/report.jsonl").read_text().splitlines()
        (last,) = [json.loads(line) for line in lines if f'"step": "{name}"' in line][-1:]
        if name == "directory":
            self._directory = directory if last["state"] in ("installed", "already") else None
        return last | {"end": run.stdout.splitlines()[-1], "said": run.stdout}

    def has(self, directory: Mapping[str, Any]) -> None:
        """The node has people of this directory; nothing is done where the last step has left it so."""
        if self._directory != directory:
            self.step("directory", directory)

    def forget(self) -> None:
        """sssd is as on a new node."""
        self._directory = None
        self.run("sh", "-c", "systemctl stop sssd.service; rm -f /var/lib/sss/db/* /var/lib/sss/mc/*")

    def secret(self, value: str | None) -> None:
        """What Secrets Manager has; None: the node may not read it."""
        if value is None:
            (self.root / "etc/secret.json").unlink()
        else:
            self.write("etc/secret.json", json.dumps({"SecretString": value}))

    def load(self, entries: str) -> None:
        """LDIF into the directory; slapd must not run."""
        done = self.run("slapadd", "-q", "-f", "/etc/slapd-test.conf", text=entries)
        assert done.returncode == 0, done.stdout

    def serve(self, urls: str = f"ldaps://{SERVER} ldap://{SERVER}") -> None:
        done = self.run("slapd", "-f", "/etc/slapd-test.conf", "-h", urls)
        assert done.returncode == 0, done.stdout

    def stop_serving(self) -> None:
        done = self.run(
            "sh", "-c", 'pid=$(cat /run/slapd.pid); kill "$pid"; while kill -0 "$pid"; do sleep 0.1; done'
        )
        assert "No such process" in done.stdout

    def delete(self, name: str) -> None:
        """A user goes from the directory; slapd is down for the moment."""
        self.stop_serving()
        left = self.run("slapcat", "-f", "/etc/slapd-test.conf").stdout
        entries = [one for one in left.split("\n\n") if not one.startswith(f"dn: {name},")]
        self.run("sh", "-c", "rm -f /srv/ldap/*")
        self.load("\n\n".join(entries))
        self.serve()

    @staticmethod
    def until(condition: Callable[[], bool], what: str, seconds: float = 300) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"waited {seconds} s for {what}"
            time.sleep(0.1)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    # --- made once ---

    def _inside(self) -> str | None:
        """The process that is the first in the namespaces, once it is up."""
        children = Path(f"/proc/{self._leader.pid}/task/{self._leader.pid}/children").read_text().split()
        return children[0] if children and Path(f"/proc/{children[0]}/root/run/up").exists() else None

    def _prepare(self) -> None:
        self.write("usr/local/bin/systemctl", _SYSTEMCTL, 0o755)
        self.write("usr/local/bin/aws", _AWS, 0o755)
        # the root has no iproute2, whose libcap2-bin the tests of packages install
        self.write("usr/local/bin/ip", _IP, 0o755)
        self.write("etc/hosts", f"127.0.0.1 localhost\n{ADDRESS} {HOST} {SERVER}\n")
        self.write("etc/slapd-test.conf", _SLAPD)
        self.write("opt/ml/config/resource_config.json", json.dumps(_RESOURCES))
        (self.root / "srv/ldap").mkdir(parents=True)
        self._certificates()

    def _certificates(self) -> None:
        pki = self.root / "pki"
        pki.mkdir()
        new = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
        script = f"""cd /pki
{new} -keyout ca.key -out ca.pem -subj '/CN=Test directory CA' -addext keyUsage=critical,keyCertSign
{new} -keyout other.key -out other.pem -subj '/CN=Another CA' -addext keyUsage=critical,keyCertSign
{new} -keyout server.key -out server.pem -subj /CN={SERVER} \\
  -addext subjectAltName=DNS:{SERVER} -CA ca.pem -CAkey ca.key -addext basicConstraints=critical,CA:FALSE
chmod a+r server.key"""
        done = subprocess.run(
            ["chroot", self.root, "sh", "-ec", script], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        self.ca = (pki / "ca.pem").read_text()
        self.other_ca = (pki / "other.pem").read_text()


_CLUSTER: dict[str, Any] = {
    "schema": 1,
    "environment": "dev",
    "cluster": "dev",
    "orchestrator": "hyperpod-slurm",
    "release": None,
    "node_groups": {"gpu": {"role": "compute", "instance_type": "p5.48xlarge", "accelerator": "none"}},
    "mounts": {"openzfs": {"path": "/home", "dns_name": "fs.example.com", "volume_path": "/fsx"}},
}

__all__ = ["ADDRESS", "ARN", "BASE", "READER", "SECRET", "SERVER", "DirectoryNode", "settings"]

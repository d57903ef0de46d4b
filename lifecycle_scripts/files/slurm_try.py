#!/usr/bin/python3 -ISB
"""Does slurmctld start with a configuration? One in a network, mounts and processes of its own says so.

Usage: slurm_try.py FOLDER USER       a copy of the folder of slurm.conf, which is changed; SlurmUser

It reaches no node, no database and no job, and ends with this program. Ends with 0 where it started, 1 where
it did not, and prints the reason.
"""

import contextlib
import os
import pwd
import re
import subprocess
import sys
import time
from pathlib import Path

SECONDS = 25
ELSEWHERE = "10.254.254.254"
# The database is out of reach, and slurmctld would wait for it.
DATABASE = re.compile(r"\s*(accountingstorage(type|tres)|jobcomp\w*)\s*=", re.IGNORECASE)
OWN = {"StateSaveLocation": "state", "SlurmctldPidFile": "pid", "SlurmctldLogFile": "log"}
APART = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child")


def run(*command, seconds=30, **options):
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=False, **options
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))


def prepare(folder, user):
    """The copy keeps its state and files to itself."""
    (folder / "state").mkdir()
    for file in folder.glob("*.conf"):
        names = [name.lower() for name in OWN]
        lines = [
            line
            for line in file.read_text().splitlines()
            if not DATABASE.match(line) and line.partition("=")[0].strip().lower() not in names
        ]
        if file.name == "slurm.conf":
            lines[:0] = [f"{name}={folder / path}" for name, path in OWN.items()]
        file.write_text("".join(f"{line}\n" for line in lines))
    text = (folder / "slurm.conf").read_text()
    found = re.findall(
        r"^\s*SlurmctldHost\s*=\s*([^\s(#]+)(?:\(([^)]+)\))?", text, re.IGNORECASE | re.MULTILINE
    )
    hosts = {host: address or looked_up(host) for host, address in found}
    (folder / "hosts").write_text(
        "127.0.0.1 localhost\n"
        + "".join(f"{address} {host}\n" for host, address in hosts.items())
        + "".join(f"{ELSEWHERE} {name}\n" for name in node_names(folder) if name not in hosts)
    )
    with contextlib.suppress(KeyError):
        who = pwd.getpwnam(user)
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, who.pw_uid, who.pw_gid)
    return hosts


def node_names(folder):
    """Names of all nodes: slurmctld waits ten seconds for each that cannot be looked up."""
    texts = [file.read_text() for file in folder.glob("*.conf")]
    found = {
        name
        for text in texts
        for name in re.findall(
            r"^\s*Node(?:Name|Addr|Hostname)\s*=\s*(\S+)", text, re.IGNORECASE | re.MULTILINE
        )
    }
    found |= {
        name for text in texts for name in re.findall(r"\sNode(?:Addr|Hostname)=(\S+)", text, re.IGNORECASE)
    }
    lists = sorted(
        name for name in found if name.upper() != "DEFAULT" and not re.fullmatch(r"[0-9.,\[\]-]+", name)
    )
    return run("scontrol", "show", "hostnames", ",".join(lists)).stdout.split() if lists else []


def looked_up(host):
    """The address of a name, which cannot be looked up apart; any where none is known."""
    return next(iter(run("getent", "ahostsv4", host).stdout.split()), ELSEWHERE)


def start(folder, hosts):
    """Apart: slurmctld, until it answers or ends."""
    (folder / "nsswitch").write_text("passwd: files\ngroup: files\nshadow: files\nhosts: files\n")
    run("mount", "--make-rprivate", "/")
    run("mount", "--bind", folder / "hosts", "/etc/hosts")
    run("mount", "--bind", folder / "nsswitch", "/etc/nsswitch.conf")
    run("ip", "link", "set", "lo", "up")
    # With loopback addresses only, Slurm finds no name.
    if run("ip", "link", "add", "try0", "type", "dummy").returncode:
        run("ip", "link", "add", "try0", "type", "veth", "peer", "name", "try1")
    for address in {*hosts.values(), ELSEWHERE}:
        run("ip", "address", "add", f"{address}/32", "dev", "try0")
    run("ip", "link", "set", "try0", "up")
    conf = str(folder / "slurm.conf")
    variables = {**os.environ, "SLURM_CONF": conf}
    with (folder / "out").open("wb") as out:
        command = ("slurmctld", "-D", "-f", conf)
        daemon = subprocess.Popen(command, stdout=out, stderr=out, env=variables)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and daemon.poll() is None:
            if " UP" in run("scontrol", "ping", seconds=5, env=variables).stdout:
                return 0
            time.sleep(0.2)
    return 1


def reason(said):
    """The line that says why slurmctld ended."""
    cut = re.compile(r"^\[[^]]*\]\s*|^slurmctld:\s*")
    lines = [cut.sub("", line).strip() for line in said.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith("fatal") and "Unable to process" not in line]
    harmless = ("more than once", "MailProg", "failed in file", "please ignore")
    errors = [
        line for line in lines if line.startswith("error") and not any(word in line for word in harmless)
    ]
    return (fatal or errors or lines[-1:] or ["slurmctld did not answer"])[0]


def main():
    if sys.argv[1] == "--apart":
        return start(Path(sys.argv[2]), dict(pair.split("=") for pair in sys.argv[3:]))
    folder, user = Path(sys.argv[1]), sys.argv[2]
    hosts = prepare(folder, user)
    pairs = [f"{host}={address}" for host, address in hosts.items()]
    done = run(*APART, sys.executable, "-ISB", __file__, "--apart", folder, *pairs, seconds=SECONDS + 30)
    if done.returncode == 0:
        return 0
    out = folder / "out"
    print(reason(out.read_text(errors="replace") if out.exists() else done.stderr))
    return 1


if __name__ == "__main__":
    sys.exit(main())

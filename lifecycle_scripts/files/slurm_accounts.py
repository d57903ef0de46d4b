#!/usr/bin/python3 -IS
"""Brings Slurm's accounting to a document of teams: accounts, their users, shares, limits and QOS.

    slurm_accounts.py [--dry-run] teams.json

It reads what accounting has, prints each difference, and without --dry-run makes it; a second run finds none.
What it did not make stays as it is: an account is ours by its description (`team NAME`), a QOS by its own
(`ultracluster priority NAME`). Slurm's own QOS `normal` gets a priority, and what it preempts, nothing else.
Accounts of teams that are gone are closed; they are deleted only where the document says `remove`.

Status 0: accounting is as the document says (dry run: it could be read). 1: something is missing, and the
last line says what; a later run tries again. 2: the document cannot be read.

Runs as an administrator of accounting (root where slurmdbd trusts it), with Python 3.9 and newer.
"""

import argparse
import json
import os
import pwd
import re
import subprocess
import sys
from pathlib import Path

# Slurm of ParallelCluster and HyperPod, and of AWS PCS, which no service has on its PATH
PLACES = ["/opt/slurm/bin", *sorted(map(str, Path("/opt/aws/pcs/scheduler").glob("slurm-*/bin")))]
os.environ["PATH"] = ":".join([os.environ.get("PATH", "/usr/bin:/bin"), *PLACES])
HERE = Path("/opt/ultracluster/teams")
# first where this lies, for a copy that is tried elsewhere
sys.path[:0] = [str(Path(__file__).resolve().parent), str(HERE)]

from slurm_accounts_difference import difference  # noqa: E402

DOCUMENT = 1
FIRST_USER = 1000
"""Unix ids below it are the system's (login.defs, UID_MIN)."""


class AccountingError(Exception):
    """Accounting cannot be read, or the document is none."""


def call(*words):
    """Standard output of a command.

    Raises:
        AccountingError: it failed; what it said.
    """
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AccountingError(f"{words[0]}: {error}") from None
    if done.returncode != 0:
        raise AccountingError(
            " ".join((done.stderr.strip() or done.stdout).split())[:400] or f"{words[0]} failed"
        )
    return done.stdout


def rows(what, names, *where):
    text = call("sacctmgr", "--noheader", "--parsable2", "show", *what, *where, f"format={','.join(names)}")
    found = (line.split("|") for line in text.splitlines())
    return [dict(zip(names, values)) for values in found if len(values) == len(names)]  # noqa: B905


def cluster_name():
    found = re.search(r"^ClusterName\s*=\s*(\S+)", call("scontrol", "show", "config"), re.MULTILINE)
    if not found:
        raise AccountingError("slurmctld does not tell the name of its cluster")
    return found.group(1)


def read(cluster):
    """What accounting has for one cluster."""
    known = [one["cluster"] for one in rows(["cluster"], ["cluster"])]
    if cluster not in known:
        raise AccountingError(
            f"accounting does not know the cluster {cluster} yet (it knows {', '.join(known) or 'none'}): "
            "slurmctld registers it when it starts"
        )
    qos = rows(["qos"], ["name", "description", "priority", "preempt", "preemptmode", "gracetime"])
    for one in qos:
        one["preempt"] = ",".join(sorted(filter(None, one["preempt"].split(","))))
        one["gracetime"] = str(_seconds(one["gracetime"]))
    names = ["account", "user", "partition", "fairshare", "grptres", "qos", "defaultqos", "parentname"]
    associations = {}
    for one in rows(["assoc"], [*names, "grpjobs", "grpsubmit", "maxsubmit"], f"cluster={cluster}"):
        if one["partition"]:
            continue  # made by hand, of a user in one partition
        one["grptres"] = {
            key: int(value)
            for key, _, value in (part.partition("=") for part in one["grptres"].split(","))
            if value.isdigit()
        }
        one["qos"] = ",".join(sorted(filter(None, one["qos"].split(","))))
        associations[one["account"], one["user"]] = one
    users = rows(["user"], ["user", "cluster", "defaultaccount"], "withassoc", f"cluster={cluster}")
    return {
        "cluster": cluster,
        "qos": {one["name"]: one for one in qos},
        "accounts": {
            one["account"]: one for one in rows(["account"], ["account", "description", "organization"])
        },
        "associations": associations,
        "defaults": {one["user"]: one["defaultaccount"] for one in users},
    }


def _seconds(text):
    days, _, clock = text.rpartition("-")
    total = 0
    for part in clock.split(":"):
        total = total * 60 + (int(part) if part.isdigit() else 0)
    return total + 86400 * int(days or 0)


def make(step):
    """Why a step could not be made; None when it was."""
    try:
        call("sacctmgr", "--immediate", *step.command)
    except AccountingError as error:
        said = str(error)
        if "nothing modified" in said.lower() or "nothing new added" in said.lower():
            return None
        if step.command[:2] == ("delete", "user") and "job(s) active" in said.lower():
            return _bar(step, said)
        return f"{step.words}: {said}"
    return None


def _bar(step, said):
    """No further jobs of a user whose jobs still run in the account; the next run finds him there again."""
    try:
        call("sacctmgr", "--immediate", "modify", "user", *step.command[2:], "set", "maxsubmitjobs=0")
    except AccountingError as error:
        return f"{step.words}: {said}; {error}"
    return f"{step.words} when the jobs that run there have ended; no new ones are taken"


def is_system(user):
    try:
        return pwd.getpwnam(user).pw_uid < FIRST_USER
    except KeyError:
        return user in ("root", "slurm", "munge")  # of a directory, or not here yet


def load(path):
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise AccountingError(f"{path}: {error}") from None
    told = document if isinstance(document, dict) else {}
    kinds = {
        "qos": list,
        "accounts": list,
        "users": list,
        "organization": str,
        "default_qos": str,
        "remove": bool,
    }
    wrong = [key for key, kind in kinds.items() if not isinstance(told.get(key), kind)]
    if told.get("schema") != DOCUMENT or told.get("document") != "teams" or wrong:
        raise AccountingError(f"{path} is no document of teams{': ' * bool(wrong)}{', '.join(wrong)}")
    return told


def main(arguments):
    parser = argparse.ArgumentParser(description="Brings Slurm's accounting to a document of teams.")
    parser.add_argument("--dry-run", action="store_true", help="only print what differs")
    parser.add_argument("document", help="teams.json")
    given = parser.parse_args(arguments)
    try:
        document = load(given.document)
    except AccountingError as error:
        print(error)
        return 2
    try:
        found = difference(document, read(cluster_name()), is_system)
    except AccountingError as error:
        if not document["accounts"]:
            print("no teams, and no accounting that had any")
            return 0
        print(f"accounting cannot be read: {error}")
        return 1
    problems, made = list(found.problems), 0
    for step in found.steps:
        print(f"{'would: ' * given.dry_run}{step.words}")
        problem = None if given.dry_run else make(step)
        made += problem is None
        if problem:
            problems.append(problem)
    if given.dry_run:
        print("\n".join([*problems, f"{len(found.steps)} differences"]))
        return 0
    teams = f"{len(document['accounts'])} teams; {made or 'no'} change{'s' * (made != 1)}"
    print(f"{teams}; {'; '.join(problems)}" if problems else teams)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

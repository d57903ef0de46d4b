#!/usr/bin/python3 -IS
"""Hands users of this node credentials of the jobs' role, which reaches the buckets that the environment
names.

systemd listens at the socket and starts this at the first call. The kernel says who calls (SO_PEERCRED): no
secret is needed, and a process in a container is its user's. Nothing is read from callers, so nobody can keep
another waiting; credentials are held in memory, one set for each user and job, and never written or logged.

Runs with the Python of Ubuntu 22.04, 24.04 and Amazon Linux 2023: 3.9 and newer.
"""

import datetime
import json
import os
import pwd
import re
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

CONFIG = "/etc/ultracluster/job-access"
# A role that another role assumes is had for an hour at most (IAM User Guide, role chaining).
LIFETIME_SECONDS = 3600
# SDKs ask again a quarter of an hour before the end: what is handed out lasts longer than that.
LEAST_SECONDS = 1200
# After STS refused or did not answer, nobody waits for it once more.
PAUSE_SECONDS = 10
STS_SECONDS = 20
IDLE_SECONDS = 900
FIRST_USER, NOBODY = 1000, 65534
# The job whose step a process belongs to: cgroup v2 and v1, in slurmd's own part, which is root's.
JOB = re.compile(
    r"^\d+:[^:]*:(?:/system\.slice)?/(?:[^/]*_)?slurm[^/]*/(?:uid_\d+/)?job_(\d+)(?:/|$)", re.MULTILINE
)
FIELDS = ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")


class RefusedError(Exception):
    """What the caller is told."""


def configuration(path):
    """Role and Region, as the step wrote them."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def name_of(uid):
    """The user's name, in the characters that names of sessions have (STS API reference, AssumeRole)."""
    if uid < FIRST_USER or uid == NOBODY:
        raise RefusedError("credentials of the jobs' role are for users; root has the node's own")
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        raise RefusedError(f"this node knows no user with the number {uid}") from None
    name = re.sub(r"[^A-Za-z0-9_=,.@-]", "-", name)[:40]
    return name if len(name) > 1 else f"user-{name}"


def job_of(pid):
    """Id of the job that a process is of, as text; empty where it is of none."""
    try:
        found = JOB.search(Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8"))
    except OSError:
        return ""
    return found[1] if found else ""


class Credentials:
    """Those of all users, as long as they last."""

    def __init__(self, config):
        self._role, self._region = config["ROLE"], config["REGION"]
        self._held = {}
        self._failed = ("", 0.0)

    def of(self, user, job):
        now = time.time()
        self._held = {key: one for key, one in self._held.items() if one[1] - now > LEAST_SECONDS}
        if (user, job) not in self._held:
            reason, until = self._failed
            if now < until:
                raise RefusedError(reason)
            try:
                self._held[user, job] = self._assume(user, f"{user}-{job}" if job else user)
            except RefusedError as error:
                self._failed = (str(error), time.time() + PAUSE_SECONDS)
                print(f"no credentials for {user}: {error}", file=sys.stderr, flush=True)
                raise
        return self._held[user, job][0]

    def _assume(self, user, session):
        """The answer, and when it ends in seconds since 1970."""
        command = ["aws", "sts", "assume-role", "--region", self._region, "--role-arn", self._role]
        command += ["--role-session-name", session, "--source-identity", user]
        command += ["--duration-seconds", str(LIFETIME_SECONDS), "--output", "json"]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=STS_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RefusedError(f"STS was not asked: {type(error).__name__}") from None
        if done.returncode:
            raise RefusedError(" ".join(done.stderr.split()) or f"aws ended with {done.returncode}")
        try:
            got = json.loads(done.stdout)["Credentials"]
            told = {"Version": 1, **{field: got[field] for field in FIELDS}}
            ends = datetime.datetime.fromisoformat(got["Expiration"].replace("Z", "+00:00")).timestamp()
        except (AttributeError, KeyError, TypeError, ValueError):
            # what it is may hold the credentials: it is not told
            raise RefusedError("STS answered in another form than AssumeRole has") from None
        print(f"credentials of {self._role} for {session} until {got['Expiration']}", flush=True)
        return told, ends


def answer(credentials, pid, uid):
    """What the caller reads: the form that SDKs expect of `credential_process`, or the reason why not."""
    try:
        return credentials.of(name_of(uid), job_of(pid))
    except RefusedError as error:
        return {"Error": str(error)}


def serve(listener, credentials):
    """One caller after the other, until nobody calls any more."""
    listener.settimeout(IDLE_SECONDS)
    while True:
        try:
            caller, _ = listener.accept()
        except socket.timeout:  # noqa: UP041 - not the same in Python 3.9
            return
        except OSError:  # it went away, or there are too many open files
            time.sleep(0.05)
            continue
        with caller:
            peer = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            pid, uid, _ = struct.unpack("iII", peer)
            try:
                caller.settimeout(1)
                caller.sendall(json.dumps(answer(credentials, pid, uid)).encode())
            except OSError:
                pass


def main():
    os.environ["PATH"] = f"/usr/local/bin:{os.environ.get('PATH', '/usr/bin:/bin')}"
    path = sys.argv[1] if len(sys.argv) > 1 else CONFIG
    serve(socket.socket(fileno=3), Credentials(configuration(path)))


if __name__ == "__main__":
    main()

"""The service that hands users credentials of the jobs' role: real users, a real socket; STS is a script."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from needs import need
from other_users import folder_for_all
from project import ROOT

FILES = ROOT / "lifecycle_scripts" / "files"
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
"""One that users may run."""
ROLE = "arn:aws:iam::111122223333:role/dev-jobs"
ANNA, LI, NOBODY, UNKNOWN, DAEMON = 4711, 4712, 65534, 100_000, 998
PASSWD = f"""root:x:0:0::/root:/bin/sh
agent:x:{DAEMON}:{DAEMON}::/:/bin/false
anna@example.org:x:{ANNA}:{ANNA}::/:/bin/sh
b:x:{LI}:{LI}::/:/bin/sh
nobody:x:{NOBODY}:{NOBODY}::/:/bin/false
"""
AWS = """#!{python} -IS
import datetime, json, pathlib, sys
state = pathlib.Path("{state}")
with (state / "calls").open("a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
if (state / "denied").exists():
    sys.exit("An error occurred (AccessDenied) when calling the AssumeRole operation")
if (state / "garbage").exists():
    print("secret garbage"), sys.exit()
left = int((state / "seconds").read_text()) if (state / "seconds").exists() else 3600
ends = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=left)
name = sys.argv[sys.argv.index("--role-session-name") + 1]
print(json.dumps({{"Credentials": {{"AccessKeyId": "ASIA" + name, "SecretAccessKey": "hidden-" + name,
    "SessionToken": "token", "Expiration": ends.isoformat(timespec="seconds")}}}}))
"""


class Service:
    """The service at a socket in a folder that users may enter; /etc/passwd of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.socket, self.client = folder, folder / "credentials.sock", folder / "credentials"
        shutil.copy(FILES / "job_credentials_client.py", self.client)
        (folder / "config").write_text(f"ROLE={ROLE}\nREGION=eu-north-1\n")
        (folder / "passwd").write_text(PASSWD)
        (folder / "bin").mkdir()
        (folder / "bin/aws").write_text(AWS.format(python=PYTHON, state=folder))
        (folder / "bin/aws").chmod(0o755)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(self.socket))
            self.socket.chmod(0o666)
            listener.listen(4096)
            program = f"'{PYTHON}' -IS '{FILES / 'job_credentials.py'}' '{folder}/config'"
            own = f"mount --bind '{folder}/passwd' /etc/passwd && exec {program} 3<&{listener.fileno()}"
            with (folder / "log").open("w") as log:
                self.process = subprocess.Popen(
                    ["unshare", "--mount", "bash", "-c", own],
                    env={"PATH": f"{folder}/bin:{os.environ['PATH']}"},
                    pass_fds=[listener.fileno()],
                    stdout=log,
                    stderr=log,
                )

    def ask(self, uid: int, *before: str) -> subprocess.CompletedProcess[str]:
        who = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"] if uid else []
        return subprocess.run(
            [*who, *before, PYTHON, str(self.client)],
            env=os.environ | {"ULTRACLUSTER_JOB_CREDENTIALS": str(self.socket)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    @property
    def calls(self) -> list[list[str]]:
        """What the AWS CLI was called with."""
        file = self.folder / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def say(self, name: str, text: str = "") -> None:
        (self.folder / name).write_text(text)


@pytest.fixture
def service() -> Iterator[Service]:
    need("unshare", "setpriv", "mount", root=True)
    with folder_for_all() as folder:
        made = Service(folder)
        try:
            yield made
        finally:
            made.process.kill()
            made.process.wait()


def test_each_user_gets_a_session_of_his_own(service: Service) -> None:
    for uid, name in ((ANNA, "anna@example.org"), (LI, "user-b")):
        done = service.ask(uid)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["Version"] == 1 and told["AccessKeyId"] == f"ASIA{name}", told
    # each again, from a user namespace as enroot's: nobody is asked
    done = service.ask(ANNA, "unshare", "--user", "--map-root-user")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["AccessKeyId"] == "ASIAanna@example.org"
    assert json.loads(service.ask(LI).stdout)["AccessKeyId"] == "ASIAuser-b"
    assert len(service.calls) == 2
    for call, name in zip(service.calls, ("anna@example.org", "user-b"), strict=True):
        given = {key: call[call.index(key) + 1] for key in call if key.startswith("--")}
        assert call[:2] == ["sts", "assume-role"]
        assert given == {
            "--role-arn": ROLE,
            "--role-session-name": name,
            "--source-identity": name,
            "--duration-seconds": "3600",
            "--region": "eu-north-1",
            "--output": "json",
        }
        assert taken_by_sts(RoleSessionName=name, SourceIdentity=name, RoleArn=ROLE)
    log = (service.folder / "log").read_text()
    assert "credentials of arn:aws:iam::111122223333:role/dev-jobs for user-b until" in log
    assert "hidden" not in log and "token" not in log


def taken_by_sts(**given: str) -> bool:
    """By the patterns of AWS's own model of the API."""
    model = botocore.session.get_session().get_service_model("sts").operation_model("AssumeRole")
    members = model.input_shape.members  # pyright: ignore
    for name, value in given.items():
        shape = members[name].metadata
        assert (
            re.fullmatch(shape.get("pattern", ".*"), value) and shape["min"] <= len(value) <= shape["max"]
        ), name
    return True


@pytest.mark.parametrize(
    ("uid", "says"),
    [
        (0, "root has the node's own"),
        (DAEMON, "are for users"),
        (NOBODY, "are for users"),
        (UNKNOWN, "knows no user"),
    ],
)
def test_others_are_refused(service: Service, uid: int, says: str) -> None:
    done = service.ask(uid)
    assert done.returncode == 1 and says in done.stderr and not done.stdout
    assert not service.calls


def test_credentials_that_end_soon_are_renewed(service: Service) -> None:
    service.say("seconds", "1100")
    assert service.ask(ANNA).returncode == 0
    assert service.ask(ANNA).returncode == 0
    assert len(service.calls) == 2
    service.say("seconds", "3600")
    assert service.ask(ANNA).returncode == 0
    assert service.ask(ANNA).returncode == 0
    assert len(service.calls) == 3


def test_what_sts_refuses_is_told_and_not_asked_again_at_once(service: Service) -> None:
    service.say("denied")
    for uid in (ANNA, ANNA, LI):
        done = service.ask(uid)
        assert done.returncode == 1 and "AccessDenied" in done.stderr
    assert len(service.calls) == 1
    assert "no credentials for anna@example.org" in (service.folder / "log").read_text()


def test_an_answer_of_another_form_is_not_repeated(service: Service) -> None:
    service.say("garbage")
    done = service.ask(ANNA)
    assert done.returncode == 1 and "another form" in done.stderr
    assert "secret" not in done.stderr and "secret" not in (service.folder / "log").read_text()


def test_who_says_nothing_keeps_nobody_waiting(service: Service) -> None:
    assert service.ask(LI).returncode == 0
    silent = []
    try:
        for _ in range(200):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            one.connect(str(service.socket))
            silent.append(one)
        assert service.ask(LI).returncode == 0
    finally:
        for one in silent:
            one.close()


def test_sdks_find_it(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore reads the configuration that the step writes."""
    line = f"credential_process = setpriv --reuid={ANNA} --clear-groups {PYTHON} {service.client}"
    service.say("aws_config", f"[default]\nregion = eu-north-1\n{line}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(service.folder / "aws_config"))
    monkeypatch.setenv("ULTRACLUSTER_JOB_CREDENTIALS", str(service.socket))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    found: Any = botocore.session.get_session().get_credentials()
    assert (found.method, found.access_key) == ("custom-process", "ASIAanna@example.org")
    assert not found.refresh_needed()


@pytest.fixture(scope="module")
def job_in() -> Callable[[str], str]:
    pattern = runpy.run_path(str(FILES / "job_credentials.py"))["JOB"]

    def job(text: str) -> str:
        found = pattern.search(text)
        return found[1] if found else ""

    return job


@pytest.mark.parametrize(
    ("text", "job"),
    [
        ("0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n", "42"),
        ("0::/system.slice/gpu-1_slurmstepd.scope/job_42/step_batch/user/task_0\n", "42"),
        ("12:pids:/\n4:memory:/slurm/uid_4711/job_42/step_0/task_0\n", "42"),
        ("4:freezer:/slurm_gpu-1/uid_4711/job_42/step_0\n", "42"),
        ("0::/user.slice/user-4711.slice/session-1.scope\n", ""),
        # what a user can make below what is his
        ("0::/user.slice/user-4711.slice/user@4711.service/slurmstepd.scope/job_7/step_0\n", ""),
        ("0::/system.slice/slurmstepd.scope/job_42/user.slice/slurm/job_7\n", "42"),
        ("", ""),
    ],
)
def test_the_job_of_a_process(job_in: Callable[[str], str], text: str, job: str) -> None:
    assert job_in(text) == job


def test_a_client_without_a_service_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [PYTHON, str(FILES / "job_credentials_client.py")],
        env=os.environ | {"ULTRACLUSTER_JOB_CREDENTIALS": str(tmp_path / "none.sock")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "none.sock is not here" in done.stderr

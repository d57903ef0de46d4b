"""Jobs from a laptop without a cluster: whose session it is, what Slurm's answers mean, what is sent."""

from __future__ import annotations

import re
import subprocess
from base64 import b64decode
from datetime import UTC, datetime
from gzip import decompress as gunzip
from pathlib import Path
from typing import Any

import pytest

from ultracluster.config import Environment, load
from ultracluster.jobs.queue.person import NoPersonError, person_of
from ultracluster.jobs.queue.person_session import PersonSession, SessionEndedError
from ultracluster.jobs.queue.protocol import PROGRAM, NoSuchJobError, Program, Submission
from ultracluster.jobs.queue.slurm_queue import checked, file_name, log_script, queued, submit_script

pytestmark = pytest.mark.slow  # starts programs or listens

DEV = Path(__file__).parents[2] / "environments" / "dev.yaml"
ALICE = "arn:aws:iam::111122223333:role/teams/alice"
SSO = "arn:aws:iam::111122223333:role/aws-reserved/sso.amazonaws.com/*/AWSReservedSSO_bob_*"


def environment(**principals: str) -> Environment:
    """With a user for each."""
    users = {
        name: {"uid": 2001 + number, "principals": [arn] if arn else []}
        for number, (name, arn) in enumerate(principals.items())
    }
    loaded = load(DEV).environment
    return Environment.model_validate(loaded.model_dump(exclude_unset=True) | {"users": users})


def assumed(role: str) -> str:
    return f"arn:aws:sts::111122223333:assumed-role/{role}/somebody"


@pytest.mark.parametrize(
    ("wanted", "identity", "found"),
    [
        ("", assumed("alice"), "alice"),
        ("", assumed("AWSReservedSSO_bob_0123"), "bob"),
        ("bob", assumed("alice"), "bob"),  # IAM decides whether that may be opened
        ("", assumed("al"), "none of the users' principals: --as alice or --as bob"),
        ("", "arn:aws:sts::999999999999:assumed-role/alice/x", "none of the users' principals"),
        ("", "arn:aws:iam::111122223333:user/alice", "none of the users' principals"),
        ("alcie", "", "there is no user `alcie`, but alice"),
        ("carol", "", "`carol` has no principals"),
    ],
)
def test_whose_session_it_is(wanted: str, identity: str, found: str) -> None:
    config = environment(alice=ALICE, bob=SSO, carol="")
    if found in config.users:
        assert person_of(config, wanted, identity) == found
        return
    with pytest.raises(NoPersonError) as refused:
        person_of(config, wanted, identity)
    assert found in str(refused.value)


def test_without_users_all_share_one() -> None:
    assert person_of(environment(), "", assumed("anybody")) == ""
    assert person_of(environment(carol=""), "", assumed("anybody")) == ""


def number(value: int | None) -> dict[str, Any]:
    return {"set": value is not None, "infinite": False, "number": value or 0}


def row(**changes: Any) -> dict[str, Any]:
    """A job of `scontrol --json show job`, as Slurm 26.05 tells it."""
    return {
        "job_id": 42, "array_job_id": number(0), "array_task_id": number(None), "name": "train",
        "user_name": "alice", "account": "vision", "job_state": ["RUNNING"], "state_reason": "None",
        "nodes": "n[1-2,7]", "node_count": number(3), "submit_time": number(1_795_000_000),
        "start_time": number(1_795_000_060), "end_time": number(1_795_086_400), "restart_cnt": 1,
        "exit_code": {"return_code": number(0), "signal": {"id": number(None)}, "status": ["SUCCESS"]},
        "standard_output": "/home/alice/%x-%j.out", "stdout_expanded": "/home/alice/train-42.out",
        "current_working_directory": "/home/alice", "batch_host": "n1",
    } | changes  # fmt: skip


def exit_code(code: int | None = None, signal: int | None = None) -> dict[str, Any]:
    return {"return_code": number(code), "signal": {"id": number(signal)}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"id": "42", "state": "running", "nodes": ("n1", "n2", "n7"), "ended": None, "restarts": 1}),
        ({"job_state": ["PENDING"], "state_reason": "Priority"},
         {"state": "waiting", "why": "Priority", "nodes": (), "started": None, "wanted_nodes": 3}),
        ({"job_state": ["RUNNING", "CONFIGURING"]}, {"state": "running", "detail": "RUNNING CONFIGURING"}),
        ({"job_state": ["FAILED"], "exit_code": exit_code(7)}, {"state": "failed", "exit_code": 7}),
        ({"job_state": ["FAILED"], "exit_code": exit_code(0, 9)}, {"state": "failed", "exit_code": 137}),
        ({"job_state": ["COMPLETED"]}, {"ended": datetime.fromtimestamp(1_795_086_400, UTC)}),
        ({"job_state": ["CANCELLED"]}, {"state": "cancelled", "exit_code": None}),
        ({"job_state": "TIMEOUT"}, {"state": "failed"}),  # a Slurm before 23.11
        ({"job_state": ["SOMETHING_NEW"]}, {"state": "unknown", "detail": "SOMETHING_NEW"}),
        ({"array_job_id": number(40), "array_task_id": number(0), "stdout_expanded": "",
          "standard_output": "", "job_id": 41}, {"id": "40_0", "log": "/home/alice/slurm-40_0.out"}),
        ({"stdout_expanded": None}, {"log": "/home/alice/train-42.out"}),
        ({"nodes": "n[1-99999999]"}, {"nodes": ("n[1-99999999]",)}),
        ({"nodes": None, "node_count": None, "account": "(null)", "start_time": number(0)},
         {"nodes": (), "wanted_nodes": None, "team": "", "started": None}),
        ({"state_reason": "a\nb\x1b[2J"}, {"why": "a b\\x1b[2J"}),
    ],
)  # fmt: skip
def test_what_slurm_says_of_a_job(changes: dict[str, Any], expected: dict[str, Any]) -> None:
    job = queued(row(**changes))
    assert {name: getattr(job, name) for name in expected} == expected


@pytest.mark.parametrize("job_id", ["", "0", "-1", "1 2", "1;id", "1_", "$(id)", "99999999999", "all", "1\n"])
def test_what_is_no_number_of_a_job_never_gets_there(job_id: str) -> None:
    with pytest.raises(NoSuchJobError, match="is no job of Slurm"):
        checked(job_id)


def bash(script: str, home: Path) -> subprocess.CompletedProcess[bytes]:
    """In a home, with an sbatch that prints what it is asked to run."""
    tools = home / "bin"
    tools.mkdir(parents=True, exist_ok=True)
    (tools / "sbatch").write_text('#!/bin/sh\ncp "$2" "$HOME/got"; echo "42;cluster"\n')
    (tools / "sbatch").chmod(0o755)
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, check=False,
        env={"HOME": str(home), "PATH": f"{tools}:/usr/bin:/bin"},
    )  # fmt: skip


def test_what_travels_arrives_byte_by_byte_and_once(tmp_path: Path) -> None:
    content = bytes(range(256)) * 4
    text = f"#!/bin/bash\n# & \\1 $HOME `id` '\"' @home@\npython {PROGRAM}\n\n\n"
    sent = Submission(text, "../x y; id", "0a1b", Program("a-b_1.py", content, ("--x=1", "y")))
    home = tmp_path / "alice"
    done = bash(submit_script(sent), home)
    assert (done.returncode, done.stdout) == (0, b"42;cluster\n"), done.stderr
    (folder,) = (home / "ultracluster-jobs").iterdir()
    assert folder.name == "x-y-id-0a1b" and folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "a-b_1.py").read_bytes() == content
    expected = text.replace(PROGRAM, f"{folder}/a-b_1.py --x=1 y")
    assert (home / "got").read_text() == (folder / "x-y-id.sh").read_text() == expected
    assert bash(submit_script(sent), home).returncode == 92
    strange = bash(submit_script(sent), tmp_path / "a b")
    assert strange.returncode == 90 and b"cannot be named in a script" in strange.stderr


def test_a_program_is_not_taken_for_the_script(tmp_path: Path) -> None:
    sent = Submission("#!/bin/bash\n", "train", "0a1b", Program("train.sh", b"mine"))
    assert bash(submit_script(sent), tmp_path).returncode == 0
    assert (tmp_path / "got").read_text() == "#!/bin/bash\n"
    assert (tmp_path / "ultracluster-jobs" / "train-0a1b" / "train.sh").read_bytes() == b"mine"


def test_names_of_folders_are_harmless() -> None:
    for name in ("", "..", "-rf", "a/b", "$(id)", "x" * 500, "ä", "a\nb"):
        made = file_name(name)
        assert 0 < len(made) <= 60 and made[0] not in "-." and set(made) <= set(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
        )  # fmt: skip


def test_a_log_is_read_on_from_where_it_was(tmp_path: Path) -> None:
    file = tmp_path / "it's a log"
    file.write_text("one\ntwo\nthree\n")

    def read(after: int, lines: int | None = None) -> tuple[str, bytes]:
        head, _, data = bash(log_script(str(file), after, lines), tmp_path).stdout.partition(b"\n")
        return head.decode(), data

    assert read(0) == ("there 0 14", b"one\ntwo\nthree\n")
    assert read(8) == ("there 8 14", b"three\n")
    assert read(0, 1) == ("there 8 14", b"three\n")
    assert read(99) == ("there 0 14", b"one\ntwo\nthree\n")  # somebody began it again
    for other in (tmp_path, tmp_path / "nowhere", Path("/dev/zero")):
        head = bash(log_script(str(other), 0, None), tmp_path).stdout
        assert head in (b"closed 0 0\n", b"absent 0 0\n")


@pytest.mark.parametrize(
    ("shell", "why"),
    [
        (
            "echo An error occurred: AccessDenied; exit 254",
            "the session ended: An error occurred: AccessDenied",
        ),
        ("echo hello; sleep 60", "no shell answered in 1 seconds: hello"),
        ("echo hello; exec cat >/dev/null", "no shell answered"),
    ],
)
def test_a_session_that_is_none_says_what_it_said_last(shell: str, why: str) -> None:
    session = PersonSession(["sh", "-c", shell], open_seconds=1)
    with pytest.raises(SessionEndedError) as refused:
        session.run("true", what="try", again=False)
    session.close(gently=False)
    assert str(refused.value).startswith(why)


def test_a_session_that_ends_is_opened_again_for_what_may_be_asked_twice(tmp_path: Path) -> None:
    (tmp_path / "id").write_text("#!/bin/sh\n[ $1 = -u ] && echo 2001 || echo alice\n")  # tests may be root's
    (tmp_path / "id").chmod(0o755)
    session = PersonSession(["sh", "-c", f"echo; PATH={tmp_path}:$PATH exec bash"], user="alice")
    shell = '$(cut -d " " -f 6 /proc/$$/stat)'
    assert session.run("echo seen", what="job look 7; \n:x").text == "seen\n"
    label, packed = re.findall(r"# (.*)\n(.*)\n", session._heard)[0]  # what a log of sessions has
    assert (label, gunzip(b64decode(packed))) == ("ultracluster job look 7    x", b"echo seen")
    script = f"echo x >>{tmp_path}/ran; [ $(wc -l <{tmp_path}/ran) -gt 1 ] || kill -9 {shell}; echo done"
    assert session.run(script, what="try").text == "done\n"
    assert (tmp_path / "ran").read_text() == "x\nx\n"
    (tmp_path / "ran").unlink()
    with pytest.raises(SessionEndedError):
        session.run(script, what="try", again=False)
    assert (tmp_path / "ran").read_text() == "x\n"
    session.close()

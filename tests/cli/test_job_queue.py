"""What `ultracluster job submit|list|logs|cancel` refuse and print, over a queue of the test's own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from fake_queue import JOB, SCRIPT, Fake, opened, run
from json_contract import check_document
from project import ROOT
from typer.testing import CliRunner

from ultracluster.account.aws import AccountError
from ultracluster.cli import job_queue, job_shell, job_submission
from ultracluster.cli.habits import HABITS
from ultracluster.cli.job_watch import Lines, Progressed, summary
from ultracluster.cli.main import app
from ultracluster.cli.terminal import Wishes
from ultracluster.config.plain_text import visible
from ultracluster.jobs.queue.person_session import SessionEndedError
from ultracluster.jobs.queue.protocol import (
    NotSubmittedError,
    UnansweredError,
)


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Fake:
    return opened(monkeypatch)


def test_a_file_is_sent_as_it_is_under_the_name_in_it(queue: Fake) -> None:
    result = run("submit", "dev", "-", stdin=SCRIPT)
    assert result.stdout == "42\n" and "job logs dev 42 --follow" in result.stderr
    assert "\x1b" not in result.stderr
    (sent,) = queue.submitted
    assert (sent.text, sent.name, sent.program) == (SCRIPT, "mine", None)
    run("submit", "dev", "-", stdin=SCRIPT)
    assert queue.submitted[1].token != sent.token


def test_the_command_that_it_names_is_the_same_person_in_the_same_account(
    queue: Fake, tmp_path: Path
) -> None:
    mine = tmp_path / "my env.yaml"
    mine.write_bytes((ROOT / "environments" / "dev.yaml").read_bytes())
    words = ("submit", str(mine), "-", "--profile", "my work", "--as", "alice")
    told = run(*words, stdin=SCRIPT).stderr
    assert f"`ultracluster job logs '{mine}' 42 --follow --as alice --profile 'my work'`" in told
    assert json.loads(run(*words, "--json", stdin=SCRIPT).stdout)["environment"] == "dev"
    queue.refusal = KeyboardInterrupt()
    told = run(*words, stdin=SCRIPT, code=130).stderr
    assert f"`ultracluster job list '{mine}' --as alice --profile 'my work'`" in told


def test_options_make_what_job_pytorch_prints_with_the_program_in_it(queue: Fake, tmp_path: Path) -> None:
    program = tmp_path / "mine.py"
    program.write_bytes(b"print(1)")
    run("submit", "dev", "--nodes", "2", "--name", "llama", "--program", str(program), "--", "--steps", "3")
    (sent,) = queue.submitted
    assert sent.name == "llama" and "--master-port=29500 @program@\n" in sent.text
    assert sent.program and (sent.program.content, sent.program.arguments) == (b"print(1)", ("--steps", "3"))
    run("submit", "dev", "--nodes", "2", "--name", "llama")
    printed = CliRunner().invoke(app, ["job", "write", "dev", "--nodes", "2", "--name", "llama"]).stdout
    assert queue.submitted[1].text == printed


def test_a_program_that_is_too_large_is_not_sent(queue: Fake, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_bytes(b"#" * (900 * 1024 + 1))
    assert (
        "is larger than 900 KiB"
        in run("submit", "dev", "--nodes", "1", "--program", str(program), code=2).stderr
    )


@pytest.mark.parametrize(
    ("words", "text", "why"),
    [
        (["dev"], "", "what is to run? A file"),
        (["dev", "nowhere.sh"], "", "nowhere.sh: No such file"),
        (["dev", "environments"], "", "environments: Is a directory"),
        (["dev", "-"], "", "standard input: is empty"),
        (["dev", "-"], "kind: Job\n", "begins with `#!/bin/bash`"),
        (["dev", "-"], "#!/bin/bash\r\ntrue\r\n", "line ends of Windows"),
        (["dev", "-"], b"\xff\xfe", "is not text (UTF-8)"),
        (["dev", "-", "--program", "README.md", "--", "x"], SCRIPT, "write @program@ there"),
        (["dev", "-", "--", "x"], SCRIPT, "there is no --program"),
        (["dev", "-", "--nodes", "2"], SCRIPT, "--nodes 2 makes a job, and - is one"),
        (["dev", "README.md", "--nodes", "2"], "", "--nodes 2 makes a job, and README.md is one"),
        (
            ["dev", "-", "--time", "1:00:00", "--no-look"],
            SCRIPT,
            "--time, --no-look: for a job that --nodes makes",
        ),
        (["dev", "-", "--name", "train"], SCRIPT, "--name: for a job that --nodes makes"),
        (["dev", "--nodes", "99"], "", "a job on 99 can never start"),
        (["dev", "--nodes", "1", "--program", "README.md", "--script", "x.py"], "", "exclude each other"),
        (
            ["dev", "--nodes", "1", "--program", "README.md", "--", "a b"],
            "",
            "letters, digits and @%+=:,./_-",
        ),
        (
            ["dev", "--nodes", "1", "--program", "README.md", "--", "$(id)"],
            "",
            "letters, digits and @%+=:,./_-",
        ),
        (["dev", "--nodes", "1", "--program", "nowhere.py"], "", "--program nowhere.py: No such file"),
        (["dev", "--nodes", "1", "--program", "/dev/zero"], "", "it is a device, not a file"),
        (["eks-p5en", "-", "--as", "alice"], "kind: Job\n", "--as is for Slurm"),
        (["nope", "-"], SCRIPT, "nope"),
    ],
)
def test_what_cannot_run_is_not_sent(queue: Fake, words: list[str], text: str | bytes, why: str) -> None:
    result = run("submit", *words, stdin=text, code=2)
    assert why in result.stderr and not queue.submitted


@pytest.mark.parametrize(
    ("refusal", "code", "why"),
    [
        (NotSubmittedError("invalid partition"), 2, "Not submitted: invalid partition"),
        (AccountError("no session"), 2, "Not submitted: no session"),
        (UnansweredError("look"), 3, "submitted: look. `ultracluster job list dev` shows"),
        (KeyboardInterrupt(), 130, "it may have been submitted"),
    ],
)
def test_how_a_submission_that_fails_ends(queue: Fake, refusal: BaseException, code: int, why: str) -> None:
    queue.refusal = refusal
    assert why in run("submit", "dev", "-", stdin=SCRIPT, code=code).stderr
    told = json.loads(run("submit", "dev", "-", "--json", stdin=SCRIPT, code=code).stdout)
    assert told["exit_code"] == code and len(queue.submitted) == 2


def test_a_dry_run_says_what_would_be_sent_and_asks_nobody(queue: Fake) -> None:
    result = run("submit", "dev", "-", "--dry-run", stdin=SCRIPT)
    assert result.stdout == SCRIPT and "in a session as ultracluster" in result.stderr
    unknown = run("submit", "dev", "-", "--dry-run", "--as", "nobody", stdin=SCRIPT, code=2)
    assert unknown.stderr == "there is no user `nobody`, the environment has no `users`\n"
    assert not queue.submitted


def test_a_dry_run_shows_what_would_be_sent_to_the_last_character(queue: Fake, tmp_path: Path) -> None:
    """It reports somebody's file: click drops colours off a terminal, and they would be sent."""
    script = "#!/bin/bash\necho '\x1b[31mred\x1b[0m \x1b]0;title\x07'\n"
    result = run("submit", "dev", "-", "--dry-run", stdin=script)
    assert result.stdout == "#!/bin/bash\necho '\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07'\n"
    assert json.loads(run("submit", "dev", "-", "--dry-run", "--json", stdin=script).stdout)["text"] == script


def test_what_is_written_for_sbatch_and_kubectl_needs_no_escape(queue: Fake) -> None:
    """So that it comes through a pipe byte by byte: `job submit` sends the text itself."""
    for words in (("dev", "--nodes", "2"), ("eks-p5en", "--nodes", "2", "--image", "trainer:1")):
        text = run("write", *words).stdout
        run("submit", *words)
        assert queue.submitted[-1].text == text == visible(text) and text.isascii()


QUIET = {
    "cancel": ["dev 42 --yes"],
    "list": ["dev", "dev --all"],
    "logs": ["dev 42", "dev 42 --follow"],
    "shell": [
        "dev --dry-run", "eks-p5en --image a/b:1 --dry-run", "dev --notebook --dry-run",
        "eks-p5en --image a/b:1 --notebook --dry-run",
    ],
    "submit": [
        "dev -", "dev - --watch", "dev - --dry-run", "dev --nodes 2 --dry-run --program app.py -- --debug",
        "eks-p5en --nodes 2 --image a/b:1 --dry-run",
    ],
    "why": [],
    "write": [
        "eks-p5en --nodes 2 --image a/b:1", "trainium --nodes 2",
        "parallelcluster-p5 --framework jax --nodes 2",
        "eks-p5en --framework jax --nodes 2 --image a/b:1", "prod --framework ray --nodes 2",
        "prod --preload /fsx/datasets --nodes 2",
    ],
}  # fmt: skip
"""Command lines of every command on jobs that end well."""


def test_every_command_on_jobs_is_held_to_be_quiet() -> None:
    assert {f"job {one}" for one in QUIET} == {one for one in HABITS if one.startswith("job ")}


@pytest.mark.parametrize("line", [f"{name} {one}" for name, lines in QUIET.items() for one in lines])
def test_with_quiet_only_the_answer_is_told(
    line: str, queue: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app.py").write_text("print()")
    monkeypatch.setattr(job_submission.secrets, "token_hex", lambda _: "0a1b2c3d")
    monkeypatch.setattr(job_queue, "elapsed", lambda *_: "1:00")
    answers = list[str]()
    for more in ("", " --quiet"):
        queue.states = ["running", "completed"] if "--watch" in line or "--follow" in line else ["running"]
        words, bar, arguments = line.replace("app.py", str(tmp_path / "app.py")).partition(" -- ")
        result = run(*f"{words}{more}{bar}{arguments}".split(), stdin=SCRIPT)
        answers.append(result.stdout)
    assert answers[0] == answers[1] and answers[1] and result.stderr == ""


@pytest.mark.parametrize(("silent", "told"), [(False, "http://127.0.0.1:8888 is port 8889"), (True, "")])
def test_with_quiet_a_port_is_carried_without_a_word(
    silent: bool, told: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Wishes, "quiet", silent)
    monkeypatch.setattr("ultracluster.cli.job_shell.SlurmQueue", lambda *_: Fake())
    carried = job_shell._Carried(SimpleNamespace(command=[]), "alice", JOB.name, (8888, 8889), Event())  # pyright: ignore
    carried._session = carried._listener = Mock()
    carried._forward = Mock(key="k", run=lambda _listener, _stop, ready: ready())
    carried._stop = Mock(wait=lambda _: False)
    carried._carry()
    said = capfd.readouterr().err.strip()
    assert said.startswith(told) if told else said == ""


def test_a_question_is_asked_with_what_it_is_about_even_with_quiet(queue: Fake) -> None:
    queue.states = ["running"]
    asked = run("cancel", "dev", "42", "--quiet", stdin="\n", code=2).stderr
    assert "job 42 (train\\x1b[2J): running on 2 nodes" in asked and "End 1 job?" in asked
    queue.states = ["completed"]
    assert run("cancel", "dev", "42", "--quiet").output == ""


def test_manifests_of_a_wrong_shape_are_refused_by_file_and_line(queue: Fake, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    head = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n"
    file.write_text(f"{head}spec: {{template: {{spec: {{\n  containers: [7]}}}}}}\n")
    why = (
        "5: spec.template.spec.containers[0]: it is `7`, and a container is a mapping: write one, "
        "with name and image\n"
    )
    for words in ((), ("--dry-run",)):
        assert run("submit", "eks-p5en", str(file), *words, code=2).stderr == f"{file}:{why}"
    piped = run("submit", "eks-p5en", "-", "--dry-run", stdin=file.read_bytes(), code=2)
    assert piped.stderr == f"standard input:{why}" and not queue.submitted
    ours = run("write", "eks-p5en", "--nodes", "2", "--image", "trainer:1").stdout
    run("submit", "eks-p5en", "-", "--dry-run", stdin=ours)


def test_who_watches_sees_log_and_end(queue: Fake) -> None:
    queue.failures = 2
    result = run("submit", "dev", "-", "--watch", stdin=SCRIPT)
    assert result.stdout == "42\nhello\nstep 1 loss 0.5\nstep 2 loss 0.25\n"
    assert "the session ended; asking again" in result.stderr
    assert "completed" in result.stderr and "step 2, loss 0.25" in result.stderr
    queue.states = ["failed"]
    told = check_document(run("submit", "dev", "-", "--watch", "--json", stdin=SCRIPT, code=1).stdout)
    assert (told["job"]["state"], told["job"]["exit_code"]) == ("failed", 3)
    queue.failures = 99
    assert "Job 42 goes on" in run("submit", "dev", "-", "--watch", stdin=SCRIPT, code=3).stderr


def test_lists(queue: Fake) -> None:
    told = check_document(run("list", "dev", "--json").stdout)
    assert [job["id"] for job in told["jobs"]] == ["42"]
    table = run("list", "dev", "--team", "speech").stdout.splitlines()
    assert table[1].split()[:6] == ["43", "train\\x1b[2J", "bob", "speech", "waiting", "2"]
    assert len(table) == 2 and len(run("list", "dev", "--all").stdout.splitlines()) == 3


def test_the_end_of_a_job_is_asked_for_once_and_shown_first(queue: Fake) -> None:
    queue.states = ["running"]
    refused = run("cancel", "dev", "42", stdin="\n", code=2)
    assert "job 42 (train\\x1b[2J): running on 2 nodes (n1, n2)" in refused.stderr and not queue.cancelled
    assert "nothing was ended" in run("cancel", "dev", "42", "7", "--yes", code=1).stderr
    assert not queue.cancelled
    assert run("cancel", "dev", "42", "42", "--yes").stdout == "42: asked to end\n"
    assert queue.cancelled == ["42"]
    queue.states = ["completed"]
    assert "Nothing to end" in run("cancel", "dev", "42", "--yes").stderr


def test_an_end_without_an_answer_is_not_known(queue: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(_: Sequence[str]) -> Mapping[str, str]:
        raise AccountError("the session ended")

    queue.states = ["running"]
    monkeypatch.setattr(queue, "cancel", lost)
    said = run("cancel", "dev", "42", "--yes", code=3).stderr
    assert "they may have been ended; `ultracluster job list dev` tells" in " ".join(said.split())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["dev", "--nodes", "9"], "a job on 9 can never start"),
        (["dev", "--gpus", "5"], "has 4"),
        (["dev", "--time", "1h"], "another form than 2:00:00"),
        (["dev", "--team", "x"], "there is no team `x`"),
        (["dev", "--forward", "0"], "a port is a number up to 65535"),
        (["dev", "--forward", "8888:99999"], "a port is a number up to 65535"),
        (["dev", "--job", "1;id"], "is no job of Slurm"),
        (["dev", "--job", "1", "--gpus", "1"], "leave --nodes, --gpus and --group out"),
        (["trainium", "--gpus", "1"], "have none"),
        (["eks-p5en", "--job", "1"], "--job is for Slurm"),
    ],
)
def test_a_shell_that_cannot_be(words: list[str], why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert why in run("shell", *words, code=2).stderr


def test_a_shell_is_an_allocation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    whole = run("shell", "dev", "--nodes", "2", "--dry-run").stdout
    assert "--nodes=2 --ntasks-per-node=1 --gpus-per-node=4 --exclusive --time=2:00:00 srun" in whole
    assert "--gpus-per-node=1 --time=" in run("shell", "dev", "--gpus", "1", "--dry-run").stdout
    assert "--jobid=7 --overlap" in run("shell", "dev", "--job", "7", "--dry-run").stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["dev", "--gpus", "5"], "has 4"),
        (["dev", "--time", "1h"], "another form than 2:00:00"),
        (["dev", "--image", "a/b:1"], "--image is for Kubernetes"),
        (["eks-p5en"], "a pod needs an image: --image"),
        (["eks-p5en", "--as", "alice"], "--as is for Slurm"),
    ],
)
def test_a_notebook_that_cannot_be(words: list[str], why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert why in run("shell", *words, "--notebook", code=2).stderr


def test_a_notebook_is_an_allocation_whose_token_is_typed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    told = run("shell", "dev", "--notebook", "--dry-run").stdout
    assert "--gpus-per-node=1 --time=8:00:00 srun --nodes=1 --ntasks=1 --overlap bash" in told
    assert "--ip=127.0.0.1" in told
    typed: list[str] = []
    became: list[str] = []

    class Session:
        def __init__(self, *_: object, **__: object) -> None: ...

        def become(self, script: str, **_: object) -> bytes:
            became.append(script)
            return b"salloc: Granted\n"

        def type(self, text: str) -> None:
            typed.append(text)

        def hear(self, _: float) -> list[str]:
            if len(became) > 1:
                raise SessionEndedError("it ended")
            became.append("")
            return ["Jupyter\x1b[2J runs"]

        def close(self, **_: object) -> None: ...

    known = (SimpleNamespace(command=[]), "alice", "n1")
    monkeypatch.setattr("ultracluster.cli.job_shell.person_session", lambda *_: known)
    monkeypatch.setattr("ultracluster.cli.job_shell.PersonSession", Session)
    monkeypatch.setattr("ultracluster.cli.job_shell.missing_programs", lambda: "")
    monkeypatch.setattr(job_shell, "open_account", lambda *_: None)
    monkeypatch.setattr(job_shell, "_Carried", Mock())
    done = run("shell", "dev", "--notebook", "--forward", "9999")
    (token,) = [one.strip() for one in typed]
    assert done.stdout == f"http://127.0.0.1:9999/lab?token={token}\n"
    assert token not in became[0] + done.stderr and "Jupyter\\x1b[2J runs" in done.stderr
    (carried,) = job_shell._Carried.call_args_list  # pyright: ignore
    assert carried.args[3][0] == 9999 and f"--port={carried.args[3][1]} " in became[0]


def test_logs(queue: Fake) -> None:
    assert run("logs", "dev", "42").stdout == "hello\n"
    assert "knows no job 7" in run("logs", "dev", "7", code=1).stderr
    queue.states = ["running", "running", "running", "completed"]
    assert run("logs", "dev", "42", "--follow").stdout.endswith("step 2 loss 0.25\n")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("step 40 loss 2.345678", "step 40, loss 2.345678"),
        ("{'loss': 1.5e-3, 'step': 7}", "step 7, loss 1.5e-3"),
        ("Epoch 1 | global_step=12/300 | train loss: nan", "step 12 of 300, loss nan"),
        ("Step 3 of 9", "step 3 of 9"),
        ("footstep 3 lossless 4", "footstep 3 lossless 4"),
        ("starting up\x1b[2J", "starting up\\x1b[2J"),
        ("x" * 100_000, "x" * 60 + "... (4,000 characters)"),
    ],
)
def test_what_a_line_tells(line: str, told: str) -> None:
    progressed = Progressed()
    progressed.hear(line)
    assert progressed.text == told


def test_lines_are_whole_whatever_the_pieces_are() -> None:
    text = "ä 1\nbar 10%\rbar 20%\r\nlast"
    for size in (1, 2, 3, 100):
        lines, found, data = Lines(), list[str](), text.encode()
        for at in range(0, len(data), size):
            found += lines.of(data[at : at + size])
        assert found + lines.of(b"", last=True) == ["ä 1", "bar 20%", "last"]
    assert Lines().of(b"\xff\xfe\n") == ["\ufffd\ufffd"]
    assert sum(map(len, Lines().of(b"x" * 10_000))) == 10_000  # who never ends a line is shown, too


def test_a_job_is_a_sentence() -> None:
    told = summary(
        replace(JOB, name="t", state="failed", exit_code=7, why="TimeLimit", ended=JOB.started), ""
    )
    assert told == "job 42 (t): failed with exit code 7 after 0:00:00: TimeLimit"
    waiting = replace(JOB, name="t", state="waiting", nodes=(), wanted_nodes=1, submitted=None, restarts=2)
    assert summary(waiting, "") == "job 42 (t): waiting for 1 node, started again 2 times"

"""Before nodes are taken: the jobs that run there, how many at once, and whose yes counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hyperpod_service import HyperPod, account, node
from nodes_support import Slurm, node_id

from ultracluster.account.nodes.node import Node
from ultracluster.cli.node_actions import ceiling

ACTIONS = ["reboot", "replace", "delete", "health-check"]
JOB = ("42", "ada", "train-llama", "10.1.0.16")
SHOWN = f"job 42 (train-llama) of ada on {node_id(16)}"


@pytest.mark.parametrize("action", ACTIONS)
def test_yes_does_not_go_over_a_running_job(run: Callable[..., Any], slurm: Slurm, action: str) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    slurm.jobs = [JOB]
    refused = run(aws_account, action, node_id(16), "--yes")
    assert refused.exit_code == 2 and not service.asked
    assert f"runs there: {SHOWN}" in refused.output and "pass --despite-jobs" in refused.output
    # a node without a job goes by --yes
    free = run(
        aws_account, action, node_id(17), "--yes", *(["--no-wait"] if action != "health-check" else [])
    )
    assert free.exit_code == 0, free.output
    assert len(service.asked) == 1


def test_the_question_names_the_jobs_and_a_yes_on_it_is_enough(run: Callable[..., Any], slurm: Slurm) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    slurm.jobs = [JOB, ("43", "bo", "eval", "10.1.0.17")]
    words = ["reboot", node_id(16), node_id(17), "--no-wait"]
    no = run(aws_account, *words, answers="n\n")
    assert no.exit_code == 2 and not service.asked
    assert "2 nodes" in no.output and "on which 2 jobs run?" in no.output and SHOWN in no.output
    yes = run(aws_account, *words, "--json", answers="y\n")
    assert yes.exit_code == 0, yes.output
    document = json.loads(yes.stdout[yes.stdout.index("{") :])
    assert document["jobs"] == [
        {"id": "42", "user": "ada", "name": "train-llama", "nodes": [node_id(16)]},
        {"id": "43", "user": "bo", "name": "eval", "nodes": [node_id(17)]},
    ]
    assert document["jobs_unknown"] is None


@pytest.mark.parametrize("change", ["a job starts", "nobody answers"])
def test_a_job_that_starts_during_the_question_is_not_ended(
    run: Callable[..., Any], slurm: Slurm, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    slurm.jobs = [JOB]

    def answer(*_: Any, **__: Any) -> bool:
        if change == "a job starts":
            slurm.jobs = [JOB, ("43", "bo", "eval", "10.1.0.16")]
        else:
            slurm.error = "slurmctld does not answer"
        return True

    monkeypatch.setattr("typer.confirm", answer)
    ended = run(aws_account, "replace", node_id(16), "--no-wait")
    assert ended.exit_code == 2 and not service.asked
    says = (
        "started meanwhile: job 43"
        if change == "a job starts"
        else "the nodes cannot be closed to new jobs: slurmctld"
    )
    assert f"Nothing changed: {says}" in ended.output
    assert not slurm.closed


def test_despite_jobs_goes_over_them(run: Callable[..., Any], slurm: Slurm) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    slurm.jobs = [JOB]
    result = run(aws_account, "reboot", node_id(16), "--yes", "--despite-jobs", "--no-wait")
    assert result.exit_code == 0 and len(service.asked) == 1 and SHOWN in result.output


def test_what_could_not_be_asked_needs_the_same_yes(run: Callable[..., Any], slurm: Slurm) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    slurm.error = "session-manager-plugin is not on this machine"
    refused = run(aws_account, "replace", node_id(16), "--yes", "--json")
    assert refused.exit_code == 2 and not service.asked
    why = json.loads(refused.stdout)["message"]
    assert "whether jobs run there is not known: session-manager-plugin" in why
    asked = run(aws_account, "replace", node_id(16), "--no-wait", answers="y\n")
    assert asked.exit_code == 0 and "not known whether jobs run there?" in asked.output
    over = run(aws_account, "replace", node_id(17), "--yes", "--despite-jobs", "--no-wait", "--json")
    assert json.loads(over.stdout)["jobs_unknown"] == slurm.error


def test_a_dry_run_names_jobs_and_asks_nobody(run: Callable[..., Any], slurm: Slurm) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    slurm.jobs = [JOB]
    result = run(aws_account, "replace", node_id(16), "--dry-run", "--json")
    assert result.exit_code == 0 and not service.asked
    assert [job["id"] for job in json.loads(result.stdout)["jobs"]] == ["42"]


def test_words_of_a_job_do_not_reach_the_terminal_as_they_are(run: Callable[..., Any], slurm: Slurm) -> None:
    aws_account = account()
    HyperPod(aws_account)
    slurm.jobs = [("42", "ada", "x\x1b]52;c;aGk=\x07\x1b[31m", "10.1.0.16")]
    result = run(aws_account, "replace", node_id(16), answers="n\n")
    assert "job 42" in result.output and "\x1b" not in result.output and "\x07" not in result.output


@pytest.mark.parametrize("action", ACTIONS)
def test_one_call_takes_ten_nodes_unless_told(run: Callable[..., Any], action: str) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    service.nodes += [node(number) for number in range(24, 34)]
    eleven = [node_id(number) for number in range(16, 27)]
    result = run(aws_account, action, *eleven, "--yes", "--despite-jobs")
    assert result.exit_code == 2 and not service.asked
    assert "11 nodes are more than the 10 that one call takes" in result.output
    told = run(aws_account, action, *eleven, "--dry-run", "--at-most", "11")
    assert told.exit_code == 0 and told.output.count("would") >= 11
    fewer = run(aws_account, action, *eleven[:2], "--dry-run", "--at-most", "1")
    assert fewer.exit_code == 2 and "more than the 1 that one call takes" in fewer.output


def test_the_ceiling_grows_with_the_groups() -> None:
    def nodes(group: str, count: int) -> list[Node]:
        return [Node(f"i-{group}{number}", group, "Running") for number in range(count)]

    gpu, other = nodes("gpu", 256), nodes("cpu", 1000)
    assert ceiling(gpu[:1], [*gpu, *other]) == 26
    assert ceiling(other[:1], [*gpu, *other]) == 100
    assert ceiling(gpu[:1], gpu[:8]) == 10

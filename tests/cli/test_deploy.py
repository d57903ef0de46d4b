"""`ultracluster synth`, `deploy` and `destroy`: which parts run, in which order, and where they stop."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from project import ROOT
from typer.testing import CliRunner

from ultracluster.account.aws import Account, AccountError
from ultracluster.account.stacks_at_work import StackAtWork
from ultracluster.cli import accounts
from ultracluster.cli import deploy as module
from ultracluster.cli.main import app
from ultracluster.model.orchestrators import ORCHESTRATOR_OUTPUT
from ultracluster.model.stack_guards import OPEN, closed
from ultracluster.project import synth as synthesis
from ultracluster.project.deploy_lock import only_one
from ultracluster.project.ledger import Intent, exclusive
from ultracluster.project.versions import MADE_BY, running_version

ACCOUNT = "123456789012"
"""Of moto."""

CDK = """#!/bin/bash
echo "cdk $*" >>"$CALLS"
[[ "$*" != *"$FAILING"* || -z $FAILING ]] || exit "${CODE:-4}"
"""
APP = """
import json, os, pathlib
folder = pathlib.Path(os.environ["CDK_OUTDIR"])
context = json.loads(os.environ["CDK_CONTEXT_JSON"])
folder.mkdir(exist_ok=True)
(folder / "manifest.json").write_text(json.dumps({"artifacts": {"dev": {"metadata": METADATA}}}))
(folder / "context.json").write_text(json.dumps(context))
"""
OURS = [
    "preflight ENV --bootstrap",
    "software lock --for ENV",
    "diff ENV --deployed",
    "cdk deploy --app OUT --all --concurrency 8 --require-approval never",
    "wait ENV",
]


class Project:
    """A repository with a CDK command that logs; commands of ours are logged, and end as they are told."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.file = root / "environments" / "dev.yaml"
        self.calls = root / "calls"
        self.statuses: dict[str, int] = {}
        self.file.parent.mkdir()
        text = (ROOT / "environments" / "dev.yaml").read_text()
        self.file.write_text(text.replace("region:", f'account: "{ACCOUNT}"\nregion:', 1))
        self.version(running_version())
        self.app("{}")
        cdk = root / "node_modules" / ".bin" / "cdk"
        cdk.parent.mkdir(parents=True)
        cdk.write_text(CDK)
        cdk.chmod(0o755)
        monkeypatch.chdir(self.file.parent)  # a folder below will do
        monkeypatch.setenv("CALLS", str(self.calls))
        monkeypatch.setenv("FAILING", "")
        self.seen: list[str] = []
        """What `on_cdk` said when stacks were deployed."""
        self.on_cdk: Callable[[], str] = str
        self._run = subprocess.run
        monkeypatch.setattr(subprocess, "run", self.run)

    def version(self, made_by: str) -> None:
        (self.root / "cdk.json").write_text(json.dumps({"context": {MADE_BY: made_by, "own": 1}}))

    def app(self, metadata: str) -> None:
        (self.root / "app.py").write_text(APP.replace("METADATA", metadata))

    def writes(self, stack: str, template: dict[str, Any]) -> None:
        """The app makes this template, too."""
        with (self.root / "app.py").open("a") as file:
            file.write(f"(folder / '{stack}.template.json').write_text({json.dumps(template)!r})\n")

    def run(self, words: list[str], **more: Any) -> subprocess.CompletedProcess[Any]:
        if words[1:3] != ["-m", "ultracluster"]:
            if "deploy" in words:
                self.seen.append(self.on_cdk())
            return self._run(words, **more)
        with self.calls.open("a") as file:
            file.write(f"{' '.join(words[3:])}\n")
        return subprocess.CompletedProcess(words, self.statuses.get(words[3], 0))

    def logged(self) -> list[str]:
        text = self.calls.read_text() if self.calls.exists() else ""
        return text.replace(str(self.file), "ENV").replace(str(self.root / "cdk.out"), "OUT").splitlines()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """In an account without stacks."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    with mock_aws():
        yield Project(tmp_path, monkeypatch)


def ran(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


class Terminal:
    """sys of a command with a person before it."""

    executable = sys.executable

    class stdin:  # noqa: N801
        @staticmethod
        def isatty() -> bool:
            return True


def test_deploy_runs_every_part_in_order(project: Project) -> None:
    found = ran("deploy", "dev", "--yes")

    assert found.exit_code == 0, found.stderr
    assert project.logged() == OURS
    context = json.loads((project.root / "cdk.out" / "context.json").read_text())
    assert context["env"] == str(project.file) and context["own"] == 1
    assert context["aws:cdk:enable-path-metadata"] is True


@pytest.mark.parametrize(("part", "place"), [("preflight", 0), ("software", 1), ("diff", 2), ("wait", 4)])
def test_it_stops_at_the_part_that_fails_with_its_code(project: Project, part: str, place: int) -> None:
    project.statuses[part] = 3

    assert ran("deploy", "dev", "--yes").exit_code == 3
    assert project.logged() == OURS[: place + 1]


def test_a_part_that_fails_and_a_cdk_that_fails_end_it_with_1(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.statuses["preflight"] = 1
    assert ran("deploy", "dev", "--yes").exit_code == 1
    monkeypatch.setenv("FAILING", "destroy")
    monkeypatch.setenv("CODE", "1")
    assert ran("destroy", "dev", "--yes").exit_code == 1


def test_what_restarts_does_not_stop_it(project: Project) -> None:
    project.statuses["diff"] = 1

    assert ran("deploy", "dev", "--yes").exit_code == 0
    assert project.logged() == OURS


KEPT = {"Type": "AWS::SNS::Topic"}
LOST = {"Type": "AWS::Logs::LogGroup"}


@pytest.mark.parametrize("failing", ["", "deploy"])
@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (["--accept", "dev-storage/Lost"], [OPEN]),
        ([], [closed()]),
        (["--accept", "dev-storage/Other"], [closed()]),
        (["--stacks-only", "--accept", "dev-storage/Lost"], [closed()]),
    ],
)
def test_a_stack_policy_is_open_for_what_is_accepted_and_only_while_stacks_are_deployed(
    project: Project, monkeypatch: pytest.MonkeyPatch, words: list[str], seen: list[str], failing: str
) -> None:
    monkeypatch.setenv("FAILING", failing)
    project.writes("dev-storage", {"Resources": {"Kept": KEPT}})
    client = boto3.client("cloudformation", "us-west-2")
    body = json.dumps({"Resources": {"Kept": KEPT, "Lost": LOST}})
    client.create_stack(StackName="dev-storage", TemplateBody=body)
    client.set_stack_policy(StackName="dev-storage", StackPolicyBody=closed())
    project.on_cdk = lambda: client.get_stack_policy(StackName="dev-storage")["StackPolicyBody"]

    found = ran("deploy", "dev", "--yes", *words)

    assert found.exit_code == (4 if failing else 0), found.stderr
    assert project.seen == seen
    assert client.get_stack_policy(StackName="dev-storage")["StackPolicyBody"] == closed()
    assert ("the policy of dev-storage lets go" in found.stderr) == (seen == [OPEN])


@pytest.mark.parametrize(
    ("now", "then", "replaced"),
    [
        ({"TopicName": "a"}, {"TopicName": "b"}, "dev-storage/T"),
        ({"TopicName": "a"}, {}, "dev-storage/T"),
        ({"DisplayName": "a"}, {"DisplayName": "b"}, ""),
        ({"TopicName": "a"}, None, ""),
        (None, {"TopicName": "a"}, ""),
    ],
)
def test_failed_stacks_are_kept_only_where_nothing_is_replaced(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    now: dict[str, str] | None,
    then: dict[str, str] | None,
    replaced: str,
) -> None:
    """CloudFormation has no immutable updates without rollback: it would refuse after other stacks."""

    def template(properties: dict[str, str] | None) -> dict[str, Any]:
        topic = {"T": {"Type": "AWS::SNS::Topic", "Properties": properties}} if properties is not None else {}
        return {"Resources": {"Kept": KEPT, **topic}}

    monkeypatch.setenv("FAILING", "deploy")
    project.writes("dev-storage", template(then))
    boto3.client("cloudformation", "us-west-2").create_stack(
        StackName="dev-storage", TemplateBody=json.dumps(template(now))
    )

    found = ran("deploy", "dev", "--yes", "--keep-failed")

    if replaced:
        assert found.exit_code == 2 and project.logged() == OURS[:3]
        assert f"the update replaces {replaced}. CloudFormation" in found.stderr
    else:
        assert found.exit_code == 4 and project.logged()[3:] == [f"{OURS[3]} --no-rollback"]
        assert "To continue: `ultracluster deploy dev --keep-failed`" in found.stderr
        assert "`npx cdk rollback STACK`" in found.stderr


def test_a_failed_stack_ends_it_before_the_wait(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILING", "deploy")

    assert ran("deploy", "dev", "--yes").exit_code == 4
    assert project.logged() == OURS[:4]


def test_flags_reach_their_parts(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "open_account", lambda environment, profile: Account("us-west-2"))
    ran("deploy", "dev", "-y", "--accept-data-loss", "a/B", "--accept", "a/C", "--no-smoke", "--profile", "x")

    assert project.logged() == [
        "preflight ENV --bootstrap --profile x",
        "software lock --for ENV --profile x",
        "diff ENV --deployed --accept a/B --accept a/C --profile x",
        f"{OURS[3]} --profile x",
        "wait ENV --no-smoke --profile x",
    ]


def test_without_a_terminal_nothing_is_deployed_or_deleted_unasked(project: Project) -> None:
    found = ran("deploy", "dev", "--stacks-only")
    assert (
        found.exit_code == 2 and "`ultracluster deploy dev --yes` deploys without a question" in found.stderr
    )
    assert project.logged() == ["cdk diff --app OUT --security-only"]
    found = ran("destroy", "dev")
    assert found.exit_code == 2 and "`ultracluster destroy dev --yes` deletes" in found.stderr
    assert len(project.logged()) == 1


@pytest.mark.parametrize(("answer", "deployed"), [("y\n", True), ("n\n", False), ("", False)])
def test_a_person_is_asked_after_the_security_changes(
    project: Project, answer: str, deployed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "sys", Terminal())
    found = CliRunner().invoke(app, ["deploy", "dev", "--stacks-only"], input=answer)

    assert "Deploy dev?" in found.stderr
    assert project.logged() == ["cdk diff --app OUT --security-only", *([OURS[3]] if deployed else [])]
    assert found.exit_code == (0 if deployed else 2)


def test_destroy_is_recorded(project: Project) -> None:
    assert ran("destroy", "dev", "--yes").exit_code == 0
    assert project.logged() == ["cdk destroy --app OUT --all --force"]
    line = json.loads((project.file.parent / "dev.ledger.jsonl").read_text())
    assert (line["action"], line["id"], line["account"]) == ("destroy", "dev", ACCOUNT)
    assert ran("destroy", "dev", "--yes").exit_code == 0, "it can be repeated"


def test_a_destroy_that_fails_or_is_not_confirmed_is_not_recorded(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILING", "destroy")
    assert ran("destroy", "dev", "--yes").exit_code == 4
    monkeypatch.setattr(module, "sys", Terminal())
    found = CliRunner().invoke(app, ["destroy", "dev"], input="n\n")
    assert found.exit_code == 2
    assert f"Delete the stacks of dev in account {ACCOUNT}, us-west-2?" in found.stderr
    assert not (project.file.parent / "dev.ledger.jsonl").exists()


def test_an_open_intent_of_another_command_stops_a_destroy_and_its_own_does_not(project: Project) -> None:
    with exclusive(project.file, "nodes replace") as ledger:
        ledger.begin(_intent("nodes replace", "ultracluster nodes list dev --settle"))
    found = ran("destroy", "dev", "--yes")
    assert found.exit_code == 2 and "became of it first: ultracluster nodes list dev --settle" in found.stderr
    assert project.logged() == []
    with exclusive(project.file, "nodes settle") as ledger:
        ledger.begin(_intent("destroy", "ultracluster destroy dev"))
    found = ran("destroy", "dev", "--yes")
    assert found.exit_code == 0 and "did not end; continuing with the stacks that are left" in found.stderr


def _intent(action: str, settle: str) -> Intent:
    return Intent(
        action=action, subject="i-1", settle=settle, account=ACCOUNT, region="us-west-2", details={}
    )


@pytest.mark.parametrize(
    "command", [["synth", "dev"], ["deploy", "dev", "--yes"], ["destroy", "dev", "--yes"]]
)
def test_what_is_wrong_is_said_before_anything_runs(command: list[str], project: Project) -> None:
    project.file.write_text(project.file.read_text().replace("usw2-az2", "use1-az9"))
    found = ran(*command)
    assert (found.exit_code, project.logged()) == (2, [])
    assert "ENV003" in found.stderr and "Traceback" not in found.stderr
    found = ran(command[0], "none", *command[2:])
    assert found.exit_code == 2 and "none.yaml" in found.stderr


def test_errors_of_constructs_end_it(project: Project) -> None:
    """The CDK's command refuses to deploy for them; the library only writes them down."""
    project.app('{"/dev/Thing": [{"type": "aws:cdk:error", "data": "no such thing"}]}')
    for command in (["synth", "dev"], ["deploy", "dev", "--stacks-only", "--yes"]):
        found = ran(*command)
        assert found.exit_code == 2 and "/dev/Thing: no such thing" in found.stderr
    assert project.logged() == []


def test_metadata_can_be_switched_off_as_for_the_cdks_command(project: Project) -> None:
    (project.root / "cdk.json").write_text('{"versionReporting": false, "pathMetadata": false}')
    ran("synth", "dev", "--quiet")
    context = json.loads((project.root / "cdk.out" / "context.json").read_text())
    assert set(context) == {"aws:cdk:enable-asset-metadata", "aws:cdk:disable-version-reporting", "env"}


def test_a_deploy_runs_the_version_that_the_repository_pins(project: Project) -> None:
    pins = project.root / "requirements.txt"
    pins.write_text("ultracluster[cli]==0.0.9\n")
    found = ran("deploy", "dev", "--yes")
    assert found.exit_code == 2 and "requirements.txt pins ultracluster 0.0.9" in found.stderr
    assert project.logged() == []
    found = ran("synth", "dev", "--quiet")
    assert found.exit_code == 0 and "pins ultracluster 0.0.9" in found.stderr
    project.version("99.0.0")
    found = ran("synth", "dev")
    assert found.exit_code == 2 and "may not know its keys" in found.stderr


def test_outside_of_a_project_it_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = ran("synth", "dev")
    assert found.exit_code == 2 and "`ultracluster new DIR` makes one" in found.stderr


def test_without_node_it_says_how_to_get_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: object) -> None:
        raise synthesis.NoNodeError

    monkeypatch.setattr(synthesis, "with_node", none)
    found = ran("synth", "dev")
    assert found.exit_code == 2 and "pip install 'ultracluster[cli]'" in found.stderr
    assert project.logged() == []


@pytest.mark.parametrize("command", [["deploy"], ["deploy", "--stacks-only"], ["destroy"]])
def test_a_deploy_that_meets_another_is_refused(
    project: Project, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work = StackAtWork("dev-cluster", "UPDATE_IN_PROGRESS", datetime(2026, 11, 22, 18, 20, tzinfo=UTC))
    asked: list[list[str]] = []

    def states(account: Account, names: list[str]) -> list[StackAtWork]:
        asked.append(names)
        return [at_work]

    monkeypatch.setattr(module, "stacks_at_work", states)
    found = ran(command[0], "dev", "--yes", *command[1:])

    assert found.exit_code == 2 and project.logged() == []
    assert "dev-cluster is UPDATE_IN_PROGRESS since 2026-11-22 18:20 UTC" in found.stderr
    assert {"dev-network", "dev-cluster"} <= set(asked[0])


def test_stacks_of_another_orchestrator_are_not_replaced(project: Project) -> None:
    template = {"Resources": {"X": {"Type": "AWS::SNS::Topic"}}}
    outputs = {ORCHESTRATOR_OUTPUT: {"Value": "pcs"}}
    cloudformation = boto3.client("cloudformation", "us-west-2")
    text = json.dumps({**template, "Outputs": outputs})
    cloudformation.create_stack(StackName="dev-cluster", TemplateBody=text)

    found = ran("deploy", "dev", "--yes")

    assert found.exit_code == 2 and project.logged() == []
    assert "dev-cluster is a cluster of pcs, and dev.yaml has hyperpod-slurm" in found.stderr
    text = json.dumps({**template, "Outputs": {ORCHESTRATOR_OUTPUT: {"Value": "hyperpod-slurm"}}})
    cloudformation.update_stack(StackName="dev-cluster", TemplateBody=text)
    assert ran("deploy", "dev", "--yes").exit_code == 0


def test_a_second_deploy_on_this_machine_is_refused(project: Project) -> None:
    with only_one(project.root, "deploy of dev"):
        found = ran("deploy", "dev", "--yes")
        assert found.exit_code == 2 and project.logged() == []
        assert "the deploy of dev (process" in found.stderr and "from another checkout" in found.stderr
    assert ran("deploy", "dev", "--yes").exit_code == 0


def test_states_that_cannot_be_read_do_not_stop_a_deploy(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(account: Account, names: list[str]) -> list[StackAtWork]:
        raise AccountError("access denied: DescribeStacks")

    monkeypatch.setattr(module, "stacks_at_work", denied)
    found = ran("deploy", "dev", "--yes")

    assert found.exit_code == 0 and project.logged() == OURS
    assert "not known, whether another deploy is at work: access denied: DescribeStacks" in found.stderr


def test_the_lock_is_not_held_while_it_waits_for_nodes(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []
    real = project.run

    def run(words: list[str], **more: Any) -> subprocess.CompletedProcess[Any]:
        if words[1:4] == ["-m", "ultracluster", "wait"]:
            with only_one(project.root, "deploy of dev"):
                held.append(False)
        return real(words, **more)

    monkeypatch.setattr(subprocess, "run", run)
    assert ran("deploy", "dev", "--yes").exit_code == 0 and held == [False]


GROUP = "/aws/eks/hyperpod-eks-p5/cluster"


@pytest.fixture
def kubernetes(project: Project) -> Project:
    """The same with an environment that has an EKS control plane."""
    text = (ROOT / "environments" / "hyperpod-eks-p5.yaml").read_text()
    text = text.replace("111122223333", "123456789012")  # moto's account
    project.file = project.file.with_name("hyperpod-eks-p5.yaml")
    project.file.write_text(text)
    return project


def log_group(*streams: str) -> Any:
    logs = boto3.client("logs", "us-east-2")
    logs.create_log_group(logGroupName=GROUP)
    for one in streams:
        logs.create_log_stream(logGroupName=GROUP, logStreamName=one)
    return logs


@pytest.mark.parametrize(
    ("streams", "options", "left"),
    [([], [], False), (["kube-apiserver"], [], True), (["kube-apiserver"], ["--delete-logs"], False)],
    ids=["empty", "with logs", "with the user's word"],
)
def test_destroy_deletes_retained_logs_where_that_loses_nothing_or_was_asked(
    kubernetes: Project, streams: list[str], options: list[str], left: bool
) -> None:
    logs = log_group(*streams)

    done = ran("destroy", "hyperpod-eks-p5", "--yes", *options)

    assert done.exit_code == 0 and kubernetes.logged() == ["cdk destroy --app OUT --all --force"]
    assert bool(logs.describe_log_groups()["logGroups"]) is left
    assert (f"retained: the log group {GROUP}" in done.stderr) is left
    assert ("--delete-logs" in done.stderr) is left


def test_destroy_that_fails_deletes_no_logs(kubernetes: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = log_group("kube-apiserver")
    monkeypatch.setenv("FAILING", "destroy")

    assert ran("destroy", "hyperpod-eks-p5", "--yes", "--delete-logs").exit_code == 4
    assert logs.describe_log_groups()["logGroups"]


def test_a_first_deploy_that_would_meet_retained_logs_is_refused_before_anything_is_created(
    kubernetes: Project,
) -> None:
    log_group("kube-apiserver")

    done = ran("deploy", "hyperpod-eks-p5", "--yes")

    assert done.exit_code == 2 and kubernetes.logged() == []
    assert f"Nothing changed: the log group {GROUP}" in done.stderr
    assert "--delete-logs" in done.stderr and "--import-existing-resources" in done.stderr


def test_a_later_deploy_has_its_log_group(kubernetes: Project) -> None:
    log_group("kube-apiserver")
    template = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}
    boto3.client("cloudformation", "us-east-2").create_stack(
        StackName="hyperpod-eks-p5-foundation", TemplateBody=json.dumps(template)
    )

    assert ran("deploy", "hyperpod-eks-p5", "--yes", "--stacks-only").exit_code == 0
    assert any("cdk deploy" in one for one in kubernetes.logged())

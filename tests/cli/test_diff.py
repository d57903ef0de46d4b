"""`ultracluster diff` as a user meets it: what it compares, what it prints, and how it ends."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
import typer
from botocore.stub import Stubber
from project import ROOT
from templates import assembly
from typer.testing import CliRunner, Result

from ultracluster.account.aws import Account, Identity
from ultracluster.change import comparison as diff_comparison
from ultracluster.cli.diff import diff
from ultracluster.config import load
from ultracluster.config.environment import STACK_PARTS
from ultracluster.model.orchestrators import VERSION_OUTPUT
from ultracluster.project import synth as synthesis

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(diff)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def template(**properties: Any) -> dict[str, Any]:
    """A stack with a file system, a rule and a role."""
    return {
        "Resources": {
            "Lustre": {
                "Type": "AWS::FSx::FileSystem",
                "Properties": {"FileSystemType": "LUSTRE", "SecurityGroupIds": ["sg-1"], **properties},
            },
            "Role": {"Type": "AWS::IAM::Role", "Properties": {"Description": "nodes"}},
        }
    }


LOSS = template(SecurityGroupIds=["sg-2"])
LOSS["Resources"]["Role"]["Properties"] = {"Description": "our | nodes", "Tags": [{"Key": "a", "Value": "b"}]}
LOSS["Resources"]["Bucket"] = {"Type": "AWS::S3::Bucket"}


GUARDED, CLIENTS = template(), template()
GUARDED["Resources"]["Lustre"] |= {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
CLIENTS["Resources"]["Clients"] = {
    "Type": "AWS::EC2::SecurityGroupIngress",
    "Properties": {
        "GroupId": "sg-1",
        "IpProtocol": "tcp",
        "FromPort": 988,
        "ToPort": 988,
        "CidrIp": "10.0.0.0/8",
    },
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    old, new = tmp_path / "old.json", tmp_path / "storage.template.json"
    old.write_text(json.dumps(template()))
    new.write_text(json.dumps(LOSS))
    return str(old), str(new)


WHY = (
    "the list of security groups is set at creation: a new, empty file system is made. Keep the list, change "
    "rules inside the group. Lost: every file on the file system"
)


TEXT = (  # as on paper of 140 columns
    "old.json -> storage.template.json\n"
    "storage\n"
    "verdict    resource                      change                                  why\n"
    'DATA LOSS  Lustre                        SecurityGroupIds: ["sg-1"] -> ["sg-2"]  the list'
    " of security groups is set at creation: a new,\n"
    "           AWS::FSx::FileSystem                                                  empty"
    " file system is made. Keep the list, change rules\n"
    "                                                                                 inside"
    " the group. Lost: every file on the file system\n"
    "in place   Role                          Description: nodes -> our | nodes      "
    " CloudFormation updates it where it is\n"
    "           AWS::IAM::Role\n"
    "in place   1 new                                                                 1"
    " AWS::S3::Bucket\n"
    "1 DATA LOSS, 2 in place\n"
    "Data would be lost. To accept it, add:\n"
    "  --accept storage/Lustre\n"
)


def test_text(files: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("--templates", "old.json", "storage.template.json")

    assert result.exit_code == 3
    lines = [line for line in result.output.splitlines() if line]
    assert lines == TEXT.splitlines()


def test_markdown(files: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("--templates", "old.json", "storage.template.json", "--markdown")

    assert result.output == (
        "### Blast radius: old.json -> storage.template.json\n"
        "\n"
        "| verdict | resource | change | why |\n"
        "|---|---|---|---|\n"
        f'| **DATA LOSS** | storage/Lustre | SecurityGroupIds: ["sg-1"] -> ["sg-2"] | {WHY} |\n'
        "\n"
        "<details><summary>2 harmless</summary>\n"
        "\n"
        "| verdict | resource | change | why |\n"
        "|---|---|---|---|\n"
        "| in place | storage/Role | Description: nodes -> our \\| nodes | "
        "CloudFormation updates it where it is |\n"
        "| in place | storage/1 new |  | 1 AWS::S3::Bucket |\n"
        "\n"
        "</details>\n"
        "\n"
        "1 DATA LOSS, 2 in place  \n"
        "Data would be lost. To accept it, add:  \n"
        "  --accept storage/Lustre\n"
    )


def test_json(files: tuple[str, str]) -> None:
    result = run("--templates", *files, "--json")
    document = json.loads(result.output)

    assert (document["verdict"], document["exit_code"], result.exit_code) == ("DATA LOSS", 3, 3)
    assert document["data_loss_not_accepted"] == ["storage/Lustre"]
    assert document["changes"][0] == {
        "stack": "storage",
        "logical_id": "Lustre",
        "type": "AWS::FSx::FileSystem",
        "path": "SecurityGroupIds",
        "verdict": "DATA LOSS",
        "refused": False,
        "order": [],
        "replaces": True,
        "accepted": False,
        "reason": WHY,
        "source": "CloudFormation schema AWS::FSx::FileSystem: create-only (2026-11-20)",
        "before": ["sg-1"],
        "after": ["sg-2"],
    }


@pytest.mark.parametrize(
    ("old", "new", "arguments", "code"),
    [
        (template(), template(), [], 0),
        (template(StorageCapacity=1200), template(StorageCapacity=2400), [], 0),
        (template(), template(Tags=[{"Key": "a", "Value": "b"}]), [], 0),
        (template(StorageCapacity=2400), template(StorageCapacity=1200), [], 1),
        (template(), LOSS, [], 3),
        (template(), LOSS, ["--accept-data-loss", "new/Other"], 3),
        (template(), LOSS, ["--accept-data-loss", "new/Lustre"], 1),
        (template(), LOSS, ["--accept", "new/Lustre"], 1),
        (GUARDED, template(), [], 3),
        (GUARDED, template(), ["--accept", "new/Lustre"], 1),
        (CLIENTS, template(), [], 1),
        (template(), CLIENTS, [], 0),
        (template(), LOSS, ["--accept-data-loss", "Lustre"], 2),
        (template(), LOSS, ["--json", "--markdown"], 2),
    ],
)
def test_exit_codes(old: Any, new: Any, arguments: list[str], code: int, tmp_path: Path) -> None:
    for name, value in (("old", old), ("new", new)):
        (tmp_path / f"{name}.json").write_text(json.dumps(value))

    assert run("--templates", f"{tmp_path}/old.json", f"{tmp_path}/new.json", *arguments).exit_code == code


def test_an_acceptance_of_nothing_is_told(files: tuple[str, str]) -> None:
    result = run("--templates", files[1], files[1], "--accept-data-loss", "s/R")

    assert result.exit_code == 0
    assert "--accept s/R: no data is lost there, and no data protection is removed" in result.stderr
    assert "nothing changes" in result.stdout


def test_an_accepted_loss_is_marked(files: tuple[str, str]) -> None:
    assert "(accepted)" in run("--templates", *files, "--accept-data-loss", "storage/Lustre").output


def test_a_guard_that_goes_is_named_with_its_way_to_accept_it(tmp_path: Path) -> None:
    for name, one in (("old", GUARDED), ("new", template())):
        (tmp_path / f"{name}.json").write_text(json.dumps(one))
    files = ("--templates", f"{tmp_path}/old.json", f"{tmp_path}/new.json")
    found = run(*files)
    document = json.loads(run(*files, "--json").output)

    assert (
        "Data would lose a guard, or be left behind. To accept it, add:\n  --accept new/Lustre"
        in found.output
    )
    assert document["verdict"] == "DATA AT RISK" and document["data_loss_not_accepted"] == []
    assert document["data_at_risk_not_accepted"] == ["new/Lustre"]
    assert "**DATA AT RISK**" in run(*files, "--markdown").output


def test_a_guard_that_goes_is_not_hidden_by_a_replacement(tmp_path: Path) -> None:
    moved = template(SecurityGroupIds=["sg-2"])
    moved["Resources"]["Lustre"] |= {"DeletionPolicy": "Delete", "UpdateReplacePolicy": "Retain"}
    for name, one in (("old", GUARDED), ("new", moved)):
        (tmp_path / f"{name}.json").write_text(json.dumps(one))
    found = run("--templates", f"{tmp_path}/old.json", f"{tmp_path}/new.json")

    assert "the guard is taken away" in found.output and "the old one is retained" in " ".join(
        found.output.split()
    )


def test_termination_protection_is_read_from_the_manifest(tmp_path: Path) -> None:
    for name, protected in (("old", {"terminationProtection": True}), ("new", {})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "dev-net.template.json").write_text(json.dumps(template()))
        stack = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "x", **protected}}
        (tmp_path / name / "manifest.json").write_text(json.dumps({"artifacts": {"dev-net": stack, "a": 1}}))
    old, new = str(tmp_path / "old"), str(tmp_path / "new")

    lost = run("--templates", old, new)
    assert lost.exit_code == 3 and "--accept dev-net/TerminationProtection" in lost.output
    assert run("--templates", old, new, "--accept", "dev-net/TerminationProtection").exit_code == 1
    assert run("--templates", new, old).exit_code == 0
    (tmp_path / "old" / "manifest.json").write_text("no JSON")
    assert run("--templates", old, new).exit_code == 0


def test_folders_and_yaml_with_short_functions(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    (tmp_path / "old" / "dev-net.template.json").write_text(json.dumps(template()))
    (tmp_path / "new" / "prod-net.template.json").write_text(json.dumps(template()))
    assert run("--templates", str(tmp_path / "old"), str(tmp_path / "new")).exit_code == 0

    yaml = tmp_path / "a.yaml"
    yaml.write_text(
        "Resources:\n  R:\n    Type: AWS::EC2::Subnet\n    Properties: {VpcId: !Ref Vpc, X: !GetAtt A.B.C}\n"
    )
    same = tmp_path / "b.json"
    properties = {"VpcId": {"Ref": "Vpc"}, "X": {"Fn::GetAtt": ["A", "B.C"]}}
    same.write_text(json.dumps({"Resources": {"R": {"Type": "AWS::EC2::Subnet", "Properties": properties}}}))
    assert "nothing changes" in run("--templates", str(yaml), str(same)).output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Pass what to compare"),
        (["dev"], "Pass what to compare"),
        (["dev", "prod", "--deployed"], "Pass what to compare"),
        (["dev", "prod", "trainium"], "Pass what to compare"),
        (["dev", "--against", "HEAD", "--deployed"], "Pass what to compare"),
        (["--templates", "no-such-file", "x"], "No such file"),
        (["--templates", "README.md", "README.md"], "README.md is not a template"),
        (["--templates", "docs", "docs"], "holds no *.template.json"),
        (["dev", "no-such-environment"], "no-such-environment.yaml"),
        (["dev", "--against", "no-such-revision"], "git knows no such revision"),
    ],
)
def test_bad_input(arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = run(*arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr and "Traceback" not in result.stderr


def test_outside_of_a_checkout_it_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("dev", "prod")

    assert result.exit_code == 2
    assert "have no app.py" in result.stderr and "--templates OLD NEW" in result.stderr


# ------------------------------------------------------------------------------------- real environments


def test_two_files_outside_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `validate` takes them: no app.py, no cdk.json, and nothing of the folder is imported."""
    text = (ROOT / "environments" / "dev.yaml").read_text()
    (tmp_path / "old.yaml").write_text(text)
    (tmp_path / "new.yaml").write_text(
        text.replace("throughput_mbps_per_tib: 250", "throughput_mbps_per_tib: 125")
    )
    (tmp_path / "json.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)
    result = run("old.yaml", "new.yaml", "--json")

    assert result.exit_code == 3, result.output
    lost = {
        change["path"] for change in json.loads(result.stdout)["changes"] if change["verdict"] == "DATA LOSS"
    }
    assert lost == {"LustreConfiguration.PerUnitStorageThroughput"}
    assert sorted(one.name for one in tmp_path.iterdir()) == ["json.py", "new.yaml", "old.yaml"]


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def test_a_revision_has_its_own_locks(tmp_path: Path) -> None:
    """Else the scripts of then would be hashed with the digests of today."""
    from ultracluster.project.revisions import unpack

    folder = tmp_path / "checkout" / "environments"
    folder.mkdir(parents=True)
    (folder / "dev.yaml").write_text("then")
    (folder / "dev.lock").write_text("then")
    (folder / "10_step.sh").write_text("then")
    git(tmp_path / "checkout", "init", "--quiet")
    git(tmp_path / "checkout", "add", ".")
    git(tmp_path / "checkout", "commit", "--quiet", "-m", "first")
    (folder / "dev.lock").write_text("now")
    unpack(tmp_path / "checkout", "HEAD", tmp_path / "then")
    assert [
        (one.name, one.read_text()) for one in sorted((tmp_path / "then" / "environments").iterdir())
    ] == [
        ("10_step.sh", "then"),
        ("dev.lock", "then"),
        ("dev.yaml", "then"),
    ]


def test_a_revision_of_the_environment_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way: git, two runs of the app, and the file system that would be lost."""
    for name in ("app.py", "cdk.json", "environments/dev.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    file = tmp_path / "environments" / "dev.yaml"
    text = file.read_text()
    assert "throughput_mbps_per_tib: 250" in text
    file.write_text(text.replace("throughput_mbps_per_tib: 250", "throughput_mbps_per_tib: 125"))
    (tmp_path / "notes" / "of").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "notes" / "of")  # a folder below will do

    result = run("dev", "--against", "HEAD", "--json")

    document = json.loads(result.stdout)
    lost = [change for change in document["changes"] if change["verdict"] == "DATA LOSS"]
    assert [(c["stack"], c["path"]) for c in lost] == [
        ("dev-storage", "LustreConfiguration.PerUnitStorageThroughput")
    ]
    assert result.exit_code == 3
    assert document["before"].startswith("dev at HEAD (") and document["after"] == "dev"
    assert "with the code that runs here" in document["notes"][0]
    missing = run("environments/none.yaml", "--against", "HEAD")
    assert missing.exit_code == 2 and "none.yaml" in missing.stderr


def test_stacks_of_other_names_are_other_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_app(
        root: Path, file: Path, out: Path, *, further: Sequence[tuple[str, str]] = ()
    ) -> subprocess.CompletedProcess[str]:
        """As the app does it, in this process."""
        for asked, folder in ((file, out), *further):
            shutil.copytree(assembly(load(Path(asked)).environment, checked=False).folder, folder)
        return subprocess.CompletedProcess([], 0, "", "")

    monkeypatch.setattr(synthesis, "run_app", run_app)
    for name in ("app.py", "cdk.json", "environments/dev.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    file = tmp_path / "environments" / "dev.yaml"
    file.write_text(f"{file.read_text()}governance: {{stack_prefix: team-}}\n")
    monkeypatch.chdir(tmp_path)
    result = run("dev", "--against", "HEAD", "--json")

    document = json.loads(result.stdout)
    notes = document["notes"]
    assert any("dev-cluster became team-dev-cluster" in note for note in notes), notes
    assert result.exit_code == 3
    assert set(document["data_at_risk_not_accepted"]) >= {"dev-storage/data", "dev-buckets/data"}
    left = {c["stack"]: c["reason"] for c in document["changes"] if c["path"] == "data"}
    assert "is called team-dev now, which is a second set of stacks" in left["dev-storage"]
    named = [word for one in document["data_at_risk_not_accepted"] for word in ("--accept", one)]
    assert run("dev", "--against", "HEAD", *named).exit_code == 1


def test_an_environment_that_breaks_a_rule_is_refused_with_the_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "environments" / "dev.yaml").read_text()
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(text.replace("usw2-az2", "use1-az9"))
    assert wrong.read_text() != text
    result = run(str(wrong), str(wrong))

    assert result.exit_code == 2
    assert "cannot be synthesised" in result.stderr and "ENV003" in result.stderr
    assert "Traceback" not in result.stderr


# ---------------------------------------------------------------------------------------- the account

TEMPLATES = {f"dev-{name}": template() for name in ("network", "storage", "cluster")}


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Stubber:
    """CloudFormation with answers to come; the requests are checked against botocore's model."""
    client = boto3.client(
        "cloudformation",
        region_name="us-west-2",
        aws_access_key_id="x",
        aws_secret_access_key="x",  # noqa: S106
    )
    stubber = Stubber(client)
    stubber.activate()
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(Account, "client", lambda self, service, region=None: client)
    monkeypatch.setattr(Account, "identity", lambda self: Identity("111122223333", "arn:aws:iam::1:user/x"))
    monkeypatch.setattr(
        diff_comparison, "synthesise", lambda root, files, scratch: [json.loads(json.dumps(TEMPLATES))]
    )
    return stubber


def answer(stubber: Stubber, name: str, body: Any) -> None:
    asked = {"StackName": name, "TemplateStage": "Original"}
    text = body if isinstance(body, str) else json.dumps(body)
    stubber.add_response("get_template", {"TemplateBody": text}, asked)


def absent(stubber: Stubber, *names: str) -> None:
    for name in names:
        stubber.add_client_error(
            "get_template",
            "ValidationError",
            f"Stack with id {name} does not exist",
            expected_params={"StackName": name, "TemplateStage": "Original"},
        )


def left_over(stubber: Stubber, *names: str) -> None:
    """The stacks that `dev` may have had, in their order: these are there, the others are not."""
    for part in STACK_PARTS:
        if (name := f"dev-{part}") not in TEMPLATES:
            answer(stubber, name, template()) if name in names else absent(stubber, name)


def test_deployed(account: Stubber) -> None:
    answer(account, "dev-network", template())
    answer(account, "dev-storage", template(SecurityGroupIds=["sg-0"]))
    absent(account, "dev-cluster")
    left_over(account, "dev-control-plane", "dev-system", "dev-workloads")
    result = run("dev", "--deployed", "--json")

    document = json.loads(result.stdout)
    assert document["data_loss_not_accepted"] == ["dev-storage/Lustre"] and result.exit_code == 3
    assert document["notes"] == ["dev-cluster is not deployed yet: everything in it is new"]
    left = {c["stack"]: c["reason"] for c in document["changes"] if not c["logical_id"]}
    assert list(left) == ["dev-control-plane", "dev-system", "dev-workloads"]
    assert all("no longer part of the environment" in reason for reason in left.values())
    assert {c["stack"] for c in document["changes"]} == {"dev-storage", "dev-cluster", *left}
    account.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("version", "said"), [("9.9.9", []), ("9.9.8", ["9.9.8, and 9.9.9 runs"]), ("", ["without a number"])]
)
def test_an_environment_of_another_version_is_one_note(
    account: Stubber, monkeypatch: pytest.MonkeyPatch, version: str, said: list[str]
) -> None:
    def by(number: str) -> dict[str, Any]:
        outputs = {"Outputs": {VERSION_OUTPUT: {"Value": number}}} if number else {}
        return {**TEMPLATES["dev-cluster"], **outputs}

    wanted = {**TEMPLATES, "dev-cluster": by("9.9.9")}
    monkeypatch.setattr(diff_comparison, "synthesise", lambda root, files, scratch: [wanted])
    for name in wanted:
        answer(account, name, by(version) if name == "dev-cluster" else TEMPLATES[name])
    left_over(account)
    result = run("dev", "--deployed", "--json")

    notes = json.loads(result.stdout)["notes"]
    assert len(notes) == len(said) and all(one in note for one, note in zip(said, notes, strict=True))


@pytest.mark.parametrize("prefix", ["", "team-"])
@pytest.mark.parametrize(
    "part", [part for part in STACK_PARTS if part not in ("network", "storage", "cluster")]
)
def test_a_left_over_stack_of_any_kind_is_found(
    account: Stubber, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, part: str, prefix: str
) -> None:
    text = (ROOT / "environments" / "dev.yaml").read_text()
    for name in ("app.py", "cdk.json"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "environments").mkdir()
    more = f"governance: {{stack_prefix: {prefix}}}\n" if prefix else ""
    (tmp_path / "environments" / "dev.yaml").write_text(text + more)
    monkeypatch.chdir(tmp_path)
    made = {f"{prefix}{name}": one for name, one in TEMPLATES.items()}
    monkeypatch.setattr(diff_comparison, "synthesise", lambda root, files, scratch: [made])
    for name in made:
        answer(account, name, template())
    for one in STACK_PARTS:
        if (name := f"{prefix}dev-{one}") not in made:
            answer(account, name, template()) if one == part else absent(account, name)
    result = run("dev", "--deployed", "--json")

    (left,) = json.loads(result.stdout)["changes"]
    assert left["stack"] == f"{prefix}dev-{part}"
    assert "no longer part of the environment" in left["reason"] and "1 hold data" in left["reason"]
    account.assert_no_pending_responses()


def test_termination_protection_that_a_deploy_would_take_away(
    account: Stubber, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {name: {**one, "TerminationProtection": False} for name, one in TEMPLATES.items()}
    monkeypatch.setattr(diff_comparison, "synthesise", lambda root, files, scratch: [wanted])
    for name in wanted:
        answer(account, name, template())
    left_over(account)
    for name in wanted:
        if name == "dev-cluster":
            account.add_client_error("describe_stacks", "AccessDenied", "no")
        else:
            stack = {
                "StackName": name,
                "StackStatus": "CREATE_COMPLETE",
                "CreationTime": 0,
                "EnableTerminationProtection": name == "dev-storage",
            }
            account.add_response("describe_stacks", {"Stacks": [stack]}, {"StackName": name})
    result = run("dev", "--deployed", "--json")

    document = json.loads(result.stdout)
    assert document["data_at_risk_not_accepted"] == ["dev-storage/TerminationProtection"]
    assert any(
        "whether dev-cluster would lose termination protection is unknown" in one for one in document["notes"]
    )
    assert result.exit_code == 3


def test_stacks_under_the_name_that_the_file_had_before(
    account: Stubber, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever renames an environment in its file would get a second one, and leave the first behind."""
    for name in ("app.py", "cdk.json", "environments/dev.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    file = tmp_path / "environments" / "dev.yaml"
    for name in ("next", "last"):
        file.write_text(re.sub("^name: .*", f"name: {name}", file.read_text(), flags=re.MULTILINE))
        git(tmp_path, "commit", "--quiet", "-a", "-m", name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        diff_comparison, "synthesise", lambda root, files, scratch: [{"last-storage": template()}]
    )
    absent(account, "last-storage", *(f"last-{part}" for part in STACK_PARTS if part != "storage"))
    for old in ("next", "dev"):
        for part in STACK_PARTS:
            here = (old, part) == ("dev", "storage")
            answer(account, f"{old}-{part}", template()) if here else absent(account, f"{old}-{part}")
    result = run("dev", "--deployed", "--json")

    document = json.loads(result.stdout)
    assert document["data_at_risk_not_accepted"] == ["dev-storage/data"] and result.exit_code == 3
    assert any("the environment is called last now" in c["reason"] for c in document["changes"])
    account.assert_no_pending_responses()


def test_two_environments_are_not_one_that_becomes_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    from ultracluster.config import load

    prod = load(ROOT / "environments" / "prod.yaml").environment
    notes = diff_comparison.in_truth(prod, prod.model_copy(update={"name": "prod2"}))

    assert notes[0].startswith("in truth nothing of prod changes: prod2 would be a second set of stacks")
    assert "a new and empty bucket, not with that of prod" in notes[1]
    assert "training-plan/foundation-model-q1: there must be room for both" in notes[2]


def test_every_stack_that_an_environment_of_the_name_can_have_had_is_looked_for() -> None:
    """Whoever moves from EKS is told that its control plane and nodes still run."""
    from ultracluster.config import load

    made = {
        stack.removeprefix(f"{file.stem}-")
        for file in (ROOT / "environments").glob("*.yaml")
        for stack in load(file).environment.stack_names
    }
    possible = load(ROOT / "environments" / "dev.yaml").environment.possible_stack_names
    assert {stack.removeprefix("dev-") for stack in possible} >= made
    assert {"dev-control-plane", "dev-system", "dev-workloads"} <= set(possible)


def test_question_marks_of_cloudformation_are_no_change(
    account: Stubber, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {name: template(Tags=[{"Key": "owner", "Value": "Jürgen – ☃"}]) for name in TEMPLATES}
    monkeypatch.setattr(diff_comparison, "synthesise", lambda root, files, scratch: [wanted])
    for name in wanted:
        answer(account, name, template(Tags=[{"Key": "owner", "Value": "J?rgen ? ?"}]))
    left_over(account)
    result = run("dev", "--deployed")

    assert result.exit_code == 0 and "nothing changes" in result.output


def test_a_stack_that_may_not_be_read_leaves_the_others_readable(account: Stubber) -> None:
    answer(account, "dev-network", template())
    account.add_client_error(
        "get_template", "AccessDenied", "not authorized to perform: cloudformation:GetTemplate"
    )
    answer(account, "dev-cluster", "no template")
    left_over(account)
    result = run("dev", "--deployed")

    assert result.exit_code == 2
    assert "could not be read: dev-storage: access denied: cloudformation:GetTemplate" in result.output
    assert "could not be read: dev-cluster: its template cannot be read: it has no Resources" in result.output
    assert "nothing changes" in result.output


def test_an_expired_token_is_one_line(account: Stubber) -> None:
    for _ in STACK_PARTS:
        account.add_client_error("get_template", "ExpiredToken", "The security token is expired")
    result = run("dev", "--deployed")

    assert result.exit_code == 2
    # once for each stack of the file, once for all that may be left over
    assert result.output.count("the credentials have expired") == 4
    told = " ".join(result.output.split())
    assert "dev-system, dev-workloads, dev-protection, dev-alarms still run from an earlier" in told


def test_without_credentials_it_says_so_before_the_synth(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(
        diff_comparison, "synthesise", lambda root, files, scratch: pytest.fail("synthesised")
    )
    result = run("dev", "--deployed")

    assert result.exit_code == 2
    assert "no AWS credentials" in result.stderr


def test_the_wrong_account_is_refused(account: Stubber, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Account, "identity", lambda self: Identity("999999999999", "arn:aws:iam::9:user/x"))
    result = run("prod", "--deployed")

    assert result.exit_code == 2 and "belongs to account 111122223333" in result.stderr


def test_the_command_does_not_import_the_cdk() -> None:
    code = (
        "import sys, ultracluster.cli.diff, ultracluster.change.comparison, ultracluster.cli.diff_output\n"
        "print('aws_cdk' in sys.modules, 'boto3' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "False"]

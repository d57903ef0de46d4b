"""The page of a comparison: its verdicts are those of `diff --json`, and a browser shows it well."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from browser import Browser, chromium
from page_judge import faults
from typer.testing import CliRunner, Result

from ultracluster.cli.diff import diff

LUSTRE = {
    "Type": "AWS::FSx::FileSystem",
    "Properties": {"FileSystemType": "LUSTRE", "SecurityGroupIds": ["sg-1"]},
}
KEPT = LUSTRE | {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
ROLE = {"Type": "AWS::IAM::Role", "Properties": {"Description": "nodes"}}
CLIENTS = {
    "Type": "AWS::EC2::SecurityGroupIngress",
    "Properties": {"GroupId": "sg-1", "IpProtocol": "tcp", "FromPort": 988, "ToPort": 988},
}


def moved(resource: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return resource | {"Properties": resource["Properties"] | properties}


BEFORE = {
    "storage": {"Lustre": LUSTRE, "Role": ROLE},
    "data": {"Lustre": KEPT},
    "network": {"Clients": CLIENTS},
}
AFTER = {
    "storage": {
        "Lustre": moved(LUSTRE, SecurityGroupIds=["sg-2"]),
        "Role": moved(ROLE, Description="<script>alert(1)</script>"),
        "Bucket": {"Type": "AWS::S3::Bucket"},
    },
    "data": {"Lustre": LUSTRE},
    "network": {},
}


def written(folder: Path, stacks: dict[str, Any]) -> Path:
    folder.mkdir()
    for name, resources in stacks.items():
        (folder / f"{name}.template.json").write_text(json.dumps({"Resources": resources}))
    return folder


def run(folder: Path, before: Any, after: Any, *arguments: str) -> tuple[Result, Path]:
    app = typer.Typer()
    app.command()(diff)
    old, new = written(folder / "before", before), written(folder / "after", after)
    page = folder / "diff.html"
    given = ["--templates", str(old), str(new), "--html", str(page), "--json", *arguments]
    return CliRunner().invoke(app, given), page


@pytest.mark.parametrize(
    ("after", "arguments", "says"),
    [
        (BEFORE, (), "Running jobs are not disturbed"),
        (AFTER, (), "nobody has accepted that"),
        (AFTER, ("--accept", "storage/Lustre", "--accept", "data/Lustre"), "Running jobs are disturbed"),
    ],
)
def test_it_says_what_json_says(tmp_path: Path, after: Any, arguments: tuple[str, ...], says: str) -> None:
    result, page = run(tmp_path, BEFORE, after, *arguments)
    document, text = json.loads(result.stdout), page.read_text(encoding="utf-8")

    worst: dict[tuple[str, str], str] = {}
    for change in document["changes"]:  # worst first
        worst.setdefault((change["stack"], change["logical_id"]), change["verdict"])
    shown = dict(re.findall(r'<data value="\d+" data-verdict="([^"]+)">(\d+)</data>', text))
    assert shown == {one: str(list(worst.values()).count(one)) for one in set(worst.values())}
    assert says in text
    assert f"exit code {document['exit_code']}" in text
    for lost in document["data_loss_not_accepted"] + document["data_at_risk_not_accepted"]:
        assert f"<pre>--accept {lost}</pre>" in text
    assert text.count("<pre>") == len(
        document["data_loss_not_accepted"] + document["data_at_risk_not_accepted"]
    )
    assert "<script" not in text


def test_resources_that_go_the_same_way_share_a_line(tmp_path: Path) -> None:
    other = {"network": {"Clients": CLIENTS, "MoreClients": CLIENTS, "Group": LUSTRE}}
    _, page = run(tmp_path, other, {"network": {"Group": moved(LUSTRE, SecurityGroupIds=["sg-2"])}})
    lines = re.findall(r"<tr>.*?</tr>", page.read_text(encoding="utf-8"), re.DOTALL)

    together = [line for line in lines if "<b>Clients</b>" in line]
    assert len(together) == 1
    assert "<b>MoreClients</b>" in together[0]
    assert "<b>Group</b>" not in together[0]


def test_a_file_that_cannot_be_is_refused_before_anything_is_compared(tmp_path: Path) -> None:
    result, _ = run(tmp_path, {}, {}, "--html", str(tmp_path / "diff.pdf"))

    assert result.exit_code == 2
    assert "ends in .html" in result.stderr


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser(chromium()) as opened:
        yield opened


@pytest.mark.slow
def test_it_is_readable(browser: Browser, tmp_path: Path) -> None:
    _, page = run(tmp_path, BEFORE, AFTER)

    assert list(faults(browser, page, least=40)) == []

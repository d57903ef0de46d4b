"""Files in any state: what cannot be read is told in one line each, with its place; nothing is written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from import_samples import FOLDER
from typer.testing import CliRunner, Result

from ultracluster.cli.main import app

GOOD = FOLDER / "samples" / "pcluster-capacity-block.yaml"
STATES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("a.yaml", b"", "the file is empty"),
    "blank": ("a.yaml", b"# nothing\n", "the file is empty"),
    "binary": ("a.yaml", b"\x00\x01\x02\xff", "not UTF-8"),
    "control": ("a.yaml", b"Region: \x07\n", "a control character"),
    "a list": ("a.yaml", b"- a\n- b\n", "must hold keys and values"),
    "a word": ("a.yaml", b"hello", "must hold keys and values"),
    "cut JSON": ("a.json", b'{"ClusterName": "a", "InstanceGroups": [', "a.json:1:41: not JSON"),
    "JSON with a comment": ("a.json", b'{\n  // mine\n  "a": 1}', "a.json:2:3: not JSON"),
    "a list of JSON": ("a.json", b"[1]", "must hold keys and values"),
    "deep JSON": ("a.json", b'{"a":' * 60 + b"1" + b"}" * 60, "too deep"),
    "a number without end": ("a.json", b'{"a": ' + b"9" * 5000 + b"}", "a number has too many digits"),
    "very deep JSON": ("a.json", b"[" * 100_000, "too deep"),
    "deep YAML": ("a.yaml", b"a: " + b"[" * 50 + b"]" * 50, "more than a configuration"),
    "aliases without end": (
        "a.yaml",
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(
            b"%c: &%c [%s]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 9)) for n in range(9)
        ),
        "more than a configuration",
    ),
    "open quote": ("a.yaml", b'Region: "us-east-1\nImage: {', "not YAML"),
    "a tag": ("a.yaml", b"Region: us-east-1\nHeadNode: !Sub ${Type}\n", "a.yaml:2:"),
    "a template of Jinja": ("a.yaml", b"Region: {{ region }}\nHeadNode: {}\n", "a.yaml:1:"),
    "a key twice": ("a.yaml", b"Region: a\nRegion: b\nHeadNode: {}\n", "a.yaml:2:1"),
    "two documents": ("a.yaml", b"HeadNode: {}\n---\nHeadNode: {}\n", "a second YAML document"),
    "version 2": (
        "a.ini",
        b"[global]\ncluster_template = default\n[cluster default]\n",
        "pcluster3-config-converter",
    ),
    "CloudFormation": ("a.yaml", b"Resources:\n  A: {Type: x}\n", "a template of CloudFormation"),
    "an environment": ("a.yaml", b"name: a\nnode_groups: {}\n", "an environment already"),
    "of nobody": ("a.yaml", b"hello: world\n", "no tool that is known"),
    "too large": ("a.yaml", b"HeadNode: {}\n#" + b"x" * (300 << 10), "more than"),
    "only a beginning": ("a.yaml", b"HeadNode:\n", "HeadNode.InstanceType: is missing"),
    "placeholders of Terraform": (
        "a.json",
        b'{"InstanceGroups": [{"InstanceGroupName": "a", "InstanceCount": "${var.n}"}]}',
        "is the placeholder ${var.n}",
    ),
    "placeholders of envsubst": (
        "a.yaml",
        b"HeadNode: {}\nRegion: ${REGION}\n",
        "envsubst",
    ),
    "placeholders of Jinja": ("a.yaml", b"HeadNode:\n  - {{ head }}\n", "a.yaml:2: is a template of Jinja"),
    "blocks of Jinja": (
        "a.yaml",
        b"HeadNode:\n{% if gpu %}\n  a: 1\n{% endif %}\n",
        "a.yaml:2: is a template of Jinja",
    ),
    "quoted Jinja": (
        "a.yaml",
        b'HeadNode: {InstanceType: "{{ head }}"}\n',
        "HeadNode.InstanceType: is the placeholder {{ head }}",
    ),
    "a template of Go": ("a.yaml", b"HeadNode:\n  {{- if .Values.a }}\n  a: 1\n", "helm template"),
    "ERB": ("a.yaml", b"HeadNode:\n<% if gpu %>\n  a: [\n", "a.yaml:2: is a template of ERB"),
    "Terraform": ("main.tf", b'resource "a" "b" {\n  c = 1\n}\n', "main.tf:1: is Terraform (HCL)"),
    "a module of Terraform": (
        "a.tf",
        b'# eks\n\nmodule "eks" {\n  source = "x"\n  groups = {\n    a = { b = [1] }\n  }\n}\n',
        "a.tf:3: is Terraform (HCL)",
    ),
    "shell in JSON": (
        "a.json",
        b'{"InstanceGroups": [\n{"InstanceCount": ${ACCEL_COUNT}}]}',
        "a.json:2: is a template for the shell",
    ),
    "a variable in JSON": ("a.json", b'{"InstanceGroups": [{"InstanceCount": $N}]}', "envsubst"),
    "numbers in JSON": (
        "a.json",
        b'{"InstanceGroups": [{"InstanceCount": ${1:n}}]}',
        "numbered placeholders",
    ),
    "a template with a tag for parameters": (
        "a.yaml",
        b"AWSTemplateFormatVersion: 2010-09-09\nParameters: !Ref x\n",
        "template of CloudFormation",
    ),
    "a template with odd parameters": (
        "a.yaml",
        b"Resources: {}\nParameters:\n  HyperPodClusterName: 5\n  InstanceGroupSettings1: {Default: 7}\n",
        "no parameter has a group",
    ),
    "parameters without values": (
        "a.json",
        b'[{"ParameterKey": "HyperPodClusterName"}, {"ParameterKey": "InstanceGroupSettings1"}]',
        "no parameter has a group",
    ),
    "groups that are none": (
        "a.json",
        b'{"Parameters": {"HyperPodClusterName": 1, "InstanceGroupSettings1": "[null, [null]]"}}',
        "must hold groups",
    ),
    "parameters of another stack": ("a.json", b'[{"ParameterKey": "a", "ParameterValue": "b"}]', "not known"),
    "a network alone": ("a.json", b'{"SecurityGroupIds": [], "Subnets": []}', "no cluster by itself"),
    "a cluster whose parameters are missing": (
        "a.yaml",
        (
            b"Parameters:\n  N: {Type: Number}\nResources:\n  C:\n    Type: AWS::SageMaker::Cluster\n"
            b"    Properties:\n      InstanceGroups: [{InstanceCount: !Ref N}]\n"
        ),
        "Resources.C.Properties.InstanceGroups[0].InstanceCount: needs the parameter N",
    ),
    "two clusters in a template": (
        "a.yaml",
        b"Resources:\n  A: {Type: AWS::SageMaker::Cluster}\n  B: {Type: AWS::SageMaker::Cluster}\n",
        "A, B: each is a cluster of its own",
    ),
    "aliases without end in a template": (
        "a.yaml",
        b"Resources:\n  C:\n    Type: AWS::SageMaker::Cluster\n    x: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(
            b"    %c: &%c [%s]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 9)) for n in range(9)
        ),
        "more than a configuration",
    ),
    "people alone": ("a.yaml", b"users: [{username: a, uid: 1}]\n", "no cluster by itself"),
    "escape codes": ("a.yaml", b'HeadNode: {"\\e[31mkey": 1}\n', "HeadNode.InstanceType: is missing"),
}


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["import", *map(str, words)])


@pytest.mark.parametrize("state", STATES)
def test_a_bad_file_is_a_clear_row_and_nothing_is_written(state: str, tmp_path: Path) -> None:
    name, content, telling = STATES[state]
    (tmp_path / name).write_bytes(content)
    result = run(tmp_path / name, "--to", tmp_path / "new.yaml")

    assert (result.exit_code, result.stdout) == (2, "")
    assert telling in result.stderr
    assert "Traceback" not in result.stderr
    assert "\x1b" not in result.stderr
    assert not (tmp_path / "new.yaml").exists()


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place, telling in (
        (tmp_path, "directory has no file"),
        (tmp_path / "none", "No such file"),
        (tmp_path / "pipe", "a pipe"),
    ):
        result = run(place)
        assert (result.exit_code, telling in result.stderr) == (2, True), result.stderr


def test_a_refusal_is_json_too(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("hello: world")
    result = run(tmp_path / "a.yaml", "--json")

    assert result.exit_code == 2
    assert "no tool that is known" in json.loads(result.stdout)["message"]


def test_nothing_is_replaced_unless_asked(tmp_path: Path) -> None:
    new = tmp_path / "new.yaml"
    new.write_text("mine")
    assert run(GOOD, "--to", new).exit_code == 2
    assert new.read_text() == "mine"

    assert run(GOOD, "--to", new, "--force").exit_code == 0
    assert "name: new" in new.read_text()


def test_two_clusters_are_two_imports(tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_bytes(GOOD.read_bytes())

    assert "one after the other" in run(GOOD, other).stderr

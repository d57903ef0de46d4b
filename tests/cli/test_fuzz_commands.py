"""Whole commands over broken files and hostile words: an answer or a refusal, never a traceback or an escape.

The cases are the same in every run. Environments and lock files have suites of their own, test_fuzz.py and
test_fuzz_locks.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from depth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import SNIPPETS
from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli.main import app

pytestmark = pytest.mark.slow

DEV = str(ROOT / "environments" / "dev.yaml")
SAMPLES = sorted((ROOT / "tests" / "imports" / "samples").glob("*.*"))
TEMPLATE = json.dumps(
    {
        "Resources": {
            "Files": {
                "Type": "AWS::FSx::FileSystem",
                "DeletionPolicy": "Retain",
                "Properties": {
                    "FileSystemType": "LUSTRE",
                    "SubnetIds": [{"Ref": "Net"}],
                },
            },
            "Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {"Statement": []}}},
            "Net": {"Type": "AWS::EC2::Subnet", "Properties": {"CidrBlock": "10.0.0.0/24"}},
        },
        "Outputs": {"A": {"Value": {"Fn::GetAtt": ["Files", "DNSName"]}, "Export": {"Name": "a"}}},
    },
    indent=1,
).encode()
NODE = "i-0123456789abcdef0"
TOPOLOGY = b"""{"Instances": [{"InstanceId": "i-0123456789abcdef0", "NetworkNodes": ["nn-1", "nn-2", "nn-3"]},
 {"InstanceId": "i-0123456789abcdef1", "NetworkNodes": ["nn-1", "nn-2", "nn-4"]}]}"""
ANSWER = json.dumps(
    {
        "schema": 1, "asked": "2026-12-01", "os": "al2023", "arch": "x86_64", "installed": "",
        "facts": {"kernel": "6.12.111-136.204", "python": "3.9.25"},
    }
).encode()  # fmt: skip
RECORD = "--id eks-al2023-nvidia-1.34-x86_64-20261203 --family eks-al2023-nvidia --release 1.34.13-20261203"
WORDS = (
    "", " ", "-", "--", "---", "..", "../..", "/", "~", "a\0b", "\x1b[2J", "\u202e", "\n::error::x", "$(id)",
    "{{x}}", "%s%n", "x" * 5000, "\ud800", "-1", "1e999", "nan", "9" * 400, "dev\n", "*", "?", "[", "@file",
    "`id`", "--help=x", "--json=1", "arn:aws:iam::1:role/x", "<script>", "[bold]x[/]", "i-0", "0x",
    "٣", "NUL", "=",
)  # fmt: skip
COMMANDS = (
    "acceptance", "choose", "cost", "diff", "doctor", "export", "import", "job why", "job write", "serve",
    "move", "plan", "rules", "schema", "software recipe", "software show", "users", "validate",
    "permissions", "init",
)  # fmt: skip
"""Those that ask no account."""


OF_JSON = (b"[" * 3000, b'{"a":' * 3000, b"NaN", b"1e999", b"null", b"\\ud800")


def same(count: int) -> settings:
    return settings(
        max_examples=examples(count), derandomize=True, database=None, deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip


@st.composite
def broken(draw: st.DrawFn, text: bytes) -> bytes:
    """Bytes with one to four of them changed, taken away or added."""
    made = bytearray(text)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(made)))
        if draw(st.booleans()):
            made[place:place] = draw(st.sampled_from((*SNIPPETS, *OF_JSON)))
        else:
            del made[place : place + draw(st.integers(1, 30))]
    return bytes(made)


def answered(words: Sequence[str]) -> None:
    """It ends with a code of the page, and prints nothing that a terminal or a pipeline would obey."""
    ended = CliRunner().invoke(app, list(words))
    assert isinstance(ended.exception, SystemExit | None), (words, ended.exception)
    assert ended.exit_code in (0, 1, 2, 3), words
    for character in ("\x1b", "\x07", "\0", "\r", "\u202e", "\u200b", "\x85"):
        assert character not in ended.output, (words, character)
    assert "\n::error::x" not in ended.output, words
    if "--json" in words and ended.stdout:
        json.loads(ended.stdout)


@same(15)
@given(data=st.data())
def test_import(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    sample = data.draw(st.sampled_from(SAMPLES))
    folder = tmp_path_factory.mktemp("import")
    file, made = folder / sample.name, folder / "made.yaml"
    file.write_bytes(data.draw(broken(sample.read_bytes())))
    answered(["import", str(file), "--to", str(made)])
    if made.exists():
        assert CliRunner().invoke(app, ["validate", str(made)]).exit_code == 0


FILES = {
    "templates": (TEMPLATE, ["diff", "--templates", "GOOD", "FILE"]),
    "templates as JSON": (TEMPLATE, ["diff", "--templates", "FILE", "GOOD", "--json"]),
    "topology": (TOPOLOGY, ["job", "why", DEV, "--topology", "FILE", "--nodes", NODE]),
    "image record": (ANSWER, ["software", "record", "FILE", *RECORD.split(), "--kubernetes", "1.34"]),
}


@pytest.mark.parametrize("family", FILES)
def test_files_that_are_whole_are_taken(family: str, tmp_path: Path) -> None:
    good, words = FILES[family]
    (tmp_path / "good").write_bytes(good)
    ended = CliRunner().invoke(app, [str(tmp_path / "good") if word.isupper() else word for word in words])
    assert ended.exit_code in (0, 1, 3), ended.output


@pytest.mark.parametrize("family", FILES)
@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"schema":' * 20_000, b"{a: " * 5000, b"9" * 5000])
def test_files_without_an_end_are_refused(family: str, text: bytes, tmp_path: Path) -> None:
    (tmp_path / "deep").write_bytes(text)
    answered([str(tmp_path / "deep") if word.isupper() else word for word in FILES[family][1]])


@pytest.mark.parametrize("family", FILES)
@same(6)
@given(data=st.data())
def test_files(family: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    good, words = FILES[family]
    folder = tmp_path_factory.mktemp("files")
    names = {"GOOD": folder / "good.json", "FILE": folder / "file.json"}
    names["GOOD"].write_bytes(good)
    names["FILE"].write_bytes(data.draw(broken(good)))
    answered([str(names.get(word, word)) for word in words])


@same(80)
@given(
    command=st.sampled_from(COMMANDS),
    words=st.lists(st.sampled_from((*WORDS, DEV, "dev", "--json", "--name", "--to", "--nodes")), max_size=4),
)
def test_hostile_words(command: str, words: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder: Path = tmp_path_factory.mktemp("words")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        answered([*command.split(), *words])
    assert not list(folder.iterdir()), (command, words)

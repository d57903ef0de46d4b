"""Logs that somebody has: files, folders and standard input, within bounds and without an account."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ultracluster.account.doctor import log_files
from ultracluster.account.doctor.examination import Examination
from ultracluster.account.doctor.log_files import LogError, read_logs
from ultracluster.cli.doctor import doctor

DEV = Path(__file__).parents[3] / "environments" / "dev.yaml"
XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
LUSTRE = "mount.lustre: mount fs-1.fsx.us-east-1.amazonaws.com@tcp:/abcdefgh at /fsx failed: {}"


def ids(found: Examination) -> list[str]:
    return [diagnose.failure.id for diagnose in found.diagnoses]


def of(data: bytes) -> Examination:
    return read_logs(["-"], io.BytesIO(data))


def test_standard_input_a_file_and_a_folder_say_the_same(tmp_path: Path) -> None:
    text = f"starting\n{XID}\n{LUSTRE.format('File exists')}\n".encode()
    (tmp_path / "logs" / "node-1").mkdir(parents=True)
    file = tmp_path / "logs" / "node-1" / "kern.log"
    file.write_bytes(text)
    (tmp_path / "logs" / "old.log.gz").write_bytes(gzip.compress(b"x"))
    folder = read_logs([str(tmp_path / "logs")], io.BytesIO())
    assert ids(of(text)) == ids(read_logs([str(file)], io.BytesIO())) == ids(folder)
    assert set(ids(folder)) == {"fault-xid-79", "lustre-mount-twice"} and not folder.healthy
    assert [source.name for source in folder.sources] == [str(file)], "what is packed is not read"
    assert folder.labels[folder.diagnoses[0].evidence[0]] == f"{file}:2"


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path, why in (("none.log", "No such file"), ("empty", "no file in it")):
        with pytest.raises(LogError, match=why):
            read_logs([str(tmp_path / path)], io.BytesIO())
    (tmp_path / "nothing.log").touch()
    logs = read_logs([str(tmp_path / "nothing.log")], io.BytesIO())
    assert logs.sources[0].why == "it is empty" and logs.healthy


def test_a_pipe_in_a_folder_is_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "kern.log").write_text(XID)
    assert ids(read_logs([str(tmp_path)], io.BytesIO())) == ["fault-xid-79"]


@pytest.mark.parametrize(
    "filler",
    [b"x" * 10_000_000, b"\x00" * 10_000_000, b"\xff\xfe\xfd" * 3_000_000, b"NVRM: Xid (" * 900_000],
    ids=["letters", "zeros", "no-text", "beginnings"],
)  # fmt: skip
def test_a_line_of_ten_megabytes_takes_nothing_from_the_others(filler: bytes) -> None:
    assert ids(of(b"a\n" + filler + b"\n" + XID.encode())) == ["fault-xid-79"]


def test_a_repeated_line_is_read_once() -> None:
    found = of(f"{XID}\n".encode() * 5000)
    assert found.labels == ["standard input:1 (5000 times)"] and ids(found) == ["fault-xid-79"]


def test_of_a_huge_log_the_end_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(log_files, "LARGEST", 2 << 20)
    data = f"{LUSTRE.format('File exists')}\n".encode() + b"fine\n" * 1_000_000 + XID.encode()
    (tmp_path / "kern.log").write_bytes(data)
    for found in (of(data), read_logs([str(tmp_path / "kern.log")], io.BytesIO())):
        assert ids(found) == ["fault-xid-79"]
        assert "the last 2 MB" in found.sources[0].why


def test_distinct_lines_have_a_bound_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "LINES", 10)
    found = of(b"\n".join(b"line %d" % number for number in range(25)))
    assert len(found.quotes) == 10 and "15 lines beyond 10" in found.sources[-1].why


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(coding: str) -> None:
    text = f"début\r\n{LUSTRE.format('Kein passendes Gerät gefunden')}\r\n{XID}\r\n"
    assert set(ids(of(text.encode(coding)))) >= {"fault-xid-79", "lustre-no-module"}
    assert ids(of(b"caf\xe9\n" + XID.encode("latin-1"))) == ["fault-xid-79"]


@pytest.mark.parametrize(
    "line",
    [
        {"MESSAGE": XID, "_TRANSPORT": "kernel"},
        {"MESSAGE": list(XID.encode())},
        {"log": f"{XID}\n", "stream": "stderr"},
        {"events": [{"message": f"fine\n{XID}", "timestamp": 1}]},
    ],
)
def test_messages_in_json_are_read(line: dict[str, Any]) -> None:
    assert ids(of(json.dumps(line).encode())) == ["fault-xid-79"]


def test_json_that_is_deep_or_broken_is_a_line() -> None:
    assert ids(of(b"[" * 200_000 + b"\n" + b'{"a": \n' + XID.encode())) == ["fault-xid-79"]


@pytest.fixture
def run() -> Callable[..., Any]:
    def invoke(*words: str, given: str = "") -> Any:
        app = typer.Typer()
        app.command()(doctor)
        return CliRunner().invoke(app, [str(DEV), *words], input=given)

    return invoke


def test_the_command_answers_without_an_account(run: Callable[..., Any]) -> None:
    result = run("--log", "-", given=f"{XID}\n")
    assert result.exit_code == 1, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("likely cause: ") and "fallen off the bus" in result.stdout
    assert "  run: ultracluster doctor dev --reason ultracluster:xid:79" in lines
    assert "  standard input: read, 1 line" in lines
    document = json.loads(run("--log", "-", "--json", given=XID).stdout)
    assert document["causes"][0]["id"] == "fault-xid-79" and document["deployed"] is None


def test_nothing_known_says_so_and_is_no_verdict(run: Callable[..., Any]) -> None:
    result = run("--log", "-", given="starting\nREADY\n")
    assert result.exit_code == 0
    assert "no known failure fits" in result.stdout and "nothing wrong" not in result.stdout


def test_a_log_that_is_not_there_is_a_wrong_call(run: Callable[..., Any], tmp_path: Path) -> None:
    result = run("--log", str(tmp_path / "none.log"))
    assert result.exit_code == 2 and "No such file" in result.output and "Traceback" not in result.output


def test_an_application_error_is_named_and_asks_nothing(run: Callable[..., Any]) -> None:
    line = "NVRM: Xid (PCI:0000:9b:00): 13, pid=4711, name=python, Graphics Exception: ESR 0x404490=0x8"
    result = run("--log", "-", given=line)
    assert result.exit_code == 0 and "nothing to do on the node" in result.stdout

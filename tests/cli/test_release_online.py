"""`ultracluster software show --check --online` against a server on this machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from account_fixtures import lock_file, no_pause, shop
from command_line import ultracluster as run

from ultracluster.cli.release_online import answer_lines
from ultracluster.supply.online import Answer

__all__ = ["lock_file", "no_pause", "shop"]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_pause")]


@pytest.fixture
def check(lock_file: Any, shop: Any, tmp_path: Path) -> Callable[..., Any]:
    """Runs the command on a lock of one file, which records beside it vouch for."""
    file: Path = lock_file(tool={})
    component = next(iter(json.loads(file.read_text())["components"]))
    record = {
        "component": component,
        "version": "9.0",
        "host": "127.0.0.1",
        "sha256": hashlib.sha256(shop.files["tool.bin"]).hexdigest(),
        "source": "test",
    }
    source = {"test": {"what": "This test itself", "date": "2026-11-27"}}
    file.with_suffix(".records.json").write_text(
        json.dumps({"sources": source, "files": {"tool.bin": record}})
    )
    return lambda *arguments: run(
        "software", "show", "--check", str(file), "--online", "--cache", str(tmp_path / "cache"), *arguments
    )


def test_a_source_that_has_the_file_is_proven(check: Any) -> None:
    result = check()
    assert result.returncode == 0, result.stdout + result.stderr
    assert "tool.bin: its sha256 is the release's" in result.stdout
    assert "sources: 1 proven\n" in result.stdout


@pytest.mark.parametrize(
    ("change", "code", "state"),
    [
        (lambda shop: shop.files.update({"tool.bin": b"another"}), 1, "differs"),
        (lambda shop: shop.files.clear(), 1, "gone"),
        (lambda shop: shop.status.update({"tool.bin": [503] * 9}), 3, "unanswered"),
    ],
    ids=["differs", "gone", "unanswered"],
)
def test_what_a_source_has_otherwise_ends_with_its_code(
    change: Any, code: int, state: str, check: Any, shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ultracluster.supply import downloads

    monkeypatch.setattr(downloads.head, "__kwdefaults__", {"timeout": 5, "pause": lambda _: None})
    change(shop)
    result = check("--json")
    assert result.returncode == code
    assert [row["state"] for row in json.loads(result.stdout)["sources"]] == [state]


def test_without_online_nothing_is_asked(check: Any, shop: Any, tmp_path: Path) -> None:
    assert run("software", "show", "--check", "pcs-2026.07").stdout.count("sources:") == 0
    assert shop.sent == []


def test_answers_that_are_alike_are_one_line() -> None:
    answers = [Answer("nccl", f"libnccl{n}", "unanswered", "no network?") for n in (2, "-dev")]
    assert list(answer_lines([*answers, Answer("enroot", "a.deb", "there", "9 bytes")])) == [
        "no answer  no network?",
        "           nccl: libnccl2",
        "           nccl: libnccl-dev",
        "there      enroot: a.deb: 9 bytes",
        "sources: 1 there, 2 no answer",
    ]

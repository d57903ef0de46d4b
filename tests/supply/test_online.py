"""Every source of a release, asked over loopback: what is right is proven, and each fault has its word."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ultracluster.software import read_lock
from ultracluster.supply import downloads, online
from ultracluster.supply.downloads import DownloadError, Limits
from ultracluster.supply.online import Answer, questions

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_pause")]

PAGE = b"<!DOCTYPE html>\n<html><title>Sign in</title>" + b" " * 300_000
SIZE = 300_000
LIST, PACKAGE = "vendor/Packages.xz", "vendor/pool/tool_2.0-1_amd64.deb"


def no_github(_: str) -> None:
    return None


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., list[Answer]]:
    def run(file: Path, limits: Limits | None = None, **options: Any) -> list[Answer]:
        options = {"answers_of_github": no_github, **options}
        found = questions(read_lock(file), tmp_path / "cache", limits or Limits(attempts=1), **options)
        return [answer for question in found for answer in question.ask()]

    return run


def only(answers: list[Answer]) -> tuple[str, str]:
    assert len(answers) == 1, answers
    return answers[0].state, answers[0].detail


def test_a_small_file_is_proven_by_its_digest(lock_file: Any, ask: Any) -> None:
    assert only(ask(lock_file(tool={}))) == ("proven", "its sha256 is the release's")


def test_a_great_file_is_only_there(lock_file: Any, ask: Any, shop: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(online, "WHOLE", 1000)
    state, detail = only(ask(lock_file(tool={"size": SIZE})))
    assert (state, detail) == ("there", "300,000 bytes; its content was not compared")
    assert shop.sent[0][1] == "bytes=0-511"
    assert len(shop.sent) == 1


FAULTS: dict[str, tuple[Callable[[Any], None], str, str]] = {
    "wrong digest": (lambda shop: shop.files.update({"tool.bin": b"x" * SIZE}), "differs", "its sha256 is"),
    "404": (lambda shop: shop.files.pop("tool.bin"), "gone", "HTTP 404"),
    "403": (lambda shop: shop.status.update({"tool.bin": [403]}), "gone", "HTTP 403"),
    "page": (lambda shop: shop.files.update({"tool.bin": PAGE}), "differs", "answers with a web page"),
    "size": (lambda shop: shop.files.update({"tool.bin": b"x"}), "differs", "has 1 bytes, the release"),
    "busy": (lambda shop: shop.status.update({"tool.bin": [503]}), "unanswered", "HTTP 503"),
    "plain": (
        lambda shop: shop.redirects.update({"tool.bin": "http://evil.example/"}),
        "unanswered",
        "not HTTPS",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_is_not_the_releases(fault: str, lock_file: Any, ask: Any, shop: Any) -> None:
    file = lock_file(tool={"size": SIZE})
    change, state, says = FAULTS[fault]
    change(shop)
    found = only(ask(file))
    assert found[0] == state
    assert says in found[1]


@pytest.mark.parametrize("name", ["tool.tar.gz", "tool.deb", "tool.rpm", "tool.zip"])
def test_a_file_of_another_kind(name: str, lock_file: Any, ask: Any, shop: Any) -> None:
    shop.files[name] = b"none of these begins so" * 100
    file = lock_file(tool={"name": name, "url": shop.url(name), "integrity": "to-be-locked"})
    state, detail = only(ask(file))
    assert (state, "does not begin like" in detail) == ("differs", True)


def test_a_file_without_an_address_or_without_a_digest(lock_file: Any, ask: Any) -> None:
    assert only(ask(lock_file(tool={"url": ..., "integrity": "to-be-locked"})))[0] == "not-asked"
    state, detail = only(ask(lock_file(tool={"integrity": "to-be-locked"})))
    assert (state, "no digest of it, so nodes refuse it" in detail) == ("there", True)


@pytest.mark.parametrize(("there", "state"), [(True, "proven"), (False, "differs")])
def test_githubs_digest_of_a_great_asset(
    there: bool, state: str, lock_file: Any, ask: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(online, "WHOLE", 1000)
    digest = hashlib.sha256(bytes([1]) * SIZE).hexdigest()
    answer = digest if there else "0" * 64
    assert only(ask(lock_file(tool={}), answers_of_github=lambda _: answer))[0] == state


def test_githubs_silence_changes_nothing(lock_file: Any, ask: Any, monkeypatch: Any) -> None:
    def refused(_: str) -> str:
        raise DownloadError("rate limit")

    monkeypatch.setattr(online, "WHOLE", 1000)
    assert only(ask(lock_file(tool={}), answers_of_github=refused))[0] == "there"


@pytest.mark.parametrize("fault", ["", "page for the signature", "another key", "no signature"])
def test_a_signed_file(
    fault: str, lock_file: Any, ask: Any, shop: Any, signers: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(online, "WHOLE", 1000)
    right, stranger = signers
    shop.files |= {"key": (stranger if fault == "another key" else right).key, "tool.sig": b"sig"}
    if fault == "page for the signature":
        shop.files["tool.sig"] = PAGE
    if fault == "no signature":
        del shop.files["tool.sig"]
    signed = {"signature_url": shop.url("tool.sig"), "key_url": shop.url("key")}
    file = lock_file(tool={"integrity": "signature", "key_fingerprint": right.fingerprint, **signed})
    state, detail = only(ask(file))
    expected = {"": "there", "no signature": "gone"}.get(fault, "differs")
    says = {"another key": f"the release pins {right.fingerprint}", "": "signature and pinned key are there"}
    assert state == expected
    assert says.get(fault, "") in detail


def test_a_package_of_a_signed_index(lock: Any, ask: Any) -> None:
    state, detail = only(ask(lock("tool=1:2.0-*")))
    assert state == "proven"
    assert detail.startswith("1:2.0-1 is in the index that 127.0.0.1 signs with the pinned key")


REPOSITORY_FAULTS: dict[str, tuple[Callable[[Any, Any], None], str, str]] = {
    "another key": (
        lambda shop, signers: shop.files.update({"vendor.key": signers[1].key}),
        "differs",
        "the release pins",
    ),
    "a page for the key": (
        lambda shop, _: shop.files.update({"vendor.key": PAGE}),
        "differs",
        "holds no public key",
    ),
    "a page for the index": (
        lambda shop, _: shop.files.update({"vendor/Release": PAGE}),
        "differs",
        "Release",
    ),
    "another signer": (
        lambda shop, signers: shop.files.update(
            {"vendor/Release.gpg": signers[1].sign(shop.files["vendor/Release"])}
        ),
        "differs",
        "signature",
    ),
    "no index": (lambda shop, _: shop.files.pop("vendor/Release"), "gone", "HTTP 404"),
    "another list": (
        lambda shop, _: shop.files.update({LIST: b"x" * len(shop.files[LIST])}),
        "differs",
        "Packages.xz",
    ),
    "no package file": (lambda shop, _: shop.files.pop(PACKAGE), "gone", "HTTP 404"),
    "a page for the package": (
        lambda shop, _: shop.files.update({PACKAGE: PAGE}),
        "differs",
        "is not the file of",
    ),
}


@pytest.mark.parametrize("fault", REPOSITORY_FAULTS)
def test_a_repository_that_is_not_the_releases(
    fault: str, lock: Any, ask: Any, shop: Any, signers: Any
) -> None:
    change, state, says = REPOSITORY_FAULTS[fault]
    file = lock("tool=1:2.0-*")
    change(shop, signers)
    found = only(ask(file))
    assert found[0] == state, found
    assert says in found[1]


def test_a_version_that_the_index_does_not_have(lock: Any, ask: Any) -> None:
    answers = ask(lock("tool=9.99.9-1+nosuchversion", "nosuchtool", "aside"))
    assert [answer.state for answer in answers] == ["differs", "differs", "proven"]
    assert "it has tool 1:2.0-1, 1:1.9-1" in answers[0].detail
    assert "it has no nosuchtool at all" in answers[1].detail


def test_a_repository_without_a_pinned_key_is_bad_without_a_request(lock: Any, ask: Any, shop: Any) -> None:
    assert only(ask(lock(key_fingerprint=None)))[0] == "differs"
    assert shop.sent == []


def test_a_host_that_nobody_answers_for(lock_file: Any, ask: Any) -> None:
    file = lock_file(tool={"url": "http://127.0.0.1:9/tool.bin"})  # port 9: discard, closed
    assert only(ask(file))[0] == "unanswered"


def test_no_more_is_asked_when_the_time_is_up(lock_file: Any, ask: Any, shop: Any) -> None:
    state, detail = only(ask(lock_file(tool={}), Limits(until=10, clock=lambda: 10)))
    assert (state, "in the time that was given" in detail) == ("unanswered", True)
    assert shop.sent == []


def test_a_server_that_trickles_is_left(lock_file: Any, ask: Any, monkeypatch: Any) -> None:
    """The clock passes the end while the content still arrives."""
    now = [0.0]
    file = lock_file(tool={})
    real = downloads.head

    def slow(url: str, **options: Any) -> Any:
        answer = real(url, **options)
        now[0] = 4
        return answer

    def clock() -> float:
        now[0] += 1
        return now[0]

    monkeypatch.setattr(online, "head", slow)
    state, detail = only(ask(file, Limits(until=9, clock=clock, attempts=1)))
    assert (state, "too slow" in detail or "in the time" in detail) == ("unanswered", True)


def test_attempts_pause_no_longer_than_there_is_time(lock_file: Any, shop: Any, monkeypatch: Any) -> None:
    shop.status["tool.bin"] = [503, 503]
    lock_file(tool={})
    pauses: list[float] = []
    with downloads.limited(Limits(until=3, clock=lambda: 1.0)):
        answer = downloads.head(shop.url("tool.bin"), pause=pauses.append)
    assert answer.size == SIZE
    assert pauses == [2.0, 2.0]


def test_only_what_is_asked_for_is_asked(lock_file: Any, lock: Any, ask: Any) -> None:
    file = lock_file(tool={}, data={})
    names = [answer.what for answer in ask(file)]
    assert names == ["tool.bin", "data.bin"]
    first = next(iter(read_lock(file).components))
    assert [answer.what for answer in ask(file, needs={first: {("ubuntu22.04", "x86_64")}})] == ["tool.bin"]
    assert ask(file, needs={first: {("al2023", "x86_64")}}) == []
    assert ask(lock(), needs={"dcgm": {("ubuntu22.04", "aarch64")}}) == []


def test_the_systems_own_repositories_are_not_asked(lock: Any, ask: Any, shop: Any) -> None:
    file = lock("curl")
    data = json.loads(file.read_text())
    del data["components"]["dcgm"]["packages"][0]["repository"]
    file.write_text(json.dumps(data))
    assert only(ask(file))[0] == "not-asked"
    assert shop.sent == []

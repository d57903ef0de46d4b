"""The archive for AWS Support: what is in it, what is not, and that its bytes stay the same."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from typing import Any

from planted_secrets import SECRETS

from ultracluster.account.doctor import bundle as module
from ultracluster.account.doctor.bundle import ROOT, Bundle, make_bundle
from ultracluster.account.doctor.bundle_sources import Papers
from ultracluster.account.doctor.examination import Asked, Examination, Fact, Quote, Source
from ultracluster.account.doctor.redaction import Redaction

SILENT = Source("Slurm", "not readable", "no answer within 180 seconds")


def asked(name: str, source: Source | None, *, ended: bool = True) -> Asked:
    one = Asked(name, {})
    one.source = source
    if ended:
        one.ended.set()
    return one


def papers(text: str = "fine", value: Any = None) -> Papers:
    return {
        "nodes": (
            asked("nodes", Source("nodes", "read")),
            {"nodes.json": value or [], "slurm/jobs.txt": text},
        ),
        "late": (asked("late", None, ended=False), {"half.json": {"half": "written"}}),
        "refused": (asked("refused", Source("refused", "not readable", "denied")), {"half.txt": "part"}),
    }


def examination(text: str = "fine") -> Examination:
    return Examination(
        sources=[Source("stack dev-cluster", "read"), SILENT],
        facts=[Fact("nodes", "gpu i-00000000000000011", text)],
        logs={"LifecycleConfig/gpu/../../i-1": [text]},
        quotes=[Quote("a.log:1", text)],
    )


def made(text: str = "fine", value: Any = None) -> Bundle:
    return make_bundle(
        examination(text),
        papers(text, value),
        Redaction(b"key", ["alice"]),
        environment="dev",
        versions={"ultracluster": "0.1.0"},
    )


def unpacked(data: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        files = {one.name: archive.extractfile(one) for one in archive.getmembers()}
        return {name: file.read().decode() for name, file in files.items() if file}


def test_every_file_is_listed_with_its_size_and_no_half_of_one_is_there() -> None:
    bundle = made()
    files = unpacked(bundle.archive())
    assert list(files) == [f"{ROOT}/{one.name}" for one in bundle.entries]
    assert [len(text.encode()) for text in files.values()] == [one.bytes for one in bundle.entries]
    assert {one.name for one in bundle.entries} == {
        "README.txt", "manifest.json", "causes.json", "facts.json", "given.log", "nodes.json",
        "slurm/jobs.txt", "versions.json", "logs/LifecycleConfig/gpu/_/_/i-1.tail.log",
    }  # fmt: skip


def test_sources_that_did_not_answer_are_named_inside() -> None:
    files = unpacked(made().archive())
    manifest = json.loads(files[f"{ROOT}/manifest.json"])
    assert manifest["not_answered"] == ["Slurm"]
    assert "Slurm: no answer within 180 seconds" in files[f"{ROOT}/README.txt"]
    assert made().silent == [SILENT]


def test_no_planted_secret_of_any_kind_is_in_any_file() -> None:
    for name, (planted, gone) in SECRETS.items():
        for text, value in ((f"a\n{planted}\nb", None), ("fine", [{"message": planted, "items": [planted]}])):
            bundle = made(text, value)
            everything = gzip.decompress(bundle.archive()).decode("utf-8", "replace")
            assert not [part for part in gone if part in everything], name
            assert sum(bundle.removed.values()), name


def test_people_have_one_pseudonym_in_all_files_and_their_names_stay_here() -> None:
    bundle = made("/fsx/home/bob/x of alice", [{"Tags": {"owner": "bob"}, "alice": 1}])
    everything = gzip.decompress(bundle.archive()).decode()
    assert "alice" not in everything and "bob" not in everything
    assert sorted(bundle.pseudonyms.values()) == ["alice", "bob"]
    again = made("bob, from /home/bob", [])
    by_name = {name: pseudonym for pseudonym, name in bundle.pseudonyms.items()}
    assert again.pseudonyms == {by_name["bob"]: "bob"}


def test_the_same_content_gives_the_same_bytes() -> None:
    data = made().archive()
    assert data == made().archive() and data[4:8] == b"\0\0\0\0"
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        assert {(one.mtime, one.uid, one.gid, one.uname) for one in archive.getmembers()} == {(0, 0, 0, "")}


def test_of_a_long_text_the_end_is_kept_from_a_whole_line(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "LARGEST", 40)
    text = "password=" + "hunter2" * 10 + "\n" + "the last line"
    assert unpacked(made(text).archive())[f"{ROOT}/slurm/jobs.txt"] == "the last line"

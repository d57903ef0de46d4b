"""Rules on buckets for jobs; their examples break each once."""

from __future__ import annotations

from typing import Any

import pytest
from rules_table import found

from ultracluster.rules.sets import DATA, ENV

MIRROR = {"software.mirror": "s3://example-software/releases"}


def said(changes: dict[str, Any], base: str = "dev") -> set[str]:
    return {one.code for one in found(DATA, changes, base) if one.code in ("DATA040", "DATA041", "DATA042")}


def jobs(*buckets: dict[str, Any]) -> dict[str, Any]:
    return {"storage.job_buckets": list(buckets)}


@pytest.mark.parametrize(
    ("prefix", "overlaps"),
    [
        (None, True),
        ("releases", True),
        ("releases/", True),
        ("releases/2026", True),
        ("releases-of-jobs", False),
    ],
)
def test_jobs_do_not_write_what_is_installed_as_root(prefix: str | None, overlaps: bool) -> None:
    asked = {"bucket": "example-software", "write": True} | ({"prefix": prefix} if prefix else {})
    assert said(MIRROR | jobs(asked)) == ({"DATA041"} if overlaps else set())
    assert said(MIRROR | jobs(asked | {"write": False})) == set()


def test_nor_access_logs() -> None:
    logs = {"storage.log_bucket": {"name": "example-logs"}}
    assert said(logs | jobs({"bucket": "example-logs", "prefix": "a", "write": True})) == {"DATA041"}


@pytest.mark.parametrize(
    ("base", "changes", "refused"),
    [
        ("dev", {}, False),
        ("pcs-p6-b200", {}, False),
        ("parallelcluster-p5", {}, False),
        ("dev", {"orchestrator.lifecycle": "none"}, True),
        ("eks-p5en", {}, True),
        ("hyperpod-eks-p5", {}, True),
    ],
)
def test_somebody_has_to_hand_out_the_role(base: str, changes: dict[str, Any], refused: bool) -> None:
    assert said(changes | jobs({"bucket": "example-data"}), base) == ({"DATA040"} if refused else set())


def test_rights_of_one_folder_may_be_given_in_two_lines_that_agree() -> None:
    whole, part = {"bucket": "example-data"}, {"bucket": "example-data", "prefix": "a"}
    assert said(jobs(whole, part)) == set()
    assert said(jobs(whole | {"write": True}, part)) == {"DATA042"}
    assert said(jobs({"bucket": "example-other", "write": True}, part)) == set()


def test_a_bucket_for_jobs_has_a_name_that_s3_gives() -> None:
    assert {one.code for one in found(ENV, jobs({"bucket": "team..data"}))} == {"ENV017"}


def test_who_logs_in_is_no_service() -> None:
    assert found(ENV, {"access.metadata_users": ["telegraf"]}) == []
    for user in ("ssm-user", "ec2-user"):
        assert [one.code for one in found(ENV, {"access.metadata_users": [user]})] == ["ENV030"]
    on_pods = found(ENV, {"access.node_metadata": "everyone"}, "eks-p5en")
    assert [one.code for one in on_pods] == ["ENV036"]  # it does nothing there

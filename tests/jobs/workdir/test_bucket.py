"""A folder in the jobs' bucket: stored once, found again, and never what somebody else put there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import account, answer, refusal
from kubernetes_support import environment
from moto import mock_aws

from ultracluster.account.aws import Account, AccountError
from ultracluster.jobs.workdir.bucket import Workdir, pack, upload
from ultracluster.model import Cluster, resolve

BUCKETS = [{"bucket": "example-data"}, {"bucket": "example-runs", "prefix": "team-a/", "write": True}]
SLURM = resolve(environment({"storage.job_buckets": BUCKETS}, base="prod"))
VOLUMES = {"data": {"bucket": "example-data"}, "runs": {"bucket": "example-runs", "write": True}}
PODS = resolve(environment({"orchestrator.mountpoint_s3": VOLUMES}))


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("first\n")
    return tmp_path


@pytest.fixture
def aws() -> Iterator[Account]:
    with mock_aws():
        made = account()
        where = {"LocationConstraint": "us-west-2"}
        made.client("s3").create_bucket(Bucket="example-runs", CreateBucketConfiguration=where)
        yield made


def packed(code: Path, cluster: Cluster = SLURM) -> Workdir:
    return pack(cluster, code, limit_mb=1)


@pytest.mark.parametrize(("cluster", "prefix"), [(SLURM, "team-a/"), (PODS, "")])
def test_it_goes_to_the_first_bucket_that_jobs_write(cluster: Cluster, prefix: str, code: Path) -> None:
    workdir = packed(code, cluster)
    assert workdir.place.bucket.bucket == "example-runs"
    assert workdir.key == f"{prefix}ultracluster-workdirs/{workdir.digest}.tar"
    assert f"1 file, 6 bytes, as s3://example-runs/{workdir.key}" in str(workdir)


@pytest.mark.parametrize(
    ("cluster", "setting"),
    [
        (resolve(environment({}, base="prod")), "storage.job_buckets"),
        (resolve(environment({"storage.job_buckets": BUCKETS[:1]}, base="prod")), "storage.job_buckets"),
        (resolve(environment({})), "orchestrator.mountpoint_s3"),
    ],
)
def test_without_a_bucket_it_says_which_setting_and_page(cluster: Cluster, setting: str, code: Path) -> None:
    with pytest.raises(ValueError, match=rf"{setting} has `write: true`.*docs/working-folders\.md"):
        packed(code, cluster)


def test_it_is_stored_once_and_a_change_is_another_object(code: Path, aws: Account) -> None:
    first = packed(code)
    assert upload(aws, first) and not upload(aws, packed(code))
    (code / "train.py").write_text("second\n")
    second = packed(code)
    assert upload(aws, second)
    kept = {
        one["Key"]: one["Size"] for one in aws.client("s3").list_objects(Bucket="example-runs")["Contents"]
    }
    assert set(kept) == {first.key, second.key}
    content = aws.client("s3").get_object(Bucket="example-runs", Key=first.key)["Body"].read()
    assert content == first.archive.read() and kept[first.key] == len(content)


def test_something_else_in_its_place_is_refused(code: Path, aws: Account) -> None:
    workdir = packed(code)
    body = {"Bucket": "example-runs", "Key": workdir.key, "Body": b"other", "ChecksumAlgorithm": "SHA256"}
    aws.client("s3").put_object(**body)
    with pytest.raises(AccountError, match=f"{workdir.key} holds something else"):
        upload(aws, workdir)


def test_whoever_is_second_of_two_stores_nothing(code: Path, aws: Account) -> None:
    """The other one stores it between the question and the answer."""
    mine, s3 = packed(code), aws.client("s3")
    others = packed(code).archive.read()

    def first(**_: Any) -> None:
        s3.meta.events.unregister("before-call.s3.PutObject", first)
        s3.put_object(Bucket="example-runs", Key=mine.key, Body=others)

    s3.meta.events.register("before-call.s3.PutObject", first)
    assert upload(aws, mine) is False


@pytest.mark.parametrize(
    ("asked", "stored", "said"),
    [
        ("403", "", ""),  # without the right to list, nobody is told that nothing is there
        ("404", "AccessDenied", "access denied"),
        ("SlowDown", "", "being throttled"),
    ],
)
def test_what_s3_refuses(asked: str, stored: str, said: str, code: Path) -> None:
    made, workdir, put = account(), packed(code), list[str]()

    def look(_: dict[str, Any]) -> dict[str, Any]:
        raise refusal(asked, "")

    def store(request: dict[str, Any]) -> dict[str, Any]:
        assert request["IfNoneMatch"] == "*" and request["ChecksumSHA256"]
        if stored:
            raise refusal(stored, "no")
        put.append(request["Key"])
        return {}

    answer(made.client("s3"), "HeadObject", look)
    answer(made.client("s3"), "PutObject", store)
    if said:
        with pytest.raises(AccountError, match=rf"s3://example-runs/{workdir.key}: .*{said}"):
            upload(made, workdir)
    else:
        assert upload(made, workdir)
    assert put == ([] if said else [workdir.key])

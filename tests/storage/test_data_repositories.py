"""Folders that are linked to S3 by objects."""

from __future__ import annotations

from typing import Any

import pytest
from aws_cdk import CfnParameter, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from foreign import refusal, resources, warnings

from ultracluster import DataBucket, DataRepositories, DataRepository, ILustreFileSystem, LustreFileSystem

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"


def there(stack: Stack) -> ILustreFileSystem:
    return LustreFileSystem.from_lustre_attributes(
        stack, "There", file_system_id="fs-0123456789abcdef0", dns_name="fs.example", mount_name="abcdef"
    )


def test_each_folder_has_its_bucket(stack: Stack) -> None:
    name = CfnParameter(stack, "Name")
    data = DataBucket(stack, "Data")

    made = DataRepositories(
        stack,
        "Links",
        file_system=there(stack),
        repositories={
            "/data": DataRepository(),
            "/models": DataRepository(prefix="models/"),
            "/given": DataRepository(bucket=name.value_as_string),
            "/named": DataRepository(bucket="our-checkpoints"),
        },
        bucket=data.bucket,
        buckets={"/models": s3.Bucket.from_bucket_name(stack, "Models", "our-models")},
    )

    paths = {
        one["Properties"]["FileSystemPath"]: one["Properties"]["DataRepositoryPath"]
        for one in resources(stack, "AWS::FSx::DataRepositoryAssociation").values()
    }
    assert list(made.associations) == ["/data", "/models", "/given", "/named"]
    assert "Data" in str(paths["/data"]) and paths["/models"] == "s3://our-models/models/"
    assert "Name" in str(paths["/given"]) and paths["/named"] == "s3://our-checkpoints/"
    assert refusal(stack) == ""


def test_a_folder_without_a_bucket_is_named(stack: Stack) -> None:
    with pytest.raises(ValueError, match=r"/data has no bucket. Instead: bucket=<an s3.IBucket>"):
        DataRepositories(stack, "Links", file_system=there(stack), repositories={"/data": DataRepository()})


def test_a_bucket_of_no_folder_is_named(stack: Stack) -> None:
    data: Any = s3.Bucket(stack, "Data")
    with pytest.raises(ValueError, match="buckets has /dta, and repositories has /data"):
        DataRepositories(
            stack,
            "Links",
            file_system=there(stack),
            repositories={"/data": DataRepository()},
            buckets={"/dta": data},
        )


def test_the_rules_judge_all_folders_together(stack: Stack) -> None:
    DataRepositories(
        stack,
        "Links",
        file_system=there(stack),
        repositories={
            "/data": DataRepository(bucket="our-data"),
            "/data/train": DataRepository(bucket="our-other-data", prefix="a//b"),
        },
    )

    said = refusal(stack)
    assert "[research/Links] FSX052" in said and "`/data/train` lies in `/data`" in said
    assert "FSX056" in said


def test_two_buckets_of_objects_do_not_overlap(stack: Stack) -> None:
    one, other = DataBucket(stack, "One"), DataBucket(stack, "Other")
    DataRepositories(
        stack,
        "Links",
        file_system=there(stack),
        repositories={"/a": DataRepository(), "/b": DataRepository()},
        buckets={"/a": one.bucket, "/b": other.bucket},
    )

    assert refusal(stack) == ""


def test_an_imported_key_of_a_bucket_is_told_about(stack: Stack) -> None:
    key = kms.Key.from_key_arn(stack, "Key", KEY)
    bucket = s3.Bucket.from_bucket_attributes(stack, "Data", bucket_name="our-data", encryption_key=key)
    DataRepositories(
        stack, "Links", file_system=there(stack), repositories={"/data": DataRepository()}, bucket=bucket
    )

    (said,) = warnings(stack)
    assert "the key was imported" in said and "AWSServiceRoleForFSxS3Access" in said

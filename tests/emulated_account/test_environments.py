"""Other environments in an emulated account: created, repeated, and deleted but for what is retained."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from emulated_account.running import ACCOUNT, account
from needs import need
from project import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.deep]
RETAINED = {"AWS::KMS::Key", "AWS::S3::Bucket", "AWS::FSx::FileSystem"}


@pytest.mark.parametrize(
    ("name", "region", "number"),
    [
        ("trainium", "us-east-2", "111122223333"),
        ("parallelcluster-gb200", "us-east-1", ACCOUNT),
        ("pcs-p6-b200", "us-east-2", ACCOUNT),
    ],
)
def test_an_environment_is_created_repeated_and_deleted(
    tmp_path: Path, name: str, region: str, number: str
) -> None:
    need("unshare", "setpriv", root=True)
    app = tmp_path / "out"
    with account(region, number) as aws:
        aws.cdk("bootstrap", f"aws://{number}/{region}")
        synth = f"{sys.executable} {ROOT / 'app.py'}"
        aws.cdk("synth", "-c", f"env={name}", "-q", "-o", str(app), app=synth)
        aws.deploy(app)
        stacks = aws.client("cloudformation").describe_stacks()["Stacks"]
        own = [one["StackName"] for one in stacks if one["StackName"].startswith(f"{name}-")]
        assert aws.deploy(app).count("(no changes)") == len(own) > 4

        said = aws.cdk("destroy", "--all", "--force", app=app)
        left = aws.client("cloudformation").describe_stacks()["Stacks"]
        assert [one["StackName"] for one in left] == ["CDKToolkit"]
        assert set(re.findall(r"DELETE_SKIPPED +\| (\S+)", said)) <= RETAINED
        assert not [line for line in aws.lines() if line.startswith("not judged: the deletion")]

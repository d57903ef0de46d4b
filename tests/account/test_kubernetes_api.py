"""The token with which the Kubernetes API of a cluster is asked."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from hyperpod_service import account
from needs import need

from ultracluster.account.kubernetes_api import token

ENVIRONMENTS = Path(__file__).parents[2] / "environments"


def decoded(text: str) -> tuple[str, dict[str, list[str]]]:
    assert text.startswith("k8s-aws-v1.") and "=" not in text
    body = text.removeprefix("k8s-aws-v1.")
    url = urlsplit(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode())
    return url.netloc, parse_qs(url.query)


def test_the_token_is_the_one_that_the_aws_cli_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    aws_account = account("us-east-2")
    host, ours = decoded(token(aws_account, "train"))
    command = [
        "aws",
        "eks",
        "get-token",
        "--cluster-name",
        "train",
        "--region",
        "us-east-2",
        "--output",
        "json",
    ]
    need("aws")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs_host, theirs = decoded(json.loads(done.stdout)["status"]["token"])
    assert (host, set(ours)) == (theirs_host, set(theirs))
    for name in ("Action", "X-Amz-Algorithm", "X-Amz-SignedHeaders", "X-Amz-Credential", "X-Amz-Expires"):
        same = ours[name] == theirs[name]
        assert same or (name == "X-Amz-Credential" and ours[name][0][:20] == theirs[name][0][:20])
    assert "x-k8s-aws-id" in ours["X-Amz-SignedHeaders"][0]
    plain = aws_account.client("sts").generate_presigned_url("get_caller_identity")
    assert "x-k8s-aws-id" not in plain, "the header is of that one request"

"""Only the mirror needs the extra `ultracluster[mirror]`: everything else works without it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from project import ROOT

pytestmark = pytest.mark.slow

WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("debian", "univers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())

def run(*words):
    from ultracluster.cli import main
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    return 0
"""


def python(program: str) -> subprocess.CompletedProcess[str]:
    keys = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "testing")
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + program],
        capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, **keys},
    )  # fmt: skip


def test_validate_plan_and_constructs_work_without_it() -> None:
    done = python(
        "import ultracluster\n"
        "assert run('validate', 'dev') == 0\n"
        "assert run('plan', 'dev') == 0\n"
        "from aws_cdk import App, Stack\n"
        "app = App()\n"
        "ultracluster.ClusterKey(Stack(app, 'it'), 'Key')\n"
        "assert 'AWS::KMS::Key' in str(app.synth().get_stack_by_name('it').template)\n"
    )
    assert done.returncode == 0, done.stderr


def test_a_mirror_of_packages_says_what_to_install() -> None:
    done = python(
        "import boto3\n"
        "from moto import mock_aws\n"
        "with mock_aws():\n"
        "    boto3.client('s3', region_name='us-east-1').create_bucket(Bucket='example-software')\n"
        "    code = run('software', 'mirror', '--release', 'eks-2026.10', '--bucket', 'example-software',\n"
        "               '--region', 'us-east-1')\n"
        "    assert not boto3.client('s3', region_name='us-east-1').list_objects_v2(\n"
        "        Bucket='example-software')['KeyCount']\n"
        "sys.exit(code)\n"
    )
    assert done.returncode == 2, done.stderr
    assert "pip install 'ultracluster[mirror]'" in done.stderr and "Traceback" not in done.stderr

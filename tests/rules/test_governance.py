"""Rules on what a company's rules for its accounts ask for, each broken and mended."""

from __future__ import annotations

import re

import pytest
from project import ROOT
from ruamel.yaml import YAML
from rules_support import changed, environment_data, loaded
from rules_table import cases, found, table_tests

from ultracluster.rules import check
from ultracluster.rules.sets import GOV

BOUNDARY = "governance.permissions_boundary"
PATH = "governance.role_path"
PREFIX = "governance.role_prefix"
ARN = "arn:aws:iam::111122223333:policy/TeamBoundary"
ACCOUNT = {"account": "444455556666"}
test_breaks_and_is_mended, test_advice_works = table_tests(cases=cases("governance"))


@pytest.mark.parametrize(
    "arn", [ARN.replace("111122223333", "aws"), ARN.replace("111122223333", "444455556666")]
)
def test_a_boundary_of_aws_or_of_the_account_will_do(arn: str) -> None:
    assert found(GOV, {**ACCOUNT, BOUNDARY: arn}) == []


def test_without_a_path_the_nodes_of_pcs_keep_theirs() -> None:
    assert found(GOV, {PREFIX: "train-"}, "pcs-p6-b200") == []


def test_the_lines_of_the_documentation_break_no_rule() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "company-accounts.md").read_text(), re.DOTALL)
    told = YAML(typ="safe", pure=True).load(text)
    changes = {"governance": told["governance"], "tags": told["tags"]}
    changes |= {f"storage.{key}": value for key, value in told["storage"].items()}
    data = changed(environment_data("dev"), {"account": "111122223333"})
    assert check(loaded(changed(data, changes))) == check(loaded(data))


def test_names_and_paths_are_free_elsewhere() -> None:
    free = {PATH: "/teams/", PREFIX: "train-", "governance.stack_prefix": "train-", BOUNDARY: ARN}
    for name in ("dev", "hyperpod-eks-p5", "eks-p5en"):
        assert found(GOV, free, name) == []

"""ARNs in an environment."""

from __future__ import annotations

from rules_support import changed, environment_data, loaded

from ultracluster.rules.arn_values import arns

GROUP = "arn:aws:resource-groups:us-west-2:111122223333:group/g"
KEY = "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"


def test_each_arn_has_its_path_and_nothing_else_is_one() -> None:
    reservation = {"kind": "reservation", "resource_group_arn": GROUP}
    changes = {"storage.key": {"arn": KEY}, "node_groups.gpu.capacity": reservation}
    environment = loaded(changed(environment_data(), changes)).environment

    assert {".".join(map(str, path)): arn for path, arn in arns(environment)} == {
        "storage.key.arn": KEY,
        "node_groups.gpu.capacity.resource_group_arn": GROUP,
    }

"""Paths of values in an environment file."""

from __future__ import annotations

import pytest

from ultracluster.config.yaml_path import YamlPath, dotted


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("region",), "region"),
        (("node_groups", "train", "mounts", 0), "node_groups.train.mounts[0]"),
        (("tags", "a.b"), 'tags."a.b"'),
        ((0, "kind"), "[0].kind"),
    ],
)
def test_a_path_is_written_as_people_write_it(path: YamlPath, text: str) -> None:
    assert dotted(path) == text

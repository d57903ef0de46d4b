"""Types that hold data."""

from __future__ import annotations

from ultracluster.catalog.data_kinds import held_data, held_data_source, kinds_with_data


def test_each_type_with_data_says_what_is_lost() -> None:
    assert {"AWS::FSx::FileSystem", "AWS::S3::Bucket", "AWS::KMS::Key"} <= set(kinds_with_data())
    assert all(kind.startswith("AWS::") and held_data(kind) for kind in kinds_with_data())
    assert held_data("AWS::EC2::Route") is None
    assert "FSx" in held_data_source()

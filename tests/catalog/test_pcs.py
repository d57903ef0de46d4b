"""Limits of AWS PCS."""

from __future__ import annotations

from ultracluster.catalog.pcs import pcs_settings, pcs_size_for, pcs_sizes, pcs_slurm_versions


def test_the_smallest_size_that_holds_all_nodes() -> None:
    sizes = pcs_sizes()
    assert [size.nodes for size in sizes] == sorted(size.nodes for size in sizes)
    for size in sizes:
        assert pcs_size_for(size.nodes) == size
    assert pcs_size_for(1) == sizes[0]


def test_names_of_parameters_ignore_case() -> None:
    settings = pcs_settings("cluster")
    name = next(iter(settings.names))
    assert name.lower() in settings and name.upper() in settings
    assert "NoSuchParameter" not in settings
    assert settings.nearest(name[:-1]) == name


def test_a_parameter_of_a_later_version_names_that_version() -> None:
    settings = pcs_settings("cluster")
    for name, version in settings.since.items():
        assert settings.since_of(name.lower()) == (name, version)
        assert version in pcs_slurm_versions()
    assert settings.since_of("NoSuchParameter") == ("", "")

"""How long components take to install."""

from __future__ import annotations

import pytest

from ultracluster.catalog.install_minutes import install_minutes
from ultracluster.software import load_release, release_names


@pytest.mark.parametrize("release", release_names())
def test_every_component_of_a_release_has_an_estimate(release: str) -> None:
    for name, part in load_release(release).components.items():
        assert 0 <= install_minutes(name, part.kind) < 60, name


def test_what_has_no_estimate_of_its_own_takes_that_of_its_kind() -> None:
    assert install_minutes("a-new-component", "source") == install_minutes("another", "source") > 0

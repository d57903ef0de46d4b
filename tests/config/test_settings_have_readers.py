"""Each setting of an environment file has a reader: one without would validate and do nothing."""

from __future__ import annotations

import pytest
from setting_readers import models, named, settings, traced

from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.config.pcs import Pcs

pytestmark = pytest.mark.slow

EXCUSED = {
    **dict.fromkeys(
        ("GresRecord.cores", "GresRecord.flags", "GresRecord.links"),
        "its property `line`, of which clusters/pcs makes gres.conf",
    ),
    **dict.fromkeys(
        ("KeysByPurpose.file_systems", "KeysByPurpose.secrets", "KeysByPurpose.volumes"),
        "clusters/composition/keys.py reads a key by its purpose, with getattr",
    ),
}
"""Settings whose readers neither way finds, each with its reader. It may only shrink."""


class PcsWithMore(Pcs):
    wait_seconds: int = 30


class HyperPodWithMore(HyperPodSlurm):
    complete_wait_seconds: int = 30
    """The setting of CONTRIBUTING.md, before it has a reader."""


def test_each_setting_is_read() -> None:
    without = settings(models()) - traced() - named()

    assert sorted(f"{model.__name__}.{name}" for model, name in without) == sorted(EXCUSED)
    assert len(EXCUSED) <= 6


def test_a_setting_without_a_reader_is_found() -> None:
    new = [PcsWithMore, HyperPodWithMore]

    assert settings(new) - named(new) == {
        (PcsWithMore, "wait_seconds"),
        (HyperPodWithMore, "complete_wait_seconds"),
    }

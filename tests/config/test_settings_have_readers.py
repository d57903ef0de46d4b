"""Each setting of an environment file has a reader: one without would validate and do nothing."""

from __future__ import annotations

import pytest
from setting_readers import RULES, models, named, settings, traced

from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.config.pcs import Pcs

pytestmark = pytest.mark.slow

EXCUSED = {
    **dict.fromkeys(
        ("GresRecord.flags", "GresRecord.links"),
        "its property `line`, of which clusters/pcs makes gres.conf",
    ),
    **dict.fromkeys(
        ("KeysByPurpose.file_systems", "KeysByPurpose.secrets", "KeysByPurpose.volumes"),
        "clusters/composition/keys.py reads a key by its purpose, with getattr",
    ),
}
"""Settings whose readers neither way finds, each with its reader. It may only shrink."""


RULES_ALONE = {
    **dict.fromkeys(
        ("Acknowledgement.at", "Acknowledgement.reason", "Acknowledgement.rule", "Environment.acknowledge"),
        "silences findings, which are the rules' own",
    ),
    **dict.fromkeys(
        ("Release.families",),
        "of a release's lock, whose other readers are methods of the models",
    ),
    **dict.fromkeys(
        ("Directory.server_networks", "Eks.control_plane_subnet_ids", "HyperPodEks.control_plane_subnet_ids"),
        "read through a variable of another name, by clusters/ and account/preflight",
    ),
    **dict.fromkeys(
        (
            "IntelligentTieringLustre.root_squash",
            "Persistent1HddLustre.root_squash",
            "Persistent1SsdLustre.root_squash",
            "Persistent2SsdLustre.root_squash",
        ),
        "storage/lustre_file_system.py reads it of any deployment",
    ),
    "DeclaredInstanceType.announced": "whether rules ask the API for the type",
    "Pcs.agent_version": "what the image has, against which rules judge what the agent must support",
}
"""Settings that only rules are seen to read, each with what it is for. It may only shrink."""


class PcsWithMore(Pcs):
    wait_seconds: int = 30


class HyperPodWithMore(HyperPodSlurm):
    complete_wait_seconds: int = 30
    """The setting of CONTRIBUTING.md, before it has a reader."""


def test_each_setting_is_read() -> None:
    without = settings(models()) - traced() - named()

    assert sorted(f"{model.__name__}.{name}" for model, name in without) == sorted(EXCUSED)
    assert len(EXCUSED) <= 5


def test_a_setting_that_only_rules_read_is_listed() -> None:
    """It validates, and changes nothing that is deployed or run."""
    read = traced() | named()
    beyond_rules = traced(RULES) | named(without=RULES)

    assert sorted(f"{model.__name__}.{name}" for model, name in read - beyond_rules) == sorted(RULES_ALONE)
    assert len(RULES_ALONE) <= 20


def test_a_setting_without_a_reader_is_found() -> None:
    new = [PcsWithMore, HyperPodWithMore]

    assert settings(new) - named(new) == {
        (PcsWithMore, "wait_seconds"),
        (HyperPodWithMore, "complete_wait_seconds"),
    }

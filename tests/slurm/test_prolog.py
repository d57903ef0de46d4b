"""Prologs: which settings run them, and that the scripts install what the setting of PCS names."""

from __future__ import annotations

from ultracluster.config.pcs import PROLOG
from ultracluster.scripts_folder import scripts_folder
from ultracluster.slurm.prolog import slurm_prolog


def test_the_orchestrators_own_prolog_only_gets_flags() -> None:
    assert slurm_prolog() == {"PrologFlags": "Alloc,NoHold"}


def test_a_prolog_of_ours_is_named_and_installed() -> None:
    assert slurm_prolog(PROLOG) == {"Prolog": PROLOG, "PrologFlags": "Alloc,NoHold"}
    step = (scripts_folder() / "steps" / "imex.sh").read_text()
    assert f"readonly PROLOG={PROLOG}\n" in step
    assert 'slurm_prolog.sh" "$PROLOG"' in step

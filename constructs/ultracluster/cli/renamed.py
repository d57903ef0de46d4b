"""Former names of commands, and words that people try first: each is answered with the command of today.

A former name stays here for one minor version. Light: there is only data.
"""

from __future__ import annotations

from collections.abc import Sequence

RENAMED: dict[str, str] = {
    "acceptance gates": "acceptance --gates",
    "acceptance judge": "acceptance",
    "acceptance manifest": "acceptance --job",
    "acceptance script": "acceptance --job",
    "explain-placement": "job why",
    "image list": "software show --images",
    "image recipe": "software recipe",
    "image record": "software record",
    "image show": "software show",
    "job endpoint": "serve {} {} --endpoint",
    "job jax": "job write {} --framework jax",
    "job notebook": "job shell {} --notebook",
    "job preload": "job write {} --preload {}",
    "job pytorch": "job write",
    "job ray": "job write {} --framework ray",
    "job serve": "serve",
    "nodes describe": "nodes list",
    "nodes restore": "nodes add {} --restore --group {}",
    "nodes settle": "nodes list {} --settle",
    "nodes why": "doctor {} --reason {}",
    "observability apply": "apply observability",
    "observability render": "export prometheus",
    "prices update": "cost {} --refresh",
    "release check": "software show {} --check",
    "release list": "software show",
    "release lock": "software lock",
    "release mirror": "software mirror",
    "release schema": "schema release-lock",
    "release show": "software show",
    "render parallelcluster": "export parallelcluster",
    "render slurm-accounts": "export slurm-accounts",
    "render task-governance": "export task-governance",
    "render team-namespaces": "export team-namespaces",
    "software pin": "nodes list {} --pins",
    "teams apply": "apply teams",
    "users apply": "apply users",
    "users list": "users",
    "users token": "users {} --token {}",
}
"""New words by the former ones. `{}` is the next argument of the command line; the others follow."""
TRIED: dict[str, tuple[str, ...]] = {
    "ssh": ("connect",),
    "ls": ("list", "nodes list", "job list"),
    "start": ("deploy", "job submit", "nodes add"),
    "stop": ("job cancel", "nodes delete", "destroy"),
    "create": ("init", "deploy"),
    "update": ("deploy", "software update"),
    "scale": ("nodes add", "nodes delete"),
    "sbatch": ("job submit",),
    "squeue": ("job list",),
    "scancel": ("job cancel",),
    "srun": ("job shell",),
}
"""Commands that people mean by words of other tools."""
OPTIONS: dict[str, tuple[str, ...]] = {
    "--gpus": ("--accelerators", "--instance-type"),
    "--gpu": ("--gpus", "--accelerators", "--instance-type"),
    "--accelerators": ("--instance-type", "--gpus"),
    "--month": ("--days",),
}
"""Options that people mean; the first that a command has."""


def now_called(words: Sequence[str]) -> str:
    """The command line of today for one with a former name; empty where nothing was renamed."""
    for size in (2, 1):
        if template := RENAMED.get(" ".join(words[:size])):
            rest = list(words[size:])
            for _ in range(template.count("{}")):
                argument = f" {rest.pop(0)}" if rest and not rest[0].startswith("-") else ""
                template = template.replace(" {}", argument, 1)
            return " ".join([template, *rest])
    return ""


__all__ = ["OPTIONS", "RENAMED", "TRIED", "now_called"]

"""State of what is judged: a remedy for a new environment may be refused for a running one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Final

from ultracluster.catalog.fixed_settings import FixedSetting, fixed_settings
from ultracluster.config.findings import Finding, dotted
from ultracluster.config.remedy import DROP, Option, Remedy
from ultracluster.model import Cluster

_DEPLOYED: Final = ContextVar("deployed", default=False)


@contextmanager
def as_deployed() -> Generator[None]:
    """Within it the environment counts as deployed as its file says."""
    token = _DEPLOYED.set(True)
    try:
        yield
    finally:
        _DEPLOYED.reset(token)


def is_deployed() -> bool:
    """True where the environment is known to be deployed; False is not known."""
    return _DEPLOYED.get()


def for_deployed(finding: Finding, cluster: Cluster) -> Finding:
    """The finding with what AWS takes of a running environment; what it refuses becomes words.

    What is an error was never deployed so: its remedies correct the file.
    """
    if finding.blocks:
        return finding
    remedy, refused = finding.remedy, list[Option]()
    ways: list[str] = []
    for option in remedy.options:
        if rows := fixed(finding.code, option, cluster):
            refused.append(option)
            ways += [row.way for row in rows]
    if not refused:
        return finding
    asked = Remedy(options=tuple(refused)).text(finding.path)
    words = f"AWS does not change it where it is deployed ({asked}): {'; '.join(dict.fromkeys(ways))}"
    kept = tuple(option for option in remedy.options if option not in refused)
    lacking = None if kept else "decision"
    return replace(finding, remedy=replace(remedy, options=kept, lacking=lacking).noting(words))


def fixed(rule: str, option: Option, cluster: Cluster) -> list[FixedSetting]:
    """The settings of an option that AWS does not change."""
    kind = cluster.traits.kind
    return [
        row
        for one in option
        for row in fixed_settings()
        if row.holds(dotted(one.path), rule, kind, _role(one.path, cluster), removed=one.value is DROP)
    ]


def _role(path: tuple[str | int, ...], cluster: Cluster) -> str:
    group = cluster.groups.get(str(path[1])) if len(path) > 1 and path[0] == "node_groups" else None
    return group.role if group else ""

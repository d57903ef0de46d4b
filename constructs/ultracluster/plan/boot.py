"""The first boot of node groups: which image, and what its nodes install, lack or fail for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ultracluster.model import Cluster
from ultracluster.model.own_steps import steps_of_group
from ultracluster.software.first_boot import first_boot, scripts_run
from ultracluster.software.fit import Fit


@dataclass(frozen=True, slots=True, kw_only=True)
class BootPlan:
    """One group at its first boot."""

    group: str
    image: str
    """Id in the catalogue; empty where the image is not known."""
    image_text: str
    """What boots, in words."""
    minutes: float
    """An estimate of what a node installs, where all that is unknown is absent."""
    components: tuple[Fit, ...]
    """What nodes do with each component of the release; empty where our scripts do not run."""
    own_steps: tuple[str, ...] = ()
    """The team's own node steps, in their order: `proxy (required)`, `agent`."""

    def _names(self, outcome: str, *, known: bool = True) -> tuple[str, ...]:
        return tuple(
            one.component for one in self.components if one.outcome == outcome and one.known is known
        )

    @property
    def installs(self) -> tuple[str, ...]:
        """Components that the image lacks, and that are installed."""
        return self._names("installs")

    @property
    def looks_for(self) -> tuple[str, ...]:
        """Components that the image may have: installed where it does not."""
        return self._names("installs", known=False)

    @property
    def may_lack(self) -> tuple[str, ...]:
        """Components that the image may have, and that cannot be installed."""
        return tuple(
            one.component
            for one in self.components
            if one.outcome == "kept" and one.lack not in ("", "image-only")
        )

    @property
    def older(self) -> tuple[str, ...]:
        """Components that stay below what the release or the GPU family asks for, with what that is."""
        return tuple(f"{one.component} {one.older}" for one in self.components if one.older)

    @property
    def degraded(self) -> tuple[str, ...]:
        """Components without which nodes join."""
        return self._names("degraded")

    @property
    def refuses(self) -> tuple[str, ...]:
        """Components for which nodes fail."""
        return self._names("refuses")


def boot_plans(cluster: Cluster) -> tuple[BootPlan, ...]:
    """The first boot of every group."""
    return tuple(
        BootPlan(
            group=one.group,
            image=one.image.id if one.image else "",
            image_text=one.image_text,
            minutes=one.minutes,
            components=one.fits,
            own_steps=_own_steps(cluster, one.group),
        )
        for one in first_boot(cluster.environment)
    )


def _own_steps(cluster: Cluster, group: str) -> tuple[str, ...]:
    if not scripts_run(cluster.environment, cluster.groups[group].settings):
        return ()
    steps = steps_of_group(cluster.environment, group)
    return tuple(f"{step.name} (required)" if step.need == "required" else step.name for step in steps)


def step_lines(boots: Sequence[BootPlan]) -> Iterator[str]:
    """One line for all groups that run the same steps of the team's own; none where no group runs any."""
    lines: dict[str, list[str]] = {}
    for boot in boots:
        lines.setdefault(", ".join(boot.own_steps), []).append(boot.group)
    yield from (f"{', '.join(groups)}: {steps}" for steps, groups in lines.items() if steps)


def boot_lines(boots: Sequence[BootPlan]) -> Iterator[str]:
    """One line for all groups of which the same is to be said."""
    lines: dict[str, list[str]] = {}
    for boot in boots:
        lines.setdefault(_words(boot), []).append(boot.group)
    yield from (f"{', '.join(groups)}: {words}" for words, groups in lines.items())


def _words(boot: BootPlan) -> str:
    image = boot.image or boot.image_text
    if not boot.components:
        return f"{image}, no scripts of ours"
    parts: list[str] = []
    if boot.installs:
        parts.append(f"installs {', '.join(boot.installs)}")
    if boot.looks_for:
        parts.append(f"looks for {', '.join(boot.looks_for)} and installs what is absent")
    if boot.minutes:
        parts.append(f"{boot.minutes:g} min at most")
    if boot.may_lack:
        parts.append(f"may lack {', '.join(boot.may_lack)}")
    if boot.older:
        parts.append(f"keeps older {'; '.join(boot.older)}")
    if boot.degraded:
        parts.append(f"DEGRADED without {', '.join(boot.degraded)}")
    if boot.refuses:
        parts.append(f"FAILS for {', '.join(boot.refuses)}")
    return "; ".join([image, *(parts or ["installs nothing"])])

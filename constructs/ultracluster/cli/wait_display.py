"""What a wait shows on the way, on standard error: bars in a terminal, else a line for each change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import TextColumn, TimeElapsedColumn

from ultracluster.cli.progress import bars
from ultracluster.cli.terminal import remark, shows_progress
from ultracluster.config.plain_text import one_line

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from ultracluster.account.wait import GroupSeen, Look


class Display:
    """Shows looks."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._shown: dict[str, tuple[int, int, str]] = {}

    def __enter__(self) -> Display:
        if shows_progress():
            self._progress = bars(
                TextColumn("{task.completed:.0f}/{task.total:.0f}"), TimeElapsedColumn(),
                TextColumn("{task.description}", markup=False), before="{task.fields[group]}",
            )  # fmt: skip
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress:
            self._progress.stop()

    def say(self, line: str) -> None:
        """One line for a person who looks on."""
        line = one_line(line)
        if self._progress:
            self._progress.console.print(line, markup=False, highlight=False)
        else:
            remark(line)

    def show(self, look: Look) -> None:
        """A look."""
        for group in look.groups:
            text = says(group)
            if self._progress:
                if group.name not in self._tasks:
                    self._tasks[group.name] = self._progress.add_task(
                        "", group=group.name, total=group.wanted
                    )
                total = max(group.wanted, group.up)
                self._progress.update(
                    self._tasks[group.name], completed=group.up, total=total, description=text
                )
                continue
            shown = (group.up, group.wanted, text)
            if self._shown.get(group.name) != shown:
                self._shown[group.name] = shown
                self.say(f"{group.name}: {group.up} of {group.wanted} ready{'; ' + text if text else ''}")
        if self._progress:
            self._progress.refresh()


def says(group: GroupSeen) -> str:
    """What a group waits for, or lacks, in one clause."""
    behind = [node for node in group.nodes if not node.up and not node.gone]
    if group.failed:
        return group.failed
    if behind:
        more = f" (and {len(behind) - 1} more)" if behind[1:] else ""
        return f"{behind[0].id}: {behind[0].why or behind[0].state}{more}"
    degraded = sorted({one for node in group.nodes for one in node.degraded})
    return f"degraded: {', '.join(degraded)}" if degraded else group.note

"""Can this account deploy this environment right now? Every question is asked at once, nothing is changed.

    report = preflight(account, cluster)
    report.level  # "red", "yellow", "unknown" or "green"

One module for each family of questions. A call that fails takes nothing from the others: its row says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import ModuleType

from ultracluster.account.aws import Account
from ultracluster.account.preflight import (
    account as _account,
)
from ultracluster.account.preflight import (
    capacity,
    database,
    images,
    network,
    observability,
    permissions,
    provider_template,
    quotas,
    roles,
    software,
    storage,
    watch,
    zone,
)
from ultracluster.account.preflight.public_address import http_status
from ultracluster.account.preflight.rows import Group, Level, Question, Row, Situation, worst
from ultracluster.account.quotas.values import QuotaState
from ultracluster.account.side_by_side import as_they_come
from ultracluster.model import Cluster

WORKERS = 8
"""Questions asked at the same time; a client's own retries slow them down where AWS asks for it."""
_FAMILIES: tuple[ModuleType, ...] = (
    _account, watch, quotas, zone, capacity, network, storage, database, observability, roles, permissions,
    software, images, provider_template,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Report:
    """Every answer, in the order of the questions."""

    sections: Mapping[Group, list[Row]]

    @property
    def rows(self) -> list[Row]:
        return [row for rows in self.sections.values() for row in rows]

    @property
    def level(self) -> Level:
        return worst(self.rows)

    @property
    def blind(self) -> bool:
        """Return whether most calls failed: what was not seen may stop the deploy."""
        return sum(row.unread for row in self.rows) * 2 > len(self.rows)

    @property
    def quotas(self) -> list[QuotaState]:
        return [row.quota for row in self.rows if row.quota]

    @property
    def starts(self) -> list[datetime]:
        """When capacity begins that has not begun yet."""
        return [row.starts for row in self.rows if row.starts]


def questions(situation: Situation) -> Iterator[Question]:
    """Everything that is asked of AWS for an environment."""
    for family in _FAMILIES:
        yield from family.questions(situation)


def preflight(
    account: Account,
    cluster: Cluster,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    progress: Callable[[int, int], None] = lambda done, of: None,
    http_status: Callable[[str], int] = http_status,
    further: Iterable[Question] = (),
) -> Report:
    """Ask everything. Raises nothing that a call may raise.

    Args:
        http_status: asks a public address with a HEAD request.
        progress: called with questions answered and questions in all.
        further: asked after those of the environment.
    """
    queue = [*questions(Situation(account, cluster, now, http_status)), *further]
    answers: dict[int, list[Row]] = {}
    progress(0, len(queue))
    for number, answer in as_they_come([question.answer for question in queue], WORKERS):
        answers[number] = answer()
        progress(len(answers), len(queue))
    sections: dict[Group, list[Row]] = {}
    for number, question in enumerate(queue):
        sections.setdefault(question.group, []).extend(answers[number])
    return Report(sections)


__all__ = ["Level", "Question", "Report", "Row", "Situation", "preflight", "questions"]

"""The jobs of an environment: submitted, looked at, read and ended, whatever its scheduler is.

with open_queue(account, cluster, user="alice") as queue:
    job = queue.submit(submission)
    queue.log(job.id)
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from ultracluster.account.aws import Account, AccountError
from ultracluster.jobs.queue.protocol import Queue
from ultracluster.model import Cluster


@contextmanager
def open_queue(
    account: Account,
    cluster: Cluster,
    *,
    user: str = "",
    team: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Generator[Queue]:
    """The queue of a cluster, as this person.

    Args:
        user: of the environment's `users`, on Slurm; by default whoever's principal asks.
        team: whose jobs, on Kubernetes; where it is None a job's namespace says so.
        say: told in a line what takes its time, and what is done beyond what was written.

    Raises:
        AccountError: there is no way to it.
    """
    queue = _queue(account, cluster, user, team, say)
    try:
        yield queue
    finally:
        queue.close()


def _queue(
    account: Account, cluster: Cluster, user: str, team: str | None, say: Callable[[str], None]
) -> Queue:
    # one of both is needed, and each is a tenth of what the command imports
    if cluster.traits.kubernetes:
        from ultracluster.jobs.queue.kubernetes import KubernetesQueue

        return KubernetesQueue(account, cluster, team=team, say=say)
    from ultracluster.jobs.queue.person import person_session
    from ultracluster.jobs.queue.person_session import PersonSession, missing_programs
    from ultracluster.jobs.queue.slurm_queue import SlurmQueue

    if missing := missing_programs():
        raise AccountError(missing)
    session, who, node = person_session(account, cluster, user)
    return SlurmQueue(PersonSession(session.command, user=who, say=say), node)


__all__ = ["Queue", "open_queue"]

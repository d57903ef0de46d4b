"""The template of ParallelCluster's custom resource: whether AWS has published the version of the file."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.account.preflight.rows import Question, Row, Situation
from ultracluster.catalog import region
from ultracluster.catalog.parallelcluster import provider_template
from ultracluster.config.orchestrator import ParallelCluster


def questions(situation: Situation) -> Iterator[Question]:
    settings = situation.cluster.settings
    if isinstance(settings, ParallelCluster) and settings.deploy_with == "cloudformation":
        yield Question("software", _what(settings), lambda: _template(situation, settings))


def _what(settings: ParallelCluster) -> str:
    return f"template of ParallelCluster {settings.version}"


def _template(situation: Situation, settings: ParallelCluster) -> Iterator[Row]:
    what, home = _what(settings), region(situation.environment.region)
    if home is None:
        return  # a rule reports it
    url = provider_template(settings.version, region=home.name, dns_suffix=home.dns_suffix)
    try:
        status = situation.http_status(url)
    except OSError as error:
        yield Row(what, "unknown", f"{url} did not answer: {error}", unread=True)
        return
    if status == 200:
        yield Row(what, "green", f"is published in {home.name}")
    elif status in (403, 404):  # S3 hides from strangers what is not there
        yield Row(
            what, "red", f"{url} answers {status}: AWS has not published it", "another `version`: 3.16.1"
        )
    else:
        yield Row(what, "unknown", f"{url} answers {status}", unread=True)

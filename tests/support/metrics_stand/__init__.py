"""A real Prometheus with its alert manager on 127.0.0.1, what it scrapes, and who is told: all in one test.

    with metrics_stand(rules=rule_groups(cluster), alert_manager=definition) as stand:
        stand.serve("n1/dcgm", text, job="dcgm", labels={"cluster": "prod", "node": "n1"})
        stand.until(lambda: stand.query("up"))

Time runs sixty times faster: what is written as 30 seconds takes a second at most (`faster`).
"""

from metrics_stand.servers import Notification
from metrics_stand.stand import Stand, metrics_stand
from metrics_stand.versions import VERSIONS, NoPrometheusError, tools

__all__ = ["VERSIONS", "NoPrometheusError", "Notification", "Stand", "metrics_stand", "tools"]

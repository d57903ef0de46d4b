"""What every construct does with what it is given: settings in one form, rules, and reports through the CDK.

The lowest room of the constructs: it knows the rules and the CDK, and no construct.
"""

from ultracluster.guard.judging import already_judged, home_of, is_judged, report, report_findings, warn
from ultracluster.guard.names import unique_name
from ultracluster.guard.place import same_region, same_zone
from ultracluster.guard.settings import settings_of
from ultracluster.guard.tokens import Figure, holds_token

__all__ = [
    "Figure",
    "already_judged",
    "holds_token",
    "home_of",
    "is_judged",
    "report",
    "report_findings",
    "same_region",
    "same_zone",
    "settings_of",
    "unique_name",
    "warn",
]

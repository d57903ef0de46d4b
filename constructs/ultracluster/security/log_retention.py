"""How long CloudWatch Logs keeps a record: the CDK has words for the numbers that the service takes."""

from __future__ import annotations

from aws_cdk import aws_logs as logs

_WORDS = {
    1: "ONE_DAY", 3: "THREE_DAYS", 5: "FIVE_DAYS", 7: "ONE_WEEK", 14: "TWO_WEEKS", 30: "ONE_MONTH",
    60: "TWO_MONTHS", 90: "THREE_MONTHS", 120: "FOUR_MONTHS", 150: "FIVE_MONTHS", 180: "SIX_MONTHS",
    365: "ONE_YEAR", 400: "THIRTEEN_MONTHS", 545: "EIGHTEEN_MONTHS", 731: "TWO_YEARS", 1827: "FIVE_YEARS",
}  # fmt: skip


def retention(days: int) -> logs.RetentionDays:
    """The CDK's word for a number of days that the configuration allows."""
    return logs.RetentionDays[_WORDS[days]]

"""The budget: what it counts, and when it tells."""

from __future__ import annotations

from collections.abc import Callable

from templates import Synthesised
from watching import properties, watched, watching  # noqa: F401 - a fixture

from ultracluster.config.environment import ENVIRONMENT_TAG
from ultracluster.config.observability import Observability

Get = Callable[[str], Synthesised]


def test_a_budget_counts_what_has_the_environments_tag(watching: Get) -> None:  # noqa: F811
    (budget,) = properties(watching("dev"), "AWS::Budgets::Budget").values()
    data = budget["Budget"]
    assert data["BudgetLimit"] == {"Amount": 50_000, "Unit": "USD"}
    # AWS Cost Management User Guide, Budget filters: user-defined tags are `user:<key>$<value>`
    assert data["CostFilters"] == {"TagKeyValue": [f"user:{ENVIRONMENT_TAG}$dev"]}
    assert (data["BudgetType"], data["TimeUnit"]) == ("COST", "MONTHLY")


def test_it_tells_the_topic_before_and_when_it_is_exceeded(watching: Get) -> None:  # noqa: F811
    (budget,) = properties(watching("dev"), "AWS::Budgets::Budget").values()
    told = {
        (one["Notification"]["NotificationType"], one["Notification"]["Threshold"])
        for one in budget["NotificationsWithSubscribers"]
    }
    assert told == {("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100)}
    for one in budget["NotificationsWithSubscribers"]:
        (subscriber,) = one["Subscribers"]
        assert subscriber["SubscriptionType"] == "SNS"
        assert len(one["Subscribers"]) <= 11, "one topic and ten addresses at most"


def test_without_a_figure_there_is_none() -> None:
    assert watched("dev", monthly_budget_usd=None).environment.observability
    assert Observability().monthly_budget_usd is None

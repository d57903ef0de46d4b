"""The budget of an environment (AWS Cost Management User Guide, "Managing your costs with AWS Budgets").

It counts what carries the environment's tag. Costs are counted by a tag only once somebody who may do so in
the payer's account has activated it as a cost allocation tag, and only from then on: until that day the
budget stays at zero. Tags of HyperPod's instances come from its cluster, those of Capacity Blocks and
training plans, which are paid upfront, from what was bought (unverified: a month of one shows it).
"""

from __future__ import annotations

from aws_cdk import aws_budgets as budgets
from constructs import Construct

from ultracluster.config.environment import ENVIRONMENT_TAG
from ultracluster.model import Cluster

TOLD_AT = (("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100))
"""What is told, in percent of the budget. AWS Budgets forecasts once it has five weeks of figures."""


def add_budget(scope: Construct, cluster: Cluster, *, topic_arn: str, usd: float) -> budgets.CfnBudget:
    """Add the budget.

    Args:
        topic_arn: is told; of the same account, and its policy lets AWS Budgets in.
        usd: a month.
    """
    subscriber = budgets.CfnBudget.SubscriberProperty(subscription_type="SNS", address=topic_arn)
    return budgets.CfnBudget(
        scope,
        "Budget",
        budget=budgets.CfnBudget.BudgetDataProperty(
            budget_type="COST",
            time_unit="MONTHLY",
            budget_limit=budgets.CfnBudget.SpendProperty(amount=usd, unit="USD"),
            cost_filters={"TagKeyValue": [f"user:{ENVIRONMENT_TAG}${cluster.name}"]},
        ),
        notifications_with_subscribers=[
            budgets.CfnBudget.NotificationWithSubscribersProperty(
                notification=budgets.CfnBudget.NotificationProperty(
                    notification_type=kind,
                    comparison_operator="GREATER_THAN",
                    threshold=percent,
                    threshold_type="PERCENTAGE",
                ),
                subscribers=[subscriber],
            )
            for kind, percent in TOLD_AT
        ],
    )

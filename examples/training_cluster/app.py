"""All that an environment file describes as one construct of your stack; its nodes may tell your topic."""

from pathlib import Path

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_sns as sns

from ultracluster import TrainingCluster, load

app = App()
asked = load(Path(__file__).with_name("research.yaml")).environment
stack = Stack(app, asked.name, env=Environment(account=asked.account, region=asked.region))
alerts = sns.Topic.from_topic_arn(stack, "Alerts", "arn:aws:sns:us-east-2:111122223333:training-alerts")
training = TrainingCluster(stack, "Training", environment=asked)
alerts.grant_publish(training.cluster)
app.synth()

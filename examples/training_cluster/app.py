"""All that an environment file describes as one construct of your own stack, with a bucket of yours."""

from pathlib import Path

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_s3 as s3

from ultracluster import TrainingCluster, load

app = App()
asked = load(Path(__file__).with_name("research.yaml")).environment
stack = Stack(app, asked.name, env=Environment(account=asked.account, region=asked.region))
data = s3.Bucket.from_bucket_name(stack, "Tokens", "example-training-tokens")
training = TrainingCluster(stack, "Training", environment=asked)
data.grant_read(training.cluster)
app.synth()

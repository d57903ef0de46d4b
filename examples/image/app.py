"""An image with a software release in it, for the node groups of an environment, in an app of its own."""

from aws_cdk import App, CfnOutput, Stack
from aws_cdk import aws_ec2 as ec2

from ultracluster import ImageBuilderPipeline

app = App()
stack = Stack(app, "images")
vpc = ec2.Vpc(stack, "Vpc", max_azs=1, flow_logs={"Flow": ec2.FlowLogOptions()})

pipeline = ImageBuilderPipeline(
    stack,
    "TrainImage",
    name="train",
    release="2026.11",
    orchestrator="pcs",
    vpc=vpc,
)
CfnOutput(stack, "Pipeline", value=pipeline.pipeline_arn)
CfnOutput(stack, "Parameter", value=pipeline.parameter_name)
app.synth()

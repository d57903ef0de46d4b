"""AWS PCS in a VPC of its own."""

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2

from ultracluster import NodeGroup, PcsCluster

app = App()
stack = Stack(app, "research", env=Environment(account="111122223333", region="us-east-2"))
vpc = ec2.Vpc(stack, "Vpc", flow_logs={"Flow": ec2.FlowLogOptions()})
image = "/aws/service/pcs/ami/dlami-base-ubuntu2404/x86_64/latest/ami-id"
login = NodeGroup(role="login", instance_type="m5.xlarge", count=1, image=image)
train = NodeGroup(role="compute", instance_type="p5.48xlarge", count=2, image=image, partition="train")
groups = {"login": login, "train": train}
PcsCluster(stack, "Cluster", vpc=vpc, subnet=vpc.private_subnets[0], node_groups=groups)
app.synth()

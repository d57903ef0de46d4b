"""Sources that rules of several modules name, with the releases that were read."""

from __future__ import annotations

BOTOCORE = "botocore 1.44.5"
CFN_LINT = "cfn-lint 1.58.0"
MOTO = "EC2 DescribeInstanceTypeOfferings as moto 5.2.5"
PCLUSTER = "aws-parallelcluster 3.16.1"
CAPACITY_BLOCKS = "EC2 User Guide, Capacity Blocks for ML"
NETWORK_CARDS = "EC2 User Guide, Maximize network bandwidth on instances with multiple network cards"
PCS_GUIDE = "AWS PCS User Guide"
RUN_AS = "Systems Manager User Guide, Turn on Run As support for Linux and macOS managed nodes"
TRAINING_PLANS = "SageMaker Developer Guide, Reserve training plans"
RELEASES = "this package: lifecycle_scripts/releases"

"""What runs against a live AWS account, with boto3. Never at synth, and never with the CDK."""

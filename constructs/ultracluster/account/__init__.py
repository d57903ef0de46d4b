"""What runs against a live AWS account, with boto3."""

"""Files for other tools, made from an environment: nothing here needs the CDK or an account."""

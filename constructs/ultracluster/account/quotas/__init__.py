"""Service quotas of an account: values, use, requests for more."""

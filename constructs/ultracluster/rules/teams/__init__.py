"""Rules on teams: quotas, names, and what each scheduler can promise."""

"""What an environment comes to, worked out once: groups with their types, addresses and capacity; quotas."""

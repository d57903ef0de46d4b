"""AWS PCS."""

"""Rules on AWS PCS."""

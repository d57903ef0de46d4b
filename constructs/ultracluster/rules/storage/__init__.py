"""Rules on file systems, mounts, keys and the accounting database."""

"""Buckets, file systems and the accounting database: what holds data."""

"""The version of the distribution, which is read from here; nothing else says it."""

__version__ = "0.1.0"
"""Semantic versioning: docs/releasing.md says what each number promises."""

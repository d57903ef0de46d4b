"""Code blocks of the README and of docs/ run as tests."""

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()], patterns=["*.md"], excludes=["lifecycle_scripts/*"]
).pytest()

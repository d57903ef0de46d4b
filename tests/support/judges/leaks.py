"""Run in the judges' own environment: what detect-secrets (Yelp) finds in texts, which are on stdin."""

from __future__ import annotations

import json
import sys

from detect_secrets.core.scan import scan_line
from detect_secrets.settings import transient_settings

PLUGINS = (
    "AWSKeyDetector", "AzureStorageKeyDetector", "BasicAuthDetector", "DiscordBotTokenDetector",
    "GitHubTokenDetector", "JwtTokenDetector", "KeywordDetector", "NpmDetector", "PrivateKeyDetector",
    "SendGridDetector", "SlackDetector", "StripeDetector",
)  # fmt: skip

with transient_settings({"plugins_used": [{"name": name} for name in PLUGINS]}):
    answers = [
        sorted({found.type for line in text.splitlines() for found in scan_line(line)})
        for text in json.load(sys.stdin)
    ]
sys.stdout.write(json.dumps(answers) + "\n")

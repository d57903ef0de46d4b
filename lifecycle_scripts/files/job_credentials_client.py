#!/usr/bin/env python3
"""Prints credentials of the jobs' role: `credential_process` of the AWS configuration beside this file.

It runs on nodes and in containers with any Python 3; docs/security.md has what it is for.
"""

import json
import os
import socket
import sys
import time

SOCKET = os.environ.get("ULTRACLUSTER_JOB_CREDENTIALS", "/run/ultracluster-jobs/credentials.sock")
SECONDS = 60


def ask():
    """The answer; None where there was none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as service:
        service.settimeout(SECONDS)
        service.connect(SOCKET)
        text = b"".join(iter(lambda: service.recv(65536), b""))
    return json.loads(text) if text else None


def main():
    end, pause, reason = time.monotonic() + SECONDS, 0.1, "it does not answer"
    while time.monotonic() < end:
        try:
            found = ask()
        except FileNotFoundError:
            return f'{SOCKET} is not here: see "Metadata and jobs\' access to S3" in docs/security.md'
        except (OSError, ValueError) as error:
            reason = str(error)
        else:
            if found and "Error" in found:
                return str(found["Error"])
            if found:
                print(json.dumps(found))
                return 0
        time.sleep(pause)
        pause = min(2 * pause, 2)
    return f"no credentials from {SOCKET}: {reason}"


sys.exit(main())

"""When a lease ends, as AWS tells, and times as Slurm writes them. Python 3.9 and newer."""

import json
import re
import subprocess
import time
from datetime import datetime, timedelta, timezone

UTC = timezone(timedelta(0), "UTC")
ASKED_EACH = 600
"""Seconds between two questions to AWS while the end is far."""
NEAR = 3 * 3600
NEVER = ("UNLIMITED", "infinite")


class CannotTellError(Exception):
    """Something has not answered, or not well."""


def call(*words, seconds=60):
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotTellError(f"{words[0]}: {error}") from None
    if done.returncode != 0:
        said = " ".join((done.stderr.strip() or done.stdout).split())[-300:]
        raise CannotTellError(f"{' '.join(words[:3])}: {said or done.returncode}")
    return done.stdout


def ends_of(lease, now, region, kept):
    """`{"begin", "end", "asked"}` of a lease, from AWS or as it was last known; and what went wrong."""
    known = kept.get(lease["id"]) if isinstance(kept.get(lease["id"]), dict) else {}
    end = known.get("end")
    far = end is None or end - now > NEAR
    if known.get("asked", 0) + (ASKED_EACH if far and end is not None else 50) > now:
        return known, None
    try:
        begin, end = _ask(lease, now, region)
    except CannotTellError as error:
        return known, f"{lease['group']}: {error}"
    return {"begin": begin, "end": end, "asked": now}, None


def _ask(lease, now, region):
    where = ("--region", region, "--output", "json")
    try:
        if lease["kind"] == "training-plan":
            name = lease["id"].rpartition("/")[2]
            text = call("aws", "sagemaker", "describe-training-plan", "--training-plan-name", name, *where)
            return plan_times(json.loads(text), now)
        ids = ("--capacity-reservation-ids", lease["id"])
        text = call("aws", "ec2", "describe-capacity-reservations", *ids, *where)
        one = json.loads(text)["CapacityReservations"][0]
        return seconds_of(one.get("StartDate")), seconds_of(one["EndDate"])
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise CannotTellError(f"AWS does not tell when {lease['id']} ends ({error})") from None


def plan_times(answer, now):
    """Of the part of a plan that runs, or comes next; parts that follow one another are one."""
    parts = sorted(
        (seconds_of(one["StartTime"]), seconds_of(one["EndTime"]))
        for one in answer.get("ReservedCapacitySummaries") or [answer]
        if one.get("Status") not in ("Failed",)
    )
    joined = []
    for begin, end in parts:
        if joined and begin - joined[-1][1] <= 60:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return next((one for one in joined if one[1] > now), joined[-1])


def seconds_of(told):
    """The AWS CLI prints times as ISO 8601, older ones as seconds."""
    if told is None or isinstance(told, (int, float)):
        return told
    moment = datetime.fromisoformat(re.sub(r"Z\Z", "+00:00", str(told)))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def seconds_of_limit(text):
    """Of `7-00:00:00`, `01:00:00`, `30:00`; None without a limit."""
    if text in NEVER:
        return None
    days, _, clock = text.rpartition("-")
    parts = [int(part) for part in clock.split(":")]
    if days:
        parts += [0] * (3 - len(parts))
    total = 0
    for part in parts:
        total = total * 60 + part
    return total + 86400 * int(days or 0)


def seconds_of_time(text):
    """Slurm's local time; None where it says none."""
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None

"""What is done about a fault: pure functions from what is known to what is done. Nothing here asks Slurm,
runs a program or looks at a clock, so that all of it is tested as a table.

Who owns a node's state: whoever gave it its reason. Ours begin with `ultracluster:`; a node that anyone
else drained, failed or took down, or that waits for HyperPod (`Action:Reboot`, `Action:Replace`), is left as
it is.
"""

from dataclasses import replace

from known import (
    ABSENT,
    ACTION_REBOOT,
    ACTION_REPLACE,
    HELD,
    HOUR,
    MOVING,
    ORDER,
    PASSES,
    TAKEN,
    Plan,
    memory_of,
)


def action_for(finding):
    """The action that a finding asks for, before what the policy makes of it. Resets are done as reboots: the
    GPUs behind an NVSwitch are reset together or not at all."""
    if finding.result == "critical":
        action = {"reset": "reboot", "none": "drain"}.get(finding.action, finding.action)
        return action if action in ORDER else "drain"
    if finding.result == "warn" and finding.action == "requeue":
        return "requeue"
    if finding.result != "unknown" and finding.when_idle in ("reset", "reboot"):
        return "reboot-idle"
    return "none"


def worst(findings):
    """The finding with the strongest action, or None: the first of several."""
    acting = [finding for finding in findings if action_for(finding) != "none"]
    return max(acting, key=lambda finding: ORDER.index(action_for(finding)), default=None)


def share_of(nodes, policy):
    """How many nodes may be out of work because of us; at least one."""
    there = sum(1 for node in nodes if node.held_by_us or not node.states & ABSENT)
    return max(1, there * policy.max_drained_percent // 100)


def is_out(node):
    """Whether a node counts as taken out by us. A repair by HyperPod counts whoever asked for it."""
    if node.reason.startswith("Action:"):
        return bool(node.states & (HELD | MOVING | {"DOWN"}))
    return node.ours and bool(node.states & (HELD | MOVING | {"DOWN"})) and not node.states & {"POWERED_DOWN"}


def room(nodes, me, policy, now):
    """Empty if one more node may be drained; else why not, as (word, text)."""
    share = share_of(nodes, policy)
    others = [node for node in nodes if node.name != me.name]
    out = sum(map(is_out, others))
    if out >= share:
        return "share", f"{out} nodes are out of work by us or by HyperPod already, {share} may be"
    per_hour = policy.max_drained_per_hour or share
    recent = sum(_drains(node, now) for node in nodes)
    if recent >= per_hour:
        return "hour", f"{recent} drains within an hour already, {per_hour} may be"
    return None


def _drains(node, now):
    """Drains of this node by us within the last hour: by its comment, or by its reason."""
    memory = memory_of(node.comment)
    if memory is not None and memory.drained:
        return sum(1 for time in memory.drained if now - HOUR < time <= now + 60)
    return int(is_out(node) and node.reason_at > now - HOUR)


def answer(finding, me, nodes, policy, *, boot, now):
    """What is done at once about the worst finding of this node.

    Args:
        finding: what `worst` found.
        me: the node itself.
        nodes: all of the cluster, with it.
        boot: id of its boot.
        now: seconds since 1970.
    """
    action = action_for(finding)
    if action == "none" or policy.mode == "off":
        return Plan(refused="nothing", why=f"{finding.by}: {finding.result}, no action")
    if me.foreign:
        return Plan(
            refused="foreign",
            why=f"{finding.by}: the node is {me.described}, which is not ours",
        )
    if action == "requeue":
        requeue = Plan((("requeue", ""),), why=f"{finding.by}: the job is queued again, the node stays")
        if not finding.when_idle:
            return requeue
        after = replace(finding, result="warn", action="none")
        then = answer(after, me, nodes, policy, boot=boot, now=now)
        return replace(then, steps=requeue.steps + then.steps, why=f"{requeue.why}; {then.why}", refused="")
    memory = memory_of(me.comment)
    action = _allowed(action, memory, policy, now)
    if me.states & TAKEN:
        # Ours already: what has to follow may be more than it was.
        if memory is not None and ORDER.index(action) > ORDER.index(memory.action or "none"):
            memory = replace(memory, action=action, by=finding.by, boot=boot, event=finding.event)
            return Plan(
                (("remember", ""),),
                why=f"{finding.by}: {action} follows, the node is out of work already",
                memory=memory,
            )
        return Plan(refused="ours", why=f"{finding.by}: the node is out of work already")
    full = room(nodes, me, policy, now)
    if full:
        return Plan(refused=full[0], why=f"{finding.by}: {full[1]}: ALERT only")
    if memory is not None:
        memory = memory.since(now)
        memory = replace(memory, boot=boot, action=action, by=finding.by, event=finding.event)
        memory = replace(memory, drained=(*memory.drained, now))
    # ParallelCluster terminates what is drained and idle within a minute, but not what Slurm reboots
    # (aws/aws-parallelcluster-node, slurm_plugin/slurm_resources.py, is_state_healthy).
    spared = policy.orchestrator == "parallelcluster" and policy.slurm_reboots
    first = "reboot" if spared and action in ("reboot", "reboot-idle") else "drain"
    return Plan(((first, finding.reason),), why=f"{finding.by}: {action}", memory=memory)


def _allowed(action, memory, policy, now):
    """A node that came back too often is replaced; a person decides where replacing is not wanted."""
    if (
        action == "reboot"
        and memory is not None
        and len(memory.since(now).drained) >= policy.max_resumes_per_day
    ):
        action = "replace"
    return "drain" if action == "replace" and not policy.replace else action


def follow(me, policy, *, jobs, boot, now, passes, warned):
    """What is done next about a node that we drained.

    Args:
        jobs: ids of the jobs on it.
        boot: id of its present boot.
        passes: how often in a row all checks, and the failed one, have passed since.
        warned: whether its jobs were sent a signal, and had their time; None before that.
    """
    if not me.held_by_us or me.states & MOVING:
        return Plan(refused="foreign", why="not ours to go on with")
    memory = memory_of(me.comment)
    action = memory.action if memory is not None else ""
    returned = memory is not None and memory.boot not in ("", boot)
    if jobs:
        if action not in ("reboot", "replace") or returned:
            return Plan(refused="nothing", why="its jobs go on")
        if warned is None:
            return Plan((("warn", ""),), why="its jobs are told")
        if not warned:
            return Plan(refused="nothing", why="its jobs have some time left")
        return Plan((("requeue", ""),), why="its jobs are queued again")
    if action in ("reboot", "reboot-idle", "replace") and not returned:
        return _end("replace" if action == "replace" else "reboot", me, policy)
    return _resume(memory, policy, boot=boot, now=now, passes=passes)


def _end(verb, me, policy):
    """A node without jobs is rebooted or replaced, by who can."""
    kind = policy.orchestrator
    if kind == "hyperpod-slurm" and policy.recovery:
        reason = ACTION_REPLACE if verb == "replace" else ACTION_REBOOT
        return Plan((("fail", reason),), why=f"HyperPod is asked to {verb} it")
    if kind == "parallelcluster" and (verb == "replace" or not policy.slurm_reboots):
        return Plan(
            refused="nothing", why="ParallelCluster terminates a drained node, and launches another one"
        )
    if kind == "pcs" and verb == "replace":
        return Plan(
            (("power-down", me.reason),), why="PCS terminates what is powered down, and launches another"
        )
    if kind in ("parallelcluster", "pcs") and policy.slurm_reboots:
        return Plan((("reboot", me.reason),), why="Slurm reboots it")
    if kind == "pcs":
        return Plan((("reboot-here", ""),), why="it reboots itself: slurmctld has no RebootProgram")
    return Plan(refused="nothing", why=f"nobody here can {verb} it: a person has to")


def _resume(memory, policy, *, boot, now, passes):
    """Whether a node is given back: only after its checks passed, and not for ever."""
    if passes < PASSES:
        return Plan(refused="nothing", why=f"its checks have passed {passes} of {PASSES} times")
    if memory is None or not memory.drained:
        return Plan(
            refused="nothing", why="its comment does not tell what was done to it: a person has to resume it"
        )
    if memory.boot == boot and (memory.event or memory.action in ("reboot", "reboot-idle", "replace")):
        return Plan(refused="nothing", why="it has not been rebooted since")
    memory = memory.since(now)
    if len(memory.resumed) >= policy.max_resumes_per_day:
        why = f"it came back {len(memory.resumed)} times in 24 hours"
        # A file system that is gone, or a clock, is nothing that another machine mends.
        if policy.replace and memory.action in ("reboot", "reboot-idle"):
            memory = replace(memory, action="replace", boot=boot)
            return Plan((("remember", ""),), why=f"{why}: replace", memory=memory)
        return Plan(refused="nothing", why=f"{why}: a person has to look")
    memory = replace(memory, action="", event=False, resumed=(*memory.resumed, now))
    return Plan((("resume", ""),), why="its checks passed", memory=memory)

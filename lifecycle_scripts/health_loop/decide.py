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
    BUSY,
    HELD,
    HOUR,
    LAST_WEIGHT,
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
    if finding.action == "hold":
        return "hold"
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


def room(nodes, me, policy, now, *, action="drain", fatal=False):
    """None if one more node may be drained for that action; else why not, as (word, text).

    What only waits for an idle moment has a budget of its own, as large: it keeps no lost GPU in service.
    """
    share = share_of(nodes, policy)
    idle = action == "reboot-idle"
    others = [node for node in nodes if node.name != me.name and is_out(node)]
    out = sum(_budget(node) == ("idle" if idle else "share") for node in others)
    if out >= share or (idle and len(others) >= closed_limit(nodes, policy)):
        return "share", f"{out} nodes are out of work by us or by HyperPod already, {share} may be"
    # Of a small cluster a second node may be lost within an hour, where it is really broken.
    per_hour = policy.max_drained_per_hour or (max(2, share) if fatal else share)
    recent = sum(_drains(node, now, idle=idle) for node in nodes)
    if recent >= per_hour:
        return "hour", f"{recent} drains within an hour already, {per_hour} may be"
    return None


def closed_limit(nodes, policy):
    """Number of nodes that may be closed to new jobs because of us, the share included; at least two."""
    there = sum(1 for node in nodes if node.held_by_us or not node.states & ABSENT)
    return max(2, share_of(nodes, policy), there * policy.max_closed_percent // 100)


def _budget(node):
    """The budget that a node that is out uses: `share`, `idle` or, closed beyond the share, `waiting`."""
    memory = memory_of(node.comment) if node.ours else None
    if memory is not None and memory.waiting:
        return "waiting"
    return "idle" if memory is not None and memory.action == "reboot-idle" else "share"


def _drains(node, now, *, idle=False):
    """Drains of this node by us within the last hour: by its comment, or by its reason."""
    memory = memory_of(node.comment)
    if memory is not None and (memory.drained or memory.idled or memory.waiting):
        times = memory.idled if idle else memory.drained
        return sum(1 for time in times if now - HOUR < time <= now + 60)
    return int(not idle and is_out(node) and node.reason_at > now - HOUR)


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
        return _requeue(finding, me, nodes, policy, boot=boot, now=now)
    if finding.action == "hold" and finding.job:
        alone = answer(replace(finding, job=""), me, nodes, policy, boot=boot, now=now)
        return replace(alone, steps=(*alone.steps, ("requeue", finding.job)))
    memory = memory_of(me.comment)
    action = _allowed(action, memory, policy, now)
    if me.states & TAKEN:
        return _worse(finding, action, memory, boot)
    full = room(nodes, me, policy, now, action=action, fatal=finding.fatal)
    if full:
        return _beyond(full, finding, action, me, nodes, policy, boot=boot)
    if memory is not None:
        memory = _remembered(memory.since(now), finding, action, boot)
        memory = _counted(memory, now)
    return Plan(((_first(action, me, policy), finding.reason),), why=f"{finding.by}: {action}", memory=memory)


def _first(action, me, policy):
    """The step that takes the node out. ParallelCluster terminates what is drained and idle within a minute,
    but not what Slurm reboots (aws/aws-parallelcluster-node, slurm_plugin/slurm_resources.py,
    is_state_healthy). With a job on it the node is safe, and the job comes first (`follow`)."""
    spared = policy.orchestrator == "parallelcluster" and policy.slurm_reboots
    at_once = action == "reboot-idle" or (action == "reboot" and not me.states & BUSY)
    return "reboot" if spared and at_once else "drain"


def _remembered(memory, finding, action, boot):
    return replace(memory, boot=boot, action=action, by=finding.by, event=finding.event, waiting=False)


def _counted(memory, now):
    if memory.action == "reboot-idle":
        return replace(memory, idled=(*memory.idled, now))
    return replace(memory, drained=(*memory.drained, now))


def _requeue(finding, me, nodes, policy, *, boot, now):
    """The job that met it, and no other; then what waits for an idle moment."""
    steps = (("requeue", finding.job),) if finding.job else ()
    job = f"job {finding.job} is queued again" if steps else "which job met it is not known: none is touched"
    plan = Plan(steps, why=f"{finding.by}: {job}, the node stays", refused="" if steps else "nothing")
    if not finding.when_idle:
        return plan
    after = replace(finding, result="warn", action="none")
    then = answer(after, me, nodes, policy, boot=boot, now=now)
    return replace(then, steps=steps + then.steps, why=f"{plan.why}; {then.why}")


def _worse(finding, action, memory, boot):
    """The node is out by us already: what has to follow may be more than it was."""
    if memory is not None and ORDER.index(action) > ORDER.index(memory.action or "none"):
        waiting, weight = memory.waiting, memory.weight
        memory = replace(_remembered(memory, finding, action, boot), waiting=waiting, weight=weight)
        return Plan(
            (("remember", ""),),
            why=f"{finding.by}: {action} follows, the node is out of work already",
            memory=memory,
        )
    return Plan(refused="ours", why=f"{finding.by}: the node is out of work already")


def _beyond(full, finding, action, me, nodes, policy, *, boot):
    """The share is full. What ends running work closes its node to new jobs up to the second limit; above
    it the node is the last choice. Jobs run on, and the fault stays open."""
    word, text = full
    memory = memory_of(me.comment)
    if not finding.fatal or memory is None:
        return Plan(refused=word, why=f"{finding.by}: {text}: ALERT only, it stays open")
    limit = closed_limit(nodes, policy)
    closed = sum(is_out(node) for node in nodes if node.name != me.name)
    if closed < limit:
        memory = replace(_remembered(memory, finding, action, boot), waiting=True)
        why = f"{finding.by}: {text}: closed to new jobs, {action} waits for the share"
        return Plan((("drain", finding.reason),), why=why, refused=word, memory=memory)
    why = f"{finding.by}: {text}, and {closed} of {limit} are closed to new jobs: ALERT only, it stays open"
    if memory.weight or me.weight >= LAST_WEIGHT:
        return Plan(refused=word, why=why)
    return Plan((("last", ""),), why=why, refused=word, memory=replace(memory, weight=me.weight))


def promote(me, nodes, policy, now):
    """Lets a node that waits for the share continue, if the share has a place."""
    memory = memory_of(me.comment)
    if not me.held_by_us or memory is None or not memory.waiting:
        return Plan(refused="foreign", why="nothing waits for the share")
    full = room(nodes, me, policy, now, action=memory.action, fatal=True)
    if full:
        return Plan(refused=full[0], why=f"{memory.by}: {full[1]}: it waits, closed to new jobs")
    memory = _counted(replace(memory.since(now), waiting=False), now)
    why = f"{memory.by}: {memory.action}, the share has a place"
    return Plan((("remember", ""),), why=why, memory=memory)


def _allowed(action, memory, policy, now):
    """A node that came back too often is replaced; a person decides where replacing is not wanted."""
    if (
        action == "reboot"
        and memory is not None
        and len(memory.since(now).drained) >= policy.max_resumes_per_day
    ):
        action = "replace"
    return "hold" if action == "replace" and not policy.replace else action


def follow(me, policy, *, jobs, boot, now, passes, warned, open_event=False, tries=None):
    """What is done next about a node that we drained.

    Args:
        jobs: ids of the jobs on it.
        boot: id of its present boot.
        passes: how often in a row all checks, and the failed one, have passed since.
        warned: whether its jobs were sent a signal, and had their time; None before that.
        open_event: whether the kernel has reported a grave fault since the boot.
        tries: how often each step was asked for, by its word.
    """
    if not me.held_by_us or me.states & MOVING:
        return Plan(refused="foreign", why="not ours to go on with")
    memory = memory_of(me.comment)
    action = memory.action if memory is not None else ""
    returned = memory is not None and memory.boot not in ("", boot)
    if memory is not None and memory.waiting and not returned:
        return Plan(refused="share", why="it waits for the share, closed to new jobs")
    if jobs:
        if action not in ("reboot", "replace") or returned:
            return Plan(refused="nothing", why="its jobs go on")
        if warned is None:
            return Plan((("warn", ""),), why="its jobs are told")
        if not warned:
            return Plan(refused="nothing", why="its jobs have some time left")
        # ParallelCluster terminates a drained node as soon as its jobs have ended, unless Slurm reboots it.
        spared = policy.orchestrator == "parallelcluster" and policy.slurm_reboots and action == "reboot"
        reboot = (("reboot", me.reason),) if spared else ()
        return Plan((("requeue", ""), *reboot), why="its jobs are queued again")
    if action in ("reboot", "reboot-idle", "replace") and not returned:
        return _end("replace" if action == "replace" else "reboot", me, policy, tries or {})
    if action == "hold":
        return Plan(refused="nothing", why=f"{memory.by}: a person has to look")
    if open_event and not returned:
        return Plan(refused="nothing", why="the kernel has reported a fault: it has not been rebooted since")
    return _resume(memory, policy, boot=boot, now=now, passes=passes)


TRIES = 4
"""So often the same repair is asked for; then a graver one, or a person."""


def _end(verb, me, policy, tries):
    """A node without jobs is rebooted or replaced, by who can; what shows no effect grows graver."""
    plan = _by_whom(verb, me, policy)
    word = plan.steps[0][0] if plan.steps else ""
    if word == "reboot-here" and tries.get(word):
        plan = Plan((("reboot-here", "force"),), why=f"{plan.why}; without effect until now, so at once")
    if not word or tries.get(word, 0) < TRIES:
        return plan
    if verb == "reboot" and policy.orchestrator == "pcs" and policy.replace:
        return _end("replace", me, policy, tries)
    why = f"a {verb} was asked for {TRIES} times without effect: a person has to look"
    return Plan(refused="stuck", why=why)


def request(me, policy, *, boot, tries):
    """Plan for our request to HyperPod that has had its time without effect.

    Args:
        tries: how often it was made. A replacement that fails is not tried again by HyperPod, and waits for
            capacity otherwise: it is asked for a second time, and no more.
    """
    memory = memory_of(me.comment)
    waits = bool(me.states & {"FAIL", "FAILING"}) and not me.states & MOVING and policy.recovery
    if memory is None or memory.boot != boot or not waits:
        return Plan(refused="foreign", why="the request is not ours")
    verb = "replace" if me.reason == ACTION_REPLACE else "reboot"
    if (memory.action == "replace") is not (verb == "replace"):
        return Plan(refused="foreign", why="someone has asked for something else")
    if tries < (TRIES if verb == "reboot" else TRIES // 2):
        why = f"HyperPod was asked {tries} times to {verb} it, without effect: it is asked again"
        return Plan((("fail", me.reason),), why=why)
    if verb == "reboot" and policy.replace:
        why = f"HyperPod was asked {tries} times to reboot it, without effect: it is asked to replace it"
        return Plan((("fail", ACTION_REPLACE),), why=why, memory=replace(memory, action="replace"))
    why = f"HyperPod was asked {tries} times to {verb} it, without effect: a person has to look"
    return Plan(refused="stuck", why=why)


def _by_whom(verb, me, policy):
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
    if memory is None or not (memory.drained or memory.idled or memory.waiting):
        return Plan(
            refused="nothing", why="its comment does not tell what was done to it: a person has to resume it"
        )
    if memory.boot == boot and (memory.event or memory.action in ("reboot", "reboot-idle", "replace")):
        return Plan(refused="nothing", why="it has not been rebooted since")
    memory = memory.since(now)
    if len(memory.resumed) >= policy.max_resumes_per_day:
        why = f"it came back {len(memory.resumed)} times in 24 hours"
        # A file system that is gone, or a clock, is nothing that another machine mends.
        if policy.replace and memory.action == "reboot":
            memory = replace(memory, action="replace", boot=boot)
            return Plan((("remember", ""),), why=f"{why}: replace", memory=memory)
        return Plan(refused="nothing", why=f"{why}: a person has to look")
    weight = (("weight", str(memory.weight)),) if memory.weight else ()
    memory = replace(memory, action="", event=False, waiting=False, weight=0, resumed=(*memory.resumed, now))
    return Plan((("resume", ""), *weight), why="its checks passed", memory=memory)


def preferred(me, *, fatal):
    """A node in service that was made the last choice, and has no such fault any more, is as before."""
    memory = memory_of(me.comment)
    if fatal or memory is None or not memory.weight or me.foreign or me.held_by_us:
        return Plan(refused="nothing", why="its weight stays")
    step = ("weight", str(memory.weight))
    return Plan((step,), why="its weight is as before", memory=replace(memory, weight=0))

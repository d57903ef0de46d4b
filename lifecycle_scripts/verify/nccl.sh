# shellcheck shell=bash
# What NCCL wrote: the same lines that `ultracluster acceptance` looks for (nccl_patterns.json), on the node itself.
[[ -z ${ULTRACLUSTER_VERIFY_NCCL:-} ]] || return 0
ULTRACLUSTER_VERIFY_NCCL=1

# shellcheck source-path=SCRIPTDIR source=checks.sh
source "${BASH_SOURCE[0]%/*}/checks.sh"

# nccl::check_logs PROTOCOL EXPECTED GPU_DIRECT FILE...: PROTOCOL (RDMA, SENDRECV) that the plugin uses on this type, EXPECTED as
# for devices; GPU_DIRECT true or false; each is empty where it is not known
nccl::check_logs() {
  local outcome id message status=0 answer
  answer=$(nccl::judge "${BASH_SOURCE[0]%/*}/nccl_patterns.json" "$@" 2>&1) || status=$?
  if ((status != 0)); then
    check::unknown nccl "the logs could not be read: $(tail -n 1 <<<"$answer")"
    return
  fi
  while IFS='|' read -r outcome id message; do
    "check::$outcome" "$id" "$message"
  done <<<"$answer"
}

# Prints OUTCOME|ID|MESSAGE lines.
nccl::judge() {
  python3 -IS - "$@" <<'PYTHON'
import json, re, sys

patterns_path, right, expected, gpu_direct, *logs = sys.argv[1:]
with open(patterns_path, encoding="utf-8") as file:
    document = json.load(file)
patterns = document["patterns"]
for pattern in patterns:
    pattern["compiled"] = re.compile(pattern["regex"])
expected = {int(number) for number in expected.split()}

# lengths are bounded, so that no text can make the search slow
PREFIX = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]{0,63}):([0-9]{1,10}):[0-9]{1,10} "
    r"(?:\[[0-9]{1,4}\] )?(?:[^\s:]{1,120}:[0-9]{1,6} (?:\([^\s)]{1,80}\) )?)?NCCL [A-Z]{4,7} "
)
TAG = re.compile(r"(?:\[[0-9]{1,6},[0-9]{1,6}\]<std(?:out|err)>: ?|[0-9]{1,6}: |\[pod/[^\]\s]{1,300}\] )")
RANK = re.compile(r"# +Rank +[0-9]+ +(?:Group +[0-9]+ +)?Pid +([0-9]+) +on +(\S+) ")
seen, loose, listed, hosts, torn, finished, has_rows = {}, {}, [], set(), 0, False, False


def look(process, text, cut):
    found = loose if process is None else seen.setdefault(process, {})
    for pattern in patterns:
        if pattern["contains"] in text and not (cut and pattern.get("whole_line")):
            match = pattern["compiled"].search(text)
            if match:
                found.setdefault(pattern["id"], set()).add(match.groupdict().get("value") or "")


def owner(found, alone):
    if found in hosts:
        return found
    known = max((host for host in hosts if found.endswith(host)), key=len, default="")
    if not alone:
        return known
    return known if known and found[: -len(known)].replace(".", "").isdigit() else found


for path in logs:
    with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
        while line := file.readline(1 << 16):
            cut = not line.endswith("\n")
            line = line.rstrip("\r\n")
            tag = TAG.match(line)
            line = line[tag.end():] if tag else line
            rank = RANK.search(line) if "Rank" in line else None
            if rank:
                has_rows = True
                hosts.add(rank[2])
                listed.append((rank[2], int(rank[1])))
            finished = finished or "# Avg bus bandwidth" in line
            starts = []
            for match in PREFIX.finditer(line) if "NCCL " in line else ():
                host = owner(match[1], match.start() == 0)
                process = (host, int(match[2])) if host else None
                starts.append((match.end(1) - len(host) if host else match.start(), match.end(), process))
            if not starts:
                look(None, line, cut)
                continue
            if line[: starts[0][0]].strip():
                torn += 1
                look(None, line[: starts[0][0]], True)
            for index, (_, end, process) in enumerate(starts):
                last = index + 1 == len(starts)
                torn += not last
                if process:
                    hosts.add(process[0])
                look(process, line[end:] if last else line[end : starts[index + 1][0]], cut or not last)


def say(outcome, name, message):
    print(f"{outcome}|{name}|{' '.join(message.split())}")


def names(processes):
    shown = [f"{host}:{pid}" for host, pid in processes[:3]]
    return ": " + ", ".join(shown) + (f" and {len(processes) - 3} more" if len(processes) > 3 else "")


everything = [*seen.values(), loose]
values = {}
for kinds in everything:
    for kind, found in kinds.items():
        values.setdefault(kind, set()).update(found)
several = len({host for host, _ in (listed or seen)}) > 1
for pattern in patterns:
    if pattern["expect"] == "never" and pattern["id"] in values:
        if pattern["id"] != "host-copies" or gpu_direct == "true":
            who = sorted(process for process, kinds in seen.items() if pattern["id"] in kinds)
            say(pattern["verdict"], pattern["id"], pattern["message"] + (names(who) if who else ""))
if not seen:
    say("unknown", "nccl-log", "no lines of NCCL: run with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET")
    sys.exit()
wanted = list(dict.fromkeys(listed)) or list(seen)
silent = [process for process in wanted if process not in seen]
if silent:
    say("unknown", "nccl-log", f"no lines of NCCL from {len(silent)} of {len(wanted)} processes{names(silent)}")
speaking = [process for process in wanted if process in seen]
for pattern in patterns:
    if pattern["expect"] == "process" and speaking:
        missing = [process for process in speaking if pattern["id"] not in seen[process]]
        if not missing:
            said = ", ".join(sorted(filter(None, values[pattern["id"]]))) or "seen"
            say("pass", pattern["id"], f"{said} on {len(speaking)} processes")
        elif pattern["verdict"] == "fail" and ((has_rows and not finished) or torn):
            say("unknown", pattern["id"], f"the log is cut or mixed, so far {pattern['message']}{names(missing)}")
        else:
            say(pattern["verdict"], pattern["id"], pattern["message"] + names(missing))
    elif pattern["expect"] == "host" and several and gpu_direct == "true":
        without = sorted({h for h, _ in seen} - {h for (h, _), kinds in seen.items() if pattern["id"] in kinds})
        if not without:
            say("pass", pattern["id"], "channels with GPUDirect RDMA on every node")
        elif has_rows and not finished:
            say("unknown", pattern["id"], f"the log is cut, so far {pattern['message']}: {', '.join(without[:3])}")
        else:
            say("fail", pattern["id"], f"{pattern['message']}: {', '.join(without[:3])}")
used = sorted(values.get("protocol", ()))
if used and right and used != [right]:
    say("fail", "protocol", f"transport protocol {' and '.join(used)}; on this type the plugin uses {right}")
nics = sorted({int(number) for number in values.get("provider", ()) if number})
fitting = [number for number in sorted(expected) if nics and number >= nics[-1]]
known = " or ".join(map(str, sorted(expected)))
if nics and nics[0] < min(fitting, default=nics[-1]):
    say("fail", "interfaces", f"{' and '.join(map(str, nics))} EFA interfaces found, expected {known or nics[-1]}")
elif nics and expected and not fitting:
    say("warn", "interfaces", f"{' and '.join(map(str, nics))} EFA interfaces found, more than the {known} that are known")
PYTHON
}

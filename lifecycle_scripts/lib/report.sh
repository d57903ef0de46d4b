# shellcheck shell=bash
# What a run found and did: one JSON object per step and line, and one for the whole run behind them.
[[ -z ${ULTRACLUSTER_LIB_REPORT:-} ]] || return 0
ULTRACLUSTER_LIB_REPORT=1

# shellcheck source-path=SCRIPTDIR source=log.sh
source "${BASH_SOURCE[0]%/*}/log.sh"

# On the node from the end of a run that did not fail to the beginning of the next: the last line of its report.
readonly REPORT_READY=$ULTRACLUSTER_ROOT/run/ultracluster/ready

# report::step NAME STATE VERSION SECONDS MESSAGE [VERB=RESULT...]
# STATE: already | installed | skipped | degraded | failed. STEP_COMPONENTS has the components of the step.
report::step() {
  local component
  local -r seconds=$4 message=$5
  {
    printf '%s\0' step "$1" "$2" "$3" "$seconds" "$message" "$(($# - 5))" "${@:6}"
    for component in "${!STEP_COMPONENTS[@]}"; do printf '%s %s\0' "$component" "${STEP_COMPONENTS[$component]}"; done
  } | report::line
}

# report::run ENTRY ready|degraded|failed SECONDS REASON [DEGRADED...]
report::run() {
  printf '%s\0' run "$@" | KERNEL=$(uname -r) READY=$REPORT_READY report::line
}

# Printed, and appended to report.jsonl with one write. A report that cannot be written ends no run.
report::line() {
  REPORT_FILE=${ULTRACLUSTER_REPORT:-$ULTRACLUSTER_ROOT/var/log/ultracluster/report.jsonl} python3 -IS -c '
import json, os, sys, time

env = os.environ.get
kind, *words = sys.stdin.buffer.read().decode(errors="replace").split("\0")[:-1]
line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
if kind == "step":
    name, state, version, seconds, message, count, *words = words
    components = {}
    for text in words[int(count):]:
        component, outcome, found, preferred, detail = (text + " ").split(" ", 4)
        components[component] = {
            "outcome": outcome,
            "found": "" if found == "-" else found,
            "preferred": "" if preferred == "-" else preferred,
            "detail": detail.strip(),
        }
    line |= {
        "step": name,
        "state": state,
        "version": version,
        "seconds": float(seconds),
        "message": message,
        "verbs": dict(verb.split("=", 1) for verb in words[:int(count)]),
        "components": dict(sorted(components.items())),
    }
else:
    entry, state, seconds, reason, *degraded = words
    line |= {"run": "ended", "entry": entry, "state": state, "degraded": degraded, "seconds": float(seconds)}
line |= {"group": env("NODE_GROUP", ""), "role": env("NODE_ROLE", ""), "release": env("CLUSTER_RELEASE", "")}
if kind == "run":
    line |= {"image_family": env("NODE_FAMILY", ""), "kernel": env("KERNEL", ""), "reason": reason}
text = json.dumps(line) + "\n"
sys.stdout.write(text)


def write(path, flags, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o644)
    os.write(file, text.encode())
    os.close(file)


write(env("REPORT_FILE"), os.O_APPEND, text)
if kind == "run" and state != "failed" and env("READY"):
    write(env("READY") + ".new", os.O_TRUNC, text)
    os.replace(env("READY") + ".new", env("READY"))
' || log::warn "the report could not be written"
}

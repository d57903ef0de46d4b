# shellcheck shell=bash
# What a run found and did, as one JSON object per step and line.
[[ -z ${ULTRACLUSTER_LIB_REPORT:-} ]] || return 0
ULTRACLUSTER_LIB_REPORT=1

# shellcheck source-path=SCRIPTDIR source=log.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/log.sh"

# report::step NAME STATE VERSION SECONDS MESSAGE [VERB=RESULT...]
# STATE: installed | already | skipped | failed. Printed, and appended to report.jsonl with one write.
report::step() {
  REPORT_FILE=${ULTRACLUSTER_REPORT:-$ULTRACLUSTER_ROOT/var/log/ultracluster/report.jsonl} python3 -IS -c '
import json, os, sys, time

name, state, version, seconds, message, *verbs = sys.argv[1:]
env = os.environ.get
line = json.dumps({
    "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    "step": name,
    "state": state,
    "version": version,
    "seconds": float(seconds),
    "message": message,
    "verbs": dict(verb.split("=", 1) for verb in verbs),
    "group": env("NODE_GROUP", ""),
    "role": env("NODE_ROLE", ""),
    "release": env("CLUSTER_RELEASE", ""),
}) + "\n"
sys.stdout.write(line)
path = env("REPORT_FILE")
os.makedirs(os.path.dirname(path), exist_ok=True)
file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
os.write(file, line.encode())
' "$@"
}

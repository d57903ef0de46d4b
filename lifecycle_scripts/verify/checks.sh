# shellcheck shell=bash
# What was looked at and how it came out: for a person, or as one JSON line.
[[ -z ${ULTRACLUSTER_VERIFY_CHECKS:-} ]] || return 0
ULTRACLUSTER_VERIFY_CHECKS=1

# OUTCOME of a check: pass | fail | warn | skip (not for this node) | unknown (could not be found out)
CHECK_IDS=() CHECK_OUTCOMES=() CHECK_MESSAGES=()

check::pass() { check::add pass "$@"; }
check::fail() { check::add fail "$@"; }
check::warn() { check::add warn "$@"; }
check::skip() { check::add skip "$@"; }
check::unknown() { check::add unknown "$@"; }

# check::add OUTCOME ID MESSAGE
check::add() {
  CHECK_OUTCOMES+=("$1")
  CHECK_IDS+=("$2")
  CHECK_MESSAGES+=("${3//$'\n'/ }")
}

# Sets CHECK_VERDICT (pass, fail, not judged) and CHECK_SUMMARY: the first check that decides.
check::verdict() {
  local outcome index passed=0
  for outcome in fail unknown; do
    for index in "${!CHECK_IDS[@]}"; do
      [[ ${CHECK_OUTCOMES[index]} == "$outcome" ]] || continue
      CHECK_VERDICT=fail
      [[ $outcome == fail ]] || CHECK_VERDICT='not judged'
      CHECK_SUMMARY="${CHECK_IDS[index]}: ${CHECK_MESSAGES[index]}"
      return 0
    done
  done
  for outcome in "${CHECK_OUTCOMES[@]}"; do [[ $outcome != pass ]] || passed=$((passed + 1)); done
  CHECK_VERDICT=pass CHECK_SUMMARY="$passed checks passed"
  ((passed > 0)) || CHECK_VERDICT='not judged' CHECK_SUMMARY='nothing was there to check'
}

# check::finish: prints all; status 0 for a pass, 1 for anything else. JSON where FABRIC_JSON is set.
check::finish() {
  local index word
  check::verdict
  if [[ -n ${FABRIC_JSON:-} ]]; then
    check::json
  else
    for index in "${!CHECK_IDS[@]}"; do
      word=${CHECK_OUTCOMES[index]}
      [[ $word != unknown ]] || word='not judged'
      printf '%-10s  %-12s  %s\n' "$word" "${CHECK_IDS[index]}" "${CHECK_MESSAGES[index]}"
    done
    printf '%s: %s\n' "${CHECK_VERDICT^^}" "$CHECK_SUMMARY"
  fi
  [[ $CHECK_VERDICT == pass ]]
}

check::json() {
  local index arguments=()
  for index in "${!CHECK_IDS[@]}"; do
    arguments+=("${CHECK_IDS[index]}" "${CHECK_OUTCOMES[index]}" "${CHECK_MESSAGES[index]}")
  done
  python3 -IS -c '
import json, socket, sys

verdict, summary, instance_type, *rest = sys.argv[1:]
words = {"unknown": "not judged"}
checks = [{"id": i, "outcome": words.get(o, o), "message": m} for i, o, m in zip(rest[::3], rest[1::3], rest[2::3])]
print(json.dumps({"schema": 1, "host": socket.gethostname().partition(".")[0], "type": instance_type,
                  "verdict": verdict, "summary": summary, "checks": checks}))
' "$CHECK_VERDICT" "$CHECK_SUMMARY" "${FABRIC_TYPE:-}" ${arguments[@]+"${arguments[@]}"}
}

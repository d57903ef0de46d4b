# shellcheck shell=bash
# What a run found and did: one JSON object per step and line, and one for the whole run behind them.
[[ -z ${ULTRACLUSTER_LIB_REPORT:-} ]] || return 0
ULTRACLUSTER_LIB_REPORT=1

for library in log json; do
  # shellcheck source=/dev/null
  source "${BASH_SOURCE[0]%/*}/$library.sh"
done

# On the node from the end of a run that did not fail to the beginning of the next: the last line of its report.
readonly REPORT_READY=$ULTRACLUSTER_ROOT/run/ultracluster/ready

# report::step NAME STATE VERSION SECONDS MESSAGE [VERB=RESULT...]
# STATE: already | installed | skipped | degraded | failed. STEP_COMPONENTS has the components of the step.
report::step() {
  local line verb verbs='' components
  report::begin line
  json::member line step "$1"
  json::member line state "$2"
  json::member line version "$3"
  line+=", \"seconds\": $4"
  json::member line message "$5"
  for verb in "${@:6}"; do json::member verbs "${verb%%=*}" "${verb#*=}"; done
  report::components components
  line+=", \"verbs\": {$verbs}, \"components\": {$components}"
  report::node line
  report::write "{$line}"
}

# report::components VARIABLE: the members of STEP_COMPONENTS, by their names. A value is OUTCOME FOUND PREFERRED DETAIL, with -
# for a version that is not there.
report::components() {
  local component at rest outcome found preferred text names=() members=''
  for component in "${!STEP_COMPONENTS[@]}"; do
    for ((at = ${#names[@]}; at > 0; at--)); do
      [[ ${names[at - 1]} > $component ]] || break
      names[at]=${names[at - 1]}
    done
    names[at]=$component
  done
  for component in "${names[@]}"; do
    rest="${STEP_COMPONENTS[$component]} "
    outcome=${rest%% *} rest=${rest#* }
    found=${rest%% *} rest=${rest#* }
    preferred=${rest%% *} rest=${rest#* }
    text=''
    json::member text outcome "$outcome"
    json::member text found "${found#-}"
    json::member text preferred "${preferred#-}"
    rest=${rest#"${rest%%[![:space:]]*}"}
    json::member text detail "${rest%"${rest##*[![:space:]]}"}"
    members+="${members:+, }\"$component\": {$text}"
  done
  printf -v "$1" '%s' "$members"
}

# report::run ENTRY ready|degraded|failed SECONDS REASON [DEGRADED...]
report::run() {
  local line name text degraded=''
  for name in "${@:5}"; do
    json::text text "$name"
    degraded+="${degraded:+, }$text"
  done
  report::begin line
  json::member line run ended
  json::member line entry "$1"
  json::member line state "$2"
  line+=", \"degraded\": [$degraded], \"seconds\": $3"
  report::node line
  json::member line image_family "${NODE_FAMILY:-}"
  json::member line kernel "$(uname -r)"
  json::member line reason "$4"
  report::write "{$line}"
  [[ $2 != failed ]] || return 0
  # With one write: who reads half of a line takes the last one of the report.
  printf '{%s}\n' "$line" >"$REPORT_READY" || log::warn "$REPORT_READY could not be written"
}

# report::begin VARIABLE, report::node VARIABLE: the members that all lines begin with, and those of the node

report::begin() {
  local TZ=UTC time
  printf -v time '%(%Y-%m-%dT%H:%M:%SZ)T' -1
  printf -v "$1" '"time": "%s"' "$time"
}

report::node() {
  json::member "$1" group "${NODE_GROUP:-}"
  json::member "$1" role "${NODE_ROLE:-}"
  json::member "$1" release "${CLUSTER_RELEASE:-}"
}

# Appended to report.jsonl, and printed where everything is. A report that cannot be written ends no run.
report::write() {
  local -r file=${ULTRACLUSTER_REPORT:-$ULTRACLUSTER_ROOT/var/log/ultracluster/report.jsonl}
  ! log::is_verbose || printf '%s\n' "$1"
  [[ -d ${file%/*} ]] || mkdir -p "${file%/*}" || { log::warn "the report could not be written" && return; }
  printf '%s\n' "$1" >>"$file" || log::warn "the report could not be written"
}

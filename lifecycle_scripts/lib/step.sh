# shellcheck shell=bash
# The frame around a step: detect, install when needed, verify always, report. What a step lacks fails the node only where
# the contract of its component says so (contract.sh); else the node goes on without it.
[[ -z ${ULTRACLUSTER_LIB_STEP:-} ]] || return 0
ULTRACLUSTER_LIB_STEP=1

for library in log clock report contract steps answer verb; do
  # shellcheck source=/dev/null
  source "${BASH_SOURCE[0]%/*}/$library.sh"
done

readonly STEP_LONG_MS=20000

# step::run NAME: status 0 when the node can go on. Sets STEP_STATE (already, installed, skipped, degraded, failed), STEP_MESSAGE
# (what is here, or the first cause of what is not), and STEP_COMPONENTS, what became of each component.
step::run() {
  local -r name=$1
  local started ended seconds installed='' verbs=()
  STEP_STATE=already STEP_VERSION='' STEP_MESSAGE='' STEP_ABOUT=''
  # shellcheck disable=SC2034 # verb.sh reads it
  declare -gA STEP_COMPONENTS=() STEP_INSTALLS=()
  declare -ga STEP_LACKS=()
  clock::now started
  verb::budget "$name" "$started"

  step::verb "$name" look
  # shellcheck disable=SC2153 # set by step::verb
  case $STEP_VERB:$STEP_STATUS in
    verify:*)
      verbs+=(detect=present)
      step::checked "$name"
      ;;
    "detect:$STEP_ABSENT")
      verbs+=(detect=absent)
      [[ -z ${STEP_BEFORE_INSTALL:-} ]] || "$STEP_BEFORE_INSTALL" "$name"
      STEP_STATE=installed
      step::install "$name"
      [[ $STEP_STATE == failed ]] || { step::verb "$name" verify && step::checked "$name"; }
      ;;
    "detect:$STEP_SKIPPED")
      verbs+=(detect=not-applicable)
      STEP_STATE=skipped
      ;;
    *)
      verbs+=(detect=failed)
      step::lacks "$name"
      ;;
  esac
  step::settle "$name"

  clock::now ended
  clock::to_seconds seconds "$((ended - started))"
  report::step "$name" "$STEP_STATE" "$STEP_VERSION" "$seconds" "$STEP_MESSAGE" "${verbs[@]}"
  [[ $STEP_STATE != failed ]] || return 1
  if [[ $STEP_STATE == degraded ]]; then
    log::context 5
    log::warn "$name: degraded in $seconds s: $STEP_MESSAGE"
  else
    # What took long, and what is proven, is for whoever watches the boot.
    if ((ended - started >= STEP_LONG_MS)) || [[ $name == proof ]]; then
      log::announce "$name: $STEP_STATE in $seconds s${STEP_MESSAGE:+: $STEP_MESSAGE}"
    else
      log::info "$name: $STEP_STATE in $seconds s${STEP_MESSAGE:+: $STEP_MESSAGE}"
    fi
  fi
}

step::install() {
  step::verb "$1" install
  if ((STEP_STATUS == 0)); then
    verbs+=(install=ok)
    installed=yes
  else
    verbs+=(install=failed)
    step::lacks "$1"
  fi
}

# step::checked NAME: after `verify`
step::checked() {
  if ((STEP_STATUS == 0)); then
    verbs+=(verify=ok)
  else
    verbs+=(verify=failed)
    step::lacks "$1"
  fi
}

# A verb failed: does the node fail with it, or go on without what the verb was about? The first cause of a component stays.
step::lacks() {
  local -r step=$1 component=$STEP_ABOUT
  local -r what=${component:-$step}
  local outcome found preferred detail
  read -r outcome found preferred detail <<<"${STEP_COMPONENTS[$what]:-lacks - ${RELEASE["$what.version"]:--} }"
  if [[ $outcome != degraded ]]; then
    step::verdict "$step" "$component" "${found#-}"
    STEP_COMPONENTS[$what]="$CONTRACT_VERDICT $found $preferred $STEP_MESSAGE"
    STEP_LACKS+=("$what")
  fi
  if [[ ${STEP_COMPONENTS[$what]} == refused* ]]; then STEP_STATE=failed; else STEP_STATE=degraded; fi
}

# step::verdict STEP COMPONENT FOUND: COMPONENT is empty where the step is not about one. Sets CONTRACT_VERDICT.
step::verdict() {
  if [[ -n $2 ]]; then
    contract::verdict "$2" "$3"
  elif steps::is_required "$1"; then # strict is about versions of the release, not about holds or scratch disks
    CONTRACT_VERDICT=refused
  else
    CONTRACT_VERDICT=degraded
  fi
}

# The end of a step: components that verbs found lacking, and those of which they said no more than their name.
step::settle() {
  local -r step=$1
  local component outcome found preferred detail
  [[ -z $STEP_ABOUT || -n ${STEP_COMPONENTS[$STEP_ABOUT]:-} ]] || STEP_COMPONENTS[$STEP_ABOUT]="lacks - ${RELEASE["$STEP_ABOUT.version"]:--} "
  for component in "${!STEP_COMPONENTS[@]}"; do
    read -r outcome found preferred detail <<<"${STEP_COMPONENTS[$component]}"
    case $outcome:$STEP_STATE in
      lacks:skipped) outcome=not-needed detail=$STEP_MESSAGE ;;
      lacks:failed | lacks:degraded) outcome=degraded detail="not reached: $STEP_MESSAGE" ;;
      lacks:*)
        outcome=kept found=${STEP_VERSION:--} detail=$STEP_MESSAGE
        [[ -z $installed ]] || outcome=installed
        ;;
      degraded:already | degraded:installed)
        STEP_STATE=degraded
        [[ " ${STEP_LACKS[*]} " == *" $component "* ]] || STEP_LACKS+=("$component")
        STEP_MESSAGE=$detail
        ;;
      *) continue ;;
    esac
    STEP_COMPONENTS[$component]="$outcome $found $preferred $detail"
  done
  # The cause of the step is that of the first component that it lacks.
  ((${#STEP_LACKS[@]} == 0)) || [[ $STEP_STATE == skipped ]] || step::first_cause
}

# A refused component goes before a degraded one.
step::first_cause() {
  local component first=''
  for component in "${STEP_LACKS[@]}"; do
    [[ ${STEP_COMPONENTS[$component]} != refused* ]] || { first=$component && break; }
  done
  read -r _ _ _ STEP_MESSAGE <<<"${STEP_COMPONENTS[${first:-${STEP_LACKS[0]}}]}"
}

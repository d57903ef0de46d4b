# shellcheck shell=bash
# shellcheck disable=SC2034 # what the callers read
# Users and groups of the sandbox: $ULTRACLUSTER_ROOT/etc/passwd and group.

# owners::find FILE FIELD VALUE: sets FIELDS to the fields of its line
owners::find() {
  local line
  while IFS= read -r line; do
    IFS=: read -ra FIELDS <<<"$line"
    [[ ${FIELDS[$2]} != "$3" ]] || return 0
  done <"$ULTRACLUSTER_ROOT/etc/$1"
  return 1
} 2>/dev/null

# owners::user NAME|ID: sets USER_ID and GROUP, his login group
owners::user() {
  if owners::find passwd 0 "$1" || owners::find passwd 2 "$1"; then
    USER_ID=${FIELDS[2]} GROUP=${FIELDS[3]}
  else
    [[ $1 =~ ^[0-9]+$ ]] || return 1
    USER_ID=$1 GROUP=-
  fi
}

# owners::group NAME|ID: sets GROUP
owners::group() {
  if owners::find group 0 "$1"; then
    GROUP=${FIELDS[2]}
  else
    [[ $1 =~ ^[0-9]+$ ]] || return 1
    GROUP=$1
  fi
}

#!/usr/bin/env bash
# ultracluster-state [DOCUMENT...]: brings this node to the state that its cluster is to have now. Each handler NN_name in
# /opt/ultracluster/state.d stands for a document name.json below URI of /etc/ultracluster/pull: what changed is fetched and
# looked at, and the handler gets the path of it. All documents by default.
# ultracluster-state status [DOCUMENT...]: which document this node has, and what it is without; everybody may ask.
#
# A handler leaves the node as the document says, however often it runs, and ends with 0 when all of it is done; what it prints
# last is its word on it. One that fails is called again at the next pull. A document that is no JSON, is for another cluster
# or of another schema changes nothing: the last good one stays in force, also after a boot and without S3.
set -euo pipefail
umask 022
export LC_ALL=C

readonly ROOT=${ULTRACLUSTER_ROOT:-}
# The AWS CLI is in /usr/local/bin, which is not on the PATH of every service.
[[ -n $ROOT ]] || export PATH=${PATH:-/usr/bin:/bin}:/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin:/opt/slurm/bin
readonly CONFIG=$ROOT/etc/ultracluster/pull HANDLERS=$ROOT/opt/ultracluster/state.d
# Of each document: name.json, the last good one; name.etag, of the newest one seen; name.problem, why that was not taken;
# name.undone, what of the one in name.json could not be done; name.said, the handler's last word
readonly KEPT=$ROOT/var/lib/ultracluster/state
# What is in force since the node booted: digest of document and handler
readonly DONE=$ROOT/run/ultracluster/state
readonly NOT_TAKEN="the newest document is not taken"
readonly LARGEST=$((4 << 20)) HANDLER_SECONDS=600

# of_config KEY
of_config() { sed -n "s/^$1=//p" "$CONFIG" 2>/dev/null; }

# handlers [DOCUMENT...]: their paths
handlers() {
  local path name
  for path in "$HANDLERS"/[0-9][0-9]_*; do
    [[ -x $path && ! -d $path ]] || continue
    name=${path##*/??_}
    [[ $# -eq 0 || " $* " == *" $name "* ]] || continue
    printf '%s\n' "$path"
  done
}

# keep NAME SUFFIX TEXT: whole or not at all; nothing is written where that is there already
keep() {
  local -r file=$KEPT/$1.$2
  [[ ! -e $file || $(<"$file") != "$3" ]] || return 0
  printf '%s\n' "$3" >"$file.new"
  mv -f -- "$file.new" "$file"
}

# tell NAME problem|undone TEXT
tell() {
  # The journal has it once, not each minute.
  [[ -e $KEPT/$1.$2 && $(<"$KEPT/$1.$2") == "$3" ]] || echo "ultracluster-state: $1: $3" >&2
  keep "$@"
}

# look FILE NAME: prints why a document is not taken; nothing when it is
look() {
  python3 -IS - "$1" "$2" "$(of_config CLUSTER)" "$LARGEST" <<'PYTHON'
import json, os, sys

path, name, cluster, largest = sys.argv[1:]


def refuse(why):
    print(why)
    sys.exit()


if os.path.getsize(path) > int(largest):
    refuse(f"it is larger than {largest} bytes")
try:
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
except (OSError, ValueError, RecursionError) as error:
    refuse(f"it is no JSON ({' '.join(str(error).split())})")
if not isinstance(document, dict):
    refuse("it is no JSON object")
for key, wanted in (("schema", 1), ("document", name), ("cluster", cluster)):
    if document.get(key) != wanted or type(document.get(key)) is not type(wanted):
        refuse(f"its {key} is {document.get(key)!r:.60}, not {wanted!r}")
PYTHON
}

# fetch NAME: takes a newer document. Status 1: it is not known whether there is one.
fetch() {
  local -r uri=$(of_config URI) region=$(of_config REGION) new=$KEPT/.$1.new
  local -r place=${uri#s3://}
  local etag='' said status=0 why options=()
  [[ ! -s $KEPT/$1.etag ]] || etag=$(<"$KEPT/$1.etag")
  [[ -z $etag ]] || options+=(--if-none-match "$etag")
  [[ -z $region ]] || options+=(--region "$region")
  said=$(timeout 60 aws s3api get-object --bucket "${place%%/*}" --key "${place#*/}/$1.json" "${options[@]}" --query ETag --output text "$new" 2>&1) || status=$?
  if ((status != 0)); then
    rm -f -- "$new"
    case $said in
      *'(304)'* | *'Not Modified'*)
        [[ ! -e $KEPT/$1.problem || $(<"$KEPT/$1.problem") == "$NOT_TAKEN"* ]] || rm -f -- "$KEPT/$1.problem"
        return 0
        ;;
      *NoSuchKey* | *'(404)'*) why="there is no $uri/$1.json; a deploy writes it" ;;
      *AccessDenied* | *'(403)'*) why="$uri/$1.json is not there, or this node's role may not read it" ;;
      *) why="$uri/$1.json cannot be read: $(tail -n 1 <<<"$said" | cut -c 1-200)" ;;
    esac
    tell "$1" problem "$why"
    return 1
  fi
  why=$(look "$new" "$1") || why="it could not be looked at"
  if [[ -n $why ]]; then
    rm -f -- "$new"
    tell "$1" problem "$NOT_TAKEN: $why"
  else
    mv -f -- "$new" "$KEPT/$1.json"
    rm -f -- "$KEPT/$1.problem"
  fi
  # Last: what is killed before it is fetched again.
  keep "$1" etag "$said"
}

# digest HANDLER NAME
digest() {
  local sums
  sums=$(sha256sum <"$KEPT/$2.json" && sha256sum <"$1")
  printf '%s' "${sums//[^0-9a-f]/}"
}

# apply HANDLER NAME
apply() {
  local now said status=0
  [[ -e $KEPT/$2.json ]] || return 1
  now=$(digest "$1" "$2")
  [[ ! -e $DONE/$2 || $(<"$DONE/$2") != "$now" ]] || return 0
  said=$(timeout --kill-after=10 "$HANDLER_SECONDS" "$1" "$KEPT/$2.json" 2>&1 </dev/null) || status=$?
  ((status != 0)) || printf '%s\n' "$said"
  said=$(tail -n 1 <<<"$said" | cut -c 1-2000)
  if ((status == 124 || status == 137)); then
    tell "$2" undone "its handler did not end within $HANDLER_SECONDS s"
    return 1
  elif ((status != 0)); then
    tell "$2" undone "not all of it is done: ${said:-the handler ended with status $status}"
    return 1
  fi
  keep "$2" said "$said"
  rm -f -- "$KEPT/$2.undone"
  printf '%s' "$now" >"$DONE/$2.new"
  mv -f -- "$DONE/$2.new" "$DONE/$2"
}

pull() {
  local handler name status=0 found
  [[ -n $(of_config URI) ]] || { echo "ultracluster-state: $CONFIG does not tell where the documents are" >&2 && return 2; }
  mkdir -p "$KEPT" "$DONE"
  found=$(handlers "$@")
  while read -r handler; do
    [[ -n $handler ]] || continue
    name=${handler##*/??_}
    fetch "$name" || status=1
    apply "$handler" "$name" || status=1
  done <<<"$found"
  return "$status"
}

# NAME: first digits of the document's digest, the handler's word, and what is missing
status() {
  local handler name sum words
  while read -r handler; do
    [[ -n $handler ]] || continue
    name=${handler##*/??_} words=''
    if [[ -e $KEPT/$name.json ]]; then
      sum=$(sha256sum <"$KEPT/$name.json" 2>/dev/null) || sum='?'
      words="document ${sum:0:12}"
      if [[ -e $DONE/$name ]]; then
        [[ ! -s $KEPT/$name.said ]] || words+=": $(<"$KEPT/$name.said")"
      else
        words+=", not in force"
      fi
    else
      words="no document yet"
    fi
    for sum in problem undone; do
      [[ ! -s $KEPT/$name.$sum ]] || words+="; PROBLEM: $(<"$KEPT/$name.$sum")"
    done
    printf '%s: %s\n' "$name" "$words"
  done < <(handlers "$@")
}

case ${1:-} in
  status)
    shift
    status "$@"
    ;;
  -*)
    echo "usage: ${0##*/} [status] [DOCUMENT...]" >&2
    exit 2
    ;;
  *)
    mkdir -p "$ROOT/run/ultracluster"
    # One at a time; the kernel lets go when its holder dies. A handler may leave something running: it does not hold the lock.
    # Root's to read, too: whoever may open it may lock it, and would keep the account that he is to lose.
    (umask 077 && : >>"$ROOT/run/ultracluster/state.lock")
    exec {lock}>>"$ROOT/run/ultracluster/state.lock"
    flock --timeout "${ULTRACLUSTER_STATE_WAIT:-300}" "$lock" || { echo "another pull does not end" >&2 && exit 1; }
    pull "$@" {lock}>&-
    ;;
esac

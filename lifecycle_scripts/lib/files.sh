# shellcheck shell=bash
# Configuration files: written beside their place and renamed, so that nobody sees half a file.
[[ -z ${ULTRACLUSTER_LIB_FILES:-} ]] || return 0
ULTRACLUSTER_LIB_FILES=1

# shellcheck source-path=SCRIPTDIR source=log.sh
source "${BASH_SOURCE[0]%/*}/log.sh"

# Downloads, sources and builds, until the end of the run: not in /var/tmp, where others may write and which hardened images
# mount noexec.
# shellcheck disable=SC2034 # what others read
readonly FILES_WORK=$ULTRACLUSTER_ROOT/var/lib/ultracluster/work

# files::same SOURCE PATH: are these two files of text the same? Without a process: each run looks at dozens.
files::same() {
  local here='' wanted=''
  [[ -r $1 && -r $ULTRACLUSTER_ROOT$2 && ! -d $ULTRACLUSTER_ROOT$2 ]] || return 1
  # It ends at the end of the file, which is no success; or at a byte that no text has.
  ! IFS= read -r -d '' wanted <"$1" || return 1
  ! IFS= read -r -d '' here <"$ULTRACLUSTER_ROOT$2" || return 1
  [[ $here == "$wanted" ]]
}

# files::install SOURCE PATH [MODE]
files::install() {
  local -r source=$1 target=$ULTRACLUSTER_ROOT$2 mode=${3:-0644}
  # One fixed name: a run that was killed leaves one such file at most, and the next run reuses it.
  # It ends in none of the suffixes (.conf, .service) that configuration folders are read for.
  local -r new=${target%/*}/.${target##*/}.ultracluster-new
  # Where a caller looks at the status, bash goes on after an error: half of a file (the disk is full) must not get the name.
  if { [[ -d ${target%/*} ]] || mkdir -p "${target%/*}"; } && cp -- "$source" "$new" && chmod "$mode" "$new" && mv -f -- "$new" "$target"; then
    log::info "wrote $2"
  else
    rm -f -- "$new"
    # shellcheck disable=SC2034 # run_verb.sh tells it
    FILES_ERROR="cannot write $2"
    return 1
  fi
}

# files::write PATH [MODE]: the same, from stdin
files::write() {
  local -r text=$ULTRACLUSTER_ROOT/run/ultracluster/text
  { [[ -d ${text%/*} ]] || mkdir -p "${text%/*}"; } && cat >"$text" || return
  files::install "$text" "$@"
}

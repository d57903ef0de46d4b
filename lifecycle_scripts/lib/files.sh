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
  if { [[ -d ${target%/*} ]] || mkdir -p "${target%/*}"; } && install -m "$mode" -- "$source" "$new" && mv -f -- "$new" "$target"; then
    log::info "wrote $2"
  else
    files::failed "$new" "$2"
  fi
}

# files::failed NEW PATH
files::failed() {
  rm -rf -- "$1"
  # shellcheck disable=SC2034 # run_verb.sh reports it
  FILES_ERROR="cannot write $2"
  return 1
}

# files::install_missing: lines SOURCE PATH [MODE] on stdin, with a SOURCE below these scripts. Those that are not as they should be
# are installed in this order. Neighbours of one folder and mode that keep their names go together: four processes for dozens of files.
files::install_missing() {
  local source target mode folder='' together=()
  while read -r source target mode; do
    mode=${mode:-0644}
    files::same "$ULTRACLUSTER_HOME/$source" "$target" && [[ $mode != 0755 || -x $ULTRACLUSTER_ROOT$target ]] && continue
    if [[ "$mode ${target%/*}" != "$folder" || ${source##*/} != "${target##*/}" ]]; then
      files::install_together "$folder" "${together[@]}" || return
      folder="$mode ${target%/*}" together=()
    fi
    if [[ ${source##*/} == "${target##*/}" ]]; then
      together+=("$ULTRACLUSTER_HOME/$source")
    else
      files::install "$ULTRACLUSTER_HOME/$source" "$target" "$mode" || return
    fi
  done
  files::install_together "$folder" "${together[@]}"
}

# files::install_together 'MODE FOLDER' [SOURCE...]: as `files::install` does it. Each file appears whole.
files::install_together() {
  local -r mode=${1%% *} folder=${1#* }
  local -r new=$ULTRACLUSTER_ROOT$folder/.ultracluster-new
  local source
  (($# > 1)) || return 0
  (($# > 2)) || { files::install "$2" "$folder/${2##*/}" "$mode" && return; }
  [[ ! -e $new ]] || rm -rf -- "$new" # of a run that was killed
  if mkdir -p -- "$new" && install -m "$mode" -- "${@:2}" "$new" && mv -f -- "$new"/* "${new%/*}"; then
    rmdir -- "$new"
    for source in "${@:2}"; do log::info "wrote $folder/${source##*/}"; done
  else
    files::failed "$new" "to $folder"
  fi
}

# files::write PATH [MODE]: as `files::install` does it, from stdin
files::write() {
  local -r target=$ULTRACLUSTER_ROOT$1 mode=${2:-0644}
  local -r new=${target%/*}/.${target##*/}.ultracluster-new
  local text=''
  IFS= read -r -d '' text || true
  [[ ! -e $new ]] || rm -rf -- "$new" # of a run that was killed
  if { [[ -d ${target%/*} ]] || mkdir -p "${target%/*}"; } && printf '%s' "$text" >"$new" &&
    { [[ $mode == 0644 ]] || chmod "$mode" "$new"; } && mv -f -- "$new" "$target"; then
    log::info "wrote $1"
  else
    files::failed "$new" "$1"
  fi
}

# files::has PATH TEXT: is this all of the file's text, with the end of its last line?
files::has() {
  local here=''
  [[ -f $ULTRACLUSTER_ROOT$1 && -r $ULTRACLUSTER_ROOT$1 ]] || return 1
  ! IFS= read -r -d '' here <"$ULTRACLUSTER_ROOT$1" || return 1
  [[ $here == "$2"$'\n' ]]
}

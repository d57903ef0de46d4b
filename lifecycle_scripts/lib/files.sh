# shellcheck shell=bash
# Configuration files: written beside their place and renamed, so that nobody sees half a file.
[[ -z ${ULTRACLUSTER_LIB_FILES:-} ]] || return 0
ULTRACLUSTER_LIB_FILES=1

# shellcheck source-path=SCRIPTDIR source=log.sh
source "${BASH_SOURCE[0]%/*}/log.sh"

# files::ours FOLDER: a folder of ours in a place where everybody may write (/var/tmp). A link or a folder that somebody else has
# put there is removed, never followed. Others may not list it; apt reads files in it as a user of its own.
files::ours() {
  local -r folder=$ULTRACLUSTER_ROOT$1
  if [[ -L $folder || (-e $folder && ! (-d $folder && -O $folder)) ]]; then
    log::warn "$1 is not ours, it is removed"
    rm -rf -- "$folder" || return 1
  fi
  mkdir -p "${folder%/*}"
  [[ -d $folder ]] || mkdir -- "$folder" || return 1
  chmod 0711 "$folder"
}

# files::same SOURCE PATH
files::same() {
  cmp --silent -- "$1" "$ULTRACLUSTER_ROOT$2"
}

# files::install SOURCE PATH [MODE]
files::install() {
  local -r source=$1 target=$ULTRACLUSTER_ROOT$2 mode=${3:-0644}
  # One fixed name: a run that was killed leaves one such file at most, and the next run reuses it.
  # It ends in none of the suffixes (.conf, .service) that configuration folders are read for.
  local -r new=${target%/*}/.${target##*/}.ultracluster-new
  mkdir -p "${target%/*}"
  cp -- "$source" "$new"
  chmod "$mode" "$new"
  mv -f -- "$new" "$target"
  log::info "wrote $2"
}

# files::write PATH [MODE]: the same, from stdin
files::write() {
  local -r text=$ULTRACLUSTER_ROOT/run/ultracluster/text
  mkdir -p "${text%/*}"
  cat >"$text"
  files::install "$text" "$@"
}

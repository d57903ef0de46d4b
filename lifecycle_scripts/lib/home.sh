# shellcheck shell=bash
# Homes on shared file systems: whole or not at all, also when many nodes make the same one at once. One rename wins, and a folder
# with something in it is never replaced. Accounts are made long after the scripts are gone: what is installed of this file on nodes
# is run as a program, bash home.sh TARGET SOURCE [OWNER].

[[ -z ${ULTRACLUSTER_LIB_HOME:-} ]] || return 0
ULTRACLUSTER_LIB_HOME=1

# home::exists PATH: an empty folder is none: somebody made the mount point of an earlier try.
home::exists() {
  [[ -n $(ls -A "${ULTRACLUSTER_ROOT:-}$1" 2>/dev/null) ]]
}

# home::make TARGET SOURCE [OWNER]: a copy of the folder SOURCE, with its owners; with OWNER (`name:` or ids) a folder that is his
# and closed to others, with what is in SOURCE, if there is one. Status 1: it cannot be written; 2: the file system takes root for
# somebody else (root squash), who may give nothing away; 3: it cannot be put in its place; 4: it cannot be given away. HOME_SAID has
# what chown said.
home::make() {
  local -r target=${ULTRACLUSTER_ROOT:-}$1 source=${ULTRACLUSTER_ROOT:-}$2 owner=${3:-}
  local -r new=${target%/*}/.${target##*/}.ultracluster-${NODE_ADDRESS:-$(uname -n)}
  local squashed=4
  HOME_SAID=''
  rm -rf -- "$new" || return 1
  # Ours, or none: where others may write, somebody may have put a folder or a link in its place.
  mkdir -p -- "${new%/*}" && mkdir -m 0700 -- "$new" || return 1
  if [[ -z $owner ]]; then
    cp -a --no-target-directory -- "$source" "$new" || { rm -rf -- "$new" && return 1; }
  else
    [[ ! -d $source ]] || cp -a -- "$source/." "$new" || { rm -rf -- "$new" && return 1; }
    chmod 0700 "$new" || { rm -rf -- "$new" && return 1; }
    HOME_SAID=$(chown -R "$owner" "$new" 2>&1) || {
      echo "$HOME_SAID" >&2
      # What root has just made belongs to somebody else only there.
      [[ $(stat --format %u "$new") == "$EUID" ]] || squashed=2
      rm -rf -- "$new"
      return "$squashed"
    }
  fi
  mv --no-target-directory -- "$new" "$target" 2>/dev/null || {
    rm -rf -- "$new"
    home::exists "$1" || return 3
  }
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || home::make "$@"

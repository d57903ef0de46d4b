# shellcheck shell=bash
# What the fakes of package managers share: $FAKE/packages/NAME holds the version of an installed package; a script
# $FAKE/packages.d/NAME makes what the package brings, with $VERSION; NAME.versions has those that are to be had, one per line.

packages::add() {
  local -r name=$1
  export VERSION=$2
  folder "$FAKE/packages"
  [[ -e $FAKE/packages.d/$name || -e $FAKE/any_package ]] || fail "unable to locate package $name"
  packages::has "$name" "$VERSION" || fail "Version '$VERSION' for '$name' was not found"
  [[ ! -e $FAKE/packages.d/$name ]] || bash -euo pipefail "$FAKE/packages.d/$name"
  echo "$VERSION" >"$FAKE/packages/$name"
}

# packages::has NAME VERSION
packages::has() {
  local offered
  [[ -e $FAKE/packages.d/$1.versions && $2 != 1.0-1 ]] || return 0
  while read -r offered; do
    # shellcheck disable=SC2053 # either may be a pattern
    [[ $offered != $2 && $2 != $offered ]] || return 0
  done <"$FAKE/packages.d/$1.versions"
  return 1
}

# packages::matching PATTERN...: names of installed packages
packages::matching() {
  local path pattern found=1
  for path in "$FAKE"/packages/*; do
    [[ -e $path ]] || continue
    for pattern in "$@"; do
      # shellcheck disable=SC2053 # it is a pattern
      [[ ${path##*/} == $pattern ]] || continue
      echo "${path##*/}"
      found=0
      break
    done
  done
  return "$found"
}

# shellcheck shell=bash
# What the fakes of package managers share: $FAKE/packages/NAME holds the version of an installed package; a script
# $FAKE/packages.d/NAME makes what the package brings, with $VERSION.

packages::add() {
  local -r name=$1
  export VERSION=$2
  folder "$FAKE/packages"
  [[ -e $FAKE/packages.d/$name || -e $FAKE/any_package ]] || fail "unable to locate package $name"
  [[ ! -e $FAKE/packages.d/$name ]] || bash -euo pipefail "$FAKE/packages.d/$name"
  echo "$VERSION" >"$FAKE/packages/$name"
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

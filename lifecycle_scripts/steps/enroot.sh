# shellcheck shell=bash
# Libraries: software
# enroot: containers without privileges, for pyxis.

enroot::detect() {
  software::for enroot compute
  software::settle enroot "$(enroot::version)"
  step::present "enroot $(enroot::version)"
}

enroot::version() {
  "$ULTRACLUSTER_ROOT/usr/bin/enroot" version 2>/dev/null | head -n 1 || true
}

enroot::needs() { software::lacking enroot "$(enroot::version)"; }

enroot::install() {
  software::install enroot
  software::clean enroot
}

enroot::verify() {
  software::proven enroot "$(enroot::version)" "enroot"
}

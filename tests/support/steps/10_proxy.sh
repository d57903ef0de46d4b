# shellcheck shell=bash
# The company's proxy for package managers, as docs/own-steps.md has it.
# need: required
readonly PROXY_FILE=/etc/apt/apt.conf.d/95proxy PROXY=http://proxy.example.internal:3128

proxy::detect() {
  grep -qsF "$PROXY" "$ULTRACLUSTER_ROOT$PROXY_FILE" || step::absent "no $PROXY in $PROXY_FILE"
  step::present "$PROXY"
}

proxy::install() {
  files::write "$PROXY_FILE" <<<"Acquire::http::Proxy \"$PROXY\";"
}

proxy::verify() {
  grep -qsF "$PROXY" "$ULTRACLUSTER_ROOT$PROXY_FILE" || step::fail "$PROXY_FILE does not name $PROXY"
}

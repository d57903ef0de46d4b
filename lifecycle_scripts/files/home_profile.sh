# shellcheck shell=sh
# Ultracluster: the first login of a user of the directory. Session Manager opens no PAM session, so the home is asked for here.
if [ ! -d "${HOME:-/}" ] && [ "$(id -u)" -ge 1000 ] && [ -S /run/ultracluster-home/ask.sock ]; then
  python3 -IS -c 'import socket
with socket.socket(socket.AF_UNIX) as service:
    service.settimeout(60)
    service.connect("/run/ultracluster-home/ask.sock")
    service.recv(16)' 2>/dev/null || true
  if [ -d "$HOME" ]; then cd "$HOME" || true; fi
fi

#!/usr/bin/python3 -IS
"""Makes the caller's home: one connection, at standard input. The kernel says who calls (SO_PEERCRED).

Session Manager starts a user's shell without PAM, so that nothing else would make it.
"""

import pwd
import socket
import struct
import subprocess


def main():
    with socket.socket(fileno=0) as caller:
        _, uid, _ = struct.unpack("3i", caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        try:
            name = pwd.getpwuid(uid).pw_name
        except KeyError:
            return
        make = ["/usr/local/sbin/ultracluster-home", name]
        subprocess.run(make, check=False, timeout=60, stdin=subprocess.DEVNULL)
        caller.sendall(b"done\n")


main()

#!/usr/bin/python3 -IS
"""Asks a directory as SSSD does: TLS, bind, the search base. Prints who answers, or why none does.

Settings and password come at standard input, as JSON. Ends with 3 where the directory refuses the password.
It is the little of LDAP that this takes (RFC 4511): a client would be one more package, and says less.

Runs with the Python of Ubuntu 22.04, 24.04 and Amazon Linux 2023: 3.9 and newer.
"""

import json
import socket
import ssl
import sys

SECONDS = 5
REFUSED = 3
INVALID_CREDENTIALS, NO_SUCH_OBJECT = 49, 32
START_TLS = b"1.3.6.1.4.1.1466.20037"


class DirectoryError(Exception):
    """One line that says what is wrong."""


class RefusedError(DirectoryError):
    """The directory does not take the name or the password."""


def tlv(tag, *parts):
    """One element of BER (LDAP, RFC 4511, section 5.1)."""
    body = b"".join(parts)
    size = len(body)
    if size < 128:
        return bytes([tag, size]) + body
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 128 | len(digits)]) + digits + body


def receive(connection, count):
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise OSError("it closed the connection")
        data += more
    return data


def element(connection):
    """Tag and body of the next element."""
    tag, size = receive(connection, 2)
    if size & 128:
        if not 0 < size & 127 <= 3:
            raise OSError("what answers does not speak LDAP")
        size = int.from_bytes(receive(connection, size & 127), "big")
    return tag, receive(connection, size)


def parts(data):
    """Tags and bodies in a body."""
    at = 0
    while at + 2 <= len(data):
        tag, size, at = data[at], data[at + 1], at + 2
        if size & 128:
            digits = size & 127
            size, at = int.from_bytes(data[at : at + digits], "big"), at + digits
        yield tag, data[at : at + size]
        at += size


def request(connection, number, operation, ends):
    """Send an operation; result code and message of the answer with the tag `ends`."""
    connection.sendall(tlv(0x30, tlv(2, bytes([number])), operation))
    while True:
        tag, body = element(connection)
        fields = list(parts(body))
        if tag != 0x30 or len(fields) < 2:
            raise OSError("what answers does not speak LDAP")
        if fields[1][0] == ends:
            answer = list(parts(fields[1][1]))
            return int.from_bytes(answer[0][1], "big"), answer[2][1].decode(errors="replace")[:200]


def ask(uri, settings):
    """One server: TLS, bind, the search base."""
    who, base = settings["bind_dn"], settings["search_base"]
    scheme, _, rest = uri.partition("://")
    host, _, port = rest.partition(":")
    port = int(port or (636 if scheme == "ldaps" else 389))
    place = f"{host}:{port}"
    try:
        context = ssl.create_default_context(cafile=settings.get("ca") or None)
    except OSError as error:
        raise DirectoryError(f"{settings['ca']} has no certificate: {error}") from None
    try:
        with socket.create_connection((host, port), timeout=SECONDS) as plain:
            if scheme == "ldap":
                code, said = request(plain, 1, tlv(0x77, tlv(0x80, START_TLS)), 0x78)
                if code:
                    raise DirectoryError(f"{place} does not turn to TLS: {said or code}")
            with context.wrap_socket(plain, server_hostname=host) as secured:
                proof = tlv(0x80, settings["password"].encode())
                bind = tlv(0x60, tlv(2, b"\3"), tlv(4, who.encode()), proof)
                code, said = request(secured, 2, bind, 0x61)
                if code == INVALID_CREDENTIALS:
                    raise RefusedError(f"{place} refuses {who}: the name or its password is wrong")
                if code:
                    raise DirectoryError(f"{place} does not let {who} bind: {said or code}")
                search = tlv(
                    0x63, tlv(4, base.encode()), tlv(10, b"\0"), tlv(10, b"\0"), tlv(2, b"\0"),
                    tlv(2, b"\x05"), tlv(1, b"\0"), tlv(0x87, b"objectClass"), tlv(0x30, tlv(4, b"1.1")),
                )  # fmt: skip
                code, said = request(secured, 3, search, 0x65)
                if code == NO_SUCH_OBJECT:
                    raise DirectoryError(f"{place} has no {base}, or {who} may not see it")
                if code:
                    raise DirectoryError(f"{place} does not search {base}: {said or code}")
    except ssl.SSLCertVerificationError as error:
        raise DirectoryError(f"{place}: its certificate is not trusted: {error.verify_message}") from None
    except ssl.SSLError as error:
        raise DirectoryError(f"{place}: TLS fails: {error.reason or error}") from None
    except socket.gaierror as error:
        raise DirectoryError(f"{place}: no address of that name: {error.strerror}") from None
    except (TimeoutError, socket.timeout):  # noqa: UP041 (two of them before Python 3.10)
        raise DirectoryError(
            f"{place} does not answer: may nodes get there (directory.server_networks)?"
        ) from None
    except (OSError, ValueError, IndexError) as error:
        raise DirectoryError(f"{place}: {error}") from None
    return place


def main():
    settings = json.load(sys.stdin)
    well, wrong = [], []
    for uri in settings["uris"]:
        try:
            well.append(ask(uri, settings))
        except RefusedError:
            raise  # it holds for all: no further try, an account is locked after a few
        except DirectoryError as error:
            wrong.append(str(error))
    if not well:
        raise DirectoryError("; ".join(wrong))
    print(", ".join(well) + (f" (but {'; '.join(wrong)})" if wrong else ""))


if __name__ == "__main__":
    try:
        main()
    except DirectoryError as error:
        print(error, file=sys.stderr)
        sys.exit(REFUSED if isinstance(error, RefusedError) else 1)

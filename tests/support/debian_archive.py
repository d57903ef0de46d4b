"""Small packages, signed archives of them as apt reads them, and a server for these on 127.0.0.1."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


def output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@dataclass(frozen=True, kw_only=True)
class Package:
    name: str
    version: str
    depends: str = ""
    """As in a control file."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Content by path below the root; what begins with #! may be executed."""
    postinst: str = ""

    @property
    def file_name(self) -> str:
        return f"{self.name}_{self.version.rpartition(':')[2]}_all.deb"

    @property
    def control(self) -> str:
        return (
            f"Package: {self.name}\nVersion: {self.version}\nArchitecture: all\n"
            f"Maintainer: Test <test@example.org>\nDescription: {self.name}\n"
            + (f"Depends: {self.depends}\n" if self.depends else "")
        )

    def build(self, folder: Path) -> Path:
        """The package's file in this folder, made unless it is there."""
        file = folder / self.file_name
        if file.exists():
            return file
        tree = folder / f"tree-{self.name}"
        texts = {"DEBIAN/control": self.control, **self.files}
        if self.postinst:
            texts["DEBIAN/postinst"] = self.postinst
        for name, text in texts.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755 if text.startswith("#!") else 0o644)
        output("dpkg-deb", "-Znone", "--build", "--root-owner-group", tree, file)
        shutil.rmtree(tree)
        return file


@dataclass(frozen=True)
class Key:
    """Signs archives."""

    home: Path
    fingerprint: str

    @staticmethod
    def make(home: Path) -> Key:
        home.mkdir(mode=0o700)
        key = Key(home, "")
        key.gpg("--quick-gen-key", "Test <test@example.org>", "rsa2048")
        listed = key.gpg("--with-colons", "--list-keys")
        return Key(home, next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr:")))

    def gpg(self, *arguments: str | Path) -> str:
        quiet = ["--batch", "--yes", "--pinentry-mode", "loopback", "--passphrase", ""]
        return output("gpg", "--homedir", self.home, *quiet, *arguments)

    def export(self, file: Path) -> None:
        self.gpg("--armor", "--export", "--output", file)


def make_archive(
    folder: Path, packages: Sequence[Package], key: Key, *, suite: str = "/", origin: str = ""
) -> None:
    """Builds the packages, and an index of them with a signature, at the places where apt looks.

    Args:
        suite: "/" for a flat archive, else the distribution and its component, as `noble main`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    index = ""
    for package in packages:
        data = package.build(folder).read_bytes()
        index += f"{package.control}Filename: {package.file_name}\nSize: {len(data)}\n"
        index += f"SHA256: {hashlib.sha256(data).hexdigest()}\n\n"
    release, place, more = folder, "Packages", ""
    if suite != "/":
        distribution, component = suite.split()
        release, place = folder / "dists" / distribution, f"{component}/binary-amd64/Packages"
        more = f"Suite: {distribution}\nArchitectures: amd64\nComponents: {component}\n"
    (release / place).parent.mkdir(parents=True, exist_ok=True)
    (release / place).write_text(index)
    date = time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime())
    digest = hashlib.sha256(index.encode()).hexdigest()
    (release / "Release").write_text(
        (f"Origin: {origin}\n" if origin else "")
        + f"{more}Date: {date}\nSHA256:\n {digest} {len(index)} {place}\n"
    )
    key.gpg("--clearsign", "--output", release / "InRelease", release / "Release")
    key.gpg("--detach-sign", "--output", release / "Release.gpg", release / "Release")
    key.export(folder / "key.asc")


@dataclass
class Server:
    """Serves a folder; the first answer for a name in `cut` ends in the middle."""

    folder: Path
    cut: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextlib.contextmanager
    def running(self) -> Iterator[Server]:
        server = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args: object) -> None:
                super().__init__(*args, directory=str(server.folder))  # type: ignore[arg-type]

            def do_GET(self) -> None:
                name = self.path.rsplit("/", 1)[-1]
                server.asked.append(name)
                if name not in server.cut:
                    super().do_GET()
                    return
                server.cut.remove(name)
                data = (server.folder / self.path.lstrip("/")).read_bytes()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[: len(data) // 2])

            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                pass

            def log_error(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
            self.port = running.server_address[1]
            threading.Thread(target=running.serve_forever, daemon=True).start()
            yield self
            running.shutdown()

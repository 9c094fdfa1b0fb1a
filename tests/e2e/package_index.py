"""A package index over loopback http with this repository's own release and its dependencies."""

import html
import re
import subprocess
import sys
from pathlib import Path

from support import repository

from swarm_mcp.play.models import LoopbackServer, QuietHandler

from .ground import Lacking


def uv_folder() -> Path:
    """Return the folder with uv, a dependency of the tests."""
    folder = Path(sys.executable).parent
    if not (folder / "uv").is_file():
        raise Lacking(f"no uv in {folder}: run `make e2e`, or `pip install uv` there")
    return folder


def wheels(target: Path) -> Path:
    """Build our wheel as of a commit of the present work tree, and fetch its dependencies, into `target`."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    ours = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(target)]
    _do([*pip, *ours, str(repository.copied(target / "tree"))])
    (wheel,) = target.glob("swarm_locks-*.whl")
    _do([*pip, "download", "--dest", str(target), str(wheel)])
    return target


def _do(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr[-2000:]}"


class PackageIndex(LoopbackServer):
    """Serves the wheels in `folder`; `asked` are the paths that were asked for. `is_down`: it answers nothing."""

    def __init__(self, folder: Path) -> None:
        self.is_down = False
        self.asked: list[str] = []
        self.files = {path.name: path for path in folder.glob("*.whl")}
        super().__init__(_Handler)

    @property
    def url(self) -> str:
        return f"{self.address}/simple"


class _Handler(QuietHandler):
    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        index: PackageIndex = self.owner
        index.asked.append(self.path)
        project = re.fullmatch(r"/simple/([^/]+)/", self.path)
        file = index.files.get(self.path.rpartition("/")[2])
        if index.is_down:
            self.close_connection = True
        elif project:
            names = [name for name in index.files if _normal(name.partition("-")[0]) == _normal(project[1])]
            links = "".join(f'<a href="/files/{html.escape(name)}">{html.escape(name)}</a>\n' for name in names)
            self._send(200 if names else 404, "text/html", links.encode())
        elif file:
            self._send(200, "application/octet-stream", file.read_bytes())
        else:
            self._send(404, "text/plain", b"")

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

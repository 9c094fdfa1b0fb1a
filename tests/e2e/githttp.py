"""Git repositories over loopback http, for marketplaces that are added by URL.

Git's own `git http-backend` (a CGI program, see its manual page) does the work: the clients make shallow clones, and a
folder of static files cannot serve these.
"""

import os
import subprocess
from pathlib import Path

from swarm_mcp.play.models import LoopbackServer, QuietHandler


class GitServer(LoopbackServer):
    """Serves every repository below `folder`, read-only; `url("name.git")` is one's address."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        super().__init__(_Handler)

    def url(self, repository: str) -> str:
        return f"{self.address}/{repository}"


class _Handler(QuietHandler):
    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        path, _, query = self.path.partition("?")
        variables = {
            "GIT_PROJECT_ROOT": self.owner.folder,
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("content-type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
        }
        request = self.rfile.read(int(self.headers.get("content-length") or 0))
        variables["CONTENT_LENGTH"] = str(len(request))
        environment = {"PATH": os.environ["PATH"], "HOME": os.devnull, **variables}
        answer = subprocess.run(["git", "http-backend"], input=request, env=environment, capture_output=True).stdout
        head, _, body = answer.partition(b"\r\n\r\n")
        fields = [line.partition(": ")[::2] for line in head.decode("latin-1").splitlines()]
        status = next((value for name, value in fields if name.lower() == "status"), "200 OK")
        self.send_response(int(status.split()[0]))
        for name, value in fields:
            if name.lower() != "status":
                self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

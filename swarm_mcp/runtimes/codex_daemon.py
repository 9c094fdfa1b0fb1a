"""Finds the terminal of a session in Codex's shared daemon.

Interactive `codex` runs its sessions in one background app-server. Every hook gets the environment of the terminal that
happened to start it, and a thread stays for 60 s after its terminal has gone. The control socket (WebSocket over a Unix
socket in CODEX_HOME, one JSON-RPC message a text frame) lists the MCP servers of a thread. One of them, ``codex_tui``,
is served by the thread's own terminal: the process that listens on its port is that terminal.

Measured on codex-cli 0.169.0. None of this is documented: any unexpected answer means "not known". The session then
ends with the daemon's own end of it, or with its lease.
"""

from __future__ import annotations

import json
import os
import re
import socket
import struct
from typing import Any

from swarm_hook_core.process import start_time
from swarm_mcp.errors import ClientFailed
from swarm_mcp.runtimes.base import Terminal
from swarm_mcp.store.user_interface import pane_in

ANSWER_SECONDS = 1.0
# The daemon reports the client that initialised last in the user agent of its model requests. Those
# requests are the terminal's, so they must go on saying so; a name of ours there would be wrong.
CLIENT_NAME = "codex-tui"


def terminal_of(session_id: str) -> Terminal | None:
    """Return the terminal that shows this session, or None if it is not known."""
    home = os.environ.get("CODEX_HOME") or os.path.expanduser("~/.codex")
    try:
        port = _terminal_port(os.path.join(home, "app-server-control", "app-server-control.sock"), session_id)
        pid = 0
        if port:
            pid = _listener(port)
    except (OSError, ValueError, KeyError, TypeError, ClientFailed):  # an undocumented answer changed
        return None
    started = ""
    if pid:
        started = start_time(pid)
    if started in ("", "-"):
        return None
    return Terminal(pid, started, _pane_of(pid))


def _terminal_port(path: str, session_id: str) -> int:
    with _ControlSocket(path) as control:
        answer = control.call("initialize", {"clientInfo": {"name": CLIENT_NAME, "version": _version(path)}})
        if "result" not in answer:
            return 0
        control.send({"method": "initialized", "params": {}})
        query = {"threadId": session_id, "serverName": "codex_tui", "detail": "toolsAndAuthOnly"}
        answer = control.call("mcpServerStatus/list", query)
    for server in answer.get("result", {}).get("data", []):
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/?", str(server.get("httpOrigin") or ""))
        if server.get("name") == "codex_tui" and found:
            return int(found[1])
    return 0


def _version(path: str) -> str:
    """The daemon's release, as its folder names it, for the user agent."""
    record = os.path.join(os.path.dirname(os.path.dirname(path)), "app-server-daemon", "daemon.pid")
    try:
        with open(record, encoding="utf-8") as file:
            pid = json.load(file)["pid"]
        found = re.search(r"(\d+\.\d+\.\d+)", os.readlink(f"/proc/{pid}/exe"))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        found = None
    if found:
        return found[1]
    return "0.169.0"


def _listener(port: int) -> int:
    """Return the pid of the process of this user that listens on this loopback port, or 0."""
    wanted = f":{port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file]
    inodes = {f"socket:[{row[9]}]" for row in rows if len(row) > 9 and row[3] == "0A" and row[1].endswith(wanted)}
    for name in os.listdir("/proc") if inodes else ():
        if not name.isdigit():
            continue
        try:
            for handle in os.scandir(f"/proc/{name}/fd"):
                if os.readlink(handle.path) in inodes:
                    return int(name)
        except OSError:  # ended, or of another user
            continue
    return 0


def _pane_of(pid: int) -> dict[str, str]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            items = file.read().decode("utf-8", "replace").split("\0")
    except OSError:  # gone, or no /proc
        return {}
    return pane_in(dict(item.partition("=")[::2] for item in items))


class _ControlSocket:
    """A WebSocket client for one exchange, on the daemon's Unix socket."""

    def __init__(self, path: str):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(ANSWER_SECONDS)
        self._received = b""
        self._count = 0
        try:
            self._socket.connect(path)
            self._socket.sendall(
                b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Key: c3dhcm0tbWNwLXNlc3Npb24=\r\nSec-WebSocket-Version: 13\r\n\r\n"
            )
            while b"\r\n\r\n" not in self._received:
                self._receive()
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            if b" 101 " not in head.split(b"\r\n")[0]:
                raise ClientFailed("the daemon did not accept a control connection")
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> _ControlSocket:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._socket.close()

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._count += 1
        self.send({"id": self._count, "method": method, "params": params})
        while True:
            message = self._message()
            if message.get("id") == self._count and "method" not in message:
                return message

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode()
        # Clients must mask; a zero mask leaves the bytes as they are.
        if len(data) > 125:
            length = struct.pack(">BH", 0xFE, len(data))
        else:
            length = bytes([0x80 | len(data)])
        self._socket.sendall(b"\x81" + length + b"\0\0\0\0" + data)

    def _message(self) -> dict[str, Any]:
        while True:
            first, second = self._take(2)
            length = second & 0x7F
            if length == 126:
                (length,) = struct.unpack(">H", self._take(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self._take(8))
            data = self._take(length)
            if first & 0x0F == 1:
                parsed = json.loads(data)
                if isinstance(parsed, dict):
                    return parsed

    def _take(self, count: int) -> bytes:
        while len(self._received) < count:
            self._receive()
        taken, self._received = self._received[:count], self._received[count:]
        return taken

    def _receive(self) -> None:
        chunk = self._socket.recv(65536)
        if not chunk:
            raise ClientFailed("the daemon closed the control connection")
        self._received += chunk

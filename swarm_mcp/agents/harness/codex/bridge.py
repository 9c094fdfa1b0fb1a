"""A program between a run and ``codex app-server``, for runs whose client asks, or writes its answer piece by piece.

``codex exec`` can do neither. This program speaks the app-server's JSON-RPC and prints the lines of
``codex exec --json``, and beside them ``{"type": "item.delta", "item": {"id", "delta"}}``; for a question that it
refuses itself, ``{"type": "permission.refused", "tool_use_id", "tool_name", "input", "reason"}``. It takes the prompt
on standard input and the path of a JSON file as its argument: `argv` of the app-server, `method` and `params` that open
the thread, `turn` (parameters), `permissions` (address of ``permissions.PermissionServer``; without it every question
is refused). Standard library only: the file is run by itself.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
from typing import Any

TOKEN = "SWARM_RUN_PERMISSIONS_SECRET"  # the Authorization header for `permissions`
END_SECONDS = 10.0
COMMAND, PATCH = "item/commandExecution/requestApproval", "item/fileChange/requestApproval"


class Bridge:
    """One turn of one thread. `header` is the Authorization header for the questions."""

    def __init__(self, settings: dict[str, Any], prompt: str, header: str):
        self._settings, self._prompt, self._header = settings, prompt, header
        self._thread = ""
        self._usage: dict[str, Any] = {}
        self._items: dict[str, dict[str, Any]] = {}  # the ones that have begun
        self._exit_code: int | None = None
        self._writing = threading.Lock()
        self._child = subprocess.Popen(
            settings["argv"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", errors="replace"
        )

    def converse(self) -> int:
        """Carry the turn out, and return the exit code."""
        about = {"clientInfo": {"name": "swarm-mcp", "version": "0"}, "capabilities": {"experimentalApi": True}}
        self._ask("initialize", about)
        assert self._child.stdout and self._child.stdin
        for line in self._child.stdout:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):  # no message
                continue
            self._take(message)
            if self._exit_code is not None:
                break
        self._child.stdin.close()
        try:
            self._child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.terminate()
            self._child.wait()
        return self._child.returncode or 1 if self._exit_code is None else self._exit_code

    def _take(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params") or {}
        if method and "id" in message:
            # A person may think for long, and the events go on.
            threading.Thread(target=self._decide, args=(message["id"], method, params), daemon=True).start()
        elif method:
            if params.get("threadId") in (None, self._thread):
                self._notice(method, params)
        elif "error" in message:
            self._fail(message["error"])
        else:
            self._answered(str(message.get("id")), message.get("result") or {})

    def _answered(self, request: str, result: dict[str, Any]) -> None:
        if request == "initialize":
            self._send({"method": "initialized", "params": {}})
            self._ask(self._settings["method"], self._settings["params"])
        elif request == self._settings["method"]:
            self._thread = result["thread"]["id"]
            _print({"type": "thread.started", "thread_id": self._thread})
            turn = dict(self._settings["turn"])
            turn["input"] = [{"type": "text", "text": self._prompt}, *turn.get("input", ())]
            self._ask("turn/start", {**turn, "threadId": self._thread})

    def _notice(self, method: str, params: dict[str, Any]) -> None:
        if method in ("item/started", "item/completed"):
            item = params["item"]
            self._items[item["id"]] = item
            shown = item_of(item)
            if shown:
                _print({"type": method.replace("/", "."), "item": shown})
        elif method == "item/agentMessage/delta":
            _print({"type": "item.delta", "item": {"id": params.get("itemId"), "delta": params.get("delta")}})
        elif method == "thread/tokenUsage/updated":
            self._usage = {_snake(name): count for name, count in params["tokenUsage"]["total"].items()}
        elif method == "turn/started":
            _print({"type": "turn.started"})
        elif method == "error":
            _print({"type": "error", "message": _words(params.get("error"))})
        elif method == "turn/completed":
            turn = params["turn"]
            if turn.get("status") == "completed":
                _print({"type": "turn.completed", "usage": self._usage})
                self._exit_code = 0
            else:
                self._fail(turn.get("error") or {"message": f"the turn was {turn.get('status')}"})

    def _fail(self, error: Any) -> None:
        _print({"type": "turn.failed", "error": {"message": _words(error)}})
        self._exit_code = 1

    # ---------------------------------------------------------------- questions

    def _decide(self, request: Any, method: str, params: dict[str, Any]) -> None:
        if method not in (COMMAND, PATCH):
            self._send({"id": request, "error": {"code": -32601, "message": "refused: nobody can be asked"}})
            return
        if method == COMMAND:
            name, args = "Bash", {"command": params.get("command") or "", "cwd": params.get("cwd") or ""}
        else:
            item = item_of(self._items.get(str(params.get("itemId")), {})) or {}
            name, args = "apply_patch", {"changes": item.get("changes") or []}
        asked = {"tool_use_id": str(params.get("itemId") or ""), "tool_name": name, "input": args}
        asked["reason"] = str(params.get("reason") or "")
        is_allowed = self._allowed(asked)
        self._send({"id": request, "result": {"decision": "accept" if is_allowed else "decline"}})

    def _allowed(self, question: dict[str, Any]) -> bool:
        if not self._settings.get("permissions"):
            _print({"type": "permission.refused", **question})
            return False
        call = {"name": "ask", "arguments": question}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Authorization": self._header}
        asked = urllib.request.Request(self._settings["permissions"], json.dumps(body).encode(), headers)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked) as answer:
                told = json.load(answer)["result"]["content"][0]["text"]
            return bool(json.loads(told).get("behavior") == "allow")
        except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
            _print({"type": "permission.refused", **question})
            print(f"the permission could not be asked for: {error}", file=sys.stderr)
            return False

    # -------------------------------------------------------------------- lines

    def _ask(self, method: str, params: dict[str, Any]) -> None:
        self._send({"id": method, "method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._child.stdin
        try:
            with self._writing:
                self._child.stdin.write(json.dumps(message) + "\n")
                self._child.stdin.flush()
        except (OSError, ValueError):  # it has ended, and the end of its output tells so
            pass


def item_of(item: dict[str, Any]) -> dict[str, Any] | None:
    """Return an item in the form of ``codex exec --json``; None for the prompt itself."""
    kind = _snake(str(item.get("type") or ""))
    if kind in ("user_message", ""):
        return None
    made = {_snake(name): value for name, value in item.items()}
    made["type"] = kind
    if "status" in made:
        made["status"] = _snake(str(made["status"]))
    if kind == "file_change":
        made["changes"] = [
            {"path": change.get("path"), "kind": (change.get("kind") or {}).get("type")}
            for change in made.get("changes") or ()
        ]
    elif kind == "reasoning":
        made = {"id": made.get("id"), "type": kind, "text": "\n".join(map(str, made.get("summary") or ()))}
    return made


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def _words(error: Any) -> str:
    if isinstance(error, dict):
        return str(error.get("message") or error)
    return str(error)


def _print(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


def main(path: str) -> int:
    """Run the program."""
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    header = os.environ.pop(TOKEN, "")
    return Bridge(settings, sys.stdin.read(), header).converse()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

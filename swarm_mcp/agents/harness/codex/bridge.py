"""The bridge to ``codex app-server``, for runs with questions, or with answers piece by piece.

``codex exec`` can do neither. Its settings, beside those of ``harness.bridge``: `method` and `params` to open the
thread, and `turn` (parameters). It prints the lines of ``codex exec --json``, and
``{"type": "item.delta", "item": {"id", "delta"}}``.
"""

from __future__ import annotations

import re
import subprocess
import threading
from typing import Any

from swarm_mcp.agents.harness.bridge import Bridge, Message, print_line

END_SECONDS = 10.0
COMMAND, PATCH = "item/commandExecution/requestApproval", "item/fileChange/requestApproval"


class TurnBridge(Bridge):
    """One turn of one thread."""

    initialize = {"clientInfo": {"name": "swarm-mcp", "version": "0"}, "capabilities": {"experimentalApi": True}}

    def __init__(self, settings: Message, prompt: str, header: str):
        super().__init__(settings, prompt, header)
        self._thread = ""
        self._usage: Message = {}
        self._items: dict[str, Message] = {}  # id -> item, from its start

    def end(self) -> int:
        """Wait for the app-server; end one that stays."""
        try:
            self.agent.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.agent.terminate()
        return self.agent.wait()

    def take(self, message: Message) -> None:
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

    def _answered(self, request: str, result: Message) -> None:
        if request == "initialize":
            self.send({"method": "initialized", "params": {}})
            self.ask(self.settings["method"], self.settings["params"])
        elif request == self.settings["method"]:
            self._thread = result["thread"]["id"]
            print_line({"type": "thread.started", "thread_id": self._thread})
            turn = dict(self.settings["turn"])
            turn["input"] = [{"type": "text", "text": self.prompt}, *turn.get("input", ())]
            self.ask("turn/start", {**turn, "threadId": self._thread})

    def _notice(self, method: str, params: Message) -> None:
        if method in ("item/started", "item/completed"):
            item = params["item"]
            self._items[item["id"]] = item
            shown = item_of(item)
            if shown:
                print_line({"type": method.replace("/", "."), "item": shown})
        elif method == "item/agentMessage/delta":
            print_line({"type": "item.delta", "item": {"id": params.get("itemId"), "delta": params.get("delta")}})
        elif method == "thread/tokenUsage/updated":
            self._usage = {_snake(name): count for name, count in params["tokenUsage"]["total"].items()}
        elif method == "turn/started":
            print_line({"type": "turn.started"})
        elif method == "error":
            print_line({"type": "error", "message": _words(params.get("error"))})
        elif method == "turn/completed":
            turn = params["turn"]
            if turn.get("status") == "completed":
                print_line({"type": "turn.completed", "usage": self._usage})
                self.exit_code = 0
            else:
                self._fail(turn.get("error") or {"message": f"the turn was {turn.get('status')}"})

    def _fail(self, error: Any) -> None:
        print_line({"type": "turn.failed", "error": {"message": _words(error)}})
        self.exit_code = 1

    # ---------------------------------------------------------------- questions

    def _decide(self, request: Any, method: str, params: Message) -> None:
        if method not in (COMMAND, PATCH):
            self.refuse_method(request, "refused: nobody can be asked")
            return
        if method == COMMAND:
            name, args = "Bash", {"command": params.get("command") or "", "cwd": params.get("cwd") or ""}
        else:
            item = item_of(self._items.get(str(params.get("itemId")), {})) or {}
            name, args = "apply_patch", {"changes": item.get("changes") or []}
        asked = {"tool_use_id": str(params.get("itemId") or ""), "tool_name": name, "input": args}
        asked["reason"] = str(params.get("reason") or "")
        is_allowed = self.is_allowed(asked)
        self.send({"id": request, "result": {"decision": "accept" if is_allowed else "decline"}})


def item_of(item: Message) -> Message | None:
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

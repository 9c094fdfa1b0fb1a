"""The bridge to an agent that speaks the Agent Client Protocol.

Its settings, beside those of ``harness.bridge``: `cwd`, `session` to continue (or empty), `servers` (the protocol's
``mcpServers``, with names of variables for their values), `modes` (ids of session modes; the first one that the agent
has is set), `allows_all`. It prints a line for the session, for each update of it, and for the end of the turn.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from swarm_mcp.agents.acp.guard import OF_A_SERVER
from swarm_mcp.agents.harness.bridge import Bridge, Message, print_line

NEW, LOAD, RESUME, MODE, PROMPT = (f"session/{name}" for name in ("new", "load", "resume", "set_mode", "prompt"))
PERMISSION, UPDATE = "session/request_permission", "session/update"
READING, EDITING = ("read", "search", "think"), ("edit", "delete", "move")


class TurnBridge(Bridge):
    """One turn of one session."""

    initialize = {"protocolVersion": 1, "clientCapabilities": {}}
    version = {"jsonrpc": "2.0"}

    def __init__(self, settings: Message, prompt: str, header: str):
        super().__init__(settings, prompt, header)
        self._servers = [_with_values(server) for server in settings["servers"]]
        self._session: str = settings["session"]
        self._is_begun = False  # an agent that loads a session tells all of it again before
        self._calls: dict[str, Message] = {}  # id of a tool call -> all that was told of it

    def take(self, message: Message) -> None:
        method, params = message.get("method"), message.get("params") or {}
        if method == PERMISSION and "id" in message:
            call = self._told(params.get("toolCall") or {})
            print_line(
                {"type": "update", "update": {**call, "sessionUpdate": "tool_call_update", "status": "in_progress"}}
            )
            # A person may think for long, and the updates go on.
            threading.Thread(target=self._decide, args=(message["id"], call, params), daemon=True).start()
        elif method and "id" in message:
            self.refuse_method(message["id"], f"{method} is not offered")
        elif method == UPDATE:
            if self._is_begun and params.get("sessionId") == self._session:
                update = params.get("update") or {}
                if update.get("toolCallId"):
                    update = {**self._told(update), "sessionUpdate": update.get("sessionUpdate")}
                print_line({"type": "update", "update": update})
        elif method is None and "error" in message:
            self._fail(message["error"], message.get("id") in (LOAD, RESUME))
        elif method is None:
            self._answered(str(message.get("id")), message.get("result") or {})

    def _answered(self, request: str, result: Message) -> None:
        if request == "initialize":
            self._open(result.get("agentCapabilities") or {})
        elif request in (NEW, LOAD, RESUME):
            self._session = str(result.get("sessionId") or self._session)
            print_line({"type": "session", "id": self._session})
            listed = [mode.get("id") for mode in (result.get("modes") or {}).get("availableModes") or ()]
            mode = next((mode for mode in self.settings["modes"] if mode in listed), "")
            if mode:  # also the current one: Gemini still tells the old turns after its answer, and before this one
                self.ask(MODE, {"sessionId": self._session, "modeId": mode})
            else:
                self._answered(MODE, {})
        elif request == MODE:
            self._is_begun = True
            self.ask(PROMPT, {"sessionId": self._session, "prompt": [{"type": "text", "text": self.prompt}]})
        elif request == PROMPT:
            print_line({"type": "end", "reason": result.get("stopReason")})
            self.exit_code = 0

    def _open(self, can: Message) -> None:
        """Open the session, by the agent's abilities."""
        opening = {"cwd": self.settings["cwd"], "mcpServers": self._servers}
        if any("url" in server for server in self._servers) and not (can.get("mcpCapabilities") or {}).get("http"):
            self._fail("the agent takes no MCP servers at addresses")
        elif not self._session:
            self.ask(NEW, opening)
        elif "resume" in (can.get("sessionCapabilities") or {}):
            self.ask(RESUME, {**opening, "sessionId": self._session})
        elif can.get("loadSession"):
            self.ask(LOAD, {**opening, "sessionId": self._session})
        else:
            self._fail("the agent cannot continue a session", is_lost=True)

    def _told(self, update: Message) -> Message:
        """Return all that was told of a tool call: an update has the fields that have changed."""
        changed = {name: value for name, value in update.items() if value}
        call_id = str(update.get("toolCallId"))
        self._calls[call_id] = {**self._calls.get(call_id, {}), **changed}
        return self._calls[call_id]

    def _fail(self, error: Any, is_lost: bool = False) -> None:
        if isinstance(error, dict):
            error = ": ".join(str(error[part]) for part in ("message", "data") if error.get(part))
        print_line({"type": "end", "error": str(error), "is_lost": is_lost})
        self.exit_code = 1

    # ---------------------------------------------------------------- questions

    def _decide(self, request: Any, call: Message, params: Message) -> None:
        try:
            is_free = self._is_free(call)
        except ValueError:  # no path
            is_free = False
        is_allowed = is_free or self.is_allowed(self._question(call))
        options = {one.get("kind"): one.get("optionId") for one in params.get("options") or ()}
        option = options.get(("reject_once", "allow_once")[is_allowed])
        outcome = {"outcome": "selected", "optionId": option}
        if not option:
            outcome = {"outcome": "cancelled"}
        self.send({"id": request, "result": {"outcome": outcome}})

    def _is_free(self, call: Message) -> bool:
        """Return True for a call that the mode of the run allows: reading, edits in its folder, tools of its servers.

        Hidden files and folders are asked about: settings and hooks there would run commands.
        """
        of_servers = tuple(f"mcp__{server['name']}__" for server in self._servers)
        if self.settings["allows_all"] or call.get("kind") in READING or name_of(call).startswith(of_servers):
            return True
        base = os.path.realpath(self.settings["cwd"])
        paths = [os.path.realpath(os.path.join(base, path)) for path in _paths(call)]
        parts = [part for path in paths for part in os.path.relpath(path, base).split(os.sep)]
        return call.get("kind") in EDITING and bool(parts) and not any(part.startswith(".") for part in parts)

    def _question(self, call: Message) -> Message:
        asked = {"tool_name": name_of(call), "input": args_of(call), "reason": str(call.get("title") or "")}
        return {**asked, "tool_use_id": str(call.get("toolCallId"))}


def name_of(call: Message) -> str:
    """Return the name of a tool call: the agent's own word, else that of a server's tool, else the protocol's kind."""
    more = call.get("_meta")
    own = call.get("name") or (isinstance(more, dict) and more.get("toolName"))
    kind, title = str(call.get("kind") or "other"), str(call.get("title") or "")
    if own or kind != "other":
        return str(own or kind)
    served = OF_A_SERVER.fullmatch(title)
    if served:
        return f"mcp__{served[2]}__{served[1]}"
    return title or kind


def args_of(call: Message) -> Message:
    """Return the arguments of a tool call, or its title and files where the agent does not tell them."""
    given = call.get("rawInput")
    if isinstance(given, dict) and given:
        return given
    told = {"title": call.get("title"), "paths": _paths(call)}
    return {name: value for name, value in told.items() if value}


def _paths(call: Message) -> list[str]:
    """Return the files that a tool call names."""
    lists = [value for value in (call.get("locations"), call.get("content")) if isinstance(value, list)]
    parts = [part for value in lists for part in value if isinstance(part, dict) and part.get("path")]
    return list(dict.fromkeys(str(part["path"]) for part in parts))


def _with_values(server: Message) -> Message:
    """Return a server with the values of its variables, from the environment of this program alone."""
    listed = "headers" if "url" in server else "env"
    values = [{"name": one["name"], "value": os.environ.pop(one["value"], "")} for one in server[listed]]
    return {**server, listed: values}

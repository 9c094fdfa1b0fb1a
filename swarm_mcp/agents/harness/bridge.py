"""A program between a run and an agent that is driven by JSON-RPC on its standard streams, for one turn.

Start it as ``python -I -S bridge.py HARNESS FILE``, by `argv_of`, with the prompt on standard input. It prints the
events of the turn, one line of JSON each. `Bridge` has the part common to the protocols of the harnesses. FILE holds
the settings: `argv` of the agent, `permissions` (the address of ``adapter.PermissionServer``; without it each
question is refused), and more for the protocol. Only the standard library is loaded: it starts at once.
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
REFUSED = "permission.refused"  # type of the line for a question without an answer
NO_METHOD = -32601  # JSON-RPC's code for an unknown method

Message = dict[str, Any]


class Bridge:
    """One turn of one session. `settings`: the content of FILE. `header`: the Authorization header for questions."""

    initialize: Message = {}  # the parameters of the first request
    version: Message = {}  # members of each message
    agent: subprocess.Popen[str]  # started when secrets have left this program's environment

    def __init__(self, settings: Message, prompt: str, header: str):
        self.settings, self.prompt, self._header = settings, prompt, header
        self.exit_code: int | None = None  # set at the end of the turn
        self._writing = threading.Lock()

    def converse(self) -> int:
        """Carry the turn out; return the exit code of this program."""
        self.agent = subprocess.Popen(
            self.settings["argv"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", errors="replace"
        )
        self.ask("initialize", self.initialize)
        assert self.agent.stdout and self.agent.stdin
        for line in self.agent.stdout:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):  # some agents print lines of their own
                continue
            if isinstance(message, dict):
                self.take(message)
            if self.exit_code is not None:
                break
        try:
            self.agent.stdin.close()
        except OSError:  # it has ended
            pass
        code = self.end()
        if self.exit_code is None:
            return code or 1
        return self.exit_code

    def take(self, message: Message) -> None:
        """Act on a message of the agent."""
        raise NotImplementedError

    def end(self) -> int:
        """Wait for the end of the agent after that of its input; return its exit code."""
        return self.agent.wait()

    def ask(self, method: str, params: Message) -> None:
        """Send a request; its id is its method."""
        self.send({"id": method, "method": method, "params": params})

    def send(self, message: Message) -> None:
        """Send a message to the agent."""
        assert self.agent.stdin
        try:
            with self._writing:
                self.agent.stdin.write(json.dumps({**self.version, **message}) + "\n")
                self.agent.stdin.flush()
        except (OSError, ValueError):  # it has ended, and the end of its output tells so
            pass

    def refuse_method(self, request: Any, why: str) -> None:
        """Answer a request for an unknown method."""
        self.send({"id": request, "error": {"code": NO_METHOD, "message": why}})

    def is_allowed(self, question: Message) -> bool:
        """Ask the program that started the run about a tool call; False without one.

        `question`: `tool_use_id`, `tool_name`, `input`, `reason`.
        """
        if not self.settings.get("permissions"):
            print_line({"type": REFUSED, **question})
            return False
        params = {"name": "ask", "arguments": question}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Authorization": self._header}
        asked = urllib.request.Request(self.settings["permissions"], json.dumps(body).encode(), headers)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked) as answer:
                told = json.load(answer)["result"]["content"][0]["text"]
            return bool(json.loads(told).get("behavior") == "allow")
        except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
            print_line({"type": REFUSED, **question})
            print(f"the permission could not be asked for: {error}", file=sys.stderr)
            return False


def print_line(line: Message) -> None:
    """Print a line of JSON."""
    print(json.dumps(line), flush=True)


END_SECONDS = 10.0
COMMAND, PATCH = "item/commandExecution/requestApproval", "item/fileChange/requestApproval"


class CodexTurn(Bridge):
    """One turn of one thread of ``codex app-server``, for runs with questions, or with answers piece by piece.

    ``codex exec`` can do neither. Its settings, beside those of Bridge: `method` and `params` to open the thread, and
    `turn` (parameters). It prints the lines of ``codex exec --json``, and
    ``{"type": "item.delta", "item": {"id", "delta"}}``.
    """

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


NEW, LOAD, RESUME, MODE, PROMPT = (f"session/{name}" for name in ("new", "load", "resume", "set_mode", "prompt"))
PERMISSION, UPDATE = "session/request_permission", "session/update"
READING, EDITING = ("read", "search", "think"), ("edit", "delete", "move")
OF_A_SERVER = re.compile(r"(\S+) \((\S+) MCP Server\)(?:: .*)?", re.S)  # a title: Gemini, Qwen Code


class AcpTurn(Bridge):
    """One turn of one session with an agent that speaks the Agent Client Protocol.

    Its settings, beside those of Bridge: `cwd`, `session` to continue (or empty), `servers` (the protocol's
    ``mcpServers``, with names of variables for their values), `modes` (ids of session modes; the first one that the
    agent has is set), `allows_all`. It prints a line for the session, for each update of it, and for the end of the
    turn.
    """

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


TURNS: dict[str, type[Bridge]] = {"acp": AcpTurn, "codex": CodexTurn}


def argv_of(harness: str, path: str) -> tuple[str, ...]:
    """Return the command line of this program. `path`: FILE."""
    return (sys.executable, "-I", "-S", __file__, harness, path)


def main(harness: str, path: str) -> int:
    """Run the program; return its exit code."""
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    header = os.environ.pop(TOKEN, "")
    return TURNS[harness](settings, sys.stdin.read(), header).converse()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

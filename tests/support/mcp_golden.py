"""Conversations with the MCP server, and its recorded answers (tests/data/golden/mcp).

Run as a program to record the answers of the installed command: ``python -m support.mcp_golden`` from tests/. A record
made by a release with the official SDK is the reference for every later server.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from support.fixtures import SWARM

FOLDER = Path(__file__).parent.parent / "data" / "golden" / "mcp"
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
ABOUT = {"name": "golden", "version": "0"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": ABOUT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
CALLS = (
    ("ping", {}),
    ("prompts/get", {"name": "setup"}),
    ("prompts/get", {"name": "odd"}),
    ("resources/read", {"uri": "swarm://inbox"}),
    ("resources/read", {"uri": "swarm://odd"}),
    ("resources/subscribe", {"uri": "swarm://inbox"}),
    ("resources/subscribe", {"uri": "swarm://odd"}),
    ("resources/unsubscribe", {"uri": "swarm://inbox"}),
    ("tools/call", {"name": "whoami"}),
    ("tools/call", {"name": "whoami", "arguments": {}}),
    ("tools/call", {"name": "no_such_tool", "arguments": {}}),
    ("tools/call", {"name": "kv_get", "arguments": {}}),
    ("tools/call", {"name": "kv_get", "arguments": {"key": 7}}),
    ("tools/call", {"name": "kv_get", "arguments": {"key": "k", "odd": 1}}),
    ("tools/call", {"name": "register", "arguments": {"directory": "/golden"}}),
    ("tools/call", {"name": "kv_get", "arguments": {"key": "k"}}),
    ("tools/call", {"name": "kv_list", "arguments": {"limit": 0}}),
    ("tools/call", {"name": "request_task", "arguments": {"type": "odd", "title": "t"}}),
    ("tools/call", {"name": "request_task", "arguments": {"type": "fix", "title": "t", "files": ["a", 7]}}),
    ("logging/setLevel", {"level": "info"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "setup"}, "argument": {"name": "a", "value": "b"}}),
    ("no/such", {}),
    ("tools/call", {}),
    ("tools/call", {"name": 7}),
    ("tools/call", {"name": "whoami", "arguments": []}),
    ("resources/read", {}),
    ("resources/read", {"uri": 7}),
    ("prompts/get", {}),
    ("prompts/get", {"name": "setup", "arguments": []}),
    ("resources/subscribe", {}),
    ("tools/list", {"cursor": 7}),
    ("tools/list", {"_meta": 7}),
    ("tools/list", {"_meta": {"progressToken": 1}}),
    ("tools/list", {"cursor": "x"}),
)
INITIALIZES = (
    {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": ABOUT},
    {"protocolVersion": MODERN, "capabilities": {}, "clientInfo": ABOUT},
    {"protocolVersion": 7, "capabilities": {}, "clientInfo": ABOUT},
    {"capabilities": {}, "clientInfo": ABOUT},
    {"protocolVersion": "2025-06-18", "clientInfo": ABOUT},
    {"protocolVersion": "2025-06-18", "capabilities": 7, "clientInfo": ABOUT},
    {"protocolVersion": "2025-06-18", "capabilities": {}},
    {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x"}},
    {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": 1}},
    None,
)
LINES = (
    "this is no JSON", '{"jsonrpc":"2.0","id":', "[]", "7", "null", '"text"', "{}",
    '{"jsonrpc":"2.0","id":50,"method":"ping","params":[]}', '{"id":51,"method":"ping"}',
    '{"jsonrpc":"2.0","id":1.5,"method":"ping"}', '{"jsonrpc":"2.0","id":true,"method":"ping"}',
    '{"jsonrpc":"2.0","id":null,"method":"ping"}', '{"jsonrpc":"2.0","id":{},"method":"ping"}',
    '{"jsonrpc":"1.0","id":"odd","method":"ping"}', '{"jsonrpc":"2.0","id":54}', '[{"jsonrpc":"2.0","id":55}, 8]',
    '{"jsonrpc":"2.0","id":56,"method":7}', '{"jsonrpc":"2.0","id":57,"method":"ping","params":null}',
    '{"jsonrpc":"2.0","id":58,"result":7}', '{"jsonrpc":"2.0","id":59,"error":{"code":1}}',
    '{"jsonrpc":"2.0","id":59,"error":{"code":1,"message":"m"}}', '{"jsonrpc":"2.0","id":60,"result":{}}',
    '{"jsonrpc":"2.0","method":"notifications/odd","params":{"a":1}}',
    '{"jsonrpc":"2.0","id":61,"method":"ping","params":{"a":"\\ud800"}}',
    '{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    '{"jsonrpc":"2.0","id":62,"method":"ping","params":{"a":' + "[" * 150 + "]" * 150 + "}}",
    '{"jsonrpc":"2.0","id":63,"method":"ping","params":{"a":' + "[" * 300 + "]" * 300 + "}}",
    '{"jsonrpc":"2.0","id":64,"method":"ping","params":{"a":' + "7" * 5000 + "}}",
    '{"jsonrpc":"2.0","id":' + "7" * 5000 + ',"method":"ping"}',
    '{"jsonrpc":"2.0","id":65,"method":"ping","extra":1}', '{"jsonrpc":"2.0","id":66,"method":"ping","result":{}}',
    '[{"jsonrpc":"2.0","id":67,"method":"ping"},{"jsonrpc":"2.0","id":68,"method":"ping"}]',
    '[{"jsonrpc":"2.0","method":"notifications/initialized"}]', "[[]]",
    '{"jsonrpc":"2.0","id":69,"method":"ping","params":{"a":NaN}}', '{"jsonrpc":"2.0","id":"","method":"ping"}',
)  # fmt: skip


def request(number: object, method: str, params: dict | None) -> dict:
    """Return a JSON-RPC request."""
    message = {"jsonrpc": "2.0", "id": number, "method": method}
    return message if params is None else {**message, "params": params}


def initialize(version: str) -> list[dict]:
    """Return the handshake of a client that asks for `version`."""
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": ABOUT}
    return [request(0, "initialize", params), {"jsonrpc": "2.0", "method": "notifications/initialized"}]


def modern(method: str, params: dict) -> dict:
    """Return `params` in the envelope of 2026-07-28."""
    meta = params.get("_meta", {})
    return {**params, "_meta": {**ENVELOPE, **meta}} if isinstance(meta, dict) else params


def conversations() -> dict[str, list[str]]:
    """Return the lines that a client writes, by the name of the record. Each is a connection of its own."""
    calls = [(method, {}) for method in LISTS] + list(CALLS)
    found = {
        version: [*initialize(version), *(request(n, *call) for n, call in enumerate(calls, 1))]
        for version in HANDSHAKE_VERSIONS
    }
    found[MODERN] = [request(0, "server/discover", modern("server/discover", {}))] + [
        request(n, method, modern(method, params)) for n, (method, params) in enumerate(calls, 1)
    ]
    found["initialize"] = [request(n, "initialize", params) for n, params in enumerate(INITIALIZES)]
    found["before the handshake"] = [
        request(n, method, params)
        for n, (method, params) in enumerate([("tools/list", {}), ("ping", {}), ("tools/call", {"name": "whoami"}),
            ("no/such", {}), ("server/discover", {}), ("resources/subscribe", {"uri": "swarm://inbox"})])
    ]  # fmt: skip
    found["mixed eras, handshake first"] = [
        *initialize("2025-06-18"), request(1, "server/discover", {"_meta": ENVELOPE}),
        request(2, "tools/call", {"name": "whoami", "_meta": ENVELOPE}), request(3, "server/discover", {}),
        request(4, "ping", {}),
    ]  # fmt: skip
    half = {key: value for key, value in ENVELOPE.items() if not key.endswith("Capabilities")}
    version = "io.modelcontextprotocol/protocolVersion"
    found["mixed eras, envelope first"] = [
        request(0, "server/discover", {"_meta": ENVELOPE}), request(1, "initialize", INITIALIZES[0]),
        request(2, "initialize", {"protocolVersion": 7}), request(3, "tools/call", {"name": "whoami"}),
        request(4, "tools/call", {"name": "whoami", "_meta": half}), request(5, "ping", {"_meta": {**ENVELOPE, version: "2099-01-01"}}),
        request(6, "ping", {"_meta": {**ENVELOPE, version: 7}}), request(7, "server/discover", {"_meta": 7}),
        request(8, "prompts/list", {"_meta": {**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": 7}}),
        request(9, "prompts/list", {"_meta": {**ENVELOPE, "io.modelcontextprotocol/clientInfo": 7}}), request(10, "server/discover", None),
    ]  # fmt: skip
    texts = {name: [json.dumps(message) for message in messages] for name, messages in found.items()}
    texts["lines"] = [json.dumps(message) for message in initialize("2025-06-18")] + list(LINES)
    return texts


def answers(lines: list[str], program: list[str] = SWARM) -> list[dict]:
    """Return all answers of a server in a new home to `lines`, in the order of the ids, without varying values."""
    with tempfile.TemporaryDirectory() as home:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SWARM_", "XDG_"))}
        environment.update(HOME=home, SWARM_STATE_DIR=f"{home}/state", SWARM_DB_PATH=f"{home}/swarm.db")
        told = []
        with subprocess.Popen(
            [*program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=home, env=environment, text=True
        ) as server:
            assert server.stdin and server.stdout
            for line in lines:  # one after another, since their order is part of the answers
                server.stdin.write(line + "\n")
                server.stdin.flush()
                for _ in range(expected(line)):
                    told.append(json.loads(server.stdout.readline()))
            server.stdin.close()
            told += [json.loads(line) for line in server.stdout]
    return [stable(answer) for answer in told]


def expected(line: str) -> int:
    """Return how many answers a line gets."""
    try:
        message = json.loads(line)
    except ValueError:
        return 1
    if isinstance(message, list) and message:
        return sum(map(_is_answered, message))
    return int(_is_answered(message))


def _is_answered(message: object) -> bool:
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return True
    if "method" in message:
        return message.get("id") is not None
    error = message.get("error")
    is_answer = isinstance(message.get("result"), dict) or (isinstance(error, dict) and "message" in error)
    return not is_answer


def stable(answer: dict) -> dict:
    """Return an answer without the version of the package and the values of a new session's row."""
    if isinstance(answer.get("result"), dict):
        answer = json.loads(json.dumps(answer))
        result = answer["result"]
        for info in (result.get("serverInfo"), (result.get("_meta") or {}).get("io.modelcontextprotocol/serverInfo")):
            if info:
                info["version"] = "VERSION"
        row = result.get("structuredContent")
        if isinstance(row, dict) and {"id", "scope", "directory"} <= row.keys():
            result["structuredContent"] = sorted(row)
            result["content"][0]["text"] = "ROW"
    return answer


def place(name: str) -> Path:
    """Return the file of the record `name`."""
    return FOLDER / f"{name.replace(',', '').replace(' ', '_')}.json"


def without_tools(answers: list[dict], tools: list[dict]) -> list[dict]:
    """Return answers in which the list `tools` is only named. It is kept in a record of its own."""
    return [
        {**answer, "result": {**answer["result"], "tools": "as in tools.json"}}
        if answer.get("result", {}).get("tools") == tools
        else answer
        for answer in answers
    ]


def record() -> None:
    """Write the answers of the installed command."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    tools: list[dict] = []
    for name, lines in conversations().items():
        found = answers(lines)
        tools = tools or found[1]["result"]["tools"]
        _write(place(name), without_tools(found, tools))
    _write(place("tools"), tools)


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()

"""A small MCP server over stdio that writes files, as the common ones do: tools `write_file`, `read_file`.

Its argument, if there is one, is a file that it makes once its client knows the tools.
"""

import json
import sys
from pathlib import Path
from typing import Any

STRING = {"type": "string"}
TOOLS = [
    {
        "name": "write_file",
        "description": "Write a file",
        "inputSchema": {"type": "object", "properties": {"path": STRING, "content": STRING}, "required": ["path"]},
    },
    {
        "name": "read_file",
        "description": "Read a file",
        "inputSchema": {"type": "object", "properties": {"path": STRING}, "required": ["path"]},
    },
]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of one request."""
    if method == "initialize":
        told = {"protocolVersion": params.get("protocolVersion", "2025-06-18"), "capabilities": {"tools": {}}}
        return {**told, "serverInfo": {"name": "files", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        path = Path(params["arguments"]["path"])
        if params["name"] == "write_file":
            path.write_text(params["arguments"]["content"])
        return {"content": [{"type": "text", "text": path.read_text()}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        known = message["method"] in ("initialize", "tools/list", "tools/call", "ping")
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if known:
            reply["result"] = answer(message["method"], message.get("params") or {})
        else:
            reply["error"] = {"code": -32601, "message": "no such method"}
        print(json.dumps(reply), flush=True)
        if message["method"] == "tools/list":
            for name in sys.argv[1:]:
                Path(name).touch()

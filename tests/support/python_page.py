"""The programs on docs/dev/python.md, and a server for the one that asks for a server."""

import re
from pathlib import Path

from .sessions import ROOT

PAGE = ROOT / "docs" / "dev" / "python.md"
SECRET = "stock-token-0c0ffee-0c0ffee"
STOCK = """\
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    told = {"ping": {}, "tools/list": {"tools": [{"name": "count", "inputSchema": {"type": "object"}}]}}
    told["initialize"] = {"protocolVersion": (asked.get("params") or {}).get("protocolVersion"), "capabilities": {"tools": {}},
                          "serverInfo": {"name": "stock", "version": "1"}}
    text = f"{len(os.environ['STOCK_TOKEN'])} lamps"
    told["tools/call"] = {"content": [{"type": "text", "text": text}]}
    if "id" in asked:
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": told.get(asked["method"], {})}
        print(json.dumps(answer), flush=True)
"""


def programs() -> dict[str, str]:
    """The programs by their names."""
    found = re.findall(r"```python\n# (\w+)\.py\b[^\n]*\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return dict(found)


def write(folder: Path) -> None:
    """Write the server of STOCK_TOKEN where its program looks for it."""
    (folder / "stock.py").write_text(STOCK)

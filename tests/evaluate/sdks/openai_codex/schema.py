import json
import shutil
import sys

from openai_codex import Codex, CodexConfig

SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}},
    "required": ["title"],
    "additionalProperties": False,
}
with Codex(CodexConfig(codex_bin=shutil.which("codex"))) as codex:
    result = codex.thread_start().run(sys.argv[2], output_schema=SCHEMA)
print(json.loads(result.final_response)["title"])

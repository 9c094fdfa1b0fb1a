import shutil
import sys

from openai_codex import Codex, CodexConfig, Sandbox

with Codex(CodexConfig(codex_bin=shutil.which("codex"))) as codex:
    turn = codex.thread_start(sandbox=Sandbox.workspace_write).turn(sys.argv[2])
    for event in turn.stream():
        if event.method == "item/started" and event.payload.item.root.type == "commandExecution":
            turn.interrupt()
print("cancelled")

import shutil
import sys

from openai_codex import Codex, CodexConfig, Sandbox

with Codex(CodexConfig(codex_bin=shutil.which("codex"))) as codex:
    thread = codex.thread_start(sandbox=Sandbox.workspace_write)
    for event in thread.turn(sys.argv[2]).stream():
        print(event.method, flush=True)

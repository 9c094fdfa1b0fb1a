import shutil
import sys

from openai_codex import Codex, CodexConfig, Sandbox

with Codex(CodexConfig(codex_bin=shutil.which("codex"))) as codex:
    thread = codex.thread_start(sandbox=Sandbox.workspace_write)
    for prompt in sys.argv[2:]:
        print(thread.run(prompt).final_response)

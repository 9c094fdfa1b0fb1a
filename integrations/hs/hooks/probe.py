"""Answers the test of `swarm-mcp doctor`: puts a client's payload to the guard tools, and prints the answer of a hook.

The guard stands in front of a tool that does nothing, in a session that no other sees.
"""

import json
import os
import subprocess
import sys
import tempfile

SECONDS = 20


def main() -> None:
    payload = json.load(sys.stdin)
    tool = payload["tool_name"]
    root = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    with tempfile.TemporaryDirectory(prefix="swarm-probe-") as folder:
        session, below = os.path.join(folder, payload["session_id"]), os.path.join(folder, "below")
        os.makedirs(os.path.join(below, "tools"))
        os.mkdir(session)
        with open(os.path.join(session, "session.conf"), "w", encoding="utf-8") as file:
            file.write(f"id={payload['session_id']}\ncwd={payload['cwd']}\n")
        stand_in = os.path.join(below, "tools", tool)
        with open(stand_in, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexec cat >/dev/null\n")
        os.chmod(stand_in, 0o755)
        environment = {**os.environ, "HARNESS_SESSION": session, "HARNESS_SOURCES": f"{below}:{root}"}
        for name in ("HARNESS_CWD", "HARNESS_PARENT_SESSION", "SWARM_HS_READ_ONLY"):
            environment.pop(name, None)
        done = subprocess.run(
            [os.path.join(root, "tools", tool), "--exec"], input=json.dumps(payload["tool_input"]), cwd=payload["cwd"],
            env=environment, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    words = done.stdout.strip()
    decision = {"permissionDecision": "deny", "permissionDecisionReason": words}
    if done.returncode == 0:
        decision = {"additionalContext": words}
    if words:
        print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}))


if __name__ == "__main__":
    main()

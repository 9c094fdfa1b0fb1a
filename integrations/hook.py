"""Runs one hook of one client: hook.py CLIENT EVENT, the client's payload on standard input, the answer on output.

With a third word the coordinator was at it and was killed, which ended it with that exit status: it is only told.
"""

import gc
import os
import sys

if __name__ == "__main__":
    gc.set_threshold(50_000)  # a check ends before there is much garbage; to look for it cost up to 1 ms
    here = os.path.dirname(os.path.abspath(__file__))
    client, event, *killed = sys.argv[1:]
    sys.path[:1] = [os.path.dirname(here)]
    try:
        if client == "claude-code" and {"COPILOT_PROJECT_DIR", "CURSOR_VERSION", "GROK_HOOK_EVENT"} & os.environ.keys():
            from swarm_hook_core.guests import received

            client = received(client)
        elif client == "copilot" and not os.path.exists(here + "/../bin/swarm-mcp"):  # no copy of `swarm-mcp install`
            from swarm_hook_core.guests import stand_back

            stand_back(client)
        sys.path.insert(0, here + "/" + client)
        from runtime import RUNTIME

        if killed:
            from swarm_hook_core.unanswered import tell

            status = tell(RUNTIME, event, int(killed[0]))
        else:
            from swarm_hook_core.core import HookCore

            status = getattr(HookCore(RUNTIME), "run_" + event + "_hook")(sys.stdin)
    except Exception:
        # The plugin's own files are missing or broken, which `doctor` finds: a client may take any status but 0 for a
        # denial, or show it to its user at each write. At a session's start hook.sh says so, once.
        status = int(event == "session_start")
        launcher = here + "/hook.sh"
        if event == "pre_tool_use" and os.path.exists(launcher):  # a person may want a denial then
            os.execv("/bin/sh", ["/bin/sh", launcher, client, event, "broken"])
    os._exit(status)  # tidying up the interpreter would cost as much as the check

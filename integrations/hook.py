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
    sys.path[:1] = [here + "/" + client, os.path.dirname(here)]
    from runtime import RUNTIME

    if killed:
        from swarm_hook_core.unanswered import tell

        os._exit(tell(RUNTIME, event, int(killed[0])))
    from swarm_hook_core.core import HookCore

    status = getattr(HookCore(RUNTIME), "run_" + event + "_hook")(sys.stdin)
    os._exit(status)  # tidying up the interpreter would cost as much as the check

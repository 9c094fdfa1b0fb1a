"""Runs one hook of one client: hook.py CLIENT EVENT, the client's payload on standard input, the answer on output.

The hook itself is CLIENT/hooks/EVENT.py, or hooks/EVENT.py for clients without scripts of their own.
A third argument is the exit status of a coordinator that was killed while it ran the hook. It is only reported.
"""

import os
import sys

if __name__ == "__main__":
    client, event, *killed = sys.argv[1:]
    try:
        import launch
    except Exception:  # it is missing or broken, as other files here may be
        os.execv("/bin/sh", ["/bin/sh", os.path.dirname(__file__) + "/hook.sh", client, event, "broken"])
    if killed:
        launch.report_killed(int(killed[0]))
    __import__(event)

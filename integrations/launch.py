"""The set-up of every hook script. Its import starts a hook. Faults end in silence.

Scripts run through hook.py (CLIENT EVENT), or alone (.../CLIENT/hooks/EVENT.py).
"""

import gc
import os
import sys

gc.disable()  # the search for garbage was a twentieth of a hook's time, and a hook ends soon

HERE = os.path.dirname(os.path.abspath(__file__))


def end(status: int) -> None:
    """End the process at once: to tidy up the interpreter would cost as much as the check."""
    os._exit(status)


def end_in_silence(kind: type, error: BaseException, trace: object) -> None:
    """Let the call pass, because files of the plugin are missing or broken. `doctor` finds that.

    A client may take any status but 0 for a denial, or show it at each write. hook.sh tells the user once, at a
    session's start, and denies a write if a person wants that.
    """
    if not issubclass(kind, Exception):
        sys.__excepthook__(kind, error, trace)
    elif event in ("session_start", "pre_tool_use") and os.path.exists(HERE + "/hook.sh"):
        os.execv("/bin/sh", ["/bin/sh", HERE + "/hook.sh", client, event, "broken"])
    end(0)


def report_killed(status: int) -> None:
    """Record that the coordinator was killed over this hook, with its exit `status` as a shell has it."""
    from runtime import RUNTIME

    from swarm_hook_core.greetings import tell_killed

    end(tell_killed(RUNTIME, event, status))


def run() -> None:
    """Run the hook that hook.py was started for, or report that a coordinator was killed while it ran the hook."""
    if sys.argv[3:] not in ([], ["alone"]):
        report_killed(int(sys.argv[3]))
    __import__(event)


def host_of(client: str) -> str:
    """Return the client that runs the hooks of `client`. It may be another, or end this process to stand back."""
    if client == "claude-code" and {"COPILOT_PROJECT_DIR", "CURSOR_VERSION", "GROK_HOOK_EVENT"} & os.environ.keys():
        from swarm_hook_core.guests import received

        return received(client)
    if client == "copilot" and not os.path.exists(HERE + "/../bin/swarm-mcp"):  # `swarm-mcp install` did not make it
        from swarm_hook_core.guests import stand_back

        stand_back(client)
    return client


*_, client, folder, event = os.path.abspath(sys.argv[0]).removesuffix(".py").rsplit("/", 3)
if folder != "hooks":
    client, event = sys.argv[1:3]
sys.excepthook = end_in_silence
sys.path[0] = os.path.dirname(HERE)
host = host_of(client)
# A script changes the first of these to find this file if it runs alone.
sys.path[:0] = [f"{HERE}/{client}/hooks", f"{HERE}/{host}"]
sys.path.append(HERE + "/hooks")

"""The shell reader: finds the files a shell command would write, without running it. docs/dev/shell.md explains it.

    command ── parser ──▶ statements ── walk, words ── programs, git ──▶ Effects ── collision ──▶ Verdict

- `plain` recognises the simplest commands that write nothing; for those nothing else is loaded.
- `parser` reads the text into the statements of `syntax`.
- `walk` goes through the statements as a shell would: folders, variables, pipes, loops. `words` expands words.
- `programs` knows each program's arguments and the files it writes.
- The result (`model.Effects`) is compared with other sessions' locks in `collision`.

Loaded only when a peer holds a lock, so imports cost less here than in the modules around it. A tool call still waits
for it: no ``typing``, ``dataclasses``, ``pathlib``, ``subprocess``.
"""

TYPE_CHECKING = False  # like typing's own; importing typing takes milliseconds
if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm_hook_core.budget import Budget
    from swarm_hook_core.shell.model import Effects


def effects_of(
    command: str,
    folder: "str | None",
    environment: "Mapping[str, str] | None" = None,
    budget: "Budget | None" = None,
) -> "Effects":
    """Return the Effects of shell text `command`, run in absolute `folder` (None: unknown).

    `environment`: variables the shell starts with (default: this process's). `budget`: the check's remaining time
    (default: a new one). Never raises: unreadable text, or text that takes too long, becomes a guess.
    """
    import gc
    import os

    from swarm_hook_core.shell import plain
    from swarm_hook_core.shell.model import Effects

    shown = plain.shown(command)
    if shown is not None:
        from swarm_hook_core.shell.model import Read

        effects = Effects(budget)
        effects.reads += [Read(folder or "/", path, spans) for path, spans in shown]
        return effects
    from swarm_hook_core.shell.walk import Walk

    if environment is None:
        environment = os.environ
    effects = Effects(budget)  # its time begins now that all is loaded
    collects = gc.isenabled()
    gc.disable()  # in a long-lived process one look through all its objects takes longer than a walk may
    try:
        Walk(effects, folder, environment).script(command)
    finally:
        if collects:
            gc.enable()
    return effects

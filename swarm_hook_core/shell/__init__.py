"""The shell reader: finds the files a shell command would write, without running it. docs/dev/shell.md explains it.

    command ── parser ──▶ statements ── walk, words ── programs, git ──▶ Effects ── collision ──▶ Verdict

- `plain` recognises everyday commands; for those nothing else is loaded.
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
    from swarm_hook_core.shell.plain import Plain


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

    found = plain.look(command)
    if found is not None and (folder is not None or not found.writes):
        seen = _effects_of_plain(found, folder or "/", budget)
        if seen is not None:
            return seen
    from swarm_hook_core.shell.model import Effects
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


def _effects_of_plain(found: "Plain", folder: str, budget: "Budget | None") -> "Effects | None":
    """Return the Effects of a plain command in absolute `folder`; None if the disk shows that it is not so plain."""
    from swarm_hook_core.shell.model import Effects, Read, Stream, Write, absolute, is_device

    effects = Effects(budget)
    effects.reads += [Read(folder, path, spans) for path, spans in found.shown]
    for path, how, by, text in found.outputs:
        effects.writes.append(Write(folder, path, by, how))
        effects.texts[absolute(folder, path) or ""] = None if text is None else Stream(text)
    for program, source, dest, by in found.moved:
        from swarm_hook_core import REMOVE, REPLACE
        from swarm_hook_core.shell.landing import is_folder, targets

        if program == "mv":
            if is_folder(folder, source):
                return None
            effects.writes.append(Write(folder, source, by, REMOVE))
        effects.writes += [Write(folder, path, by, REPLACE) for path in targets(folder, source, dest)]
        effects.texts.update((absolute(folder, one.path) or "", None) for one in effects.writes)
    if any(is_device(path) or path.startswith("/proc/") for path in effects.texts):
        return None
    effects.runs = found.runs
    return effects

"""What a shell command would write, found out without running it; docs/dev/shell.md has the whole.

    command ── parser ──▶ statements ── walk, words ── programs, git ──▶ Effects ── collision ──▶ Verdict

`plain` tells of the simplest that they write nothing, and nothing else is loaded. `parser` reads the text into the
statements of `syntax`. `walk` goes through them as a shell would: folders, variables, pipes, loops; `words` says what a
word stands for. `programs` knows what each program does with its arguments. What comes out (`model.Effects`) meets the
locks of others in `collision`.

Loaded only when a peer holds a lock, so what it imports counts less than in the modules around it; it is
still on the way of a tool call: no ``typing``, ``dataclasses``, ``pathlib``, ``subprocess``.
"""


def effects_of(command: str, folder: "str | None", environment=None, budget=None):
    """The Effects of shell text `command`, run in absolute `folder` (None: nobody knows where).

    `environment`: variables the shell starts with (default: this process's); `budget`: of the check that it is part of
    (default: one of its own). Never raises:
    what cannot be read, or takes too long, becomes a guess.
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

    effects = Effects(budget)  # its time begins now that all is loaded
    collects = gc.isenabled()
    gc.disable()  # in a long-lived process one look through all its objects takes longer than a walk may
    try:
        Walk(effects, folder, os.environ if environment is None else environment).script(command)
    finally:
        if collects:
            gc.enable()
    return effects

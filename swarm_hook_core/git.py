"""Git as a source of answers: it runs no program that the repository names, writes nothing, and prompts for nothing.

A repository's own configuration may name programs (a monitor of files, hooks, filters, pagers, helpers that fetch). An
unpacked archive brings such a configuration along, so every git that answers a question is started here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from swarm_hook_core.process import Result, run

FLAGS = (
    "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false",
    "-c", "diff.autoRefreshIndex=false", "-c", "protocol.allow=never", "-c", "gc.auto=0",
    "-c", "maintenance.auto=false", "-c", "submodule.recurse=false", "-c", "log.showSignature=false",
    "-c", "diff.ignoreSubmodules=dirty", "-c", "diff.relative=false", "-c", "filter.lfs.clean=",
    "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false",
)  # fmt: skip
# GIT_ALLOW_PROTOCOL: no protocol. The setting above leaves a repository's own `protocol.ext.allow` in force.
ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "",
    "GIT_PAGER": "cat", "GIT_EDITOR": "false", "LC_ALL": "C", "GIT_TRACE": "0",
}  # fmt: skip
# Added to every comparison: no program is run that shows contents, and no git is started inside submodules, which would
# run their own filters.
NO_PROGRAMS = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")


def ask(
    words: Sequence[str],
    folder: str,
    seconds: float,
    settings: Any = (),
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
) -> Result:
    """Return the ``coordinator.Result`` of ``git <words>`` in `folder` on the text `stdin`, after at most `seconds`.

    `settings` are git's own options such as ``-c name=value``. They come first, then ours. A question to `git config`
    gets the repository's answer as it is: it runs no program.
    """
    flags: tuple[str, ...] = FLAGS
    if words[0] == "config":
        flags = ("--no-pager",)
    argv = ["git", "-C", folder, *settings, *flags, *words]
    return run(argv, seconds, stdin=stdin, environment={**(environment or {}), **ENVIRONMENT})

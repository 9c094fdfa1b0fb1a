"""The text of the git hooks: plain ``sh``, and whatever goes wrong in them lets the commit pass.

A refusal is told from a failure by its exit code and its first words: an interpreter that cannot find this program
ends with code 1 as well.
"""

from __future__ import annotations

import shlex

from swarm_mcp.guard.check import HOOKS

MARK = "# swarm guard, written by `swarm-mcp guard install`; `swarm-mcp guard uninstall` takes it away."
SAYS = "swarm guard: "  # how a refusal begins
LIMIT_SECONDS = 5

# Every hook that git (2.54) knows and that may be there without changing what git does.
NAMES = (
    "applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg",
    "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update",
    "post-receive", "post-update", "pre-auto-gc", "post-rewrite", "sendemail-validate", "p4-changelist",
    "p4-prepare-changelist", "p4-post-changelist", "p4-pre-submit",
)  # fmt: skip
# These change what git does by being there, or would cost a process at every change of a ref or of the index.
NAMES_IF_THERE = (
    "push-to-checkout", "proc-receive", "reference-transaction", "post-index-change", "fsmonitor-watchman",
)  # fmt: skip

_EARLIER_OF_GIT = """\
earlier=$(git config --global --type=path core.hooksPath 2>/dev/null)
[ -n "$earlier" ] || earlier=$(git config --system --type=path core.hooksPath 2>/dev/null)
[ -n "$earlier" ] || earlier=${0%/*}/../hooks
"""

_CHECK = """\
[ "${{SWARM_GUARD:-}}" = off ] && exit 0
limit() {{
    if command -v timeout >/dev/null 2>&1; then timeout -k 1 {seconds} "$@"
    elif command -v perl >/dev/null 2>&1; then perl -e 'alarm shift; exec @ARGV' {seconds} "$@"
    else "$@"
    fi
}}
check() {{
    if [ -n "${{SWARM_MCP_BIN:-}}" ]; then eval 'limit '"$SWARM_MCP_BIN"' guard check --hook $hook "$@"'
{installed}    else limit {by_name} guard check --hook $hook "$@"
    fi
}}
"""

_VERDICT = """\
[ $? -eq 1 ] || exit 0
case $said in
"swarm guard: "*) printf '%s\\n' "$said" >&2; exit 1 ;;
esac
exit 0
"""


def beside(hook: str, command: list[str]) -> str:
    """A hook that stands alone: `command` is the coordinator's argv prefix."""
    return f"#!/bin/sh\n{MARK}\n{_guarded(hook, command, chained=False)}"


def chained(hook: str, command: list[str], earlier: str) -> str:
    """A hook that runs the one of the same name in the folder `earlier`, and then, where it is of `HOOKS`, ours.

    An empty `earlier` is the folder that git would use without us. The earlier hook has the same arguments and
    input, and where it fails its exit code is ours.
    """
    folder = f"earlier={shlex.quote(earlier)}\n" if earlier else _EARLIER_OF_GIT
    text = f"#!/bin/sh\n{MARK}\n{folder}earlier=$earlier/{hook}\n"
    if hook not in HOOKS:
        return text + '[ -f "$earlier" ] && [ -x "$earlier" ] || exit 0\nexec "$earlier" "$@"\n'
    return text + _guarded(hook, command, chained=True)


def framework() -> str:
    """The hook of the pre-commit framework, whose variables say whether this is a push. It is kept in the tree."""
    choose = 'hook=pre-commit\n[ -z "${PRE_COMMIT_REMOTE_NAME:-}" ] || hook=pre-push\n'
    about = "# swarm guard, for the pre-commit framework."
    by_name = '/bin/sh "${0%/*}/../coordinator.sh"'  # which leaves another program of that name alone
    return f"#!/bin/sh\n{about}\n{choose}{_check([], by_name)}said=$(check </dev/null 2>&1)\n{_VERDICT}"


def _check(command: list[str], by_name: str = "swarm-mcp") -> str:
    installed = ""
    if command:
        words = shlex.join(command)
        installed = f'    elif [ -x {shlex.quote(command[0])} ]; then limit {words} guard check --hook $hook "$@"\n'
    return _CHECK.format(seconds=LIMIT_SECONDS, installed=installed, by_name=by_name)


def _guarded(hook: str, command: list[str], chained: bool) -> str:
    check = f"hook={hook}\n{_check(command)}"
    there = '[ -f "$earlier" ] && [ -x "$earlier" ]'
    if hook != "pre-push":
        first = f'if {there}; then "$earlier" "$@" || exit $?; fi\n' if chained else ""
        return f"{first}{check}said=$(check </dev/null 2>&1)\n{_VERDICT}"
    # Both read what git says on standard input; the full stop keeps newlines at its end.
    first = "told=$(cat; echo .)\ntold=${told%.}\n"
    if chained:
        first += f'if {there}; then\n    printf \'%s\' "$told" 2>/dev/null | "$earlier" "$@" || exit $?\nfi\n'
    return f'{first}{check}said=$(printf \'%s\' "$told" | check --remote "${{1:-}}" 2>&1)\n{_VERDICT}'

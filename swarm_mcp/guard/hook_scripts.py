"""The texts of the guard's hooks: plain ``sh``, of which any failure lets the commit pass.

A refusal has an exit code and first words of its own, because an interpreter that cannot find this program ends with
code 1 as well.
"""

from __future__ import annotations

import shlex

from swarm_mcp.guard.check import HOOKS

MARK = "# swarm guard, written by `swarm-mcp guard install`; `swarm-mcp guard uninstall` takes it away."
SAYS = "swarm guard: "  # how a refusal begins
LIMIT_SECONDS = 5

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
# With --auto there may be something to be said of a commit that goes ahead, as of a push if other machines are silent.
_VERDICT_OR_WORDS = """\
status=$?
case $said in
"swarm guard: "*) printf '%s\\n' "$said" >&2; [ $status -eq 1 ] && exit 1 ;;
esac
exit 0
"""


def beside(hook: str, command: list[str], auto: bool = False) -> str:
    """A hook that stands alone: `command` is the coordinator's argv prefix; `auto`: as ``guard install --auto``."""
    return f"#!/bin/sh\n{MARK}\n{_guarded(hook, command, chained=False, auto=auto)}"


def chained(hook: str, command: list[str], earlier: str, auto: bool = False) -> str:
    """A hook that runs the one of the same name in the folder `earlier`, and then, where it is of `HOOKS`, ours.

    An empty `earlier` is the folder that git would use without us. The earlier hook has the same arguments and
    input, and where it fails its exit code is ours.
    """
    if earlier:
        folder = f"earlier={shlex.quote(earlier)}\n"
    else:
        folder = _EARLIER_OF_GIT
    text = f"#!/bin/sh\n{MARK}\n{folder}earlier=$earlier/{hook}\n"
    if hook not in HOOKS:
        return text + '[ -f "$earlier" ] && [ -x "$earlier" ] || exit 0\nexec "$earlier" "$@"\n'
    return text + _guarded(hook, command, chained=True, auto=auto)


def framework() -> str:
    """Return the hook of the pre-commit framework. Its variables mark a push. The text is kept in the tree."""
    choose = 'hook=pre-commit\n[ -z "${PRE_COMMIT_REMOTE_NAME:-}" ] || hook=pre-push\n'
    about = "# swarm guard, for the pre-commit framework."
    by_name = '/bin/sh "${0%/*}/../coordinator.sh"'  # it leaves another program of that name alone
    return f"#!/bin/sh\n{about}\n{choose}{_check([], by_name)}said=$(check </dev/null 2>&1)\n{_VERDICT}"


def _check(command: list[str], by_name: str = "swarm-mcp") -> str:
    installed = ""
    if command:
        words = shlex.join(command)
        installed = f'    elif [ -x {shlex.quote(command[0])} ]; then limit {words} guard check --hook $hook "$@"\n'
    return _CHECK.format(seconds=LIMIT_SECONDS, installed=installed, by_name=by_name)


def _guarded(hook: str, command: list[str], chained: bool, auto: bool) -> str:
    check = f"hook={hook}\n{_check(command)}"
    there = '[ -f "$earlier" ] && [ -x "$earlier" ]'
    if hook != "pre-push":
        first = ""
        if chained:
            first = f'if {there}; then "$earlier" "$@" || exit $?; fi\n'
        if auto:
            return f"{first}{check}said=$(check --auto </dev/null 2>&1)\n{_VERDICT_OR_WORDS}"
        return f"{first}{check}said=$(check </dev/null 2>&1)\n{_VERDICT}"
    # Both read git's words on standard input. The full stop keeps newlines at their end.
    first = "told=$(cat; echo .)\ntold=${told%.}\n"
    if chained:
        first += f'if {there}; then\n    printf \'%s\' "$told" 2>/dev/null | "$earlier" "$@" || exit $?\nfi\n'
    return f'{first}{check}said=$(printf \'%s\' "$told" | check --remote "${{1:-}}" 2>&1)\n{_VERDICT_OR_WORDS}'

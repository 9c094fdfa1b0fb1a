"""Installs the guard's hooks in a repository and removes them, beside any hooks there.

Two ways. Neither touches the work tree or other hooks:

beside      git looks into the repository's own ``hooks`` folder, and that has no hook of our names: they are put there
dispatcher  any other repository (hooks of these names, husky, lefthook, a shared ``core.hooksPath``): the folder
            ``swarm-hooks`` in the git folder holds a script for every hook there is, and each runs the one of the same
            name from the earlier folder; ``core.hooksPath`` of this repository names it

``swarm-guard.json`` in the git folder keeps the earlier state. It comes back byte for byte unless it was changed since.
"""

from __future__ import annotations

import json
import os
import shlex
import stat
from typing import Any, NamedTuple

from swarm_hook_core.state import open_private
from swarm_mcp.errors import SwarmError
from swarm_mcp.guard.check import AFTER_COMMITS, HOOKS, Repository
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes.json_editor import object_of

# The texts of the guard's hooks: plain ``sh``, of which any failure lets the commit pass.
#
# A refusal has an exit code and first words of its own, because an interpreter that cannot find this program ends with
# code 1 as well.

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


def chained(hook: str, command: list[str], earlier: str, auto: bool = False, is_ours: bool = True) -> str:
    """A hook that runs the one of the same name in the folder `earlier`, and then, if `is_ours`, the guard's own.

    An empty `earlier` is the folder that git would use without us. The earlier hook has the same arguments and
    input, and where it fails its exit code is ours.
    """
    if earlier:
        folder = f"earlier={shlex.quote(earlier)}\n"
    else:
        folder = _EARLIER_OF_GIT
    text = f"#!/bin/sh\n{MARK}\n{folder}earlier=$earlier/{hook}\n"
    if not is_ours:
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
    if hook not in ("pre-push", "post-rewrite"):
        first = ""
        if chained:
            first = f'if {there}; then "$earlier" "$@" || exit $?; fi\n'
        if hook in AFTER_COMMITS:
            return f"{first}{check}check </dev/null >/dev/null 2>&1\nexit 0\n"
        if auto:
            return f"{first}{check}said=$(check --auto </dev/null 2>&1)\n{_VERDICT_OR_WORDS}"
        return f"{first}{check}said=$(check </dev/null 2>&1)\n{_VERDICT}"
    # Both read git's words on standard input. The full stop keeps newlines at their end.
    first = "told=$(cat; echo .)\ntold=${told%.}\n"
    if chained:
        first += f'if {there}; then\n    printf \'%s\' "$told" 2>/dev/null | "$earlier" "$@" || exit $?\nfi\n'
    if hook in AFTER_COMMITS:
        return f"{first}{check}printf '%s' \"$told\" | check >/dev/null 2>&1\nexit 0\n"
    return f'{first}{check}said=$(printf \'%s\' "$told" | check --remote "${{1:-}}" 2>&1)\n{_VERDICT_OR_WORDS}'


# Every hook of git (2.54) that may exist without changing git's behaviour.
NAMES = (
    "applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg",
    "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update",
    "post-receive", "post-update", "pre-auto-gc", "post-rewrite", "sendemail-validate", "p4-changelist",
    "p4-prepare-changelist", "p4-post-changelist", "p4-pre-submit",
)  # fmt: skip
# These change git's behaviour by their existence, or would cost a process at every change of a ref or of the index.
NAMES_IF_THERE = (
    "push-to-checkout", "proc-receive", "reference-transaction", "post-index-change", "fsmonitor-watchman",
)  # fmt: skip

FOLDER, RECORD = "swarm-hooks", "swarm-guard.json"
SETTING = "core.hooksPath"


class Outcome(NamedTuple):
    """The guard of a repository: `way` (``beside``, ``dispatcher``, or empty), by hooks in `folder`.

    `changed`: True if that was done just now. `earlier`: git's folder of hooks before there was a dispatcher.
    """

    way: str
    folder: str
    changed: bool
    earlier: str = ""


class _Place(NamedTuple):
    """The place of this repository's hooks.

    looked  core.hooksPath as git resolves it, or empty. `is_own`: True if this repository sets it
    config  the file that sets ours, or would, beside the git folder `home`. `value`: its setting, as written
    """

    looked: str
    is_own: bool
    config: str
    home: str
    value: str

    @property
    def folder(self) -> str:
        """Return the folder of the dispatcher. It need not exist."""
        return os.path.join(self.home, FOLDER)

    @property
    def is_ours(self) -> bool:
        """Return True if git finds our dispatcher."""
        return os.path.isabs(self.looked) and os.path.realpath(self.looked) == os.path.realpath(self.folder)


def install(folder: str, auto: bool = False, records: bool = False) -> Outcome:
    """Guard the repository around `folder`. In a guarded one, bring the hooks up to date.

    With `auto`, the hooks also check commits against changes of other sessions without a lock (``changes``). With
    `records`, further ones record the authors of commits.
    """
    names: tuple[str, ...] = HOOKS
    if records:
        names = (*HOOKS, *AFTER_COMMITS)
    repository = Repository(folder)
    place, command = _place(repository), coordinator_command()
    default = os.path.join(repository.common, "hooks")
    if place.is_ours:
        earlier = str(_read_record(place.home).get("earlier") or "")
        changed = _fill(repository, place.folder, earlier, command, auto, names)
        return Outcome("dispatcher", place.folder, changed, earlier or _shared(repository))
    if not place.looked and not any(_is_foreign(os.path.join(default, hook)) for hook in names):
        made = not os.path.isdir(default)
        os.makedirs(default, exist_ok=True)
        written = [_put(os.path.join(default, hook), beside(hook, command, auto)) for hook in names]
        for path in (os.path.join(default, hook) for hook in AFTER_COMMITS if hook not in names):
            if _is_ours(path):
                _remove(path)
                written.append(True)
        if made:
            _write_record(place.home, {"made": default})
        return Outcome("beside", default, any(written))
    _take_beside(repository)
    before = _bytes(place.config)
    # A folder that all of a person's repositories share is looked up at each run: it may be moved any day.
    earlier = ""
    if place.is_own:
        earlier = place.looked
    try:
        _fill(repository, place.folder, earlier, command, auto, names)
        repository.ask("config", "--file", place.config, SETTING, place.folder)
        if not _place(repository).is_ours:
            raise SwarmError(f"{SETTING} is set by something that comes after {place.config}; nothing was changed")
    except SwarmError:
        if _bytes(place.config) != before:
            _restore(place.config, before)
        _empty(place.folder)
        raise
    after = _bytes(place.config)
    record = {"earlier": earlier, "value": place.value, "before": _text(before), "after": _text(after)}
    _write_record(place.home, record)
    return Outcome("dispatcher", place.folder, True, place.looked or default)


def uninstall(folder: str) -> Outcome:
    """Take the guard's hooks away, and restore the earlier ones. It is no error if there are none."""
    repository = Repository(folder)
    way, found, changed = "", "", _take_beside(repository)
    if changed:
        way, found = "beside", os.path.join(repository.common, "hooks")
    for home in dict.fromkeys((repository.common, repository.own)):
        folder = os.path.join(home, FOLDER)
        if not os.path.isdir(folder):
            continue
        foreign = [name for name in sorted(os.listdir(folder)) if _is_foreign(os.path.join(folder, name))]
        if foreign:
            raise SwarmError(f"{folder} holds hooks that are not ours ({foreign[0]}); move them out of it first")
        _unset(repository, home)
        _empty(folder)
        _remove(os.path.join(home, RECORD))
        way, found, changed = "dispatcher", folder, True
    return Outcome(way, found, changed)


def state(folder: str) -> Outcome:
    """Return the guard of the repository around `folder`: ``passed over`` if git does not look at our hooks."""
    repository = Repository(folder)
    place = _place(repository)
    default = os.path.join(repository.common, "hooks")
    beside_there = all(_is_ours(os.path.join(default, hook)) for hook in HOOKS)
    if place.is_ours:
        return Outcome("dispatcher", place.folder, False)
    if beside_there and not place.looked:
        return Outcome("beside", default, False)
    there = beside_there or os.path.isdir(place.folder)
    return Outcome("passed over" if there else "", place.looked or default, False)


def git_folder(folder: str) -> str:
    """Return the git folder that all work trees of the repository around `folder` share."""
    return Repository(folder).common


def has_auto(folder: str) -> bool:
    """Return True if the hooks that guard the repository around `folder` were installed with `--auto`."""
    found = state(folder)
    return bool(found.way) and b"check --auto" in _bytes(os.path.join(found.folder, HOOKS[0]))


def _place(repository: Repository) -> _Place:
    scope = repository.text("config", "--show-scope", "--get", SETTING).partition("\t")[0]
    if scope == "command":
        raise SwarmError(f"{SETTING} is set by the environment or on the command line; unset it first")
    looked = repository.text("config", "--type=path", "--get", SETTING)
    home, name = repository.common, "config"
    if scope == "worktree":
        home, name = repository.own, "config.worktree"
    config = os.path.join(home, name)
    value = repository.text("config", "--file", config, "--no-includes", "--get", SETTING)
    return _Place(looked, scope in ("local", "worktree"), config, home, value)


def _shared(repository: Repository) -> str:
    """Return the folder of hooks that git uses without a setting of the repository itself. The dispatcher finds it the
    same way.
    """
    for scope in ("--global", "--system"):
        value = repository.text("config", scope, "--type=path", "--get", SETTING)
        if value:
            return value
    return os.path.join(repository.common, "hooks")


def _fill(
    repository: Repository, folder: str, earlier: str, command: list[str], auto: bool, own: tuple[str, ...]
) -> bool:
    """Write the dispatcher's scripts, `earlier` as for ``chained``. Return True if anything changed.

    `own`: the hooks that do something of the guard's.
    """
    os.makedirs(folder, exist_ok=True)
    now = os.path.join(repository.top, earlier or _shared(repository))
    there = [name for name in NAMES_IF_THERE if os.path.isfile(os.path.join(now, name))]
    texts = {name: chained(name, command, earlier, auto, name in own) for name in (*NAMES, *there)}
    changed = [_put(os.path.join(folder, name), text) for name, text in texts.items()]
    for name in set(NAMES_IF_THERE).difference(there):
        path = os.path.join(folder, name)
        if _is_ours(path):
            _remove(path)
            changed.append(True)
    return any(changed)


def _unset(repository: Repository, home: str) -> None:
    """Give core.hooksPath in the git folder `home` back the value it had, where it is ours still."""
    record = _read_record(home)
    for name in ("config", "config.worktree"):
        config = os.path.join(home, name)
        value = repository.text("config", "--file", config, "--no-includes", "--type=path", "--get", SETTING)
        if not value or os.path.realpath(value) != os.path.realpath(os.path.join(home, FOLDER)):
            continue
        if record.get("before") is not None and _text(_bytes(config)) == record.get("after"):
            before = str(record["before"]).encode("utf-8", "surrogateescape")
            _restore(config, before)
        elif record.get("value"):
            repository.ask("config", "--file", config, SETTING, str(record["value"]))
        else:
            repository.ask("config", "--file", config, "--unset", SETTING)


def _take_beside(repository: Repository) -> bool:
    """Remove our hooks from the repository's own folder. Return True if there were any."""
    default = os.path.join(repository.common, "hooks")
    ours = [path for path in (os.path.join(default, hook) for hook in (*HOOKS, *AFTER_COMMITS)) if _is_ours(path)]
    for path in ours:
        _remove(path)
    if ours and _read_record(repository.common).get("made") == default:
        _remove(os.path.join(repository.common, RECORD))
        try:
            os.rmdir(default)
        except OSError:
            pass  # it holds another hook by now
    return bool(ours)


def _is_ours(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return MARK.encode() in file.read(4096)
    except OSError:  # no hook there
        return False


def _is_foreign(path: str) -> bool:
    return os.path.lexists(path) and not _is_ours(path)


def _put(path: str, text: str) -> bool:
    """Make `path` a hook with this text, in one step. Return False if it was that already."""
    data = text.encode("utf-8", "surrogateescape")
    if _is_foreign(path):
        raise SwarmError(f"{path} is not ours, and stays as it is")
    if _bytes(path) == data and os.access(path, os.X_OK):
        return False
    _replace(path, data, 0o755)
    return True


def _restore(config: str, data: bytes) -> None:
    """Write a configuration back where git wrote it: a link in its place stays one."""
    real = os.path.realpath(config)
    _replace(real, data, stat.S_IMODE(os.stat(real).st_mode))


def _replace(path: str, data: bytes, mode: int) -> None:
    scratch = f"{path}.{os.urandom(4).hex()}.tmp"
    try:
        with open(open_private(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(data)
        os.chmod(scratch, mode)
        os.replace(scratch, path)
    except OSError as error:
        _remove(scratch)
        raise SwarmError(f"{path} cannot be written: {error.strerror}") from None


def _empty(folder: str) -> None:
    for name in os.listdir(folder):
        if _is_ours(os.path.join(folder, name)):
            _remove(os.path.join(folder, name))
    try:
        os.rmdir(folder)
    except OSError:  # it is not empty, or gone
        return


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except FileNotFoundError:  # it is gone already
        return


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # no such file
        return b""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _read_record(home: str) -> dict[str, Any]:
    try:
        record = json.loads(_bytes(os.path.join(home, RECORD)) or b"{}")
    except (ValueError, RecursionError):  # an unreadable record counts as none
        return {}
    return object_of(record)


def _write_record(home: str, record: dict[str, Any]) -> None:
    _replace(os.path.join(home, RECORD), (json.dumps(record, indent=2) + "\n").encode(), 0o600)

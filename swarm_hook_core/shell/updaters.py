"""Recognises commands that run the project's own code and say that this changes files of the checkout.

``jest -u``, ``go test -update``, ``UPDATE_EXPECT=1 cargo test``, ``npm run lint -- --fix``, ``gradle spotlessApply``.
Only the project knows the files.
"""

from __future__ import annotations

from typing import Any

from swarm_hook_core.shell.model import is_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.call import Call


# Words of an option's or a variable's name. `--update-snapshots`, `-update`, `--snapshot-update`, `UPDATE_EXPECT`
_OPTION_WORDS = frozenset(
    "update updates regen regenerate bless fix autofix write overwrite accept approve promote rewrite"
    " autocorrect".split()
)
_VARIABLE_WORDS = frozenset("update bless regen regenerate accept approve overwrite record rewrite".split())
_NOT = frozenset("no not check dry skip disable without notifier only".split())
_OFF = ("", "0", "no", "false", "off", "never", "none")
# Variables and options with a value that says it.
_VALUES = {
    "TRYBUILD": ("overwrite",), "--record-mode": ("rewrite", "all", "once", "new_episodes"),
    "--vcr-record": ("all", "once"),
    "--inline-snapshot": ("create", "fix", "trim", "update"),
}  # fmt: skip
_SHORT = frozenset("jest vitest playwright ava bun npm yarn pnpm deno".split())  # of these -u updates snapshots

# Programs with names of tasks as operands, and words in a task's name that say it changes sources.
_RUNNERS = frozenset(
    "npm yarn pnpm bun deno make gmake just task mage rake gradle gradlew mvn mvnw mix rails turbo nx ng ant sbt"
    " lerna composer hatch pdm pixi mise poe invoke fab flask django-admin hugo flutter expo vue-cli-service nest cargo"
    " dotnet dune bazel bazelisk storybook molecule devbox stack cabal rebar3".split()
)
_TASK_WORDS = frozenset(
    "update updates upgrade bump regen regenerate generate gen codegen scaffold migrate migration migrations rollback"
    " makemigrations makemessages startapp startproject format fmt reformat prettify prettier fix autofix apply rewrite"
    " accept bless promote changelog scalafmt scalafix g destroy new create init add set use release prepare".split()
)
# Of those the ones that mean something else outside of frameworks' own commands.
_OF_FRAMEWORKS = frozenset("g destroy new create init add".split())
_FRAMEWORKS = frozenset(
    "rails ng nx nest mix flask django-admin hugo flutter expo vue-cli-service dotnet stack cabal rebar3 turbo"
    " storybook molecule".split()
)
_OF_MAVEN = frozenset("set use release prepare".split())  # versions:set, versions:use-latest-versions, release:prepare
_OF_MANY_TASKS = frozenset("make gmake just task mage rake gradle gradlew mvn mvnw ant invoke fab".split())
_ENDS = frozenset("test t check c build b bench exec e x lint serve start doc clippy nextest".split())
_NAME_TESTS = frozenset(("--tests", "-k", "-C", "-f", "-p", "--filter", "--project", "--directory", "--file"))
_LOOKS = frozenset("check verify dry list status show display help plan diff validate report".split())
_ALWAYS = frozenset("fix update".split())  # check:fix, test:update


def reason(call: Call) -> str:
    """Return why `call`, which runs the project's own code, may change files of the checkout; empty if nothing says
    so.
    """
    for word in call.words:
        if word[:1] == "-" and is_known(word) and _is_updating_option(call.name, word):
            return f"`{word[:40]}` updates files"
    variables = call.walk.scope.variables
    for name in variables:
        value = variables[name]
        if isinstance(value, str) and _is_updating_variable(name, value):
            return f"`{name[:40]}` has files updated"
    task = ""
    if call.name in _RUNNERS:
        task = _changing_task(call)
    if task:
        return f"`{task[:40]}` changes files"
    return ""


def _changing_task(call: Call) -> str:
    """Return the first of a runner's tasks with a name that says it changes sources; empty if there is no such task."""
    before = ""
    for word in call.words:
        if word == "--" or (word in _ENDS and call.name not in _OF_MANY_TASKS):
            break  # the rest is for the tests
        is_task = word[:1] not in ("-", ".") and "/" not in word and before not in _NAME_TESTS and is_known(word)
        if is_task and _changes_sources(call.name, word):
            return word
        before = word
    return ""


def _is_updating_option(program: str, word: str) -> bool:
    name, _equals, value = word.partition("=")
    if name in _VALUES:
        return any(one in value for one in _VALUES[name])
    if name == "-u":
        return program in _SHORT
    if value[:1] == "-" and _is_updating_option(program, value):
        return True  # --test-options=--accept
    if program in ("mvn", "mvnw") or value in ("false", "none", "0"):
        return False  # -U, --update-snapshots: of Maven's repository
    words = _words(name)
    return bool(_OPTION_WORDS.intersection(words)) and not _NOT.intersection(words)


def _is_updating_variable(name: str, value: str) -> bool:
    if name in _VALUES:
        return value in _VALUES[name]
    words = _words(name)
    return (
        name.isupper()
        and value.lower() not in _OFF
        and bool(_VARIABLE_WORDS.intersection(words))
        and not _NOT.intersection(words)
    )


def _changes_sources(program: str, task: str) -> bool:
    words = _words(task)
    known = _TASK_WORDS
    if program not in _FRAMEWORKS:
        known = known - _OF_FRAMEWORKS
    if program not in ("mvn", "mvnw"):
        known = known - _OF_MAVEN
    if not known.intersection(words) or "=" in task:
        return False
    return bool(_ALWAYS.intersection(words)) or not _LOOKS.intersection(words)


def _words(name: str) -> list[Any]:
    """Return the words of a name, in lower case: ``updateSnapshot``, ``db:migrate``, ``--force-regen``."""
    found, before = "", ""
    for letter in name:
        if letter.isupper() and before.islower():
            found += " "
        if letter.isalnum():
            found += letter.lower()
        else:
            found += " "
        before = letter
    return found.split()

"""Shells, and the runners of package managers: a script or a command that they are given."""

import os

from swarm_hook_core.shell.model import absolute, is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.undeclared import name_outputs
from swarm_hook_core.shell.running import is_shell_script


def _shell(call) -> None:
    """bash, sh and the like: ``-c text``, a script file, or a script on standard input."""
    words, command, reads_only, from_input = list(call.words), False, False, False
    while words and words[0][:1] in ("-", "+") and len(words[0]) > 1:
        word = words.pop(0)
        if word == "--":
            break
        if word in ("--rcfile", "--init-file"):
            words[:1] = []
        elif word.startswith("--"):
            if word in ("--version", "--help"):
                return
        else:
            letters = word[1:]
            command = command or "c" in letters
            reads_only = reads_only or "n" in letters
            from_input = from_input or "s" in letters
            if letters[-1:] in ("o", "O") and words:
                words.pop(0)
    if reads_only:
        return
    if command:
        if words:
            call.output = call.walk.nested(words[0], call.folder, words[1:] or [call.name], call.stdin, call.name)
        return
    if words and not from_input:
        _script_file(call, words)
        return
    stdin = call.stdin
    if stdin is not None and stdin.text is not None:
        call.output = call.walk.nested(stdin.text, call.folder, [call.name, *words], None, call.name)
    elif stdin is not None or not call.words or from_input:
        call.guess("a script that is not known")


def _script_file(call, words) -> None:
    whole = absolute(call.folder, words[0])
    if whole is not None and call.walk.is_missing(whole):
        return
    stream = call.walk.text_of(words[0], call.folder)
    if (
        stream is None
        or stream.text is None
        or not is_known(words[0])
        or stream.text.startswith("#!")
        and not is_shell_script(stream.text, "")
    ):
        call.guess("an opaque script")
    else:
        call.output = call.walk.nested(stream.text, call.folder, words, call.stdin, call.name)


def _su(call) -> None:
    options = split(call.words, "cgGsTw", ("--command", "--session-command", "--group", "--shell"))
    for text in options.values("-c", "--command", "--session-command"):
        call.output = call.walk.nested(text, call.folder, (), call.stdin)
    if not options.has("-c", "--command", "--session-command") and call.stdin is not None:
        call.guess("a script that is not known")


# Runners


def _npx(call) -> None:
    takes = ("--package", "--call", "--workspace", "--prefix", "--cache", "--userconfig", "--node-options")
    options = split(call.words, "pcwn", takes, stop_early=True)
    for text in options.values("-c", "--call"):
        call.output = call.walk.nested(text, call.folder, (), call.stdin)
    _run_package(call, options.operands)


def _run_package(call, words) -> None:
    """Run `words`, whose first may name a package and a version of it: ``@scope/name@1.2``."""
    if not words:
        return
    name = words[0]
    scope, slash, rest = name.partition("/") if name.startswith("@") else ("", "", name)
    plain = rest.partition("@")[0]
    if scope == "@angular":
        plain = "ng" if plain == "cli" else plain
    call.run([plain if plain else name, *words[1:]], call.stdin)


_UV_TAKES = (
    "--from --with --with-requirements --with-editable --python --index --default-index --index-url --extra-index-url"
    " --find-links --project --directory --package --extra --group --only-group --no-group --env-file --config-file"
    " --cache-dir --color --resolution --prerelease --refresh-package --script --module --constraint"
    " --allow-insecure-host"
).split()


def _uvx(call) -> None:
    options = split(call.words, "pwicf", _UV_TAKES, stop_early=True)
    _run_package(call, options.operands)


def _uv(call) -> None:
    top = split(call.words, "pC", _UV_TAKES, stop_early=True)
    if not top.operands:
        return
    verb, rest = top.operands[0], top.operands[1:]
    folder = top.value("--directory") or top.value("--project")
    if verb == "run":
        takes = [one for one in _UV_TAKES if one not in ("--script", "--module")]
        options = split(rest, "pmwcf", takes, stop_early=True)
        words = options.operands
        folder = options.value("--directory") or folder
        if options.value("-m", "--module"):
            words = ["python", "-m", options.value("-m", "--module"), *words]
        elif words and words[0].endswith(".py") or options.has("-s", "--script") or words[:1] == ["-"]:
            words = ["python", *words]
        if words:
            call.run(words, call.stdin, folder)
    elif verb == "tool" and rest[:1] == ["run"]:
        _run_package(call, split(rest[1:], "pwicf", _UV_TAKES, stop_early=True).operands)
    elif verb in ("add", "remove", "version", "init"):
        if verb != "version" or split(rest).operands or any(word.startswith("--bump") for word in rest):
            _manifest(call, "pyproject.toml", "uv.lock")
    elif verb in ("lock", "sync"):
        if not {"--frozen", "--locked", "--check", "--dry-run"}.intersection(rest):
            _manifest(call, "uv.lock")
    elif verb == "pip":
        if rest[:1] == ["compile"]:
            output = split(rest[1:], "o", ("--output-file",)).value("-o", "--output-file")
            if output:
                call.write(output)
    elif verb == "export":
        output = split(rest, "o", ("--output-file",)).value("-o", "--output-file")
        if output:
            call.write(output)
    elif verb == "venv":
        operands = split(rest, "p", _UV_TAKES).operands
        call.tree(operands[0] if operands else ".venv")
    elif verb == "build":
        call.tree(split(rest, "o", ("--out-dir",)).value("-o", "--out-dir") or "dist")
        call.runs_project()
    elif verb == "format":
        if not {"--check", "--diff"}.intersection(rest):
            call.tree(".", lambda path: path.endswith((".py", ".pyi", ".ipynb")) or False)
    elif (verb, rest[:1]) == ("python", ["pin"]):
        _manifest(call, ".python-version")
    else:
        _not_named(call, verb, rest)


def _manifest(call, *names: str) -> None:
    """Writes files of the project, whose folder is the next above that holds the first of its manifests."""
    folder = call.folder
    while folder is not None:
        if any(os.path.exists(os.path.join(folder, name)) for name in ("pyproject.toml", "Pipfile", "pixi.toml")):
            break
        above = os.path.dirname(folder)
        folder = None if above == folder else above
    for name in names:
        call.write(os.path.join(folder, name) if folder else name)


# Tool -> verbs -> files of the project that they write.
_VERBS = {
    "poetry": {
        "add": ("pyproject.toml", "poetry.lock"),
        "remove": ("pyproject.toml", "poetry.lock"),
        "lock": ("poetry.lock",),
        "update": ("poetry.lock",),
        "init": ("pyproject.toml",),
        "version": ("pyproject.toml",),
    },
    "pdm": {
        "add": ("pyproject.toml", "pdm.lock"),
        "remove": ("pyproject.toml", "pdm.lock"),
        "lock": ("pdm.lock",),
        "update": ("pdm.lock", "pyproject.toml"),
        "init": ("pyproject.toml",),
    },
    "pipenv": {
        "install": ("Pipfile", "Pipfile.lock"),
        "uninstall": ("Pipfile", "Pipfile.lock"),
        "update": ("Pipfile.lock",),
        "lock": ("Pipfile.lock",),
        "upgrade": ("Pipfile.lock", "Pipfile"),
    },
    "hatch": {"version": ("pyproject.toml",)},
    "rye": {
        "add": ("pyproject.toml",),
        "remove": ("pyproject.toml",),
        "sync": ("requirements.lock", "requirements-dev.lock"),
        "lock": ("requirements.lock", "requirements-dev.lock"),
    },
    "pixi": {"add": ("pixi.toml", "pixi.lock"), "remove": ("pixi.toml", "pixi.lock"), "update": ("pixi.lock",)},
}


def _manager(call) -> None:
    """poetry, pipenv and the like: `run command`, and what changes their own files."""
    top = split(call.words, "CPpe", ("--directory", "--project", "--manifest-path", "--env"), stop_early=True)
    if not top.operands:
        return
    verb, rest = top.operands[0], top.operands[1:]
    folder = top.value("-C", "--directory")
    if verb == "run":
        while rest and rest[0].startswith("-"):
            rest = rest[2 if rest[0] in ("-p", "--project", "-e", "--environment") else 1 :]
        if call.name == "hatch" and rest and ":" in rest[0]:
            rest = [rest[0].partition(":")[2], *rest[1:]]
        if rest:
            call.run(rest, call.stdin, folder)
        return
    if verb in ("fmt", "format") and not {"--check", "--diff"}.intersection(rest):
        call.tree(".", lambda path: path.endswith((".py", ".pyi")))
    elif verb in ("test", "build", "publish", "shell", "script"):
        call.runs_project()
    elif verb == "version" and not split(rest).operands:
        return
    elif "--dry-run" not in rest and verb in _VERBS[call.name]:
        _manifest(call, *_VERBS[call.name][verb])
    elif "--dry-run" not in rest:
        _not_named(call, verb, rest)


# Of uv, poetry and their kin: what changes nothing beside environments, caches and the screen.
_QUIET = frozenset(
    "install show check config env about cache search self list help source sync info why outdated graph verify which"
    " where venv clean run shell python tool pip tree auth publish version dep status requirements use fetch site"
    " toolchain global project task upload login logout plugin py".split()
)


def _not_named(call, verb: str, rest) -> None:
    """A subcommand without an entry: what its options name, and a guess where nobody knows it."""
    name_outputs(call, rest)
    if verb not in _QUIET and not {"--help", "-h"}.intersection(rest):
        call.guess(f"{call.name} {call.walk.shown(verb[:20])} is not known")


RUN = {
    **dict.fromkeys(("bash", "sh", "zsh", "dash", "ksh", "ash", "fish"), _shell),
    **dict.fromkeys(("su", "runuser"), _su),
    **dict.fromkeys(("npx", "bunx", "pnpx"), _npx),
    "uvx": _uvx,
    "uv": _uv,
    **dict.fromkeys(_VERBS, _manager),
}

"""npx, uv, poetry and their kin: they run commands in the project, and keep its manifests."""

import os

from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.undeclared import name_outputs

_TAKES = (
    "--from --with --with-requirements --with-editable --python --index --default-index --index-url --extra-index-url"
    " --find-links --project --directory --package --extra --group --only-group --no-group --env-file --config-file"
    " --cache-dir --color --resolution --prerelease --refresh-package --constraint --allow-insecure-host --environment"
    " --call --workspace --prefix --cache --userconfig --node-options --env --manifest-path"
).split()
_TOML = "pyproject.toml"
_PIPFILE, _PIXI = ("Pipfile", "Pipfile.lock"), ("pixi.toml", "pixi.lock")
_RYE = ("requirements.lock", "requirements-dev.lock")
# Tool -> verbs -> files of the project that they write.
_MANIFESTS: dict = {
    "uv": {
        **dict.fromkeys(("add", "remove", "version", "init"), (_TOML, "uv.lock")),
        **dict.fromkeys(("lock", "sync"), ("uv.lock",)),
        "python": (".python-version",),
    },
    "poetry": {
        **dict.fromkeys(("add", "remove"), (_TOML, "poetry.lock")),
        **dict.fromkeys(("lock", "update"), ("poetry.lock",)),
        **dict.fromkeys(("init", "version"), (_TOML,)),
    },
    "pdm": {**dict.fromkeys(("add", "remove", "update"), (_TOML, "pdm.lock")), "lock": ("pdm.lock",), "init": (_TOML,)},
    "pipenv": {
        **dict.fromkeys(("install", "uninstall", "upgrade"), _PIPFILE),
        **dict.fromkeys(("update", "lock"), _PIPFILE[1:]),
    },
    "hatch": {"version": (_TOML,)},
    "rye": {**dict.fromkeys(("add", "remove"), (_TOML,)), **dict.fromkeys(("sync", "lock"), _RYE)},
    "pixi": {**dict.fromkeys(("add", "remove"), _PIXI), "update": _PIXI[1:]},
}
_ROOTS = (_TOML, "Pipfile", "pixi.toml")  # one of these stands in a project's folder
_LEAVES = {"--frozen", "--locked", "--check", "--dry-run"}
# What changes nothing beside environments, caches and the screen.
_QUIET = frozenset(
    "install show check config env about cache search self list help source sync info why outdated graph verify which"
    " where clean run shell python tool pip tree auth dep status requirements use fetch site"
    " toolchain global project task upload login logout plugin py export version".split()
)


def _npx(call) -> None:
    options = split(call.words, "pcwn", (*_TAKES, "--package"), stop_early=True)
    for text in options.values("-c", "--call"):
        call.output = call.walk.nested(text, call.folder, (), call.stdin)
    _run_package(call, options.operands)


def _uvx(call) -> None:
    _run_package(call, split(call.words, "pwicf", _TAKES, stop_early=True).operands)


def _run_package(call, words) -> None:
    """Run `words`, whose first may name a package and a version of it: ``@scope/name@1.2``."""
    if not words:
        return
    name = words[0]
    scope, _, rest = name.partition("/") if name.startswith("@") else ("", "", name)
    plain = rest.partition("@")[0]
    if scope == "@angular" and plain == "cli":
        plain = "ng"
    call.run([plain or name, *words[1:]], call.stdin)


def _manager(call) -> None:
    """uv, poetry, pipenv and the like: `run command`, and what changes their own files."""
    top = split(call.words, "CPpe", _TAKES, stop_early=True)
    verb, *rest = top.operands or [""]
    folder = top.value("-C", "--directory", "--project")
    if verb == "run":
        _run(call, rest, folder)
    elif (call.name, verb, rest[:1]) == ("uv", "tool", ["run"]):
        _run_package(call, split(rest[1:], "pwicf", _TAKES, stop_early=True).operands)
    elif verb in ("fmt", "format"):
        if not {"--check", "--diff"}.intersection(rest):
            call.tree(".", lambda path: path.endswith((".py", ".pyi", ".ipynb")))
    elif (call.name, verb) == ("uv", "venv"):
        call.tree((split(rest, "p", _TAKES).operands or [".venv"])[0])
    elif verb in ("test", "build", "publish", "shell", "script"):
        call.runs_project()
        if (call.name, verb) == ("uv", "build"):
            call.tree(split(rest, "o", ("--out-dir",)).value("-o", "--out-dir") or "dist")
    elif verb in _MANIFESTS[call.name] and not _only_looks(verb, rest):
        if not _LEAVES.intersection(rest):
            _write_manifests(call, _MANIFESTS[call.name][verb])
    elif verb:
        name_outputs(call, rest)
        if verb not in _QUIET and not {"--help", "-h"}.intersection(rest):
            call.guess(f"{call.name} {call.walk.shown(verb[:20])} is not known")


def _only_looks(verb: str, rest) -> bool:
    if verb == "version":
        return not split(rest).operands and not any(word.startswith("--bump") for word in rest)
    return verb == "python" and rest[:1] != ["pin"]


def _run(call, words, folder) -> None:
    options = split(words, "pmwcfe", (*_TAKES, "--module"), stop_early=True)
    words = options.operands
    if options.value("-m", "--module"):
        words = ["python", "-m", options.value("-m", "--module"), *words]
    elif words and words[0].endswith(".py") or options.has("-s", "--script") or words[:1] == ["-"]:
        words = ["python", *words]
    elif call.name == "hatch" and words and ":" in words[0]:
        words = [words[0].partition(":")[2], *words[1:]]
    if words:
        call.run(words, call.stdin, options.value("--directory") or folder)


def _write_manifests(call, names) -> None:
    """Write files of the project, whose folder is the next above that holds the first of its manifests."""
    folder = call.folder
    while folder is not None and not any(os.path.exists(os.path.join(folder, name)) for name in _ROOTS):
        above = os.path.dirname(folder)
        folder = None if above == folder else above
    for name in names:
        call.write(os.path.join(folder, name) if folder else name)


RUN = {**dict.fromkeys(("npx", "bunx", "pnpx"), _npx), "uvx": _uvx, **dict.fromkeys(_MANIFESTS, _manager)}

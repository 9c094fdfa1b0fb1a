"""Formatters and linters that fix: which files they go over, and whether they write at all."""

import os

from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.formatter_table import TOOLS
from swarm_hook_core.shell.programs.places import (
    cannot_tell,
    directly_in,
    fixed_part,
    is_file,
    is_folder,
    is_pattern,
    matching,
    maybe,
    seen,
    with_endings,
)

# Their long options have one dash, so letters do not cluster.
_ONE_DASH = (
    "gofmt",
    "gofumpt",
    "goimports",
    "clang-format",
    "terraform",
    "tofu",
    "packer",
    "tidy",
    "yamlfmt",
    "shfmt",
    "golines",
)


def _format(call) -> None:
    tool = TOOLS[call.name] if call.name in TOOLS else TOOLS[call.name.rstrip("0123456789.-")]
    given, operands = _arguments(call, tool)
    if any(name in given for name in ("--help", "-h", "-help", "--version") if name not in tool.writes):
        return
    writes = not tool.writes
    if tool.verbs:
        verb = operands.pop(0) if operands else ""
        if verb + "!" in tool.verbs:
            writes = True
        elif verb not in tool.verbs:
            if call.name != "ruff":  # `ruff --fix .` meant `ruff check --fix .` once
                return
            operands.insert(0, verb)
    elif operands and operands[0] in tool.drops:
        operands.pop(0)
    spelled = set(given) | {
        f"{name}={value}" for name, values in given.items() for value in values if value is not None
    }
    if not (writes or spelled.intersection(tool.writes)) or spelled.intersection(tool.looks):
        return
    out = [value for name in tool.out for value in given.get(name, ()) if value]
    if out:
        for name in out:
            if name != "-":
                call.write(name)
        return
    if "--output-file" in given and given["--output-file"][-1]:
        call.write(given["--output-file"][-1])
    operands = operands[tool.named :]
    over(call, operands or ([tool.default] if tool.default else []), tool.endings)


def _rustfmt(call) -> None:
    """Follows ``mod x;`` into files that are not named."""
    _format(call)
    for word in call.words:
        if word.endswith(".rs") and "--check" not in call.words:
            call.tree(os.path.dirname(word) or ".", lambda path: None if path.endswith(".rs") else False)


def _terraform(call) -> None:
    verb = next((word for word in call.words if not word.startswith("-")), "")
    if verb == "fmt" and not any(word.lstrip("-") in ("recursive", "recursive=true") for word in call.words):
        operands = [word for word in call.words if not word.startswith("-") and word != "fmt"]
        if not any(word in call.words for word in ("-check", "--check", "-write=false", "-")):
            endings = TOOLS["terraform"].endings
            for word in operands or ["."]:
                if is_folder(call, word):
                    call.tree(word, directly_in(seen(call, word), lambda name: name.endswith(endings)))
                else:
                    call.write(word)
    elif verb == "fmt":
        _format(call)
    elif verb in ("init", "get", "providers"):
        call.write(".terraform.lock.hcl")
        call.tree(".terraform")
    elif verb in ("apply", "destroy", "import", "refresh", "taint", "untaint") or call.words[:2] in (
        ["state", "mv"],
        ["state", "rm"],
        ["state", "push"],
    ):
        maybe(call, "terraform.tfstate")
    elif verb == "plan":
        for word in call.words:
            if word.lstrip("-").startswith("out="):
                call.write(word.split("=", 1)[1])


def _dart(call) -> None:
    words = [word for word in call.words if not word.startswith("-")]
    verb = words[0] if words else ""
    if verb == "format" or (verb == "fix" and "--apply" in call.words):
        _format(call)
    elif verb in ("run", "test", "compile", "build") or verb.endswith(".dart"):
        call.runs_project()
    elif verb == "pub" and words[1:2] and words[1] not in ("deps", "outdated", "publish"):
        call.write("pubspec.lock")
        if words[1] in ("add", "remove", "upgrade"):
            call.write("pubspec.yaml")


def _compiler(call) -> None:
    """zig and crystal: formatters in one subcommand, compilers in the others."""
    verb = next((word for word in call.words if not word.startswith("-")), "")
    if verb == "fmt" or call.words[:2] == ["tool", "format"]:
        operands = [
            word for word in call.words[call.words.index(verb) + 1 :] if not word.startswith("-") and word != "format"
        ]
        if not any(word in ("--check", "--stdin") for word in call.words):
            over(call, operands or ["."], TOOLS[call.name].endings)
    elif verb not in ("version", "env", "targets", "help", "zen"):
        call.runs_project()


def _arguments(call, tool):
    """``(given, operands)`` as `Options` has them."""
    if call.name not in _ONE_DASH:
        options = split(call.words, tool.short, tool.long, tool.optional)
        return options.given, options.operands
    given: dict = {}
    operands, words = [], list(call.words)
    while words:
        word = words.pop(0)
        if word == "--":
            operands += words
            break
        if word == "-" or not word.startswith("-"):
            operands.append(word)
            continue
        name, equals, value = word.partition("=")
        if not equals and (name in tool.long or (len(name) == 2 and name[1] in tool.short)):
            value, equals = (words.pop(0) if words else ""), "="
        given.setdefault(name, []).append(value if equals else None)
    return given, operands


def over(call, operands, endings) -> None:
    """Goes over `operands`: files as they are, folders for names with `endings`, patterns as the tool expands them."""
    admits = with_endings(endings) if endings else cannot_tell
    for word in operands:
        if word == "-" or word.startswith("!"):
            continue
        word = word.removesuffix("/...") or "."
        if word == "...":
            word = "."
        if is_pattern(word) and not is_file(call, word) and not is_folder(call, word):
            call.tree(fixed_part(word), matching(word, call.folder or "/") if call.folder else cannot_tell)
        elif is_folder(call, word):
            call.tree(word, admits)
        else:
            call.write(word)


def _jupytext(call) -> None:
    options = split(
        call.words, "o", ("--to", "--from", "--output", "--set-formats", "--pipe", "--opt", "--update-metadata")
    )
    if options.value("-o", "--output"):
        if options.value("-o", "--output") != "-":
            call.write(options.value("-o", "--output"))
        return
    ending = (options.value("--to") or "").split(":")[0].split("/")[-1]
    for word in options.operands:
        if ending and is_known(word):
            call.write(
                os.path.splitext(word)[0]
                + "."
                + {"notebook": "ipynb", "markdown": "md", "python": "py"}.get(ending, ending)
            )
        if options.has("--sync", "--set-formats", "--update-metadata"):
            call.write(word)
            call.guess("the other half of a notebook", os.path.dirname(word) or None)


def _pre_commit(call) -> None:
    words = [word for word in call.words if not word.startswith("-")]
    if not words or words[0] in ("run", "try-repo"):
        call.guess("hooks may rewrite what they are given")
    elif words[0] == "autoupdate":
        call.write(".pre-commit-config.yaml")


def _cookiecutter(call) -> None:
    call.guess("writes a project from a template")


RUN = {
    **dict.fromkeys(TOOLS, _format),
    **dict.fromkeys(("terraform", "tofu", "packer"), _terraform),
    **dict.fromkeys(("zig", "crystal"), _compiler),
    "rustfmt": _rustfmt,
    "dart": _dart,
    "jupytext": _jupytext,
    "pre-commit": _pre_commit,
    "prek": _pre_commit,
    "cookiecutter": _cookiecutter,
}

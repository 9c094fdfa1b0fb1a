"""Builds and test runners: they run the project's own code, whose writes nobody can name beforehand.

Package managers, which change manifests and lock files, are in `packages`; compilers in `converters`.
"""

import os

from swarm_hook_core.shell.model import absolute
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.places import cannot_tell, fixed_part, is_pattern, maybe, with_endings

_ASKS = ("--version", "--help", "-V", "-version", "--v", "help", "version")


def _asks(call) -> bool:
    """Whether it is only asked what it is."""
    return bool(call.words) and call.words[0] in _ASKS


def _runs(call) -> None:
    if not _asks(call) and call.words not in (["-v"], ["-h"]):
        call.runs_project()


def _speaks(call) -> None:
    if any(word in ("-e", "-E", "--eval", "-exec", "--execute") for word in call.words):
        call.guess("code that cannot be read")
    else:
        _runs(call)


def _make(call) -> None:
    takes = ("--directory", "--file", "--makefile", "--include-dir", "--old-file", "--new-file", "--eval")
    options = split(call.words, "CfIoW", takes, optional="jlO")
    if not options.has(
        "-n", "--just-print", "--dry-run", "--recon", "-q", "--question", "-v", "--version", "-h", "--help"
    ):
        call.runs_project()
        made = options.values("-f", "--file", "--makefile")
        if any(word == "-" or absolute(call.folder, word) in call.walk.contents for word in made):
            call.guess("a makefile of the command's own")


def _just(call) -> None:
    if not split(call.words, "fd").has("-l", "--list", "-n", "--dry-run", "--summary", "--show", "--version", "--help"):
        call.runs_project()


def _ninja(call) -> None:
    options = split(call.words, "Cfjklwdt")
    if not options.has("-n", "--version", "-h") and options.value("-t") not in ("targets", "commands", "query", "deps"):
        call.runs_project()


def _cmake(call) -> None:
    words = call.words
    if _asks(call):
        return
    if words[:1] == ["-E"]:
        _cmake_tool(call, words[1:])
        return
    options = split(words, "SBDGCUATP", ("--build", "--install", "--preset", "--target", "--config", "--prefix"))
    folder = options.value("-B")
    if folder:
        call.tree(folder, cannot_tell)
    call.runs_project()


def _cmake_tool(call, words) -> None:
    """``cmake -E copy a b`` and the other portable commands."""
    same = {"copy": "cp", "copy_if_different": "cp", "rename": "mv", "remove": "rm", "rm": "rm", "touch": "touch"}
    more = {"copy_directory": ["cp", "-r"], "remove_directory": ["rm", "-r"], "make_directory": ["mkdir"]}
    if words and (words[0] in same or words[0] in more):
        call.run([*(more.get(words[0]) or [same[words[0]]]), *words[1:]])
    elif words[:1] == ["tar"]:
        call.run(["tar", *words[1:]])


def _typescript(call) -> None:
    options = split(call.words, "pt", ("--project", "--outDir", "--outFile", "--target", "--module", "--lib", "--jsx"))
    if options.has("--noEmit", "--version", "-v", "--help", "-h", "--showConfig", "--listFilesOnly", "--all"):
        return
    if options.has("--init"):
        call.write("tsconfig.json")
        return
    if options.value("--outDir"):
        call.tree(options.value("--outDir"), cannot_tell)
    elif options.operands and not options.has("-b", "--build"):
        for word in options.operands:
            call.write(os.path.splitext(word)[0] + ".js")
    call.runs_project()


_UPDATES = ("--snapshot-update", "--update-snapshots", "-u", "--updateSnapshot", "--update", "--inline-snapshot=fix")


def _tests(call) -> None:
    """What a test run writes, nobody says; reports and new snapshots it is told to write."""
    if _asks(call):
        return
    for word in call.words:
        name, equals, value = word.partition("=")
        if equals and name in (
            "--junitxml",
            "--junit-xml",
            "--html",
            "--report-log",
            "--log-file",
            "--outputFile",
            "--output-file",
        ):
            call.write(value)
        elif word.startswith("--cov-report=") and word.count(":") == 1:
            call.tree(word.split(":")[1], cannot_tell)
    if call.words[:1] not in (["--collect-only"], ["--co"], ["--markers"], ["--fixtures"], ["list"]):
        call.runs_project()


def _reads_project(call) -> None:
    """Type checkers: they read the project, and write their cache and, if asked, reports."""
    for word in call.words:
        if word.startswith("--junit-xml="):
            call.write(word.split("=", 1)[1])
    if "--createstub" in call.words:
        call.tree("typings", cannot_tell)


def _coverage(call) -> None:
    verb = next((word for word in call.words if not word.startswith("-")), "")
    options = split(call.words, "od", ("--data-file", "--include", "--omit"))
    if verb == "run":
        call.write(options.value("--data-file") or ".coverage")
        call.runs_project()
    elif verb in ("html", "xml", "json", "lcov", "annotate"):
        default = {"html": "htmlcov", "xml": "coverage.xml", "json": "coverage.json", "lcov": "coverage.lcov"}.get(
            verb, "."
        )
        place = options.value("-d", "-o") or default
        if place != "-":
            (call.tree(place, cannot_tell) if verb in ("html", "annotate") else call.write(place))
    elif verb in ("erase", "combine"):
        call.write(".coverage")


_GO_VALUES = (
    "-o",
    "-tags",
    "-ldflags",
    "-gcflags",
    "-mod",
    "-C",
    "-run",
    "-count",
    "-timeout",
    "-bench",
    "-coverprofile",
    "-p",
)


def _go(call) -> None:
    words, given, operands = list(call.words), {}, []
    if words[:1] == ["-C"]:
        given["-C"], words = "".join(words[1:2]), words[2:]
    verb, words = (words[0] if words else ""), words[1:]
    while words:
        word = words.pop(0)
        if word in _GO_VALUES:
            given[word] = words.pop(0) if words else ""
        elif word.startswith("-"):
            name, _equals, value = word.partition("=")
            given["-" + name.lstrip("-")] = value
        else:
            operands.append(word)
    for name in ("-coverprofile", "-cpuprofile", "-memprofile", "-trace"):
        if given.get(name):
            call.write(given[name])
    if verb in ("build", "test", "vet", "run", "install", "clean"):
        if given.get("-o") and given["-o"] != os.devnull:
            call.write(given["-o"])
        elif verb == "build" and operands[:1] and operands[0].endswith(".go"):
            call.write(os.path.join(given.get("-C", ""), os.path.basename(operands[0]).removesuffix(".go")))
        elif verb == "build" and len(operands) < 2 and "..." not in "".join(operands):
            # Of a package it depends on what it is: only a command becomes a file.
            name = os.path.basename(absolute(call.folder, (operands or ["."])[0]) or "")
            maybe(call, os.path.join(given.get("-C", ""), name))
        call.runs_project()
    elif verb == "fmt" and "-n" not in given or verb == "fix":
        from swarm_hook_core.shell.programs.formatters import over

        over(call, operands or ["."], (".go",))
    elif verb == "generate":
        call.guess("runs what the sources say")
    elif verb == "get" or (verb == "mod" and operands[:1] in (["tidy"], ["edit"], ["init"], ["vendor"])):
        for name in ("go.mod", "go.sum"):
            call.write(os.path.join(given.get("-C", ""), name))
        if operands[:1] == ["vendor"]:
            call.tree("vendor")
    elif verb == "work" and operands[:1] != ["sync"]:
        call.write("go.work")


def _vite(call) -> None:
    if call.words[:1] not in (["--version"], ["--help"]):
        options = split(call.words, "cmlod", ("--outDir", "--config", "--output-path", "--outfile", "--dist-dir"))
        for name in options.values("--outDir", "--output-path", "--dist-dir"):
            call.tree(name, cannot_tell)
        call.runs_project()


def _dotnet(call) -> None:
    verb = call.words[0] if call.words else ""
    if verb == "format":
        if not any(word in ("--verify-no-changes", "--dry-run") for word in call.words):
            call.tree(".", lambda path: path.endswith((".cs", ".vb", ".fs")))
    elif verb in ("add", "remove", "sln", "new", "restore", "nuget"):
        call.guess("changes project files")
    elif verb not in ("--version", "--info", "--list-sdks", "--list-runtimes", "list", "help"):
        call.runs_project()


def _mix(call) -> None:
    verb = call.words[0] if call.words else ""
    if verb == "format" and not any(word in ("--check-formatted", "--dry-run") for word in call.words):
        patterns = [word for word in call.words[1:] if not word.startswith("-")]
        for word in patterns or ["."]:
            ex = with_endings((".ex", ".exs", ".heex"))
            call.tree(fixed_part(word), ex) if is_pattern(word) or word == "." else call.write(word)
    elif verb.startswith("deps."):
        call.write("mix.lock")
        call.tree("deps")
    elif verb not in ("help", "--version", "format"):
        call.runs_project()


def _codegen(call) -> None:
    """Programs whose purpose is to write files of the project, where their configuration says."""
    if not _asks(call) and not any(word in ("--check", "--dry-run", "validate") for word in call.words):
        call.guess("generates files")


_RUNNERS = (
    "tox nox mocha mvn mvnw gradle gradlew rspec phpunit cypress jest vitest ava karma playwright ctest bazel bazelisk"
    " buck2"
    " pants meson scons waf xcodebuild stack cabal sbt lein ant rake task mage turbo nx lerna gulp grunt webpack"
    " rollup parcel"
    " next nuxt astro gatsby hugo jekyll mkdocs sphinx-build tsup ts-node-esm nodemon pm2 behave robot locust"
    " unittest nose2 invoke fab ansible-playbook molecule storybook remix ng vue-cli-service expo react-native"
    " swift kotlinc java maturin rails flutter django-admin flask uvicorn gunicorn celery streamlit phpstan psalm"
    " gotestsum ginkgo wasm-pack trunk nyc c8 svelte-check vue-tsc msbuild rebar3 dune lake"
)
_SPEAKERS = "elixir erl iex julia scala kotlin groovy racket sbcl clojure bb octave"

RUN = {
    **dict.fromkeys(_RUNNERS.split(), _runs),
    **dict.fromkeys(_SPEAKERS.split(), _speaks),
    **dict.fromkeys(("pytest", "py.test", "jest", "vitest", "playwright", "phpunit", "rspec", "cypress"), _tests),
    **dict.fromkeys(("make", "gmake"), _make),
    **dict.fromkeys(
        ("mypy", "pyright", "basedpyright", "pylint", "flake8", "pyflakes", "ty", "pyre", "bandit"), _reads_project
    ),
    **dict.fromkeys(("vite", "webpack", "rollup", "parcel"), _vite),
    **dict.fromkeys(
        ("prisma", "graphql-codegen", "sqlc", "alembic", "swagger-codegen", "openapi-generator-cli"), _codegen
    ),
    "just": _just,
    "ninja": _ninja,
    "cmake": _cmake,
    "tsc": _typescript,
    "coverage": _coverage,
    "go": _go,
    "dotnet": _dotnet,
    "mix": _mix,
}

"""Package managers: the manifest and the lock file that a change of dependencies writes, and the folders filled."""

import os

from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.places import cannot_tell, with_endings


def _beside(call, folder, names) -> None:
    for name in names:
        call.write(os.path.join(folder, name) if folder else name)


def _verb(words, taking) -> tuple[str, list[str], str]:
    """``(first operand, words after it, folder that an option before it names)``."""
    folder, at = "", 0
    while at < len(words):
        word = words[at]
        name, equals, value = word.partition("=")
        if name in taking:
            if not equals:
                at += 1
                value = words[at] if at < len(words) else ""
            folder = value
        elif not word.startswith(("-", "+")):
            return word, list(words[at + 1 :]), folder
        at += 1
    return "", [], folder


_LOCKS = {
    "npm": ("package-lock.json", "npm-shrinkwrap.json"),
    "cnpm": ("package-lock.json",),
    "yarn": ("yarn.lock",),
    "pnpm": ("pnpm-lock.yaml",),
    "bun": ("bun.lock", "bun.lockb"),
}
_ADDS = (
    "install",
    "i",
    "in",
    "add",
    "uninstall",
    "un",
    "remove",
    "rm",
    "r",
    "update",
    "up",
    "upgrade",
    "dedupe",
    "link",
    "ln",
)
_CLEAN = ("ci", "clean-install", "ic", "rebuild", "prune", "fetch")
_NODE_RUNS = (
    "run",
    "run-script",
    "test",
    "t",
    "tst",
    "start",
    "stop",
    "restart",
    "build",
    "exec",
    "x",
    "dlx",
    "pack",
    "publish",
)


def _node(call) -> None:
    folders = ("-C", "--prefix", "--cwd", "--dir")
    verb, words, folder = _verb(call.words, (*folders, "-w", "--workspace", "--filter", "-F"))
    if not any(word.partition("=")[0] in folders for word in call.words):
        folder = ""
    options = split(words, "Cw", ("--prefix", "--cwd", "--dir", "--workspace", "--registry", "--filter"))
    folder = options.value("-C", "--prefix", "--cwd", "--dir") or folder
    if options.has("--help", "-h") or call.words[:1] in (["--version"], ["-v"], ["--help"]):
        return
    if call.name in ("yarn",) and not verb:
        verb = "install"
    if options.has("-g", "--global", "--location") and verb in _ADDS:
        return
    if verb in ("exec", "x", "dlx") and call.name != "bun":
        _run_tool(call, words)
    elif options.has("--dry-run"):
        return
    elif verb in _ADDS or verb in _CLEAN:
        call.tree(os.path.join(folder, "node_modules"))
        if verb in _CLEAN or options.has("--frozen-lockfile", "--immutable", "--no-save"):
            return
        # With nothing named, an installation leaves the manifest, and often the lock file too.
        named = bool(options.operands) or verb not in ("install", "i", "in")
        if named:
            _beside(call, folder, ("package.json",))
        for name in _LOCKS[call.name]:
            there = call.folder is None or os.path.exists(os.path.join(call.folder, folder, name))
            if there or name == _LOCKS[call.name][0]:
                if not options.has("--no-package-lock", "--no-lockfile"):
                    _beside(call, folder, (name,))
    elif verb == "init" or verb == "version" or verb in ("set", "pkg") and words[:1] in (["set"], ["delete"], ["fix"]):
        if verb != "version" or options.operands:
            _beside(call, folder, ("package.json", *(_LOCKS[call.name][:1] if verb == "version" else ())))
    elif verb == "audit" and words[:1] == ["fix"]:
        _beside(call, folder, ("package.json", *_LOCKS[call.name][:1]))
        call.tree(os.path.join(folder, "node_modules"))
    elif verb in ("run", "run-script") and not options.operands:
        return  # lists the scripts
    elif verb in _NODE_RUNS:
        call.runs_project()
    elif verb == "create":
        call.guess("writes a project from a template")
    elif call.name in ("yarn", "pnpm") and verb and verb not in _NODE_READS:
        _run_tool(call, [verb, *words])


_NODE_READS = (
    "why list ls info view outdated audit config licenses search help root bin prefix whoami login logout pack store"
    " cache"
    " workspaces workspace doctor explain query ping owner docs repo bugs token team access env versions node server"
).split()


def _run_tool(call, words) -> None:
    """A tool of the project by its name (``yarn prettier --write .``); a script of the manifest where it is none."""
    from swarm_hook_core.shell.programs import program

    if words[:1] in (["-c"], ["--call"]) and len(words) > 1:
        call.script(words[1])
        return
    words = [word for at, word in enumerate(words) if word != "--" or at > 0]
    while words and words[0].startswith("-"):
        words.pop(0)
    if words and is_known(words[0]) and program(words[0]) is not None:
        call.run([words[0], *[word for word in words[1:] if word != "--"]])
    else:
        call.runs_project()


def _pip(call) -> None:
    verb, words, _folder = _verb(call.words, ("--python", "--log", "--proxy"))
    takes = (
        "--target",
        "--dest",
        "--wheel-dir",
        "--requirement",
        "--report",
        "--index-url",
        "--prefix",
        "--root",
        "--src",
    )
    options = split(
        words, "trdwcioe", (*takes, "--editable", "--constraint", "--extra-index-url", "--upgrade-strategy")
    )
    report = options.value("--report")
    if report and report != "-":
        call.write(report)
    if verb == "install" and not options.has("--dry-run"):
        if options.value("-t", "--target"):
            call.tree(options.value("-t", "--target"), cannot_tell)
        if options.has("-e", "--editable") or any(word.startswith((".", "/")) for word in options.operands):
            call.runs_project()  # a setup script or build backend of the project
    elif verb in ("download", "wheel"):
        call.tree(options.value("-d", "--dest", "-w", "--wheel-dir") or ".", with_endings((".whl", ".gz", ".zip"), ()))


_CARGO_RUNS = (
    "build",
    "b",
    "test",
    "t",
    "run",
    "r",
    "check",
    "c",
    "bench",
    "doc",
    "d",
    "nextest",
    "rustc",
    "miri",
    "publish",
    "package",
)


def _cargo(call) -> None:
    words = [word for word in call.words if not word.startswith("+")]
    verb, words, folder = _verb(words, ("-C", "--color", "--config", "--manifest-path"))
    takes = (
        "--manifest-path",
        "--package",
        "--features",
        "--target",
        "--target-dir",
        "--bin",
        "--example",
        "--profile",
    )
    options = split(words, "pFjZC", (*takes, "--branch", "--tag", "--rev", "--git", "--path", "--rename", "--color"))
    folder = os.path.dirname(options.value("--manifest-path") or folder)
    if options.has("--help", "-h", "--list"):
        return
    if verb == "fmt":
        tail = words[words.index("--") + 1 :] if "--" in words else []
        if "--check" not in words + tail:
            call.tree(folder or ".", with_endings((".rs",)))
    elif verb == "fix" or verb == "clippy" and options.has("--fix"):
        call.tree(folder or ".", lambda path: None if path.endswith(".rs") else False)
        call.runs_project()
    elif verb in ("add", "remove", "rm", "upgrade"):
        if not options.has("--dry-run", "-n"):
            _beside(call, folder, ("Cargo.toml", "Cargo.lock"))
    elif verb in ("update", "generate-lockfile"):
        if not options.has("--dry-run", "-n"):
            _beside(call, folder, ("Cargo.lock",))
    elif verb in ("new", "init"):
        place = options.operands[0] if options.operands else "."
        _beside(call, place, ("Cargo.toml", "src/main.rs", "src/lib.rs", ".gitignore"))
    elif verb == "clean":
        call.tree(options.value("--target-dir") or "target")
    elif verb == "vendor":
        call.tree(options.operands[0] if options.operands else "vendor")
    elif verb in _CARGO_RUNS or verb == "clippy" or verb == "install" and options.value("--path"):
        call.runs_project()
    elif verb in ("sqlx", "insta", "dist", "release", "generate", "watch", "make", "xtask", "expand", "llvm-cov"):
        if verb in ("insta", "release", "generate") or (verb == "sqlx" and words[:1] == ["prepare"]):
            call.guess("changes files of the project")
        call.runs_project()


def _bundle(call) -> None:
    verb, words, _folder = _verb(call.words, ("--gemfile",))
    if verb in ("", "install", "i", "update", "lock", "add", "remove"):
        call.write("Gemfile.lock")
        if verb in ("add", "remove"):
            call.write("Gemfile")
        if "--path" in words:
            call.tree(words[words.index("--path") + 1 :][:1][0] if words[words.index("--path") + 1 :] else "vendor")
    elif verb in ("exec", "e"):
        _run_tool(call, words)
    elif verb == "init":
        call.write("Gemfile")


def _gem(call) -> None:
    if call.words[:1] == ["build"]:
        call.tree(".", lambda path: path.endswith(".gem"))
    elif call.words[:1] == ["fetch"]:
        call.guess("fetches a gem")


def _composer(call) -> None:
    verb, words, folder = _verb(call.words, ("-d", "--working-dir"))
    if "--dry-run" in words:
        return
    if verb in ("install", "i", "update", "u", "upgrade", "require", "r", "remove", "dump-autoload", "dumpautoload"):
        call.tree(os.path.join(folder, "vendor"))
        if verb not in ("dump-autoload", "dumpautoload"):
            _beside(call, folder, ("composer.lock",))
        if verb in ("require", "r", "remove"):
            _beside(call, folder, ("composer.json",))
    elif verb in ("run", "run-script", "test", "exec"):
        call.runs_project()
    elif verb in ("init", "config") and len(words) > 1:
        _beside(call, folder, ("composer.json",))


def _pod(call) -> None:
    if call.words[:1] in (["install"], ["update"]):
        call.write("Podfile.lock")
        call.tree("Pods")


def _conan(call) -> None:
    if call.words[:1] in (["install"], ["create"], ["build"]):
        call.runs_project()


def _system(_call) -> None:
    """Changes the machine, not files that a session would lock."""


RUN = {
    **dict.fromkeys(("npm", "cnpm", "yarn", "pnpm"), _node),
    **dict.fromkeys(("pip", "pip3"), _pip),
    **dict.fromkeys(("bundle", "bundler"), _bundle),
    **dict.fromkeys(
        ("apt", "apt-get", "brew", "dnf", "yum", "apk", "pacman", "snap", "port", "crontab", "dpkg"), _system
    ),
    **dict.fromkeys(
        ("systemctl", "service", "launchctl", "journalctl", "pipx", "rustup", "nvm", "volta", "corepack"), _system
    ),
    "cargo": _cargo,
    "gem": _gem,
    "composer": _composer,
    "pod": _pod,
    "conan": _conan,
}

"""Programs that put themselves before another command: sudo, env, timeout, watch."""

from swarm_hook_core.shell.model import absolute
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.places import exists

# Program -> (short options with a value, long ones, operands before the command).
_BEFORE = {
    **dict.fromkeys(("nohup", "setsid", "unbuffer", "chronic", "catchsegv", "linux64", "arch", "numactl"), ("", (), 0)),
    **dict.fromkeys(("busybox", "valgrind"), ("", (), 0)),
    "nice": ("n", ("--adjustment",), 0),
    "ionice": ("cnp", ("--class", "--classdata"), 0),
    "chrt": ("TPD", (), 1),
    "taskset": ("", (), 1),
    **dict.fromkeys(("timeout", "gtimeout"), ("ks", ("--kill-after", "--signal"), 1)),
    **dict.fromkeys(("stdbuf", "gstdbuf"), ("ioe", ("--input", "--output", "--error"), 0)),
    "caffeinate": ("tw", (), 0),
    "rlwrap": ("abcCDefgHilmNopPqrsStwz", (), 0),
    "xvfb-run": ("efnps", ("--auth-file", "--error-file", "--server-num", "--server-args"), 0),
    "systemd-run": ("uptEM", ("--unit", "--property", "--slice"), 0),
    "dotenv": ("fe", ("--file",), 0),
    **dict.fromkeys(("time", "gtime"), ("fo", ("--format", "--output"), 0)),
    **dict.fromkeys(("strace", "ltrace", "dtruss"), ("oeEpsuaIPOSXbU", ("--output", "--trace"), 0)),
}
_REPORTS = frozenset(
    "time gtime strace ltrace dtruss valgrind".split()
)  # those write what they saw where they are told to


def _before(call) -> None:
    short, long, skipped = _BEFORE[call.name]
    options = split(call.words, short, long, stop_early=True)
    for word in options.values("-o", "--output", "--log-file")[-1:] if call.name in _REPORTS else ():
        call.write(word)
    if options.operands[skipped:]:
        call.run(options.operands[skipped:], call.stdin)


def _run_with(call, words, folder) -> None:
    """Run `words` in `folder`, with the variables that stand first in them set for it alone."""
    scope = call.walk.scope.fork()
    scope.folder = folder
    at = 0
    while at < len(words) and "=" in words[at] and words[at].partition("=")[0].isidentifier():
        name, _, scope.variables[name] = words[at].partition("=")
        at += 1
    if words[at:]:
        call.output = call.walk.simple(scope, words[at:])


def _folder(call, word):
    return absolute(call.folder, word) if word else call.folder


_SPLIT = ("-S", "--split-string")


def _env(call) -> None:
    words = list(call.words)
    place = next((at for at, word in enumerate(words) if word[:1] != "-" or word.startswith(_SPLIT)), len(words))
    if words[place : place + 1] and words[place].startswith(_SPLIT):  # `env -S "command x"`
        rest = words[place + 1 :]
        text = words[place].partition("=")[2] if words[place][1] == "-" else words[place][2:]
        words[place:] = [*(text or (rest.pop(0) if rest else "")).split(), *rest]
    options = split(words, "uCS", ("--unset", "--chdir"), stop_early=True)
    _run_with(call, options.operands, _folder(call, options.value("-C", "--chdir")))


_SUDO_LONG = "--user --group --host --prompt --close-from --chdir --chroot --role --type --other-user".split()


def _sudo(call) -> None:
    options = split(call.words, "ughpCrtTUDRa" if call.name == "sudo" else "uC", _SUDO_LONG, stop_early=True)
    if options.has("-e", "--edit") or call.name == "sudoedit":
        for word in options.operands:
            call.write(word)
    else:
        _run_with(call, options.operands, _folder(call, options.value("-D", "--chdir")))


def _text(call, *texts) -> None:
    """Run shell text."""
    for text in filter(None, texts):
        call.output = call.walk.nested(text, call.folder, (), call.stdin)


def _su(call) -> None:
    options = split(call.words, "cgGsTw", ("--command", "--session-command", "--group", "--shell"))
    texts = options.values("-c", "--command", "--session-command")
    _text(call, *texts)
    if not texts and call.stdin is not None:
        call.guess("a script that is not known")


def _flock(call) -> None:
    options = split(call.words, "wEc", ("--timeout", "--wait", "--conflict-exit-code", "--command"), stop_early=True)
    file, *rest = options.operands or [""]
    text = options.value("-c", "--command")
    if rest[:1] in (["-c"], ["--command"]):
        text, rest = (rest[1:] or [""])[0], []
    if (text or rest) and file and not exists(call, file):
        call.write(file)
    _text(call, text)
    if rest:
        call.run(rest, call.stdin)


def _script(call) -> None:
    """script: writes what the terminal shows into a file."""
    options = split(call.words, "cEmoTtIOB", ("--command", "--log-out", "--log-in", "--log-io"), stop_early=True)
    file, *rest = options.operands or [""]
    texts = options.values("-c", "--command")[-1:]
    if "-c" in rest:  # `script out -c cmd`
        texts, rest = rest[rest.index("-c") + 1 :][:1], rest[: rest.index("-c")]
    call.write(file or options.value("--log-out", "-O") or "typescript")
    _text(call, *texts)
    if rest:
        call.run(rest)


def _watch(call) -> None:
    _text(call, " ".join(split(call.words, "nq", ("--interval", "--equexit"), stop_early=True).operands))


def _hyperfine(call) -> None:
    takes = "--warmup --min-runs --max-runs --runs --setup --prepare --conclude --cleanup --parameter-scan --shell"
    exports = "--export-json --export-csv --export-markdown --export-asciidoc".split()
    more = "--parameter-list --style --command-name".split()
    options = split(call.words, "wmMrspcPLDSNun", (*takes.split(), *more, *exports))
    for word in options.values(*exports):
        call.write(word)
    _text(call, *options.values("-s", "--setup", "-p", "--prepare", "-c", "--cleanup"), *options.operands)


def _nix_shell(call) -> None:
    places = [at for at, word in enumerate(call.words) if word in ("--run", "--command")]
    _text(call, *(word for at in places for word in call.words[at + 1 : at + 2]))


def _elsewhere(_call) -> None:
    """What it runs, runs on another machine."""


def _chroot(call) -> None:
    call.guess("another root folder")


RUN = {
    **dict.fromkeys(_BEFORE, _before),
    **dict.fromkeys(("env", "genv"), _env),
    **dict.fromkeys(("sudo", "doas", "sudoedit"), _sudo),
    **dict.fromkeys(("su", "runuser"), _su),
    "flock": _flock,
    "script": _script,
    "watch": _watch,
    "hyperfine": _hyperfine,
    "nix-shell": _nix_shell,
    **dict.fromkeys(("ssh", "mosh"), _elsewhere),
    "chroot": _chroot,
}

"""Programs that run other commands: here those that put themselves before one."""

from swarm_hook_core.shell.model import absolute, is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.places import cannot_tell, exists
from swarm_hook_core.shell.programs.shells import RUN as SHELLS
from swarm_hook_core.shell.programs.spreaders import RUN as SPREADERS
from swarm_hook_core.shell.programs.undeclared import name_outputs

# Program -> (short options with a value, long ones, operands before the command).
_BEFORE = {
    "nohup": ("", (), 0),
    "nice": ("n", ("--adjustment",), 0),
    "ionice": ("cnp", ("--class", "--classdata"), 0),
    "chrt": ("TPD", (), 1),
    "taskset": ("", (), 1),
    "timeout": ("ks", ("--kill-after", "--signal"), 1),
    "gtimeout": ("ks", ("--kill-after", "--signal"), 1),
    "stdbuf": ("ioe", ("--input", "--output", "--error"), 0),
    "gstdbuf": ("ioe", ("--input", "--output", "--error"), 0),
    "setsid": ("", (), 0),
    "unbuffer": ("", (), 0),
    "caffeinate": ("tw", (), 0),
    "chronic": ("", (), 0),
    "rlwrap": ("abcCDefgHilmNopPqrsStwz", (), 0),
    "xvfb-run": ("efnps", ("--auth-file", "--error-file", "--server-num", "--server-args"), 0),
    "catchsegv": ("", (), 0),
    "linux64": ("", (), 0),
    "arch": ("", (), 0),
    "numactl": ("", (), 0),
    "systemd-run": ("uptEM", ("--unit", "--property", "--slice"), 0),
    "dotenv": ("fe", ("--file",), 0),
}


def _before(call) -> None:
    short, long, skipped = _BEFORE[call.name]
    words = split(call.words, short, long, stop_early=True).operands[skipped:]
    if words:
        call.run(words, call.stdin)


def _assigned(words: list[str]):
    """(assignments, rest) of words that start with ``NAME=value``."""
    at = 0
    while at < len(words) and "=" in words[at] and words[at].partition("=")[0].isidentifier():
        at += 1
    return words[:at], words[at:]


def _run_with(call, assignments, words, folder) -> None:
    """Run `words` with variables set for them alone."""
    scope = call.walk.scope.fork()
    scope.folder = folder
    for one in assignments:
        name, _, text = one.partition("=")
        scope.variables[name] = text
    if words:
        call.output = call.walk.simple(scope, words)


def _env(call) -> None:
    words = list(call.words)
    for place, word in enumerate(words):
        if word.startswith(("-S", "--split-string")):
            text = word[2:] if word.startswith("-S") else word.partition("=")[2]
            rest = words[place + 1 :]
            words[place:] = [*(text.split() or (rest.pop(0).split() if rest else [])), *rest]
            break
        if not word.startswith("-"):
            break
    options = split(words, "uCS", ("--unset", "--chdir"), stop_early=True)
    folder = call.folder
    if options.value("-C", "--chdir"):
        folder = absolute(folder, options.value("-C", "--chdir"))
    assignments, rest = _assigned(options.operands)
    _run_with(call, assignments, rest, folder)


_SUDO_LONG = "--user --group --host --prompt --close-from --chdir --chroot --role --type --other-user".split()


def _sudo(call) -> None:
    options = split(call.words, "ughpCrtTUDRa" if call.name == "sudo" else "uC", _SUDO_LONG, stop_early=True)
    if options.has("-e", "--edit") or call.name == "sudoedit":
        for word in options.operands:
            call.write(word)
        return
    folder = call.folder
    if options.value("-D", "--chdir"):
        folder = absolute(folder, options.value("-D", "--chdir"))
    assignments, rest = _assigned(options.operands)
    _run_with(call, assignments, rest, folder)


def _time(call) -> None:
    _reporting(call, "fo", ("--format", "--output"))


def _strace(call) -> None:
    _reporting(call, "oeEpsuaIPOSXbU", ("--output", "--trace"))


def _reporting(call, short: str, long: tuple) -> None:
    """Runs a command, and writes what it saw of it where `-o` says."""
    options = split(call.words, short, long, stop_early=True)
    if options.value("-o", "--output"):
        call.write(options.value("-o", "--output"))
    if options.operands:
        call.run(options.operands, call.stdin)


def _valgrind(call) -> None:
    options = split(call.words, "", (), stop_early=True)
    if options.value("--log-file"):
        call.write(options.value("--log-file"))
    if options.operands:
        call.run(options.operands, call.stdin)


def _flock(call) -> None:
    options = split(call.words, "wEc", ("--timeout", "--wait", "--conflict-exit-code", "--command"), stop_early=True)
    command = options.value("-c", "--command")
    rest = options.operands[1:]
    for file in options.operands[:1] if command or rest else ():
        if not exists(call, file):
            call.write(file)
    if rest[:1] in (["-c"], ["--command"]):
        command = rest[1] if len(rest) > 1 else None
    if command:
        call.output = call.walk.nested(command, call.folder, (), call.stdin)
    elif rest:
        call.run(rest, call.stdin)


def _script(call) -> None:
    """script: writes what the terminal shows into a file."""
    options = split(call.words, "cEmoTtIOB", ("--command", "--log-out", "--log-in", "--log-io"), stop_early=True)
    operands, command = options.operands, options.value("-c", "--command")
    if "-c" in operands:  # `script out -c cmd`
        at = operands.index("-c")
        command, operands = " ".join(operands[at + 1 : at + 2]), operands[:at] + operands[at + 2 :]
    call.write(operands[0] if operands else options.value("--log-out", "-O") or "typescript")
    if command:
        call.walk.nested(command, call.folder)
    elif len(operands) > 1:
        call.run(operands[1:])


def _watch(call) -> None:
    options = split(call.words, "nq", ("--interval", "--equexit"), stop_early=True)
    if options.operands:
        call.walk.nested(" ".join(options.operands), call.folder)


def _hyperfine(call) -> None:
    takes = "--warmup --min-runs --max-runs --runs --setup --prepare --conclude --cleanup --parameter-scan --shell"
    more = "--parameter-list --style --export-json --export-csv --export-markdown --export-asciidoc --command-name"
    options = split(call.words, "wmMrspcPLDSNun", (*takes.split(), *more.split()))
    for word in options.values("--export-json", "--export-csv", "--export-markdown", "--export-asciidoc"):
        call.write(word)
    for text in [*options.values("-s", "--setup", "-p", "--prepare", "-c", "--cleanup"), *options.operands]:
        call.walk.nested(text, call.folder)


def _busybox(call) -> None:
    if call.words and not call.words[0].startswith("-"):
        call.run(call.words, call.stdin)


def _nix_shell(call) -> None:
    options = split(call.words, "pAI", ("--run", "--command", "--packages"), stop_early=True)
    for text in options.values("--run", "--command"):
        call.walk.nested(text, call.folder)
    words = call.words
    for option in ("--run", "--command"):
        if option in words and option not in options.given and words.index(option) + 1 < len(words):
            call.walk.nested(words[words.index(option) + 1], call.folder)


def _ssh(_call) -> None:
    """What it runs, runs elsewhere."""


def _chroot(call) -> None:
    call.guess("another root folder")


def _docker(call) -> None:
    words = list(call.words)
    while words and words[0].startswith("-"):
        takes = words[0] in ("-H", "--host", "--context", "-c", "--config", "-l", "--log-level")
        words = words[2 if takes else 1 :]
    verb = words[0] if words else ""
    rest = words[1:]
    if verb in ("container", "image", "buildx", "builder") and rest:
        verb, rest = rest[0], rest[1:]
    if verb in ("run", "create"):
        _mounts(call, rest)
    elif verb == "compose" or call.name.endswith("compose"):
        if any(word in ("up", "run", "exec", "watch") for word in words):
            call.runs_project()
        elif not _COMPOSE_QUIET.intersection(words) and words not in ([], ["compose"]):
            call.guess("a subcommand of compose that is not known")
        name_outputs(call, rest)
    elif verb == "exec":
        call.runs_project()
    elif verb == "cp":
        operands = split(rest).operands
        if len(operands) == 2 and ":" not in operands[1] and operands[1] != "-":
            call.tree(operands[1])
    elif verb in ("save", "export", "build", "bake"):
        options = split(rest, "otfm", ("--output", "--tag", "--file", "--iidfile", "--metadata-file"))
        output = options.value("-o", "--output")
        if output and "," not in output and "=" not in output and output != "-":
            call.tree(output)
        for path in options.values("--iidfile", "--metadata-file"):
            call.write(path)
    elif verb:
        name_outputs(call, rest)
        if verb not in _DOCKER_QUIET and not {"--help", "-h"}.intersection(words):
            call.guess(f"{call.name} {call.walk.shown(verb[:20])} is not known")


_DOCKER_QUIET = frozenset(
    "ps images image pull push login logout tag rmi rm stop start restart kill pause unpause logs inspect stats top"
    " port network volume system info version search history events attach wait update rename diff commit load import"
    " ls context manifest node plugin secret service stack swarm trust prune config help run container builder buildx"
    " use create du imagetools unshare machine pod generate-completion healthcheck exists list auto-update".split()
)
_COMPOSE_QUIET = frozenset(
    "ps logs down stop start restart config convert ls pull push build kill rm images top events port pause unpause"
    " create version attach stats wait scale volumes help --help -h --version".split()
)


def _mounts(call, words) -> None:
    """A folder of the host that a container may write to."""
    for place, word in enumerate(words):
        option, mark, value = word.partition("=")
        if not mark:
            value = words[place + 1] if place + 1 < len(words) else ""
        if option in ("-v", "--volume"):
            host, _, inside = value.partition(":")
            if not inside or inside.endswith(":ro") or ":ro," in inside:
                continue
            if not is_known(host) or host.startswith(("/", ".", "~")):
                _mounted(call, host)
        elif option == "--mount" and "type=bind" in value and "readonly" not in value and ",ro" not in value:
            host = next((one.partition("=")[2] for one in value.split(",") if one.startswith(("source=", "src="))), "")
            _mounted(call, host)


def _mounted(call, host: str) -> None:
    if host and is_known(host):
        call.tree(host, cannot_tell)
    else:
        call.guess("a container with a folder of yours")


RUN = {
    **dict.fromkeys(_BEFORE, _before),
    **SHELLS,
    **SPREADERS,
    "env": _env,
    "genv": _env,
    **dict.fromkeys(("sudo", "doas", "sudoedit"), _sudo),
    **dict.fromkeys(("time", "gtime"), _time),
    **dict.fromkeys(("strace", "ltrace", "dtruss"), _strace),
    "valgrind": _valgrind,
    "flock": _flock,
    "script": _script,
    "watch": _watch,
    "hyperfine": _hyperfine,
    "busybox": _busybox,
    "nix-shell": _nix_shell,
    **dict.fromkeys(("ssh", "mosh"), _ssh),
    "chroot": _chroot,
    **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose", "podman-compose"), _docker),
}

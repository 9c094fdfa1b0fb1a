"""docker, podman and their like: the folders of the host that a container may write to, and what is copied out."""

from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.places import cannot_tell
from swarm_hook_core.shell.programs.undeclared import name_outputs

_QUIET = frozenset(
    "ps images image pull push login logout tag rmi rm stop start restart kill pause unpause logs inspect stats top"
    " port network volume system info version search history events attach wait update rename diff commit load import"
    " ls context manifest node plugin secret service stack swarm trust prune config help run container builder buildx"
    " use create du imagetools unshare machine pod generate-completion healthcheck exists list auto-update".split()
)
_COMPOSE_QUIET = frozenset(
    "ps logs down stop start restart config convert ls pull push build kill rm images top events port pause unpause"
    " create version attach stats wait scale volumes help --help -h --version".split()
)


_RUN_COMPOSE = ("up", "run", "exec", "watch")
_TOP_TAKES = ("-H", "--host", "--context", "-c", "--config", "-l", "--log-level")


def _docker(call) -> None:
    words = list(call.words)
    while words and words[0].startswith("-"):
        words = words[2 if words[0] in _TOP_TAKES else 1 :]
    if words[:1] in (["container"], ["image"], ["buildx"], ["builder"]) and len(words) > 1:
        words = words[1:]
    verb, rest = (words or [""])[0], words[1:]
    if verb == "compose" or call.name.endswith("compose"):
        if any(word in _RUN_COMPOSE for word in words):
            call.runs_project()
        elif not _COMPOSE_QUIET.intersection(words) and words not in ([], ["compose"]):
            call.guess("a subcommand of compose that is not known")
        name_outputs(call, rest)
    elif verb in ("run", "create"):
        _mounts(call, rest)
    elif verb == "exec":
        call.runs_project()
    elif verb == "cp":
        operands = split(rest).operands
        if len(operands) == 2 and ":" not in operands[1] and operands[1] != "-":
            call.tree(operands[1])
    elif verb in ("save", "export", "build", "bake"):
        options = split(rest, "otfm", ("--output", "--tag", "--file", "--iidfile", "--metadata-file"))
        output = options.value("-o", "--output") or "-"
        if "," not in output and "=" not in output and output != "-":
            call.tree(output)
        for path in options.values("--iidfile", "--metadata-file"):
            call.write(path)
    elif verb:
        name_outputs(call, rest)
        if verb not in _QUIET and not {"--help", "-h"}.intersection(words):
            call.guess(f"{call.name} {call.walk.shown(verb[:20])} is not known")


def _mounts(call, words) -> None:
    for place, word in enumerate(words):
        option, mark, value = word.partition("=")
        value = value if mark else (words[place + 1 :] or [""])[0]
        if option in ("-v", "--volume"):
            host, _, inside = value.partition(":")
            is_volume = is_known(host) and not host.startswith(("/", ".", "~"))
            if inside and not is_volume and not inside.endswith(":ro") and ":ro," not in inside:
                _mounted(call, host)
        elif option == "--mount" and "type=bind" in value and "readonly" not in value and ",ro" not in value:
            sources = [one.partition("=")[2] for one in value.split(",") if one.startswith(("source=", "src="))]
            _mounted(call, (sources or [""])[0])


def _mounted(call, host: str) -> None:
    if host and is_known(host):
        call.tree(host, cannot_tell)
    else:
        call.guess("a container with a folder of yours")


RUN = dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose", "podman-compose"), _docker)

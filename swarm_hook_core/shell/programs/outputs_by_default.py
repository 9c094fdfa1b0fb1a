"""What a program writes where its entry does not say otherwise, and what silence about it would hide.

``-o x``, ``--out*``, ``--output*``, ``--*-dir`` and their like name what is written, in a program that is known as
in one that is not. A known program that was found to write nothing is a guess where its subcommand is not known, or
where an option says that it writes.
"""

from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.programs.places import cannot_tell, exists, is_folder

# Programs whose own entries deal with all their outputs.
_OWN = frozenset(
    "aria2c brotli coverage curl http https javac lz4 masscan nmap rustc sqlite3 tar tcpdump tsc wget xh zstd".split()
)
# Programs whose `-o` takes no file, and may stand before one that is only read.
_OTHER_O = frozenset(
    "ack ag az cal column dwdiff eksctl exa eza findmnt fswatch getfacl gradle gradlew hexdump infocmp ip jest join"
    " kubectl lein lsattr lsblk lsd lsof make gmake mariadb mvn mvnw mysql namei netstat nm oc od otool pgrep pip pip3"
    " pkill pr ps readelf scp sftp size ss ssh-keygen strings tokei top uname who wl-paste xclip xsel".split()
)
_OUTPUTS = ("output", "out-", "outfile", "outdir", "outpath", "outfolder")
# What `--output-...` says of an output beside its place.
_MANNERS = (
    "format", "type", "encoding", "delimiter", "separator", "mode", "level", "style", "width", "fields", "template",
    "limit", "indent", "error", "errors", "charset", "version", "lines", "sync", "size", "prefix", "suffix", "columns",
)  # fmt: skip
_FOLDERS = ("-dir", "-directory", "-folder")
# What `--...-dir` only reads, or runs in.
_READ_FOLDERS = frozenset(
    "add asset assets base cache cert certs change chart config conf current docs exclude exec git home"
    " ignore image in include includes input java key lib library module modules package packages plugin plugins"
    " policy project proj resource resources root rules schema script scripts sdk search site source src start"
    " template templates temp test tests tmp top-level user work working".split()
)
_WRITES = frozenset("write fix autofix inplace in-place overwrite save compile".split())
_WRITES_FIRST = ("write-", "fix-", "save-", "in-place-")


def name_outputs(call, words=None) -> None:
    """Name what the options of `call` (or `words`, the last of its arguments) say that it writes."""
    if call.name in _OWN:
        return
    words = call.words if words is None else words
    for place, word in enumerate(words):
        if len(word) < 2 or word[0] != "-" or not is_known(word[:2]):
            continue
        name, equals, value = word.partition("=")
        kind = _kind(name)
        if not kind and word.startswith("-o") and call.name not in _OTHER_O:
            kind, value, equals = "file", value if name == "-o" else word[2:], name != "-o" or equals
        if not kind:
            continue
        if not equals:
            value = words[place + 1] if place + 1 < len(words) else ""
        if value and value[0] != "-":
            _written(call, kind, value)


def _written(call, kind: str, word: str) -> None:
    if kind == "file" and not is_folder(call, word):
        call.write(word)
        if exists(call, word) or not is_known(word):
            return
    call.tree(word, cannot_tell)


def _kind(name: str) -> str:
    """``file`` or ``folder`` for an option (``--name``) whose argument is written, else empty."""
    bare = name.lstrip("-")
    if len(bare) < 3:
        return ""
    if bare[-3:] == "Dir" and bare[-4:-3] not in ("", "-"):
        bare = bare[:-3] + "-dir"
    bare = bare.lower().replace("_", "-")
    if bare == "out" or bare.startswith(_OUTPUTS) or bare.endswith(("-out", "-output", "-outfile", "-output-file")):
        if bare.endswith(_MANNERS):
            return ""
        return "folder" if bare.endswith(("dir", "directory", "folder")) else "file"
    if name[:2] == "--" and bare.endswith(_FOLDERS) and bare.rpartition("-")[0] not in _READ_FOLDERS:
        return "folder"
    return "file" if name in ("--log-file", "--logfile") else ""


# Program -> its subcommands that change nothing in the folder where it runs; those that do have its entry's attention.
_QUIET = {
    "apt": "install reinstall remove purge update upgrade full-upgrade dist-upgrade autoremove autopurge autoclean"
    " clean search show list policy depends rdepends edit-sources mark check satisfy showsrc changelog build-dep",
    "brew": "install uninstall remove rm list ls search info update upgrade outdated doctor cleanup services tap untap"
    " deps uses leaves config home cat log link unlink pin unpin reinstall desc help shellenv",
    "dnf": "install remove erase update upgrade search info list check-update provides whatprovides repolist clean"
    " makecache history autoremove group groupinstall groupinfo repoquery downgrade reinstall module config-manager"
    " swap help",
    "apk": "add del update upgrade info search list policy fix cache stats version",
    "snap": "list find info install remove refresh revert services start stop restart changes known connections"
    " connect disconnect set get alias version help",
    "pipx": "install list uninstall upgrade upgrade-all inject uninject ensurepath environment reinstall completions",
    "rustup": "show update default toolchain target component override which doc man self set completions check"
    " install uninstall help",
    "nvm": "use install uninstall ls list ls-remote current which alias unalias deactivate cache version help",
    "volta": "install uninstall list which setup fetch help",
    "corepack": "enable disable install prepare hydrate cache",
    "npm": "why list ls ll la info view show outdated audit config c get set licenses search s help root bin prefix"
    " whoami login logout adduser pack store cache doctor explain query ping owner docs repo bugs token team access"
    " version fund completion dist-tag deprecate diff explore find-dupes help-search hook org profile star stars"
    " unpublish sbom run run-script pkg install i add ci uninstall update",
    "pip": "list show freeze check search help config cache debug index inspect uninstall hash completion install",
    "cargo": "search tree metadata login logout owner yank help version locate-project pkgid verify-project info"
    " read-manifest install uninstall config audit outdated deny bloat report add remove rm update fmt upgrade"
    " generate-lockfile",
    "gem": "install uninstall list search update env environment which info contents outdated cleanup help dependency"
    " specification query server sources push owner signin signout yank pristine check stale",
    "bundle": "exec show list info outdated check config help platform viz open doctor clean pristine version licenses",
    "composer": "show info list outdated why depends why-not prohibits validate diagnose search status licenses about"
    " config help global audit check-platform-reqs clear-cache self-update fund suggests home browse install update"
    " require remove",
    "go": "version env list doc help tool mod work telemetry bug fmt vet",
    "kubectl": "get describe logs apply delete exec port-forward top create edit patch scale rollout set label annotate"
    " expose run attach cp auth config cluster-info api-resources api-versions explain version wait drain cordon"
    " uncordon taint diff debug events kustomize certificate autoscale replace proxy completion options plugin"
    " login logout project projects new-project status new-app start-build adm whoami rsh",
    "helm": "install upgrade uninstall delete list ls get status history rollback repo search show lint template test"
    " version env plugin registry push dependency dep inspect verify completion help",
    "gh": "pr issue repo release run gist api auth browse search label status workflow secret variable ssh-key gpg-key"
    " extension alias config org project ruleset cache version help completion co",
    "gio": "cat list info mount monitor open tree mime help version launch",
    "direnv": "allow deny grant permit revoke status version hook export stdlib reload prune exec help",
    "mise": "ls list install i current which env activate doctor exec x version upgrade uninstall prune reshim where"
    " tool registry outdated trust self-update plugins plugin ls-remote latest tasks help completion settings",
    "asdf": "list install plugin plugin-add current which where global reshim uninstall latest info help update exec"
    " env shell version",
    "devbox": "shell shellenv list info search version help",
}
_SAME = {
    "apt-get": "apt", "yum": "dnf", "cnpm": "npm", "pip3": "pip", "bundler": "bundle", "oc": "kubectl",
}  # fmt: skip


def doubt_silence(call) -> None:
    """A guess for a known program that was found to write nothing, where that is not sure."""
    if call.name not in _OWN and call.name != "tr":
        for word in call.words:
            bare = word[2:].partition("=")[0] if word[:2] == "--" else ""
            if bare and "dry" not in bare and (bare in _WRITES or bare.startswith(_WRITES_FIRST)):
                call.guess(f"`--{bare[:20]}` may write")
                return
    quiet = _QUIET.get(_SAME.get(call.name, call.name))
    if quiet is None or any(word in _ASKS for word in call.words):
        return
    verbs = [word for word in call.words if word[:1] not in ("-", "+")]
    # An option that stands first may have taken the first of them.
    verbs = verbs[: 2 if call.words[0][:1] == "-" else 1] if verbs else []
    if verbs and not set(quiet.split()).intersection(verbs):
        call.guess(f"{call.name} {call.walk.shown(verbs[0][:20])} is not known")


_ASKS = ("--help", "-h", "--version", "--dry-run")

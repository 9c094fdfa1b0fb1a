"""Paths from the top of a work tree, and the name of a repository, the same on every machine.

The object of a lock in one work tree becomes a `Spot`, free of any machine's folders (`spot_of`), and a reach again in
another work tree of the same repository (`reach_at`).
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Collection
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from swarm_hook_core import repository
from swarm_hook_core.lookup import GLOB, plain, storable
from swarm_hook_core.paths import LONGEST, NO_CASE, key_of
from swarm_hook_core.process import run
from swarm_hook_core.repository import Tree
from swarm_mcp.domain import NAME_PREFIX, Lock, is_name
from swarm_mcp.errors import SwarmError
from swarm_mcp.store.lock_request import Reach, name_at, name_folders, reach_in

NAMES = "./"  # before a name that is no file; earlier releases pass over such a place


class Spot(NamedTuple):
    """The object of a lock, as in ``protocol.Want``: a path, or a pattern and the folder that it counts from."""

    place: str
    is_folder: bool = False
    pattern: str = ""
    base: str = ""

    @property
    def shown(self) -> str:
        """Return its text for people."""
        if self.pattern:
            return os.path.join(self.base, self.pattern.lstrip("/"))
        if self.place.startswith(NAMES):
            return NAME_PREFIX + self.place[len(NAMES) :]
        return (self.place or ".") + ("/" if self.is_folder else "")


def spot_in(told: dict[str, Any]) -> Spot:
    """Return the spot of a lock, or of a wanted lock, in the server's form."""
    return Spot(told["place"], bool(told["is_folder"]), told["pattern"] or "", told["base"] or "")


def spot_of(reach: Reach, top: str) -> Spot | None:
    """Return the spot of `reach` in the work tree with this `top`; None if some of it lies outside."""
    if reach.key is None:
        return None
    if is_name(reach.file):
        if not set(reach.keys).isdisjoint(f"{one}/{reach.segments[0]}" for one in name_folders(top)):
            return Spot(NAMES + reach.segments[0])
        return None  # another repository's
    if reach.pattern:
        text = reach.pattern.lstrip("/")
        folder = reach.file.removesuffix(text).rstrip("/") or "/"  # as it is spelled
        if _is_of_another_tree((reach.key or "").removeprefix(GLOB), top):
            return None
        place = repository.place_of(reach.base, top)
        if place is not None:
            return Spot("", False, reach.pattern, _spelled(place, folder))
        # It counts from a folder over the top: it is of this work tree where all that it covers is.
        base = reach.base.removeprefix(NO_CASE)
        below = repository.place_of(top.casefold() if reach.base.startswith(NO_CASE) else top, base)
        if not below or not text.startswith(top[len(top) - len(below) :] + "/"):
            return None
        return Spot("", False, text[len(below) :], "")
    place = repository.place_of(reach.key, top)
    if place is None or _is_of_another_tree(reach.key, top):
        return None
    return Spot(_spelled(place, plain(reach.file)), bool(reach.base))


def own_spot(row: Lock, tops: Collection[str]) -> Spot | None:
    """Return a lock's object as a path from the top of its work tree, one of these; None for a lock outside of them."""
    reach = reach_in(row)
    if not reach:
        return None
    found = (spot_of(reach, top) for top in sorted(tops, key=len, reverse=True))
    return next((spot for spot in found if spot is not None), None)


def reach_at(spot: Spot, top: str) -> Reach | None:
    """Return the reach of `spot` in the work tree with this `top`; None if it is impossible there. Reads the disk."""
    if spot.pattern:
        place = spot.base
    else:
        place = spot.place
    if place.startswith(NAMES):
        return name_at(place[len(NAMES) :], top)
    if place:
        parts = place.split("/")
    else:
        parts = []
    if any(part in ("", ".", "..", ".git") for part in parts) or "\0" in place + spot.pattern:
        return None  # nothing of ours says such a thing
    path = os.path.join(top, *parts)
    if len(path) > LONGEST or not storable(path + spot.pattern):
        return None
    key = key_of(path)
    if spot.pattern:
        file = os.path.join(path, spot.pattern.lstrip("/"))
        return reach_in({"file": file, "path_key": None, "pattern": spot.pattern, "base": key})
    return reach_in({"file": path, "path_key": key, "base": key if spot.is_folder else ""})


def _spelled(place: str, file: str) -> str:
    """Return `place`, a key's path, in the spelling of `file`: keys may have lost the letter case."""
    path = place.removeprefix(NO_CASE)
    if path:
        tail = file[len(file) - len(path) :]
    else:
        tail = ""
    if path != place and tail.casefold() == path:
        return tail
    return path


def _is_of_another_tree(key: str, top: str) -> bool:
    """Return True if the path with this key belongs to a work tree inside of this one."""
    nearest = repository.tree_over(key.removeprefix(NO_CASE))
    return nearest is not None and nearest.top != top and nearest.top.casefold() != top.casefold()


# A repository's name in a team: the same in every clone on every machine.
#
# The first available source counts, and ``team status`` names it:
#
# 1. ``swarm.repository`` in the committed file ``.swarmconfig`` at the top (in git's format, read from HEAD): every
# clone has it, shallow ones and those without a remote too. 2. The URL of the remote ``origin``, or of the only remote,
# reduced to ``host/path``: two clones may use ssh and https. A remote on this very machine (a path, a proxy on
# loopback) means nothing to others. 3. The first commit. Forks have it too, and a shallow clone may lack it.

CONFIGURATION = ".swarmconfig"
SETTING = "swarm.repository"
CONFIGURED, GIVEN, REMOTE, FIRST_COMMIT = "configured", "given", "remote", "first commit"
LONGEST_ID = 200  # characters of an id
SECONDS = 10.0  # for each question to git
_SCP = re.compile(r"(?:[^@/:]+@)?(\[[^]/]+\]|[^/:\[]+):(?!//)(.*)", re.DOTALL)
# Further names of a host, for networks that block ssh's own port.
_HOSTS = {
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
    "ssh.dev.azure.com": "dev.azure.com",
}


class RepositoryIdentity(NamedTuple):
    """A repository's name (`id`), and its `source`."""

    id: str
    source: str


def described(source: str) -> str:
    """Return how an id was found, for people."""
    return {
        CONFIGURED: f"{SETTING} in the committed {CONFIGURATION}",
        GIVEN: "the name given to `team join --repository`",
        REMOTE: "the URL of its remote",
        FIRST_COMMIT: "its first commit",
    }.get(source, source)


def identify(tree: Tree) -> RepositoryIdentity:
    """Return the name of the repository of work tree `tree`. Raises SwarmError without any source. Asks git."""
    configured = _asked(tree, "config", "--blob", f"HEAD:{CONFIGURATION}", "--get", SETTING)
    if configured:
        return RepositoryIdentity(checked(configured), CONFIGURED)
    url = remote_of(tree)
    normal = normalised(url)
    if normal:
        return RepositoryIdentity(checked(normal), REMOTE)
    first = repository.learn(tree, SECONDS)
    if first:
        return RepositoryIdentity(f"commit:{first}", FIRST_COMMIT)
    raise SwarmError(
        f"nothing tells which repository {tree.top} is: {_missing(tree, url)}. Say it for all clones with"
        f" `git config -f {CONFIGURATION} {SETTING} NAME` and commit that file, or for this one with --repository NAME"
    )


def _missing(tree: Tree, url: str) -> str:
    if url:
        remote = "its remote is on this machine"
    else:
        remote = "it has no remote"
    shallow = os.path.exists(os.path.join(tree.common, "shallow"))
    return f"{remote}, and {'a shallow clone does not know the first commit' if shallow else 'it has no commit yet'}"


def remote_of(tree: Tree) -> str:
    """Return the URL of the remote that identifies the repository; empty for none.

    ``origin``, else the only one, with git's ``insteadOf`` rules applied.
    """
    names = _asked(tree, "remote").split("\n")
    if "origin" in names:
        name = "origin"
    elif len(names) == 1:
        name = names[0]
    else:
        name = ""
    if name:
        return _asked(tree, "remote", "get-url", name)
    return ""


def upstream_of(tree: Tree) -> str:
    """Return the name of the remote ``upstream`` of a fork in a team; empty for none."""
    if "upstream" not in _asked(tree, "remote").split("\n"):
        return ""
    return normalised(_asked(tree, "remote", "get-url", "upstream"))


def checked(text: str) -> str:
    """Return `text`, where it can be a repository's id. Raises SwarmError."""
    text = text.strip()
    if not text or len(text) > LONGEST_ID or not text.isprintable() or " " in text:
        raise SwarmError(
            f"{text[:60]!r} cannot name a repository: 1 to {LONGEST_ID} characters without blanks,"
            " such as example.org/app"
        )
    return text


def normalised(url: str) -> str:
    """Return ``host/path`` of a remote's URL, the same for all ways to fetch one repository.

    User, port, letter case and ``.git`` are dropped. Taking two repositories for one blocks files for nothing; taking
    one for two lets two sessions write at once. Empty for a URL that means something on one machine only.
    """
    scheme, host, path = _parts(url.strip())
    if not host or not path or scheme == "file":
        return ""
    if scheme == "ssh" and not _is_public_name(host):
        host = _real_host(host)
    if _is_here(host):
        return ""
    azure = host in ("ssh.dev.azure.com", "dev.azure.com")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if azure:
        parts = [part for at, part in enumerate(parts) if part != "_git" and (at or part != "v3")]
    elif parts[:1] == ["scm"] and scheme != "ssh":  # Bitbucket has it before the project, by https alone
        parts = parts[1:]
    if parts and parts[-1].endswith(".git"):
        parts[-1] = parts[-1].removesuffix(".git")
    parts = [part for part in parts if part]
    if parts:
        return "/".join([_HOSTS.get(host, host), *parts]).casefold()
    return ""


def _parts(url: str) -> tuple[str, str, str]:
    """Return scheme, host (lower case) and path of a URL or of ssh's and scp's form; empty for any other text."""
    if "://" in url:
        try:
            split = urlsplit(url)
            scheme = split.scheme.lower().removeprefix("git+")
            return scheme, (split.hostname or "").rstrip("."), unquote(split.path)
        except ValueError:  # no URL
            return "", "", ""
    found = _SCP.fullmatch(url)
    if found is None or "/" in url.partition(":")[0]:
        return "", "", ""  # a path
    return "ssh", found[1].strip("[]").lower().rstrip("."), found[2]


def _is_here(host: str) -> bool:
    """Return True if a host name means the asking machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, no address
        return host == "localhost" or host.endswith(".localhost")


def _is_public_name(host: str) -> bool:
    """Return True if a host name can be public: ``views`` and ``github.com-work`` are personal aliases."""
    name, dot, last = host.rpartition(".")
    return bool(name and dot) and (last.isalpha() or last.startswith("xn--"))


def _real_host(name: str) -> str:
    """Return the host behind a personal alias in ssh's configuration, as with two accounts on one host; connects
    nowhere.
    """
    if name.startswith("-"):
        return name
    for line in run(["ssh", "-G", "--", name], SECONDS).stdout.split("\n"):
        word, _, value = line.partition(" ")
        if word == "hostname":
            return value.strip().lower()
    return name


def _asked(tree: Tree, *words: str) -> str:
    done = repository.ask(list(words), tree.top, SECONDS)
    if done.code == 0:
        return done.stdout.strip()
    return ""

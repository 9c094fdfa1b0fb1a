#!/usr/bin/env python3
"""Prepares a release in this repository's files. See CONTRIBUTING.md, "Releases".

usage: .ci/release.py version X.Y.Z     set the version, make the unreleased part of the changelog its section, and have
                                        the README install from the package index
       .ci/release.py address URL       write the repository's address into all files that name it
       .ci/release.py registry          print this version's server.json, for the registry of MCP servers
       .ci/release.py check [TAG]       list the obstacles to a release; with TAG, compare it with the version
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The one place of the version; files that cannot read it are written from it.
VERSION = ROOT / "swarm_hook_core" / "__init__.py"
PLUGINS = (
    ".claude-plugin/plugin.json", ".codex-plugin/plugin.json", ".github/plugin/plugin.json",
    "integrations/pi/package.json", "qwen-extension.json",
)  # fmt: skip
# A checker of another version does not answer these.
RELAYS = ("integrations/hook.sh", "integrations/relay.py", "integrations/checker.ts")
MARKETPLACE = ".claude-plugin/marketplace.json"  # the other one, of Codex, has no place for a version
NAMED_IN = ("docs/install.md",)  # pages that say how to install from the repository
_ASSIGNED = re.compile(r'^__version__ = "(.*)"$', re.MULTILINE)
_IN_RELAY = re.compile(r'((?:^|const )release ?= ?"?)([\d.]+)', re.MULTILINE | re.IGNORECASE)
_FROM_GIT = r"^pipx install 'swarm-locks\[all\] @ git\+"
_FROM_ADDRESS = re.compile(rf"(?:{_FROM_GIT}.*\n)?^(?=pipx install '\.\[all\]')", re.MULTILINE)
_FROM_CLONE = re.compile(r"^```sh\npipx install '\.\[all\]' .*; in a clone of this repository$", re.MULTILINE)
FROM_INDEX = (
    "```sh\npipx install 'swarm-locks[all]'   # or: uv tool install 'swarm-locks[all]'; in a clone: pipx install"
    " '.[all]'"
)
# What clients are told to add, in a clone and from an address.
_MARKETPLACE = re.compile(r"(?<=plugin marketplace add )\S+")
REGISTRY = "https://static.modelcontextprotocol.io/schemas/2025-10-17/server.schema.json"
SHORT = "Locks and uncommitted work of coding-agent sessions that share one checkout"  # 100 letters at most
_UNRELEASED = "## [Unreleased]\n"


def version() -> str:
    found = _ASSIGNED.search(VERSION.read_text(encoding="utf-8"))
    assert found, f"{VERSION} names no version"
    return found[1]


def set_version(wanted: str) -> None:
    """Make `wanted` the version everywhere, and today's section of the changelog."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", wanted):
        sys.exit(f"a version is three numbers, as 1.2.3: {wanted}")
    changelog = ROOT / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    if f"\n## [{wanted}]" in text:
        sys.exit(f"CHANGELOG.md has a section {wanted}")
    heading = f"## [{wanted}] - {datetime.now(timezone.utc):%Y-%m-%d}\n"
    changelog.write_text(text.replace(_UNRELEASED, f"{_UNRELEASED}\n{heading}", 1), encoding="utf-8")
    source = VERSION.read_text(encoding="utf-8")
    VERSION.write_text(_ASSIGNED.sub(f'__version__ = "{wanted}"', source, count=1), encoding="utf-8")
    for name in RELAYS:
        relay = (ROOT / name).read_text(encoding="utf-8")
        (ROOT / name).write_text(_IN_RELAY.sub(rf"\g<1>{wanted}", relay, count=1), encoding="utf-8")
    for name in PLUGINS:
        _write(name, {**_read(name), "version": wanted})
    tree = _read(MARKETPLACE)
    _write(MARKETPLACE, {**tree, "metadata": {**tree["metadata"], "version": wanted}})
    readme = ROOT / "README.md"
    readme.write_text(_FROM_CLONE.sub(FROM_INDEX, readme.read_text(encoding="utf-8"), count=1), encoding="utf-8")


def set_address(url: str) -> None:
    """Write the repository's address into the documents, the package's metadata and the manifests."""
    url = url.rstrip("/").removesuffix(".git")
    if not re.fullmatch(r"https://[\w.-]+/[\w./~-]+", url):
        sys.exit(f"an address begins with https:// and names a repository: {url}")
    project = ROOT / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    source = f"'swarm-locks[all] @ git+{url}'"
    line = f"pipx install {source}  # or: uv tool install {source}\n"
    for name in NAMED_IN:
        path = ROOT / name
        page = _FROM_ADDRESS.sub(line, path.read_text(encoding="utf-8"), count=1)
        page = _MARKETPLACE.sub(f"{url}.git", page)
        path.write_text(page, encoding="utf-8")
    text = re.sub(r"^\[project\.urls\]\n(?:\w.*\n)*\n", "", text, flags=re.MULTILINE)
    urls = f'[project.urls]\nHomepage = "{url}"\nRepository = "{url}"\n\n'
    project.write_text(text.replace("[project.optional-dependencies]", f"{urls}[project.optional-dependencies]", 1))
    for name in PLUGINS:
        _write(name, {**_read(name), "homepage": url, "repository": url})
    tree = _read(MARKETPLACE)
    _write(MARKETPLACE, {**tree, "plugins": [{**plugin, "homepage": url} for plugin in tree["plugins"]]})


def registered() -> dict:
    """Return the entry for the registry of MCP servers: how a client starts this version's server from the index."""
    plugin = _read(PLUGINS[0])
    url = plugin.get("repository", "")
    name = server_name(url)
    if not name:
        sys.exit("the registry names servers by a GitHub address: run `.ci/release.py address URL`")
    package = {
        "registryType": "pypi", "identifier": "swarm-locks", "version": version(), "runtimeHint": "uvx",
        "packageArguments": [{"type": "positional", "value": "serve"}], "transport": {"type": "stdio"},
    }  # fmt: skip
    return {
        "$schema": REGISTRY, "name": name, "title": "swarm", "description": SHORT, "version": version(),
        "repository": {"url": url, "source": "github"}, "packages": [package],
    }  # fmt: skip


def in_the_way(tag: str = "") -> list[str]:
    """Return the obstacles to a release, in sentences. With `tag`, a version that differs from it is one."""
    found, own = [], version()
    if tag and tag != f"v{own}":
        found.append(f"the tag {tag} is not that of version {own}: v{own}")
    tagged, commit = _commit(f"refs/tags/v{own}"), _commit("HEAD")
    if tagged and tagged != commit:
        found.append(f"the number {own} is taken: the tag v{own} is another commit; run `.ci/release.py version X.Y.Z`")
    told = {name: _read(name).get("version") for name in PLUGINS}
    for name in RELAYS:
        release = _IN_RELAY.search((ROOT / name).read_text(encoding="utf-8"))
        told[name] = release and release[2]
    told[MARKETPLACE] = _read(MARKETPLACE)["metadata"].get("version")
    found += [f"{name} says version {other}, not {own}" for name, other in told.items() if other != own]
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased, *sections = text.partition(_UNRELEASED)[2].split("\n## ")
    if unreleased.strip():
        found.append("CHANGELOG.md has changes under Unreleased: run `.ci/release.py version X.Y.Z`")
    if not sections or not re.match(rf"\[{re.escape(own)}\] - \d{{4}}-\d\d-\d\d\n", sections[0]):
        found.append(f"the newest section of CHANGELOG.md is not that of {own}, with its date")
    if FROM_INDEX not in (ROOT / "README.md").read_text(encoding="utf-8"):
        found.append("the README installs from a clone: run `.ci/release.py version X.Y.Z`")
    pages = {name: (ROOT / name).read_text(encoding="utf-8") for name in NAMED_IN}
    nameless = [name for name, page in pages.items() if not re.search(f"{_FROM_GIT}https://", page, re.MULTILINE)]
    if nameless or "[project.urls]" not in (ROOT / "pyproject.toml").read_text(encoding="utf-8"):
        found.append("the repository's address is not named yet: run `.ci/release.py address URL`")
    return found


def server_name(url: str) -> str:
    """Return the name of our server in that registry, or an empty text for an address elsewhere than on GitHub."""
    found = re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+)", url)
    return f"io.github.{found[1]}/{found[2]}" if found else ""


def _commit(name: str) -> str:
    """Return the commit that a name stands for in this clone, or an empty text."""
    argv = ["git", "-C", str(ROOT), "rev-parse", "--quiet", "--verify", f"{name}^{{commit}}"]
    try:
        return subprocess.run(argv, capture_output=True, encoding="utf-8").stdout.strip()
    except OSError:
        return ""


def _read(name: str) -> dict:
    return json.loads((ROOT / name).read_text(encoding="utf-8"))


def _write(name: str, tree: dict) -> None:
    (ROOT / name).write_text(json.dumps(tree, indent=2) + "\n", encoding="utf-8")


def main(words: list[str]) -> int:
    match words:
        case ["version", wanted]:
            set_version(wanted)
        case ["address", url]:
            set_address(url)
        case ["registry"]:
            print(json.dumps(registered(), indent=2))
        case ["check", *tags] if len(tags) < 2:
            found = in_the_way(*tags)
            print("\n".join(found) or f"nothing is in the way of {version()}")
            return 1 if found else 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

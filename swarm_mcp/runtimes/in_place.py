"""A client that runs the plugin from the local bundle itself, so that upgrading the bundle upgrades it."""

from __future__ import annotations

import os
from abc import abstractmethod
from pathlib import Path

from swarm_mcp import __version__
from swarm_mcp.errors import ClientFailed
from swarm_mcp.runtimes.base import Finding, Look, Runtime, Steps
from swarm_mcp.runtimes.installed import Installed
from swarm_mcp.runtimes.owned_folder import read_record
from swarm_mcp.runtimes.users_file import EditedJson, object_in, remove_empty


class InPlace(Runtime):
    """A client that runs the plugin from the bundle. `thing` is its word for a plugin, `needed` the bundle's file that
    it starts from.
    """

    thing = "plugin"
    needed: str
    manifest = ".claude-plugin/plugin.json"  # says the release where there is no record, as in a clone of the source

    @abstractmethod
    def root(self) -> Path | None:
        """Return the folder that the client runs the plugin from (it may be gone), or None if it is not installed."""

    def fault(self, root: Path) -> Finding | None:
        """Return the fault that keeps the client from running the plugin in `root`, or None."""
        return None

    def beside(self, root: Path | None) -> list[Finding]:
        """Return further findings about the client; `root` as above."""
        return []

    @property
    def mend(self) -> str:
        """The command that puts the plugin in anew."""
        return f"swarm-mcp install --client {self.name}"

    def traces(self) -> bool:
        return self.root() is not None

    def version(self) -> str:
        root = self.root()
        if root:
            return self._version_in(root)
        return ""

    def look(self, marketplace: Path, steps: Steps) -> Look:
        root = self.root()
        if root is None:
            text = "not installed"
            if self.traces():
                text = "only in part installed: its hooks are missing"
            return Look([self.said("warn", text, self.mend), *self.beside(None)], None)
        return Look([self._state(root), *self.beside(root)], self.installed_at(root))

    def _version_in(self, root: Path) -> str:
        return str(read_record(root).get("version") or object_in(root / self.manifest).get("version") or "")

    def _state(self, root: Path) -> Finding:
        if not (root / self.needed).is_file():
            return self.said("fail", f"{root} has no {self.needed}", self.mend)
        version, fault = self._version_in(root), self.fault(root)
        if fault:
            return fault
        if version != __version__:
            return self.said("warn", f"version {version} at {root}; this swarm-mcp is {__version__}", self.mend)
        return self.said("ok", f"version {version}, at {root}")

    # ---------------------------------------------------------------- what such clients do alike

    def said(self, status: str, message: str, mend: str = "") -> Finding:
        """Return a finding about the plugin."""
        return Finding(f"{self.name} {self.thing}", status, message, mend)

    def put_entries(self, edited: EditedJson, marketplace: Path, steps: Steps) -> Installed:
        """Put the plugin in by its entries in a file of the client's. Raises SwarmError."""
        steps.begin(f"putting the plugin in {marketplace} into {edited.path}")
        if edited.put():
            steps.add(f"put the plugin in {marketplace} into {edited.path}")
        return self.installed_at(marketplace)

    def take_entries_out(self, edited: EditedJson, steps: Steps) -> None:
        """Take the plugin out, as `put_entries` put it in. Raises SwarmError."""
        if edited.take_out():
            steps.add(f"took the plugin out of {edited.path}")

    def more_than_one(self, also: list[str], root: Path | None) -> list[Finding]:
        """Return a finding about other hooks of ours that the client runs, named in `also`."""
        if not also:
            return []
        what = "act as this client's where it runs them"
        if root:
            what = "stand back, so that no write is checked twice"
        return [Finding(f"{self.name}, more than one", "info", f"{', '.join(also)}: they {what}")]


# Links from a client's folders to files of a bundle, to run them in place.


def root_of(target: str, name: str) -> Path | None:
    """Return the folder that has the path `target` as `name`, or None if it ends otherwise."""
    if target.endswith(f"/{name}"):
        return Path(target.removesuffix(f"/{name}"))
    return None


def leads_to(link: Path, name: str) -> Path | None:
    """Return the folder that the link leads to by `name` (it may be gone), or None."""
    try:
        return root_of(os.path.join(link.parent, os.readlink(link)), name)
    except OSError:  # no link
        return None


def put_link(link: Path, target: Path, steps: Steps) -> None:
    """Have `link` lead to `target`, in the place of an earlier link at once. Raises ClientFailed."""
    scratch = link.with_name(f".{link.name}.{os.getpid()}.tmp")
    with steps.step(f"linking {link} to {target}", f"linked {link} to {target}"):
        try:
            link.parent.mkdir(parents=True, exist_ok=True)
            scratch.symlink_to(target)
            os.replace(scratch, link)
        except OSError as error:
            scratch.unlink(missing_ok=True)
            raise ClientFailed(f"{link} cannot be made: {error.strerror}") from error


def put_links(links: dict[Path, str], root: Path, steps: Steps) -> None:
    """Have each of ``{link: name}`` lead to that name in `root`.

    Raises ClientFailed, also if a file of another owner is in the place of a link.
    """
    for link, name in links.items():
        found = leads_to(link, name)
        if found is None and os.path.lexists(link):
            raise ClientFailed(f"{link} is not ours; move it away and try again")
        if found != root:
            put_link(link, root / name, steps)


def take_link(link: Path, steps: Steps) -> None:
    """Remove a link, and the folders around it that are empty then. Raises ClientFailed."""
    with steps.step(f"removing {link}", f"removed {link}"):
        try:
            link.unlink()
        except OSError as error:
            raise ClientFailed(f"{link} cannot be removed: {error.strerror}") from error
        remove_empty(link.parent)

"""A person's ways to get the plugin into a client."""

from pathlib import Path
from typing import Literal

from support import repository

from .appserver import trust_hooks
from .githttp import GitServer
from .ground import Ground

Kind = Literal["install", "local", "git", "clone", "repository", "none"]
PLUGIN = "swarm@swarm"


class Marketplace:
    """One ground's source of the plugin. `install` puts it into a client, once."""

    def __init__(self, ground: Ground, kind: Kind) -> None:
        self.ground, self.kind = ground, kind
        self._git: GitServer | None = None
        self._source: str | None = None

    def close(self) -> None:
        if self._git:
            self._git.close()

    def install(self, client: str) -> None:
        if self.kind == "none":
            return
        if self.kind == "install":
            self._do("swarm-mcp", "install", "--client", client)
        else:
            make = {"clone": self._cloned, "local": self._local, "repository": self._published}.get(
                self.kind, self._served
            )
            self._source = self._source or make()
            executable, verb = {"claude-code": ("claude", "install"), "codex": ("codex", "add")}[client]
            self._do(executable, "plugin", "marketplace", "add", self._source)
            if client == "codex" and self.kind not in ("clone", "local"):
                # Or the first session does it in the background: it copies the plugin anew, with untrusted hooks from
                # then on.
                self._do("codex", "plugin", "marketplace", "upgrade")
            self._do(executable, "plugin", verb, PLUGIN)
        if client == "codex":
            trust_hooks(self.ground)

    def _do(self, *argv: str) -> None:
        done = self.ground.run(list(argv), seconds=120)
        assert done.returncode == 0, f"{' '.join(argv)} exited {done.returncode}: {done.stdout}{done.stderr}"

    def _served(self) -> str:
        """Serve the output of `swarm-mcp bundle`, committed as a person would publish it."""
        bundle = self.ground.root / "bundle"
        self._do("swarm-mcp", "bundle", str(bundle))
        self._commit(bundle)
        return self._served_from(bundle)

    def _published(self) -> str:
        """This repository as it would be were the working tree committed now, served by git."""
        return self._served_from(Path(self._cloned()))

    def _served_from(self, folder: Path) -> str:
        served = self.ground.root / "served"
        served.mkdir()
        self.ground.git(served, "clone", "-q", "--bare", str(folder), "swarm.git")
        self._git = GitServer(served)
        return self._git.url("swarm.git")

    def _local(self) -> str:
        """The folder that `swarm-mcp bundle --local` writes, for a person to hand to a client."""
        bundle = self.ground.root / "bundle"
        self._do("swarm-mcp", "bundle", str(bundle), "--local")
        return str(bundle)

    def _cloned(self) -> str:
        """A clone of this repository as it would be were the working tree committed now."""
        clone = repository.copied(self.ground.root / "clone")
        self._commit(clone)
        return str(clone)

    def _commit(self, folder: Path) -> None:
        self.ground.git(folder, "init", "-q", "-b", "main")
        self.ground.commit(folder)

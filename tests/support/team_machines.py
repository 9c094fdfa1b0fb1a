"""A machine of a team for tests: a private store, a clone, and its follower of the server."""

import math
from collections.abc import Callable
from pathlib import Path

from support.fixtures import Ground
from swarm_hook_core import clock
from swarm_hook_core.lookup import plain
from swarm_mcp.domain import Lock, Session
from swarm_mcp.store.lock_request import request
from swarm_mcp.team import TeamUnreachable
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.team.replica import Replica
from swarm_mcp.team.talk import Following

REPOSITORY = "example.org/app"


class Link:
    """A machine's way to the server, to be `cut` by a test; `before` and `after` a call for interruptions."""

    def __init__(self, server):
        self.server = server
        self.cut = False
        self.before: dict[str, Callable[[], object]] = {}
        self.after: dict[str, Callable[[], object]] = {}

    def __getattr__(self, name: str):
        def call(*values, **given):
            if self.cut:
                raise TeamUnreachable("the server does not answer")
            if action := self.before.pop(name, None):
                action()
            answer = getattr(self.server, name)(*values, **given)
            if action := self.after.pop(name, None):
                action()
            return answer

        return call


class Machine:
    """`name`: of the machine; `team`: has ``server(machine)``; `trees`: how many work trees there are of the clone."""

    def __init__(self, folder: Path, name: str, team, repository: str = REPOSITORY):
        folder.mkdir()
        self.name, self.team, self.repository = name, team, repository
        self.ground = Ground(folder)
        self.store = self.ground.store()
        self.tops = [str(self.ground.repo)]
        self.server = Link(team.server(name))
        self.begin()

    def begin(self) -> None:
        """Start a new agent process, without any knowledge but the store's and the server's."""
        with self.store.database.writing():
            TeamRows(self.store).set_trees(dict.fromkeys(self.tops, self.repository))
        self.replica = Replica(self.store, self.repository, self.name, self.tops)
        self.following = Following(self.store, self.server, self.replica)

    def close(self) -> None:
        self.store.close()
        self.server.server.close()

    def there(self, kind: str = "locks") -> list[dict]:
        """Return the server's rows: locks, waits or sessions."""
        return self.server.server.look(self.repository)["all"][kind]

    def session(self, name: str, **given) -> Session:
        return self.ground.session(f"{self.name}-{name}", label=f"claude-code session:{name}", **given)

    def follow(self, poked: bool = True) -> None:
        self.following.mirror.beaten = -math.inf  # the live sessions are due
        self.following.follow(poked)

    def lock(self, session: Session, *files: str, **given) -> list[Lock]:
        """Take locks in the store, as a verb does before it asks the team. Raises LockRefused."""
        return self.store.locks.acquire_all(session, request(session, list(files), **given))

    def confirm(self, rows: list[Lock], seconds: float = 2.0):
        return self.following.confirm([row.id for row in rows], clock.now() + seconds)[0]

    def take(self, session: Session, *files: str, **given):
        """Take locks and have them confirmed, as a verb does."""
        return self.confirm(self.lock(session, *files, **given))

    def give_back(self, session: Session, file: str) -> None:
        """Release a lock, and have the others hear of it."""
        self.store.locks.release(session, file)
        self.follow()

    def held(self) -> list[tuple[str, str]]:
        """Return the locks here: path from the top, and holder; those of other machines with their names."""
        rows = self.ground.sql(
            "SELECT file, instance_id, machine FROM context WHERE type = 'lock' ORDER BY file, scope"
        )
        top = self.tops[0] + "/"
        return [(plain(row["file"]).removeprefix(top), row["machine"] or "here") for row in rows]

    def row(self, file: str) -> dict:
        """The one row of a lock on `file`, a path from the top."""
        rows = self.ground.sql("SELECT * FROM context WHERE type = 'lock'")
        (found,) = [row for row in rows if plain(row["file"]) == f"{self.tops[0]}/{file}"]
        return found

    def mail(self, session: Session) -> list[str]:
        return [message.content for message in self.store.messages.take(session)]

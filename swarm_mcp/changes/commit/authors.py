"""The author of a commit, and the names of all other authors."""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_mcp.answers.views import known_shortly, short
from swarm_mcp.answers.visibility import veiled
from swarm_mcp.sessions.agents_shell import NO_AGENTS
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm_hook_core.traces.versions.steps import Author
    from swarm_mcp.domain.session import Session


class Authorship:
    """The changes of `session`; those of a person for None, or for the session of a person's shell."""

    def __init__(self, store: Store, session: Session | None):
        self._store = store
        self._key: tuple[str, str] | None = None
        self._viewer = ""
        if session is not None:
            self._viewer = token(session.label or "", "identity")
            if session.runtime not in NO_AGENTS:
                self._key = session.runtime or "", session.session_id or ""

    def is_own(self, author: Author) -> bool:
        if self._key is None:
            return author.is_person
        return author.session == self._key

    def named(self, authors: Sequence[Author]) -> str:
        """Return the authors in words: ``you, codex 5f0c and a person``."""
        names = list(dict.fromkeys(map(self._name, authors))) or ["an unknown author"]
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))

    def _name(self, author: Author) -> str:
        if self.is_own(author):
            return "you"
        if author.is_person:
            return "a person"
        rows = self._store.instances.of_session_id(author.session_id)
        seen = veiled([row for row in rows if row.runtime == author.runtime][:1], self._viewer)
        if seen:
            return known_shortly(seen[0])
        return f"{author.runtime} session {short(author.session_id)}, ended"

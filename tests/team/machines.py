"""A machine of the tests: a team agent's treatment of the server's answers, in few lines."""

from typing import Any

from swarm_mcp.team.protocol import item, want
from team.servers import patient


class Machine:
    """A greeted machine with its sessions; `version` and `mark` of its news."""

    def __init__(
        self, server: str, name: str, repository: str, *sessions: str, mirror: float = 30.0, lease: float = 60.0
    ):
        self.server, self.repository, self.lease = patient(server, name), repository, lease
        self.sessions = sessions
        self.version = self.mark = 0
        self.joined: dict[str, int] = {}
        self.changes: list[dict] = []
        self.hello(mirror)

    def hello(self, mirror: float = 30.0) -> dict:
        answer = self.server.hello(self.repository, mirror_lease=mirror)
        assert answer["ok"]
        self.epoch = answer["epoch"]
        self.take(answer["news"])
        if self.sessions:
            self.beat(*self.sessions)
        return answer

    def take(self, news: dict) -> None:
        self.changes += news["changes"]
        self.version, self.mark = news["version"], news["mark"]

    def beat(self, *sessions: str) -> dict:
        """Beat twice, so that the news of the first is acknowledged."""
        told = [{"session": one, "label": f"name:{one}", "lease": self.lease} for one in sessions]
        answer = self.server.beat(self.repository, self.version, self.mark, told)
        assert answer["ok"], answer
        self.joined.update(answer["joined"])
        while answer["news"]["version"] != self.version:
            self.take(answer["news"])
            answer = self.server.beat(self.repository, self.version, self.mark)
        return answer

    def acquire(self, session: str, *wants: Any, **common: Any) -> dict:
        """Ask for places, or for wants as they are, with the last version."""
        asked = [one if isinstance(one, dict) else want(one, **common) for one in wants]
        return self.server.acquire(self.repository, session, asked, self.version, self.mark)

    def get(self, session: str, *wants: Any, **common: Any) -> dict:
        """Ask for them after a beat, and get them."""
        self.beat()
        answer = self.acquire(session, *wants, **common)
        assert answer["ok"], answer
        return answer

    def stand(self, session: str, ticket: str, *places: str, mode: str = "exclusive") -> dict:
        asked = [want(place) for place in places]
        return self.server.wait(self.repository, session, ticket, asked, mode, "", None, self.version, self.mark)

    def put(self, kind: str, key: str, seen: int, body: Any, again: bool = False) -> dict:
        """Change one document."""
        asked = [item(kind, key, seen, body, again)]
        return self.server.put(self.repository, asked, self.version, self.mark)[0]

    def held(self) -> list[str]:
        """Return the places and patterns that this machine has, as the server knows it."""
        return sorted(row["place"] or row["pattern"] for row in self.server.mine(self.repository)["locks"])

"""A server with a wrong certificate, or without one: people are told, and no machine speaks to it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from team.history.engine import Engine
from team.homes import Home, wait_for
from team.tls import TlsFront, certificate

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificates of these tests")

HOST = "db.example.org"


@pytest.fixture
def north(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A machine that finds db.example.org on loopback. Its address says nothing of TLS."""
    monkeypatch.setenv("PGHOSTADDR", "127.0.0.1")
    made = Home(tmp_path, "north")
    (made.root / ".postgresql").mkdir()
    yield made
    made.end()


def named(port: int) -> str:
    return f"postgresql://postgres@{HOST}:{port}/postgres"


def trust(home: Home, authority: Path) -> None:
    shutil.copy(authority, home.root / ".postgresql" / "root.crt")


def test_who_shows_a_wrong_certificate_or_none_is_not_joined(
    north: Home, team: str, engine: Engine, repository: str, tmp_path: Path
) -> None:
    own, key = certificate(tmp_path, HOST)
    other, other_key = certificate(tmp_path, "other.example.org")
    before = (north.clone / ".git" / "config").read_text()

    def refused(port: int) -> str:
        done = north.run("team", "join", named(port), "--repository", repository, code=1)
        assert done.stdout == "" and len(done.stderr.splitlines()) == 1 and len(done.stderr) <= 160, done.stderr
        assert (north.clone / ".git" / "config").read_text() == before
        assert north.json("team", "status")["repositories"] == []
        return done.stderr

    trust(north, own)
    with TlsFront(engine.port, other, other_key) as front:
        assert "refuses: " in (said := refused(front.port)) and "certificate verify failed" in said
        trust(north, other)
        assert "does not match host name" in refused(front.port)
        assert "does not match host name" in north.run("team", "init", named(front.port), code=1).stderr
    assert "server does not support SSL" in refused(engine.port)  # and it is not asked without
    trust(north, own)
    with TlsFront(engine.port, own, key) as front:
        north.run("team", "join", named(front.port), "--repository", repository)
        assert north.lock("src/a.py")["team"]["settled"] is True
        north.end()


def test_a_certificate_that_changes_ends_the_connection_and_is_told(
    north: Home, new_engine: Engine, repository: str, tmp_path: Path
) -> None:
    own, key = certificate(tmp_path, HOST)
    other, other_key = certificate(tmp_path, "other.example.org")
    trust(north, own)
    with TlsFront(new_engine.port, own, key) as front:
        north.run("team", "join", named(front.port), "--repository", repository)
        front.show(other, other_key)
        new_engine.restart()
        wait_for(lambda: north.agent()["servers"][0]["state"] == "refused")
        held = north.lock("src/a.py")
        assert held["team"]["reachable"] is False, held
        status = north.run("team", "status", code=1)
        assert "certificate" in status.stdout + status.stderr
        front.show(own, key)
        north.run("team", "agent", "--stop")
        words = ["lock", "src/a.py", "--as", held["instance_id"]]
        wait_for(lambda: north.json(*words)["team"].get("settled"))
        north.end()

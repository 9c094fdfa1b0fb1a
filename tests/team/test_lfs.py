"""git-lfs's own client against the team's server: locks of people beside those of sessions, and pushes that are refused.

Each person is a role with a password. PostgreSQL asks for it, so that what is proven here is what people will have.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from team import needs

if needs.lacking():
    needs.give_up()
if shutil.which("git-lfs") is None:
    pytest.skip("git-lfs is not installed here", allow_module_level=True)

import psycopg
from psycopg import sql
from support.fixtures import BARE_PYTHON, FOLDERS, time_limit
from support.loopback_http import LoopbackServer, QuietHandler

from swarm_mcp.team.lfs import tokens
from swarm_mcp.team.migrations import init
from swarm_mcp.team.protocol import want
from team.servers import patient

from .history.engine import Engine
from .history.faults import SwallowingProxy
from .test_two_homes import Home, wait_for


class Person:
    """Somebody with a clone, git-lfs and a password, and no swarm."""

    def __init__(self, folder: Path, hub: Path, url: str, name: str, password: str):
        self.name, self.top = name, folder / name
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "SWARM_", "PG"))},
            "HOME": str(folder), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
        }  # fmt: skip
        subprocess.run(["git", "clone", "-q", hub, self.top], check=True, env=self.environment)
        kept = folder / f"{name}.credentials"
        scheme, _, place = url.partition("://")
        kept.write_text(f"{scheme}://{name}:{password}@{place.partition('/')[0]}\n")
        for setting, value in {
            "user.name": name, "user.email": f"{name}@example.org", "push.default": "current",
            "credential.helper": f"store --file={kept}",
        }.items():  # fmt: skip
            self.git("config", setting, value)
        for setting, value in {"lfs.url": url, "lfs.locksverify": "true"}.items():  # as it is committed for everybody
            self.git("config", "-f", ".lfsconfig", setting, value)
        self.git("lfs", "install", "--local")

    def run(self, *words: str) -> tuple[int, str]:
        """The exit code of git, and all that it says."""
        done = subprocess.run(
            ["git", *words], cwd=self.top, env=self.environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=120,
        )  # fmt: skip
        return done.returncode, done.stdout

    def git(self, *words: str) -> str:
        code, said = self.run(*words)
        assert code == 0, said
        return said

    def locks(self, *words: str) -> list[tuple[str, str]]:
        found = json.loads(self.git("lfs", "locks", "--json", *words))
        return sorted((one["path"], one["owner"]["name"]) for one in found)

    def change(self, name: str, text: str) -> None:
        (self.top / name).write_text(text)
        self.git("add", "--all")
        self.git("commit", "-qm", f"{name}: {text[:20]!r}")


class Hub(LoopbackServer):
    """An LFS server that keeps objects, in memory; `asked`: the Authorization of each batch request."""

    def __init__(self):
        self.objects: dict[str, bytes] = {}
        self.asked: list[str | None] = []
        super().__init__(_HubHandler)


class _HubHandler(QuietHandler):
    def do_POST(self) -> None:
        asked = json.loads(self._body())
        self.owner.asked.append(self.headers.get("Authorization"))
        wanted = "upload" if asked["operation"] == "upload" else "download"
        found = [
            {**one, "actions": {wanted: {"href": f"{self.owner.address}/objects/{one['oid']}"}}}
            for one in asked["objects"]
        ]
        self._say(json.dumps({"transfer": "basic", "objects": found}).encode(), "application/vnd.git-lfs+json")

    def do_PUT(self) -> None:
        data = self._body()
        self.owner.objects[hashlib.sha256(data).hexdigest()] = data
        self._say(b"", "text/plain")

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _say(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Agent:
    """A session of some person's on a machine that has joined."""

    def __init__(self, server: str, repository: str, role: str, password: str, mirror_lease: float = 0.0):
        self.team, self.repository, self.session = (
            patient(server, f"laptop-{role}", role, password),
            repository,
            f"s-{role}",
        )
        self.team.hello(repository, mirror_lease=mirror_lease)
        label = f"claude-code origin:claude-code session:{role}"
        assert self.team.beat(repository, None, 0, [{"session": self.session, "label": label, "lease": 60.0}])["ok"]

    def lock(self, **wanted) -> tuple[int, int]:
        """Its number and fence."""
        answer = self.try_to_lock(**wanted)
        assert answer["ok"], answer
        return answer["locks"][0], answer["fences"][0]

    def try_to_lock(self, **wanted) -> dict:
        news = self.team.look(self.repository)
        return self.team.acquire(self.repository, self.session, [want(**wanted)], news["version"], news["mark"])

    def release(self, lock: tuple[int, int]) -> None:
        assert self.team.release(self.repository, [lock])

    def places(self) -> set[str]:
        return {row["place"] for row in self.team.look(self.repository)["all"]["locks"]}


class Served:
    """A process of `team lfs`, with a home of its own."""

    def __init__(self, home: Path, server: str, clones: dict[str, str], objects: str = "", port: int = 0):
        self.home, self.server, self.clones, self.objects = home, server, clones, objects
        self.start(port)

    def start(self, port: int = 0) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "SWARM_"))}
        environment |= {"HOME": str(self.home), "SWARM_STATE_DIR": str(self.home / "state")}
        arguments = (self.server, "127.0.0.1", port, self.clones, self.objects)
        program = (
            f"import sys; sys.path[:0] = {FOLDERS!r}; from swarm_mcp.team.lfs.serving import serve;"
            f" serve(*{arguments!r}, lambda url, port: print(url, flush=True))"
        )
        self.log = (self.home / "lfs.log").open("ab")
        self.process = subprocess.Popen(
            [*BARE_PYTHON, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=self.log, text=True,
        )  # fmt: skip
        self.url = self.process.stdout.readline().strip()
        assert self.url, self.said()
        self.port = int(self.url.rpartition(":")[2])

    def said(self) -> str:
        return (self.home / "lfs.log").read_text()

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, dict]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"{}")

    def end(self, how: int = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        code = self.process.wait(30)
        self.process.stdout.close()
        self.log.close()
        return code


PASSWORDS = {"ann": "annes 'wort' \\ ü", "bob": "bobs-word", "eve": "eves-word"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A server that lets persons in by password; `open` and its administrator without one."""
    engine = Engine(tmp_path_factory.mktemp("team") / "data").create()
    here = "127.0.0.1/32"
    rules = [f"host all postgres,open {here} trust", f"host all all {here} scram-sha-256"]
    (engine.data / "pg_hba.conf").write_text("\n".join(rules) + "\n")
    engine.start()
    try:
        init(engine.dsn(), "crew")
        init(engine.dsn(), "others")
        with psycopg.connect(engine.dsn(), autocommit=True) as connection:
            for name, password in {**PASSWORDS, "ci": "cis-word", "open": ""}.items():
                circle = "swarm_team_others" if name == "eve" else "swarm_team_crew"
                connection.execute(
                    sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} IN ROLE {}").format(
                        sql.Identifier(name), sql.Literal(password or None), sql.Identifier(circle)
                    )
                )
        yield engine
    finally:
        engine.stop()


class Scene:
    """One repository with its hub, `team lfs`, and people."""

    def __init__(self, folder: Path, engine: Engine):
        self.folder, self.engine = folder, engine
        self.server = f"host=127.0.0.1 port={engine.port} dbname=postgres"
        self.repository = f"example.org/acme/{secrets.token_hex(4)}"
        self.hub = folder / "hub.git"
        git("init", "-q", "--bare", "-b", "main", str(self.hub))
        self.clone = folder / "clone"
        git("init", "-q", "-b", "main", str(self.clone))
        (self.clone / "src").mkdir()
        for name in ("plain.txt", "src/a.py", "src/b.txt"):
            (self.clone / name).write_text(f"{name}, as it was\n")
        git("-C", str(self.clone), "add", ".")
        git("-C", str(self.clone), "commit", "-qm", "begin")
        git("-C", str(self.clone), "push", "-q", str(self.hub), "main")
        self.served = self.serve()
        self.agents: list[Agent] = []
        self.agent("ann").release(self.agents[0].lock(place="x"))  # so that there is such a repository

    def serve(self, objects: str = "", port: int = 0) -> Served:
        home = self.folder / "server"
        home.mkdir(exist_ok=True)
        return Served(home, self.server, {self.repository: str(self.clone)}, objects, port)

    def agent(self, role: str, **more) -> Agent:
        self.agents.append(Agent(self.server, self.repository, role, PASSWORDS[role], **more))
        return self.agents[-1]

    def person(self, name: str, url: str = "") -> Person:
        return Person(self.folder, self.hub, url or self.served.url, name, quote(PASSWORDS[name], safe=""))

    def close(self) -> None:
        for agent in self.agents:
            agent.team.close()
        if self.served.process.poll() is None:
            self.served.end()


def git(*words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", *who, *words], check=True, capture_output=True)


def basic(name: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()


@pytest.fixture
def scene(tmp_path: Path, engine: Engine) -> Iterator[Scene]:
    scene = Scene(tmp_path.resolve(), engine)
    try:
        yield scene
    finally:
        scene.close()


# ------------------------------------------------------------------- locks


def test_people_lock_list_and_unlock(scene):
    ann, bob = scene.person("ann"), scene.person("bob", f"{scene.served.url}/{scene.repository}")
    assert "Locked src/a.py" in ann.git("lfs", "lock", "src/a.py")
    assert ann.locks() == bob.locks() == [("src/a.py", "ann")]
    code, said = bob.run("lfs", "lock", "src/a.py")
    assert code != 0 and "src/a.py is held by ann" in said
    code, said = bob.run("lfs", "unlock", "src/a.py")
    assert code != 0 and "held by ann" in said
    assert "O src/a.py" in ann.git("lfs", "locks", "--verify") and "O " not in bob.git("lfs", "locks", "--verify")
    assert "Unlocked src/a.py" in ann.git("lfs", "unlock", "src/a.py")
    assert bob.locks() == []
    assert "Locked src/a.py" in bob.git("lfs", "lock", "src/a.py")
    assert "Unlocked src/a.py" in ann.git("lfs", "unlock", "--force", "src/a.py")
    assert bob.locks() == []


def test_a_person_and_a_session_keep_each_other_off(scene):
    agent, ann = scene.agent("bob"), scene.person("ann")
    lock = agent.lock(place="src", is_folder=True, note="moving it")
    code, said = ann.run("lfs", "lock", "src/a.py")
    assert code != 0 and "held by a lock on src/ by bob: claude-code bob on laptop-bob" in said and "moving it" in said
    agent.release(lock)
    ann.git("lfs", "lock", "src/a.py")
    assert agent.try_to_lock(place="src/a.py")["by"]["member"] == "ann"
    [row] = scene.agents[0].team.look(scene.repository)["all"]["locks"]
    assert (row["session"], row["machine"], row["label"]) == ("git-lfs:ann", "lfs", "ann session:git-lfs")
    ann.git("lfs", "unlock", "src/a.py")
    agent.lock(place="src/a.py")


def test_force_takes_a_lock_from_a_session_which_is_told(scene):
    agent, ann = scene.agent("bob"), scene.person("ann")
    agent.lock(place="plain.txt")
    seen = agent.team.look(scene.repository)
    assert "Unlocked plain.txt" in ann.git("lfs", "unlock", "--force", "plain.txt")
    news = agent.team.beat(scene.repository, seen["version"], seen["mark"])["news"]
    told = [one["body"] for one in news["changes"] if one["kind"] == "lock"]
    assert [(one["was"], one["reason"], one["member"]) for one in told] == [("s-bob", "stolen", "ann")]
    assert agent.places() == set()


def test_a_push_of_a_plain_file_is_refused_while_a_session_holds_it(scene):
    agent, ann = scene.agent("bob"), scene.person("ann")
    lock = agent.lock(place="plain.txt", note="rewriting")
    ann.change("plain.txt", "ann was here\n")
    code, said = ann.run("push")
    assert code != 0 and "* plain.txt - bob: claude-code bob on laptop-bob" in said
    ann.change("src/b.txt", "and here\n")
    assert ann.run("push")[0] != 0
    agent.release(lock)
    ann.git("push")


def test_what_is_ours_may_be_pushed(scene):
    own, ann = scene.agent("ann"), scene.person("ann")
    own.lock(place="plain.txt")
    ann.git("lfs", "lock", "src/b.txt")
    ann.change("plain.txt", "by one's own agent\n")
    ann.change("src/b.txt", "by oneself\n")
    ann.git("push")
    code, said = ann.run("lfs", "unlock", "plain.txt")
    assert code != 0 and "--force" in said  # the agent goes on believing that it has it


def test_folders_and_patterns_hold_the_files_in_them(scene):
    agent, ann = scene.agent("bob"), scene.person("ann")
    folder = agent.lock(place="src", is_folder=True)
    ann.change("src/a.py", "in the folder\n")
    code, said = ann.run("push")
    assert code != 0 and "* src/a.py - bob" in said
    agent.release(folder)
    pattern = agent.lock(pattern="*.py")
    assert ann.locks() == [("*.py", "bob: claude-code bob on laptop-bob")]
    assert ann.run("push")[0] != 0
    agent.release(pattern)
    agent.lock(pattern="*.md")
    ann.git("push")


def test_what_git_lfs_cannot_see_is_what_the_page_says(scene):
    """Should this fail, git-lfs has got better, and docs/dev/team-lfs.md is to be changed."""
    agent, ann = scene.agent("bob"), scene.person("ann")
    agent.lock(place="src", is_folder=True)
    ann.git("rm", "-q", "src/a.py")
    ann.git("mv", "src/b.txt", "c.txt")
    ann.git("commit", "-qm", "removed")
    ann.git("push")
    ann.change("src/new.py", "that the clone of the server does not know\n")
    ann.git("push")


# ------------------------------------------------------------ who is who


def test_a_token_stands_for_a_role_whose_password_this_machine_has(scene, monkeypatch):
    monkeypatch.setenv("SWARM_STATE_DIR", str(scene.served.home / "state"))
    token = tokens.make("ci")
    passwords = scene.served.home / ".pgpass"
    passwords.write_text(f"127.0.0.1:{scene.engine.port}:postgres:ci:cis-word\n")
    passwords.chmod(0o600)
    by_bearer, by_basic = f"Bearer {token}", basic("ci", token)
    for authorization in (by_bearer, by_basic):
        assert scene.served.ask("GET", "/locks", Authorization=authorization)[0] == 200
    ann = scene.person("ann")
    ann.git("config", "--unset-all", "credential.helper")
    ann.git("config", f"http.{scene.served.url}/.extraHeader", f"Authorization: {by_bearer}")
    ann.git("lfs", "lock", "plain.txt")
    assert ann.locks() == [("plain.txt", "ci")]
    ann.git("lfs", "unlock", "plain.txt")
    for wrong in (f"Bearer {token}x", basic("ann", token), basic("ci", tokens.PREFIX), f"Bearer {PASSWORDS['ann']}"):
        assert scene.served.ask("GET", "/locks", Authorization=wrong)[0] == 401
    tokens.revoke(tokens.kept()[0].id)
    assert scene.served.ask("GET", "/locks", Authorization=by_bearer)[0] == 401
    assert token not in scene.served.said() and "cis-word" not in scene.served.said()


@pytest.mark.parametrize("name, password", [("ann", "other"), ("ann", ""), ("nobody", "x"), ("open", "x"), ("a" * 64, "x"),
                                            ("ann", "annes\0"), ("postgres", "x"), ("ann user=postgres", "x")])  # fmt: skip
def test_who_is_not_known_by_password_is_not_let_in(scene, name, password):
    status, answer = scene.served.ask("GET", "/locks", Authorization=basic(name, password))
    assert status == 401 and answer["message"]
    assert not password or password not in scene.served.said()


def test_this_machines_own_password_is_nobodys_elses(scene):
    """libpq would find it for a role whose password is not given."""
    passwords = scene.served.home / ".pgpass"
    passwords.write_text(f"127.0.0.1:{scene.engine.port}:postgres:ann:{PASSWORDS['ann']}\n")
    passwords.chmod(0o600)
    assert scene.served.ask("GET", "/locks", Authorization=basic("ann", ""))[0] == 401
    assert scene.served.ask("GET", "/locks", Authorization=basic("ann", "x"))[0] == 401


def test_another_circle_sees_nothing(scene):
    scene.agent("bob").lock(place="plain.txt")
    eve = basic("eve", PASSWORDS["eve"])
    for method, path, body in [
        ("GET", "/locks", None), ("POST", "/locks/verify", {}), ("POST", "/locks", {"path": "other.txt"}),
        ("POST", "/locks/2/unlock", {"force": True}),
    ]:  # fmt: skip
        status, answer = scene.served.ask(method, path, body, Authorization=eve)
        assert status == 403 and "plain.txt" not in json.dumps(answer)
    assert scene.agents[0].places() == {"plain.txt"}


# ---------------------------------------------------------- what goes wrong


def test_nothing_is_lost_when_this_server_dies(scene):
    ann, bob, agent = scene.person("ann"), scene.person("bob"), scene.agent("bob")
    ann.git("lfs", "lock", "plain.txt")
    scene.served.end(signal.SIGKILL)
    assert agent.try_to_lock(place="plain.txt")["why"] == "held"
    assert ann.run("lfs", "lock", "src/a.py")[0] != 0
    scene.served.start(scene.served.port)
    assert bob.locks() == [("plain.txt", "ann")]
    ann.git("lfs", "lock", "src/a.py")
    ann.git("lfs", "unlock", "plain.txt")


def test_two_such_servers_speak_for_the_same_people(scene):
    second = scene.serve()
    try:
        for number in range(3):
            for served in (scene.served, second):
                ann = basic("ann", PASSWORDS["ann"])
                status, made = served.ask("POST", "/locks", {"path": f"{number}.txt"}, Authorization=ann)
                assert status == (201 if served is scene.served else 409), made
        assert second.ask("POST", f"/locks/{made['lock']['id']}/unlock", {}, Authorization=ann)[0] == 200
    finally:
        second.end()


def test_the_teams_server_restarts_and_is_away(scene):
    ann = scene.person("ann")
    ann.git("lfs", "lock", "plain.txt")
    ann.change("src/b.txt", "meanwhile\n")
    scene.engine.kill()
    try:
        begun = time.monotonic()
        code, said = ann.run("push")
        assert code != 0 and time.monotonic() - begun < time_limit(30) and "team's server" in said
    finally:
        scene.engine.start()
    ann.git("push")
    assert ann.locks() == [("plain.txt", "ann")]
    ann.git("lfs", "lock", "src/a.py")


def test_a_server_that_is_silent_is_not_waited_for(scene):
    ann = basic("ann", PASSWORDS["ann"])
    with SwallowingProxy("127.0.0.1", scene.engine.port) as proxy:
        scene.served.end()
        scene.server = f"host=127.0.0.1 port={proxy.port} dbname=postgres"
        scene.served = scene.serve()
        assert scene.served.ask("GET", "/locks", Authorization=ann)[0] == 200
        proxy.cut()
        for authorization in (ann, basic("bob", PASSWORDS["bob"])):  # one who is known already, and one who is not
            begun = time.monotonic()
            status, answer = scene.served.ask("POST", "/locks", {"path": "plain.txt"}, Authorization=authorization)
            assert status == 503 and "team's server" in answer["message"]
            assert time.monotonic() - begun < time_limit(6)
        proxy.heal()
        assert scene.served.ask("POST", "/locks", {"path": "plain.txt"}, Authorization=ann)[0] == 201
        assert PASSWORDS["ann"] not in scene.served.said() and PASSWORDS["bob"] not in scene.served.said()


def test_a_lock_is_told_once_every_machine_knows_it_or_has_been_silent(scene):
    lease = 3.0
    agent = scene.agent("bob", mirror_lease=lease)
    ann = basic("ann", PASSWORDS["ann"])
    stop, seen = threading.Event(), agent.team.look(scene.repository)
    known: list[str] = []  # the files that it has said that it knows of
    beaten: list[float] = []

    def follow() -> None:
        news = {**seen, "changes": []}
        while not stop.wait(0.2):
            beaten.append(time.monotonic())
            told = [one["body"]["place"] for one in news["changes"] if one["kind"] == "lock"]
            known.extend(told)
            news = agent.team.beat(scene.repository, news["version"], news["mark"])["news"]

    following = threading.Thread(target=follow)
    following.start()
    assert scene.served.ask("POST", "/locks", {"path": "plain.txt"}, Authorization=ann)[0] == 201
    assert known == ["plain.txt"]
    stop.set()
    following.join()
    assert scene.served.ask("POST", "/locks", {"path": "src/a.py"}, Authorization=ann)[0] == 201
    assert known == ["plain.txt"] and time.monotonic() - beaten[-1] >= lease


# -------------------------------------------------------- machines that have joined


@pytest.fixture
def north(scene) -> Iterator[Home]:
    """Bob's machine, which has joined."""
    home = Home(scene.folder, "north")
    passwords = home.root / ".pgpass"
    passwords.write_text(f"127.0.0.1:{scene.engine.port}:postgres:bob:{PASSWORDS['bob']}\n")
    passwords.chmod(0o600)
    try:
        server = f"postgresql://bob@127.0.0.1:{scene.engine.port}/postgres"
        home.run("team", "join", server, "--repository", scene.repository)
        yield home
    finally:
        home.end()


def test_people_and_the_sessions_of_a_machine_keep_each_other_off(scene, north):
    command = [sys.executable, "-m", "swarm_mcp", "team", "lfs", "--json"]
    process = subprocess.Popen(command, cwd=north.clone, env=north.environment, stdout=subprocess.PIPE, text=True)
    try:
        ann = scene.person("ann", json.loads(process.stdout.readline())["url"])
        told = north.lock("src/a.py", note="renumbering")
        [(path, owner)] = ann.locks()
        assert path == "src/a.py" and owner.startswith("bob: ") and owner.endswith(" on north")
        ann.change("src/a.py", "ann was here\n")
        code, said = ann.run("push")
        assert code != 0 and "* src/a.py - bob" in said
        north.run("unlock", "src/a.py", "--as", told["instance_id"])
        wait_for(lambda: ann.locks() == [])
        ann.git("push")

        north.begin("s1")
        assert north.write("s1", "src/b.py") == ""
        ann.git("lfs", "lock", "src/b.py")
        denial = north.write("s1", "src/b.py")  # at once: the machine knew it before git-lfs was told
        assert '"deny"' in denial and "ann git-lfs on lfs" in denial
        done = north.run("lock", "src/b.py", "--as", "s1", code=None)
        assert done.returncode == 1 and "ann git-lfs on lfs" in done.stderr
        ann.git("lfs", "unlock", "src/b.py")
        wait_for(lambda: north.write("s1", "src/b.py") == "")

        told = north.lock("src/b.py")
        ann.git("lfs", "unlock", "--force", "src/b.py")
        wait_for(lambda: not north.json("why", "src/b.py")["held"])
        ann.git("lfs", "lock", "src/b.py")
        assert '"deny"' in north.write("s1", "src/b.py")
    finally:
        process.terminate()
        assert process.wait(30) == 0
        process.stdout.close()


# ------------------------------------------------------------------ objects


def test_contents_go_to_the_server_that_keeps_them(scene):
    ann = scene.person("ann")
    ann.git("lfs", "track", "*.bin")
    ann.change("data.bin", "contents that git-lfs keeps\n")
    code, said = ann.run("push")
    assert code != 0 and "--objects" in said
    port = scene.served.port
    scene.served.end()
    hub = Hub()
    try:
        scene.served = scene.serve(hub.address, port)
        with (scene.folder / "ann.credentials").open("a") as kept:
            kept.write(f"http://ann:of-the-other@127.0.0.1:{hub.port}\n")
        ann.git("push")
        assert list(hub.objects.values()) == [b"contents that git-lfs keeps\n"]
        assert set(hub.asked) == {basic("ann", "of-the-other")}  # what is for the team's server is not for this one
    finally:
        hub.close()


def test_an_end_is_an_end(scene):
    assert scene.served.end() == 0 and scene.served.said() == ""

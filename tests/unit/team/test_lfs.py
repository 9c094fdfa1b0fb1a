"""git-lfs's locking API: what is asked and answered, by whom, and which files a lock reaches. No PostgreSQL in here."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import stat
import subprocess
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from swarm_hook_core.naming import holder_name
from swarm_mcp.errors import SwarmError, TeamRefused, TeamUnreachable
from swarm_mcp.team.lfs import locks as lfs_locks
from swarm_mcp.team.lfs import tokens
from swarm_mcp.team.lfs.app import LARGEST, MEDIA_TYPE, application
from swarm_mcp.team.lfs.credentials import Credentials, WrongCredentials
from swarm_mcp.team.lfs.held import held_by, label_of, page_of, session_of
from swarm_mcp.team.lfs.locks import RepositoryLocks
from swarm_mcp.team.lfs.names import FileNames, meets
from swarm_mcp.team.protocol import EPOCH, GRACE, HELD, NOT_HELD, STALE, UNKNOWN_SESSION, want

APP = "example.org/acme/app"


class Team:
    """What the team's server has, and how it answers what git-lfs needs of it. `next_answers`: instead, to `acquire`."""

    def __init__(self):
        self.version = self.numbers = 0
        self.rows: list[dict] = []
        self.waits: list[dict] = []
        self.sessions: dict[str, dict] = {}
        self.next_answers: list[dict] = []
        self.said: list[tuple] = []
        self.settles = True
        self.refusals: list[str] = []
        self.hellos = 0
        self.fault: Exception | None = None

    def held_by_agent(self, place: str = "", member: str = "bob", **more) -> dict:
        label = "claude-code origin:claude-code session:5f0c2f6e"
        return self.grant(want(place, note="rewriting", **more), "s-1", member, "laptop-3fa9c1", label)

    def grant(self, wanted, session, member, machine, label) -> dict:
        self.version += 1
        self.numbers += 1
        row = {**wanted, "lock": self.numbers, "fence": self.version, "session": session, "member": member,
               "machine": machine, "label": label, "granted_at": 1_800_000_000.5}  # fmt: skip
        self.rows.append(row)
        return row


class PlayedServer:
    """A `TeamServer` as one role."""

    def __init__(self, team: Team, role: str):
        self.team, self.role = team, role
        self.greeted = False

    def look(self, repository, circle=""):
        if self.team.fault:
            raise self.team.fault
        if repository != APP:
            return None
        everything = {"sessions": [], "locks": [dict(row) for row in self.team.rows], "waits": self.team.waits}
        return {"version": self.team.version, "mark": 7, "changes": [], "all": everything, "more": False}

    def hello(self, repository, mirror_lease=5.0):
        assert mirror_lease == 0, "it is no mirror that others would wait for"
        self.greeted = True
        self.team.hellos += 1

    def beat(self, repository, acked, mark, sessions):
        assert self.greeted and (acked, mark) in ((self.team.version, 7), (None, 0))
        if self.team.refusals:
            raise TeamRefused("say hello", code=self.team.refusals.pop(0))
        self.team.sessions |= {one["session"]: one for one in sessions}
        return {"ok": True, "joined": {one["session"]: 1 for one in sessions}}

    def acquire(self, repository, session, wants, seen, mark):
        assert mark == 7 and session in self.team.sessions
        if self.team.next_answers:
            return self.team.next_answers.pop(0)
        if seen != self.team.version:
            return {"ok": False, "why": STALE}
        row = self.team.grant(wants[0], session, self.role, "lfs", self.team.sessions[session]["label"])
        return {"ok": True, "fences": [row["fence"]], "locks": [row["lock"]], "version": row["fence"], "settled": False}

    def settle(self, repository, version, seconds):
        assert version == self.team.version
        return self.team.settles

    def release(self, repository, pairs, reason="released"):
        left = [row for row in self.team.rows if (row["lock"], row["fence"]) not in pairs]
        if len(left) == len(self.team.rows):
            return 0
        self.team.rows, self.team.version = left, self.team.version + 1
        return self.team.version

    def steal(self, repository, lock, fence, session, reason="", force=False):
        self.team.said.append(("steal", lock, reason, force))
        for row in self.team.rows:
            if (row["lock"], row["fence"]) == (lock, fence):
                self.team.version += 1
                row.update(session=session, member=self.role, fence=self.team.version)
                return {"ok": True, "fence": row["fence"], "version": row["fence"]}
        return {"ok": False, "why": NOT_HELD}


class PlayedPeople:
    """`People` with the password "pw"."""

    def __init__(self, team: Team, files: FileNames | None = None):
        self.team, self.files = team, files
        self.fault: Exception | None = None

    @contextlib.contextmanager
    def using(self, credentials: Credentials, repository: str):
        if self.fault:
            raise self.fault
        if credentials.secret != "pw":
            raise WrongCredentials("who is that")
        yield RepositoryLocks(PlayedServer(self.team, credentials.name), repository, credentials.name, self.files)


class Caller:
    """What one person's git-lfs asks, and is answered: status and JSON."""

    def __init__(self, client: TestClient, name: str, secret: str = "pw", base: str = ""):
        self.client, self.base = client, base
        self.headers = {"authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode(),
                        "accept": MEDIA_TYPE, "content-type": f"{MEDIA_TYPE}; charset=utf-8"}  # fmt: skip

    def post(self, path: str, body: object = None) -> tuple[int, dict]:
        return self._answered(self.client.post(self.base + path, headers=self.headers, content=json.dumps(body or {})))

    def get(self, path: str, /, **query) -> tuple[int, dict]:
        return self._answered(self.client.get(self.base + path, headers=self.headers, params=query))

    @staticmethod
    def _answered(answer) -> tuple[int, dict]:
        assert answer.headers["content-type"] == MEDIA_TYPE
        return answer.status_code, answer.json()


@pytest.fixture
def team() -> Team:
    return Team()


@pytest.fixture
def people(team) -> PlayedPeople:
    return PlayedPeople(team)


@pytest.fixture
def client(people):
    with TestClient(application(people, APP, ""), base_url="http://127.0.0.1:8777") as client:
        yield client


@pytest.fixture
def ann(client) -> Caller:
    return Caller(client, "ann")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWARM_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


# ------------------------------------------------------------------ the API


def test_a_lock_is_made_listed_and_given_back(ann, team):
    status, made = ann.post("/locks", {"path": "src/a.py", "ref": {"name": "refs/heads/main"}})
    assert status == 201 and set(made["lock"]) == {"id", "path", "locked_at", "owner"}
    assert made["lock"]["path"] == "src/a.py" and made["lock"]["owner"] == {"name": "ann"}
    assert made["lock"]["locked_at"] == "2027-01-15T08:00:00Z"
    assert ann.get("/locks") == (200, {"locks": [made["lock"]], "next_cursor": ""})
    assert ann.post(f"/locks/{made['lock']['id']}/unlock", {"force": False}) == (200, made)
    assert ann.get("/locks")[1]["locks"] == [] and not team.said


def test_what_is_held_is_refused_with_the_lock_that_is_in_the_way(ann, team):
    held = team.held_by_agent("src", is_folder=True)
    status, answer = ann.post("/locks", {"path": "src/a.py"})
    assert status == 409 and answer["lock"]["id"] == str(held["fence"]) and answer["lock"]["path"] == "src/"
    assert answer["lock"]["owner"]["name"] == "bob: claude-code 5f0c2f6e on laptop"
    assert "src/a.py" in answer["message"] and '"rewriting"' in answer["message"]
    assert ann.post("/locks", {"path": "srcs"})[0] == 201
    assert ann.post("/locks", {"path": "srcs"})[0] == 409  # one's own as well


def test_who_waits_for_a_file_comes_first(ann, team):
    team.waits.append({"session": "s-2", "member": "bob", "label": "codex", "wants": [want("src", is_folder=True)]})
    status, answer = ann.post("/locks", {"path": "src/a.py"})
    assert status == 409 and "bob" in answer["message"] and "lock" not in answer


def test_locks_are_found_by_path_and_by_id_and_come_in_pages_the_newest_first(ann, team):
    rows = [team.held_by_agent(f"{number}.txt") for number in range(5)]
    assert [one["path"] for one in ann.get("/locks", path="3.txt", refspec="refs/heads/main")[1]["locks"]] == ["3.txt"]
    assert [one["path"] for one in ann.get("/locks", id=rows[2]["fence"])[1]["locks"]] == ["2.txt"]
    assert ann.get("/locks", path="none")[1]["locks"] == []
    first = ann.get("/locks", limit=2)[1]
    assert [one["path"] for one in first["locks"]] == ["4.txt", "3.txt"] and first["next_cursor"]
    team.rows.remove(rows[3])  # the page goes on behind a lock that has gone
    second = ann.get("/locks", limit=2, cursor=first["next_cursor"])[1]
    third = ann.get("/locks", limit=2, cursor=second["next_cursor"])[1]
    assert [one["path"] for one in second["locks"] + third["locks"]] == ["2.txt", "1.txt", "0.txt"]
    assert third["next_cursor"] == ""


def test_a_role_has_what_its_agents_hold_and_unlocks_without_force_only_what_it_locked_itself(ann, team):
    ann.post("/locks", {"path": "own.txt"})
    agents = team.held_by_agent("agents.txt", member="ann")
    team.held_by_agent("bobs.txt")
    status, answer = ann.post("/locks/verify", {"ref": {"name": "refs/heads/main"}, "limit": 100})
    assert status == 200 and answer["next_cursor"] == ""
    assert {one["path"] for one in answer["ours"]} == {"own.txt", "agents.txt"}
    assert [one["path"] for one in answer["theirs"]] == ["bobs.txt"]
    assert ann.post(f"/locks/{agents['fence']}/unlock", {})[0] == 403
    assert ann.post(f"/locks/{agents['fence']}/unlock", {"force": "yes"})[0] == 403
    assert ann.post(f"/locks/{agents['fence']}/unlock", {"force": True})[0] == 200
    assert team.said == [("steal", agents["lock"], "git lfs unlock --force", True)]
    assert {row["place"] for row in team.rows} == {"own.txt", "bobs.txt"}
    assert ann.post(f"/locks/{agents['fence']}/unlock", {"force": True})[0] == 404


def test_pages_of_what_a_push_meets_are_of_both_kinds_together(ann, team):
    for number in range(3):
        team.held_by_agent(f"{number}.txt", member="ann" if number == 1 else "bob")
    first = ann.post("/locks/verify", {"limit": 2})[1]
    second = ann.post("/locks/verify", {"limit": 2, "cursor": first["next_cursor"]})[1]
    assert [len(one["ours"]) for one in (first, second)] == [1, 0]
    assert [len(one["theirs"]) for one in (first, second)] == [1, 1] and second["next_cursor"] == ""


@pytest.mark.parametrize("base", ["", f"/{APP}", f"/{APP}/", f"/{APP}.git/info/lfs", "/info/lfs"])
def test_the_repository_stands_in_the_address(client, team, base):
    team.held_by_agent("a.txt")
    status, answer = Caller(client, "ann", base=base.rstrip("/")).get("/locks")
    assert status == 200 and len(answer["locks"]) == 1


def test_what_one_may_not_see_is_refused_and_never_said_to_be_missing(client):
    other = Caller(client, "ann", base="/example.org/other")
    # git-lfs would never ask again after 404 or 501.
    assert other.post("/locks/verify")[0] == other.get("/locks")[0] == other.post("/locks", {"path": "a"})[0] == 403


@pytest.mark.parametrize("path", [None, 7, "", "/", "../a", "a//b", "./a", "a/../b", "a\0b", "x" * 5000, "\ud800"])
def test_what_cannot_be_a_path_is_refused(ann, path):
    assert ann.post("/locks", {"path": path})[0] == 400


@pytest.mark.parametrize("body", [b"[]", b"{", b"\xff", b"[" * 60000, b'"a"'])
def test_what_is_no_request_is_refused(client, ann, body):
    answer = client.post("/locks", headers=ann.headers, content=body)
    assert answer.status_code == 400 and answer.json()["message"]


def test_a_large_request_is_not_read(client, ann):
    answer = client.post("/locks/verify", headers=ann.headers, content=b" " * (LARGEST + 1))
    assert answer.status_code == 413


def test_nothing_but_the_api_is_there(client, ann):
    assert ann.get("/nothing")[0] == 404 and ann.get("/locks/1/unlock")[0] == 405
    assert ann.get("/locks", cursor="x")[0] == ann.get("/locks", limit="x")[0] == 400


@pytest.mark.parametrize(
    "header", ["", "Basic", "Basic !", "Basic YW5u", "Basic OnB3", "Negotiate YQ==", "Bearer", "Basic /w=="]
)
def test_who_does_not_say_who_it_is_is_asked(client, header):
    answer = client.get("/locks", headers={"authorization": header} if header else {})
    assert answer.status_code == 401 and answer.headers["lfs-authenticate"].startswith("Basic ")
    assert "www-authenticate" not in answer.headers  # no browser asks its user for a password


def test_a_wrong_password_is_refused(client):
    assert Caller(client, "ann", "other").get("/locks")[0] == 401


def test_objects_are_kept_elsewhere(people):
    here = application(people, APP, "https://objects.example.org/acme/app.git/info/lfs/")
    answer = TestClient(here).post(f"/{APP}/objects/batch", json={}, follow_redirects=False)
    assert answer.status_code == 307
    assert answer.headers["location"] == "https://objects.example.org/acme/app.git/info/lfs/objects/batch"
    answer = TestClient(application(people, APP, "")).post("/objects/batch", json={})
    assert answer.status_code == 501 and "--objects" in answer.json()["message"]


def test_a_fault_is_told_to_the_terminal_and_not_to_the_client(people, capfd):
    people.fault = RuntimeError("it broke")
    with TestClient(application(people, APP, ""), raise_server_exceptions=False) as client:
        status, answer = Caller(client, "ann", "geheim").get("/locks")
    said = capfd.readouterr().err
    assert status == 500 and "it broke" not in answer["message"] and "it broke" in said
    assert "geheim" not in said and base64.b64encode(b"ann:geheim").decode() not in said


# ------------------------------------------------------------ the team's server


def test_a_grant_counts_for_everybody_before_it_is_told(ann, team):
    team.settles = False
    status, answer = ann.post("/locks", {"path": "a.txt"})
    assert status == 503 and "machine" in answer["message"] and team.rows == []


def test_it_asks_again_while_others_change_what_it_has_seen(ann, team, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr(lfs_locks.time, "sleep", slept.append)
    refusals = [STALE, UNKNOWN_SESSION, EPOCH]
    team.next_answers = [{"ok": False, "why": why} for why in refusals]
    team.next_answers.append({"ok": False, "why": GRACE, "seconds": 3.0})
    assert ann.post("/locks", {"path": "a.txt"})[0] == 201 and slept == [3.0]
    team.next_answers = [{"ok": False, "why": GRACE, "seconds": 60.0}]
    assert ann.post("/locks", {"path": "b.txt"})[0] == 503
    team.next_answers = [{"ok": False, "why": STALE}] * 100
    assert ann.post("/locks", {"path": "b.txt"})[0] == 503
    team.next_answers = [{"ok": False, "why": HELD, "by": team.held_by_agent("z.txt")}]
    assert ann.post("/locks", {"path": "b.txt"})[0] == 409


def test_a_persons_session_lasts_and_is_renewed_by_whatever_they_ask(ann, team):
    ann.post("/locks", {"path": "a.txt"})
    session = team.sessions.pop(session_of("ann"))
    assert session["lease"] == 30 * 86400
    assert holder_name(session["label"], session["session"]) == "ann git-lfs"
    ann.post("/locks/verify")
    assert team.sessions == {session_of("ann"): session}


def test_a_role_may_have_any_name():
    assert holder_name(label_of("dr: who x"), session_of("dr: who x")) == "dr-who-x git-lfs"


def test_another_process_that_speaks_for_a_person_is_taken_over_from(ann, team):
    team.refusals = ["superseded", "hello_first"]
    assert ann.post("/locks", {"path": "a.txt"})[0] == 201 and team.hellos == 3
    team.refusals = ["superseded"] * 100
    assert ann.post("/locks", {"path": "b.txt"})[0] == 503


@pytest.mark.parametrize(
    "fault, status",
    [
        (TeamRefused("no such repository", code="not_allowed"), 403),
        (TeamRefused("too long", code="malformed"), 403),
        (TeamRefused("nobody has set it up", code="no_team"), 503),
        (TeamUnreachable("it is away"), 503),
    ],
)
def test_what_the_teams_server_says_is_passed_on(ann, team, fault, status):
    team.fault = fault
    assert ann.post("/locks/verify") == (status, {"message": str(fault)})


@pytest.mark.parametrize(
    "path, part, expected",
    [
        ("src/a.py", want("src/a.py"), True),
        ("src/a.py", want("SRC"), True),
        ("src", want("src/a.py"), True),
        ("src/a.py", want("src/a"), False),
        ("src/a.py", want(""), True),
        ("src/a.py", want(pattern="*.py"), True),
        ("src/A.PY", want(pattern="*.py"), True),
        ("src/a.c", want(pattern="*.py"), False),
        ("src/a.py", want(pattern="b*", base="src"), False),
        ("src/b.py", want(pattern="b*", base="src"), True),
        ("b.py", want(pattern="b*", base="src"), False),
        ("src/x/y", want(pattern="src/**"), True),
        ("a", want(pattern="!unreadable"), False),
    ],
)
def test_which_locks_are_in_the_way(path, part, expected):
    assert meets(path, part) is expected


# ------------------------------------------------------------------- names


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-C", folder, "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True, capture_output=True
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    top = tmp_path / "clone"
    (top / "src/sub").mkdir(parents=True)
    for name in ("src/a.py", "src/sub/b.py", "src/c.txt", "srcs", "README.md"):
        (top / name).write_text(name)
    git(top, "init", "-q", "-b", "main")
    git(top, "add", ".")
    git(top, "commit", "-qm", "one")
    return top


def test_a_folder_and_a_pattern_are_the_files_that_the_clone_knows(team, clone):
    names = FileNames(str(clone))

    def reached(**wanted) -> set[str]:
        return {one.path for one in names.reached([held_by(team.held_by_agent(**wanted))], "refs/heads/main")}

    assert reached(place="src") == {"src/a.py", "src/sub/b.py", "src/c.txt"}
    assert reached(pattern="*.py") == {"src/a.py", "src/sub/b.py"}
    assert reached(pattern="*.py", base="src/sub") == {"src/sub/b.py"}
    assert reached(place="readme.MD") == {"README.md"} and reached(place="README.md") == set()
    assert len(reached(place="")) == 5 and reached(pattern="!unreadable") == set()


def test_what_a_push_meets_is_asked_of_the_branch_that_was_fetched(client, people, team, clone, ann):
    people.files = FileNames(str(clone))
    team.held_by_agent("src", is_folder=True)

    def theirs(ref: str) -> set[str]:
        return {one["path"] for one in ann.post("/locks/verify", {"ref": {"name": ref}})[1]["theirs"]}

    assert theirs("refs/heads/next") == {"src/", "src/a.py", "src/sub/b.py", "src/c.txt"}
    (clone / "src/new.py").write_text("")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "two")
    git(clone, "update-ref", "refs/remotes/origin/next", "HEAD")
    git(clone, "reset", "-q", "--hard", "HEAD~")
    assert "src/new.py" in theirs("refs/heads/next") and "src/new.py" not in theirs("refs/heads/main")
    assert theirs("refs/heads/\0") == theirs("") == theirs("refs/heads/main")


def test_names_that_are_not_text_are_left_out(client, people, team, clone, ann):
    with open(os.path.join(os.fsencode(clone), b"src/\xff.py"), "wb"):
        pass
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "two")
    people.files = FileNames(str(clone))
    team.held_by_agent("src")
    status, answer = ann.post("/locks/verify")
    assert status == 200 and len(answer["theirs"]) == 4


def test_a_clone_that_has_gone_or_has_no_commit_knows_no_files(team, tmp_path):
    held = held_by(team.held_by_agent("src"))
    assert FileNames(str(tmp_path / "gone")).reached([held], "refs/heads/main") == []
    git(tmp_path, "init", "-q")
    assert FileNames(str(tmp_path)).reached([held], "refs/heads/main") == []


def test_a_cursor_is_a_place_and_no_lock(team):
    locks = [held_by(team.held_by_agent(name)) for name in ("a:b", "c")]
    page = page_of(locks, "", 1)
    assert page_of([], page.next_cursor, 1).locks == [] and page_of(locks, page.next_cursor, 5).locks == locks[:1]
    with pytest.raises(ValueError):
        page_of(locks, "x:y", 1)


# ------------------------------------------------------------------ tokens


def test_a_token_is_shown_once_and_kept_as_a_digest(state):
    token = tokens.make("ci")
    [kept] = tokens.kept()
    assert tokens.role_of(token) == kept.role == "ci" and tokens.role_of(token + "x") == tokens.role_of("") == ""
    [file] = (state / "team/lfs-tokens").iterdir()
    secret = token.removeprefix(tokens.PREFIX)
    assert secret not in file.read_text() and secret not in file.name
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_token_ends_at_once_when_it_is_revoked_and_by_itself_after_its_days(state, monkeypatch):
    first, second = tokens.make("ci"), tokens.make("ann", days=2)
    assert tokens.revoke(next(one.id for one in tokens.kept() if one.role == "ci")).role == "ci"
    assert tokens.role_of(first) == "" and tokens.role_of(second) == "ann"
    later = time.time() + 2 * 86400 + 1
    monkeypatch.setattr(tokens.time, "time", lambda: later)
    assert tokens.role_of(second) == ""
    for wrong in ("", "zzzzzzzz", tokens.kept()[0].id[:5]):
        with pytest.raises(SwarmError):
            tokens.revoke(wrong)


def test_a_record_that_cannot_be_read_is_no_token(state):
    token = tokens.make("ci")
    [file] = (state / "team/lfs-tokens").iterdir()
    for text in ("", "[]", '{"role": "root"}', '{"role": "ci", "made_at": "x", "ends_at": 0}'):
        file.write_text(text)
        assert tokens.role_of(token) == "" and tokens.kept() == []
    os.remove(file)
    for role, days in ((" ", 0), ("ci", -1)):
        with pytest.raises(SwarmError):
            tokens.make(role, days)

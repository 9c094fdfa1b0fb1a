"""Protection of each person's and each circle's rows, and the set-up of the server."""

import itertools
import os
import shutil
import sys

import pytest

from swarm_mcp.errors import SwarmError
from swarm_mcp.team import TeamRefused, TeamUnreachable
from swarm_mcp.team import server as team_server
from swarm_mcp.team.memberships import checked_server
from swarm_mcp.team.server import TeamServer, connect
from team.machines import Machine
from team.tls import TlsFront, certificate

_numbers = itertools.count()


DATABASE = "rights"


@pytest.fixture(scope="module")
def team(engine):
    """A team with circles: the superuser is in all of them, so the other tests have another one."""
    with connect(engine.dsn()) as admin:
        admin.execute(f"CREATE DATABASE {DATABASE}")
    for circle in ("red", "blue"):
        team_server.init(engine.dsn(database=DATABASE), circle)
    return engine.dsn(database=DATABASE)


@pytest.fixture
def people(engine, team):
    """Makes people: how the server is named for one in some circles."""
    made = []

    def make(name, *circles):
        role = f"{name}_{os.getpid()}_{next(_numbers)}"
        groups = ", ".join(f'"{team_server.CIRCLE}{circle}"' for circle in circles)
        with connect(team) as admin:
            admin.execute(f"CREATE ROLE {role} LOGIN" + (f" IN ROLE {groups}" if circles else ""))
        made.append(role)
        return engine.dsn(user=role, database=DATABASE)

    yield make
    with connect(team) as admin:
        for role in made:
            admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_another_person_of_the_circle_sees_and_cannot_touch(people, repository):
    dana, eve = Machine(people("dana", "red"), "laptop", repository, "d1"), None
    (lock,), (fence,) = (dana.get("d1", "a", note="mine")[name] for name in ("locks", "fences"))
    eve = Machine(people("eve", "red"), "laptop", repository, "e1")  # and calls her machine the same
    assert [row["note"] for row in eve.server.look(repository)["all"]["locks"]] == ["mine"]
    assert eve.acquire("d1", "b")["why"] == "session"  # forged
    assert eve.server.release(repository, [(lock, fence)]) == 0
    assert eve.server.transfer(repository, lock, fence, "e1")["why"] == "not_held"
    assert eve.server.steal(repository, lock, fence, "e1")["why"] == "held"
    assert eve.server.end(repository, ["d1"]) == 0
    assert (
        eve.server.beat(repository, eve.version, eve.mark, [{"session": "d1", "label": "x", "lease": 1}])["joined"]
        == {}
    )
    assert eve.server.mine(repository)["locks"] == []
    forged = eve.put("message", "m", 0, {"sender": "d1", "content": "let me in"})
    assert (forged["why"], forged["error"]) == ("refused", "a message's sender is a session of another machine")
    assert eve.put("message", "m", 0, {"sender": "e1", "member": "dana", "machine": "hers"})["ok"]
    (sent,) = dana.server.look(repository)["all"]["documents"]
    assert sent["member"].startswith("eve_") and sent["machine"] == "laptop", "whatever it says of itself"
    dana.beat("d1")
    assert dana.held() == ["a"]
    dana.server.part(repository)  # hers only
    assert [row["session"] for row in eve.server.mine(repository)["sessions"]] == ["e1"]
    dana.server.close()
    eve.server.close()


def test_to_another_circle_a_repository_is_not_there(people, repository):
    dana = Machine(people("dana", "red"), "laptop", repository, "d1")
    dana.get("d1", "a", note="secret")
    stranger = people("mallory", "blue")
    mallory = Machine(stranger, "laptop", repository, "m1")  # the same name is another repository
    dana.put("value", "plans", 0, "secret")
    everything = mallory.server.look(repository)["all"]
    assert everything["locks"] == everything["documents"] == []
    assert mallory.put("value", "plans", 0, "mine")["ok"]  # another one
    mallory.get("m1", "a")  # and blocks no other
    assert mallory.server.machines(repository)[0]["member"].startswith("mallory")
    key = dana.server._greeted[repository].key
    mallory.server._greeted[repository].key = key
    mallory.server._greeted[repository].epoch = dana.epoch
    for ask in (
        mallory.beat,
        lambda: mallory.acquire("d1", "b"),
        lambda: mallory.server.release(repository, [(1, None), (2, None), (3, None)]),
        lambda: mallory.put("value", "plans", 0, "mine"),
        lambda: mallory.server.mine(repository),
        lambda: mallory.server.settle(repository, 1, 0.1),
        lambda: mallory.server.steal(repository, 2, 2, "m1", "because", force=True),
        lambda: mallory.server.part(repository),
    ):
        with pytest.raises(TeamRefused, match="no such repository") as refusal:
            ask()
        assert refusal.value.answer["code"] == "not_allowed"
    with pytest.raises(TeamRefused, match="is not in a circle red"):
        mallory.server.hello(repository, circle="red")
    assert mallory.server.look(repository, "red") is None
    dana.beat()
    assert dana.held() == ["a"]
    dana.server.close()
    mallory.server.close()


def test_nobody_gets_at_tables_or_at_what_is_inside(people, repository):
    dana = Machine(people("dana", "red"), "laptop", repository, "d1")
    key = dana.server._greeted[repository].key
    with connect(people("mallory", "red")) as mallory:
        for query in (
            "SELECT * FROM swarm_team.locks", "DELETE FROM swarm_team.locks", "TABLE swarm_team.repositories", "TABLE swarm_team.changes",
            f"SELECT swarm_team.void({key}, 0)", "SELECT swarm_team.note_start()", f"SELECT swarm_team.everything({key}, NULL, NULL)",
            f"SELECT swarm_team.news({key}, 0)", "TABLE swarm_team.documents", "DELETE FROM swarm_team.documents",
            f"SELECT swarm_team.put_one({key}, 'laptop', '{{}}')", "SELECT swarm_team.drop_session(s, 'x') FROM swarm_team.sessions s",
            "CREATE TABLE swarm_team.mine (x int)", "UPDATE swarm_team.server SET epoch = 'x'", "SET ROLE swarm_team_owner",
            "CREATE FUNCTION swarm_team.member_of(int) RETURNS boolean LANGUAGE sql RETURN true",
        ):  # fmt: skip
            with pytest.raises(team_server.psycopg.errors.InsufficientPrivilege):
                mallory.execute(query)
    dana.server.close()


def test_functions_do_not_look_where_their_caller_tells_them_to(people, engine, team, repository):
    """A function of the caller's own stands in the way of one that ours use."""
    url = people("mallory", "red")
    with connect(team) as admin:
        admin.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    with connect(url) as mallory:
        mallory.execute(
            "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT now() - interval '1 year' $$"
        )
        mallory.execute("CREATE FUNCTION public.starts_with(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false'")
        mallory.execute("SET search_path = public, pg_catalog")
        hello = "SELECT swarm_team.hello(%s, '', 'm', 'incarnation.1', '', 0, 0, 5)"
        assert mallory.execute(hello, (repository,)).fetchone()[0]["ok"]
        left = mallory.execute("SELECT swarm_team.machines_of(%s, '')", (repository,)).fetchone()[0][0]["left"]
        assert 0 < left <= 5
    every = "SELECT proname FROM pg_proc WHERE pronamespace = 'swarm_team'::regnamespace AND prosecdef"
    with connect(team) as admin:
        admin.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        fixed = admin.execute(every + " AND 'search_path=pg_catalog, pg_temp' = ANY (proconfig)").fetchall()
        assert len(fixed) > 10 and sorted(fixed) == sorted(admin.execute(every).fetchall())
        open_to_all = admin.execute(
            every.replace(" AND prosecdef", "") + " AND has_function_privilege('public', oid, 'EXECUTE')"
        )
        assert open_to_all.fetchall() == []


def test_who_is_in_several_circles_says_which_or_has_one_there(people, repository):
    both, red = people("dana", "red", "blue"), people("eve", "red")
    dana = TeamServer(both, "laptop")
    with pytest.raises(TeamRefused, match="say which: blue, red"):
        dana.hello(repository)
    eve = Machine(red, "laptop", repository, "e1")
    assert dana.hello(repository)["circle"] == "red"  # there is one of this name
    assert dana.hello(repository + "x", circle="blue")["circle"] == "blue"
    with pytest.raises(TeamRefused, match="in no circle|no right|does not exist|permission") as refusal:
        _hello(people("nobody"), repository)
    assert refusal.value.answer["code"] == "not_allowed"
    dana.close()
    eve.server.close()


def test_what_is_told_to_those_who_listen_is_for_the_circle(people, repository):
    dana, mallory = (
        Machine(people(name, circle), "m", repository, name) for name, circle in (("dana", "red"), ("mal", "blue"))
    )
    assert dana.server._greeted[repository].channel != mallory.server._greeted[repository].channel
    dana.server.close()
    mallory.server.close()


def _hello(server, repository):
    one = TeamServer(server, "one")
    try:
        one.hello(repository)
    finally:
        one.close()


@pytest.fixture
def empty(engine):
    """The server with a database without a set-up."""
    name = f"empty_{os.getpid()}_{next(_numbers)}"
    with connect(engine.dsn()) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    return engine.dsn(database=name)


def test_setting_up_again_changes_nothing(empty):
    first = team_server.init(empty)
    assert first.applied == [f"{one.number:04}_{one.name}" for one in team_server.migrations()]
    again = team_server.init(empty)
    assert again.applied == [] and again.epoch == first.epoch
    assert team_server.init(empty, epoch=first.epoch).epoch == first.epoch


def test_a_server_of_another_epoch_is_refused_until_somebody_says_so(empty, repository):
    first = team_server.init(empty)
    one = Machine(empty, "one", repository, "s1")
    one.get("s1", "a")
    with pytest.raises(TeamRefused, match="another epoch"):
        team_server.init(empty, epoch="another")
    assert one.held() == ["a"]
    assert team_server.init(empty, new_epoch=True).epoch != first.epoch
    assert one.acquire("s1", "a")["why"] == "epoch"
    one.server.close()


def test_a_dump_on_another_server_has_another_epoch(empty, repository):
    first = team_server.init(empty)
    with connect(empty) as admin:
        admin.execute("UPDATE swarm_team.server SET system = 1, postmaster = 'epoch'")
    with pytest.raises(TeamRefused, match="another epoch"):
        team_server.init(empty, epoch=first.epoch)


def test_what_another_swarm_has_set_up_is_left_alone(empty):
    team_server.init(empty)
    with connect(empty) as admin:
        admin.execute("INSERT INTO swarm_team.migrations VALUES (9999, 'later', 'x')")
        with pytest.raises(TeamRefused, match="9999_later"):
            team_server.init(empty)
        admin.execute("DELETE FROM swarm_team.migrations WHERE number = 9999")
        admin.execute("UPDATE swarm_team.migrations SET digest = 'x'")
        with pytest.raises(TeamRefused, match="another swarm"):
            team_server.init(empty)


def test_a_server_without_a_team_says_what_to_do(empty, repository):
    with pytest.raises(TeamRefused, match="swarm-mcp team init"):
        _hello(empty, repository)


def test_who_is_no_superuser_can_set_up_and_does_not_own(engine, empty):
    role = f"admin_{os.getpid()}_{next(_numbers)}"
    database = empty.rpartition("dbname=")[2]
    with connect(engine.dsn()) as admin:
        # Roles belong to all databases: their maker has them, and only the circle is new here.
        admin.execute(f"CREATE ROLE {role} LOGIN CREATEROLE")
        admin.execute(f"GRANT CREATE ON DATABASE {database} TO {role}")
        for group in (team_server.OWNER, team_server.MEMBER):
            admin.execute(f"GRANT {group} TO {role} WITH ADMIN OPTION")
    circle = f"c{next(_numbers)}"
    assert team_server.init(engine.dsn(user=role, database=database), circle).circle == circle
    with connect(empty) as admin:
        owners = admin.execute("SELECT DISTINCT proowner::regrole::text, (SELECT rolsuper FROM pg_roles WHERE oid = proowner)"
                               " FROM pg_proc WHERE pronamespace = 'swarm_team'::regnamespace").fetchall()  # fmt: skip
    assert owners == [(team_server.OWNER, False)]


def test_who_may_not_set_up_is_told(people):
    with pytest.raises(TeamRefused, match="does not let itself be set up"):
        team_server.init(people("dana", "red"), "green")
    with pytest.raises(TeamRefused, match="no name for a circle"):
        team_server.init(people("dana", "red"), "owner")


@pytest.mark.usefixtures("engine")
class TestConnections:
    @pytest.mark.parametrize(
        "server, mode",
        [
            ("postgresql://dana@db.example.org/team", "verify-full"),
            ("postgresql://dana@db.example.org/team?sslmode=require", "require"),
            ("host=a,127.0.0.1 dbname=x", "verify-full"),
            ("host=127.0.0.1 dbname=x", None),
            ("host=/run/postgresql dbname=x", None),
            ("dbname=x", None),
        ],
    )
    def test_tls_is_checked_where_nobody_says_otherwise(self, server, mode):
        assert team_server.parameters(server).get("sslmode") == mode

    def test_a_service_may_say_so(self, home, monkeypatch):
        monkeypatch.setenv("PGSERVICEFILE", str(home / "services"))
        (home / "services").write_text(
            "[far]\nhost=db.example.org\n[own]\nhost=db.example.org\nsslmode=verify-ca\n[near]\nhost=localhost\n"
        )
        assert [team_server.parameters(f"service={name}").get("sslmode") for name in ("far", "own", "near")] == [
            "verify-full",
            None,
            None,
        ]

    def test_authorities_are_the_persons_own_or_the_systems(self, home):
        assert team_server.parameters("host=db.example.org")["sslrootcert"] == "system"
        (home / ".postgresql").mkdir()
        (home / ".postgresql" / "root.crt").write_text("x")
        assert "sslrootcert" not in team_server.parameters("host=db.example.org")

    @pytest.mark.parametrize(
        "server", ["postgresql://dana:secret@db/team", "host=db password=secret", "host='db password=secret"]
    )
    def test_a_secret_in_the_name_is_refused_and_not_repeated(self, server):
        with pytest.raises(SwarmError) as refusal:
            checked_server(server)
        assert "secret" not in str(refusal.value)

    def test_how_it_is_shown(self):
        assert team_server.described("postgresql://dana@db:1/team") == "dana@db:1/team"
        assert team_server.described("service=x") == "service x"

    def test_who_is_not_let_in_is_refused_and_who_is_away_is_not_reachable(self, engine):
        with pytest.raises(TeamRefused, match="does not exist"):
            connect(engine.dsn(user="nobody_of_this_name"))
        with pytest.raises(TeamUnreachable, match="not reachable"):
            connect("host=127.0.0.1 port=1 dbname=x")

    @pytest.fixture
    def asking(self, new_engine):
        """Return the name of a server that asks dana for her password, `right`."""
        with connect(new_engine.dsn()) as admin:
            admin.execute("CREATE ROLE dana LOGIN PASSWORD 'right'")
        rules = new_engine.data / "pg_hba.conf"
        rules.write_text("host all dana 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
        new_engine.restart()
        return new_engine.dsn(user="dana")

    def test_a_password_comes_from_the_users_own_places(self, asking, home, monkeypatch):
        server = asking
        for given, words in (("", "no password supplied"), (" password=wrong", "authentication failed")):
            with pytest.raises((TeamRefused, TeamUnreachable), match=words):
                connect(server + given).close()
        connect(f"{server} password=right").close()
        (home / ".pgpass").write_text("127.0.0.1:*:*:dana:right\n")
        (home / ".pgpass").chmod(0o600)
        monkeypatch.setenv("PGPASSFILE", str(home / ".pgpass"))
        connect(server).close()

    def test_where_those_have_none_the_keyring_is_asked(self, asking, home, monkeypatch):
        asked = []

        class Keyring:
            passwords: dict[tuple[str, str], str] = {}

            @classmethod
            def get_password(cls, service, name):
                asked.append((service, name))
                return cls.passwords.get((service, name))

        monkeypatch.setitem(sys.modules, "keyring", Keyring)
        with pytest.raises(TeamUnreachable, match="the keyring have none"):
            connect(asking)
        Keyring.passwords[asked[0]] = "right"
        connect(asking).close()
        assert set(asked) == {("swarm-mcp team", team_server.described(asking))}
        Keyring.passwords[asked[0]] = "wrong-word"
        with pytest.raises(TeamRefused) as refusal:
            connect(asking)
        assert "wrong-word" not in str(refusal.value)

    @pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificates of this test")
    def test_who_shows_no_certificate_of_that_name_is_no_server(self, engine, tmp_path):
        (own, key), (other, _) = (certificate(tmp_path, name) for name in ("db.example.org", "other.example.org"))

        def named(port, authority, host="host=db.example.org hostaddr=127.0.0.1"):
            return f"{host} port={port} user=postgres dbname=postgres sslmode=verify-full sslrootcert={authority}"

        with TlsFront(engine.port, own, key) as front:
            connect(named(front.port, own)).close()
            with pytest.raises(TeamRefused, match="does not match"):
                connect(named(front.port, own, "host=127.0.0.1"))
            with pytest.raises(TeamRefused, match="certificate verify failed"):
                connect(named(front.port, other))
        with pytest.raises(TeamUnreachable, match="not support SSL|SSL was required"):
            connect(named(engine.port, own))

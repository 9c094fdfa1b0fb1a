"""The server's grants and refusals."""

import time

import pytest

from swarm_mcp.team import TeamRefused, protocol
from swarm_mcp.team.protocol import want
from swarm_mcp.team.server import connect
from team.machines import Machine


@pytest.fixture
def two(team, repository):
    one, other = Machine(team, "one", repository, "s1", "s2"), Machine(team, "other", repository, "s3")
    one.beat()
    yield one, other
    one.server.close()
    other.server.close()


def test_asking_again_is_the_same_grant(two):
    one, _ = two
    first = one.get("s1", "src/a.py", note="now")
    again = one.get("s1", "src/a.py", note="later")
    assert again["fences"] == first["fences"] and again["locks"] == first["locks"]
    assert one.server.mine(one.repository)["locks"][0]["note"] == "later"


def test_an_answer_that_was_lost_may_be_asked_for_again_although_others_came(two):
    one, other = two
    first = one.get("s1", "src/a.py")
    other.get("s3", "src/b.py")
    other.beat()
    assert other.stand("s3", "t", "src")["ok"]
    assert one.acquire("s1", "src/a.py")["fences"] == first["fences"]  # with the earlier version


def test_another_mode_is_another_grant(two):
    one, _ = two
    first = one.get("s1", "src/a.py", mode="shared")
    alone = one.get("s1", "src/a.py")
    assert alone["fences"][0] > first["fences"][0] and alone["locks"] == first["locks"]


def test_fences_rise_in_the_order_of_grants_whatever_the_place(two):
    one, other = two
    fences = []
    for turn in range(4):
        fences += (one, other)[turn % 2].get("s1" if turn % 2 == 0 else "s3", f"place/{turn}", f"more/{turn}")["fences"]
    assert fences == sorted(set(fences))


def test_all_or_none(two):
    one, other = two
    one.get("s1", "src/b.py")
    other.beat()
    assert other.acquire("s3", "src/a.py", "src/b.py")["why"] == protocol.HELD
    assert other.held() == []


@pytest.mark.parametrize(
    "taken, asked",
    [("src", "src/a.py"), ("src/a.py", "src"), ("src/a.py", "src/a.py"), ("", "src/a.py"), ("src/a.py", "")],
)
def test_paths_that_meet_are_refused_to_whoever_has_seen_everything(two, taken, asked):
    one, other = two
    one.get("s1", taken, note="mine")
    other.beat()
    answer = other.acquire("s3", asked)
    assert answer["why"] == protocol.HELD
    assert (answer["by"]["place"], answer["by"]["session"], answer["by"]["machine"], answer["by"]["note"]) == (
        taken, "s1", "one", "mine",
    )  # fmt: skip


@pytest.mark.parametrize("taken, asked", [("src", "srca"), ("src/a", "src/ab"), ("a/src", "src"), ("Src", "src")])
def test_paths_that_do_not_meet_are_not(two, taken, asked):
    one, other = two
    one.get("s1", taken)
    other.get("s3", asked)


def test_another_session_of_the_same_machine_is_another(two):
    one, _ = two
    one.get("s1", "src")
    one.beat()
    assert one.acquire("s2", "src/a.py")["why"] == protocol.HELD


def test_who_reads_may_share(two):
    one, other = two
    one.get("s1", "src/a.py", mode="shared")
    other.get("s3", "src", mode="shared")
    one.beat()
    assert one.acquire("s1", "src/a.py")["why"] == protocol.HELD  # alone, while another reads


def test_what_sub_agents_hold_is_theirs(two):
    one, _ = two
    first = one.get("s1", "src/a.py", agent="x")
    second = one.get("s1", "src/a.py", agent="y")  # their own machine keeps siblings apart
    assert first["locks"] != second["locks"]


def test_who_has_not_seen_a_lock_in_the_region_is_stale_and_told(two):
    one, other = two
    one.get("s1", want(pattern="*.py", base="src"))
    answer = other.acquire("s3", "src/deep/a.py")  # only Python knows that the pattern covers it
    assert answer["why"] == protocol.STALE
    (change,) = answer["news"]["changes"]
    assert change["kind"] == "lock" and change["body"]["pattern"] == "*.py" and change["body"]["base"] == "src"
    other.take(answer["news"])
    assert other.acquire("s3", "src/deep/a.txt")["ok"]  # it has looked: the pattern does not cover that


@pytest.mark.parametrize(
    "theirs, ours, is_stale",
    [
        (want("src/a.py"), want(pattern="*.md"), True),  # a pattern without a slash: everywhere
        (want("src/a.py"), want(pattern="docs/*.md"), False),
        (want("SRC/a.py"), want("src/b.py"), False),
        (want("SRC"), want("src/b.py"), True),  # letter case is ignored for all
        (want(pattern="src/**/x"), want("src/sub/y"), True),
        (want("src/a.py"), want("src/b.py"), False),
        (want("src", mode="shared"), want("src/b.py", mode="shared"), False),
        (want("src", mode="shared"), want("src/b.py"), True),
    ],
)
def test_only_what_may_meet_makes_stale(two, theirs, ours, is_stale):
    one, other = two
    one.get("s1", theirs)
    answer = other.acquire("s3", ours)
    assert answer["ok"] is not is_stale
    if is_stale:
        assert answer["why"] == protocol.STALE


def test_a_place_in_line_makes_stale_too(two):
    one, other = two
    assert one.stand("s1", "t", "src")["ok"]
    assert other.acquire("s3", "src/a.py")["why"] == protocol.STALE


def test_a_release_does_not(two):
    one, other = two
    answer = one.get("s1", "src/a.py")
    other.beat()
    one.server.release(one.repository, [(answer["locks"][0], answer["fences"][0])])
    assert other.acquire("s3", "src/a.py")["ok"]


def test_one_who_is_far_behind_gets_everything(two, team, engine):
    from swarm_mcp.team.server import connect

    one, other = two
    seen = other.version, other.mark
    one.get("s1", "src/a.py")
    with connect(team) as admin:
        admin.execute(
            "UPDATE swarm_team.repositories SET floor = version WHERE name = %s RETURNING key", (one.repository,)
        )
    answer = other.acquire("s3", "other")
    assert answer["why"] == protocol.STALE and [row["place"] for row in answer["news"]["all"]["locks"]] == ["src/a.py"]
    assert (other.version, other.mark) == seen
    other.take(answer["news"])
    assert other.acquire("s3", "other")["ok"]


def test_a_release_names_the_fence_or_does_nothing(two):
    one, other = two
    (lock,), (fence,) = (one.get("s1", "a")[name] for name in ("locks", "fences"))
    assert one.server.release(one.repository, [(lock, fence + 1)]) == 0
    assert other.server.release(one.repository, [(lock, fence)]) == 0  # another machine's
    assert one.held() == ["a"]
    version = one.server.release(one.repository, [(lock, fence)])
    assert version == fence + 1 and one.held() == []
    other.beat()
    assert (other.changes[-1]["kind"], other.changes[-1]["body"]["reason"]) == ("unlock", "released")


def test_a_session_that_ends_leaves_nothing(two):
    one, other = two
    one.get("s1", "a", "b")
    one.get("s2", "c")
    one.beat()
    one.stand("s1", "t", "d")
    one.server.end(one.repository, ["s1", "s3"])
    assert one.held() == ["c"]
    other.beat("s3")
    assert [one["kind"] for one in other.changes[-4:]] == ["unlock", "unlock", "leave", "gone"]
    assert other.joined["s3"] and other.acquire("s3", "a", "b", "d")["ok"]


def test_a_hand_over_has_a_new_fence_wherever_it_goes(two):
    one, other = two
    (lock,), (fence,) = (one.get("s1", "a", note="n")[name] for name in ("locks", "fences"))
    assert one.server.transfer(one.repository, lock, fence + 1, "s3")["why"] == protocol.NOT_HELD
    assert one.server.transfer(one.repository, lock, fence, "nobody")["why"] == protocol.UNKNOWN_SESSION
    assert other.server.transfer(one.repository, lock, fence, "s3")["why"] == protocol.NOT_HELD
    answer = one.server.transfer(one.repository, lock, fence, "s3")
    assert answer["ok"] and answer["fence"] > fence and one.held() == [] and other.held() == ["a"]
    other.beat()
    body = other.changes[-1]["body"]
    assert (body["session"], body["was"], body["reason"], body["note"]) == ("s3", "s1", "transferred", "n")


def test_from_the_living_a_lock_is_taken_with_a_reason(two):
    one, other = two
    (lock,), (fence,) = (one.get("s1", "a")[name] for name in ("locks", "fences"))
    assert other.server.steal(one.repository, lock, fence, "s3")["why"] == protocol.HELD
    with pytest.raises(TeamRefused, match="wants a reason"):
        other.server.steal(one.repository, lock, fence, "s3", force=True)
    answer = other.server.steal(one.repository, lock, fence, "s3", "it hangs", force=True)
    assert answer["ok"] and answer["fence"] > fence and other.held() == ["a"]
    one.beat()
    body = one.changes[-1]["body"]
    assert (body["was"], body["reason"], body["said"]) == ("s1", "stolen", "it hangs")


def test_places_stand_in_the_order_of_the_log(two):
    one, other = two
    assert one.stand("s1", "t1", "src")["ok"]
    first = one.stand("s1", "t1", "src")["number"]  # asked again: the same place
    answer = other.stand("s3", "t2", "docs")  # elsewhere: a circle may go through any place
    assert answer["why"] == protocol.STALE and answer["news"]["changes"][-1]["body"]["number"] == first
    other.take(answer["news"])
    assert other.stand("s3", "t2", "docs")["number"] > first
    assert other.server.leave(one.repository, [first]) == 0  # another machine's
    assert one.server.leave(one.repository, [first]) > 0
    assert [row["ticket"] for row in one.server.look(one.repository)["all"]["waits"]] == ["t2"]


def test_places_of_the_own_machine_are_in_order_already(two):
    one, _ = two
    assert one.stand("s1", "t1", "src")["ok"] and one.stand("s2", "t2", "src")["ok"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"place": "a/" + "x" * 2000},
        {"region": ""},  # smaller than the path
        {"note": "n" * 2049},
        {"pattern": "*.py"},  # and a path
        {"mode": "open"},
        {"is_folder": None},
        {"place": "a\0b"},
    ],
)
def test_what_cannot_be_is_refused_in_one_line(two, wrong):
    one, _ = two
    with pytest.raises(TeamRefused) as refusal:
        one.acquire("s1", {**want("a/b"), **wrong})
    assert refusal.value.answer["code"] == "malformed" and "\n" not in str(refusal.value)
    assert one.held() == []


def test_one_who_has_not_said_hello_is_told_so(two, team):
    from swarm_mcp.team.server import TeamServer

    stranger = TeamServer(team, "stranger")
    with pytest.raises(TeamRefused) as refusal:
        stranger.beat("unknown", 0)
    assert refusal.value.answer["code"] == "hello_first"
    assert stranger.look("unknown") is None and stranger.machines("unknown") == []
    stranger.close()


def test_an_older_agent_of_the_machine_is_refused(two, team):
    one, _ = two
    newer = Machine(team, "one", one.repository)
    for ask in (lambda: one.acquire("s1", "a"), one.beat):
        with pytest.raises(TeamRefused, match="another agent") as refusal:
            ask()
        assert refusal.value.answer["code"] == "superseded"
    newer.sessions = ("s1",)
    newer.hello()
    assert newer.get("s1", "a")["ok"]  # its sessions are the machine's
    newer.server.close()


def test_regions_meet_here_as_they_do_there(team):
    from swarm_mcp.team.server import connect

    places = ["", "a", "a/b", "ab", "a/b/c", "b", "ä", "ä/x"]
    with connect(team) as admin:
        for left in places:
            for right in places:
                there = admin.execute("SELECT swarm_team.regions_meet(%s, %s)", (left, right)).fetchone()[0]
                assert there is protocol.regions_meet(left, right), (left, right)


def test_a_region_has_no_letter_case_and_ends_where_a_pattern_begins():
    assert protocol.region_of("Src/STRASSE.py") == "src/strasse.py"
    assert protocol.region_of("src/Straße.py") == "src/strasse.py"
    assert protocol.region_of("", "*.py", "Lib") == "lib"
    assert protocol.region_of("", "/Src/Sub/*.py") == "src/sub"
    assert protocol.region_of("", "**/x", "a") == "a"
    assert protocol.region_of("e\u0301") == protocol.region_of("\u00e9")


def test_a_grant_reads_no_more_of_the_locks_for_there_being_many(team, repository):
    server = f"{team} application_name=counted"
    machine = Machine(server, "laptop", repository, "s")  # the connection makes its plans before there are rows
    with connect(team) as admin:

        def read() -> int:
            (number,) = admin.execute(
                "SELECT sum(i.idx_tup_read)::bigint + (SELECT seq_tup_read FROM pg_stat_user_tables t WHERE t.relid = i.relid)"
                " FROM pg_stat_user_indexes i WHERE i.schemaname = 'swarm_team' AND i.relname = 'locks' GROUP BY i.relid"
            ).fetchone()  # fmt: skip
            return number

        before = read()
        for number in range(8):
            for _ in range(2):  # and once more, the same grant
                machine.get("s", *(f"src/deep/{number}-{one}.py" for one in range(150)))
        its_own = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'counted'"
        assert admin.execute(its_own).fetchone() == (1,)
        machine.server.close()
        while admin.execute(its_own).fetchone() != (0,):  # it reports its reads at its end, if not before
            time.sleep(0.01)
        assert 8 * 150 <= read() - before < 10 * 8 * 150

"""A holder hears once that a session tries its file again and again; so does the lead of that session's work."""

import re

import pytest
from support.fixtures import Ground

from swarm_hook_core.denial import STORM_SECONDS
from swarm_mcp.domain import Session
from swarm_mcp.store import Store
from swarm_mcp.store.refusals import KNOWN_SECONDS, Attempt


class Storm:
    """A holder of f and a session that tries to write it."""

    def __init__(self, ground: Ground, mine: str = "identity:p me", theirs: str = "identity:p holder"):
        self.ground = ground
        self.holder, self.me = ground.session("holder", theirs), ground.session("me", mine)
        self.file = f"{ground.scope}/f"
        ground.lock(self.holder, "f", "the-note")

    def refused(self, times: int, path: str = "") -> None:
        with self.ground.store() as store:
            attempt = Attempt("Write", path or self.file, times=times)
            assert store.denials.report(Session(self.me), self.file, self.holder["id"], attempt)

    def told(self) -> int:
        return len(self.ground.mail(self.holder["id"]))


@pytest.fixture
def storm(ground: Ground) -> Storm:
    return Storm(ground)


def test_the_holder_is_told_at_the_third_and_once(ground: Ground, store: Store, storm: Storm):
    for times in range(1, 3):
        storm.refused(times)
    assert storm.told() == 0
    for times in (3, 3, 4, 5, 6):
        storm.refused(times)
    (text,) = ground.mail(storm.holder["id"])
    me = storm.me["id"]
    assert text.startswith(f"[auto] me {me[:8]} (instance {me}) was refused {storm.file} 3 times within")
    assert f"swarm-mcp transfer {storm.file} --to {storm.me['id']}" in text
    assert ground.mail(storm.me["id"]) == []
    (notice,) = store.notices.take(store.instances.get(storm.holder["id"]))
    assert notice.text.startswith(text), "its next hook says it"


def test_a_count_that_skips_the_third_is_told_all_the_same(ground: Ground, storm: Storm):
    storm.refused(1)
    storm.refused(12)
    assert storm.told() == 1


def test_the_tenth_is_told_to_who_leads_that_identity_s_work(ground: Ground, storm: Storm):
    leads = [ground.session(name, f"identity:p mode:gateway {name}") for name in ("lead", "shell")]
    others = [
        ground.session("worker", "identity:p worker"), ground.session("stranger", "identity:q mode:gateway"),
        ground.session("nobody's", "mode:gateway"),
        ground.session("elsewhere", "identity:p mode:gateway", directory="/elsewhere"),
    ]  # fmt: skip
    for times in (1, 3, 9, 10, 11, 25):
        storm.refused(times)
    for lead in leads:
        (text,) = ground.mail(lead["id"])
        assert f"(instance {storm.me['id']}) was refused {storm.file} 10 times" in text
        assert f"(instance {storm.holder['id']})" in text and 'note "the-note"' in text
        assert f"swarm-mcp steal {storm.file} --force" in text
    assert storm.told() == 1 and not any(ground.mail(one["id"]) for one in others)


def test_a_lead_that_storms_itself_gets_no_mail(ground: Ground):
    storm = Storm(ground, mine="identity:p mode:gateway")
    storm.refused(10)
    assert ground.mail(storm.me["id"]) == [] and storm.told() == 1


def test_of_another_identity_nobody_learns_a_name(ground: Ground):
    storm = Storm(ground, mine="identity:p secret-me", theirs="identity:q secret-holder")
    lead = ground.session("lead", "identity:p mode:gateway")
    storm.refused(10)
    (text,) = ground.mail(storm.holder["id"])
    assert "a session of another identity was refused" in text
    assert "secret" not in text and storm.me["id"] not in text
    (text,) = ground.mail(lead["id"])
    assert "held by a session of another identity" in text and "the-note" not in text
    assert "secret-holder" not in text and storm.holder["id"] not in text


def test_a_storm_that_goes_on_is_told_no_second_time(ground: Ground, storm: Storm):
    for _ in range(5):
        storm.refused(10)
        ground.sql("UPDATE swarm_denials SET denied_at = denied_at - ?", KNOWN_SECONDS + 1)
    assert storm.told() == 1


@pytest.mark.parametrize("quiet", ["time", "release", "transfer"])
def test_a_new_storm_is_told_again(ground: Ground, storm: Storm, quiet: str):
    storm.refused(3)
    other = ground.session("other", "identity:p other")
    if quiet == "time":
        ground.sql("UPDATE swarm_denials SET denied_at = denied_at - ?", STORM_SECONDS + 1)
    elif quiet == "release":
        with ground.store() as store:
            store.locks.release(Session(storm.holder), "f")
        ground.lock(storm.holder, "f")
    else:
        with ground.store() as store:
            store.transfers.transfer(Session(storm.holder), "f", other["id"])
        storm.holder = other
    before = storm.told()
    storm.refused(1)
    storm.refused(3)
    assert storm.told() == before + 1


def test_a_lock_on_a_folder_says_what_it_covers(ground: Ground, store: Store):
    holder, me = ground.session("holder", "h"), ground.session("me", "m")
    ground.lock(holder, "src/")
    attempt = Attempt("Write", f"{ground.scope}/src/a", times=3)
    store.denials.report(Session(me), f"{ground.scope}/src", holder["id"], attempt)
    (text,) = ground.mail(holder["id"])
    assert f"{ground.scope}/src/a, which your lock on {ground.scope}/src covers" in text


def test_a_name_that_would_act_on_a_terminal_is_quoted(ground: Ground):
    storm = Storm(ground, mine="identity:p me\x1b[2J ignore all the others")
    storm.refused(3)
    (text,) = ground.mail(storm.holder["id"])
    assert "\x1b" not in text and text.startswith('[auto] "me\\e[2J ignore all the others" ')


def test_the_command_takes_the_number(ground: Ground, storm: Storm):
    words = ("--runtime", "claude-code", "--session-id", "me", "--holder", storm.holder["id"], "--times", "3")
    assert ground.swarm("denied", storm.file, *words).code == 0
    assert storm.told() == 1


def test_status_shows_who_storms_until_the_file_is_free(ground: Ground, storm: Storm, store: Store):
    storm.refused(9)
    assert ground.swarm("status", "--json").json["storms"] == []
    assert re.search(r"refused \d+ times", ground.swarm("status").out) is None  # only that it was refused at all
    storm.refused(10)
    (shown,) = ground.swarm("status", "--json").json["storms"]
    assert shown.pop("denied_at")
    assert shown == {
        "file": storm.file, "times": 10, "instance_id": storm.me["id"], "label": "identity:p me",
        "holder_id": storm.holder["id"], "holder_label": "identity:p holder",
    }  # fmt: skip
    me, holder = f"me {storm.me['id'][:8]}", f"holder {storm.holder['id'][:8]}"
    assert f"  refused 10 times  f  to {me}, held by {holder}, last " in ground.swarm("status").out
    store.locks.release(Session(storm.holder), "f")
    assert ground.swarm("status", "--json").json["storms"] == []


def test_status_names_no_strangers(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    storm = Storm(ground, mine="identity:p me", theirs="identity:q secret")
    storm.refused(10)
    for name in ("SWARM_MCP_IDENTITY", "AGENT_IDENTITY"):
        monkeypatch.setenv(name, "p")
    assert ground.swarm("status", "--json").json["storms"][0]["holder_label"] is None
    assert "held by another identity" in ground.swarm("status").out and "secret" not in ground.swarm("status").out


def test_a_file_of_an_earlier_release_learns_of_storms(ground: Ground, storm: Storm):
    ground.sql("ALTER TABLE swarm_denials DROP COLUMN times")
    ground.sql("UPDATE swarm_schema SET version = 7")
    storm.refused(3)
    assert storm.told() == 1


def overwritten(ground: Ground, owner: dict, *words: str) -> dict:
    """Report an overwritten change, as the hooks of session `me` do."""
    who = ("--runtime", "claude-code", "--session-id", "me", "--owner", owner["id"])
    return dict(ground.swarm("overwritten", "/w/notes.md", *who, "--json", *words).json)


@pytest.mark.parametrize("is_met", [True, False], ids=["of one identity", "of two"])
def test_an_owner_is_told_what_is_overwritten_and_how_to_bring_it_back(ground: Ground, is_met: bool, store: Store):
    owner = ground.session("owner", "identity:p owner")
    ground.session("me", "identity:p me" if is_met else "identity:q me")
    words = ("--how", "replace", "--tool", "Bash", "--command", "cp a notes.md")
    assert overwritten(ground, owner, *words, "--kept", "/k/1")["told"] == [owner["id"]]
    assert overwritten(ground, owner, "--how", "remove")["ok"]
    first, second = ground.mail(owner["id"])
    assert ("me" in first and "(`cp a notes.md`)" in first) is is_met
    assert "was let overwrite /w/notes.md" in first and "`swarm-mcp restore /w/notes.md` brings it back" in first
    assert "was let remove /w/notes.md" in second and "could not be kept" in second
    assert len(store.notices.take(store.instances.get(owner["id"]))) == 2, "its next hook says it"
    assert overwritten(ground, {"id": "gone"}, *words)["told"] == []


def test_who_is_denied_again_and_again_is_told_to_the_owner_and_then_to_a_person(ground: Ground):
    owner, _me = ground.session("owner", "identity:p owner"), ground.session("me", "identity:p me")
    lead = ground.session("lead", "identity:p mode:gateway lead")
    assert overwritten(ground, owner, "--how", "replace", "--times", "3")["told"] == [owner["id"]]
    (text,) = ground.mail(owner["id"])
    assert "was denied 3 times within 5 min to overwrite /w/notes.md" in text and ground.mail(lead["id"]) == []
    assert overwritten(ground, owner, "--how", "replace", "--times", "10")["told"] == [lead["id"]]
    (text,) = ground.mail(lead["id"])
    assert "denied 10 times" in text and "A person has to say" in text and len(ground.mail(owner["id"])) == 1


@pytest.mark.parametrize("is_met", [True, False], ids=["of one identity", "of two"])
def test_a_session_is_told_that_its_work_tree_is_taken_away(ground: Ground, is_met: bool):
    owner = ground.session("owner", "identity:p owner")
    ground.session("me", "identity:p me" if is_met else "identity:q me")
    who = ("--runtime", "claude-code", "--session-id", "me", "--owner", owner["id"], "--deed", "remove")
    words = ("--command", "rm -rf wt", "--commit", "ab12 One", "--commit", "cd34 Two", "--main", "/w")
    for more in (["--denied", *words], []):
        assert ground.swarm("evicted", "/w/wt", *who, "--json", *more).json["told"] == [owner["id"]]
    first, second = ground.mail(owner["id"])
    assert ("me" in first and "(`rm -rf wt`)" in first) is is_met
    assert "was stopped once from a call that would remove /w/wt" in first
    assert 'ab12 "One", cd34 "Two"; `git -C /w branch NAME ab12` keeps them' in first
    assert "makes a call to remove /w/wt, in which you work. Look if" in second
    assert ground.swarm("evicted", "/w/wt", *who[:-3], "gone", "--deed", "remove", "--json").json["told"] == []


def test_what_becomes_of_a_change_is_one_of_two_words(ground: Ground):
    done = ground.swarm("overwritten", "f", "--runtime", "codex", "--session-id", "1", "--owner", "2", "--how", "odd")
    assert done.code != 0 and "replace, remove" in done.err

"""`swarm-mcp task show ID`: one task whole; `unlock --all`; `status` in an empty checkout."""

import re
import time

from support.fixtures import Ground


def test_a_task_is_shown_whole(ground: Ground):
    asks, does = ground.session("1", "identity:p asks"), ground.session("2", "identity:p does")
    stranger = ground.session("3", "identity:q secret")
    with ground.store() as store:
        made = store.tasks.request(
            asks, {"type": "fix", "title": "Mend it", "description": "first\nthen", "files": ["src/a.py"]}
        )["task"]
        store.messages.send(asks, does["id"], f"about {made['id']}\nplease")
        store.tasks.claim(does, made["id"], True)
    ground.sql(
        "UPDATE tasks SET progress_summary = 'half way', progress_updated_at = unixepoch() - 300, result = 'done'"
    )
    ground.add(
        "swarm_runs", id="12ab34cd-1", scope=ground.scope, task_id=made["id"], instance_id=does["id"], harness="codex",
        started_at=int(time.time()), updated_at=int(time.time()), cwd=ground.scope, state="running", cost_usd=0.25,
    )  # fmt: skip
    out = ground.swarm("task", made["id"][:8], "--as", does["id"]).out
    who, other = f"asks {asks['id'][:8]}", f"does {does['id'][:8]}"
    for words in (
        f"task {made['id']}  [in_progress]  fix, priority 0\n  Mend it\n", "  what:\n    first\n    then\n",
        f"; assigned to {other}\n", "  files: src/a.py\n", "  progress, 5 min ago: half way\n",
        "  result: done\n", "  run 12ab34cd: codex, running, ", "its worker has not ended yet; swarm-mcp worker logs 12ab34cd -f\n",
        f"{who} → {other}\n      about {made['id']}\n      please\n",
    ):  # fmt: skip
        assert words in out, (words, out)
    assert re.search(rf"^  asked by {re.escape(who)}, (now|\d+ s ago); ", out, re.MULTILINE), out
    shown = ground.swarm("task", made["id"], "--json", "--as", does["id"]).json
    assert list(shown) == ["task", "runs", "messages"] and shown["task"]["description"] == "first\nthen"
    assert ground.swarm("task", made["id"], "--as", stranger["id"]).code == 1
    assert "no task of this scope" in ground.swarm("task", "nothing").err


def test_all_locks_of_a_session_are_released_by_one_word(ground: Ground):
    me, other = ground.session("1", "me"), ground.session("2", "other")
    for file in ("a", "b/", "c*"):
        ground.lock(me, file)
    ground.swarm("lock", "mine", "--agent", "a1", "--as", me["id"])
    ground.lock(other, "theirs")
    done = ground.swarm("unlock", "--all", "--as", me["id"])
    assert done.code == 0 and done.out.count("unlocked ") == 3
    left = [lock["file"] for lock in ground.swarm("locks", "--json").json]
    assert sorted(left) == [f"{ground.scope}/mine", f"{ground.scope}/theirs"], "an agent's are its own"
    answer = ground.swarm("unlock", "--all", "--agent", "a1", "--as", me["id"], "--json").json
    assert answer == {"ok": True, "files": [f"{ground.scope}/mine"]}
    assert ground.swarm("unlock", "--all", "--as", me["id"]).out == "nothing was locked by this session\n"
    assert ground.swarm("unlock", "x", "--all", "--as", me["id"]).code == 2, "either all or some"


def test_where_nobody_is_status_says_what_to_do(ground: Ground):
    out = ground.swarm("status").out
    assert "Next steps" in out and "swarm-mcp lock FILE" in out
    ground.session("1", "me")
    assert "Next steps" not in ground.swarm("status").out


def test_paths_and_times_are_relative_unless_asked(ground: Ground):
    me = ground.session("1", "me")
    ground.lock(me, "src/f", "why")
    for verb in (["status"], ["locks"], ["why", "src/f"], ["inspect"]):
        out = ground.swarm(*verb).out
        assert "src/f" in out and f"{ground.scope}/src/f" not in out.partition("a write by")[0], out
        assert f"{ground.scope}/src/f" in ground.swarm(*verb, "--absolute").out
    ground.sql("UPDATE context SET created_at = unixepoch() - 300")
    assert "since 5 min ago, " in ground.swarm("why", "src/f").out
    assert "since 20" in ground.swarm("why", "src/f", "--absolute").out

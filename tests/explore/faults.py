"""Defects that are planted into a copy of the installed product, one at a time: each has to be found."""

import importlib.util
import shutil
from pathlib import Path
from typing import NamedTuple

from explore.strangers import STRANGERS

PACKAGES = ("swarm_mcp", "swarm_hook_core")


class Edit(NamedTuple):
    """A text that stands once in a file of the product, and the one in its place."""

    file: str
    before: str
    after: str


class Fault(NamedTuple):
    """A defect, in plain `words`, the edits that bring it about, and the `role` in its way."""

    role: str
    words: str
    edits: tuple[Edit, ...]


STORE, HOOKS = "swarm_mcp/store", "swarm_hook_core"
LOCKS, REFUSALS, DATABASE, RULES = (
    f"{STORE}/locks.py", f"{STORE}/refusals.py", f"{STORE}/database.py", f"{HOOKS}/check/rules.py",
)  # fmt: skip
TOOLS = "swarm_mcp/server/tools"
TRIES, COMMANDS = "swarm_mcp/changes/tries", "swarm_mcp/changes/commands/tries.py"
TOOLS_OF_LOCKS = f"{TOOLS}/locks.py"
IMPORTED = "from swarm_hook_core.state import"


def _one(role: str, words: str, file: str, before: str, after: str) -> Fault:
    return Fault(role, words, (Edit(file, before, after),))


FAULTS = {
    "early_lapse": _one("leases", "a lease ends a second early", f"{STORE}/lock_rows.py",
        "seconds is not None and seconds <= 0", "seconds is not None and seconds <= 1"),
    "late_lapse": _one("leases", "a lease ends a second late", f"{STORE}/lock_rows.py",
        "seconds is not None and seconds <= 0", "seconds is not None and seconds <= -1"),
    "lapse_is_release": _one("leases", "waiters read that a lapsed lock was released", REFUSALS,
        '"the lease of {who} on {it} has lapsed"', '"{who} released it"'),
    "row_stays": _one("locks", "`release` leaves the row", LOCKS,
        'tx.change("DELETE FROM context WHERE id = ?", (lock.id,))', "pass"),
    "forgotten_waiter": _one("locks", "a refused session is not told of a release", LOCKS,
        'if any(lock["some_were_denied"]', 'if reason and any(lock["some_were_denied"]'),
    "told_twice": _one("shares", "a refused session is told of each later release as well", REFUSALS,
        "        forget(tx, instance_id, [denial.path_key for denial in free])\n", ""),
    "false_free": _one("shares", "a file that one of two holders has released counts as free", REFUSALS,
        "    return not theirs\n", "    return True\n"),
    "shared_beside_exclusive": _one("shares", "a writer is let in beside readers", "swarm_mcp/domain.py",
        "return not (mode == SHARED and lock.mode == SHARED)", "return lock.mode != SHARED"),
    "blind_pattern": _one("locks_pattern", "a pattern does not meet the files that it covers", f"{STORE}/lock_request.py",
        "return wildcards.covers(segments_of(right, fold), one)", "return False"),
    "own_names": _one("locks_name", "a named lock holds for its own process alone", f"{STORE}/lock_request.py",
        'return _reach_of_name([f"{one}/{name}" for', 'return _reach_of_name([f"{one}/{name}{os.getpid()}" for'),
    "kept_by_giver": _one("hands_over", "a lock that was handed over stays the giver's", LOCKS,
        "            taker.id, fence, said or", "            giver.id, fence, said or"),
    "stolen_twice": _one("steals", "a stolen lock stays its holder's as well", LOCKS,
        'reactions.end_locks(tx, gone, "stolen", by=instance.id, why=reason)', "pass"),
    "left_locked": _one("leaves", "a session that ends leaves its locks", f"{STORE}/reactions.py",
        "        end_locks(tx, lock_rows.of(tx, gone), reason)\n", "        pass\n"),
    "place_after_grant": _one("waits", "a session that has its lock keeps its place in the line", f"{STORE}/grants.py",
        "        lock_listing.give_up(tx, wanted.ticket)\n    if around", "        pass\n    if around"),
    "exact_release_gives_up": _one("locks_by_number", "a grant is released by number in its own opening alone", LOCKS,
        "        if released:\n            return released\n\n    reach", "        return released\n\n    reach"),
    "no_look_after_commit": _one("keeps_lock", "a lock is not compared with a write that began meanwhile", LOCKS,
        "    if not granted or not has_turn_files():\n        return False\n", "    return False\n"),
    "turns_overlooked": Fault("keeps_lock", "a lock is given without a look at the files of turns", (
        Edit(LOCKS, f"{IMPORTED} has_turn_files", "has_turn_files = lambda: False"),
        Edit(f"{STORE}/lock_finder.py", f"{IMPORTED} TURN_SECONDS, has_turn_files",
            f"{IMPORTED} TURN_SECONDS\nhas_turn_files = lambda: False"))),
    "turn_stays": _one("edits_and_ends", "the end of a turn is not noted", f"{HOOKS}/traces/turn_files.py",
        "    for one in ends.values():\n        _note", "    for one in ():\n        _note"),
    "look_before_note": _one("edits", "a call looks at others' turns before it notes its own files",
        f"{HOOKS}/traces/turn_files.py", "        process.demand_waiting()\n        files = {path: key_of(path)",
        "        before = self._found()\n        self._found = lambda: before\n        files = {path: key_of(path)"),
    "check_before_note": Fault("edits", "locks are looked for before a call notes its files", (
        Edit(RULES, '    Rule(turn_files, part="traces", unknown=OTHERS_CHANGES),\n', ""),
        Edit(RULES, '    Rule(uncommitted_work, part="traces", unknown=OTHERS_CHANGES),\n', '    Rule(uncommitted_work,'
            ' part="traces", unknown=OTHERS_CHANGES),\n    Rule(turn_files, part="traces", unknown=OTHERS_CHANGES),\n'))),
    "no_second_look": _one("edits", "a session that is alone does not look once more behind its note", RULES,
        "    _leave(check, trail)\n    try:\n        if not trail.has_company()",
        "    _leave(check, trail)\n    return True\n    try:\n        if not trail.has_company()"),
    "noted_twice": _one("edits", "a note is not taken back when the call is looked at again", RULES,
        "        trail.withdraw()\n", "        pass\n"),
    "long_wait": _one("edits", "a write waits for another one as long as that takes", f"{HOOKS}/traces/meetings.py",
        "WAIT_SECONDS = 2.0", "WAIT_SECONDS = 60.0"),
    "no_wait": _one("overwrites", "a write does not wait for another one that is pending", f"{HOOKS}/traces/meetings.py",
        "WAIT_SECONDS = 2.0", "WAIT_SECONDS = 0.0"),
    "formatter_lands": _one("edits_formatted", "a formatter's change counts as another session's pending write",
        f"{HOOKS}/traces/meetings.py", "        return changed_ns > 0 and explains(", "        return False and explains("),
    "shell_appends": _one("appends_by_shell", "`>>` in a command counts as no write", f"{HOOKS}/shell/statements.py",
        "        else:\n            self._write(one, target, by)\n",
        '        elif kind != ">>":\n            self._write(one, target, by)\n'),
    "relay_lets_pass": _one("edits_through_relay", "the relay for an editor passes what a lock denies",
        "swarm_mcp/agents/acp_guard.py", "            if denial is not None:\n                core.note_denial",
        "            if denial is not None and denial.loss is not None:\n                core.note_denial"),
    "commit_passes": _one("commits", "the guard passes commits of locked files", "swarm_mcp/guard/check.py",
        "others = [row for row in rows if not is_mutex(row.file) and not _is_own(row, me)]", "others = []"),
    "mail_twice": _one("messages", "a message is stored twice", f"{STORE}/reactions.py",
        "        return messages.post(tx, sender.scope, sender.id, recipient_id, content)", "        messages.post("
        "tx, sender.scope, sender.id, recipient_id, content)\n"
        "        return messages.post(tx, sender.scope, sender.id, recipient_id, content)"),
    "mail_again": _one("reads_mail", "a message that was read stays unread", f"{STORE}/messages.py",
        'tx.change("UPDATE messages SET read = 1 WHERE id = ?", (message_id,))',
        'tx.change("UPDATE messages SET read = 0 WHERE id = ?", (message_id,))'),
    "mail_unclaimed": _one("reads_beside", "two processes of a session are given one message", f"{STORE}/messages.py",
        "    for row in rows:\n        tx.change(\n            \"INSERT OR REPLACE INTO swarm_deliveries",
        "    for row in ():\n        tx.change(\n            \"INSERT OR REPLACE INTO swarm_deliveries"),
    "task_race": Fault("tasks", "a task is claimed without a second look", (
        Edit(f"{STORE}/task_requests.py",
            "if task and (task.status, task.assignee) == (found[0].status, found[0].assignee):", "if task:"),
        Edit(f"{STORE}/task_life.py", "    why = refusal(task, target, how, actor)\n", '    why = ""\n'))),
    "task_goes_on": _one("tasks", "the end of a task is said, and not stored", f"{STORE}/task_life.py",
        '    changed = {"status": target, **columns}',
        '    changed = {"status": task.status if target in TERMINAL else target, **columns}'),
    "lost_value": _one("values", "a list is read before its transaction begins", f"{STORE}/values.py",
        "    with db.writing() as tx:\n        row = _owned(tx, instance, key)\n        text, length",
        "    row = _owned(db, instance, key)\n    with db.writing() as tx:\n        text, length"),
    "restore_keeps_nothing": _one("edits_and_restores", "a restore keeps no copy of what it replaces",
        "swarm_mcp/locking/restore.py", "            self.kept_now = self._keep_present(force)\n", "            pass\n"),
    "eio_is_success": _one("values", "an error of the disk at a commit counts as success", DATABASE,
        "            raise self._unavailable(error) from error\n        return True\n",
        "            return True\n        return True\n"),
    "short_write": _one("edits", "a write that took a part of the data counts as whole", f"{HOOKS}/state.py",
        "    while rest:\n        rest = rest[os.write(handle, rest) :]\n", "    os.write(handle, rest)\n"),
    "merge_drops": _one("rewrites", "a text is said to be merged, and is not", f"{HOOKS}/traces/whole_writes.py",
        "    return Merge(path, now, new, merged, None)", "    return Merge(path, now, new, new, None)"),
    "stale_view": _one("edits_by_checker", "a checker keeps its first view of the store", f"{HOOKS}/lookup/glance.py",
        "    _kept = _Kept(path, connect_read_only(driver, path, BUSY_SECONDS))\n",
        "    _kept = _Kept(path, connect_read_only(driver, path, BUSY_SECONDS))\n"
        '    _kept.connection.execute("BEGIN")\n'),
    "commit_takes_all": _one("edits_and_commits", "a commit takes others' lines along",
        "swarm_mcp/changes/commit/parts.py", "own = [group for group in groups if group.is_own]", "own = groups"),
    "commit_looks_once": _one("edits_and_commits", "a file that changes while it is committed is not noticed",
        "swarm_mcp/changes/commit/__init__.py", "            raise Moved  # its new lines", "            pass  # its new lines"),
    "look_finds_nobody": _one("locks_by_tool", "`get_file_lock` finds no holder", TOOLS_OF_LOCKS,
        'active = call.store.locks.active_on(path, token(row.label or "", "identity")) or {}', "active = {}"),
    "unlock_said": _one("waits_by_tool", "`unlock_file` only says so", TOOLS_OF_LOCKS,
        'gone = call.store.locks.release(row, arguments["file"], arguments.get("agent_id", ""), arguments.get("fence"))',
        "gone = 1"),
    "lost_answer": _one("cancels_wait", "a lock that a cancelled call was given stays", TOOLS_OF_LOCKS,
        "return answer._replace(on_lost=lambda store: wait.put_back(store, taken))", "return answer"),
    "sent_said": _one("mails_by_tool", "`send_message` only says so", f"{TOOLS}/messages.py",
        'call.store.messages.send(me, recipient, arguments["content"])', "pass"),
    "poll_again": _one("polls", "a delivered message stays unread", "swarm_mcp/server/tool.py",
        '"on_sent": lambda store: store.messages.acknowledge(ids),', '"on_sent": lambda store: None,'),
    "other_end": _one("tasks_by_tool", "`update_task` ends a task in another way than it says", f"{TOOLS}/tasks.py",
        'call.store.tasks.end(me, arguments["task_id"], arguments["status"]', 'call.store.tasks.end(me,'
        ' arguments["task_id"], "failed"'),
    "append_by_steps": _one("values_by_tool", "`kv_append` reads and writes the list in two steps", f"{TOOLS}/kv.py",
        '        length = call.store.kv.append(row, key, arguments["value"])\n', "        import json\n"
        "        kept = call.store.kv.get(row.scope, key)\n"
        '        items = [*json.loads(kept.value if kept else "[]"), json.loads(arguments["value"])]\n'
        "        call.store.kv.put(row, key, json.dumps(items))\n        length = len(items)\n"),
    "loss_is_release": _one("follows_team", "a server's loss counts as the release of others' locks",
        "swarm_mcp/team/mirror.py", 'if answer["grace"]:  # others', "if not sent:  # others"),
    "taken_along": _one("tries", "a try on the own lines takes others' lines of the same file along", f"{TRIES}/picture.py",
        "if is_all and (pieces or has_whole) and is_same_mode:", "if pieces and is_same_mode:"),
    "doubt_left_out": _one("tries", "a try leaves out lines that may be the session's", COMMANDS,
        "return lambda group: not group.isdisjoint(chosen)", "return lambda group: group <= chosen"),
    "never_cleared": _one("tries", "the files of a killed try are not removed", f"{TRIES}/running.py",
        "            self._clear()  # the last try was killed\n", "            pass\n"),
    "view_kept": _one("tries", "files that the command of a try wrote are there in the next try", f"{TRIES}/running.py",
        "ignored = self._below()[1]", "ignored = set(self._below()[0])"),
    "folder_shared": _one("tries", "two tries are made in one folder", f"{TRIES}/folder.py",
        "                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)\n", "                    pass\n"),
    "change_overlooked": _one("tries", "a try does not say that a file changed meanwhile", f"{TRIES}/picture.py",
        "        found |= {name for name, state in self.states.items() if self._state(name) != state}\n", ""),
    "blamed_while_moving": _one("tries", "the search for authors goes on over a file that changes", f"{TRIES}/trial.py",
        "    if result.changed:\n        raise _Moving(listed(result.changed))\n", ""),
    "innocent_blamed": _one("tries", "the search for authors drops the lines that make a command fail",
        f"{TRIES}/trial.py", "if self._outcome(left - {owner}) == SAME:", "if self._outcome(left - {owner}) == GREEN:"),
    "doubt_unnamed": _one("tries", "a try does not name doubtful lines", f"{TRIES}/trial.py",
        "        if doubtful:\n", "        if doubtful and not inside:\n"),
    "view_is_checkout": _one("tries", "the content of a try is written into the checkout", f"{TRIES}/folder.py",
        "put(one.source, os.path.join(root, one.name),", "put(one.source, os.path.join(self.tree.top, one.name),"),
    "no_transaction": Fault("messages", "statements of the store are no transaction", (
        Edit(DATABASE, "        database = self.database\n        now = time.monotonic()\n",
            "        database = self.database\n        database.changed = set()\n        return database\n"
            "        now = time.monotonic()\n"),
        Edit(DATABASE, "        database = self.database\n        try:\n            database.note_change()\n",
            "        return None\n        try:\n            database.note_change()\n"))),
    "read_before_lock": _one("locks", "a transaction reads before it has the store's lock", DATABASE,
        'not database.try_to("BEGIN IMMEDIATE")', 'not database.try_to("BEGIN")'),
    "early_answer": Fault("messages", "a change is acknowledged before it is committed", (
        Edit(DATABASE, 'if kind is None and not database.try_to("COMMIT"):', "if False:"),
        Edit(DATABASE, "            if database.connection.in_transaction:\n                database.connection",
            "            if kind is not None:\n                database.connection"),
        Edit(DATABASE, "        database = self.database\n        now = time.monotonic()\n", "        database ="
            " self.database\n        if database.connection.in_transaction:\n"
            '            database.try_to("COMMIT")\n        now = time.monotonic()\n'),
        Edit(DATABASE, '        """Close the file. Safe to call twice."""\n', '        if self.connection.in_transaction:\n'
            '            self.try_to("COMMIT")\n'))),
    "no_sync": _one("messages", "the store is not synced before a checkpoint", DATABASE,
        'connection.execute("PRAGMA synchronous = NORMAL")', 'connection.execute("PRAGMA synchronous = OFF")'),
}  # fmt: skip

FAULTS |= {name: _one(*row) for name, row in STRANGERS.items()}


def planted(name: str, folder: Path) -> Path:
    """Put a copy of the installed product with a fault into `folder`, and return it: it goes before all packages."""
    for package in PACKAGES:
        found = importlib.util.find_spec(package)
        assert found is not None and found.submodule_search_locations
        shutil.copytree(found.submodule_search_locations[0], folder / package)
    for edit in FAULTS[name].edits:
        file = folder / edit.file
        text = file.read_text(encoding="utf-8")
        assert text.count(edit.before) == 1, f"{edit.before!r} stands {text.count(edit.before)} times in {edit.file}"
        file.write_text(text.replace(edit.before, edit.after), encoding="utf-8")
    return folder

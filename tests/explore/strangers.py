"""Faults by a reader of the product alone, without a look at the roles, their judge, and the faults before.

Each is a mistake that a later change may well make: the role in its way, the harm to a user, the file, the text
that stands there once, and the one in its place.
"""

STORE, HOOKS, CHANGES = "swarm_mcp/store", "swarm_hook_core", "swarm_mcp/changes"
LOCKS, ROWS, LINE, REACTIONS = (f"{STORE}/{name}.py" for name in ("locks", "lock_rows", "lock_listing", "reactions"))
TURNS, UNDO = f"{HOOKS}/traces/turn_files.py", f"{CHANGES}/undoing.py"

STRANGERS = {
    # Leases
    "revived": (
        "lapses",
        "a lock that lapsed is held again after its session's next sign of life, though others have written the file",
        REACTIONS,
        "    lapse_locks(tx, [row for row in rows if lock_rows.has_lapsed(tx, row)])\n",
        "",
    ),
    "wall_lease": (
        "leases",
        "a clock that is set forward ends a lease",
        f"{HOOKS}/clock.py",
        "        return renewed + ttl - now()",
        "        return wall_until - wall_now",
    ),
    "lapses_at_once": (
        "renews",
        "a lock that `renew --ttl` gives a lease is gone at once",
        LOCKS,
        '"UPDATE context SET ttl = ?, renewed = ?, booted = ?, wall_until = ? WHERE id = ?",\n'
        "                (ttl, clock.now(), clock.boot(tx.here), time.time() + ttl, mine[0].id),",
        '"UPDATE context SET ttl = ? WHERE id = ?",\n                (ttl, mine[0].id),',
    ),
    "given_for_good": (
        "hands_over_leased",
        "a lock with a lease never lapses once it was handed over",
        LOCKS,
        '" renewed = ?, booted = ?, wall_until = ?, warned = NULL WHERE id = ?",',
        '" ttl = NULL, renewed = ?, booted = ?, wall_until = ?, warned = NULL WHERE id = ?",',
    ),
    "lapse_untold": (
        "lapses",
        "a session is not told that another process has removed its lapsed lock",
        LOCKS,
        "    reactions.lapse_locks(tx, [row for row in left if row not in ended])",
        '    reactions.end_locks(tx, [row for row in left if row not in ended], "lapsed")',
    ),
    # Grants
    "shared_replaces": (
        "shares",
        "the second reader of a file takes the first one's lock away",
        ROWS,
        'f"INSERT OR IGNORE INTO context',
        'f"INSERT OR REPLACE INTO context',
    ),
    "reader_behind_reader": (
        "shares_in_line",
        "a reader waits behind another reader in the line",
        LINE,
        "        if row.mode == SHARED and wanted.mode == SHARED:\n            continue\n",
        "",
    ),
    "upgrade_beside_readers": (
        "upgrades",
        "a reader becomes the only writer while others read",
        LOCKS,
        "        for row in rows:\n            own = (",
        "        if any(row.instance_id == instance.id and lock_finder.is_same(row, reach) for row in rows):\n"
        "            continue\n        for row in rows:\n            own = (",
    ),
    "folder_lets_pass": (
        "locks_folder",
        "a hook lets a write pass below a locked folder",
        f"{HOOKS}/lookup/__init__.py",
        "self.reader.locks_on([*keys, *over]) + ",
        "self.reader.locks_on(keys) + ",
    ),
    "logical_is_local": (
        "locks_in_trees",
        "a file that is locked in every work tree is granted in another one",
        ROWS,
        "    if reach.names or _takes_part(tx, tree):\n",
        "    if reach.names:\n",
    ),
    "fence_reused": (
        "locks",
        "the number of a grant is given once more after its release",
        ROWS,
        'tx.column("UPDATE swarm_fence SET last = last + 1 RETURNING last")',
        'tx.column("SELECT coalesce(max(fence), 0) + 1 FROM context")',
    ),
    "fence_given_along": (
        "hands_over",
        "a lock keeps its number when it is handed over: the giver's late writes look like the taker's",
        LOCKS,
        "    fence = lock_rows.next_fence(tx)\n",
        "    fence = lock.fence\n",
    ),
    # Releases and ends
    "frees_others": (
        "frees_unheld",
        "a release ends the lock of any session",
        LOCKS,
        "WHERE c.type = 'lock' AND +c.instance_id = ?\"",
        "WHERE c.type = 'lock' AND (+c.instance_id = ? OR c.agent IS NULL)\"",
    ),
    "old_fence_frees": (
        "frees_by_old_number",
        "a release with the number of an earlier grant ends the present one",
        LOCKS,
        "(? IS NULL OR c.fence = ?)",
        "(? IS NULL OR c.fence >= ?)",
    ),
    "end_keeps_shared": (
        "leaves_shared",
        "the shared locks of a session that has ended stay",
        REACTIONS,
        "end_locks(tx, lock_rows.of(tx, gone), reason)",
        "end_locks(tx, [lock for lock in lock_rows.of(tx, gone) if not lock.mode], reason)",
    ),
    "hold_outlives": (
        "holds_as_process",
        "a `hold` that was killed keeps its lock",
        f"{HOOKS}/lookup/__init__.py",
        "    return bool(pid) and place == _place(here) and gone(here, pid, started, here)",
        "    return False",
    ),
    "killed_stays": (
        "keeps_as_client",
        "a client that was killed in a turn keeps its locks",
        f"{HOOKS}/process.py",
        '            left = gone(host or "", evidence["client_pid"]',
        '            left = evidence["state"] == "idle" and gone(host or "", evidence["client_pid"]',
    ),
    "task_frees_all": (
        "ends_task_with_locks",
        "the end of a task frees all that its session holds",
        f"{STORE}/tasks.py",
        "OR task_id IS NULL AND (file IN",
        "OR task_id IS NULL OR (file IN",
    ),
    "agent_frees_session": (
        "ends_agent",
        "the end of a subagent frees the locks of its session",
        LOCKS,
        '"AND c.instance_id = ? AND c.agent = ?", (instance.id, agent)',
        '"AND c.instance_id = ? AND (c.agent = ? OR c.agent IS NULL)", (instance.id, agent)',
    ),
    # The line
    "overtaken": (
        "waits",
        "a newcomer gets a free file before those that wait for it",
        LOCKS,
        "        if refusal is None and around.waiters:\n",
        "        if refusal is None and around.waiters and wanted.ticket:\n",
    ),
    "dead_waiter": (
        "waits",
        "a waiter that was killed keeps all others from a free file",
        LINE,
        "    if gone(row.host, row.pid, row.start, tx.here):\n        return True\n",
        "",
    ),
    "endless_circle": (
        "circles",
        "two sessions wait for each other without an end",
        f"{STORE}/grants.py",
        "        if holder == start:\n",
        "        if holder == start and len(path) > 2:\n",
    ),
    # Words to those that were refused, or robbed
    "forgotten_while_held": (
        "shares",
        "a refused session is not told if another had the file in between",
        f"{STORE}/refusals.py",
        "[denial.path_key for denial in free]",
        "[denial.path_key for denial in denials]",
    ),
    "death_untold": (
        "joins_late",
        "no session is told that the file of a dead one is free",
        f"{STORE}/refusals.py",
        "        if instance and told:\n",
        '        if instance and told and reason != "reclaimed":\n',
    ),
    "silent_theft": (
        "steals",
        "the robbed holder is not told",
        LOCKS,
        "    if holder is None or holder.runtime == REMOTE:  # on its own machine",
        "    if holder is None or forced or holder.runtime == REMOTE:  # on its own machine",
    ),
    "steals_one": (
        "steals",
        "a theft from two readers leaves one of them the file",
        LOCKS,
        'reactions.end_locks(tx, gone, "stolen"',
        'reactions.end_locks(tx, gone[:1], "stolen"',
    ),
    # Files for a turn
    "late_turn_end": (
        "ends_old_turn",
        "the end of a turn frees a file of the next one, if it comes late",
        TURNS,
        "        and (not over_ns or one.written <= over_ns)\n    }\n    for one in ends.values():\n"
        "        _note(one, entry(over_ns or now_ns,",
        "    }\n    for one in ends.values():\n        _note(one, entry(now_ns,",
    ),
    "denied_keeps_file": (
        "locks_and_edits",
        "a call that a lock denies keeps its file for the turn, against the lock's holder",
        f"{HOOKS}/check/rules.py",
        "(merge, count, drop_plan, give_back, watch_command",
        "(merge, count, drop_plan, watch_command",
    ),
    "turn_from_first_write": (
        "edits_for_long",
        "a file is free ten minutes after the first write of a turn, not the last",
        TURNS,
        "            one.written = max(one.written, noted.at_ns)\n",
        "",
    ),
    # Uncommitted changes
    "seen_by_time": (
        "looks_and_overwrites",
        "a look at a file counts for a write that came after it",
        f"{HOOKS}/traces/seen.py",
        "        return state == NO_FILE\n",
        "        return entry.at_ns <= last.at_ns\n",
    ),
    "torn_line": (
        "edits_behind_a_tear",
        "the note behind one that a full disk has torn is lost, and the write with it",
        f"{HOOKS}/traces/__init__.py",
        'write_all(handle, b"\\n" + begin + b"".join(lines))',
        'write_all(handle, begin + b"".join(lines))',
    ),
    "unreadable_is_empty": (
        "overwrites_in_doubt",
        "a disk error in notes of another session counts as no notes",
        f"{HOOKS}/traces/journal.py",
        '    except FileNotFoundError:\n        return b""',
        '    except OSError:\n        return b""',
    ),
    "persons_save": (
        "overwrites_later",
        "a whole write goes over a person's save",
        f"{HOOKS}/check/rules.py",
        "        if not any(how != EDIT and os.path.lexists(os.path.join(*place))"
        " for *place, how in check.writes.changes):\n            return None\n",
        "        return None\n",
    ),
    "beside_removal": (
        "writes_below",
        "a file is written into a folder that another session is about to remove",
        f"{HOOKS}/traces/others.py",
        "        for entry, deed, place in self._clearings:\n",
        "        for entry, deed, place in ():\n",
    ),
    "second_file_passes": (
        "patches",
        "of a patch of several files, only the first one is compared with the locks",
        f"{HOOKS}/collisions.py",
        "range(len(targets))[:FIRST_TARGETS]",
        "range(len(targets))[:1]",
    ),
    "moved_file_passes": (
        "moves_over",
        "a patch moves a file over one that is locked",
        f"{HOOKS}/patch.py",
        "for _header, path in _named(text)) if path",
        "for header, path in _named(text) if header != _MOVE_TO) if path",
    ),
    "own_write_blamed": (
        "runs_idly",
        "a command is blamed for the holder's own write meanwhile",
        f"{HOOKS}/check/rules.py",
        "    if check.is_question or not check.session.instance_id or not is_watching():\n",
        "    if check.is_question or not check.session.instance_id or is_watching():\n",
    ),
    # Undo and restore
    "undo_over_change": (
        "edits_and_undoes",
        "an undo replaces a file that was changed after it was planned",
        f"{CHANGES}/writing.py",
        "            if state_of(name, folder) != state:\n",
        "            if content is None and state_of(name, folder) != state:\n",
    ),
    "half_undone": (
        "edits_two_and_undoes",
        "an undo that meets a disk error leaves half of the files undone",
        f"{CHANGES}/writing.py",
        "        _put_back(written)\n        record.forget()\n        with",
        "        record.forget()\n        with",
    ),
    "never_put_right": (
        "edits_two_and_undoes",
        "an undo that was killed stays half done",
        f"{CHANGES}/writing.py",
        "    left = _put_back(record.files)\n",
        "    left: list[str] = []\n",
    ),
    "undo_unlocked": (
        "edits_and_undoes",
        "an undo writes files that another session has locked",
        UNDO,
        "            self._take(holder, agent, files, whose)\n            yield\n",
        "            yield\n",
    ),
    "undo_beside_write": (
        "edits_and_undoes",
        "an undo changes a file that another session is about to write",
        UNDO,
        "            for entry in entries:\n                waits",
        "            for entry in entries[:0]:\n                waits",
    ),
    "restore_in_place": (
        "restores_on_full_disk",
        "a restore that is killed leaves half a file",
        "swarm_mcp/locking/restore.py",
        '    scratch = f"{name}.{os.urandom(4).hex()}.swarm"\n'
        "    handle = open_private(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder=folder)",
        "    scratch = name\n    handle = open_private(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, folder=folder)",
    ),
    "state_in_place": (
        "edits_two_and_undoes",
        "a hook that is killed leaves half a file of swarm's own",
        f"{HOOKS}/state.py",
        '    scratch = f"{path}.{os.getpid()}.tmp"',
        "    scratch = path",
    ),
    # Mail, tasks, values
    "mail_lost": (
        "reads_mail",
        "mail counts as read before it is in an answer: a kill there loses it",
        f"{STORE}/messages.py",
        "            (row.id, tx.here, pid, started, now),\n        )\n",
        "            (row.id, tx.here, pid, started, now),\n        )\n"
        '        tx.change("UPDATE messages SET read = 1 WHERE id = ?", (row.id,))\n',
    ),
    "mail_stuck": (
        "reads_beside",
        "mail that a killed process had taken is not delivered for two minutes",
        f"{STORE}/messages.py",
        "standing[claimant] = claimant == mine or not gone(*claimant, here)",
        "standing[claimant] = True",
    ),
    "mail_to_nobody": (
        "messages_late",
        "mail to a session that has gone counts as sent",
        f"{STORE}/reactions.py",
        "        recipient = session_table.live(tx, recipient_id)",
        "        recipient = session_table.get(tx, recipient_id)",
    ),
    "task_kept": (
        "claims_and_leaves",
        "the task of a session that has ended cannot be claimed by any other",
        REACTIONS,
        '    if tx.has("tasks"):\n',
        '    if tx.has("tasks") and reason == "reclaimed":\n',
    ),
    "done_by_anybody": (
        "ends_others_tasks",
        "a session that has lost its task to another still ends it",
        f"{STORE}/task_life.py",
        "    if who == ASSIGNEE and task.assignee != actor:\n",
        '    if who == ASSIGNEE and how == "claim" and task.assignee != actor:\n',
    ),
    "begins_early": (
        "tasks_in_order",
        "a task begins when one of those that it waits for is done",
        f"{STORE}/task_life.py",
        "    return Dependencies(all(known",
        "    return Dependencies(not needed or any(known",
    ),
    "plan_taken_over": (
        "plans",
        "a second planner takes the plan from the first",
        f"{STORE}/values.py",
        "    if plans(row.label) and not plan_owner(tx, row.scope):\n",
        "    if plans(row.label):\n",
    ),
    # Commits
    "stale_commit": (
        "lapses_and_commits",
        "a session commits a file that others have had since its own lock on it lapsed",
        "swarm_mcp/guard/check.py",
        "            lapsed = store.leases.overtaken(me.id)\n",
        "            lapsed = []\n",
    ),
    "commit_beside_reader": (
        "commits",
        "a commit passes beside a shared lock of another session",
        "swarm_mcp/guard/check.py",
        "        others = [row for row in rows if not is_mutex(row.file) and not _is_own(row, me)]",
        "        others = [row for row in rows if not row.mode and not is_mutex(row.file) and not _is_own(row, me)]",
    ),
    "commit_over_head": (
        "commits_by_hand",
        "a commit takes the place of one that came a moment before",
        f"{CHANGES}/commit/landing.py",
        '"HEAD", new, old or "0" * len(new)]',
        '"HEAD", new]',
    ),
}

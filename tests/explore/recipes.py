"""The explored schedules: meetings of processes, their level, and the accidents. A seed chooses one of each."""

import random
from typing import NamedTuple

from explore.world import ACTIONS, FAIL, JUMP, KILL, PAUSE, SHORT, SWITCH, Decision


class Plan(NamedTuple):
    """One schedule to run: the roles of its processes, and their accidents."""

    roles: tuple[str, ...]
    level: str = "keep"
    seed: int = 0
    chances: tuple[int, ...] = ()  # of each action at a stop, of 65,536
    most: tuple[int, ...] = ()  # of each action
    has_power_cuts: bool = (
        False  # a kill is a power cut: all processes end, and writes that were not synced may be lost
    )
    has_old_turn: bool = False  # a session that has gone has written the file in a turn without end
    decisions: tuple[Decision, ...] | None = None  # None: by the seed


MEETINGS = (
    (("locks", "locks"), "keep"),
    (("edits", "edits"), "turn"),
    (("edits", "edits"), "keep"),
    (("messages", "reads_mail"), "keep"),
    (("overwrites", "edits"), "keep"),
    (("keeps_lock", "edits"), "keep"),
    (("tasks", "tasks"), "keep"),
    (("edits", "edits_and_ends"), "turn"),
    (("overwrites", "edits"), "turn"),
    (("locks", "locks", "keeps_lock"), "keep"),
    (("keeps_lock", "edits"), "turn"),
    (("overwrites", "overwrites"), "keep"),
    (("edits_after_a_cut", "overwrites_later"), "keep"),
    (("edits_unanswered", "overwrites"), "keep"),
    (("edits_unanswered", "overwrites_later"), "keep"),
    (("edits_after_a_cut", "edits_unanswered"), "turn"),
    (("edits_formatted", "saves"), "keep"),
    (("builds", "saves"), "keep"),
    (("edits_and_sweeps", "saves"), "keep"),
    (("edits_and_sweeps", "edits_formatted"), "keep"),
    (("edits_and_undoes", "saves"), "keep"),
    (("edits_and_undoes", "edits", "saves"), "keep"),
    (("edits_and_restores", "saves"), "keep"),
    (("edits_and_undoes", "edits_and_restores"), "keep"),
    (("builds", "edits_and_sweeps", "saves"), "keep"),
    (("holds", "waits"), "keep"),
    (("waits", "waits", "holds"), "keep"),
    (("shares", "shares"), "keep"),
    (("locks_pattern", "holds"), "keep"),
    (("locks_name", "locks_name"), "keep"),
    (("locks_in_trees", "locks_in_trees"), "keep"),
    (("leases", "looks"), "keep"),
    (("leases", "asks_again"), "keep"),
    (("hands_over", "takes_over", "holds"), "keep"),
    (("hands_over", "waits"), "keep"),
    (("holds", "steals"), "keep"),
    (("steals", "edits"), "keep"),
    (("asks_again", "asks_again"), "keep"),
    (("leaves", "asks_again"), "keep"),
    (("leaves", "edits"), "turn"),
    (("locks_by_number", "asks_again"), "keep"),
    (("values", "values"), "keep"),
    (("messages", "reads_mail", "messages"), "keep"),
    (("messages", "reads_mail", "reads_beside"), "keep"),
    (("tasks", "tasks", "leaves"), "keep"),
    (("shares", "shares", "asks_again"), "keep"),
    (("waits", "keeps_lock", "locks"), "keep"),
    (("edits_and_ends", "locks"), "turn"),
    (("holds", "commits"), "keep"),
    (("holds", "looks", "locks"), "keep"),
    (("holds", "edits_through_relay"), "keep"),
    (("edits_through_relay", "edits"), "turn"),
    (("holds", "appends_by_shell"), "keep"),
    (("rewrites", "edits"), "keep"),
    (("rewrites", "rewrites"), "keep"),
    (("rewrites", "saves"), "keep"),
    (("rewrites", "edits"), "turn"),
    (("edits_by_checker", "edits"), "turn"),
    (("edits_by_checker", "holds"), "keep"),
    (("edits_by_checker", "overwrites"), "keep"),
    (("edits_and_commits", "edits_and_commits"), "keep"),
    (("edits_and_commits", "saves"), "keep"),
    (("edits_and_commits", "edits_and_commits", "edits"), "turn"),
    (("edits_and_commits", "edits_and_undoes"), "keep"),
    (("edits_and_commits", "commits_by_hand"), "keep"),
    (("follows_team", "keeps_asking"), "keep"),
    (("follows_team", "asks_again", "edits"), "keep"),
    (("follows_team", "locks_by_tool"), "keep"),
    (("locks_by_tool", "holds"), "keep"),
    (("locks_by_tool", "edits"), "turn"),
    (("waits_by_tool", "waits", "locks_by_tool"), "keep"),
    (("cancels_wait", "holds", "waits"), "keep"),
    (("mails_by_tool", "polls", "reads_beside"), "keep"),
    (("tasks_by_tool", "tasks"), "keep"),
    (("values_by_tool", "values"), "keep"),
    (("locks_folder", "edits"), "keep"),
    (("edits_and_ends", "ends_old_turn", "edits"), "turn"),
    (("holds", "shares_in_line", "shares_again"), "keep"),
    (("upgrades", "shares"), "keep"),
    (("holds", "frees_unheld"), "keep"),
    (("frees_by_old_number", "looks"), "keep"),
    (("leaves_shared", "shares"), "keep"),
    (("circles", "circles"), "keep"),
    (("ends_agent", "looks"), "keep"),
    (("renews", "looks"), "keep"),
    (("lapses", "looks"), "keep"),
    (("lapses", "looks", "holds_late"), "keep"),
    (("lapses_and_commits", "holds_late"), "keep"),
    (("hands_over_leased", "sleeps", "looks"), "keep"),
    (("keeps_as_client", "asks_again"), "keep"),
    (("holds_as_process", "asks_again"), "keep"),
    (("holds", "patches"), "keep"),
    (("holds", "moves_over"), "keep"),
    (("edits_for_long", "edits_late"), "turn"),
    (("tasks_in_order", "tasks"), "keep"),
    (("ends_task_with_locks", "tasks"), "keep"),
    (("tasks", "ends_others_tasks"), "keep"),
    (("claims_and_leaves", "tasks"), "keep"),
    (("plans", "plans"), "keep"),
    (("messages", "leaves"), "keep"),
    (("shares", "commits"), "keep"),
    (("shares", "shares", "steals"), "keep"),
    (("overwrites_later", "saves"), "keep"),
    (("shares", "shares", "locks"), "keep"),
    (("waits", "holds", "locks"), "keep"),
    (("looks_and_overwrites", "edits"), "keep"),
    (("edits_two_and_undoes", "saves"), "keep"),
    (("edits_and_undoes", "holds"), "keep"),
    (("edits_and_undoes", "overwrites_later"), "keep"),
    (("locks_and_edits", "runs_idly"), "keep"),
    (("keeps_as_client", "locks_later", "joins_late"), "keep"),
    (("messages_late", "keeps_as_client"), "keep"),
    (("edits_behind_a_tear", "overwrites_later"), "keep"),
    (("edits", "overwrites_in_doubt"), "keep"),
    (("removes_folder", "writes_below"), "keep"),
    (("restores_on_full_disk", "saves"), "keep"),
    (("locks_and_edits", "edits"), "turn"),
    (("tries", "edits"), "keep"),
    (("tries", "saves"), "keep"),
    (("tries", "holds"), "keep"),
    (("tries", "edits_and_commits"), "keep"),
    (("tries", "tries"), "keep"),
    (("tries", "builds"), "keep"),
    (("tries", "appends_by_shell"), "keep"),
    (("tries", "edits", "saves"), "turn"),
)
# Accidents beside switches: those of a meeting's schedules, in turn.
WEATHERS = ((), (KILL,), (FAIL, SHORT), (), (PAUSE,), (KILL,), (), (JUMP,), (KILL,), (FAIL, SHORT), (), (SHORT,))
SWITCHES = (300, 600, 1500, 3000, 6000, 12000, 30000)
# Chances of 65,536 at a stop: once in some 100 stops; a kill in 300 of the store, or 40 others.
RARE = {KILL: 200, FAIL: 200, PAUSE: 600, JUMP: 600}
SHORTS = 12000, 40  # chance of a write, and most of them: it is no failure, so there may be many


def plan(seed: int) -> Plan:
    """Return the plan that a seed stands for."""
    choose = random.Random(seed)
    roles, level = MEETINGS[seed % len(MEETINGS)]
    weather = WEATHERS[(seed // len(MEETINGS) + seed % len(MEETINGS)) % len(WEATHERS)]
    has_old_turn = level == "turn" and choose.random() < 0.4
    has_power_cuts = weather == (KILL,) and choose.random() < 0.3
    chances, most = [0] * len(ACTIONS), [0] * len(ACTIONS)
    chances[SWITCH], most[SWITCH] = choose.choice(SWITCHES), 400
    for action in weather:
        if action == SHORT:
            chances[action], most[action] = SHORTS
        else:  # two jumps of the clock could end a session
            chances[action], most[action] = RARE[action], 1 if action == JUMP else choose.choice((1, 1, 2))
    whole = Plan(roles, level, seed, tuple(chances), tuple(most))
    return whole._replace(has_power_cuts=has_power_cuts, has_old_turn=has_old_turn)

"""The intended differences between this coordinator and the recorded one, call by call.

`where` is a glob over ``<number of the call> <who> <tool>`` or ``<number of the run> <arguments>``, `what` one over the
differences that `captures.differences` finds there. An unexplained difference fails the conformance tests, and so does
an entry here without a difference.
"""

from typing import NamedTuple


class Deviation(NamedTuple):
    """One difference that is meant to be."""

    where: str
    what: str
    because: str


# Calls that take something from a live session. No agent may do that by a tool here, with `force` either: the call is
# refused twice, and then a person does the same in a terminal.
PERSONS_CALLS = {116: ["deregister", "--as", "<id C>", "--force"]}
# Runs that need `force` here: first refused, then made with it.
FORCED_RUNS = {86: "--force", 87: "--force"}

UNLOCKED = "who frees nothing is told so, and who holds it"
LEASED = (
    "a session here has a lease, by which implementations that know only heartbeats leave it alone while it is quiet"
)
ERROR_SHAPE = "a fault is shown as every refusal is: {error}"
NOTICE = "a session that was denied a file is told when it is free, and the message counts like any other"
LEASES_COUNT = "a leased session is a live session: it is seen, written to and given work"
WRONG_LINE = "a wrong command line is told from a refusal: exit 2"
EXIT_CODE = "a refusal is an error to machines too"
FENCE = "every grant has a number, by which a holder that has been away learns that it is none any more"
QUEUE = "who is refused is told how long the line is, and how to join it"
CHECKS = "each program looks at its own installation; the first eight checks have the recorded names and statuses"
PERSONS = "a live session loses its locks by a person alone, whose command announces nothing"
ROLES = "there are fewer ways to name a role: no launcher of ours is asked"

MCP = (
    Deviation("*", "*adopted: is *, not *", LEASED),
    Deviation("*", "*lease_until: is *, not null", LEASED),
    Deviation("* register", "extra events.0.payload.lease_until", LEASED),
    Deviation("* *lock*", "extra *.fence", FENCE),
    Deviation("* lock_file", "extra queue", QUEUE),
    Deviation("* bootstrap", "extra held_locks", "after losing context a session must know what it holds"),
    Deviation("* lock_file", "extra events.0: *context.lock_denied*", "a denial is worth an event: peers learn by it"),
    *(
        Deviation("37 A lock_file", what, "only a lock keeps a file: no identity owns the folders it works in")
        for what in (
            "missing error",
            "missing active",
            "extra ok",
            "extra id",
            "extra events.0: *context.lock_acquired*",
        )
    ),
    Deviation("41 B unlock_file", 'text: is "Unlocked src/a.py; *', "a caller that held nothing should know"),
    Deviation("42 A unlock_file", "extra events.[12]: *message.sent*system*", NOTICE),
    Deviation("5[56] B claim*", "unread_message_count: is 5, not 4", NOTICE),
    Deviation("57 B poll_messages", "extra *: *system*auto*is free*", NOTICE),
    Deviation("89 C kv_delete", "text: is *error*owned by another identity*", "a refused write says so"),
    Deviation("95 C kv_append", "isError: is false, not true", "a refusal is an ordinary answer, as it is for kv_set"),
    Deviation("95 C kv_append", "text: is *error*owned by another identity*", ERROR_SHAPE),
    Deviation("100 A kv_delete", "text: is *Deleted*it was not there*", "a misspelt key is noticed"),
    Deviation("116 A remove_instance", 'text: is "*Only a person can remove it*, not "Removed instance *', PERSONS),
    Deviation("116 A remove_instance", "missing events.*: *message.broadcast*", PERSONS),
    Deviation(
        "119 A deregister", "extra events.*: *context.lock_released*deregistered*", "no lock goes without its event"
    ),
)

NAMES = "people read names, near paths and how long ago something was; labels, whole paths and times are in --json"

CLI = (
    Deviation("11 instances", "stdout.*", NAMES),
    Deviation("13 whoami *", "stdout.0: is *", NAMES),
    Deviation("18 lock *", 'stdout.0: is "locked *; there is no such file yet"*', "a mistyped name is noticed"),
    Deviation("23 locks", "stdout.0: is *", NAMES),
    Deviation("35 kv list", "stdout.*", NAMES),
    Deviation("41 send *", "stdout.0: is *", NAMES),
    Deviation("71 dispatch *", "stdout.0: is *", NAMES),
    Deviation("45 messages", "missing stdout.*", NAMES),
    Deviation("45 messages", 'extra stdout.*: "[*] #*  planner s1 → *', NAMES),
    Deviation("47 prompt-peer *", "stdout.0: is *", NAMES),
    Deviation("54 tasks", "stdout.*", NAMES),
    Deviation("6[79] *", '*messages.*.id: is *, not "<no *"', NAMES),
    Deviation("68 inspect", "missing stdout.*", NAMES),
    Deviation("68 inspect", "extra stdout.*: *planner s1*", NAMES),
    Deviation("68 inspect", 'stdout.*: is "  *', NAMES),
    Deviation("2[124] lock*", "extra *.fence", FENCE),
    Deviation("19 lock*", "extra fence", FENCE),
    Deviation("2[12] lock*", "extra queue", QUEUE),
    *(
        Deviation(run, "exit: 2, not 1", WRONG_LINE)
        for run in (
            "27 lock",
            "40 kv zzz",
            "52 request-task zzz *",
            "62 update-task *",
            "89 nope",
            "90 *",
            "94 install *",
        )
    ),
    Deviation("2[12] lock * --json", "exit: 1, not 0", EXIT_CODE),
    Deviation("25 unlock * --json", "exit: 1, not 0", EXIT_CODE),
    *(Deviation("25 unlock * --json", what, UNLOCKED) for what in ("missing ok", "missing file")),
    *(Deviation("25 unlock * --json", f"extra {name}", UNLOCKED) for name in ("error", "unlocked", "left")),
    Deviation("* claim * --json", "exit: 1, not 0", EXIT_CODE),
    Deviation("65 update-task * --json", "exit: 1, not 0", EXIT_CODE),
    Deviation("43 broadcast *", 'stdout.0: is "broadcast to 2 recipient(s)"*', LEASES_COUNT),
    Deviation("44 broadcast *", "count: is 2, not 1", LEASES_COUNT),
    Deviation("45 messages", "extra stdout.*: *system*", NOTICE),
    Deviation("45 messages", "extra stdout.*: *auto*is free*", NOTICE),
    Deviation("45 messages", 'extra stdout.*: "    all"', LEASES_COUNT),
    Deviation("45 messages", 'extra stdout.*: "[*] #[57]  *', LEASES_COUNT),
    Deviation("46 messages *", "0.recipient: is *", LEASES_COUNT),
    Deviation("56 claim *", "unread_message_count: is 8, not 7", NOTICE),
    Deviation("67 bootstrap *", "extra peers.1: *session:lease*", LEASES_COUNT),
    Deviation("67 bootstrap *", "extra unread_messages.0: *system*auto*is free*", NOTICE),
    Deviation("68 inspect", 'stdout.*: is "recent messages (12, *', NOTICE),
    Deviation("68 inspect", "extra stdout.*system*auto*is free*", NOTICE),
    Deviation("68 inspect", 'extra stdout.*: *  all"', LEASES_COUNT),
    Deviation("69 inspect *", "extra messages.*: *system*auto*is free*", NOTICE),
    Deviation("69 inspect *", 'extra messages.*: *"all"*', LEASES_COUNT),
    *(
        Deviation(where, f"extra {place}.*: *auto* {how}: *", "whoever asked for a task hears how it ended")
        for where, place in (("68 inspect", "stdout"), ("69 inspect *", "messages"))
        for how in ("Done", "Failed")
    ),
    Deviation("72 dispatch *", "*", LEASES_COUNT),
    Deviation("82 doctor", 'extra stdout.*: "  [[] .. ] *', "each step is a line when it begins"),
    Deviation("82 doctor", 'extra stdout.*: "         to change that: *', "an option that is off names its command"),
    *(
        Deviation("82 doctor", f"extra stdout.*: *{name}: *", CHECKS)
        for name in (
            "sqlite",
            "libraries",
            "faults",
            "settings",
            "fail",
            "state",
            "guard",
            "kernel",
            "protect",
            "merge",
            "relay",
            "checker",
            "authorship",
            "try",
        )
    ),
    Deviation("83 doctor *", "extra checks.*.mend", "a check that fails says what mends it"),
    Deviation("83 doctor *", "extra checks.[89]: *sqlite*", CHECKS),
    *(
        Deviation("83 doctor *", f'extra checks.*: {{"name": "{name}"*', CHECKS)
        for name in (
            "libraries",
            "faults",
            "guard",
            "settings",
            "fail",
            "state",
            "kernel",
            "protect",
            "merge",
            "relay",
            "checker",
            "authorship",
            "try",
        )
    ),
    Deviation("83 doctor *", "missing checks.*.details.*", CHECKS),
    Deviation("83 doctor *", "extra checks.*.details.*", CHECKS),
    Deviation("85 roles *", "missing *.invoke.*", ROLES),
    Deviation("85 roles *", "missing current.env.*", ROLES),
    Deviation("85 roles *", "extra current.env.*", ROLES),
    Deviation("93 install *", "exit: 1, not 0", "it installs a plugin, into a client that must be there"),
    Deviation("93 install *", "stdout: *", "it installs a plugin, into a client that must be there"),
    Deviation("93 install *", "stderr: *", "it installs a plugin, into a client that must be there"),
)

# Tools beside the recorded ones.
MORE_TOOLS = (
    "pause_task", "resume_task", "transfer_lock", "request_lock", "steal_lock", "renew_lock", "explain_lock",
    "lock_history", "commit", "undo", "try", "request_human_input",
)  # fmt: skip
PLANNED = "locks have reach, mode, time and a line of waiters here"
PAGES = "an answer has a largest size; what is beyond it can be asked for"
SUPERVISED = "workers are supervised here, and can be told how to run"

TOOLS = (
    *(
        Deviation("dispatch", f"extra properties.{name}", SUPERVISED)
        for name in "model mode effort timeout_seconds max_cost_usd resume fresh".split()
        + "system_prompt skills output_schema env mcp_servers".split()
    ),
    *(
        Deviation("lock_file", f"extra properties.{name}", PLANNED)
        for name in "files mode wait_seconds ttl_seconds expected_end_seconds pattern agent_id logical".split()
    ),
    *(
        Deviation(tool, f"extra properties.{name}", PAGES)
        for tool in ("list_instances", "list_tasks", "kv_list")
        for name in ("limit", "after")
    ),
    Deviation("poll_messages", "extra properties.message_id", PAGES),
    Deviation("unlock_file", "extra properties.fence", FENCE),
    Deviation("unlock_file", "extra properties.agent_id", PLANNED),
    *(
        Deviation(tool, "extra additionalProperties", "an argument that means nothing is refused, as everywhere")
        for tool in ("whoami", "deregister", "swarm_status")
    ),
    Deviation("remove_instance", "extra properties.force", "a live session loses its locks only on purpose"),
    Deviation("capabilities", "*.listChanged: is false, not true", "the lists never change"),
    Deviation("capabilities", "extra resources.subscribe", "resources can be subscribed to"),
)

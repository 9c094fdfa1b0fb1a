"""A schedule as a story: the deeds of its processes, the answers, and the accidents."""

import os

from explore.world import FAIL, JUMP, KILL, PAUSE, SHORT, SWITCH, Decision, Step, World, place_of

TOLD = {
    "wants": "asks for a lock on {1} ({2})", "locked": "is given the lock on {1}", "refused": "is refused {1}: {2} has it",
    "waits": "is refused {2}: {3} waits for it", "looks": "", "frees": "begins to release {1}",
    "freed": "is told that {2} locks on {1} were released", "gives": "begins to hand {1} to {2}",
    "gave": "is told that {1} is {2}'s", "takes": "begins to take {1} by force", "took": "is given {1}",
    "sees": "looks who holds {1}: {2}", "hears": "reads: {rest}", "read": "reads the message {1}",
    "sends": "begins to send {1}", "sent": "is told that {1} was sent", "leaves": "begins to leave",
    "left": "has left", "requested": "is told that task {1} is there", "claimed": "is given task {1}",
    "ends": "begins to end task {1}", "ended": "is told that task {1} is done", "none": "is told that there is no task",
    "adds": "begins to add {1} to the list", "added": "is told that {1} is number {2}", "has": "reads the list: {rest}",
    "asks": "asks the hook for {1} of {2}", "let": "may go on with {1} of {2}", "denied": "is denied {1} of {2}: {rest}",
    "merged": "is given a merged text of {2}: {rest}",
    "told": "is told of others' work in {2}", "writes": "begins to write {2}", "wrote": "has written {2}",
    "missing": "does not find its line in {2}", "hook": "", "turn": "ends its turn", "turned": "has ended its turn",
    "saves": "begins to save the line {1}, as a person", "saved": "has saved the line {1}", "runs": "runs its command",
    "built": "has written the line {1}", "swept": "has thrown all changes away", "undoes": "begins to undo its edit",
    "redone": "has undone that and taken it back", "restores": "begins to restore", "restored": "has restored",
    "tries": "waits for {1}, to cancel that", "tried": "has cancelled its wait for {1}",
    "commits": "begins to commit", "declined": "does not commit: {rest}", "committed": "is told that {1} is committed",
    "tests": "begins to try a command on its own lines", "tested": "is told that the command has ended {rest}",
    "seeks": "begins to look for the authors of the lines {1}.x", "blames": "is told of their authors: {rest}",
    "moved": "is told that files changed meanwhile", "ran": "tries a command on {1}: {rest}",
    "far": "acts for a session of another machine: it {rest}",
    "failed": "fails: {rest}", "crashed": "crashes: {rest}", "abandoned": "is not waited for any more",
}  # fmt: skip
BEFALLS = {KILL: "is killed", PAUSE: "is stopped for a while", JUMP: "finds the clock at another time",
    SHORT: "writes a part of its data"}  # fmt: skip


def story(world: World, roles: tuple[str, ...], level: str) -> list[str]:
    """Return the last schedule of a world, as lines for a person."""
    lines = [f"Session {number} {role.replace('_', ' ')}." for number, role in enumerate(roles)]
    lines.append(f"Changes are protected at the level `{level}`. The times are milliseconds.")
    events = [(moment, 1, f"session {who} {sentence}") for who, moment, sentence in _said(world)]
    events += [(moment, 0, sentence) for moment, sentence in _befallen(world)]
    return lines + [f"{moment / 1e6:9.2f}  {sentence}" for moment, _order, sentence in sorted(events)]


def _said(world: World) -> list[tuple[int, int, str]]:
    found = []
    for (who, words), moment in zip(world.said(), world.moments()):
        sentence = TOLD.get(words[0], "says: " + " ".join(words).replace("{", "("))
        if sentence:
            rest = " ".join(words[3:] if words[0] == "denied" else words[1 if words[0] != "has" else 2 :])
            found.append((who, moment, sentence.format(*words, rest=rest)))
    return found


def _befallen(world: World) -> list[tuple[int, str]]:
    moments = {(step.task, step.number): step for step in world.shared.log[: world.shared.steps]}
    found = []
    for decision in world.decisions():
        step = moments.get((decision.task, decision.number))
        if step is not None:
            found.append((step.now, _sentence(world, decision, step)))
    return found


def _sentence(world: World, decision: Decision, step: Step) -> str:
    call = world.library.explore_call(step.call).decode()
    place = f"before `{call} {place_of(step)}`"
    if decision.action == SWITCH:
        other = world.shared.tasks[decision.value].process
        return f"  … session {step.process} stops {place}, and session {other} goes on"
    if decision.action == FAIL:
        return f"  … session {step.process}'s call fails ({os.strerror(decision.value)}), {place}"
    return f"  … session {step.process} {BEFALLS[decision.action]} {place}"

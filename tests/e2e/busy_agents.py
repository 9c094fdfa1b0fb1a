"""Scripted agents that work side by side in one checkout, in real clients, and never take a lock.

**The mixture.** An agent works in turns. In each it reads three files, and then makes four edits in them; an edit is a
line of its own under its heading, so that no two agents ever want the same line. Of a hundred edits

- 55 are made with the client's edit tool (Edit; a patch of one line),
- 10 in place by the shell (`sed -i`),
- 20 with a here-document over the file: the agent's last reading of it, and its new line,
- 10 likewise with the client's tool for whole files (Write; Add File),
-  5 likewise as a draft elsewhere that is copied over the file.

After every tenth edit it sweeps: `git checkout -- FILE` (6 in 10) or `git restore FILE` (2) to start a file over, with
its own edits of that file undone, or `git stash`, a look at a file, and `git stash pop` (2). If the pop is refused
because files have changed meanwhile, it does `git checkout -- .`, as agents do, and pops again.

It obeys: after a denied or refused write it reads the file again and tries once more; then it goes on with another
edit, and comes back to this one in its next turn. If a denial of a sweep names a `swarm-mcp undo FILES`, it types just
that, with `--partial` if the answer wants it: in place of `git checkout` and `restore`; in place of `git stash`, with the `undo --undo ID` that the answer names
in place of the pop; before it pops again. A denied sweep without such words is given up. If the plugin says of a write that others
have changed the file, or Claude Code says so of an edit or of a file that it has read, it reads the file again before
its next write of it.

**Lost** is an edit that its agent was told had been made, and that is missing in the file at the end, unless its own
author has undone it, or has it in a stash.
"""

import json
import random
import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from typing import NamedTuple

from swarm_mcp.play.models import Player, Step, play

from .client import Call, Client
from .clients import CLIENTS, ClaudeCode, Codex
from .conversation import Conversation
from .ground import Ground

FILES = [f"part-{number}.md" for number in range(10)]
FILES_A_TURN, EDITS_A_TURN, SWEEP_EVERY = 3, 4, 10
HOW = [*["tool"] * 55, *["sed"] * 10, *["document"] * 20, *["whole"] * 10, *["draft"] * 5]
SWEEPS = [*["checkout"] * 6, *["restore"] * 2, *["stash"] * 2]
REPLACING = ("document", "whole", "draft")
GIT = "git -c user.name=e2e -c user.email=e2e@localhost"
DENIED = re.compile(r"PreToolUse")
MADE = re.compile(r"written as asked|has been updated|created successfully|Success\. Updated")
# The plugin's notice about a passed write; Claude Code's notices about an edit, and about files that it has read.
CHANGED = re.compile(
    r"swarm: \S*?(part-\d\.md) was changed by.{0,80}"
    r"|(part-\d\.md) has been updated successfully\. \(note: the file had"
    r"|Note: \S*?(part-\d\.md) was modified.{0,600}"
)
NAMED_UNDO = re.compile(r"`(swarm-mcp undo [^`]+)`, or the tool undo")  # in the denial of a sweep
UNDONE = re.compile(r"undone in .*?`(swarm-mcp undo --undo \w+)`", re.DOTALL)  # its answer, with the way back
MOST_TURNS = 4  # times as many as an agent would need that is never denied anything

Moves = Generator[Step, list[str], None]


class Edit(NamedTuple):
    """A line that an agent is to write."""

    file: str
    how: str
    line: str


class Deed(NamedTuple):
    """A write or sweep that was carried out: from when to when, and the file's text where it was replaced by one."""

    agent: int
    file: str  # empty: all of them
    how: str
    began: float
    ended: float
    text: str | None


class Loss(NamedTuple):
    """A lost edit, the agent that replaced it, its way, and True if that agent had been denied since the edit."""

    line: str
    by: int
    how: str
    told: bool


class Agent:
    """One session with its model: its knowledge, its remaining edits, its made ones."""

    def __init__(self, number: int, client: Client, edits: int, seed: int) -> None:
        self.number, self.client = number, client
        self.random = random.Random(f"{seed} {number}")
        self.heading = f"## agent-{number}"
        self.to_do = [
            Edit(self.random.choice(FILES), self.random.choice(HOW), f"- edit {number}.{count}.")
            for count in range(edits)
        ]
        self.known: dict[str, str] = {}
        self.heard: Counter[str] = Counter()
        self.stale: set[str] = set()  # files that were changed, as it was told
        self.made: dict[str, tuple[str, float]] = {}  # line -> its file, and when the write began
        self.undone: set[str] = set()
        self.deeds: list[Deed] = []
        self.denials: list[tuple[str, float]] = []  # file and time
        self.way_out = ""  # the command that the last denial of a sweep names
        self.refusal = ""  # of the last command
        self.count: Counter[str] = Counter()
        self.failure = ""

    def work(self, session: Conversation) -> None:
        """Take turns until all is done, or too many have been taken."""
        most = MOST_TURNS * (len(self.to_do) // EDITS_A_TURN + 1)
        for turn in range(most):
            if not self.to_do:
                return
            name = f"agent-{self.number}-turn-{turn}"
            self._player = self.client.models.players[name] = Player(self._turn())
            session.say(play(name))
            session.wait()
            self.count["turns"] += 1

    # -- one turn --

    def _turn(self) -> Moves:
        edits, self.to_do = self.to_do[:EDITS_A_TURN], self.to_do[EDITS_A_TURN:]
        files = list(dict.fromkeys(edit.file for edit in edits))[:FILES_A_TURN]
        yield from self._read(*files)
        postponed = []
        for edit in edits:
            if edit.file not in files:
                edit = edit._replace(file=self.random.choice(files))
            made = yield from self._edit(edit)
            if not made:
                postponed.append(edit)
            elif len(self.made) % SWEEP_EVERY == 0:
                yield from self._sweep(edit.file)
        self.count["postponed"] += len(postponed)
        self.to_do = postponed + self.to_do

    def _read(self, *files: str) -> Moves:
        results = yield Step(tuple(self._reading(file) for file in files))
        self.count["answers"] += 1
        for result in results:  # of reads side by side in any order
            self._remember(files, result)

    def _reading(self, file: str) -> Call:
        if isinstance(self.client, ClaudeCode):
            return self.client.read(file)
        return self.client.shell(f"cat {file}")

    def _remember(self, files: tuple[str, ...], result: str) -> None:
        """Claude Code numbers the lines that it reads."""
        lines = [re.sub(r"^\s*\d+[\t→]", "", line) for line in result.splitlines()]
        for file in files:
            first, last = f"# {file}", f"-- the end of {file}"
            if first in lines and last in lines:
                self.known[file] = "\n".join(lines[lines.index(first) : lines.index(last) + 1]) + "\n"
                self.stale.discard(file)

    def _edit(self, edit: Edit) -> Generator[Step, list[str], bool]:
        for attempt in range(2):
            self._heed()
            if attempt or edit.file in self.stale:
                yield from self._read(edit.file)
                self.count["wasted"] += 1
            if edit.file not in self.known:  # it was being written when it was read
                return False
            text = self.known[edit.file].replace(self.heading, f"{self.heading}\n{edit.line}")
            began = time.monotonic()
            (result,) = yield Step((self._call(edit, text),))
            self.count["answers"] += 1
            if self._is_done(edit.file, result):
                replaced = text if edit.how in REPLACING else None
                self.deeds.append(Deed(self.number, edit.file, edit.how, began, time.monotonic(), replaced))
                self.made[edit.line] = (edit.file, began)
                self.known[edit.file] = text
                return True
        return False

    def _heed(self) -> None:
        """Note the changed files that the newest request names first."""
        said = json.dumps(self._player.body.get("messages") or self._player.body.get("input"), ensure_ascii=False)
        told = Counter(match.group() for match in CHANGED.finditer(said))
        for text in told - self.heard:
            self.stale.update(file for file in CHANGED.match(text).groups() if file)  # type: ignore[union-attr]
            self.count["told"] += 1
        self.heard |= told

    def _is_done(self, file: str, result: str) -> bool:
        if DENIED.search(result):
            self.denials.append((file, time.monotonic()))
            self.count["denied"] += 1
        elif MADE.search(result):
            return True
        else:
            self.count["refused"] += 1
        self.count["wasted"] += 1
        return False

    def _call(self, edit: Edit, text: str) -> Call:
        if edit.how == "tool":
            if isinstance(self.client, Codex):
                return self.client.patch(f"*** Update File: {edit.file}\n@@\n {self.heading}\n+{edit.line}")
            return self.client.replace(edit.file, self.heading, f"{self.heading}\n{edit.line}")
        if edit.how == "sed":
            return self._shell(f"sed -i 's/^{self.heading}$/&\\n{edit.line}/' {edit.file}")
        if edit.how == "whole":
            return self.client.create(edit.file, text)
        if edit.how == "document":
            return self.client.shell(f"cat > {edit.file} <<'EOF' && echo written as asked\n{text}EOF\n")
        draft = self.client.ground.tmp / f"draft-{self.number}.md"
        return self.client.shell(
            f"cat > {draft} <<'EOF' && cp {draft} {edit.file} && echo written as asked\n{text}EOF\n"
        )

    def _shell(self, command: str) -> Call:
        return self.client.shell(f"{command} && echo written as asked")

    # -- sweeps --

    def _sweep(self, file: str) -> Moves:
        how = self.random.choice(SWEEPS)
        if how == "stash":
            yield from self._stash(file)
            return
        done = yield from self._git("checkout -- FILE" if how == "checkout" else "restore FILE", how, file)
        if done:
            self.undone |= self._made_in([file])
            yield from self._read(file)
        elif (yield from self._take_back()):
            self.count["followed"] += 1
            yield from self._read(file)

    def _stash(self, file: str) -> Moves:
        done = yield from self._git(f"stash push -m 'of agent {self.number}'", "stash", "")
        if not done:
            before = set(self.undone)
            back = yield from self._take_back()
            if back:
                self.count["followed"] += 1
                yield from self._read(file)
                if (yield from self._run(back)):
                    self.undone = before
                yield from self._read(file)
            return
        yield from self._read(file)
        popped = yield from self._git("stash pop", "", "")
        if not popped:
            cleared = yield from self._git("checkout -- .", "checkout", "")
            taken_back = "" if cleared else (yield from self._take_back())
            if cleared or taken_back:
                popped = yield from self._git("stash pop", "", "")
                self.count["followed"] += bool(taken_back and popped)
        yield from self._read(file)

    def _take_back(self) -> Generator[Step, list[str], str]:
        """Type the undo that the denial of a sweep named. Return the command that takes it back, "" if it failed."""
        command, self.way_out = self.way_out, ""
        if not command:
            return ""
        found = UNDONE.search((yield from self._run(command)))
        if not found and "--partial to undo all but" in self.refusal:
            command = command.replace("undo ", "undo --partial ", 1)
            found = UNDONE.search((yield from self._run(command)))
        if not found:
            return ""
        self.undone |= self._made_in(command.split()[2:])
        return found.group(1)

    def _made_in(self, files: list[str]) -> set[str]:
        return {line for line, (written_in, _) in self.made.items() if written_in in files}

    def _run(self, command: str) -> Generator[Step, list[str], str]:
        """Run a shell command. Return its output, "" if it failed."""
        (result,) = yield Step((self._shell(command),))
        self.count["answers"] += 1
        is_done = self._is_done("", result)
        self.refusal = "" if is_done else result
        return result if is_done else ""

    def _git(self, verb: str, how: str, file: str) -> Generator[Step, list[str], bool]:
        began, self.way_out = time.monotonic(), ""
        (result,) = yield Step((self._shell(f"{GIT} {verb.replace('FILE', file)}"),))
        self.count["answers"] += 1
        if not self._is_done(file, result):
            named = NAMED_UNDO.search(result)
            self.way_out = named.group(1) if named else ""
            return False
        if how:
            self.deeds.append(Deed(self.number, file, how, began, time.monotonic(), None))
        return True


class Outcome(NamedTuple):
    """The result of a crowd's work."""

    edits: int  # that agents were told had been made
    undone: int  # by their own authors
    losses: list[Loss]
    given_up: int
    count: Counter[str]
    seconds: float


def prepare_files(ground: Ground, agents: int, between: str = "\n") -> None:
    """Ten committed files, with a heading for each agent."""
    headings = between.join(f"## agent-{number}" for number in range(agents))
    for file in FILES:
        (ground.checkout / file).write_text(f"# {file}\n{headings}\n-- the end of {file}\n")
    ground.commit(ground.checkout)


def work_together(
    ground: Ground,
    agents: int,
    edits: int,
    seed: int = 1,
    own: Callable[[int], Ground] | None = None,
    together: Callable[[], None] | None = None,
    between: str = "\n",
) -> Outcome:
    """Have `agents` sessions, of both clients in turn, make `edits` edits between them. Returns the result.

    `own`: gives an agent's number its ground, with a work tree of its own; `together`: brings their work into `ground`.
    `between`: the text between two headings.
    """
    prepare_files(ground, agents, between)
    names = list(CLIENTS)
    crowd = [
        Agent(number, CLIENTS[names[number % len(names)]](own(number) if own else ground), edits // agents, seed)
        for number in range(agents)
    ]
    sessions = [Conversation(agent.client) for agent in crowd]
    try:
        began = time.monotonic()
        threads = [threading.Thread(target=_work, args=pair, daemon=True) for pair in zip(crowd, sessions, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - began
    finally:
        for session in sessions:
            session.close()
    assert not any(agent.failure for agent in crowd), [agent.failure for agent in crowd]
    if together:
        together()
    return Outcome(
        sum(len(agent.made) for agent in crowd),
        sum(len(agent.undone) for agent in crowd),
        losses(ground, crowd),
        sum(len(agent.to_do) for agent in crowd),
        sum((agent.count for agent in crowd), Counter()),
        seconds,
    )


def _work(agent: Agent, session: Conversation) -> None:
    try:
        agent.work(session)
    except Exception as raised:
        agent.failure = f"agent {agent.number} ({agent.client.name}): {raised!r}"


def losses(ground: Ground, crowd: list[Agent]) -> list[Loss]:
    """The edits that are in no file now, and that their authors have neither undone nor put away."""
    found = []
    for agent in crowd:
        put_away = stashed(ground, f"of agent {agent.number}")
        for line, (file, began) in agent.made.items():
            there = f"{line}\n" in (ground.checkout / file).read_text()
            if not there and line not in agent.undone and line not in put_away:
                found.append(_blame(crowd, agent.number, line, file, began))
    return found


def _blame(crowd: list[Agent], author: int, line: str, file: str, made_at: float) -> Loss:
    """Return the first deed of another agent after which the line was gone."""
    after = [
        deed
        for agent in crowd
        if agent.number != author
        for deed in agent.deeds
        if deed.file in (file, "") and deed.ended > made_at and _takes_away(deed, line)
    ]
    if not after:
        return Loss(line, -1, "nobody known", False)
    deed = min(after, key=lambda deed: deed.ended)
    denials = crowd[deed.agent].denials
    told = any(denied in (file, "") and made_at < at < deed.began for denied, at in denials)
    return Loss(line, deed.agent, deed.how, told)


def _takes_away(deed: Deed, line: str) -> bool:
    return deed.how in SWEEPS or (deed.text is not None and f"{line}\n" not in deed.text)


def stashed(ground: Ground, message: str) -> str:
    """All that the stashes with this message hold."""
    listing = _git_output(ground, "stash", "list", "--format=%gd %s").splitlines()
    entries = [entry.partition(" ")[0] for entry in listing if message in entry]
    return "".join(_git_output(ground, "stash", "show", "-p", entry) for entry in entries)


def _git_output(ground: Ground, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ground.checkout, env=ground.env, capture_output=True, text=True
    ).stdout

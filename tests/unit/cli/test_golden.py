"""The words of the command line, held against the transcripts in tests/data/golden/cli.

After a deliberate change of words, write the transcripts anew, and read the difference before it is committed:

    SWARM_GOLDEN=write python -m pytest tests/unit/cli/test_golden.py
"""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.files import files_at
from support.fixtures import Done, Ground

from swarm_hook_core import clock
from swarm_mcp import contributions

VERBS = contributions.verbs()

FOLDER = Path(__file__).parents[2] / "data" / "golden" / "cli"
WRITES = os.environ.get("SWARM_GOLDEN") == "write"
CLOCK = 1_700_000_000  # 2023-11-14 22:13:20 UTC

# Command lines of one scene in their order. {one} and {two} stand for the ids of its sessions, {task} for its task's.
SCENE = """
status
locks
lock src/schema.sql src/new --note "renumbering" --as {one}
lock src/schema.sql --as {two}
lock src/schema.sql --as {two} --json
lock src/schema.sql --as {one} --json
lock *.sql --pattern --shared --ttl 600 --as {one}
lock a b --expect 300 --as {one} --json
lock --git --as {one}
unlock b --as {two}
unlock b --as {two} --json
unlock a nothing --as {one}
unlock b --as {one} --json
renew src/schema.sql --ttl 600 --as {one}
renew src/schema.sql --as {one} --json
renew a --as {one}
locks
locks --json
locks --file src/schema.sql
why src/schema.sql --as {two}
why src/schema.sql --as {two} --json
why free
transfer src/new --to {two} --note "your turn" --as {one}
transfer src/new --to {two} --as {one} --json
request-lock src/schema.sql --reason "two minutes" --as {two}
request-lock src/schema.sql --as {two} --json
request-lock free --as {two}
steal src/schema.sql --as {two}
steal src/schema.sql --force --as {two}
steal src/schema.sql --as {two} --json
instances
instances --json
instances --limit 1
whoami --as {one}
whoami --as {one} --json
whoami
send "the importer is ready" --to {two} --as {one}
send "read it, please" --to {two} --as {one} --json
broadcast "main is frozen" --as {two}
prompt-peer {two} "look here" --no-nudge --as {one}
messages
messages --limit 1 --json
kv set plan/latest "split the importer" --as {one}
kv append plan/list [1] --as {one} --json
kv get plan/latest
kv get plan/none
kv list
kv list --json
kv del plan/list --as {one}
request-task review "look at the parser" --file src/parse.py --priority 2 --as {one}
request-task fix "the second" --as {one} --assignee {two} --json
tasks
tasks --json
task {task}
task {task} --json
claim {task} --as {two}
claim {task} --as {two} --force
claim {task} --as {one} --json
update-task {task} --status done --note "merged" --as {two}
update-task {task} --status done --as {two} --json
status
status --json
log --limit 5
log --limit 2 --json
log src/schema.sql
log src/schema.sql --json --limit 1
inspect
inspect --json
watch --since 0 --timeout 0
watch --since 0 --timeout 0 --json
bootstrap --as {two}
bootstrap --as {two} --json
roles
runs
runs --json
restore --list
merge
dispatch "renumber" --no-spawn --as {one}
cancel {task} --as {one}
pause nothing --as {one}
logs nothing
protect
protect --json
auto notice
ui list
ui prompt hello --target node --wait 0
cleanup --dry-run
cleanup --json
deregister --as {two}
deregister --as {two} --force
team status
hold src/schema.sql -- true
unlock --all --as {one}
unlock --all --as {one} --json
lock
lock --nonsense
lock a --wait soon --as {one}
unlock a b --fence 3
log --since never
kv get
tasks --status neither
frobnicate
relase
--json locks
help nonsense
""".strip().splitlines()

UNIT = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Normalised:
    """Replaces text that differs from run to run: ids by names in order of appearance, and paths."""

    def __init__(self, ground: Ground):
        self._paths = {ground.scope: "/checkout", str(ground.folder): "/folder", str(Path.home()): "/home"}
        self._names: dict[str, str] = {}

    def name(self, found: str) -> None:
        """Give an id the next name, unless it has one already."""
        self._names.setdefault(found, f"ID-{len(self._names) + 1}")

    def text(self, text: str) -> str:
        """Return `text` with ids, folders and process numbers replaced."""
        for path, name in self._paths.items():
            text = text.replace(path, name)
        for found in UNIT.findall(text):
            self.name(found)
        for found, name in self._names.items():
            text = text.replace(found, f"<{name}>").replace(found[:8], f"<{name[3:]}>")
        text = re.sub(r"\[auto\] .*…", "[auto] ...", text)  # cut at a place that depends on the folder's length
        text = re.sub(r'("length": )\d{3,}', r"\1LENGTH", text)
        text = re.sub(r'("pid": |pid=)\d+', r"\1PID", text)
        return re.sub(r"--after \S+", "--after CURSOR", text)


def transcript(command: str, done: Done, normalised: Normalised) -> str:
    """Return a command and its output as one block of a transcript. Lines of standard error begin with `! `."""
    lines = [f"$ swarm-mcp {command}", *done.out.splitlines(), *(f"! {line}" for line in done.err.splitlines())]
    if done.code:
        lines.append(f"(exit {done.code})")
    return normalised.text("\n".join(lines).replace("\x1b", "ESC"))


def compare(name: str, blocks: list[str]) -> None:
    """Compare blocks of a transcript with the file `name`, or write the file if that is wanted."""
    path = FOLDER / f"{name}.txt"
    text = "\n\n".join(blocks) + "\n"
    if WRITES:
        path.write_text(text)
    assert text == path.read_text()


def set_clocks(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    """Stop the clocks so many seconds after the beginning of the scene."""
    monkeypatch.setattr(time, "time", lambda: float(CLOCK + seconds))
    monkeypatch.setattr(clock, "now", lambda: 5000.0 + seconds)


@pytest.fixture
def normalised(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Iterator[Normalised]:
    """Stop the clocks, and return a normaliser of outputs."""
    set_clocks(monkeypatch, 0)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield Normalised(ground)
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("verb", VERBS)
def test_help_of(verb: str, ground: Ground, normalised: Normalised) -> None:
    compare(f"help/{verb}", [transcript(f"{verb} --help", ground.swarm(verb, "--help"), normalised)])


def test_each_recorded_help_is_of_a_verb() -> None:
    assert {path.stem for path in (FOLDER / "help").iterdir()} == set(VERBS)


@pytest.mark.parametrize("words", ["help", "help --all", "completion bash", "completion zsh", "completion fish"])
def test_pages_of_the_whole(words: str, ground: Ground, normalised: Normalised) -> None:
    compare(words.replace(" --", "-").replace(" ", "-"), [transcript(words, ground.swarm(*words.split()), normalised)])


def test_a_scene(ground: Ground, normalised: Normalised, monkeypatch: pytest.MonkeyPatch) -> None:
    files_at(ground.repo, {"src/schema.sql": "create", "a": "", "b": ""})
    names = {"one": ground.session("one", "role:planner")["id"], "two": ground.session("two", "role:reviewer")["id"]}
    for found in names.values():
        normalised.name(found)
    blocks = []
    for seconds, line in enumerate(SCENE, 1):
        set_clocks(monkeypatch, seconds)
        words = [word.format(**names) for word in split(line)]
        done = ground.swarm(*words)
        if line.startswith("request-task") and "task" not in names:
            names["task"] = UNIT.findall(done.out)[0]
        blocks.append(transcript(line, done, normalised))
    compare("scene", blocks)


def split(line: str) -> list[str]:
    """Return the words of a command line; those in double quotes belong together."""
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', line)]

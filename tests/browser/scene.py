"""A checkout with some of everything, for tests that look at all pages."""

from pathlib import Path
from typing import NamedTuple

from support.fixtures import Ground, wait_for
from support.sessions import hook_core, write
from support.world import Agent, git

from swarm_hook_core import greetings
from swarm_hook_core.json_text import dumps
from swarm_mcp.agents.harness.events import Event, message, result, tool_end, tool_start
from swarm_mcp.locking.acquisition import LockWait
from swarm_mcp.store import driver
from swarm_mcp.store.lock_request import request
from swarm_mcp.view.page.rendering import address

SESSIONS = {"ann": "claude-code", "bob": "codex", "cy": "claude-code"}  # and their runtimes
RUN = "4f1c2b7e-0000-4000-8000-000000000001"


class Scene(NamedTuple):
    """The addresses of one page of each kind: `paths` by subject."""

    paths: dict[str, str]


def played(
    ground: Ground, note: str = "moving the tables", text: str = "Please look at the migration.", label: str = "",
    file: str = "src/schema.sql", title: str = "Add an index",
) -> Scene:  # fmt: skip
    """Play it: three sessions, locks, a queue, a refusal, an edit, tasks, messages and a worker, with the given texts."""
    ann = ground.session("ann", f"claude-code session:5f0c2f6e {label}".strip())
    bob = ground.session("bob", f"codex session:12ab34cd {label}".strip(), "codex")
    cy = ground.session("cy", "claude-code session:77e01b3a")
    path = f"{ground.scope}/{file}"
    ground.lock(ann, path, note)
    ground.lock(ann, f"{ground.scope}/docs/schema.md", "")
    ground.lock(cy, f"{ground.scope}/src/app.py", "the new route")
    assert write("codex", "bob", ground.scope, path).reason
    assert write("claude-code", "cy", ground.scope, f"{ground.scope}/src/routes.py").reason == ""
    (ground.repo / "src").mkdir(exist_ok=True)
    (ground.repo / "src" / "routes.py").write_text("routes = []\n")
    with ground.store() as store:
        wait_for(lambda: store.activity.of_locks(None, 1)[0].type == "context.lock_denied")  # noted by another process
        LockWait(bob, request(bob, [path]), 3600).advance(store)
        spec = {"type": "implement", "title": title, "description": text, "files": [path], "assignee": bob.id}
        task = store.tasks.request(ann, spec)["task"]
        store.tasks.claim(bob, task.id, ignore_unread=True)
        store.tasks.report_progress(bob, task.id, text)
        store.messages.send(ann, bob.id, text)
        store.messages.send(bob, ann.id, f"[task:{task.id}] {text}")
        store.runs.begin(
            {
                "id": RUN, "scope": ground.scope, "instance_id": bob.id, "harness": "codex", "cwd": ground.scope,
                "task_id": task.id, "model": "gpt-5-codex", "cost_usd": 0.0421, "state": "running",
                "usage": {"input_tokens": 18204, "output_tokens": 911}, "record": _record(ground, note, text),
            }
        )  # fmt: skip
    scope = ground.scope
    return Scene(
        {
            "Now": "/", "this checkout": address("/", scope=scope),
            "Timeline": "/timeline", "this timeline": address("/timeline", scope=scope), "Queues": "/queues",
            "Tasks and messages": address("/work", scope=scope), "Workers": address("/workers", scope=scope),
            "a task": address("/task", scope=scope, id=task.id), "a worker": address("/worker", id=RUN),
            "a file": address("/file", scope=scope, path=path),
            "a file of several": address("/file", scope=scope, path=f"{scope}/src/orders.py"), "a session": address("/session", id=ann.id),
            "another session": address("/session", id=bob.id), "a file that is not there": "/file",
        }
    )  # fmt: skip


def _record(ground: Ground, note: str, text: str) -> str:
    path = ground.folder / "record.jsonl"
    events: list[Event] = [
        message("user", text),
        message("assistant", "I look at the tables first.", thinking=True),
        tool_start("1", "shell", {"command": "psql -c '\\d orders'"}),
        tool_end("1", "shell", note),
        message("assistant", text),
        result(text),
    ]
    lines = [dumps(event._replace(at=1_795_000_000.0 + at).to_dict()) for at, event in enumerate(events)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


class Known(Agent):
    """A session that the store knows already, as one that edits with its client's own tools."""

    def __init__(self, runtime: str, session_id: str, folder: Path):
        self.runtime, self.session_id, self.folder, self.transcript = runtime, session_id, folder, ""
        self.core = hook_core(runtime)
        self.core.driver = driver.load()


COMMITTED = {
    "src/app.py": "from routes import routes\n\n\ndef main() -> None:\n    for route in routes:\n        print(route)\n",
    "src/orders.py": "def total(rows: list[dict]) -> int:\n    found = 0\n    for row in rows:\n        found += row['price']\n    return found\n",
    "docs/usage.md": "# Usage\n\nRun `shop serve`, then open the page.\n\n## Options\n\n`--port N` chooses the port.\n",
}


def busy(ground: Ground) -> Scene:
    """Play the scene in a repository with three agents at work: each has uncommitted lines, some in one file."""
    commit_files(ground)
    scene = played(ground)
    ann, bob, cy = (Known(SESSIONS[name], name, ground.repo) for name in SESSIONS)
    assert not cy.edit("src/app.py", "        print(route)\n", "        print(route.path, route.method)\n").denied
    assert not bob.edit("src/orders.py", "    found = 0\n", "    found, seen = 0, set()\n").denied
    assert not bob.edit(
        "src/orders.py", "    return found\n", "    assert len(seen) == len(rows)\n    return found\n"
    ).denied
    assert not cy.edit("src/orders.py", "row['price']", "row['price'] * row['count']").denied
    assert not ann.edit(
        "docs/usage.md", "`--port N` chooses the port.\n", "`--port N` chooses the port, `--host NAME` the address.\n"
    ).denied
    with (ground.repo / "src/orders.py").open("a") as file:  # a person's
        file.write("\n\nTAX = 0.19  # until the end of the year\n")
    for _ in range(2):
        assert write("codex", "bob", ground.scope, f"{ground.scope}/src/schema.sql").reason
    greetings.note(
        SESSIONS["cy"], "cy", "Count the pieces of an order in its total, and list the routes with their methods"
    )
    ground.sql("UPDATE swarm_sessions SET state = 'working' WHERE session_id <> 'ann'")
    return scene


def commit_files(ground: Ground) -> None:
    """Commit some files in the checkout."""
    for name, text in COMMITTED.items():
        (ground.repo / name).parent.mkdir(parents=True, exist_ok=True)
        (ground.repo / name).write_text(text)
    git(ground.repo, "add", "-A")
    git(ground.repo, "commit", "-qm", "start")

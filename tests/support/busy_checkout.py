"""A checkout with a held file, a waiter for it, a refused session, and work in progress."""

from support.fixtures import Ground
from swarm_mcp.domain import Session
from swarm_mcp.store.lock_request import request
from swarm_mcp.store.refusals import Attempt


def session(ground: Ground, number: str, runtime: str = "claude-code", **more: str) -> dict:
    """Return a session as hooks register it, with a client's id that begins with `number`."""
    label = f"{runtime} platform:cli origin:{runtime} session:{number}"
    return ground.session(f"{number}-1", label=label, runtime=runtime, **more)


def busy(ground: Ground) -> dict:
    """One session holds a file, another waits for it, a third was refused and works on a task. Returns the holder."""
    one, two, three = session(ground, "5f0c2f6e"), session(ground, "a31c9d02"), session(ground, "77aa88bb", "codex")
    ground.lock(one, "src/store.py", "renumbering the queue")
    with ground.store() as store:
        store.queue.join(Session(two), request(Session(two), ["src/store.py"]), 600.0)
        store.denials.report(Session(three), f"{ground.scope}/src/store.py", one["id"], Attempt("Edit"))
        asked = {"type": "implement", "title": "Add an index", "description": "x"}
        task = store.tasks.request(Session(one), asked)["task"]
        store.tasks.claim(Session(three), task["id"], True)
        run = {"id": "12ab34cd-0000", "scope": ground.scope, "instance_id": three["id"], "harness": "codex"}
        store.runs.begin({**run, "cwd": ground.scope, "cost_usd": 0.125, "task_id": task["id"]})
    return one

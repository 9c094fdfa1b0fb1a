"""The MCP tools about workers."""

from __future__ import annotations

from typing import Any

from swarm_mcp.answers.size import ROWS_BYTES, fitted
from swarm_mcp.domain import TYPES
from swarm_mcp.server.tool import Answer, Call, Tool, WaitingCall, delivering, flag, number, text, texts
from swarm_mcp.sessions.summary import with_mail

# The tool that hands work to a worker, live or started for it.

# The package `dispatch` is loaded by the first call: it would be a quarter of the work for the list of tools.
LIST = "list"  # in place of a harness's name
DEFAULT_TYPE, DEFAULT_ROLE = "implement", "implementer"

PLACEMENT = {
    "type": "object",
    "additionalProperties": False,
    "description": "The place of a started worker on screen. A spawner leaves out the parts it cannot do, and says so.",
    "properties": {
        "workspace": text("`reuse_scope` (default), `new`, `current`, or a workspace's id."),
        "tab": text("`reuse_group` (default), `new`, `current`, or a tab's id."),
        "group": text("Name of a group of workers that share a tab."),
        "parent_pane_id": text("The pane to split; comes before everything else here."),
        "split_direction": text("The direction of the split.", enum=["right", "down"]),
        "max_panes_per_tab": number("Open another tab above this.", minimum=1, maximum=8),
        "layout": {
            "description": 'How panes are arranged: {"kind": "grid", "rows": 2, "cols": 3} or {"kind": "balance"}.',
            "anyOf": [
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["kind", "rows", "cols"],
                    "properties": {
                        "kind": {"type": "string", "const": "grid"},
                        "rows": {"type": "integer", "minimum": 1, "maximum": 4},
                        "cols": {"type": "integer", "minimum": 1, "maximum": 4},
                        "balance": {"type": "boolean"},
                    },
                },
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["kind"],
                    "properties": {"kind": {"type": "string", "const": "balance"}},
                },
            ],
        },
    },
}  # fmt: skip


async def _dispatch(call: WaitingCall, arguments: dict[str, Any]) -> Answer:
    from swarm_mcp.agents.dispatch.dispatch import Dispatch

    if arguments.get("harness", "").strip() == LIST:
        await call.run(lambda now: now.member())
        # The harnesses with the advice for a choice between them
        from swarm_mcp.agents.harness.registry import chosen_name, get_all, program_of

        rows = [
            {
                "name": adapter.name,
                "label": adapter.label,
                "installed": not adapter.program or bool(program_of(adapter)),
                "use_when": adapter.use_when,
            }
            for adapter in get_all()
        ]
        return Answer({"status": "harnesses", "harnesses": rows, "default": chosen_name()})
    from swarm_mcp.agents.dispatch.request import DispatchRequest

    given = {name: arguments[name] for name in DispatchRequest._fields if name in arguments}
    for name in ("files", "depends_on", "skills"):
        given[name] = tuple(given.get(name, ()))
    given["append_system_prompt"] = arguments.get("system_prompt", "")
    request = DispatchRequest(**given)
    dispatch = await call.run(lambda now: Dispatch(now.member(), request))
    while (answer := await call.run(lambda now: dispatch.advance(now.store))) is None:
        await call.changed(dispatch.seconds_left())
    if not answer.get("completion", {}).get("messages"):
        return Answer(answer)
    told: dict[str, Any] = answer
    shown = await call.run(lambda now: _with_completion(now, told))
    return Answer(shown, **delivering([message["id"] for message in shown["completion"]["messages"]]))


def _with_completion(call: Call, answer: dict[str, Any]) -> dict[str, Any]:
    """Return `answer`, cut to the size of an answer. Mail that has no room in it is put back."""
    completion = answer["completion"]
    rest = {name: value for name, value in answer.items() if name != "completion"}
    shown = fitted({**rest, "completion": {**completion, "messages": []}}, ROWS_BYTES // 2)
    mail = completion["messages"]
    told = with_mail(call.store, call.member(), shown["completion"], "messages", mail, most=ROWS_BYTES // 2)
    return {**shown, "completion": told}


def _seconds(description: str) -> dict[str, Any]:
    return {"type": "number", "minimum": 0, "description": description}


def _pause(call: Call, arguments: dict[str, Any]) -> Answer:
    from swarm_mcp.agents.dispatch import processes

    return Answer(processes.pause(call.store, call.member(), arguments["task_id"]))


def _resume(call: Call, arguments: dict[str, Any]) -> Answer:
    from swarm_mcp.agents.dispatch import processes

    return Answer(processes.resume(call.store, call.member(), arguments["task_id"]))


TOOLS = (
    Tool(
        "dispatch",
        "Hand work over and have it done: makes the task, or finds the one of an equal dispatch, then gives it to a"
        " live worker of that role and wakes it, or starts a new worker. Repeating it is safe. For sessions that lead"
        " (mode:gateway in the label); any session may use request_task, and leave the work to the first that claims"
        " it. `status` is the outcome: dispatched, spawned, spawn_in_flight (a worker is being started), no_worker or"
        " spawn_failed (the task waits to be claimed), already_terminal.",
        {
            "title": text("The work, in a few words. Equal type, title and role mean the same task."),
            "message": text("Everything the worker must know: aim, limits, criteria. Default: the title."),
            "type": text("Kind of work.", enum=list(TYPES), default=DEFAULT_TYPE),
            "role": text(
                "The wanted worker: a session with role:<this> in its label, else a generalist.", default=DEFAULT_ROLE
            ),
            "files": texts("Files that the work is about; the end of the task releases the worker's locks on them."),
            "priority": number("Higher is claimed earlier. Default 0."),
            "depends_on": texts("Ids of tasks that must be done before."),
            "idempotency_key": text("Dispatches with one key are one task, even with other titles."),
            "parent_task_id": text("The task that this is a part of."),
            "approval_required": flag("It cannot begin before approve_task."),
            "spawn": flag("Off: start no worker; without a live worker, the task waits to be claimed.", True),
            "force_spawn": flag("Start a new worker even if one lives."),
            "spawner": text(
                "The spawner of workers: `process` (default; in the background) or `swarm-ui`."
            ),
            "harness": text(
                "The agent to start, such as `claude` or `codex`; live sessions are not asked then. Default: a live"
                " worker, else this session's own kind. `list` starts nothing: it answers when to use each."
            ),
            "model": text("Model of a started worker, as its harness names it."),
            "mode": text(
                "The rights of a started worker beside locks: write no file, files of its folder (default), or"
                " anything (only if the person has allowed it: SWARM_ALLOW_YOLO).",
                enum=["read-only", "edit", "yolo"],
            ),
            "effort": text("How much a started worker is to think.", enum=["low", "medium", "high", "max"]),
            "timeout_seconds": _seconds("End a started worker after so long. Default: never."),
            "max_cost_usd": _seconds(
                "End a started worker when it has cost that much; refused where its harness cannot tell."
            ),
            "system_prompt": text("More instructions for a started worker, after its harness's own."),
            "skills": texts("Folders with a SKILL.md for a started worker."),
            "output_schema": {
                "type": "object",
                "description": "JSON schema that a started worker's answer is to follow; the result is JSON then.",
            },
            "env": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Variables for a started worker alone.",
            },
            "mcp_servers": {
                "type": "object",
                "additionalProperties": {"type": "object"},
                "description": "More MCP servers for a started worker, name to entry as in a `.mcp.json`; in it"
                " `${NAME}` is a variable of `env`, or of this server.",
            },
            "resume": text(
                "Id of an existing task without a worker: start one that continues it, in the same session if"
                " possible. `title` is ignored then."
            ),
            "fresh": flag("Leave the session of the task's earlier run alone; else it is gone on with."),
            "cwd": text("Folder to start the worker in. Default: this session's."),
            "label": text("More words for the started worker's label."),
            "name": text("The name of the started worker's place on screen."),
            "wait_seconds": _seconds("How long to wait for a started worker. Default: 30, or 5 (swarm-ui)."),
            "placement": PLACEMENT,
            "completion_wait_seconds": _seconds(
                "Wait this long for the task to end, and answer with its result and the worker's messages about it."
                " Default 0: answer as soon as the work is handed over."
            ),
            "nudge": flag("Wake the live worker in its terminal.", True),
            "force": flag("Wake it also while it is busy there."),
            "promote": {
                "type": "boolean",
                "description": "True: the work gets an entry in the work tracker. Default: by the tracker's"
                    " configuration, by type and size.",
            },
            "promote_identifier": text("The entry of the work tracker that this work belongs to, such as ENG-12."),
        },
        _dispatch,
        required=("title",),
        idempotent=True,
    ),
    Tool(
        "pause_task",
        "Have the worker that was started for a task stop for now: its child is ended, its session, locks and task are"
        " kept for resume_task. To end it for good: update_task with status cancelled.",
        {"task_id": text("The task's id.")},
        _pause,
        required=("task_id",),
        is_listed=False,
    ),
    Tool(
        "resume_task",
        "Have a paused worker go on, in the same session where its harness can. Where a task's worker has gone,"
        " dispatch with `resume` starts another.",
        {"task_id": text("The task's id.")},
        _resume,
        required=("task_id",),
        is_listed=False,
    ),
)  # fmt: skip

"""One stage: hooks in order of their names, each one's output the next one's input; and our own hooks.

A hook is an executable ``hooks.d/STAGE/NN-name`` or a function of ours with such a name; of several with one name the
one in the source of highest priority counts. One that fails ends the stage. The names and numbers of ours are those of
the bash harness, so a plugin that replaces or follows one of its hooks does so here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from swarm_mcp.agents.harness.query import parse_json, parse_object
from swarm_mcp.agents.loop import calls, prompts, sources, subprocesses
from swarm_mcp.agents.loop.messages import model_call, written
from swarm_mcp.agents.loop.providers import choice
from swarm_mcp.agents.loop.run import Run
from swarm_mcp.agents.loop.settings import MODEL_FAILED, TOO_LONG, LoopFailure

Hook = Callable[[Any, dict[str, Any]], dict[str, Any]]  # (loop, the stage's data so far) -> its data after the hook
TAIL_LINES = 2


class StageFailed(Exception):
    """A hook has failed. `context` is the input of the stage ``error``: ``{"error": text, ...}``."""

    def __init__(self, context: dict[str, Any]):
        super().__init__(str(context.get("error")))
        self.context = context


def hooks_of(stage: str, found: list[str], ours: dict[str, Hook]) -> dict[str, str | Hook]:
    """Return name -> path or function of the hooks of a stage, in the order they run. `found`: the sources."""
    hooks: dict[str, str | Hook] = {**ours, **sources.executables(found, "hooks.d", stage)}
    return dict(sorted(hooks.items()))


def run(loop: Run, stage: str, context: dict[str, Any], ours: dict[str, Hook]) -> dict[str, Any]:
    """Return the stage's output for the input `context`. Raises StageFailed."""
    current: dict[str, Any] | str = context
    for name, hook in hooks_of(stage, loop.sources, ours).items():
        if callable(hook):
            try:
                current = hook(loop, _parsed(current, stage, name))
            except LoopFailure as error:
                facts = {"error": str(error), "category": error.category, "exit_code": error.exit_code}
                facts["retry_not_before"] = error.retry_not_before
                raise StageFailed(facts) from error
        else:
            current = _run_executable(loop, stage, hook, current)
    return _parsed(current, stage, "")


def _run_executable(loop: Run, stage: str, path: str, current: dict[str, Any] | str) -> str:
    if isinstance(current, str):
        text = current
    else:
        text = json.dumps(current, ensure_ascii=False)
    ran = subprocesses.run([path], text + "\n", env=loop.environment(stage), cwd=loop.settings.folder)
    loop.log(ran.err)
    if ran.code == 0:
        return ran.out
    said = parse_object(ran.out)
    if said.get("error"):
        raise StageFailed({**said, "error": str(said["error"])})
    tail = " ".join(ran.err.split("\n")[-TAIL_LINES - 1 :]).strip()
    raise StageFailed({"error": f"hook {path} exited {ran.code} during {stage}{': ' + tail if tail else ''}"})


def _parsed(current: dict[str, Any] | str, stage: str, name: str) -> dict[str, Any]:
    if isinstance(current, dict):
        return current
    if not current.strip():
        return {}
    found = parse_json(current)
    if not isinstance(found, dict):
        if name:
            where = f"before {name}"
        else:
            where = "at its end"
        raise StageFailed({"error": f"the hooks of {stage} gave no JSON object {where}: {current.strip()[:120]}"})
    return found


def described(hook: str | Hook) -> str:
    """Return where a hook comes from, for people."""
    if callable(hook):
        return "(built in)"
    return os.path.abspath(hook)


def walk_dirs(loop: Run, data: dict[str, Any]) -> dict[str, Any]:
    """sources: every plugin folder, lowest priority first."""
    found = sources.walk(loop.settings.root, loop.settings.home, loop.settings.folder)
    active = (loop.settings.provider, loop.provider.protocol_name if loop.provider else "")
    return {"sources": sources.scoped(found, active) if loop.provider else found}


def detect(loop: Run, data: dict[str, Any]) -> dict[str, Any]:
    """resolve: the provider that was asked for, else the first that is ready."""
    return {**data, "provider": data.get("provider") or choice.first_ready(loop.sources, loop.environment("resolve"))}


def defaults(loop: Run, data: dict[str, Any]) -> dict[str, Any]:
    """resolve: the model that was asked for, else the provider's own."""
    found = choice.resolve(str(data.get("provider") or ""), loop.sources, loop.environment("resolve"))
    loop.provider = found
    return {**data, "model": data.get("model") or found.default_model}


def begin(loop: Run, data: dict[str, Any]) -> dict[str, Any]:
    """start: join the swarm, have the servers started."""
    loop.servers.start(loop)
    loop.greeting = loop.swarm.join(loop)
    return {**data, "next_state": "assemble"}


def add_messages(loop: Run, data: dict[str, Any]) -> dict[str, Any]:
    """assemble: the conversation so far, as the provider's protocol has it."""
    messages = loop.provider.protocol.messages(loop.session.turns())
    return {"model": loop.settings.model, **data, "messages": messages, "next_state": "send"}


def add_tools(loop: Run, data: dict[str, Any]) -> dict[str, Any]:
    """assemble: the tools there are now."""
    return {**data, "tools": calls.schemas(loop), "next_state": "send"}


def add_prompts(loop: Run, data: dict[str, Any]) -> dict[str, Any]:
    """assemble: the model's role, and the project's own instructions."""
    return {**data, "system": prompts.system(loop), "next_state": "send"}


def add_skills(loop: Run, data: dict[str, Any]) -> dict[str, Any]:
    """assemble: the skills there are, by name and description."""
    catalogue = prompts.skill_catalogue(loop)
    return {**data, "system": "\n\n".join(filter(None, (data.get("system"), catalogue))), "next_state": "send"}


def add_swarm(loop: Run, data: dict[str, Any]) -> dict[str, Any]:
    """assemble: where this session stands in the swarm."""
    return {**data, "system": "\n\n".join(filter(None, (data.get("system"), loop.greeting))), "next_state": "send"}


def send(loop: Run, data: dict[str, Any]) -> dict[str, Any]:
    """send: ask the model. Tools that its answer calls begin while it is still coming."""
    most = loop.settings.config.get("max_turns")
    if isinstance(most, int) and 0 < most <= loop.asked:
        raise LoopFailure(f"stopped after {loop.asked} turns, as many as it may take", "budget", TOO_LONG)
    loop.swarm.renew()
    loop.session.new_turn()
    loop.asked += 1
    early_calls = calls.EarlyCalls(loop)
    try:
        response = loop.provider.ask(loop, data, early_calls)
    except LoopFailure as error:
        error.exit_code = MODEL_FAILED
        raise
    finally:
        early_calls.finish()
    return {**response, "next_state": "receive"}


def save_answer(loop: Run, data: dict[str, Any]) -> dict[str, Any]:
    """receive: write the answer down; go on with its calls, or be done."""
    reply = loop.provider.protocol.read(data)
    made = [block.call for block in reply.blocks if block.call]
    if made:
        stop = "tool_calls"
    else:
        stop = reply.stop
    number = loop.session.add(
        "assistant", written(reply.blocks), model=reply.model or loop.settings.model, provider=loop.settings.provider,
        stop=stop, tokens_in=reply.usage.get("input") or 0, tokens_out=reply.usage.get("output") or 0,
    )  # fmt: skip
    loop.session.stream("stop", reason=stop, seq=number)
    loop.report.answered(reply, loop.provider.price)
    for one in made:
        loop.report.tool_start(one)
    if made:
        return {"next_state": "tool_exec", "tool_calls": [one._asdict() for one in made]}
    output = "".join(block.text for block in reply.blocks if block.kind == "text")
    complaint = prompts.schema_complaint(loop, output)
    if complaint:
        loop.session.add("user", complaint)
        return {"next_state": "assemble"}
    return {"next_state": "done", "output": output}


def execute(loop: Run, data: dict[str, Any]) -> dict[str, Any]:
    """tool_exec: carry out the first of the calls, or take the result that it has already."""
    waiting = data.get("tool_calls")
    if not isinstance(waiting, list) or not waiting or not isinstance(waiting[0], dict):
        raise LoopFailure("the stage tool_exec was given no tool call")
    made, rest = model_call(waiting[0].get("id"), waiting[0].get("name"), waiting[0].get("input")), waiting[1:]
    result = loop.session.take_result(made.id) or loop.early.pop(made.id, None)
    text, error = result if result else calls.execute(loop, made)
    done = {"call_id": made.id, "name": made.name, "input": made.input, "result": text, "error": error}
    return {**done, "tool_calls": rest, "next_state": "tool_done"}


def save_result(loop: Run, data: dict[str, Any]) -> dict[str, Any]:
    """tool_done: write the result down; go on with the next call, or ask the model."""
    call_id, name, error = str(data.get("call_id")), str(data.get("name")), data.get("error") in (True, "true")
    text, rest = str(data.get("result") or ""), data.get("tool_calls") or []
    number = loop.session.add("tool_result", text, call_id=call_id, tool=name, error="true" if error else "false")
    loop.session.stream("tool_done", id=call_id, name=name, seq=number, error="true" if error else "false")
    loop.report.tool_end(call_id, name, text, error)
    if rest:
        return {"next_state": "tool_exec", "tool_calls": rest}
    return {"next_state": "assemble"}


def display(loop: Run, data: dict[str, Any]) -> dict[str, Any]:
    """error: report the failure."""
    text = str(data.get("error") or "a hook failed")
    if loop.session:
        loop.session.stream("error", message=text)
    return {"output": f"error: {text}"}


OURS: dict[str, dict[str, Hook]] = {
    "sources": {"30-walk-dirs": walk_dirs},
    "resolve": {"20-detect": detect, "30-defaults": defaults},
    "start": {"10-init": begin},
    "assemble": {
        "10-messages": add_messages, "20-tools": add_tools, "30-prompts": add_prompts, "35-skills": add_skills,
        "38-swarm": add_swarm,
    },
    "send": {"10-send": send},
    "receive": {"10-save": save_answer},
    "tool_exec": {"10-exec": execute},
    "tool_done": {"10-save": save_result},
    "error": {"10-display": display},
    "done": {},
}  # fmt: skip
STAGES = tuple(OURS)

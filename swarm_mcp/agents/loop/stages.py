"""One stage: hooks in order of their names; and the calls of tools that the model makes.

A hook is an executable ``hooks.d/STAGE/NN-name`` or a function of ours with such a name; of several with one name the
one in the source of highest priority counts. One that fails ends the stage. The names and numbers of ours are those of
the bash harness, so a plugin that replaces or follows one of its hooks does so here.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import Any

from swarm_hook_core import state
from swarm_mcp.agents.harness.query import parse_json, parse_object
from swarm_mcp.agents.loop import prompts, providers, tools
from swarm_mcp.agents.loop.session import ModelCall, model_call, written
from swarm_mcp.agents.loop.settings import DEPTH, MODEL_FAILED, TOO_LONG, TOOL_SECONDS, LoopFailure, LoopRun, number

# The tools of a run, and carrying out the model's calls of them.

LONGEST_RESULT = 100_000  # characters that a model is given of one result
SCHEMA_SECONDS = 10.0
_schemas: dict[tuple[Any, ...], dict[str, Any] | None] = {}


def found(loop: LoopRun) -> dict[str, str]:
    """Return name -> executable of every plugin's tool. Built-in tools need no executable."""
    return tools.executables(loop.sources, "tools")


def is_ours(loop: LoopRun, name: str, path: str | None) -> bool:
    """Return True for a built-in tool, which runs in this process, and False for a plugin's."""
    ours = bool(loop.settings.root) and bool(path) and str(path).startswith(os.path.join(loop.settings.root, ""))
    return name in tools.NAMES and (path is None or ours)


def schemas(loop: LoopRun) -> list[dict[str, Any]]:
    """Return every tool as ``{"name", "description", "input_schema"}``, by name."""
    paths = found(loop)
    listed: list[dict[str, Any]] = []
    for name in sorted({*paths, *tools.NAMES}):
        path = paths.get(name)
        if not _may_use(loop, name, is_ours(loop, name, path)):
            continue
        if name == "agent" and loop.settings.depth >= DEPTH:
            continue
        shown: dict[str, Any] | None
        if is_ours(loop, name, path):
            shown = tools.schema(name)
        else:
            shown = _asked(loop, str(path))
        if shown:
            listed.append(shown)
    return [*listed, *loop.servers.schemas(loop)]


def execute_call(loop: LoopRun, made: ModelCall) -> tuple[str, bool]:
    """Carry out a call; return ``(result, is_error)``. Never raises for errors of the call itself."""
    path = found(loop).get(made.name)
    ours = is_ours(loop, made.name, path)
    served = made.name in loop.servers
    if not ours and not path and not served:
        return f"error: tool '{made.name}' not found", True
    if not (loop.servers.may_use(loop, made.name) if served else _may_use(loop, made.name, ours)):
        return f"error: this run is read-only; {made.name} is not available", True
    denial = loop.swarm.denial(made, ours)
    if denial:
        return denial, True
    text = ""
    try:
        if ours:
            text, error = tools.run(loop, made, loop.swarm.plan_of(made))
        elif path:
            text, error = _execute(loop, path, made)
        else:
            text, error = loop.servers.call(made)
    finally:
        words = loop.swarm.after(made, text)
    if len(text) > LONGEST_RESULT:
        half = LONGEST_RESULT // 2
        text = f"{text[:half]}\n[{len(text) - LONGEST_RESULT} characters left out]\n{text[-half:]}"
    return (f"{text}\n{words}" if words else text), error


class EarlyCalls:
    """Calls that are carried out while the model's answer is still coming.

    Their results wait in the session's ``.tool_dispatch`` for the stage ``tool_exec``. Writes keep their order; all
    other calls run side by side.
    """

    def __init__(self, loop: LoopRun):
        self._loop = loop
        self._running: list[threading.Thread] = []

    def begin(self, made: ModelCall) -> None:
        """Take a call that the answer now holds whole."""
        self._loop.session.stream("tool_start", id=made.id, name=made.name, input=made.input)
        if not self._loop.settings.predispatch:
            return
        if made.name in tools.WRITERS:
            self._carry_out(made)
            return
        thread = threading.Thread(target=self._carry_out, args=(made,), name=f"tool {made.name}", daemon=True)
        thread.start()
        self._running.append(thread)

    def finish(self) -> None:
        """Wait for all of them."""
        for thread in self._running:
            thread.join()
        self._running.clear()

    def _carry_out(self, made: ModelCall) -> None:
        try:
            text, error = execute_call(self._loop, made)
        except Exception as fault:
            state.record("loop", "early_call", state.describe(fault))
            text, error = f"error: {type(fault).__name__}: {fault}", True
        self._loop.early[made.id] = (text, error)  # in case the file cannot be written
        try:
            self._loop.session.put_result(made.id, text, error)
        except OSError:  # `early` has the result
            return


def _may_use(loop: LoopRun, name: str, ours: bool) -> bool:
    """Return True if a run in this mode may use a tool. A read-only run may use built-in tools that read."""
    return not loop.settings.read_only or (ours and name in tools.READERS)


def _execute(loop: LoopRun, path: str, made: ModelCall) -> tuple[str, bool]:
    seconds = number("HARNESS_TOOL_TIMEOUT", TOOL_SECONDS)
    text = json.dumps(made.input, ensure_ascii=False)
    ran = tools.run_command(
        [path, "--exec"], text + "\n", env=loop.environment("tool_exec"), cwd=loop.cwd, seconds=seconds,
        reaper=loop.reaper, together=True,
    )  # fmt: skip
    if ran.timed_out:
        return f"{ran.out}\nerror: {made.name} took longer than {seconds:.0f} s and was ended".lstrip("\n"), True
    return ran.out.rstrip("\n"), ran.code != 0


def _asked(loop: LoopRun, path: str) -> dict[str, Any] | None:
    """Return an executable's description of itself; it is asked once for each version of the file."""
    try:
        status = os.stat(path)
    except OSError:  # removed meanwhile
        return None
    key = (path, status.st_mtime_ns, status.st_size)
    if key not in _schemas:
        ran = tools.run_command(
            [path, "--schema"], env=loop.environment("assemble"), cwd=loop.settings.folder, seconds=SCHEMA_SECONDS,
            reaper=loop.reaper,
        )  # fmt: skip
        _schemas[key] = _schema(ran.out) if ran.code == 0 else None
        if _schemas[key] is None:
            loop.log(f"[harness] tool {path} gives no usable --schema")
    return _schemas[key]


def _schema(text: str) -> dict[str, Any] | None:
    shown = parse_object(text)
    if not isinstance(shown.get("name"), str):
        return None
    wanted = shown.get("input_schema")
    return {
        "name": shown["name"],
        "description": str(shown.get("description") or ""),
        "input_schema": wanted if isinstance(wanted, dict) else {"type": "object", "properties": {}},
    }


Hook = Callable[[Any, dict[str, Any]], dict[str, Any]]  # (loop, the stage's data so far) -> its data after the hook
TAIL_LINES = 2


class StageFailed(Exception):
    """A hook has failed. `context` is the input of the stage ``error``: ``{"error": text, ...}``."""

    def __init__(self, context: dict[str, Any]):
        super().__init__(str(context.get("error")))
        self.context = context


def hooks_of(stage: str, found: list[str], ours: dict[str, Hook]) -> dict[str, str | Hook]:
    """Return name -> path or function of the hooks of a stage, in the order they run. `found`: the sources."""
    hooks: dict[str, str | Hook] = {**ours, **tools.executables(found, "hooks.d", stage)}
    return dict(sorted(hooks.items()))


def run(loop: LoopRun, stage: str, context: dict[str, Any], ours: dict[str, Hook]) -> dict[str, Any]:
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


def _run_executable(loop: LoopRun, stage: str, path: str, current: dict[str, Any] | str) -> str:
    if isinstance(current, str):
        text = current
    else:
        text = json.dumps(current, ensure_ascii=False)
    ran = tools.run_command([path], text + "\n", env=loop.environment(stage), cwd=loop.settings.folder)
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


def walk_dirs(loop: LoopRun, data: dict[str, Any]) -> dict[str, Any]:
    """sources: every plugin folder, lowest priority first."""
    found = tools.walk(loop.settings.root, loop.settings.home, loop.settings.folder)
    active = (loop.settings.provider, loop.provider.protocol_name if loop.provider else "")
    return {"sources": tools.scoped(found, active) if loop.provider else found}


def detect(loop: LoopRun, data: dict[str, Any]) -> dict[str, Any]:
    """resolve: the provider that was asked for, else the first that is ready."""
    return {
        **data,
        "provider": data.get("provider") or providers.first_ready(loop.sources, loop.environment("resolve")),
    }


def defaults(loop: LoopRun, data: dict[str, Any]) -> dict[str, Any]:
    """resolve: the model that was asked for, else the provider's own."""
    found = providers.resolve(str(data.get("provider") or ""), loop.sources, loop.environment("resolve"))
    loop.provider = found
    return {**data, "model": data.get("model") or found.default_model}


def begin(loop: LoopRun, data: dict[str, Any]) -> dict[str, Any]:
    """start: join the swarm, have the servers started."""
    loop.servers.start(loop)
    loop.greeting = loop.swarm.join(loop)
    return {**data, "next_state": "assemble"}


def add_messages(loop: LoopRun, data: dict[str, Any]) -> dict[str, Any]:
    """assemble: the conversation so far, as the provider's protocol has it."""
    messages = loop.provider.protocol.messages(loop.session.turns())
    return {"model": loop.settings.model, **data, "messages": messages, "next_state": "send"}


def add_tools(loop: LoopRun, data: dict[str, Any]) -> dict[str, Any]:
    """assemble: the tools there are now."""
    return {**data, "tools": schemas(loop), "next_state": "send"}


def add_prompts(loop: LoopRun, data: dict[str, Any]) -> dict[str, Any]:
    """assemble: the model's role, and the project's own instructions."""
    return {**data, "system": prompts.system(loop), "next_state": "send"}


def add_skills(loop: LoopRun, data: dict[str, Any]) -> dict[str, Any]:
    """assemble: the skills there are, by name and description."""
    catalogue = prompts.skill_catalogue(loop)
    return {**data, "system": "\n\n".join(filter(None, (data.get("system"), catalogue))), "next_state": "send"}


def add_swarm(loop: LoopRun, data: dict[str, Any]) -> dict[str, Any]:
    """assemble: where this session stands in the swarm."""
    return {**data, "system": "\n\n".join(filter(None, (data.get("system"), loop.greeting))), "next_state": "send"}


def send(loop: LoopRun, data: dict[str, Any]) -> dict[str, Any]:
    """send: ask the model. Tools that its answer calls begin while it is still coming."""
    most = loop.settings.config.get("max_turns")
    if isinstance(most, int) and 0 < most <= loop.asked:
        raise LoopFailure(f"stopped after {loop.asked} turns, as many as it may take", "budget", TOO_LONG)
    loop.swarm.renew()
    loop.session.new_turn()
    loop.asked += 1
    early_calls = EarlyCalls(loop)
    try:
        response = loop.provider.ask(loop, data, early_calls)
    except LoopFailure as error:
        error.exit_code = MODEL_FAILED
        raise
    finally:
        early_calls.finish()
    return {**response, "next_state": "receive"}


def save_answer(loop: LoopRun, data: dict[str, Any]) -> dict[str, Any]:
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


def execute(loop: LoopRun, data: dict[str, Any]) -> dict[str, Any]:
    """tool_exec: carry out the first of the calls, or take the result that it has already."""
    waiting = data.get("tool_calls")
    if not isinstance(waiting, list) or not waiting or not isinstance(waiting[0], dict):
        raise LoopFailure("the stage tool_exec was given no tool call")
    made, rest = model_call(waiting[0].get("id"), waiting[0].get("name"), waiting[0].get("input")), waiting[1:]
    result = loop.session.take_result(made.id) or loop.early.pop(made.id, None)
    text, error = result if result else execute_call(loop, made)
    done = {"call_id": made.id, "name": made.name, "input": made.input, "result": text, "error": error}
    return {**done, "tool_calls": rest, "next_state": "tool_done"}


def save_result(loop: LoopRun, data: dict[str, Any]) -> dict[str, Any]:
    """tool_done: write the result down; go on with the next call, or ask the model."""
    call_id, name, error = str(data.get("call_id")), str(data.get("name")), data.get("error") in (True, "true")
    text, rest = str(data.get("result") or ""), data.get("tool_calls") or []
    number = loop.session.add("tool_result", text, call_id=call_id, tool=name, error="true" if error else "false")
    loop.session.stream("tool_done", id=call_id, name=name, seq=number, error="true" if error else "false")
    loop.report.tool_end(call_id, name, text, error)
    if rest:
        return {"next_state": "tool_exec", "tool_calls": rest}
    return {"next_state": "assemble"}


def display(loop: LoopRun, data: dict[str, Any]) -> dict[str, Any]:
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

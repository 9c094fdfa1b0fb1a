"""The hooks of the harness's stages. Argument: start, assemble, tool_exec or end.

The input of a stage comes on standard input. Only `assemble` answers: with the input and more.
"""

import os
import sys

GREETING = "greeting"


def start() -> None:
    """Register the session, and keep its greeting for `assemble`."""
    from harness_call import core, is_sub_agent, payload

    from swarm_hook_core import session_events
    from swarm_hook_core.hooks import session_event
    from swarm_hook_core.state import write_private

    if is_sub_agent():
        os.environ.pop("SWARM_MCP_INSTANCE_ID", None)  # reserved for the session that has started this one
        os.environ.pop("SWARM_MCP_LABEL", None)
    try:
        event = session_event(payload("SessionStart", source=_source()))
        text = session_events.start(core.config, event, core.registrar, state="working")
    except session_events.NotRegistered as error:
        text = str(error)
    if text:
        write_private(_greeting_file(), text)


def assemble() -> None:
    """Print the request in the making with the greeting, and news that cannot wait, behind its system prompt."""
    from harness_call import core, payload

    from swarm_hook_core.hooks import read, session_event
    from swarm_hook_core.json_text import dumps, loads

    given = loads(read(sys.stdin))  # all of it: it is handed on
    words = [_greeting(), core.words_now(session_event(payload("UserPromptSubmit")))]
    text = "\n\n".join(filter(None, words))
    if not text:
        return
    system = given.get("system")
    if isinstance(system, list):
        given["system"] = [*system, {"type": "text", "text": text}]
    else:
        given["system"] = f"{system}\n\n{text}" if isinstance(system, str) and system else text
    sys.stdout.write(dumps(given))
    sys.stdout.flush()


def tool_exec() -> None:
    """Answer the first waiting call ourselves where it would write a peer's file and nothing else has answered it."""
    from harness_call import SHELL_TOOL, call, core

    from swarm_hook_core.hooks import read
    from swarm_hook_core.json_text import dumps, loads_object

    given = loads_object(read(sys.stdin))
    waiting = given.get("tool_calls", [given])[0]
    tool, call_id = waiting["name"], waiting["id"]
    if not (isinstance(call_id, str) and call_id and "/" not in call_id and isinstance(tool, str)):
        return
    folder = os.path.join(os.environ["HARNESS_SESSION"], ".tool_dispatch")
    answer = os.path.join(folder, f"{call_id}.json")
    if os.path.exists(answer) or (tool == SHELL_TOOL and _is_guarded(tool)):
        return
    verdict = core.judge(call("PreToolUse", tool, waiting.get("input"), call_id))
    if verdict is None or verdict.denial is None:
        return
    os.makedirs(folder, exist_ok=True)
    scratch = f"{answer}.{os.getpid()}"
    with open(scratch, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(dumps({"result": verdict.denial.reason, "error": True}))
    os.replace(scratch, answer)


def end() -> None:
    """Deregister the session, and release its locks."""
    from harness_call import core, payload

    from swarm_hook_core.json_text import dumps

    try:
        os.remove(_greeting_file())
    except OSError:
        pass  # there was no greeting
    core.run_session_end_hook(_Given(dumps(payload("SessionEnd", reason="other"))))


class _Given:
    """Standard input, for the core."""

    def __init__(self, text: str) -> None:
        self.text = text

    def read(self) -> str:
        return self.text


def _source() -> str:
    """Return the kind of start: new, or resumed."""
    try:
        if len(os.listdir(os.path.join(os.environ["HARNESS_SESSION"], "messages"))) < 2:
            return "startup"
        return "resume"
    except (OSError, KeyError):  # a new session has no messages
        return "startup"


def _greeting_file() -> str:
    from harness_call import core, session_id

    from swarm_hook_core.session_memory import folder_of

    return os.path.join(folder_of(core.config, session_id()), GREETING)


def _greeting() -> str:
    try:
        with open(_greeting_file(), encoding="utf-8", errors="replace") as file:
            return file.read(16384)
    except OSError:  # not kept
        return ""


def _is_guarded(tool: str) -> bool:
    """Return True if the called tool is one of our guards, and so asks for itself."""
    sources = os.environ.get("HARNESS_SOURCES", "").split(":")
    found = [path for path in (os.path.join(source, "tools", tool) for source in sources) if os.access(path, os.X_OK)]
    beside = ""
    if found:
        beside = os.path.join(os.path.dirname(os.path.realpath(found[-1])), "..", "hooks", "guard.py")
    return bool(beside) and os.path.isfile(beside)


if __name__ == "__main__":
    status = 0
    try:
        {"start": start, "assemble": assemble, "tool_exec": tool_exec, "end": end}[sys.argv[1]]()
    except Exception as error:
        status = 1
        try:
            from swarm_hook_core import state

            state.record("hs", sys.argv[1], error)
        except Exception:
            status = 1
    os._exit(status)

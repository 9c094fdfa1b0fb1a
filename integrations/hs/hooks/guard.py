"""The check behind the guard tools. Arguments: before|after, tool, an id for the call, how the guard was called.

Standard input is the tool's own. Ends with 10 where the call is refused (standard output says why), with 11 where it
may go ahead and there is something to be said or looked at afterwards, with 12 where the plugin's own files are broken,
else with 0.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.config import RuntimeConfig
    from swarm_hook_core.hooks import ToolCall

REFUSED, BESIDE, BROKEN = 10, 11, 12


def main() -> int:
    """The exit status."""
    try:
        from harness_call import SHELL_TOOL, call, core

        from swarm_hook_core.hooks import read
        from swarm_hook_core.json_text import loads_outer
    except Exception:  # guard.sh takes it from here
        return BROKEN

    when, tool, call_id, called = sys.argv[1:5]
    try:
        tool_input = loads_outer(read(sys.stdin))
    except ValueError as error:
        return _unread(core.config, call("PreToolUse", "", None, call_id), error)
    # Called by name from within a shell command, a tool takes relative paths from where that is.
    nested = ""
    if "/.tool-bin/" in called:
        nested = os.environ.get("HARNESS_CWD") or os.getcwd()
    call_id = f"guard-{call_id}"
    if when == "after":
        return _say(core.words_after(call("PostToolUse", tool, tool_input, call_id, nested)), 0)
    asked = call("PreToolUse", tool, tool_input, call_id, nested)
    verdict = core.judge(asked)
    if verdict is None:
        return 0
    if verdict.denial is not None:
        return _say(verdict.denial.reason, REFUSED)
    words = core.words_beside(verdict, asked)
    if words or verdict.watched or (tool == SHELL_TOOL and core.is_watching()):
        return _say(words, BESIDE)
    return 0


def _unread(config: "RuntimeConfig", asked: "ToolCall", error: ValueError) -> int:
    """Answer a call with input that cannot be read: refuse it, or raise `error` if it may go ahead."""
    from swarm_hook_core import fail_closed

    verdict = fail_closed.verdict(config, asked, error)
    if verdict is None:
        raise error
    return _say(verdict.denial.reason, REFUSED)


def _say(text: str, status: int) -> int:
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    sys.stdout.flush()
    return status


if __name__ == "__main__":
    try:
        status = main()
    except Exception as error:
        status = 0
        try:
            from swarm_hook_core import state

            state.record("hs", "guard", error)
        except Exception:
            status = 0
    os._exit(status)

"""Asks the check before a script in a namespace runs git: git_check.py GIT_WORDS. The status is 77 for a refusal.

The ``git`` beside it starts it. That is first on PATH there. Git with files that it cannot write ends half done, so it
must not begin. Any fault here lets it run.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.config import RuntimeConfig

REFUSED = 77
HERE = os.path.dirname(os.path.abspath(__file__))


def main(words: "list[str]") -> int:
    """Decide on a git call with these words, for the session of the command around it."""
    from swarm_hook_core.core import HookCore
    from swarm_hook_core.hooks import ToolCall
    from swarm_hook_core.untrusted_text import as_word

    client, session_id, agent = (os.environ["SWARM_KERNEL_HELD"].split(" ") + ["", ""])[:3]
    config = _config_of(client)
    folders = os.environ.get("PATH", "").split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(folder for folder in folders if folder != HERE)
    command = " ".join(["git", *map(as_word, words)])
    call = ToolCall("Bash", {"command": command}, session_id, os.getcwd(), "PreToolUse", agent, client_tool="git")
    verdict = HookCore(config, is_within=True).judge(call)
    if verdict is None or verdict.denial is None:
        return 0
    print(f"swarm: {verdict.denial.reason}", file=sys.stderr)
    return REFUSED


def _config_of(client: str) -> "RuntimeConfig":
    """The RuntimeConfig of a client, or of one of our own harnesses."""
    folder = os.path.join(os.path.dirname(HERE), client)
    if not os.path.exists(os.path.join(folder, "runtime.py")):
        from swarm_hook_core.kernel.planning import plain_config

        return plain_config(client)
    sys.path.insert(0, folder)
    from runtime import RUNTIME

    return RUNTIME


if __name__ == "__main__":
    plugin = os.path.dirname(os.path.dirname(HERE))  # or the coordinator's package: it holds the plugin's files
    sys.path[:1] = [plugin, os.path.dirname(os.path.dirname(plugin))]
    try:
        status = main(sys.argv[1:])
    except Exception as error:
        status = 0
        try:
            from swarm_hook_core import state

            state.record("kernel", "git", error)
        except Exception:
            pass  # no one to tell
    os._exit(status)

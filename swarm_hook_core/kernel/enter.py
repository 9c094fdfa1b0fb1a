"""Run a command with the files locked by others read-only: enter.py PLANS SHELL -c TEXT.

PLANS is a plan, or a folder of plans (``plans``). The shell of a client's command starts this in its own place
(``plans``), and so do our own harnesses. Without a plan for the command, or if the kernel cannot hold anything, the
command runs unchanged, unless its plan is strict.

A child makes the namespaces and stays in them, to keep the mounts in line with the locks (``namespace.keep``). This
process joins them after all paths are held: an earlier failure changes nothing for the command.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # as signal, which takes a millisecond to import
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm_hook_core.kernel.plans import Plan

# Python ignores these signals, and the command would inherit that: it would get errors on a closed pipe instead of
# ending.
_IGNORED = [_signal.SIGPIPE, _signal.SIGXFSZ]
REFUSED = 126  # exit status of a strict command that was not started, as the locks could not be held


def main(place: str, command: list[str]) -> None:
    """Replace this process by `command`. Raises OSError if there is no such program."""
    try:
        from swarm_hook_core.kernel import plans

        plan = plans.chosen(place, command[-1])
    except Exception:  # the installed files are being replaced: run the command unchanged
        plan = None
    if plan is not None:
        if sys.platform == "darwin":
            from swarm_hook_core.kernel.namespace import wrapped

            command = wrapped(plan, command)
            why = ""
        else:
            why = _entered(plan)
        if why:
            print(f"{plans.NOT_HELD}: {why}", file=sys.stderr)
            if plan.is_strict:
                print("swarm: it was not started: SWARM_STRICT forbids commands with uncertain writes", file=sys.stderr)
                os._exit(REFUSED)
        else:
            os.environ["SWARM_KERNEL_HELD"] = f"{plan.runtime} {plan.session} {plan.agent}"
            os.environ["SWARM_KERNEL_PYTHON"] = sys.executable
            os.environ["SWARM_KERNEL_CLIENT"] = client_session(os.environ)
            git, path = plans.git_folder(), os.environ.get("PATH", os.defpath)
            if not path.startswith(f"{git}:"):
                os.environ["PATH"] = f"{git}:{path}"
    for number in _IGNORED:
        _signal.signal(number, _signal.SIG_DFL)
    os.execvp(command[0], command)


def client_session(environment: Mapping[str, str]) -> str:
    """Return the client's session as a command sees it in its environment."""
    return f"{environment.get('CLAUDE_CODE_SESSION_ID', '')}/{environment.get('CODEX_THREAD_ID', '')}"


def _entered(plan: Plan) -> str:
    """Enter a namespace in which the paths of `plan` are read-only; return "" or the reason of the failure."""
    try:
        # loaded before the fork, for both processes: it takes a fifth of the time
        from swarm_hook_core.kernel import namespace

        reading, writing = os.pipe()
        command = os.getpid()
        child = os.fork()
        if child == 0:
            try:
                os.close(reading)
                # A grandchild, so that the shell never meets it when it waits for its children.
                if os.fork() == 0:
                    namespace.keep(plan, command, writing)
            finally:
                os._exit(0)
        os.close(writing)
        try:
            os.waitpid(child, 0)
        except ChildProcessError:
            pass  # the parent of this process ignores the ends of its children, and this process inherited that
        report = b"".join(iter(lambda: os.read(reading, 4096), b"")).decode("utf-8", "surrogateescape")
        os.close(reading)
        word, _, about = report.partition(" ")
        if word == "held":
            namespace.join(int(about))
            return ""
        if word == "nothing":
            return ""
        return about or "the process that holds the files has ended"
    except Exception as error:
        return str(error)  # the caller prints it


if __name__ == "__main__":
    sys.path[:1] = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]
    try:
        main(sys.argv[1], sys.argv[2:])
    except OSError as failed:
        print(f"{sys.argv[2]}: {failed.strerror}", file=sys.stderr)
        os._exit(127)

"""Runs a command with what others have locked read-only: enter.py PLANS SHELL -c TEXT.

PLANS is a plan, or a folder of them (``plans``). Started by the shell of a client's command in its own place
(``plans``), and by our own harnesses. Where there is no plan for the command, or the kernel cannot hold anything, the
command runs as it is, unless its plan is strict.

The namespaces are made by a child, which stays in them to keep the mounts in line with the locks (``upkeep``). Only
once all is held this process joins it: whatever fails before has changed nothing for the command.
"""

import _signal  # type: ignore[import-not-found]  # as signal, which takes a millisecond to import
import os
import sys

# What Python ignores would stay ignored in the command: it would be told of a closed pipe instead of being ended.
_IGNORED = [_signal.SIGPIPE, _signal.SIGXFSZ]
REFUSED = 126  # exit status of a command that was not started: what others hold could not be held


def main(place: str, command: "list[str]") -> None:
    """Start `command` in the place of this process. Raises OSError where there is no such program."""
    try:
        from swarm_hook_core.kernel import plans

        plan = plans.chosen(place, command[-1])
    except Exception:  # our own files are being replaced
        plan = None
    if plan is not None:
        if sys.platform == "darwin":
            from swarm_hook_core.kernel.seatbelt import wrapped

            command = wrapped(plan, command)
            why = ""
        else:
            why = _entered(plan)
        if why:
            print(f"{plans.NOT_HELD}: {why}", file=sys.stderr)
            if plan.is_strict:
                print("swarm: it was not started, since nothing uncertain may run here: SWARM_STRICT", file=sys.stderr)
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


def client_session(environment) -> str:
    """What says to a command, in its environment, in which client's session it runs."""
    return f"{environment.get('CLAUDE_CODE_SESSION_ID', '')}/{environment.get('CODEX_THREAD_ID', '')}"


def _entered(plan) -> str:
    """Enter a namespace in which what `plan` names is read-only; why not, empty where that went well."""
    try:
        from swarm_hook_core.kernel import namespace  # both processes need it: it takes a fifth of all this to load

        reading, writing = os.pipe()
        command = os.getpid()
        child = os.fork()
        if child == 0:
            try:
                os.close(reading)
                # Its own child is nobody's that the shell would meet when it waits.
                if os.fork() == 0:
                    from swarm_hook_core.kernel import upkeep

                    upkeep.run(plan, command, writing)
            finally:
                os._exit(0)
        os.close(writing)
        try:
            os.waitpid(child, 0)
        except ChildProcessError:
            pass  # whoever started this process ignores the ends of its children, and so does this one
        said = b"".join(iter(lambda: os.read(reading, 4096), b"")).decode("utf-8", "surrogateescape")
        os.close(reading)
        word, _, about = said.partition(" ")
        if word == "held":
            namespace.join(int(about))
            return ""
        return "" if word == "nothing" else about or "the process that should hold it has ended"
    except Exception as error:
        return str(error)


if __name__ == "__main__":
    sys.path[:1] = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]
    try:
        main(sys.argv[1], sys.argv[2:])
    except OSError as failed:
        print(f"{sys.argv[2]}: {failed.strerror}", file=sys.stderr)
        os._exit(127)

"""One side of the comparison of ``both_ways``: answers calls, a line of JSON each on standard input and output.

    check_sides.py checker FOLDERS LIMITS     in one process, as the checker does
    check_sides.py alone FOLDERS LIMITS ROOT  each in a forked process, as a hook of the plugin at ROOT does

Nothing is started in the background: the commands are part of the answer. LIMITS are names of limits on time, by module.
They are raised, so that they decide nothing here.
"""

import base64
import gc
import io
import json
import os
import signal
import sys
import traceback

AMPLE = 60.0  # seconds
PIPE = 65536  # bytes that a pipe holds
CALLER = 4194303  # a pid that no process here has: the checker's side looks up the parent of no other


def main() -> None:
    """Answer until the end of the input."""
    way, folders = sys.argv[1], json.loads(sys.argv[2])
    sys.path[:0] = folders
    answer = _checker() if way == "checker" else _alone(sys.argv[4])
    for module, names in json.loads(sys.argv[3]).items():
        for name in names.split():
            assert hasattr(sys.modules[module], name), (module, name)
            setattr(sys.modules[module], name, AMPLE)
    told, sys.stdout = os.fdopen(os.dup(1), "w"), io.StringIO()
    os.dup2(os.pipe()[1], 1)
    print(json.dumps({"pid": os.getpid()}), file=told, flush=True)
    for line in sys.stdin.buffer:
        call = json.loads(line)
        call["payload"] = base64.b64decode(call["payload"])
        status, output, started = answer(call)
        said = {"status": status, "output": base64.b64encode(output).decode(), "started": started}
        print(json.dumps(said), file=told, flush=True)


def _recorded(started: list[list[str]]) -> None:
    """Have the argv of processes in the background added to `started`, instead of starting them."""
    for module in [*sys.modules.values()]:
        if hasattr(module, "start_detached"):
            module.start_detached = started.append


def _checker():
    from swarm_mcp.checker.process import Checker, tidy

    checker, started, usual = Checker(""), [], _open_files()
    gc.collect()
    gc.freeze()
    gc.disable()
    _recorded(started)

    class Request:
        """A request as a relay would have sent it."""

        pid = CALLER

        def __init__(self, call: dict):
            self.client, self.event, self.payload = call["client"], call["event"], call["payload"]
            self.folder = call["folder"].encode("utf-8", "surrogateescape")
            self.environment = [one.encode("utf-8", "surrogateescape") for one in call["environment"]]
            self.parent = call["parent"]

        def demand(self, _margin_ns: int = 0) -> None:
            """Wait for the answer as long as it takes."""

    def answer(call: dict) -> tuple[int, bytes, list[list[str]]]:
        started.clear()
        try:
            status, output = checker.result(Request(call))
        except Exception:  # compared with the other side's
            return -1, traceback.format_exc().encode(), []
        while tidy():
            continue
        left = sorted(_open_files() - usual - _of_the_kept_store())
        return status, output.encode("utf-8", "surrogateescape"), [*started, *([["left open", *left]] if left else [])]

    return answer


def _of_the_kept_store() -> set[str]:
    """Return the files of the store that a checker keeps open from call to call; a case may have removed them since."""
    from swarm_hook_core.lookup import glance
    from swarm_hook_core.protected import STORE_ENDINGS

    if glance._kept is None:
        return set()
    return {f"{glance._kept.path}{ending}{gone}" for ending in STORE_ENDINGS for gone in ("", " (deleted)")}


def _open_files() -> set[str]:
    """Return the paths of the files that are open here."""
    found = set()
    for handle in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{handle}"))
        except OSError:  # that of the list itself
            continue
    return {name for name in found if name.startswith("/")}


def _alone(root: str):
    sys.path[:0] = [root]
    import importlib
    import pkgutil

    import swarm_hook_core

    assert swarm_hook_core.__file__.startswith(root), swarm_hook_core.__file__
    for found in pkgutil.walk_packages(swarm_hook_core.__path__, "swarm_hook_core."):
        if found.name != "swarm_hook_core.kernel.enter":
            importlib.import_module(found.name)

    started: list[list[str]] = []
    _recorded(started)
    gc.collect()
    gc.freeze()  # forks share objects that no collection touches

    def answer(call: dict) -> tuple[int, bytes, list[list[str]]]:
        output, results = os.pipe(), os.pipe()
        child = os.fork()
        if not child:
            os.close(output[0])
            os.close(results[0])
            _run(call, root, output[1], results[1], started)
        os.close(output[1])
        os.close(results[1])
        said, errands = _all(output[0]), json.loads(_all(results[0]) or b"[]")
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said, errands

    return answer


def _all(handle: int) -> bytes:
    with os.fdopen(handle, "rb") as file:
        return file.read()


def _run(call: dict, root: str, output: int, results: int, started: list[list[str]]) -> None:
    """Be the hook: never returns."""
    try:
        _put_on(call, output)
        if call["event"] == "turn" and not os.environ.get("SWARM_MCP_BIN", "").strip():
            from swarm_mcp.hooks import session_hooks

            sys.argv = [f"{root}/bin/swarm-mcp", "hook", "turn", "--runtime", call["client"], "--within", "60"]
            status = session_hooks.as_wired(sys.argv[2:])
        else:
            status = _hook(call, root)
        sys.stdout.flush()
        os.write(results, json.dumps(started).encode())
        os._exit(status or 0)
    except BaseException:
        os.write(output, traceback.format_exc().encode())
        os._exit(99)


def _put_on(call: dict, output: int) -> None:
    for name in list(os.environb):
        del os.environb[name]
    for entry in reversed(call["environment"]):
        name, _, value = entry.encode("utf-8", "surrogateescape").partition(b"=")
        os.environb[name] = value
    os.chdir(call["folder"].encode("utf-8", "surrogateescape"))
    read, write = os.pipe()
    if len(call["payload"]) <= PIPE:
        os.write(write, call["payload"])
    elif not os.fork():
        os.close(read)
        os.close(output)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        with os.fdopen(write, "wb") as file:
            file.write(call["payload"])
        os._exit(0)
    os.close(write)
    os.dup2(read, 0)
    os.dup2(output, 1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 2)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape")


def _hook(call: dict, root: str) -> int:
    """Run the hook's own script; return its exit status."""
    import runpy

    class Ended(BaseException):
        """The script has called `launch.end`."""

    sys.argv = [f"{root}/integrations/hook.py", call["client"], call["event"], "alone"]
    sys.path[0] = f"{root}/integrations"
    ended = os._exit

    def end(status: int) -> None:
        raise Ended(status)

    os._exit = end  # type: ignore[assignment]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except Ended as told:
        return told.args[0]
    finally:
        os._exit = ended  # type: ignore[assignment]
    return 0


if __name__ == "__main__":
    main()

"""Functions of Python's library that run commands, or other code."""

from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.programs.python.values import (
    ANY,
    Choice,
    Handle,
    Name,
    Place,
    Result,
    Unknown,
    alternatives,
    path_of,
    text_of,
    truth,
    word_of,
)

OTHER_CODE = "Python code that runs other code"


def _run(code, a):
    """``subprocess.run`` and its like."""
    words = a.get(0, "args", ANY)
    folder = a.get(99, "cwd")
    folder = None if folder is None else path_of(folder) if not isinstance(folder, Choice) else UNKNOWN
    shell = truth(a.get(99, "shell", False))
    stdin, source = a.get(99, "input"), a.get(99, "stdin")
    if isinstance(source, Name) and source.dotted == "subprocess.DEVNULL":
        stdin = ""
    elif source is not None or (stdin is not None and not (isinstance(stdin, str) and is_known(stdin))):
        stdin = UNKNOWN
    return Result(started(code, words, folder, stdin, shell is not False))


def started(code, words, folder=None, stdin=None, shell=False):
    output: object = ANY
    code.printed = None  # what the command prints goes to the same place, mostly
    for one in alternatives(words):
        if isinstance(one, (list, tuple)) and one:
            texts = [word_of(part) for part in one]
            if shell:
                output = code.outlet.script(texts[0], folder, code, stdin)
            else:
                output = code.outlet.run(texts, stdin, folder, code)
        elif isinstance(one, (str, Place)):
            text = text_of(one)
            if shell:
                output = code.outlet.script(text, folder, code, stdin)
            else:
                output = code.outlet.run([text], stdin, folder, code)
        else:
            code.outlet.guess("a computed command")
    return ANY if output is None or isinstance(words, Choice) else output


def _check_output(code, a):
    return _run(code, a).output


def _system(code, a):
    return Handle("", started(code, a.get(0, "command", a.get(0, "cmd", ANY)), shell=True))


def _getoutput(code, a):
    output = started(code, a.get(0, "cmd", ANY), shell=True)
    return output.rstrip("\n") if isinstance(output, str) else ANY


def _started_words(code, a):
    return Result(started(code, list(a.given)))


def spawned(code, name: str, args: list):
    args = args[1:] if name.startswith("spawn") else args  # the mode
    if "spawn" not in name and "exec" not in name or len(args) < 2:
        return ANY
    words = args[1] if name.startswith("posix") or "v" in name[4:] else args[1:]
    if isinstance(words, list) and words and name.endswith("e") and words is not args[1]:
        words = words[:-1]
    if isinstance(words, (list, tuple)) and words:
        words = [args[0], *words[1:]]
    started(code, words)
    if name.startswith("exec"):
        code.leave()
    return ANY


def _pty_spawned(code, a):
    words = a.get(0, "argv", ANY)
    return started(code, [words] if isinstance(words, str) else words)


def _executed(code, a):
    from _ast import Expr

    from swarm_hook_core.shell.programs.python.command import parsed

    source = a.get(0)
    if isinstance(source, Unknown) and source.dotted == "compile":
        source = ANY
    if not isinstance(source, str) or not is_known(source):
        code.outlet.guess(OTHER_CODE)
        return ANY
    try:
        tree = parsed(source.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ANY
    if len(tree.body) == 1 and isinstance(tree.body[0], Expr):
        return code.value(tree.body[0].value)
    code.block(tree.body)
    return None


def _imported(code, a):
    module = a.get(0, "name", ANY)
    if isinstance(module, str) and is_known(module):
        code.imports(module)
        return Name(module)
    code.outlet.guess(OTHER_CODE)
    return ANY


def _ran_module(code, a):
    code.outlet.guess(OTHER_CODE)
    return ANY


CALLS = {
    "ctypes.CDLL": lambda code, a: code.outlet.guess(OTHER_CODE),
    "ctypes.PyDLL": lambda code, a: code.outlet.guess(OTHER_CODE),
    "subprocess.run": _run,
    "subprocess.check_output": _check_output,
    "subprocess.getoutput": _getoutput,
    "os.system": _system,
    "asyncio.create_subprocess_exec": _started_words,
    "asyncio.subprocess.create_subprocess_exec": _started_words,
    "pty.spawn": _pty_spawned,
    "exec": _executed,
    "eval": _executed,
    "__import__": _imported,
    "importlib.import_module": _imported,
    "importlib.util.spec_from_file_location": _ran_module,
    "runpy.run_path": _ran_module,
    "runpy.run_module": _ran_module,
    "sys.path.insert": lambda code, a: code.search.append(word_of(a.get(1))),
    "sys.path.append": lambda code, a: code.search.append(word_of(a.get(0))),
}

"""Imports inside functions: the modules that may have them, by reason. All others import at their top.

The hook core is free to: a check must load few modules (``test_layers.py`` holds its budgets).
"""

import ast
from pathlib import Path

from support.sessions import ROOT

PACKAGE = ROOT / "swarm_mcp"
# Missing on some machines or in some installations.
OPTIONAL = {"ctypes", "curses", "fcntl", "keyring", "pwd", "readline", "rich", "textual"}
REASONS = {
    "hook processes and short commands load the module": """
        answers/size cli/arguments cli/command cli/commands/sessions cli/locking cli/main cli/output
        folders hooks/session_hooks hooks/protection_watch installation runtimes/__init__ runtimes/user_settings
        sessions/acting start store/__init__ store/cleanup store/database store/driver store/grants store/values
        store/lock_listing store/messages store/reactions store/runs store/sessions
        store/session_table store/store store/tasks store/user_interface
    """,
    "the library is loaded for a new store alone": "store/schema",
    "each session has a server, which answers its first questions before it loads its tools": """
        agents/tools changes/tools server/app server/service
    """,
    "each worker has a supervisor, which needs no event loop": """
        agents/harness/adapter agents/harness/events agents/harness/record agents/harness/run
        agents/harness/servers
    """,
    "a worker needs the library for few of its calls": "agents/harness/adapter agents/harness/registry",
    "the doctor finds broken libraries, and plays clients only if asked": "doctor/own_checks cli/commands/doctor",
    "psycopg, pygls or starlette may be missing": """
        team/agent team/verb team/standing view/commands
    """,
}


def late_imports(path: Path) -> list[str]:
    """Return the modules that the functions of a file import, without the optional ones."""
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    found = []
    for node in [node for function in functions for node in ast.walk(function)]:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or "")
    return [name for name in found if name.partition(".")[0] not in OPTIONAL]


def test_functions_import_only_where_there_is_a_reason() -> None:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        if names := late_imports(path):
            found[path.relative_to(PACKAGE).with_suffix("").as_posix()] = names
    allowed = {name for names in REASONS.values() for name in names.split()}
    assert {name: names for name, names in found.items() if name not in allowed} == {}, "import at the top"
    assert allowed - set(found) == set(), "these have none any more: take them off the list"

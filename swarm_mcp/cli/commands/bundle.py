"""bundle: write the marketplace folder that clients install from

example: swarm-mcp bundle ~/swarm-marketplace
"""

from __future__ import annotations

from pathlib import Path

from swarm_mcp.cli.arguments import FOLDERS, JSON, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import say, show
from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes import NAMES, bundle, runtime
from swarm_mcp.runtimes.owned_folder import read_record
from swarm_mcp.runtimes.transport import COMMAND, MCP_TOOL, known

USAGES = (
    Usage(
        Word("DIR", "the folder", source=FOLDERS),
        Option(
            "--local",
            "name this machine's interpreter and swarm-mcp by path, as `install` does; without it the folder starts"
            " python3 and swarm-mcp by name and can be published as a git repository",
        ),
        Option(
            "--transport HOW",
            f"how the check before a write is asked (see `swarm-mcp install --help`): {COMMAND} (default), {MCP_TOOL}",
            source=(COMMAND, MCP_TOOL),
        ),
        Option("--force", "write into a folder that holds other files of the same names"),
        JSON,
    ),
)


def run(args: Arguments) -> int:
    """Write the folder."""
    target = Path(args.words[0]).expanduser().resolve()
    try:
        how = known(args.value("--transport") or COMMAND)
        transports = {name: how for name in NAMES if runtime(name).check_tool}
        changed = bundle.write(target, args.given("--local"), args.given("--force"), transports)
    except OSError as error:
        raise SwarmError(f"cannot write {error.filename or target}: {error.strerror}") from None
    if args.json:
        show({"directory": str(target), "changed": changed, "files": read_record(target)["files"]})
    else:
        say(f"{target}: {'written' if changed else 'already current'}")
    return 0

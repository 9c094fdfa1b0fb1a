"""Swarm's files elsewhere than in a client: a marketplace folder of one's own, a project's server file and skills."""

from __future__ import annotations

from pathlib import Path

from swarm_hook_core.own_release import launcher
from swarm_mcp.cli.arguments import FOLDERS, INTERNAL, JSON, MORE_SETUP, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import answer
from swarm_mcp.cli.words import clause
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import clean
from swarm_mcp.guard import projects
from swarm_mcp.installation import plugin_source
from swarm_mcp.runtimes.bundle import write as write_bundle
from swarm_mcp.runtimes.fetched_release import leave_launcher
from swarm_mcp.runtimes.mcp_file import add_server
from swarm_mcp.runtimes.owned_folder import read_record
from swarm_mcp.runtimes.users_file import write_whole


@verb(
    Usage(
        Word("DIR", "the folder", source=FOLDERS),
        Option(
            "--local",
            "name this machine's interpreter and swarm-mcp by path, as `install` does; without it the folder starts"
            " python3 and swarm-mcp by name and can be published as a git repository",
        ),
        Option("--force", "write into a folder that holds other files of the same names"),
        JSON,
    ),
    group=INTERNAL,
)
def bundle(args: Arguments) -> int:
    """bundle: write the marketplace folder that clients install from

    example: swarm-mcp bundle ~/swarm-marketplace
    """
    target = Path(args.words[0]).expanduser().resolve()
    try:
        changed = write_bundle(target, args.given("--local"), args.given("--force"))
    except OSError as error:
        raise SwarmError(f"cannot write {error.filename or target}: {error.strerror}") from None
    state = "already current"
    if changed:
        state = "written"
    return answer(
        args,
        {"directory": str(target), "changed": changed, "files": read_record(target)["files"]},
        f"{target}: {state}",
    )


@verb(
    Usage(JSON),
    group=INTERNAL,
)
def fetched(args: Arguments) -> int:
    """fetched: have plugins without a command run this copy (uv starts this)

    On a machine without swarm-mcp, a plugin that was installed from a repository has uv fetch the release with the
    plugin's own number, and uv runs this command. It leaves a launcher of this copy in the state folder, for the
    plugin's hooks and its MCP server. SWARM_UVX=off prevents all of it.

    example: swarm-mcp fetched
    """
    try:
        path = leave_launcher()
    except OSError as error:
        raise SwarmError(f"cannot write {error.filename or launcher()}: {error.strerror}") from None
    return answer(args, {"launcher": path}, path)


@verb(
    Usage(
        Option("--dir DIR", "the project (default: here); made where it is missing", source=FOLDERS),
        Option("--force", "overwrite skills that are there, and another server called swarm"),
        Option("--no-skills", "leave .claude/skills alone", also="--no-skill"),
        JSON,
    ),
    group=MORE_SETUP,
)
def init(args: Arguments) -> int:
    """init: set one project up for clients that have no plugin of ours

    Adds the server `swarm` to DIR/.mcp.json (`swarm-locks` beside another server called so), leaving everything else
    in it as it is, and copies the skills into DIR/.claude/skills. Such sessions can lock and talk to each other, but no
    hook stops their writes. The plugin does that (`swarm-mcp install`), and where it is installed this is not needed.
    `swarm-mcp uninstall --projects` takes it out again.

    example: swarm-mcp init --dir ~/src/shop
    """
    folder = Path(clean(args.value("--dir") or "."))
    if folder.exists() and not folder.is_dir():
        raise SwarmError(f"{folder} is not a folder")
    force = args.given("--force")
    server = folder / ".mcp.json"
    steps = [{"action": add_server(server, force), "path": str(server)}]
    if not (args.given("--no-skills") or args.given("--no-skill")):
        for name in projects.SKILLS:
            target = folder / ".claude" / "skills" / name
            steps.append({"action": _copy_skill(name, target, force), "path": str(target)})
    projects.note(str(folder))
    for step in steps:
        if step["action"] == "skipped":
            step["note"] = "already there"
            if step["path"] != str(server):
                step["note"] += "; --force renews it"
    return answer(
        args,
        {"directory": str(folder), "steps": steps},
        f"Setting up {folder} for swarm",
        *(f"  {step['action']} {step['path']}" + clause(" ({})", step.get("note")) for step in steps),
        "",
        "Done. Restart the agent client there; it may ask if you trust the server.",
    )


def _copy_skill(name: str, target: Path, force: bool) -> str:
    """Copy one of our skills; ``wrote``, ``updated`` or ``skipped``."""
    there = target.exists() or target.is_symlink()
    if there and not force:
        return "skipped"
    if target.is_symlink() or (there and not target.is_dir()):
        # Writing through a user's link would change another project's files.
        raise SwarmError(f"{target} is a link or a file; remove it first")
    source = plugin_source() / "skills" / name
    changed = False
    for path in sorted(source.rglob("*")):
        if path.is_file():
            copy, content = target / path.relative_to(source), path.read_bytes()
            if not copy.is_file() or copy.read_bytes() != content:
                write_whole(copy, content, through_link=False)
                changed = True
    if not there:
        return "wrote"
    if changed:
        return "updated"
    return "skipped"

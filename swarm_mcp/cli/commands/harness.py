"""Listing and checking the agent command lines."""

from __future__ import annotations

from swarm_mcp.cli.arguments import FOLDERS, JSON, WORKERS, Arguments, Option, Usage, Word, choice, verb
from swarm_mcp.cli.output import complain, listing, one_line, show
from swarm_mcp.cli.progress import Progress
from swarm_mcp.folders import clean, here

NAME = Word("NAME", "the harness", optional=True, source=())


@verb(
    Usage(choice("list", about="action"), JSON),
    Usage(
        choice("doctor", about="action"),
        NAME,
        Option("--directory DIR", "where it is to run (default: here)", source=FOLDERS),
        Option("--command WORDS", "the command to start instead of its own name"),
        JSON,
    ),
    Usage(choice("models", about="action"), NAME, JSON),
    Usage(
        choice("commands", about="action"),
        NAME,
        Option("--directory DIR", "where it is to run (default: here)", source=FOLDERS),
        JSON,
    ),
    group=WORKERS,
)
def harness(args: Arguments) -> int:
    """harness: list and check the agent command lines that can run here

    `list` shows the installed harnesses and the abilities of each. `doctor` checks if one harness, or each installed
    one, could run in DIR; it changes nothing, and exits 1 if one could not. `models` lists the values of --model that
    are known without a network; `commands` lists the skills and commands that a prompt can invoke in DIR, and their
    form.

    SWARM_HARNESS_<NAME> sets the words that start a harness instead of its name; <NAME>_DEFAULT_MODEL sets its model.

    example: swarm-mcp harness doctor claude
    """
    action = args.words[0]
    if action == "list":
        return _list(args)
    chosen = args.words[1] if len(args.words) > 1 else ""
    return {"doctor": _doctor, "models": _models, "commands": _commands}[action](args, chosen)


def _adapters(chosen: str = "") -> list:
    """All adapters that can be loaded, or the one that was named. One that is broken is complained of."""
    from swarm_mcp.harness import registry

    if chosen:
        return [registry.get(chosen)]

    def broken(name: str, error: Exception) -> None:
        from swarm_hook_core.faults import describe

        complain(f"swarm-mcp harness: {name} cannot be loaded: {describe(error)}")

    return registry.get_all(broken)


def _list(args) -> int:
    from concurrent.futures import ThreadPoolExecutor

    adapters = _adapters()
    programs = {adapter.name: _program(adapter) for adapter in adapters}
    with ThreadPoolExecutor() as pool:  # some take a second or two to tell their version
        versions = pool.map(lambda adapter: _version(adapter) if programs[adapter.name] else None, adapters)
    found = []
    for adapter, version in zip(adapters, versions):
        program = programs[adapter.name]
        found.append({
            "name": adapter.name,
            "label": adapter.label,
            "installed": bool(program) or not adapter.program,
            "program": program or None,
            "version": version,
            "capabilities": adapter.capabilities._asdict(),
            "doc": adapter.doc,
            "instructions": adapter.instructions,
        })  # fmt: skip
    if args.json:
        show(found)
        return 0
    cells, plain = [], []
    for one in found:
        can = ", ".join(name.replace("_", " ") for name, value in one["capabilities"].items() if value)
        there = "installed" if one["program"] else "built in"
        state = one["version"] or (there if one["installed"] else "not installed")
        cells.append((one["name"], state, can or None))
        plain.append(f"  {one['name']}  [{state}]  {can or '-'}")
    listing(("name", "version", "can"), cells, plain)
    return 0


def _program(adapter) -> str:
    """The absolute path of the harness's program; empty if there is none."""
    import shutil

    from swarm_mcp.errors import Refused
    from swarm_mcp.harness.checks import command_of

    try:
        words = command_of(adapter)
    except Refused:
        return ""
    return (shutil.which(words[0]) or "") if words and adapter.program else ""


def _version(adapter) -> str | None:
    from swarm_mcp.harness.checks import version_of

    return version_of(adapter)


def _doctor(args, chosen: str) -> int:
    from swarm_mcp.harness.checks import environment_test

    config: dict = {"cwd": clean(args.value("--directory") or here())}
    if args.value("--command"):
        config["command"] = args.value("--command")
    adapters = _adapters(chosen)
    if not chosen:
        adapters = [adapter for adapter in adapters if _program(adapter) or not adapter.program]
    reports = []
    with Progress(args.json) as progress:
        for adapter in adapters:
            progress.begin("checking if it can run here", adapter.name)
            reports.append(environment_test(adapter, config))
            _say_report(reports[-1], progress)
        if not reports:
            progress.say("No harness is installed.")
    if args.json:
        show(reports[0] if chosen else reports)
    return 1 if any(report["status"] == "fail" for report in reports) else 0


def _say_report(report: dict, progress: Progress) -> None:
    progress.end(report["status"], report["adapter_type"])
    for check in report["checks"]:
        detail = f" ({check['detail']})" if check.get("detail") else ""
        progress.say(f"  [{check['level'].upper():<5}] {check['code']}: {check['message']}{detail}")
        if check.get("hint") and check["level"] != "info":
            progress.say(f"          {' '.join(check['hint'].split())}")


def _models(args, chosen: str) -> int:
    listed = {adapter.name: adapter.listed_models() for adapter in _adapters(chosen)}
    if args.json:
        show(listed[chosen] if chosen else listed)
        return 0
    cells, plain = [], []
    for harness, models in listed.items():
        for model in models:
            short = model.get("short") if model.get("short") != model["name"] else None
            cells.append((harness, model["name"], short, model.get("context_tokens")))
            plain.append(f"  {harness}  {model['name']}" + (f"  short={short}" if short else ""))
    listing(("harness", "model", "short", "context tokens"), cells, plain, empty="(no model is known)")
    return 0


def _commands(args, chosen: str) -> int:
    from swarm_mcp.harness.slash_commands import slash_commands

    cwd = clean(args.value("--directory") or here())
    listed = {one.name: [found.to_dict() for found in slash_commands(one, cwd)] for one in _adapters(chosen)}
    if args.json:
        show(listed[chosen] if chosen else listed)
        return 0
    cells, plain = [], []
    for harness, commands in listed.items():
        for command in commands:
            about = one_line(command["description"])
            cells.append((harness, command["invocation"], command["kind"], about or None))
            plain.append(f"  {harness}  {command['invocation']}  [{command['kind']}]  {about}".rstrip())
    listing(("harness", "in a prompt", "kind", "description"), cells, plain, empty="(none)")
    return 0

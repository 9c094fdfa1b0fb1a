"""Listing and checking the agent command lines."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from swarm_hook_core.state import describe
from swarm_hook_core.untrusted_text import one_line
from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.adapter import HarnessAdapter
from swarm_mcp.agents.harness.checks import environment_test, program_of, version_of
from swarm_mcp.agents.harness.prompting import slash_commands
from swarm_mcp.cli.arguments import FOLDERS, JSON, WORKER, Arguments, Option, Usage, Word, choice, verb
from swarm_mcp.cli.output import complain, listing, show
from swarm_mcp.cli.progress import Progress
from swarm_mcp.cli.words import clause
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
    group=WORKER,
)
def harness(args: Arguments) -> int:
    """harness: list and check the agent command lines that can run here

    `list` shows the installed harnesses and the abilities of each. `doctor` checks if one harness, or each installed
    one, could run in DIR; it changes nothing, and exits 1 if one could not. `models` lists the values of --model that
    are known without a network; `commands` lists the skills and commands that a prompt can invoke in DIR, and their
    form.

    SWARM_HARNESS_<NAME> sets the words that start a harness instead of its name; <NAME>_DEFAULT_MODEL sets its model.

    example: swarm-mcp worker harness doctor claude
    """
    actions = {"list": _list, "doctor": _doctor, "models": _models, "commands": _commands}
    return actions[args.words[0]](args, "".join(args.words[1:]))


def _adapters(chosen: str = "") -> list[HarnessAdapter]:
    """Return all adapters that can be loaded, or the chosen one. Errors of the others go to standard error."""
    if chosen:
        return [registry.get(chosen)]

    def broken(name: str, error: Exception) -> None:
        complain(f"swarm-mcp harness: {name} cannot be loaded: {describe(error)}")

    return registry.get_all(broken)


def _list(args: Arguments, _chosen: str) -> int:
    adapters = _adapters()
    programs = {adapter.name: program_of(adapter) for adapter in adapters}
    installed = [adapter for adapter in adapters if programs[adapter.name]]
    with ThreadPoolExecutor() as pool:  # some take a second or two to print their version
        versions = dict(zip([adapter.name for adapter in installed], pool.map(version_of, installed)))
    found: list[dict[str, Any]] = []
    for adapter in adapters:
        program = programs[adapter.name]
        found.append({
            "name": adapter.name,
            "label": adapter.label,
            "installed": bool(program) or not adapter.program,
            "program": program or None,
            "version": versions.get(adapter.name),
            "capabilities": adapter.capabilities._asdict(),
            "use_when": adapter.use_when,
            "doc": adapter.doc,
            "instructions": adapter.instructions,
        })  # fmt: skip
    if args.json:
        show(found)
        return 0
    cells, plain = [], []
    for one in found:
        can = ", ".join(name.replace("_", " ") for name, value in one["capabilities"].items() if value)
        state = one["version"] or "built in"
        if not one["installed"]:
            state = "not installed"
        elif one["program"] and not one["version"]:
            state = "installed"
        cells.append((one["name"], state, can or None))
        plain.append(f"  {one['name']}  [{state}]  {can or '-'}")
    listing(("name", "version", "can"), cells, plain)
    return 0


def _doctor(args: Arguments, chosen: str) -> int:
    config: dict[str, Any] = {"cwd": clean(args.value("--directory") or here())}
    if args.value("--command"):
        config["command"] = args.value("--command")
    adapters = _adapters(chosen)
    if not chosen:
        adapters = [adapter for adapter in adapters if program_of(adapter) or not adapter.program]
    reports = []
    with Progress(args.json) as progress:
        for adapter in adapters:
            progress.begin("checking if it can run here", adapter.name)
            reports.append(environment_test(adapter, config))
            _say_report(reports[-1], progress)
        if not reports:
            progress.say("No harness is installed.")
    if args.json and chosen:
        show(reports[0])
    elif args.json:
        show(reports)
    return int(any(report["status"] == "fail" for report in reports))


def _say_report(report: dict[str, Any], progress: Progress) -> None:
    progress.end(report["status"], report["adapter_type"])
    for check in report["checks"]:
        detail = clause(" ({})", check.get("detail"))
        progress.say(f"  [{check['level'].upper():<5}] {check['code']}: {check['message']}{detail}")
        if check.get("hint") and check["level"] != "info":
            progress.say(f"          {' '.join(check['hint'].split())}")


def _models(args: Arguments, chosen: str) -> int:
    listed = {adapter.name: adapter.listed_models() for adapter in _adapters(chosen)}
    if args.json:
        show(listed.get(chosen, listed))
        return 0
    cells, plain = [], []
    for harness, models in listed.items():
        for model in models:
            short = model.get("short")
            if short == model["name"]:
                short = None
            cells.append((harness, model["name"], short, model.get("context_tokens")))
            plain.append(f"  {harness}  {model['name']}" + clause("  short={}", short))
    listing(("harness", "model", "short", "context tokens"), cells, plain, empty="(no model is known)")
    return 0


def _commands(args: Arguments, chosen: str) -> int:
    cwd = clean(args.value("--directory") or here())
    listed = {one.name: [found.to_dict() for found in slash_commands(one, cwd)] for one in _adapters(chosen)}
    if args.json:
        show(listed.get(chosen, listed))
        return 0
    cells, plain = [], []
    for harness, commands in listed.items():
        for command in commands:
            about = one_line(command["description"])
            cells.append((harness, command["invocation"], command["kind"], about or None))
            plain.append(f"  {harness}  {command['invocation']}  [{command['kind']}]  {about}".rstrip())
    listing(("harness", "in a prompt", "kind", "description"), cells, plain, empty="(none)")
    return 0

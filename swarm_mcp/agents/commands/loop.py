"""The built-in agent."""

from __future__ import annotations

from swarm_mcp import __version__
from swarm_mcp.agents.commands import run_options
from swarm_mcp.agents.loop import agent, commands, sources
from swarm_mcp.agents.loop.settings import LoopSettings
from swarm_mcp.cli.arguments import MODES, WORKER, Arguments, Option, Usage, Word, choice, verb
from swarm_mcp.cli.output import say, say_text
from swarm_mcp.cli.verbs import retired
from swarm_mcp.errors import UsageError

_BESIDE = ("session", "tools", "hooks", "help")
_INNER = ("tool", "provider")  # started by the executables of built-in plugins


@verb(
    Usage(
        Word("WORDS", "[agent] [SESSION] and the prompt", optional=True, repeated=True),
        Option("--resume SESSION", "go on with that session; so does a first word that is a session's id", source=()),
        Option("--model NAME", "the model", source=()),
        Option("--mode MODE", "read-only: no tool that writes files, and no commands; or edit", source=MODES),
        Option("--schema FILE", "a JSON schema that the answer is to follow"),
        Option("--json", "print events, one JSON object a line"),
    ),
    Usage(choice("session"), choice("list", "show", "dir"), Word("ID", optional=True, source=())),
    Usage(choice("tools", "hooks", "help", "version")),
    group=WORKER,
)
def loop(args: Arguments) -> int:
    """loop: run the embedded agent loop, as a plugin of the bash harness

    Works on a prompt (WORDS, or standard input) with a model and tools until it is done, and prints the answer; at a
    terminal word by word, and with its cost. It needs a model's endpoint: ANTHROPIC_API_KEY, or OPENAI_API_KEY, or
    OPENAI_API_URL for a server of your own. Plugins are found in ~/.harness (HARNESS_HOME) and in every .harness from
    there down to this folder. `loop help` lists providers and their variables. Words for a plugin's own command that
    begin with -- go behind a --.

    Its writes are checked against the locks of other sessions, like those of every client here.

    Exit codes: 0 done; 1 it could not begin (no provider, no such session, a plugin failed); 4 the model could not be
    asked, failed, or did not follow --schema; 5 it has taken as many turns as it may (HARNESS_MAX_TURNS); 130
    interrupted; 143 ended by a signal.

    example: swarm-mcp worker loop "add a test for the empty list in parse.py"
    """
    words = list(args.words) or ["agent"]
    name = words[0]
    if name in _INNER and len(words) > 1:
        return int(getattr(commands, name)(words[1:]))
    if retired("loop", [name]):
        raise UsageError(retired("loop", [name]))
    if name == "version":
        say(f"swarm-mcp {__version__}")
        return 0
    if name in _BESIDE and not args.value("--resume"):
        return _beside(name, words[1:])
    return _agent(name, words, args)


def _agent(name: str, words: list[str], args: Arguments) -> int:
    """Run the agent, or a plugin's command of that name instead."""
    settings = LoopSettings()
    places = sources.walk("", settings.home, settings.folder)
    path = ""
    if name.isidentifier() or "-" in name:
        path = sources.executables(places, "commands").get(name, "")
    if path and not args.value("--resume"):
        return _become(path, words[1:])
    if name == "agent":
        words = words[1:]
    given = {name: args.value(f"--{name}") for name in ("mode", "model")}
    wishes = agent.Wishes(**given, schema=run_options.schema(args))
    return int(agent.run(words, wishes, as_json=args.json, resume=args.value("--resume")))


def _beside(name: str, words: list[str]) -> int:
    loop = commands.prepared()
    path = commands.override(name, loop)
    if path:
        return _become(path, words)
    if name == "session":
        lines = commands.show_session(words)
    else:
        lines = {"tools": commands.show_tools, "hooks": commands.show_hooks, "help": commands.show_help}[name](loop)
    say_text("\n".join(lines))
    return 0


def _become(path: str, words: list[str]) -> int:
    return int(commands.execute(path, words, commands.prepared()))

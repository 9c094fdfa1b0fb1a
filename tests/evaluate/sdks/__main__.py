"""The same five programs with three libraries, in the real clients: lines of each, seconds to the first event.

usage, in an environment with swarm and the tests: python -m evaluate.sdks PYTHON NODE_MODULES
PYTHON has claude-agent-sdk 0.2.184, openai-codex 0.163.0 and agent-client-protocol 0.12.1 installed, NODE_MODULES
@openai/codex-sdk 0.163.0, @agentclientprotocol/claude-agent-acp 0.101.0 (with Node.js 22) and codex-acp 2.6.0.
`SWARM_E2E_CLIENTS` names the clients.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from e2e.client import Client
from e2e.clients import CLIENTS
from e2e.ground import client_folder, own_ground

from swarm_mcp.play.models import play

HERE = Path(__file__).parent
PROGRAMS = ("events", "cancel", "resume", "schema", "permission")
OURS, CLAUDE, CODEX, CODEX_PYTHON = "swarm_mcp.harness", "claude-agent-sdk", "@openai/codex-sdk", "openai-codex"
ACP = "agent-client-protocol"
FOLDERS = {OURS: "ours", CLAUDE: "claude", CODEX: "codex", CODEX_PYTHON: "openai_codex", ACP: "acp"}
ACP_PATHS = {"CLAUDE_CODE_EXECUTABLE": "claude", "CODEX_PATH": "codex"}
ACP_AGENTS = {"claude": "claude-agent-acp", "codex": "codex-acp"}
ROUNDS = 5


def lines_of(library: str, program: str) -> int:
    """Return how many lines of a program are not blank; 0 for one that the library cannot do."""
    found = list((HERE / FOLDERS[library]).glob(f"{program}.*"))
    return sum(bool(line.strip()) for path in found for line in path.read_text().splitlines())


def run(agent: Client, library: str, program: str, python: str, modules: str) -> tuple[float, str]:
    """Run a program; return the seconds to its first line, and all lines. Raises CalledProcessError."""
    ground = agent.ground
    ground.renew()
    command = [agent.shell(f'python3 -c \'open("{name}.md", "w")\'') for name in ("yes", "no")]
    if agent.name == "codex":
        more = {"sandbox_permissions": "require_escalated", "justification": "asked"}
        command = [{**call, "arguments": {**call["arguments"], **more}} for call in command]
    steps = {"cancel": [agent.shell("sleep 300")], "permission": command}.get(program, [])
    if program == "schema" and agent.name != "codex":
        steps = [{"name": "StructuredOutput", "input": {"title": "As scripted"}}]
    agent.models.script(program, *steps)
    agent.models.script("again")
    prompts = [play(program), *([play("again")] if program == "resume" else [])]
    if program == "schema" and agent.name == "codex":
        prompts = ["Give it a title"]
    path = next((HERE / FOLDERS[library]).glob(f"{program}.*"))
    program_of = {OURS: sys.executable, CODEX: "node"}
    argv = [program_of.get(library, python), str(path), agent.harness, *prompts]
    if library == ACP:
        argv[2] = os.path.join(modules, ".bin", ACP_AGENTS[agent.harness])
    if library == CODEX:  # its modules are found beside the program alone
        place = ground.root / "sdk"
        place.mkdir(exist_ok=True)
        if not (place / "node_modules").exists():
            (place / "node_modules").symlink_to(modules)
        argv[1] = str(place / path.name)
        Path(argv[1]).write_text(path.read_text())
    # Else agents of the protocol start clients of their own.
    paths = {name: str(client_folder() / client) for name, client in ACP_PATHS.items()}
    env = {**ground.env, **paths, "IS_SANDBOX": "1"}
    began = time.monotonic()
    child = subprocess.Popen(argv, cwd=ground.checkout, env=env, stdout=subprocess.PIPE, text=True)
    assert child.stdout
    first = child.stdout.readline()
    seconds = time.monotonic() - began
    rest = child.stdout.read()
    child.stdout.close()
    if child.wait():
        raise subprocess.CalledProcessError(child.returncode, argv, first + rest)
    if program == "permission":
        made = [name for name in ("yes.md", "no.md") if (ground.checkout / name).exists()]
        assert made == ["yes.md"], (library, made)
    if program == "resume":
        assert (first + rest).split("\n")[:2] == ["The script resume is over.", "The script again is over."], (
            first + rest
        )
    if program == "schema":
        assert first == "As scripted\n", first
    return seconds, first + rest


def main() -> int:
    """Print the table."""
    python, modules = sys.argv[1], os.path.abspath(sys.argv[2])
    pairs = [("claude", library) for library in (OURS, CLAUDE, ACP)]
    pairs += [("codex", library) for library in (OURS, CODEX, CODEX_PYTHON, ACP)]
    print("|client, library|" + "|".join(PROGRAMS) + "|first event, s|\n|" + "---|" * (len(PROGRAMS) + 2))
    rows: dict[tuple[str, str], list[float]] = {pair: [] for pair in pairs}
    with own_ground("sdks") as ground:
        agents = {kind.harness: kind(ground) for kind in CLIENTS.values()}
        for agent in agents.values():
            agent.prepare()
        for client, library in pairs:
            for program in PROGRAMS[1:]:
                if lines_of(library, program):
                    run(agents[client], library, program, python, modules)
        for _ in range(ROUNDS):  # in turns: the machine may be busy
            for client, library in pairs:
                rows[client, library].append(run(agents[client], library, "events", python, modules)[0])
    for (client, library), seconds in rows.items():
        counts = [str(lines_of(library, program) or "no") for program in PROGRAMS]
        print(f"|{client}, {library}|" + "|".join(counts) + f"|{statistics.median(seconds):.1f}|")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The plugin protocol of the bash harness: discovery, hooks, tools, commands, providers, prompts, skills."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.files import text_at
from support.loop_fixtures import ANTHROPIC, MAIN, OPENAI, Model, Say, executable, loop, sessions, tool, written
from support.requirement import requirement

from swarm_mcp.agents.loop import providers, settings, tools
from swarm_mcp.agents.loop.settings import LoopFailure

pytestmark = pytest.mark.slow

ECHO = "#!/bin/sh\ncat\n"
STATES = "start assemble send receive tool_exec tool_done assemble send receive done".split()


@pytest.fixture
def packs(model: Model) -> Path:
    """``HARNESS_HOME``."""
    folder = Path(os.environ["HARNESS_HOME"])
    folder.mkdir()
    return folder


def hook(folder: Path, stage: str, name: str, text: str) -> Path:
    return executable(folder / "hooks.d" / stage / name, text)


def python(text: str) -> str:
    return f"#!{sys.executable}\nimport json, os, sys\n{text}\n"


@requirement("B-01")
def test_nearer_plugins_come_later(tmp_path: Path) -> None:
    for place in ("root/plugins/core", "home/plugins/b", "home/plugins/a", "p/.harness", "p/q/.harness/plugins/z"):
        (tmp_path / place).mkdir(parents=True)
    found = tools.walk(str(tmp_path / "root"), str(tmp_path / "home"), str(tmp_path / "p/q/r"))
    below = [os.path.relpath(path, tmp_path) for path in found if path.startswith(str(tmp_path))]
    assert below == [
        "root/plugins/core", "home/plugins/a", "home/plugins/b", "home", "p/.harness", "p/q/.harness/plugins/z",
        "p/q/.harness",
    ]  # fmt: skip


def test_packs_of_other_providers_stay_out(tmp_path: Path) -> None:
    for pack in ("openai/providers", "anthropic/providers", "plain/tools"):
        (tmp_path / "plugins" / pack).mkdir(parents=True)
    found = tools.packs(str(tmp_path))
    assert [os.path.basename(path) for path in tools.scoped(found, ["openai"])] == ["openai", "plain"]


def test_the_last_tool_of_a_name_counts(model: Model, packs: Path, project: Path) -> None:
    tool(packs, "greet", "echo from home")
    tool(project / ".harness", "greet", "cat; echo from $(basename $PWD) in $HARNESS_STAGE; exit 3")
    model.script = [Say("", (("greet", {"name": "x"}),)), Say("Done.")]
    assert loop("go").code == 0
    assert model.told() == ['{"name": "x"}\nfrom project in tool_exec']
    result = written(sessions()[0])[2]
    assert result.head["error"] == "true" and "from home" not in result.text
    assert str(project / ".harness" / "tools" / "greet") in loop("tools").out


@requirement("B-02")
def test_plugins_may_come_while_the_loop_runs(model: Model, packs: Path) -> None:
    making = "mkdir -p $HARNESS_HOME/tools; printf '%s\\n' '#!/bin/sh' 'echo \"{\\\"name\\\": \\\"late\\\"}\"' "
    making += "> $HARNESS_HOME/tools/late; chmod +x $HARNESS_HOME/tools/late"
    model.script = [Say("", (("bash", {"command": making}),)), Say("Done.")]
    assert loop("go").code == 0
    assert "late" not in model.tools(0) and "late" in model.tools(1)


@requirement("B-06", "B-07")
def test_every_state_runs_its_hooks(model: Model, packs: Path) -> None:
    for stage in dict.fromkeys(STATES):
        hook(packs, stage, "99-note", f'#!/bin/sh\necho "$HARNESS_STAGE" >> {packs}/seen\ncat\n')
    model.script = [Say("", (("list_dir", {}),)), Say("Done.")]
    assert loop("go").out == "Done.\n"
    assert (packs / "seen").read_text().split() == STATES


@requirement("B-03")
def test_hooks_are_a_chain_in_order_of_their_numbers(model: Model, packs: Path, project: Path) -> None:
    add = "data = json.load(sys.stdin)\ndata['system'] = data.get('system', '') + ' %s'\njson.dump(data, sys.stdout)"
    hook(packs, "assemble", "50-b", python(add % "SECOND"))
    hook(packs, "assemble", "40-a", python(add % "NOT THIS ONE"))
    hook(project / ".harness", "assemble", "40-a", python(add % "FIRST"))
    hook(packs, "assemble", "45-off", python("sys.exit(1)")).chmod(0o600)
    assert loop("go").code == 0
    assert model.system().endswith("FIRST SECOND")
    shown = loop("hooks").out
    assert shown.index("40-a") < shown.index("50-b") and "30-prompts       (built in)" in shown


def test_a_plugin_takes_the_place_of_our_own_hook(model: Model, packs: Path) -> None:
    answer = {"model": "m", "content": [{"type": "text", "text": "from the hook"}], "next_state": "receive"}
    hook(packs, "send", "10-send", f"#!/bin/sh\ncat >/dev/null\necho '{json.dumps(answer)}'\n")
    assert loop("go").out == "from the hook\n" and not model.asked


@requirement("B-07", "B-24", "B-25")
def test_hooks_know_where_they_are(model: Model, packs: Path, project: Path) -> None:
    names = "SESSION STAGE SOURCES ROOT LOG MODEL PROVIDER HOME SESSIONS CWD".split()
    dump = f"json.dump({{n: os.environ.get('HARNESS_' + n) for n in {names!r}}}, open('{packs}/env.json', 'w'))"
    hook(packs, "start", "20-env", python(f"{dump}\nsys.stdout.write(sys.stdin.read())"))
    assert loop("go").code == 0
    env = json.loads((packs / "env.json").read_text())
    assert env["SESSION"] == str(sessions()[0]) and env["STAGE"] == "start" and env["CWD"] == str(project)
    assert env["SOURCES"].split(":")[-1] == str(packs) and env["PROVIDER"] == ANTHROPIC and env["MODEL"]
    assert all(env.values())


@pytest.mark.parametrize("text", ["#!/bin/sh\necho broken >&2\nexit 7\n", "#!/bin/sh\necho no json\n"])
@requirement("B-04")
def test_a_hook_that_fails_ends_the_run_by_way_of_error(model: Model, packs: Path, text: str) -> None:
    hook(packs, "assemble", "15-fail", text)
    hook(packs, "error", "90-note", f"#!/bin/sh\ntee {packs}/error\n")
    ran = loop("go", "--json")
    assert ran.code == 1 and not model.asked
    assert "15-fail exited 7 during assemble: broken" in ran.out or "no JSON object" in ran.out
    assert json.loads((packs / "error").read_text())["output"].startswith("error: ")
    assert ran.events[-1]["is_error"]


@requirement("B-04")
def test_a_second_failure_ends_it_at_once(model: Model, packs: Path) -> None:
    hook(packs, "assemble", "15-fail", "#!/bin/sh\nexit 7\n")
    hook(packs, "error", "05-fail", f"#!/bin/sh\necho x >> {packs}/count\nexit 8\n")
    ran = loop("go")
    assert ran.code == 1 and "15-fail exited 7" in ran.err
    assert (packs / "count").read_text() == "x\n"


@requirement("B-05")
def test_no_next_state_ends_the_run_with_the_output(model: Model, packs: Path) -> None:
    hook(packs, "start", "99-stop", '#!/bin/sh\ncat >/dev/null\necho \'{"output": "early"}\'\n')
    ran = loop("go")
    assert (ran.code, ran.out) == (0, "early\n") and not model.asked


@requirement("B-08")
def test_states_without_end_are_stopped(model: Model, packs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_MAX_TURNS", "3")
    again = f'#!/bin/sh\necho x >> {packs}/count\necho \'{{"next_state": "start"}}\'\n'
    hook(packs, "start", "99-again", again)
    assert loop("go").code == 5
    assert len((packs / "count").read_text().split()) == 3 * 3 + 1


def test_a_veto_is_the_result_of_its_call_alone(model: Model, packs: Path, project: Path) -> None:
    """The guard of the harness plugin does so for calls that are not streamed."""
    veto = (
        "raw = sys.stdin.read()\ncall = json.loads(raw)['tool_calls'][0]\n"
        "folder = os.environ['HARNESS_SESSION'] + '/.tool_dispatch'\nos.makedirs(folder, exist_ok=True)\n"
        "file = f\"{folder}/{call['id']}.json\"\n"
        "if call['input'].get('path') == 'a' and not os.path.exists(file):\n"
        "    json.dump({'result': 'vetoed', 'error': True}, open(file, 'w'))\nsys.stdout.write(raw)"
    )
    hook(packs, "tool_exec", "05-veto", python(veto))
    os.environ["HARNESS_PREDISPATCH"] = "0"
    try:
        write = [("write_file", {"path": path, "content": "x"}) for path in "ab"]
        model.script = [Say("", tuple(write)), Say("Done.")]
        assert loop("go").code == 0
    finally:
        del os.environ["HARNESS_PREDISPATCH"]
    assert model.told() == ["vetoed", f"wrote 1 bytes to {project}/b"]
    assert not (project / "a").exists()


def test_a_guard_hands_on_to_the_next_tool_of_its_name(model: Model, packs: Path, project: Path) -> None:
    """A plugin's tool that shadows ours and hands calls on. It finds ours as an executable."""
    guard = (
        "me = os.path.realpath(__file__)\nname = os.path.basename(__file__)\n"
        "places = reversed(os.environ['HARNESS_SOURCES'].split(':'))\n"
        "paths = [f'{place}/tools/{name}' for place in places]\n"
        "after = next(p for p in paths if os.access(p, os.X_OK) and os.path.realpath(p) != me)\n"
        "data = sys.stdin.read() if sys.argv[1] == '--exec' else ''\n"
        "if 'locked' in data:\n    print('locked by peer')\n    sys.exit(1)\n"
        "import subprocess\nsys.exit(subprocess.run([after, sys.argv[1]], input=data, text=True).returncode)"
    )
    executable(packs / "plugins" / "guard" / "tools" / "write_file", python(guard))
    calls = tuple(("write_file", {"path": f"{name}.txt", "content": "x"}) for name in ("locked", "free"))
    model.script = [Say("", calls), Say("Done.")]
    (project / "sub").mkdir()
    assert loop("go").code == 0
    assert model.told() == ["locked by peer", f"wrote 1 bytes to {project}/free.txt"]
    assert (project / "free.txt").exists() and not (project / "locked.txt").exists()
    assert "write_file" in model.tools()


@requirement("B-16")
def test_tools_run_while_the_answer_is_still_coming(model: Model, packs: Path, project: Path) -> None:
    meets = "touch {}; until [ -e {} ]; do sleep 0.02; done; echo met"
    calls = tuple(("bash", {"command": meets.format(*names)}) for names in ("ab", "ba"))
    model.script = [Say("", calls, pause=lambda: all((project / name).exists() for name in "ab")), Say("Done.")]
    assert loop("go").code == 0
    assert model.told() == ["met"] * 2


def test_a_tool_that_takes_too_long_is_ended(model: Model, packs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_TOOL_TIMEOUT", "0.3")
    tool(packs, "slow", "sleep 60 & sleep 60")
    model.script = [Say("", (("slow", {}),)), Say("Done.")]
    assert loop("go").code == 0
    assert "longer than" in model.told()[0]


@requirement("B-10")
def test_built_in_tools_are_executables_too(model: Model, project: Path) -> None:

    root = Path(tools.root())
    assert tools.root() == str(root)
    path = root / "plugins" / "core" / "tools" / "str_replace"
    (project / "a.txt").write_text("one two")
    shown = json.loads(subprocess.run([path, "--schema"], capture_output=True, text=True, check=True).stdout)
    assert shown["name"] == "str_replace" and "old_str" in shown["input_schema"]["properties"]
    given = json.dumps({"path": "a.txt", "old_str": "two", "new_str": "2"})
    done = subprocess.run([path, "--exec"], input=given, capture_output=True, text=True)
    assert (done.returncode, (project / "a.txt").read_text()) == (0, "one 2")
    done = subprocess.run([path, "--exec"], input=given, capture_output=True, text=True)
    assert done.returncode == 1 and "not found" in done.stdout


@pytest.mark.parametrize("name", sorted({*tools.NAMES} - {"agent"}))
def test_each_built_in_tool_runs_by_itself(model: Model, project: Path, name: str) -> None:
    (project / "a.txt").write_text("one")
    given = {"path": "a.txt", "content": "x", "old_str": "one", "new_str": "two", "edits": [], "command": "echo said"}
    path = Path(tools.root(), "plugins/core/tools", name)
    done = subprocess.run([path, "--exec"], input=json.dumps({**given, "name": "none"}), capture_output=True, text=True)
    assert "internal error" not in done.stderr and done.stdout.strip(), done
    if name == "bash":
        assert (done.returncode, done.stdout) == (0, "said\n")


@requirement("B-09")
def test_commands_can_be_added_and_replaced(packs: Path, model: Model) -> None:
    deploy = '[ "$1" = --describe ] && echo ships it || echo "shipped $1"'
    executable(packs / "commands" / "deploy", f"#!/bin/sh\n{deploy}\n")
    executable(packs / "commands" / "tools", "#!/bin/sh\necho mine\n")
    run = [sys.executable, "-c", MAIN, "loop", "deploy", "here"]
    assert subprocess.run(run, capture_output=True, text=True).stdout == "shipped here\n"
    assert subprocess.run([*run[:-2], "tools"], capture_output=True, text=True).stdout == "mine\n"
    assert "ships it" in loop("help").out


ANSWER = {"model": "own", "content": [{"type": "text", "text": "from a plugin"}], "stop_reason": "end_turn"}


@requirement("B-12")
def test_a_provider_may_be_an_executable(model: Model, packs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARNESS_PROVIDER")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_API_URL"):
        monkeypatch.delenv(name)
    text = (
        "flag = sys.argv[1] if len(sys.argv) > 1 else ''\n"
        "if flag == '--ready': sys.exit(0)\n"
        "if flag == '--defaults': print('model=own'); sys.exit(0)\n"
        f"json.dump(json.load(sys.stdin), open('{packs}/payload.json', 'w'))\nprint({json.dumps(ANSWER)!r})"
    )
    executable(packs / "providers" / "mine", python(text))
    assert loop("go").out == "from a plugin\n"
    payload = json.loads((packs / "payload.json").read_text())
    assert payload["model"] == "own" and payload["messages"][0]["role"] == "user"
    assert {"bash", "write_file"} <= {shown["name"] for shown in payload["tools"]} and payload["system"]
    failing = "case $1 in --*) exit 0;; esac\necho 'API key not set' >&2; exit 1"
    executable(packs / "providers" / "mine", f"#!/bin/sh\n{failing}\n")
    ran = loop("go", "--json")
    assert ran.code == 4 and ran.events[-1]["error_category"] == "auth_failed"


@requirement("B-16")
def test_a_streaming_provider_hands_calls_on_at_once(model: Model, packs: Path, project: Path, monkeypatch) -> None:
    call = {"type": "tool_use", "id": "c1", "name": "write_file", "input": {"path": "x", "content": "y"}}
    first = {"content": [call], "stop_reason": "tool_use"}
    text = (
        "assert sys.argv[1:] == ['--stream']\npayload = json.load(sys.stdin)\n"
        "if len(payload['messages']) == 1:\n"
        f"    open(os.environ['HARNESS_TOOL_FIFO'], 'w').write({json.dumps(call)!r} + chr(10))\n"
        f"    import time\n    while not os.path.exists({str(project / 'x')!r}): time.sleep(0.02)\n"
        f"    print({json.dumps(first)!r})\nelse:\n    print({json.dumps(ANSWER)!r})"
    )
    executable(packs / "providers" / "mine", python(text))
    monkeypatch.setenv("HARNESS_PROVIDER", "mine")
    ran = loop("go")
    assert (ran.code, ran.out) == (0, "from a plugin\n"), ran.err


@requirement("B-14")
def test_variants(model: Model, packs: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = os.environ["OPENAI_API_URL"]
    for name in ("OPENAI_API_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name)
    (packs / "providers").mkdir()
    conf = f"# ours\nprotocol=openai\nmodel=llama\nurl={url}\nauth_env=LLAMA_KEY\nmax_tokens=77\nstream=false\n"
    (packs / "providers" / "llama.conf").write_text(conf)
    monkeypatch.setenv("HARNESS_PROVIDER", "llama")
    assert "LLAMA_KEY is not set" in loop("go").err
    monkeypatch.setenv("LLAMA_KEY", "k-llama")
    assert loop("go").code == 0
    asked, headers = model.asked[-1], model.headers[-1]
    assert (asked["model"], asked["max_tokens"], "stream" in asked) == ("llama", 77, False)
    assert headers["authorization"] == "Bearer k-llama"
    # The key of one provider is never sent to a variant's address.
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    text_at(project / ".harness" / "providers" / "llama.conf", f"protocol=openai\nurl={url}\n")
    assert loop("go").code == 0 and "authorization" not in model.headers[-1]


@requirement("B-14")
def test_a_variants_own_prices(model: Model, packs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (packs / "providers").mkdir()
    conf = packs / "providers" / "llama.conf"
    monkeypatch.setenv("HARNESS_PROVIDER", "llama")
    for price, dollars in (
        ("", None),  # this seller's prices differ from the published ones
        ("price_input=2\nprice_output=10\n", (107 * 2 + 20 * 10) / 1e6),
        ("price_input=2\nprice_output=10\nprice_cached=1\n", (100 * 2 + 7 * 1 + 20 * 10) / 1e6),
        ("price_input=0\nprice_output=0\n", 0.0),
    ):
        conf.write_text(f"protocol=openai\nmodel=gpt-4o\nurl={os.environ['OPENAI_API_URL']}\n{price}")
        (told,) = (event for event in loop("go", "--json").events if event["type"] == "context_usage")
        assert told["cost_usd"] == (None if dollars is None else pytest.approx(dollars))


@requirement("B-14")
def test_the_bundled_providers_are_whole(model: Model) -> None:
    listed = providers.variants([])
    assert {"deepseek", "fireworks", "groq", "llama.cpp", "ollama", "openrouter", "zai"} <= set(listed)
    for name in listed:
        facts = dict(settings.read(listed[name]))
        assert facts["description"] and facts["url"].startswith(("https://", "http://127.0.0.1:"))
        key = {facts["auth_env"]: "k-1"} if "auth_env" in facts else {}
        assert bool(key) is facts["url"].startswith("https://")
        found = providers.resolve(name, [], {**os.environ, **key})
        request = found.protocol.request({"model": "m"}, {**os.environ, **found.more}, True)
        assert request.url == facts["url"] and "sk-mock" not in str(request.headers)
        if key:
            with pytest.raises(LoopFailure, match="is not set"):
                providers.resolve(name, [], os.environ)
    shown = loop("help").out
    assert "Groq (GROQ_API_KEY)" in shown


@requirement("B-13")
def test_the_first_ready_provider_is_taken(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARNESS_PROVIDER")
    assert loop("go").code == 0 and "system" in model.asked[-1]
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    assert loop("go").code == 0 and model.asked[-1]["messages"][0]["role"] == "system"
    assert f"provider={OPENAI}" in (sessions()[-1] / "session.conf").read_text()


@requirement("B-17")
def test_prompts_from_far_to_near(model: Model, packs: Path, project: Path) -> None:
    (packs.parent / "AGENTS.md").write_text("FAR AGENTS")
    text_at(packs / "prompts" / "20-b.md", "FAR B")
    (packs / "prompts" / "10-a.md").write_text("FAR A")
    (project / ".harness" / "prompts").mkdir(parents=True)
    (project / "AGENTS.md").write_text("NEAR AGENTS")
    (project / ".harness" / "prompts" / "x.md").write_text("NEAR X")
    assert loop("go").code == 0
    places = [model.system().index(text) for text in ("FAR AGENTS", "FAR A\n", "FAR B", "NEAR AGENTS", "NEAR X")]
    assert places == sorted(places)


@requirement("A-52", "B-18", "C-65")
def test_skills_are_listed_and_loaded(model: Model, packs: Path, project: Path) -> None:
    for place, text in ((packs, "far"), (project / ".agents", "near")):
        (place / "skills" / "folder" / "references").mkdir(parents=True)
        head = f"---\nname: paint\ndescription: how to paint,\n  {text}\n---\n"
        (place / "skills" / "folder" / "SKILL.md").write_text(f"{head}BODY {text}\n")
        (place / "skills" / "folder" / "references" / "colours.md").write_text("red")
    model.script = [Say("", (("skill", {"name": "paint"}), ("skill", {"name": "fly"}))), Say("Done.")]
    assert loop("go").code == 0
    assert 'name="paint"' in model.system() and "how to paint, near" in model.system() and "BODY" not in model.system()
    assert 'name="swarm-mcp"' in model.system()
    text, missing = model.told()
    assert "BODY near" in text and "references/colours.md" in text and "name:" not in text
    assert "not found" in missing
    assert loop("/paint the wall").code == 0
    sent = model.asked[-1]["messages"][0]["content"][0]["text"]
    assert "BODY near" in sent and sent.endswith("User request: the wall")

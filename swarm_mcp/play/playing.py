"""The findings of a play: the writes that a client's hooks denied, those that landed, and the reason."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from swarm_mcp.doctor import enforcement, last_fault, own_checks
from swarm_mcp.errors import ClientFailed
from swarm_mcp.installation import marketplace_folder, plugin_source
from swarm_mcp.play.clients import NEW, NOTEBOOK, SCRIPT, TEXT, Client
from swarm_mcp.play.makers import ClaudeCode, Codex, Copilot, Gemini, Grok, Kimi, Qwen
from swarm_mcp.play.models import FileGate, Step, play
from swarm_mcp.play.open_clients import Cline, Hermes, Kilo, Omp, OpenCode, Pi
from swarm_mcp.play.scene import FREE, LINE, YOURS, Scene
from swarm_mcp.runtimes.base import Finding, Look, Runtime, Steps
from swarm_mcp.runtimes.installed import Installed
from swarm_mcp.runtimes.json_editor import object_of
from swarm_mcp.runtimes.users_file import object_in

PLAYED = (ClaudeCode, Codex, Copilot, Gemini, Qwen, Grok, OpenCode, Kilo, Kimi, Cline, Hermes, Pi, Omp)
CLIENTS: dict[str, type[Client]] = {client.name: client for client in PLAYED}
SWEEP = f"git checkout -- {YOURS}"
PLAN = "plan"  # the mode of several clients
SERVER_SECONDS = 20.0  # at most, for its start
GREETED = "registered as"  # in the words of a session's start
DENIED, LANDED = "denied", "landed"
KEPT, ASKED, LOST = "denied", "asked", "lost"


class Outcome(NamedTuple):
    """The end of one session: way -> denied, landed, or the words that the model read; the same of a person's line."""

    mode: str
    ways: dict[str, str]
    persons_line: str
    free: bool
    greeted: bool
    trouble: str

    def named(self, *ends: str) -> list[str]:
        """Return the ways that ended so; without `ends`, those that were neither denied nor landed."""
        return [way for way, end in self.ways.items() if end in ends or (not ends and end not in (DENIED, LANDED))]


def findings(runtime: Runtime, mode: str, steps: Steps, models: Sequence[str] = ()) -> Iterator[Finding]:
    """Yield a finding for each session of a client that is played.

    `mode`: a permission mode, ``all`` of them, or empty for the one that the client starts in. `models`: names of
    models, by default one for each set of tools. Raises ClientFailed.
    """
    name = f"{runtime.name} play"
    look = runtime.look(marketplace_folder(), steps)
    if look.installed is None:
        yield from look.findings
        return
    if runtime.name not in CLIENTS:
        yield Finding(name, "info", f"{runtime.title} cannot be played: it is not driven by `doctor --play` yet")
        return
    release = runtime.release()
    if runtime.too_old(release):  # it may not know the settings of a play
        text = f"not played: {runtime.title} {release} is too old"
        yield Finding(name, "fail", text, runtime.too_old(release))
        return
    steps.begin("copying its settings into a home of the play")
    scene = Scene(runtime)
    try:
        client = CLIENTS[runtime.name](scene)
        try:
            client.bring()
        except ClientFailed as error:
            yield Finding(name, "fail", f"not played: {error}")
            return
        modes: tuple[str, ...] = (mode,)
        if mode == "all":
            modes = ("", *client.modes)
        elif mode not in ("", *client.modes):
            raise ClientFailed(f"{runtime.title} has no mode {mode!r}; choose from {', '.join(client.modes)}, all")
        for model in models or client.models_played:
            client.choose(model or client.model)
            title = f"{runtime.title} {release}" + f", model {model}" * bool(model)
            known = {"release": release, "model": model}
            started_in = None
            for each in modes:
                if each == started_in:
                    continue  # was played by default
                steps.begin("playing a session, in which a scripted model writes locked files")
                try:
                    found = _judged(runtime, look, scene, _played(client, scene, each), title)
                except ClientFailed as error:
                    status = "info" if mode == "all" else "fail"  # a mode may not be for this user
                    text = f"{title}, mode {each or 'by default'}: not played: {error}"
                    found = Finding(name, status, text, details={"mode": each, "not_played": str(error)})
                if not each:
                    started_in = found.details["mode"]
                yield replace(found, details={**found.details, **known, "by_default": not each})
    finally:
        scene.close()


def _played(client: Client, scene: Scene, mode: str) -> Outcome:
    """Play one session; return what the files, the model and the client show. Raises ClientFailed."""
    ways = client.ways()
    files = {way.file: TEXT for way in ways}
    files.update({name: text for name, text in {"notebook.ipynb": NOTEBOOK, NEW: ""}.items() if name in files})
    scene.set_up(files)
    writes_free = mode != PLAN  # that mode asks with a No in front, if at all
    last = [client.shell(f"echo {TEXT.strip()} > {FREE}")] * writes_free + [client.shell(SWEEP)]
    steps = [Step((call,)) for call in [*(call for way in ways for call in way.calls), *last]]
    # Not all clients wait for servers: the answer before the last way, which is that of a server, comes when they can.
    before = len(steps) - len(last) - len(ways[-1].calls) - 1
    steps[before] = steps[before]._replace(gate=FileGate(scene.listed, SERVER_SECONDS))
    client.models.script(SCRIPT, *steps)
    seen = client.session(play(SCRIPT), mode)
    results = iter(client.results(SCRIPT))
    ends = {}
    for way in ways:
        said = [next(results, "") for _call in way.calls][-1]
        ends[way.name] = said or "the session ended before it"
        if "not found" in said and (way.is_optional or seen.mode == PLAN):
            del ends[way.name]  # this release, or this mode, does not offer it
        elif scene.text(way.file) != files[way.file]:
            ends[way.name] = LANDED
        elif enforcement.DENIED in said:
            ends[way.name] = DENIED
    if writes_free:
        next(results, "")
    line = next(results, "") or "the session ended before it"
    if LINE not in scene.text(YOURS):
        line = LOST
    elif any("swarm" in request for request in seen.asked):
        line = ASKED
    elif "swarm" in line:
        line = KEPT
    greeted = GREETED in json.dumps([exchange.body for exchange in client.exchanges(SCRIPT)])
    return Outcome(seen.mode, ends, line, scene.text(FREE) == TEXT, greeted, seen.trouble)


def _judged(runtime: Runtime, look: Look, scene: Scene, outcome: Outcome, title: str) -> Finding:
    """Return the finding about one session."""
    name, mode, count = f"{runtime.name} play", f", mode {outcome.mode}" * bool(outcome.mode), len(outcome.ways)
    details = {
        "mode": outcome.mode,
        "ways": outcome.ways,
        "persons_line": outcome.persons_line,
        "free_file_written": outcome.free,
        "greeted": outcome.greeted,
        "tried_to_reach": sorted(set(scene.models.reached_for)),
    }
    denied, landed, unclear = outcome.named(DENIED), outcome.named(LANDED), outcome.named()
    told = [f"{len(denied)} of {count} denied"]
    if landed:
        told.append(f"writes to a locked file landed: {', '.join(landed)}")
    told += [f"{way} was neither denied nor done: {_short(outcome.ways[way])}" for way in unclear]
    line = {KEPT: "a person's line is kept", ASKED: "the person is asked", LOST: "a person's line was thrown away"}
    told.append(line.get(outcome.persons_line, f"a person's line stayed: {_short(outcome.persons_line)}"))
    if not outcome.greeted:
        told.append("the session's start was not told")
    if not outcome.free and outcome.mode != PLAN:
        told.append("a free file was not written")
    if outcome.trouble:
        told.append(f"it ended with: {_short(outcome.trouble)}")
    is_off = any(finding.status == "fail" for finding in look.findings)  # in this folder
    is_broken = is_off or bool(landed) or outcome.persons_line == LOST or not outcome.greeted
    if not is_broken:
        is_doubtful = unclear or outcome.persons_line not in line
        status = "warn" if is_doubtful and outcome.mode != PLAN else "ok"  # it does nothing by itself there
        return Finding(name, status, f"{title}{mode}: hooks run, {', '.join(told)}", details=details)
    cause, mend = _cause(runtime, look, scene, outcome)
    return Finding(name, "fail", f"{title}{mode}: {', '.join(told)}. {cause}", mend, details)


def _cause(runtime: Runtime, look: Look, scene: Scene, outcome: Outcome) -> tuple[str, str]:
    """Return the reason why hooks do not hold, and its mend."""
    found = [finding for finding in look.findings if finding.status == "fail"]
    assert look.installed
    found += _missing_events(runtime, look.installed)
    proof = enforcement.prove(runtime, look.installed)
    changed = own_checks.plugins(own_checks.Asked("", ()))
    found += [finding for finding in (proof, changed) if finding.status in ("fail", "warn")]
    found += [finding for finding in look.findings if finding.status == "warn"]
    if found:
        return "; ".join(finding.message for finding in found), found[0].mend
    fault = last_fault(scene.state)
    if fault:
        return f"a hook recorded: {fault}", "swarm-mcp doctor"
    if outcome.named(DENIED):
        text = "It runs its hooks: they denied others. It may have given this check up, as clients do if one takes long"
        return text, f"play it again, on a machine that is less busy: swarm-mcp doctor --play {runtime.name}"
    return "Started by hand, its hooks deny it: the client does not run them, and does not say why", ""


def _missing_events(runtime: Runtime, installed: Installed) -> list[Finding]:
    wanted = object_of(object_in(plugin_source() / runtime.folder / "hooks.json").get("hooks"))
    there = {hook.event.lower() for hook in installed.commands()}
    missing = [event for event in wanted if event.lower() not in there]
    if not missing:
        return []
    text = f"the installed plugin has no hook for {', '.join(missing)}"
    return [Finding(f"{runtime.name} plugin", "fail", text, f"swarm-mcp install --client {runtime.name}")]


def _short(text: str) -> str:
    return repr(" ".join(text.split())[:160])

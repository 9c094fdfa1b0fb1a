"""The commands that a refusal advises, put through the check: each has to pass."""

import re
import shlex

from support.world import Agent

_OWN = re.compile(
    r"(?:For your own files alone|Your own changes alone|To put your own changes alone aside)[^`]*`([^`]+)`"
)
_REFUSING = re.compile(r"`([^`]+)` leaves them alone: git refuses")
MORE = " ..."  # behind the names of a command that names only the first files


def advised(said: str) -> list[str]:
    """Return the commands for the session's own work alone in the words of a verdict."""
    found = [command.removesuffix(MORE) for command in _OWN.findall(said)]
    return [f"{one} -m text" if one.startswith("git commit ") else one for one in found]


def files_advised(said: str) -> set[str]:
    """Return the names of the files in these commands."""
    names = {word for command in advised(said) for word in shlex.split(command)[2:] if word[:1] != "-"}
    return names - {"push", "text"}


def advice_passes(agent: Agent, said: str) -> None:
    """Ask the check about each advised command: it passes."""
    for command in advised(said):
        verdict = agent.ask("Bash", {"command": command})
        assert not verdict.denied, f"{said}\n\nadvises `{command}`, which is denied:\n{verdict.words}"
    for command in _REFUSING.findall(said):
        words = agent.ask("Bash", {"command": command}).words
        if words:  # it moves HEAD under a peer, as the denied command would have
            assert " of this work tree to " in words and "the same command again goes ahead" in words, words
            assert not agent.ask("Bash", {"command": command}).denied


_LOOK = re.compile(r"`(cat [^`>]+)`")
PROMISES = ("the removal passes then", "then the removal passes", "that passes", "same command again goes ahead")


def promise_is_kept(agent: Agent, tool: str, given: object, said: str) -> None:
    """Look at the files as a refusal advises, and make the call again: it passes, as the refusal has promised."""
    assert any(promise in said for promise in PROMISES), said
    for command in _LOOK.findall(said)[:1]:
        assert not agent.bash(command).denied, said
    verdict = agent.ask(tool, given)
    assert not verdict.denied, f"{said}\n\npromises that the call passes then, which is denied:\n{verdict.words}"

"""A person's view of the loop at a terminal: words as they come, their cost, a conversation, kept keys."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from support.fixtures import BARE_PYTHON, FOLDERS, SWARM
from support.loop_fixtures import Model, Say, loop, sessions, written
from support.screen import read_terminal

pytestmark = pytest.mark.slow

SECONDS = 60.0


class Screen:
    """`swarm-mcp worker loop` with a terminal at both ends; `text` is all that it has written."""

    def __init__(self, *words: str, program: list[str] = SWARM, pass_fds: tuple[int, ...] = ()) -> None:
        self._terminal, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*program, "loop", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            pass_fds=pass_fds,
        )
        os.close(theirs)
        self.text = ""

    def until(self, wanted: str) -> str:
        """All that is new until a line or a part of one is there that matches `wanted`."""
        begin, end = len(self.text), time.monotonic() + SECONDS
        while not re.search(wanted, self.text[begin:]):
            assert time.monotonic() < end and self._read(), f"no {wanted!r} in {self.text!r}"
        return self.text[begin:]

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def over(self) -> int:
        """Its exit code, once it has ended."""
        while self._read():
            pass
        return self.process.wait(SECONDS)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)

    def _read(self) -> bool:
        if not select.select([self._terminal], [], [], SECONDS)[0]:
            return False
        piece = read_terminal(self._terminal)
        self.text += piece.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(piece)


@pytest.fixture
def screen(model: Model, usual_signals: None):
    made: list[Screen] = []

    def begin(*words: str, **more: Any) -> Screen:
        made.append(Screen(*words, **more))
        return made[-1]

    yield begin
    for one in made:
        one.close()


def test_words_are_shown_while_the_answer_is_still_coming(model: Model, screen) -> None:
    model.script = [Say("One two three", pause=SECONDS * 2)]
    seen = screen("count")
    seen.until("One two ")  # its stream has not ended, and will not during this wait
    seen.process.send_signal(signal.SIGINT)
    seen.until("error: interrupted")
    assert seen.over() == 130
    assert "three\nerror: interrupted" in seen.text


def test_an_answer_is_shown_once_and_with_what_it_took(model: Model, screen, monkeypatch) -> None:
    for stream in ("1", "0"):
        monkeypatch.setenv("HARNESS_STREAM", stream)
        model.script = [Say("Looking.", (("list_dir", {}),)), Say("All of it\nis fine.")]
        seen = screen("go")
        assert seen.over() == 0
        assert re.sub(r"session: \S+", "session: S", seen.text) == (
            "session: S\nprovider: anthropic\nmodel: claude-sonnet-5-5\n"
            "Looking.\n── list_dir {}\nAll of it\nis fine.\n2 answers, 220 tokens in, 40 out, $0.0008\n"
        )


def test_nothing_that_a_model_says_acts_on_the_terminal(model: Model, screen, monkeypatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "k-1234567890-abcdef")
    model.script = [Say("a\x1b]0;title\x07 k-1234567890-abcdef b")]
    seen = screen("go")
    assert seen.over() == 0
    assert "a\\e]0;title\\x07 [REDACTED:SOME_API_KEY] b\n" in seen.text


def test_one_prompt_after_the_other_in_one_session(model: Model, screen) -> None:
    model.script = [Say("First."), Say("Second."), Say("Third.")]
    seen = screen()
    seen.until("> ")
    seen.type("one\r")
    seen.until("First(.|\n)*answer(.|\n)*> ")
    seen.type("\rtwo\r")  # an empty line asks nothing
    again = seen.until("Second(.|\n)*answer(.|\n)*> ")
    assert "session:" not in again
    seen.type("/new\rthree\r")
    seen.until("session:(.|\n)*Third(.|\n)*answer(.|\n)*> ")
    seen.type("\x04")
    assert seen.over() == 0
    first, second = sessions()
    assert [m.text for m in written(first)] == ["one", "First.", "two", "Second."]
    assert [m.text for m in written(second)] == ["three", "Third."]


def test_an_interrupted_prompt_leaves_the_conversation_as_it_is(model: Model, screen) -> None:
    model.script = [Say("Working on ", pause=SECONDS * 2), Say("Again.")]
    seen = screen()
    seen.until("> ")
    seen.type("one\r")
    seen.until("Working on ")
    seen.process.send_signal(signal.SIGINT)
    seen.until("error: interrupted(.|\n)*> ")
    seen.type("two\r")
    seen.until("Again(.|\n)*answer(.|\n)*> ")
    (session,) = sessions()
    assert [m.text for m in written(session)] == ["one", "two", "Again."]
    seen.process.send_signal(signal.SIGTERM)
    assert seen.over() == 143


DEAF = f"""
import os, signal, sys, threading
sys.path[:0] = {FOLDERS!r}
from swarm_mcp.cli.main import main

def handled_elsewhere():  # as where it comes before `input` waits: the wait for a key goes on
    os.read(int(os.environ["PIPE"]), 1)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

threading.Thread(target=handled_elsewhere, daemon=True).start()
sys.exit(main())
"""


def test_a_signal_that_does_not_end_the_wait_for_a_key_ends_the_loop(model: Model, screen, monkeypatch) -> None:
    reader, writer = os.pipe()
    monkeypatch.setenv("PIPE", str(reader))
    seen = screen(program=[*BARE_PYTHON, "-c", DEAF], pass_fds=(reader,))
    seen.until("> ")
    os.write(writer, b"x")
    assert seen.over() == 143


def test_an_earlier_session_is_gone_on_with(model: Model, screen) -> None:
    assert loop("one").code == 0
    (session,) = sessions()
    model.script = [Say("More.")]
    seen = screen(session.name)
    seen.until("> ")
    seen.type("two\r")
    seen.until("More(.|\n)*answer(.|\n)*> ")
    seen.type("/exit\r")
    assert seen.over() == 0
    assert sessions() == [session] and [m.text for m in written(session)][2:] == ["two", "More."]


def test_a_key_is_asked_for_without_being_shown_and_kept_for_its_owner(
    model: Model, screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = screen("auth", "set", "openai")
    seen.until("key for openai: ")
    seen.type("sk-kept-1234567890\r")
    assert seen.over() == 0 and "sk-kept" not in seen.text
    path = Path(os.environ["HARNESS_HOME"], ".auth.json")
    assert path.stat().st_mode & 0o777 == 0o600
    # As the bash harness has it.
    assert json.loads(path.read_text()) == {"openai": [{"type": "api_key", "key": "sk-kept-1234567890"}]}
    monkeypatch.setenv("HARNESS_PROVIDER", "openai")
    monkeypatch.delenv("OPENAI_API_KEY")
    model.script = [Say("The key is sk-kept-1234567890.")]
    assert loop("go").code == 0
    assert model.headers[-1]["authorization"] == "Bearer sk-kept-1234567890"
    (session,) = sessions()
    assert "sk-kept" not in written(session)[-1].text  # it is a secret like any other


def test_keys_are_listed_by_name_replaced_and_forgotten(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    assert loop("auth", "list").out == "(no keys are kept)\n"
    for key in ("k-first", "k-second"):
        kept = loop("auth", "set", "openrouter", stdin=f"{key}\n")
        assert kept.code == 0 and key not in kept.out + kept.err
    assert loop("auth", "list").out == loop("auth").out == "openrouter\n"
    # A provider with only a key is asked, and its key goes to no other.
    for name in ("HARNESS_PROVIDER", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_API_URL"):
        monkeypatch.delenv(name)
    own = Path(os.environ["HARNESS_HOME"], "providers", "openrouter.conf")
    own.parent.mkdir()
    own.write_text(f"protocol=openai\nmodel=m\nurl={model.address}/v1/chat/completions\nauth_env=OPENROUTER_API_KEY\n")
    assert loop("go").code == 0 and model.headers[-1]["authorization"] == "Bearer k-second"
    assert loop("auth", "remove", "openrouter").code == 0
    assert "no provider is ready" in loop("go").err
    monkeypatch.setenv("HARNESS_PROVIDER", "openrouter")
    assert "swarm-mcp worker loop auth set openrouter" in loop("go").err


@pytest.mark.parametrize(
    ("words", "given", "why"),
    [
        (("set", "nobody"), "k\n", "there is no provider"),
        (("set", "openai"), "\n", "no key"),
        (("set", "openai"), "two words\n", "no key"),
        (("set",), "k\n", "usage"),
        (("remove", "openai"), "", "no key is kept"),
    ],
)
def test_what_is_no_key_is_not_kept(model: Model, words: tuple[str, ...], given: str, why: str) -> None:
    ran = loop("auth", *words, stdin=given)
    assert ran.code == 2 and why in ran.err
    assert not Path(os.environ["HARNESS_HOME"], ".auth.json").exists()


def test_an_answer_by_a_schema(model: Model, tmp_path: Path) -> None:
    wanted = tmp_path / "wanted.json"
    wanted.write_text(json.dumps({"type": "object", "required": ["n"]}))
    model.script = [Say("Seven."), Say('{"n": 7}')]
    ran = loop("how many?", "--schema", str(wanted))
    assert (ran.code, ran.out) == (0, '{"n": 7}\n')
    model.script = [Say("Seven.")]
    ran = loop("how many?", "--schema", str(wanted))
    assert ran.code == 4 and "the answer does not follow the schema" in ran.err
    assert loop("x", "--schema", str(tmp_path / "none.json")).code == 2

"""A person's view of the loop at a terminal: words as they come, and their cost."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.fixtures import SWARM
from support.loop_fixtures import Model, Say, loop
from support.screen import read_terminal

pytestmark = pytest.mark.slow

SECONDS = 60.0
AGAIN_SECONDS = 10.0


class Screen:
    """`swarm-mcp worker loop` with a terminal at both ends; `text` is all that it has written."""

    def __init__(self, *words: str) -> None:
        self._terminal, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*SWARM, "loop", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.text = ""

    def until(self, wanted: str) -> str:
        """All that is new until a line or a part of one is there that matches `wanted`."""
        begin, end = len(self.text), time.monotonic() + SECONDS
        while not re.search(wanted, self.text[begin:]):
            assert time.monotonic() < end and self._read(), f"no {wanted!r} in {self.text!r}"
        return self.text[begin:]

    def interrupt(self) -> None:
        """Press Ctrl-C, and again where nothing comes of it: Python does not see one right before a call that waits."""
        for _ in range(int(SECONDS / AGAIN_SECONDS)):
            self.process.send_signal(signal.SIGINT)
            if select.select([self._terminal], [], [], AGAIN_SECONDS)[0]:
                return

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

    def begin(*words: str) -> Screen:
        made.append(Screen(*words))
        return made[-1]

    yield begin
    for one in made:
        one.close()


def test_words_are_shown_while_the_answer_is_still_coming(model: Model, screen) -> None:
    model.script = [Say("One two three", pause=SECONDS * 2)]
    seen = screen("count")
    seen.until("One two ")  # its stream has not ended, and will not during this wait
    seen.interrupt()
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

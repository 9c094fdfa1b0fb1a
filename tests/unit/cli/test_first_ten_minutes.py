"""A new user's first hour at 80 columns: every screen is whole, answers its question, and is the docs' own."""

import os
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.screen import SEQUENCE
from support.sessions import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.path.realpath("/tmp") != "/tmp", reason="the home has a name of a certain length, below /tmp"
    ),
]

PAGE = "docs/first-ten-minutes.md"
SETTING = re.compile(r"\x1b\[([0-9;]*)m")


@pytest.fixture(scope="module")
def recorder() -> Iterator[dict[str, Any]]:
    sys.path.append(str(ROOT / "tests" / "documents"))
    yield runpy.run_path(str(ROOT / "tests" / "documents" / "first_ten_minutes.py"))
    sys.path.pop()


@pytest.fixture(scope="module")
def scenes(recorder) -> dict[str, Any]:
    return {scene.name: scene for scene in recorder["play"]()}


def words_in(svg: str) -> str:
    texts = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return " ".join(part for text in texts for part in text.itertext())


def text_of(scene) -> str:
    return " ".join(" ".join(scene.lines).split())


@pytest.mark.thorough
def test_every_screen_is_whole(scenes):
    for scene in scenes.values():
        assert scene.lines and max(map(len, scene.lines)) <= 80, scene
        assert not scene.broken, scene
        assert not [found[0] for found in SEQUENCE.finditer(scene.raw) if found[2] and found[2] not in "mKAJhl"], scene
        assert SETTING.findall(scene.raw)[-1:] in ([], ["0"]), "the next command begins without a colour"
        assert not re.search(r"origin:|session:|platform:|(?<![/\w])\d{10}(?!\w)|Traceback", scene.raw), (
            "labels are for programs"
        )


def test_each_question_has_its_answer(scenes):
    answers = {
        "refused": ["schema.sql: 3 lines (5 to 7)", "a person's work that is not committed", "protect off --for"],
        "status": ["claude-code 5f0c2f6e", "codex b7d1e0a4", "schema.sql to claude-code 5f0c2f6e, by Bash: `git checkout .`"],
        "diff": ["a person schema.sql +3 -0", "codex b7d1e0a4 schema.sql +1 -1"],
        "blame": ["apply_patch 2 id bigint,", "a person 6 create index orders_customer"],
        "commit": ["on main: schema.sql", "left out: schema.sql line 2 (codex b7d1e0a4"],
        "undo": ["undone in importer.py, schema.sql", "takes that back"],
        "kept": ["52 bytes"],
        "restore": ["shop/todo.md is as it was"],
        "lock": ["locked schema.sql"],
        "locked": ["held by a terminal", 'note: "renumbering', "wait in line for it"],
        "why": ["held by you (this terminal)", "1. in line: codex b7d1e0a4", "a write by you (this terminal) would go ahead"],
        "unlock": ["unlocked schema.sql"],
        "log": [
            "schema.sql to claude-code 5f0c2f6e, by Bash: `git checkout .` would throw away a person's uncommitted work",
            'schema.sql to codex b7d1e0a4, by apply_patch: held by you (this terminal): "renumbering migrations"',
            "acquired schema.sql by codex b7d1e0a4",
            "changed schema.sql by codex b7d1e0a4, not committed",
        ],
        "off": ["off until", "swarm checks nothing and says nothing"],
        "on": ["keep in /home/you/shop, by default"],
        "uninstall": ["left, for you to keep or to remove", "swarm.db", "`swarm-mcp restore` can bring back"],
    }  # fmt: skip
    assert answers.keys() == scenes.keys() - {"install", "doctor"}
    assert re.search("no agent client was found on PATH|take part", text_of(scenes["install"]))
    missing = {
        name: words for name, scene in scenes.items() for words in answers.get(name, []) if words not in text_of(scene)
    }
    assert missing == {}


def test_the_page_shows_these_screens(recorder, scenes):
    page = recorder["screens_of"]((ROOT / PAGE).read_text(encoding="utf-8"))
    assert page.keys() == scenes.keys()
    said, with_clients = recorder["said"], recorder["WITH_CLIENTS"]
    for name, scene in scenes.items():
        if name not in with_clients:
            assert said(page[name]) == said(recorder["shown"](scene)), "run: make picture"


def test_the_recording_shows_these_scenes(recorder, scenes):
    shown = words_in((ROOT / "docs" / "images" / "first-ten-minutes.svg").read_text(encoding="utf-8"))
    drawn = words_in(recorder["drawn"](list(scenes.values())))
    assert recorder["said"](shown) == recorder["said"](drawn), "run: make picture"
    for name in recorder["PICTURED"]:
        assert not recorder["said"]("\n".join(scenes[name].lines)) - recorder["said"](drawn), name


def test_the_page_is_written_into_its_blocks_alone(recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- screen: lock -->\n```text\nold\n```\nb\n<!-- screen: doctor -->\n```text\nkept\n```\n")
    scene = recorder["Scene"]("lock", "swarm-mcp lock f", ["locked f"], "locked f\r\n", [])
    monkeypatch.delenv("SWARM_E2E_CLIENTS", raising=False)
    monkeypatch.setitem(recorder["main"].__globals__, "play", lambda _clients: [scene])
    recorder["main"](str(page), str(tmp_path / "picture.svg"))
    blocks = "a\n<!-- screen: lock -->\n```text\n$ swarm-mcp lock f\nlocked f\n```\nb\n<!-- screen: doctor -->\n```text\nkept\n```\n"
    assert page.read_text() == blocks
    assert recorder["screens_of"](blocks) == {"lock": "$ swarm-mcp lock f\nlocked f", "doctor": "kept"}

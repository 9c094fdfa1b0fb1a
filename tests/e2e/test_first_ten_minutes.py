"""The screens of the docs with the real clients: installed, proved, and removed again."""

import runpy
from pathlib import Path

from .ground import client_folder

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_shows_what_a_new_user_sees() -> None:
    recorder = runpy.run_path(str(ROOT / "tests" / "documents" / "first_ten_minutes.py"))
    scenes = {scene.name: scene for scene in recorder["play"](str(client_folder().parent))}
    page = recorder["screens_of"]((ROOT / "docs" / "first-ten-minutes.md").read_text(encoding="utf-8"))
    assert page.keys() == scenes.keys()
    for name, scene in scenes.items():
        assert max(map(len, scene.lines)) <= 80 and not scene.broken, scene
        assert recorder["said"](page[name]) == recorder["said"](recorder["shown"](scene)), "run: make picture"

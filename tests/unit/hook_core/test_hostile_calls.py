"""Silence of the program in front of the check implies silence of the check, for any payload, store and journals.

Both leave the same state folder, times aside. ``SWARM_EXAMPLES=3000`` is a long form.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from support.altered import Limits
from support.first_look import IS_SUITE, PROGRAM
from support.hostile_calls import ALL, MILD, deeds, payloads
from support.scene_deeds import happens
from support.shared_scenes import Late, Shared

from swarm_hook_core.traces import meetings

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PROGRAM, reason="no program: make native")]
EXAMPLES = int(os.environ.get("SWARM_EXAMPLES", "200"))
SCENES: dict[str, Shared] = {}


@pytest.fixture(scope="module", autouse=True)
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A scene for each client, shared by all examples."""
    for runtime in ("claude-code", "codex"):
        SCENES[runtime] = Shared(tmp_path_factory.mktemp("look") / "scene", runtime)
    yield
    SCENES.clear()


@pytest.mark.usefixtures("checks_have_time")
def test_a_silent_call_is_silent_in_the_check_and_leaves_the_same(limits: Limits) -> None:
    limits(meetings, WAIT_SECONDS=0)  # for the deeds: a call that waits is not silent
    counted: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES, derandomize=IS_SUITE, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.sampled_from(("claude-code", "codex")),
        st.one_of(st.lists(deeds(MILD), max_size=4), st.lists(deeds(ALL), max_size=5)),
        st.data(),
    )
    def compare(runtime: str, before: list[tuple[str, Any]], data: st.DataObject) -> None:
        scene = SCENES[runtime]
        with scene.environment():
            scene.begin_example()
            for kind, about in before:
                happens(scene, kind, about)
            payload = data.draw(payloads(runtime, str(scene.work)))
            try:
                is_silent = scene.compare(payload)
            except Late:
                counted["late"] += 1
                assume(False)
        counted["silent" if is_silent else "handed over"] += 1
        event("silent" if is_silent else scene.why.strip() or "handed over")

    compare()
    print(dict(counted))
    assert counted["silent"] > 0, counted

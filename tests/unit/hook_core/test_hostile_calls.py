"""Payloads, journals and stores of every kind that may deceive a check: it fails open, and answers well.

``SWARM_EXAMPLES=3000`` is a long form.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.altered import Limits
from support.hostile_calls import ALL, MILD, deeds, payloads
from support.scene_deeds import happens
from support.shared_scenes import Shared

from swarm_hook_core.traces import meetings

pytestmark = pytest.mark.slow
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
def test_a_hostile_call_is_answered_well(limits: Limits) -> None:
    limits(meetings, WAIT_SECONDS=0)
    counted: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.sampled_from(("claude-code", "codex")),
        st.one_of(st.lists(deeds(MILD), max_size=4), st.lists(deeds(ALL), max_size=5)),
        st.data(),
    )
    def ask(runtime: str, before: list[tuple[str, Any]], data: st.DataObject) -> None:
        scene = SCENES[runtime]
        with scene.environment():
            scene.begin_example()
            for kind, about in before:
                happens(scene, kind, about)
            payload = data.draw(payloads(runtime, str(scene.work)))
            status, told = scene.asks(payload)
        assert status == 0
        if not told:
            counted["silent"] += 1
        else:
            counted["denied" if '"deny"' in told else "told"] += 1
            json.loads(told)

    ask()
    print(dict(counted))
    assert min(counted["silent"], counted["denied"] + counted["told"]) > 0, counted

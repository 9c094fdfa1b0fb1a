"""The decision about the tracker: each rule alone, and each before the next."""

import pytest

from swarm_mcp.agents.dispatch.promotion import Parent, Work, decide, provider_of

LINEAR = {"provider": "linear", "mcp": "linear"}
ENTRY = {"identifier": "ENG-7", "url": "https://tracker.example/ENG-7", "linked_at": 1}
LONG = "w" * 61


def work(**given) -> Work:
    return Work(**{"identity": "p", "tracker": LINEAR, "type": "implement", "title": "Fix it", **given})


def test_a_denial_without_a_tracker_has_the_recorded_shape() -> None:
    decision = decide(work(tracker=None))
    assert decision == {"promote": False, "reason": "no_tracker_configured", "identity": "p", "provider": None}
    assert list(decision) == ["promote", "reason", "identity", "provider"]


# Each work would satisfy every later rule too: one that is out of its place shows.
CASES = [
    ("missing_identity_label", {"identity": "", "promote": True, "identifier": "ENG-1"}),
    ("no_tracker_configured", {"tracker": {"mcp": "linear"}, "promote": True}),
    ("identity_mismatch", {"tracker": {**LINEAR, "identity": "identity:other"}, "promote": True, "identifier": "E-1"}),
    ("operator_suppressed", {"promote": False, "identifier": "ENG-1", "files": ("/__swarm/spawn/x",), "title": LONG}),
    ("synthetic_resource", {"files": ("/__swarm/spawn/x", "/__swarm/y"), "promote": True, "mentioned": "ENG-2"}),
    ("parent_routine_skipped", {"parent": Parent(False), "type": "review", "title": LONG}),
    ("type_not_promotable", {"type": "review", "tracker": {**LINEAR, "default_promotion": "always"}}),
    ("type_not_promotable", {"type": "other", "title": LONG}),
    ("type_not_promotable", {"tracker": {**LINEAR, "promotable_types": ["fix"]}, "title": LONG}),
    ("repo_explicit_only", {"tracker": {**LINEAR, "default_promotion": "explicit-only"}, "title": LONG}),
    ("trivial_inline_edit", {"files": ("/a",), "description": "d" * 80, "title": "t" * 60}),
]


@pytest.mark.parametrize(("reason", "given"), CASES)
def test_it_is_not_promoted(reason: str, given: dict) -> None:
    decision = decide(work(**given))
    assert (decision["promote"], decision["reason"]) == (False, reason)
    assert "mode" not in decision and "identifier" not in decision


@pytest.mark.parametrize(
    ("reason", "mode", "precedence", "given"),
    [
        ("explicit_identifier", "link", "operator", {"identifier": "ENG-1", "promote": True, "mentioned": "ENG-2"}),
        ("explicit_identifier", "link", "operator", {"identifier": "ENG-1", "files": ("/__swarm/x",)}),
        ("operator_requested", "create", "operator", {"promote": True, "mentioned": "ENG-2", "parent": Parent(False)}),
        ("explicit_identifier", "link", "task", {"mentioned": "ENG-2", "parent": Parent(True, ENTRY)}),
        ("parent_binding_inherited", "link", "parent", {"parent": Parent(True, ENTRY), "type": "review"}),
        ("repo_default_always", "create", "repository", {"tracker": {**LINEAR, "default_promotion": "always"}}),
        ("medium_or_larger", "create", "size", {"files": ("/a", "/b")}),
        ("medium_or_larger", "create", "size", {"description": "d" * 81}),
        ("medium_or_larger", "create", "size", {"title": LONG}),
        ("medium_or_larger", "create", "size", {"title": LONG, "parent": Parent(True)}),
        ("medium_or_larger", "create", "size", {"title": LONG, "type": "test"}),
        ("medium_or_larger", "create", "size", {"title": LONG, "tracker": {**LINEAR, "identity": "p"}}),
        ("medium_or_larger", "create", "size", {"title": LONG, "tracker": {**LINEAR, "default_promotion": "often"}}),
        ("medium_or_larger", "create", "size", {"title": LONG, "tracker": "linear:linear-server"}),
    ],
)  # fmt: skip
def test_it_is_promoted(reason: str, mode: str, precedence: str, given: dict) -> None:
    decision = decide(work(**given))
    assert (decision["promote"], decision["reason"]) == (True, reason)
    assert (decision["mode"], decision["precedence"]) == (mode, precedence)
    assert (decision["identity"], decision["provider"]) == ("p", "linear")
    assert ("identifier" in decision) == (mode == "link")


def test_a_part_shares_its_parents_entry() -> None:
    decision = decide(work(parent=Parent(True, ENTRY)))
    assert (decision["identifier"], decision["existing_binding"]) == ("ENG-7", ENTRY)


@pytest.mark.parametrize(
    ("tracker", "provider"),
    [
        ({"provider": "jira"}, "jira"),
        ({"provider": " linear "}, "linear"),
        ("linear", "linear"),
        ("github:gh-server", "github"),
        ("", ""),
        (None, ""),
        ([], ""),
        ({"provider": 3}, ""),
        ({"provider": "a/b"}, ""),
        (":server", ""),
    ],
)
def test_the_provider_of_a_configured_tracker(tracker: object, provider: str) -> None:
    assert provider_of(tracker) == provider

"""The decision if a dispatched task belongs in the work tracker. It depends on the given facts alone and has no effect.

The first applicable rule decides. Necessary conditions come first, then the person's word, then the task's own text,
then the repository's settings, and last the size.

  rule                     decision                        precedence
  no identity              missing_identity_label
  no tracker               no_tracker_configured
  the tracker is another's identity_mismatch
  told not to              operator_suppressed             operator
  an entry was named       explicit_identifier    link     operator
  only coordination files  synthetic_resource              task
  told to                  operator_requested     create   operator
  its text names an entry  explicit_identifier    link     task
  the parent has an entry  parent_binding_inherited link   parent
  the parent has none      parent_routine_skipped          parent
  review, other            type_not_promotable             type
  "always"                 repo_default_always    create   repository
  "explicit-only"          repo_explicit_only              repository
  large enough             medium_or_larger       create   size
  else                     trivial_inline_edit             size
"""

from __future__ import annotations

from typing import Any, NamedTuple

from swarm_hook_core.environment import is_word
from swarm_mcp.domain.lock import MUTEX_PREFIX

# A review is a step of the task that it reviews, and "other" is housekeeping: neither is work of its own.
PROMOTABLE_TYPES = ("implement", "fix", "test", "research")
LONG_TITLE, LONG_DESCRIPTION = 60, 80  # characters; above these, work is of medium size


class Parent(NamedTuple):
    """The task that a task is part of: its need of a tracker entry, and its entry."""

    tracked: bool
    entry: dict[str, Any] | None = None


class Work(NamedTuple):
    """The facts of a decision.

    identity      name of the requester's identity, may be empty
    tracker       value of the configured tracker: ``{provider, [identity, default_promotion,
                  promotable_types]}`` or the text ``provider[:server]``; None without one
    promote       the requester's word: True, False, or None for nothing
    identifier    the entry that the requester named, may be empty
    mentioned     the entry that the task's own text names, may be empty
    """

    identity: str
    tracker: object
    type: str
    title: str
    description: str = ""
    files: tuple[str, ...] = ()
    promote: bool | None = None
    identifier: str = ""
    mentioned: str = ""
    parent: Parent | None = None


def decide(work: Work) -> dict[str, Any]:
    """Return ``{promote, reason, identity, provider}``, and, as they apply, ``mode``, ``precedence``, ``identifier``,
    ``existing_binding`` (the parent's entry, shared by the task).
    """
    provider = provider_of(work.tracker)
    if isinstance(work.tracker, dict):
        settings = work.tracker
    else:
        settings = {}

    def answer(promote: bool, reason: str, precedence: str = "", **more: Any) -> dict[str, Any]:
        shown: dict[str, Any] = {"promote": promote}
        if promote:
            shown["mode"] = "link" if more.get("identifier") else "create"
        shown.update(reason=reason, identity=work.identity or None, provider=provider or None)
        if precedence:
            shown["precedence"] = precedence
        return {**shown, **more}

    def deny(reason: str, precedence: str = "") -> dict[str, Any]:
        return answer(False, reason, precedence)

    owner = settings.get("identity")
    if not work.identity:
        return deny("missing_identity_label")
    if not provider:
        return deny("no_tracker_configured")
    if isinstance(owner, str) and owner.removeprefix("identity:") not in ("", work.identity):
        return deny("identity_mismatch")
    if work.promote is False:
        return deny("operator_suppressed", "operator")
    if work.identifier:
        return answer(True, "explicit_identifier", "operator", identifier=work.identifier)
    if work.files and all(path.startswith(MUTEX_PREFIX) for path in work.files):
        return deny("synthetic_resource", "task")
    if work.promote:
        return answer(True, "operator_requested", "operator")
    if work.mentioned:
        return answer(True, "explicit_identifier", "task", identifier=work.mentioned)
    if work.parent and work.parent.entry:
        entry = work.parent.entry
        return answer(
            True, "parent_binding_inherited", "parent", identifier=entry["identifier"], existing_binding=entry
        )
    if work.parent and not work.parent.tracked:
        return deny("parent_routine_skipped", "parent")
    types = settings.get("promotable_types")
    if work.type not in (types if isinstance(types, list) else PROMOTABLE_TYPES):
        return deny("type_not_promotable", "type")
    default = settings.get("default_promotion")
    if default == "always":
        return answer(True, "repo_default_always", "repository")
    if default == "explicit-only":
        return deny("repo_explicit_only", "repository")
    large = len(work.files) > 1 or len(work.description) > LONG_DESCRIPTION or len(work.title) > LONG_TITLE
    if large:
        return answer(True, "medium_or_larger", "size")
    return deny("trivial_inline_edit", "size")


def provider_of(tracker: object) -> str:
    """Return the provider's name in a configured tracker's value; empty if it names no usable one."""
    if isinstance(tracker, dict):
        tracker = tracker.get("provider")
    if isinstance(tracker, str):
        name = tracker.partition(":")[0].strip()
    else:
        name = ""
    if is_word(name):
        return name
    return ""

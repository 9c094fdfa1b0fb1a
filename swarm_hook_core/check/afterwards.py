"""The consequences of a verdict, in order: `AFTERWARDS`.

Each is a function from a Check and its Verdict. They put merged texts into the call's input, count a denial, drop the
plan and the taken files of a denied call, begin watches, and add words for the model. The order matters:

- Merges are told before `count`, which weighs all notices.
- `count` may replace a denial's reason by a shorter one, so it comes before words are added to that.
- `shorten` comes last: it cuts the whole reason, with the news behind it.
"""

from swarm_hook_core.check import Check
from swarm_hook_core.hooks import Verdict, joined
from swarm_hook_core.labels import token
from swarm_hook_core.traces.versions.locked import Kept
from swarm_hook_core.watching import edits, watch


def count(check: "Check", verdict: Verdict) -> None:
    """Count a denial. The third of one file within minutes is said in fewer words, and the holder is told.

    A notice is recorded once in a while.
    """
    if verdict.denial is None and not verdict.noted:
        return
    from swarm_hook_core import storms

    try:
        if verdict.denial is None:
            for notice in verdict.noted:
                storms.weigh_notice(notice, check.session, check.now)
            return
        storms.weigh(verdict.denial, check.session, check.call, check.peers, check.now)
    except Exception as error:  # it is denied, though not counted
        check.core.record_fault("pre_tool_use", error)


def drop_plan(check: "Check", verdict: Verdict) -> None:
    """Drop the kernel's plan for a denied call."""
    if verdict.denial is None or verdict.plan is None or check.is_part:
        return
    from swarm_hook_core.kernel import planning, plans

    plans.drop(check.call.session_id, planning.name_of_call(check.config, check.call))
    verdict.plan, verdict.entry = None, ""


def give_back(check: "Check", verdict: Verdict) -> None:
    """Take back that a denied call has taken files for its turn."""
    if verdict.denial is not None and check.turn_files is not None:
        check.turn_files.take_back()


def merge(check: "Check", verdict: Verdict) -> None:
    """Put merged texts into the call's input, and tell its model."""
    merges = check.merges
    if verdict.denial is not None or not merges:
        return
    from swarm_hook_core.traces import merged_writes

    verdict.input = merged_writes.input_with(check.config, check.call, merges.values())
    words = merged_writes.words(merges, token(check.session.label, "identity"))
    verdict.notice = joined(words, verdict.notice)
    verdict.noted += merged_writes.notices(merges, words)


def watch_command(check: "Check", verdict: Verdict) -> None:
    """Have locked files compared after a command that may write them unseen."""
    if verdict.denial is not None or not verdict.watched or check.is_part:
        return

    watch.begin(check.config, check.call, verdict.watched, check.now, _kept)


def watch_edit(check: "Check", verdict: Verdict) -> None:
    """Have locked files around an edit compared at the next hook: another plugin may run a formatter after it."""
    if verdict.denial is not None or not check.writes.has_names or check.is_part or not check.meets_locks():
        return

    core = check.core
    breaches = edits.begin(check.config, check.call, check.writes.paths, check.session, check.peers, _kept)
    if breaches:
        words = watch.report(check.config, check.call, breaches, core.registrar.command, core.driver)
        verdict.notice = joined(words, verdict.notice)


def _kept() -> "Kept":
    """Open the store of contents of locked files."""
    return Kept()


def tell_news(check: "Check", verdict: Verdict) -> None:
    """Tell the session of its locks and its mail; renew its leases if it is time."""
    if not check.session.instance_id:
        return
    words = joined(_news_of_locks(check), check.core.mail_for(check.call, check.glance, check.session))
    if words and verdict.denial is not None:
        verdict.denial.reason += "\n" + words  # a client that is denied a call is told nothing else
    elif words:
        verdict.notice = joined(words, verdict.notice)


def shorten(check: "Check", verdict: Verdict) -> None:
    """Say a denial in few words to a client that has no room for more."""
    if verdict.denial is not None:
        check.core.shorten(verdict.denial, check.call, check.session)


def _news_of_locks(check: "Check") -> str:
    call = check.call
    try:
        leases, has_news = check.glance.leases_and_news(check.session.instance_id)
        if not leases and not has_news:
            return ""
        from swarm_hook_core import lease_renewal

        return lease_renewal.renew(check.config, call.session_id, leases, has_news, check.core.coordinator)
    except Exception as error:  # the next call renews them
        check.core.record_fault("pre_tool_use", error)
        return ""


AFTERWARDS = (merge, count, drop_plan, give_back, watch_command, watch_edit, tell_news, shorten)

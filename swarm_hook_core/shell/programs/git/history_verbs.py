"""merge, rebase, cherry-pick, revert, pull, am, bisect: they bring other commits into the work tree."""

from __future__ import annotations

from swarm_hook_core.git_repository import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.programs.git.touched_files import Question


UPSTREAM = "@{upstream}"
_PICKS = frozenset("pick p revert edit e reword r squash s fixup f".split())  # verbs in a list of commits to do


def merge(question: Question) -> None:
    """``merge``: files that the other side changed since the fork, and that differ from ours."""
    options = question.options
    if _goes_on(question, "", ""):
        return
    _autostash(question, "merge")
    if options.value("-s", "--strategy") != "ours":
        for head in options.operands or [UPSTREAM]:
            _merge(question, head)


def _merge(question: Question, head: str) -> None:
    theirs = question.known(head)
    changed = question.repository.since_fork("HEAD", theirs, question.locked)
    if changed:
        question.hit(set(changed) & set(question.repository.differing("HEAD", theirs, question.locked)))


def rebase(question: Question) -> None:
    """``rebase``: first all files that differ from the new base, then the files of its own commits."""
    options = question.options
    if options.has("--edit-todo"):
        question.cannot_tell()
    elif not _goes_on(question, "rebase-merge/orig-head", "rebase-merge/git-rebase-todo"):
        root = options.has("--root")
        _autostash(question, "rebase")
        _rebase(question, [""] * root + options.operands, root)


def _rebase(question: Question, operands: list[str], root: bool) -> None:
    options = question.options
    upstream = ""
    if not root:
        upstream = question.known(next(iter(operands), UPSTREAM))
    onto = ""
    if options.value("--onto") or upstream:
        onto = question.known(options.value("--onto") or upstream)
    tip = "HEAD"
    if len(operands) > 1:
        tip = question.known(operands[1])
    if not onto:
        question.maybe(question.repository.tracked(question.locked))
        return
    if options.has("--keep-base"):
        question.maybe(question.repository.since_fork(upstream, tip, question.locked))
        return
    ours = set(question.repository.differing("HEAD", onto, question.locked))
    own = ours
    if tip != "HEAD":
        own = set(question.repository.since_fork(upstream, tip, question.locked))
    if ours or own:
        anew = options.has("--onto", "--force-rebase", "--no-ff") or (
            options.has("-f") and question.words[0] == "rebase"
        )
        if anew or not question.repository.is_ancestor(onto, tip):
            question.hit(ours | own)
        elif tip != "HEAD":
            question.moves_to(tip)
        if options.has("-i", "--interactive"):
            question.maybe(own)  # commits that are picked as they are stay as they are


def pick(question: Question) -> None:
    """``cherry-pick``, ``revert``: the files of these commits."""
    options = question.options
    if not _goes_on(question, "sequencer/head", "sequencer/todo") and options.operands:
        revisions = [question.known(one) for one in options.operands]
        question.hit(question.repository.changed_in(revisions, question.locked, options.has("-m", "--mainline")))


def pull(question: Question) -> None:
    """``pull``: the commits fetched before are known; the ones it will fetch are not."""
    options = question.options
    question.cannot_tell()
    rebases = options.given.get("-r", []) + options.given.get("--rebase", [])
    if rebases:
        how = rebases[-1] or "true"
    else:
        how = question.repository.setting("pull.rebase")
    will_rebase = how not in ("", "false") and not options.has("--no-rebase")
    _autostash(question, "rebase" if will_rebase else "merge")
    remote, *refs = options.operands or [""]
    name = ""
    if refs:
        name = refs[0].partition(":")[0].lstrip("+")
    try:
        known = name
        if remote != ".":
            known = f"refs/remotes/{remote}/{name}"
        theirs = question.known(known if name else UPSTREAM)
        if will_rebase:
            _rebase(question, [theirs], False)
        else:
            _merge(question, theirs)
    except Refused:  # there is no upstream yet, and the fetched commits are unknown anyway
        return


def am(question: Question) -> None:
    """``am``: its patch is read elsewhere; here, the options that continue or give up an earlier one."""
    options = question.options
    _goes_on(question, "rebase-apply/orig-head", "")
    if options.has("-r", "--resolved"):
        question.takes(question.staged())
    if options.has("--continue", "-r", "--resolved", "--skip"):
        question.cannot_tell()


def bisect(question: Question) -> None:
    """``bisect``: to the commit halfway, as git itself finds it; `reset` goes back to where it began."""
    if "--no-checkout" in question.words:
        return
    verb, *rest = question.options.operands or [""]
    goods = "--glob=refs/bisect/good-*"
    if verb == "reset":
        if rest:
            target = rest[0]
        else:
            target = question.repository.note("BISECT_START")
        if target:
            question.moves_to(target)
    elif verb == "start" and "--" not in question.words and len(rest) != 1:
        if rest:
            _halfway(question, question.known(rest[0]), [question.known(one) for one in rest[1:]])
    elif verb in ("good", "old"):
        _halfway(question, "refs/bisect/bad", [goods, *map(question.known, rest or ["HEAD"])])
    elif verb in ("bad", "new"):
        _halfway(question, question.known(next(iter(rest), "HEAD")), [goods])
    else:
        question.cannot_tell()


def _halfway(question: Question, bad: str, goods: list[str]) -> None:
    for good in goods:
        if not good.startswith("--") and not question.repository.is_ancestor(good, bad):
            commit = question.repository.ask("merge-base", good, bad).strip()  # is tested first
            break
    else:
        output = question.repository.ask("rev-list", "--bisect-vars", bad, "--not", *goods)
        commit = output.partition("bisect_rev='")[2].partition("'")[0]
    if commit and commit != question.repository.ask("rev-parse", bad).strip():  # else it has found the one
        question.hit(question.repository.differing("HEAD", commit, question.locked))


def _goes_on(question: Question, original: str, todo: str) -> bool:
    """Return True if it continues or gives up an earlier operation, after noting the staged or conflicting files.

    `original` and `todo` are files of git's own: the commit that it goes back to, and its list of commits to do.
    """
    options = question.options
    if not options.has("--abort", "--continue", "--skip"):
        return options.has("--quit")
    gives_up = options.has("--abort", "--skip")
    if gives_up and question.words[0] == "rebase":  # the others keep unstaged changes
        question.becomes("HEAD")
    elif gives_up:
        question.loses(question.staged())
    else:
        question.takes(question.staged())
    if options.has("--abort"):
        head = ""
        if original:
            head = question.repository.note(original)
        if head:
            question.hit(question.repository.differing("HEAD", head, question.locked))
        return True
    commits = []
    for line in question.repository.note(todo).split("\n") if todo else ():
        words = line.split()
        if len(words) > 1 and words[0] in _PICKS:
            commits.append(words[2] if words[1].startswith("-") and len(words) > 2 else words[1])
    if commits:
        question.hit(question.repository.changed_in(commits, question.locked))
    return True


def _autostash(question: Question, command: str) -> None:
    """Uncommitted changes are put aside, and brought back."""
    if not question.locked or question.options.has("--no-autostash"):
        return
    if question.options.has("--autostash") or (
        question.repository.setting(f"{command}.autoStash").lower() in ("true", "yes", "on", "1")
    ):
        question.loses(question.repository.against("HEAD", question.locked))

"""merge, rebase, cherry-pick, revert, pull, am, bisect: what brings other commits into the work tree."""

from swarm_hook_core.shell.git.repository import Refused

UPSTREAM = "@{upstream}"
_PICKS = frozenset("pick p revert edit e reword r squash s fixup f".split())  # in a list of what is to be done


def merge(q) -> None:
    """``merge``: what the other side changed since they parted, and has otherwise than we."""
    o = q.options
    if o.has("--abort"):
        _back(q)
    elif o.has("--continue"):
        q.hit(q.repository.staged(q.locked))
    elif not o.has("--quit"):
        if o.value("-s", "--strategy") != "ours":
            for head in o.operands or [UPSTREAM]:
                _merge(q, head)
        _autostash(q, "merge")


def _merge(q, head: str) -> None:
    theirs = q.known(head)
    changed = q.repository.since_fork("HEAD", theirs, q.locked)
    if changed:
        q.hit(set(changed) & set(q.repository.differing("HEAD", theirs, q.locked)))


def rebase(q) -> None:
    """``rebase``: first all that differs from the new base, then what its own commits change."""
    o = q.options
    if o.has("--abort"):
        _to_original(q, "rebase-merge")
        _back(q)
    elif o.has("--continue", "--skip"):
        if o.has("--continue"):
            q.hit(q.repository.staged(q.locked))
        _remaining(q, "rebase-merge/git-rebase-todo")
        if o.has("--skip"):
            _back(q)
    elif o.has("--edit-todo"):
        q.cannot_tell()
    elif not o.has("--quit"):
        root = o.has("--root")
        operands = ["", *o.operands] if root else o.operands
        _rebase(q, operands, root)


def _rebase(q, operands, root: bool) -> None:
    o = q.options
    upstream = "" if root else q.known(operands[0] if operands else UPSTREAM)
    onto = q.known(o.value("--onto") or upstream) if o.value("--onto") or upstream else ""
    tip = q.known(operands[1]) if len(operands) > 1 else "HEAD"
    if not onto:
        q.maybe(q.repository.tracked(q.locked))
        return
    if o.has("--keep-base"):
        q.maybe(q.repository.since_fork(upstream, tip, q.locked))
        return
    ours = set(q.repository.differing("HEAD", onto, q.locked))
    own = ours if tip == "HEAD" else set(q.repository.since_fork(upstream, tip, q.locked))
    if ours or own:
        anew = o.has("--onto", "--force-rebase", "--no-ff") or (o.has("-f") and q.words[0] == "rebase")
        if anew or not q.repository.is_ancestor(onto, tip):
            q.hit(ours | own)
        elif tip != "HEAD":
            q.hit(q.repository.differing("HEAD", tip, q.locked))
        if o.has("-i", "--interactive"):
            q.maybe(own)  # commits that are picked as they are stay as they are
    if o.has("--autostash"):
        q.hit(q.repository.against("HEAD", q.locked))
    else:
        _autostash(q, "rebase")


def pick(q) -> None:
    """``cherry-pick``, ``revert``: the files of these commits."""
    o = q.options
    if o.has("--abort", "--skip"):
        _back(q)
    if o.has("--continue", "--skip"):
        if o.has("--continue"):
            q.hit(q.repository.staged(q.locked))
        _remaining(q, "sequencer/todo")
    elif o.has("--abort"):
        head = q.repository.note("sequencer/head")
        if head:
            q.hit(q.repository.differing("HEAD", head, q.locked))
    elif o.operands and not o.has("--quit"):
        revisions = [q.known(one) for one in o.operands]
        q.hit(q.repository.changed_in(revisions, q.locked, o.has("-m", "--mainline")))


def pull(q) -> None:
    """``pull``: what was fetched before is known; what the fetch will bring is not."""
    o = q.options
    q.cannot_tell()
    remote, *refs = o.operands or [""]
    name = refs[0].partition(":")[0].lstrip("+") if refs else ""
    try:
        known = name if remote == "." else f"refs/remotes/{remote}/{name}"
        theirs = q.known(known if name else UPSTREAM)
        rebases = o.given.get("-r", []) + o.given.get("--rebase", [])
        how = (rebases[-1] or "true") if rebases else q.repository.setting("pull.rebase")
        if how and how != "false" and not o.has("--no-rebase"):
            _rebase(q, [theirs], False)
        else:
            _merge(q, theirs)
            if o.has("--autostash"):
                q.hit(q.repository.against("HEAD", q.locked))
    except Refused:
        return


def am(q) -> None:
    """``am``: its patch is read elsewhere; here, what goes on with one or gives it up."""
    o = q.options
    if o.has("--abort", "--skip"):
        if o.has("--abort"):
            _to_original(q, "rebase-apply")
        _back(q)
    if o.has("--continue", "-r", "--resolved"):
        q.hit(q.repository.staged(q.locked))
    if o.has("--continue", "-r", "--resolved", "--skip"):
        q.cannot_tell()


def bisect(q) -> None:
    """``bisect``: to the commit halfway, as git itself finds it; `reset` goes back to where it began."""
    if "--no-checkout" in q.words:
        return
    verb, *rest = q.options.operands or [""]
    goods = "--glob=refs/bisect/good-*"
    if verb == "reset":
        target = rest[0] if rest else q.repository.note("BISECT_START")
        if target:
            q.hit(q.repository.differing("HEAD", q.known(target), q.locked))
    elif verb == "start" and "--" not in q.words and len(rest) != 1:
        if rest:
            _halfway(q, q.known(rest[0]), [q.known(one) for one in rest[1:]])
    elif verb in ("good", "old"):
        _halfway(q, "refs/bisect/bad", [goods, *map(q.known, rest or ["HEAD"])])
    elif verb in ("bad", "new"):
        _halfway(q, q.known(rest[0] if rest else "HEAD"), [goods])
    else:
        q.cannot_tell()


def _halfway(q, bad: str, goods) -> None:
    for good in goods:
        if not good.startswith("--") and not q.repository.is_ancestor(good, bad):
            commit = q.repository.ask("merge-base", good, bad).strip()  # is tested first
            break
    else:
        told = q.repository.ask("rev-list", "--bisect-vars", bad, "--not", *goods)
        commit = told.partition("bisect_rev='")[2].partition("'")[0]
    if commit and commit != q.repository.ask("rev-parse", bad).strip():  # else it has found the one
        q.hit(q.repository.differing("HEAD", commit, q.locked))


def _back(q) -> None:
    """To HEAD, as a merge that is given up: what is staged or in conflict."""
    q.hit(q.repository.staged(q.locked))


def _to_original(q, folder: str) -> None:
    head = q.repository.note(f"{folder}/orig-head")
    if head:
        q.hit(q.repository.differing("HEAD", head, q.locked))


def _remaining(q, todo: str) -> None:
    """The commits that a rebase or a series of picks has still to do."""
    commits = []
    for line in q.repository.note(todo).split("\n"):
        words = line.split()
        if len(words) > 1 and words[0] in _PICKS:
            commits.append(words[2] if words[1].startswith("-") and len(words) > 2 else words[1])
    if commits:
        q.hit(q.repository.changed_in(commits, q.locked))


def _autostash(q, command: str) -> None:
    if q.options.has("--no-autostash"):
        return
    if q.options.has("--autostash") or (
        q.locked and q.repository.setting(f"{command}.autoStash").lower() in ("true", "yes", "on", "1")
    ):
        q.hit(q.repository.against("HEAD", q.locked))

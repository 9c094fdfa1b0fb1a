"""What of a script's text tells whether the model gets to see what a command prints.

Only the words of a command as they are written count here: it is asked of each pipe and chain, and costs nothing.
"""

from swarm_hook_core.shell import syntax

# What comes in at one end of a pipe comes out at the other, or a part of it.
_PASS_ON = frozenset(
    "head tail cat nl less more sed grep egrep fgrep rg awk sort uniq cut tr tac tee column fold fmt expand jq bat"
    " batcat".split()
)
_SEARCH = frozenset("grep egrep fgrep rg".split())
_TELL_NO_TEXT = frozenset("-q -c -l -L --quiet --count --files-with-matches --files-without-match".split())
# What fails only where a file is missing, so that what stands behind it and `&&` is reached.
_RARELY_FAIL = _PASS_ON - _SEARCH - {"jq"} | frozenset("echo printf pwd ls cd wc date true : set export mkdir".split())
_GIT_LOOKS = frozenset("diff show log status blame".split())


def shown_parts(parts) -> list:
    """Of each part of a pipe: whether what it prints comes out at the end, or a part of it."""
    shown = [True] * len(parts)
    for at in range(len(parts) - 1, 0, -1):
        shown[at - 1] = shown[at] and _passes_on(parts[at])
    return shown


def _passes_on(part) -> bool:
    if not isinstance(part, syntax.Command) or not part.words or part.words[0].raw not in _PASS_ON:
        return False
    if any(one.operator[0] in ">&" and one.fd in ("", "1") and one.word.raw != "2" for one in part.redirects):
        return False
    return part.words[0].raw not in _SEARCH or not any(word.raw in _TELL_NO_TEXT for word in part.words)


def rarely_fails(node) -> bool:
    """Whether what stands behind this statement and `&&` is reached nearly always."""
    if isinstance(node, syntax.Pipeline):
        node = node.parts[-1]
    if not isinstance(node, syntax.Command):
        return False
    if not node.words:
        return True
    name = node.words[0].raw
    return name in _RARELY_FAIL or (name == "git" and len(node.words) > 1 and node.words[1].raw in _GIT_LOOKS)

"""patch: the files that a diff names, as GNU patch chooses them; apply_patch: those that its envelopes name."""

import os

from swarm_hook_core.shell.diffs import MOST_TARGETS, targets
from swarm_hook_core.shell.model import absolute, is_known, text_of
from swarm_hook_core.shell.options import split

ENVELOPE = "*** Begin Patch"
_LONG = (
    "--strip --input --output --directory --fuzz --ifdef --prefix --basename-prefix --suffix --reject-file --get"
    " --version-control --quoting-style --read-only --reject-format"
).split()


def _patch(call) -> None:
    options = split(call.words, "pioDdFBYzrgVx", _LONG)
    if options.has("--dry-run", "-C", "--check", "-v", "--version", "--help"):
        return
    folder = call.folder
    inside = options.value("-d", "--directory")
    if inside:
        folder = absolute(folder, inside)
    operands = options.operands
    written = options.value("-o", "--output") or (operands[0] if operands else None)
    if written is not None:
        if written != "-":
            _write(call, folder, written)
        if operands and not options.value("-o", "--output"):
            _back_up(call, folder, options, written)
        return
    source = options.value("-i", "--input")
    stream = call.walk.files.text_of(source, folder) if source and source != "-" else call.stdin
    text = stream.text if stream else None
    if text is None:
        call.guess("a diff that cannot be read yet", inside)
        return
    strip = options.value("-p", "--strip")
    named = targets(text, folder, int(strip) if strip and strip.isdigit() else None, options.has("-R", "--reverse"))
    if len(named) >= MOST_TARGETS:
        call.guess("a diff of more files than are looked at", inside)
    for name in named:
        _write(call, folder, name)
        _back_up(call, folder, options, name)


def _write(call, folder, name: str) -> None:
    call.write(name if folder == call.folder or folder is None else os.path.join(folder, name))


def _back_up(call, folder, options, name: str) -> None:
    suffix, prefix = options.value("-z", "--suffix"), options.value("-B", "--prefix")
    if prefix:
        _write(call, folder, prefix + name)
    elif suffix or options.has("-b", "--backup"):
        _write(call, folder, name + (suffix or ".orig"))


def _apply_patch(call) -> None:
    """Codex's apply_patch: the patch is its argument or, without one, its standard input."""
    from swarm_hook_core.patch import PatchUnreadable, patch_paths

    texts = [word for word in call.words if ENVELOPE in word]
    if not texts:
        text = None if any(not is_known(word) for word in call.words) else text_of(call.stdin)
        texts = [] if text is None else [text]
    unread = not texts
    for text in texts:
        # `echo` and `printf` of some shells make line ends of these.
        text = text.replace("\\n", "\n") if ENVELOPE + "\\n" in text else text
        try:
            paths = patch_paths(text)
        except PatchUnreadable:
            paths = []
        unread = unread or not paths or not is_known(text)
        for path in paths:
            call.write(path)
    if unread:
        call.guess("a patch that cannot be read yet")


def _codex(call) -> None:
    if call.words[:1] == ["--codex-run-as-apply-patch"]:
        _apply_patch(call)
    else:
        call.guess("codex is not known")


RUN = {"patch": _patch, "gpatch": _patch, "apply_patch": _apply_patch, "applypatch": _apply_patch, "codex": _codex}

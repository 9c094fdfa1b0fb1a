"""A person's permission rules for commands mean the same with and without the kernel, in both clients.

A release of Codex that fails here must not be in `kernel_versions` (integrations/codex/runtime.py).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from .checks import assert_text, assert_untouched
from .client import Client
from .clients import ClaudeCode
from .kernel_work import FIX, ON, fill

KINDS = ("allow", "ask", "deny")
CODEX_WORDS = {"allow": "allow", "ask": "prompt", "deny": "forbidden"}


def commands(kind: str) -> dict[str, str]:
    """Return the commands of four rules of one kind, by the text of Claude Code's rule."""
    return {
        f"python3 {kind}.py": f"python3 {kind}.py",
        f"python3 {kind}_more.py:*": f"python3 {kind}_more.py --all",
        f"make -s {kind}": f"make -s {kind}",
        f"npm run --silent {kind}:*": f"npm run --silent {kind}",
    }


def calls() -> list[str]:
    """Return the commands of the twelve rules, one without a rule, and forbidden ones in company."""
    ruled = [command for kind in KINDS for command in commands(kind).values()]
    return [*ruled, "python3 none.py", "echo one; python3 deny.py", "cd sub && cd .. && python3 deny_more.py --all"]


def fill_rules(client: Client) -> None:
    """Write programs that report their progress, and if they could write outside the checkout."""
    ground, checkout = client.ground, client.ground.checkout
    fill(ground, "notes.md", str(ground.home / "outside"))
    for name in (*KINDS, *(f"{kind}_more" for kind in KINDS), "none"):
        (checkout / f"{name}.py").write_text(FIX + "print('it ran')\n")
    (checkout / "Makefile").write_text("".join(f"{kind}:\n\t@python3 {kind}.py\n" for kind in KINDS))
    scripts = {kind: f"python3 {kind}.py" for kind in KINDS}
    (checkout / "package.json").write_text(json.dumps({"name": "x", "scripts": scripts}))


@contextmanager
def rules_of(client: Client) -> Iterator[tuple[str, ...]]:
    """Put the twelve rules in force. Yields the client's options for that."""
    if isinstance(client, ClaudeCode):
        client._permissions = ("--permission-mode", "default", "--allowed-tools", client._server)
        rules = {kind: [f"Bash({rule})" for rule in commands(kind)] for kind in KINDS}
        yield ("--settings", json.dumps({"permissions": rules}))
        return
    file = client.ground.home / ".codex" / "rules" / "default.rules"
    file.parent.mkdir(exist_ok=True)
    patterns = [(command.split(), CODEX_WORDS[kind]) for kind in KINDS for command in commands(kind).values()]
    file.write_text(
        "".join(f'prefix_rule(pattern={json.dumps(words)}, decision="{word}")\n' for words, word in patterns)
    )
    try:
        yield ()
    finally:
        file.unlink()


def outcomes(client: Client, script: str, env: dict[str, str], *extra: str) -> dict[str, str]:
    """Return the outcome of each command: `refused`, `ran`, and `ran beyond` for a write outside the checkout."""
    client.run(script, *map(client.shell, calls()), env=env, extra=extra)
    found = {}
    for command, text in zip(calls(), client.results(script), strict=True):
        is_beyond = "it ran" in text and str(client.ground.home / "outside") not in text
        found[command] = "ran beyond" if is_beyond else "ran" if "it ran" in text else "refused"
    return found


@pytest.mark.promise("the kernel's way in weakens no permission rule")
@pytest.mark.ways("install")
def test_twelve_rules(client: Client) -> None:
    fill_rules(client)
    client.ground.coordinator.peer_lock("notes.md")
    is_claude = isinstance(client, ClaudeCode)
    # Codex lets allowed commands out of its sandbox.
    sandbox = () if is_claude else ("-s", "workspace-write")
    expected = dict.fromkeys(calls(), "refused")
    expected.update(dict.fromkeys(commands("allow").values(), "ran beyond"))
    if not is_claude:
        expected["python3 none.py"] = "ran"
    with rules_of(client) as extra:
        assert outcomes(client, "with", ON, *extra, *sandbox) == expected
        if is_claude:
            assert_untouched(client, "notes.md")
        else:
            assert outcomes(client, "unbound", ON, *extra) == {**expected, "python3 none.py": "ran beyond"}
            assert "Read-only file system: 'notes.md'" in client.results("unbound")[len(KINDS) * 4]
        assert outcomes(client, "without", {}, *extra, *sandbox) == expected
    assert_text(client, "notes.md", "spoilt\n")

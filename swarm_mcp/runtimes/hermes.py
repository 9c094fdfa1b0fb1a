"""Hermes Agent: a plugin is a folder in ``~/.hermes/plugins``. Ours is a link, so upgrading the bundle upgrades it.

Its ``config.yaml`` names the enabled plugin, the server and the folder of skills. Commands of Hermes would write that
file anew without its comments, so it is edited as text.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes.base import PLUGIN, Finding, InPlace, Steps, as_failure, leads_to, put_link, says, take_link
from swarm_mcp.runtimes.bundle import LAUNCHER
from swarm_mcp.runtimes.client_settings import NAME, NAMES, in_bundle
from swarm_mcp.runtimes.installed import YES, Coverage, Installed, Verified
from swarm_mcp.runtimes.json_editor import object_of
from swarm_mcp.runtimes.users_file import delete, object_in, read_text, write_whole

_MARK = "  # swarm-mcp"
_WAS_EMPTY = "#swarm-mcp{}#"  # in place of the `{}` of a section that had nothing in it
_COMMENT = re.compile(r"(^|\s)#.*$", re.DOTALL)
_LIST = re.compile(r"(\s*[\w\"'-]+\s*:\s*)\[([^\[\]{}#]*)\](.*)", re.DOTALL)


class YamlText:
    """The text of a user's YAML settings, with entries of ours: every other byte stays as it is.

    It is edited as text, because YAML libraries write it anew (decision 0012). Only its two upper levels are touched,
    in the usual spelling: a section in the first column, and below it keys with a list or a value. Any other spelling
    is refused, never guessed at. A mark on lines of ours finds them again. Methods change the text, and raise
    SwarmError if it cannot be edited so.
    """

    def __init__(self, text: str):
        self._lines = text.splitlines(keepends=True)
        if "\r\n" in text:
            self._end = "\r\n"
        else:
            self._end = "\n"
        counting = [line for line in self._lines if _counts(line)]
        if any(line[0] in "{[&*!|>\t%" or line.startswith(("...", "- ")) for line in counting) or any(
            line.startswith("---") for line in counting[1:]
        ):
            raise SwarmError("it is not written as settings mostly are")

    @property
    def text(self) -> str:
        """The text as it is now."""
        return "".join(self._lines)

    def put_item(self, section: str, key: str, item: str) -> None:
        """Add `item` to the list at `key` of `section`, where it is not in it."""
        if re.fullmatch(r"[\w./+@~ -]+", item):
            spelled = item
        else:
            spelled = json.dumps(item, ensure_ascii=False)
        at = self._made(section, key, f"[{spelled}]")
        if at is None:
            return
        flow = _LIST.fullmatch(self._lines[at])
        if flow:
            before, inner, after = flow.groups()
            if item not in map(_plain, inner.split(",")):
                self._lines[at] = f"{before}[{spelled}{', ' if inner.strip() else ''}{inner}]{after}"
            return
        listed = self._items(at)
        if item not in (self._item(line) for line in listed):
            if listed:
                indent = _indent(self._lines[listed[0]])
            else:
                indent = _indent(self._lines[at]) + 2
            self._insert(at + 1, f"{' ' * indent}- {spelled}{_MARK}")

    def put_member(self, section: str, key: str, value: dict[str, Any]) -> None:
        """Give `key` of `section` this value, if it has none."""
        self._made(section, key, json.dumps(value, ensure_ascii=False))

    def has(self, section: str, key: str) -> bool:
        """Return True if `section` has a member `key`."""
        return self._key(section, key) is not None

    def take_item(self, section: str, key: str, item: str) -> None:
        """Take `item` out of that list, and the list where we have made it."""
        at = self._key(section, key)
        flow = None
        if at is not None:
            flow = _LIST.fullmatch(self._lines[at])
        if at is None:
            return
        if flow:
            before, inner, after = flow.groups()
            named = rf"""["']?{re.escape(item)}["']?"""
            left = re.sub(rf"^{named}(, |(?=\s*$))|,\s*{named}(?=\s*(,|$))", "", inner, count=1)
            self._lines[at] = f"{before}[{left}]{after}"
            if not left.strip() and _is_marked(after):
                self._remove(section, at, at + 1)
            elif _is_marked(after):  # the list belongs to the user now
                self._leave(at)
                self._leave(self._section(section))
            return
        listed = self._items(at)
        for line in [line for line in listed if self._item(line) == item][:1]:
            is_ours = _is_marked(self._lines[line])
            self._remove("", line, line + 1)
            if len(listed) == 1 and not is_ours:  # the user has written it anew, and meant a list
                self._lines[at] = re.sub(r":(?=\s)", ": []", self._lines[at], count=1)

    def take_member(self, section: str, key: str, command: str) -> None:
        """Take `key` out of `section` where it is ours: its line has our mark, or one below it names our `command`."""
        at = self._key(section, key)
        if at is None:
            return
        ends = at + 1
        for line in self._below(at):
            if _indent(self._lines[line]) <= _indent(self._lines[at]):
                break
            ends = line + 1
        if _is_marked(self._lines[at]) or command in "".join(self._lines[at:ends]):
            self._remove(section, at, ends)

    # -- innards --

    def _made(self, section: str, key: str, value: str) -> int | None:
        """Return the line of `key`. None if it was missing: it has been made with `value` now."""
        start = self._section(section)
        if start is None:
            self._insert(len(self._lines), f"{section}:{_MARK}")
            self._insert(len(self._lines), f"  {key}: {value}{_MARK}")
            return None
        at = self._key(section, key)
        if at is None:
            if _value(self._lines[start]) == "{}":
                self._lines[start] = self._lines[start].replace("{}", _WAS_EMPTY, 1)
            indent = next((_indent(self._lines[line]) for line in self._below(start)), 2)
            self._insert(start + 1, f"{' ' * indent}{key}: {value}{_MARK}")
        return at

    def _section(self, section: str) -> int | None:
        """The line that begins `section`, the last of that name."""
        found = [at for at, line in enumerate(self._lines) if _names(line, section)]
        if found and _value(self._lines[found[-1]]) not in ("", "{}"):
            raise SwarmError(f"{section!r} is written in one line")
        if found:
            return found[-1]
        return None

    def _key(self, section: str, key: str) -> int | None:
        """The line of `key` in `section`."""
        start = self._section(section)
        children = []
        if start is not None:
            children = self._below(start)
        found = [at for at in children if _indent(self._lines[at]) == _indent(self._lines[children[0]])]
        return next((at for at in reversed(found) if _names(self._lines[at].strip(), key)), None)

    def _below(self, at: int) -> list[int]:
        """The lines after line `at` that count, up to the next that stands further out, or at the outermost."""
        found = []
        for line in range(at + 1, len(self._lines)):
            if _counts(self._lines[line]):
                if not _indent(self._lines[line]) or _indent(self._lines[line]) < _indent(self._lines[at]):
                    break
                found.append(line)
        return found

    def _items(self, at: int) -> list[int]:
        """The lines that begin the items of the list at line `at`."""
        if _value(self._lines[at]):
            raise SwarmError(f"the list {self._lines[at].strip()!r} is written in a way that is not understood")
        found: list[int] = []
        for line in self._below(at):
            deeper = _indent(self._lines[line]) - _indent(self._lines[at])
            is_item = self._lines[line].lstrip().startswith("- ")
            if not (is_item or deeper > 0):
                break  # the next key
            if is_item and (not found or _indent(self._lines[line]) == _indent(self._lines[found[0]])):
                found.append(line)
        return found

    def _item(self, line: int) -> str:
        return _plain(self._lines[line].strip()[2:])

    def _insert(self, at: int, line: str) -> None:
        """Insert a line. If the last line had no line end, the new last line has none either."""
        if at and not self._lines[at - 1].endswith("\n"):
            self._lines[at - 1] += self._end
            self._lines.insert(at, line)
        else:
            self._lines.insert(at, line + self._end)

    def _remove(self, section: str, start: int, ends: int) -> None:
        """Remove lines. If their `section` is empty then, also undo our changes to it."""
        at = None
        if section:
            at = self._section(section)
        has_end = self._lines[ends - 1].endswith("\n")
        del self._lines[start:ends]
        if at is not None and self._below(at):
            self._leave(at)
        elif at is not None and _is_marked(self._lines[at]):
            del self._lines[at]
        elif at is not None:
            self._lines[at] = self._lines[at].replace(_WAS_EMPTY, "{}", 1)
        if not has_end and self._lines:
            self._lines[-1] = self._lines[-1].rstrip("\r\n")

    def _leave(self, at: int | None) -> None:
        """Take our mark off a line that is needed without us."""
        if at is not None:
            self._lines[at] = self._lines[at].replace(_MARK, "", 1).replace(f" {_WAS_EMPTY}", "", 1)


def _counts(line: str) -> bool:
    """Return True if a line is neither blank nor a comment."""
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _is_marked(line: str) -> bool:
    return line.rstrip().endswith(_MARK.strip())


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _names(line: str, key: str) -> bool:
    """Return True if the line begins with the key `key`."""
    return re.match(rf"""(["']?){re.escape(key)}\1\s*:(\s|$)""", line) is not None


def _value(line: str) -> str:
    """Return the text behind the key of a line."""
    return _plain(line.partition(":")[2])


def _plain(text: str) -> str:
    """A value without the comment behind it and the quotes around it."""
    return _COMMENT.sub("", text).strip().strip("'\"")


FOLDER = "integrations/hermes"


class Hermes(InPlace):
    """The ``hermes`` command."""

    name = executable = harness = "hermes"
    title = "Hermes"
    oldest = "0.17.0"
    needed = f"{FOLDER}/__init__.py"
    shell_tool = "terminal"
    has_subagents = True
    coverage = Coverage(
        edits=YES, patches=YES, shell=YES, other_tools=YES, subagents=YES, told_before=YES, told_after=YES, ends=YES,
        verified=Verified("0.19.0", "2026-11-29"),
    )  # fmt: skip
    session_variables = ("HERMES_SESSION_*", "TERMINAL_CWD")

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        link, wanted = self._link(), marketplace / FOLDER
        if os.path.lexists(link) and not link.is_symlink():
            raise ClientFailed(f"{link} is a plugin of another owner")
        if leads_to(link, FOLDER) != marketplace:
            put_link(link, wanted, steps)
        servers = object_in(wanted / "mcp.json").get("mcpServers")
        name = in_bundle(marketplace).get(self.name, NAME)
        entry = object_of(servers).get(name)
        if not isinstance(entry, dict):
            raise ClientFailed(f"{wanted}/mcp.json cannot be understood")
        settings = _Settings()
        before = settings.text
        settings.take(marketplace)
        settings.put(marketplace, name, {**entry, "command": str(marketplace / LAUNCHER), "args": ["serve"]})
        if settings.text != before:
            with steps.step(f"entering the plugin into {settings.path}", f"entered the plugin into {settings.path}"):
                settings.write()
                if not self._is_enabled():
                    settings.text = before
                    settings.write()
                    raise ClientFailed(f"Hermes does not list the plugin as enabled; {settings.path} is as it was")
        return self.installed_at(marketplace)

    def uninstall(self, steps: Steps) -> None:
        link, settings = self._link(), _Settings()
        before = settings.text
        settings.take(marketplace_folder())
        if settings.text != before:
            with steps.step(f"taking the plugin out of {settings.path}", f"took the plugin out of {settings.path}"):
                settings.write()
        if self.root() is not None:
            take_link(link, steps)

    def root(self) -> Path | None:
        return leads_to(self._link(), FOLDER)

    def fault(self, root: Path) -> Finding | None:
        if self._is_enabled():
            return None
        if says(policy(), "plugins:"):
            text = f"installed but not enabled; {policy()}, which only an administrator can change, has plugins"
            return self.said("fail", text)
        return self.said("fail", "installed but not enabled", self.mend)

    def beside(self, root: Path | None) -> list[Finding]:
        """Report extras that this installation of Hermes lacks, as far as its files show."""
        try:
            with open(self.program(), "rb") as script:
                python = script.readline().decode("utf-8", "replace").strip().removeprefix("#!")
        except OSError:  # unreadable: unknown extras
            return []
        folders = []
        if "python" in python:
            folders = list(Path(python).parent.parent.glob("lib/python*/site-packages"))
        if root is None or not folders or any((folder / "mcp").is_dir() for folder in folders):
            return []
        text = "it has no support for MCP servers: its agents lock with `swarm-mcp` in the shell, not with tools"
        return [Finding("hermes tools", "info", text, f"{python} -m pip install 'hermes-agent[mcp]'")]

    def users_servers(self) -> dict[str, Path]:
        try:
            settings = _Settings()
            settings.take(marketplace_folder())
            edited = YamlText(settings.text)
        except SwarmError:  # unreadable: no name is taken
            return {}
        return {name: settings.path for name in NAMES if edited.has("mcp_servers", name)}

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "session_id": session_id, "agent_id": "", "cwd": cwd, "hook_event_name": "PreToolUse",
            "tool_name": "write_file", "tool_input": {"path": file, "content": "x"}, "tool_use_id": "call_doctor",
        }  # fmt: skip

    # ---------------------------------------------------------------- innards

    def _link(self) -> Path:
        return home() / "plugins" / PLUGIN

    def _is_enabled(self) -> bool:
        """Return True if Hermes itself says that it loads the plugin."""
        _code, listed, _text = self._call("plugins", "list", "--json", "--user")
        plugins = []
        if isinstance(listed, list):
            plugins = [one for one in listed if isinstance(one, dict)]
        return any(one.get("name") == PLUGIN and one.get("status") == "enabled" for one in plugins)


class _Settings:
    """The text of ``config.yaml``; raises ClientFailed where it cannot be read, edited or written."""

    @as_failure()
    def __init__(self) -> None:
        self.path = home() / "config.yaml"
        self.text = read_text(self.path) or ""

    def put(self, marketplace: Path, name: str, entry: dict[str, Any]) -> None:
        """Enter the plugin, the folder of skills, and the server `entry` under `name`."""
        with self._edited() as edited:
            edited.put_item("plugins", "enabled", PLUGIN)
            edited.put_item("skills", "external_dirs", str(marketplace / "skills"))
            edited.put_member("mcp_servers", name, entry)

    def take(self, marketplace: Path) -> None:
        """Take all that out again."""
        with self._edited() as edited:
            edited.take_item("plugins", "enabled", PLUGIN)
            edited.take_item("skills", "external_dirs", str(marketplace / "skills"))
            for name in NAMES:
                edited.take_member("mcp_servers", name, str(marketplace / LAUNCHER))

    @as_failure()
    def write(self) -> None:
        """Write the text; a file without any is removed."""
        if self.text:
            write_whole(self.path, self.text.encode("utf-8"))
        else:
            delete(self.path)

    @contextmanager
    def _edited(self) -> Iterator[YamlText]:
        try:
            edited = YamlText(self.text)
            yield edited
            self.text = edited.text
        except SwarmError as error:
            raise ClientFailed(f"{self.path} cannot be edited: {error}") from error


def home() -> Path:
    """Return Hermes' folder of settings and plugins. It need not exist."""
    return Path(os.path.expanduser(os.environ.get("HERMES_HOME", "").strip() or "~/.hermes"))


def policy() -> Path:
    """Return the file of the machine's policy, which goes before the user's settings. It need not exist."""
    return Path(os.environ.get("HERMES_MANAGED_DIR", "").strip() or "/etc/hermes") / "config.yaml"

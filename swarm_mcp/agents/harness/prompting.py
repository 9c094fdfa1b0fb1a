"""A worker's instructions: the prompt for its task, commands in it, its environment, its system prompt.

A template has ``{{path.to.value}}`` in it, to be replaced by the value's text; an unknown path is left out. Inserted
values are not expanded again, so a task cannot reach another value by naming it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from swarm_hook_core.environment import is_word
from swarm_hook_core.naming import holder_name
from swarm_hook_core.untrusted_text import named, quoted, safe
from swarm_mcp.agents.harness.adapter import CommandPlace, HarnessAdapter
from swarm_mcp.agents.harness.environment import FILE, described, skill_folders, swarm_variables
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.errors import Refused
from swarm_mcp.folders import names_in

SECTION_LIMIT = 20_000  # characters of one section of the system prompt
TOTAL_LIMIT = 150_000
INTERRUPTED, HAS_FAILED, HAS_ASKED = "was interrupted", "failed", "ended with a question to a person"
CUT = "\n[... cut: {} characters more]"
_PLACE = re.compile(r"\{\{\s*([\w.-]{1,200})\s*\}\}")
DEFAULT_TEMPLATE = """\
You are worker {{agentId}} in {{companyId}}. This is run {{runId}}, for task {{task.id}} ({{task.type}}): {{title}}

Your task, in the words of the session that asks:

{{asked}}

{{details}}

Use the swarm-mcp skill: locks hold for you as for everyone, and what it says of tasks applies to this one.
Report progress on the task as you go. When you are through, close with one paragraph that says what you did and \
what is left; it becomes the result of the task.
"""


def filled(template: str, values: Mapping[str, object]) -> str:
    """Return the template with values put in. A path names members of objects and indexes of lists."""
    return _PLACE.sub(lambda match: _text(_found(values, match.group(1))), template)


def template_values(query: Query, harness: str = "", **more: object) -> dict[str, Any]:
    """Return the values for templates: agentId, companyId (the scope), runId, company, agent, run, and `more`."""
    return {
        "agentId": query.instance_id,
        "companyId": query.scope,
        "runId": query.run_id,
        "company": {"id": query.scope, "name": os.path.basename(query.scope)},
        "agent": {"id": query.instance_id, "label": query.label, "role": query.role, "company_id": query.scope},
        "run": {"id": query.run_id, "harness": harness, "cwd": query.cwd, "mode": query.mode, "model": query.model},
        **more,
    }


def task_prompt(
    task: Mapping[str, object],
    message: str = "",
    previous_progress: str = "",
    *,
    query: Query | None = None,
    context: Mapping[str, object] = {},
    template: str = "",
    ended: str = INTERRUPTED,
) -> str:
    """Return the prompt of a worker.

    `task` is the task's row, `message` the words of the session that hands it over. `previous_progress` is how far an
    earlier run of the task came, and `ended` how that run ended. `template` defaults to the file that
    ``SWARM_WORKER_TEMPLATE`` names, else to DEFAULT_TEMPLATE; beside `template_values` it can name task, title (in
    quotes), context, message, asked (the message as a quotation), details, progress. Raises Refused where that file
    cannot be read.
    """
    told = safe(message.strip() or str(task.get("title") or ""))
    values = template_values(
        query or Query("", ""),
        task=task,
        context=context,
        message=told,
        title=quoted(str(task.get("title") or "")),
        asked=_as_said(told),
        progress=previous_progress.strip(),
        details=_details(task, told, previous_progress.strip(), ended),
    )
    text = filled(template or chosen_template(), values)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def chosen_template() -> str:
    """Return the user's template, else DEFAULT_TEMPLATE. Raises Refused where it cannot be read."""
    path = os.path.expanduser(os.environ.get("SWARM_WORKER_TEMPLATE", "").strip())
    if not path:
        return DEFAULT_TEMPLATE
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(TOTAL_LIMIT)
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"SWARM_WORKER_TEMPLATE: {path} cannot be read: {error}") from None


def system_prompt(query: Query, *, skills: Iterable[str] = (), tools: Iterable[str] = (), extra: str = "") -> str:
    """Return the addition to a harness's own instructions, in this order, without empty sections.

    Role, identity, the skills in these folders (name and description; for harnesses that do not list them themselves),
    tools, the text in ``SYSTEM_PROMPT``, and `extra`, about this task. Each section has at most SECTION_LIMIT
    characters, the whole TOTAL_LIMIT.
    """
    if query.instance_id:
        who = [f"You are session {query.instance_id} of the swarm in {query.scope}."]
    else:
        who = []
    who += [f"Your name: {holder_name(query.label, query.instance_id)}"] if query.label else []
    who += [f"Your task: {query.task_id}"] if query.task_id else []
    listed = [f"- {name}: {about} ({os.path.join(folder, 'SKILL.md')})" for folder in skills
              for name, about in [described(folder)]]  # fmt: skip
    sections = (
        ("Role", _role(query.role)),
        ("Identity", "\n".join(who)),
        ("Skills", "\n".join(["Read a skill's file before you do what it is about.", *listed]) if listed else ""),
        ("Tools", "\n".join(f"- {name}" for name in tools)),
        ("", os.environ.get("SYSTEM_PROMPT", "").strip()),
        ("", extra.strip()),
    )
    shown = [_capped(f"# {title}\n{text}" if title else text, SECTION_LIMIT) for title, text in sections if text]
    return _capped("\n\n".join(shown), TOTAL_LIMIT)


def with_system_prompt(query: Query, adapter: HarnessAdapter) -> Query:
    """Return the query with `system_prompt` added; unchanged where the harness cannot be given one."""
    if not adapter.capabilities.append_system_prompt:
        return query
    skills = () if adapter.capabilities.native_skills else skill_folders(query)
    tools = [getattr(tool, "__name__", "") for tool in query.client_tools]
    text = system_prompt(query, skills=skills, tools=tools, extra=query.append_system_prompt)
    return query._replace(append_system_prompt=text)


def run_environment(query: Query, context: Mapping[str, object] = {}) -> dict[str, str]:
    """Return the environment of a worker; later layers win: its identity, its reason to run, the user's settings.

    `context` may have wake_reason, message_id, linked_task_ids (a list), approval_id and approval_status.
    """
    linked = context.get("linked_task_ids")
    why = {
        "SWARM_WAKE_REASON": context.get("wake_reason"),
        "SWARM_WAKE_MESSAGE_ID": context.get("message_id"),
        "SWARM_APPROVAL_ID": context.get("approval_id"),
        "SWARM_APPROVAL_STATUS": context.get("approval_status"),
        "SWARM_LINKED_TASK_IDS": ",".join(map(str, linked)) if isinstance(linked, (list, tuple)) else linked,
    }
    known = {name: str(value) for name, value in why.items() if value not in (None, "")}
    return {**swarm_variables(query), **known, **query.env}


# --------------------------------------------------------------------------------------------- innards


def _role(role: str) -> str:
    if is_word(role):
        return f"You work as {role}. The swarm-mcp skill says what that role does."
    return ""


def _details(task: Mapping[str, object], told: str, progress: str, ended: str) -> str:
    """Return the task's details beyond its title and the worker's instructions."""
    about = safe(str(task.get("description") or "").strip())
    files = task.get("files")
    if isinstance(files, (list, tuple)):
        named_files = [named(str(file)) for file in files]
    else:
        named_files = []
    known = about in (told, safe(str(task.get("title") or "").strip()))
    if about and not known:
        parts = [f"Its description:\n\n{_as_said(about)}"]
    else:
        parts = []
    parts += ["Files: " + ", ".join(named_files)] if named_files else []
    parts += [f"An earlier run of this task {ended}. Its progress:\n\n{_as_said(safe(progress))}"] if progress else []
    return "\n\n".join(parts)


def _as_said(text: str) -> str:
    """Return `text` as a quotation: each line behind a mark, so that none can be taken for one of ours."""
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _found(values: object, path: str) -> object:
    for name in path.split("."):
        if isinstance(values, Mapping):
            values = values.get(name)
        elif isinstance(values, (list, tuple)) and name.isascii() and name.isdigit() and int(name) < len(values):
            values = values[int(name)]
        else:
            return None
    return values


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (dict, list, tuple, bool)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _capped(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    room = limit - len(CUT.format(len(text)))
    return text[:room] + CUT.format(len(text) - room)


# The commands of a prompt in a harness: skills, and commands that a person or a project keeps as files.

SKILL, COMMAND = "skill", "command"
LARGEST = 16384  # characters of a file that are looked at
_DESCRIPTION = re.compile(r"^description\s*[:=]\s*(.+?)\s*$", re.MULTILINE)


class SlashCommand(NamedTuple):
    """One thing that a prompt can invoke: `invocation` is how it does so, `kind` skill or command, `path` its file."""

    name: str
    invocation: str
    description: str
    kind: str
    path: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return self._asdict()


def slash_commands(adapter: HarnessAdapter, cwd: str, skills: tuple[str, ...] = ()) -> list[SlashCommand]:
    """Return the commands of a prompt in `cwd`, by name: the first of each name, and the run's own before all.

    `skills`: folders of a query. Nothing is started; unreadable files have no description. Raises Refused for a folder
    without a skill.
    """
    found: dict[str, SlashCommand] = {}
    can = adapter.capabilities
    if can.native_skills or can.append_system_prompt:
        own = skill_folders(Query("", cwd, skills=skills))
    else:
        own = ()
    for command in (*_skills(adapter, own), *_in(adapter, adapter.command_places(cwd))):
        found.setdefault(command.name, command)
    return [found[name] for name in sorted(found)]


def _in(adapter: HarnessAdapter, places: Iterable[CommandPlace]) -> Iterator[SlashCommand]:
    for place in places:
        if not place.ending:
            yield from _skills(adapter, [os.path.join(place.folder, name) for name in names_in(place.folder)])
            continue
        for folder, inner, names in os.walk(place.folder):
            inner.sort()
            for name in sorted(names):
                if name.endswith(place.ending):
                    path = os.path.join(folder, name)
                    words = os.path.relpath(path, place.folder).removesuffix(place.ending).split(os.sep)
                    yield SlashCommand(":".join(words), f"/{':'.join(words)}", _description(path), COMMAND, path)


def _skills(adapter: HarnessAdapter, folders: Iterable[str]) -> Iterator[SlashCommand]:
    for folder in folders:
        path = os.path.join(folder, FILE)
        if os.path.isfile(path):
            name, about = described(folder)
            yield SlashCommand(name, adapter.format_command(name), about, SKILL, path)


def _description(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = _DESCRIPTION.search(file.read(LARGEST))
    except OSError:  # without a description
        return ""
    if found:
        return found.group(1).strip("'\"")
    return ""

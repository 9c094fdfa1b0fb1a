"""Transcripts as clients write them, of sessions that read files with their client's own tool."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Blocks:
    """A transcript of Claude Code: `path` is the session's, and sub-agents have files of their own."""

    def __init__(self, folder: Path, session: str = "s") -> None:
        self.path = folder / f"{session}.jsonl"
        self.calls = 0

    def of_agent(self, agent: str) -> Path:
        return self.path.with_suffix("") / "subagents" / f"agent-{agent}.jsonl"

    def reads(self, file: Path, first: int = 1, limit: int = 0, agent: str = "", error: str = "") -> None:
        """Note a read of `file` as it is now: `limit` lines from line `first` on, by default all."""
        call = self.calls_read(file, agent)
        if error:
            self.answers(call, error, agent, is_error=True)
            return
        lines = file.read_text().split("\n")
        shown = lines[first - 1 : first - 1 + limit if limit else None]
        told = {"type": "text", "file": {"filePath": str(file), "content": "\n".join(shown), "startLine": first}}
        numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(shown, first))
        # The entries of sub-agents have the text alone.
        self.answers(call, numbered, agent, **({} if agent else {"toolUseResult": told}))

    def calls_read(self, file: Path, agent: str = "") -> str:
        """Note the call alone; returns its id."""
        self.calls += 1
        call = f"toolu_{self.calls}"
        block = {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": str(file)}}
        self.add({"type": "assistant", "message": {"role": "assistant", "content": [block]}}, agent)
        return call

    def answers(self, call: str, text: str, agent: str = "", is_error: bool = False, **more: Any) -> None:
        block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": is_error}
        self.add({"type": "user", "message": {"role": "user", "content": [block]}, **more}, agent)

    def add(self, entry: Any, agent: str = "") -> None:
        path = self.of_agent(agent) if agent else self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as out:
            out.write(json.dumps({**entry, "isSidechain": bool(agent)}, ensure_ascii=False) + "\n")


class Parts(Blocks):
    """A transcript of Qwen Code."""

    def __init__(self, folder: Path, session: str = "s") -> None:
        super().__init__(folder / "chats", session)

    def of_agent(self, agent: str) -> Path:
        return self.path.parent.parent / "subagents" / self.path.stem / f"agent-{agent}.jsonl"

    def reads(self, file: Path, first: int = 1, limit: int = 0, agent: str = "", error: str = "") -> None:
        call = self.calls_read(file, agent)
        lines = file.read_text().split("\n") if not error else []
        text = "\n".join(lines[first - 1 : first - 1 + limit if limit else None])
        if limit:
            text = f"Showing lines {first}-{first + limit - 1} of {len(lines)} total lines.\n\n---\n\n{text}"
        self._part(
            {"functionResponse": {"id": call, "response": {"error": error} if error else {"output": text}}}, agent
        )

    def calls_read(self, file: Path, agent: str = "") -> str:
        self.calls += 1
        call = f"call_{self.calls}"
        self._part({"functionCall": {"id": call, "name": "read_file", "args": {"file_path": str(file)}}}, agent)
        return call

    def _part(self, part: dict[str, Any], agent: str) -> None:
        self.add({"message": {"parts": [part]}}, agent)


class Log:
    """A client's log of a conversation with its times, in the form of the runtime: `path`. `clock`: Unix seconds."""

    def __init__(self, folder: Path, runtime: str, session: str = "s", clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.runtime = runtime
        self.path = folder / {"claude-code": f"{session}.jsonl", "codex": f"rollout-0-{session}.jsonl"}[runtime]
        self.calls = 0

    def of_agent(self, agent: str) -> "Log":
        """Return the log of an agent."""
        if self.runtime == "codex":
            return Log(self.path.parent, self.runtime, agent)
        return Log(self.path.with_suffix("") / "subagents", self.runtime, f"agent-{agent}")

    def begins(self, message: str = "", name: str = "exec_command") -> str:
        """Note that the model makes a call, by default in a message of its own; return the call's id."""
        self.calls += 1
        call = f"call_{self.calls}"
        if self.runtime == "claude-code":
            content = [{"type": "tool_use", "id": call, "name": "Edit", "input": {}}]
            self._add({"type": "assistant", "message": {"id": message or f"msg_{self.calls}", "content": content}})
        else:
            self._payload("response_item", type="function_call", name=name, arguments="{}", call_id=call)
        return call

    def ends(self, call: str, text: str = "done", is_error: bool = False, **more: Any) -> None:
        """Note the result of a call."""
        if self.runtime == "claude-code":
            content = [{"type": "tool_result", "tool_use_id": call, "content": text, "is_error": is_error}]
            self._add({"type": "user", "message": {"content": content}, **more})
        else:
            self._payload("response_item", type="function_call_output", call_id=call, output=text)

    def has_run(self, call: str, seconds: float) -> None:
        """Note the end of a command, as Codex does also in the background."""
        item = {"type": "CommandExecution", "id": call, "duration": {"secs": 0, "nanos": int(seconds * 1e9)}}
        self._payload("event_msg", type="item_completed", item=item)

    def goes_on(self, call: str) -> None:
        """Note the result of a command that goes on in the background."""
        if self.runtime == "claude-code":
            self.ends(call, "Command running in background with ID: b1", toolUseResult={"backgroundTaskId": "b1"})
        else:
            self.ends(call, "Wall time: 10 seconds\nProcess running with session ID 7\n")

    def ends_apart(self, call: str) -> None:
        """Note the end of such a command."""
        if self.runtime == "claude-code":
            notice = (
                f"<task-notification>\n<task-id>b1</task-id>\n<tool-use-id>{call}</tool-use-id>\n</task-notification>"
            )
            self._add({"type": "queue-operation", "operation": "enqueue", "content": notice})
        else:
            self.has_run(call, 0.1)

    def stops(self, call: str) -> None:
        """Note that the model stops such a command. Codex tells its end as any other."""
        if self.runtime == "codex":
            self.ends_apart(call)
            return
        self.calls += 1
        stop = f"call_{self.calls}"
        block = {"type": "tool_use", "id": stop, "name": "TaskStop", "input": {"task_id": "b1"}}
        self._add({"type": "assistant", "message": {"id": f"msg_{self.calls}", "content": [block]}})
        self.ends(stop)

    def _payload(self, kind: str, **payload: Any) -> None:
        self._add({"type": kind, "payload": payload})

    def _add(self, entry: Any) -> None:
        now = self.clock()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}Z"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as out:
            out.write(json.dumps({"timestamp": stamp, **entry}, separators=(",", ":")) + "\n")

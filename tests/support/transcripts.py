"""Transcripts as clients write them, of sessions that read files with their client's own tool."""

from __future__ import annotations

import json
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

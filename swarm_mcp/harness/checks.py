"""Looking whether a harness can run here: structured findings, no side effects, under 5 s."""

from __future__ import annotations

from typing import NamedTuple

INFO, WARN, ERROR = "info", "warn", "error"


class Check(NamedTuple):
    """One finding. `code` is the same for the same finding always; `level` info, warn or error."""

    code: str
    level: str
    message: str
    hint: str = ""
    detail: str = ""

    def to_dict(self) -> dict:
        """The finding as JSON has it, without what is empty."""
        return {name: value for name, value in self._asdict().items() if value}


def status_of(checks: list[Check]) -> str:
    """``fail`` where anything is an error, ``warn`` where anything is a warning, else ``pass``."""
    levels = {check.level for check in checks}
    return "fail" if ERROR in levels else "warn" if WARN in levels else "pass"

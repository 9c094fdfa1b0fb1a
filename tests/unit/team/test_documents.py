"""Two machines share messages, tasks and values: the cases of all servers, and those that one in memory can play."""

from __future__ import annotations

from support.document_cases import *  # noqa: F403

"""One verb a module. The docstring is the verb's help; its first line, after the colon, is the summary."""

from __future__ import annotations

"""The verbs, one module for each family; ``contributions`` maps verbs to modules."""

from __future__ import annotations

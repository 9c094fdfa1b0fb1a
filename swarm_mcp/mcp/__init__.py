"""The Model Context Protocol: one server with two transports, and one client.

``protocol`` reads messages and knows the protocol versions, ``server`` decides the answer to a request. ``streams`` and
``exchange`` serve over standard input and output, ``server`` over HTTP too. ``client`` talks to other servers, and
``schema`` checks arguments. docs/decisions/0034-one-mcp-stack.md says why the official SDK is not used.
"""

from __future__ import annotations

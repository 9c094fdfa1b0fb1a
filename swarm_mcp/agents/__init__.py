"""Agents that swarm starts itself: drivers of their command lines, dispatch of tasks to workers, and swarm's own agent.

``harness`` drives one agent, ``dispatch`` gives tasks to many, ``loop`` is an agent of our own over a model's API.
``acp_guard`` checks the writes of an agent that speaks the Agent Client Protocol with an editor.
``commands`` and ``tools`` are the verbs and MCP tools, and ``contributes`` lists them.
"""

"""The ``swarm-mcp`` command: one module a verb in ``commands/``, parsing and dispatch in ``main``.

Hooks call ``register`` and ``deregister``, so their start-up counts: neither this package nor those
two verbs import ``argparse``, ``json`` or anything that pulls in ``re``.
"""

"""Driving agent command lines: one adapter says how each differs, one runner does the rest.

``query``         what a run is asked to do
``adapter``       what an adapter provides; ``adapters/`` has one module each, ``registry`` finds them by name
``events``        what happens in a run, in words that are the same for every harness
``outcome``       how a run ended
``run``           the runner: starts the child, reads it, watches it, ends it
``servers``, ``skills``, ``plugin``, ``client_tools``, ``prompting``   what a child is given, and told
``membership``, ``account``   its place among the sessions, and what the store says of it
``transcript``, ``envelope``, ``live``, ``playback``   events as people and other programs have them

From Python, a run is::

    from swarm_mcp.harness import registry
    from swarm_mcp.harness.query import HarnessQuery
    from swarm_mcp.harness.run import Run

    def price_of(item: str) -> float:
        \"""What an item costs.\"""
        return prices[item]

    query = HarnessQuery("How much are two lamps?", cwd="/src/shop", mode="read-only", client_tools=(price_of,))
    run = Run(registry.get("codex"), query).on_event(lambda event: print(event.kind, event.data))
    result = run.start().wait()  # a RunResult; run.abort() ends it from any thread

Without a ``membership`` the child is no session among the others until its own hooks make it one.
"""

"""Driving agent command lines: one adapter says how each differs, one runner does the rest.

``query``                        what a run is asked to do; the same from somebody's JSON or command line
``adapter``, ``registry``        what an adapter provides; adapters by name: one folder each, but for any command
                                 (``process_adapter``) and the embedded loop (``swarm_mcp.loop.adapter``)
``requirements``, ``checks``     what a run asks for beyond what its harness can do; whether it can run on this machine
``run``, ``run_attempt``         the runner: one run; one child of it, from its start to its last line
``child``, ``keeper``, ``reaper``, ``leftover_processes``                     the child's process, and its end
``events``, ``record``, ``transcript``                                        what happens, in order, and where it goes
``outcome``, ``conclusion``, ``resumption``                                   how a run ended, its costs, its session
``servers``, ``plugin``, ``client_tools``, ``prompting``, ``environment``     what a child is given, and told
``membership``                   its place in the swarm: its session and its row

From Python, a run is::

    from swarm_mcp.harness import registry
    from swarm_mcp.harness.query import Query
    from swarm_mcp.harness.run import Run

    def price_of(item: str) -> float:
        \"""What an item costs.\"""
        return prices[item]

    query = Query("How much are two lamps?", cwd="/src/shop", mode="read-only", client_tools=(price_of,))
    run = Run(registry.get("codex"), query).on_event(lambda event: print(event.kind, event.data))
    result = run.start().wait()  # a RunResult; run.abort() ends it from any thread

Without a ``membership`` the child is no session in the swarm until its own hooks register one.
"""

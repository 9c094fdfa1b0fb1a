"""Pictures of the swarm: ``overview`` reads the facts, ``top`` shows them at a terminal, ``page`` in a browser.

``commands`` has the verbs, and ``contributes`` lists them.
"""

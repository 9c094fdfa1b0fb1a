"""``swarm-mcp page``: the overview in a browser, served on loopback by a read-only process of its own.

app        the process: its socket, its browser, its end; the page's addresses; the commands that a person can run
live       the notification of open pages about changes
rendering  templates, the words in them, the timeline as a drawing
views      each kind of page; shared template parts are in ``templates/parts.html`` and ``tables.html``
"""

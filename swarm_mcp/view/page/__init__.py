"""``swarm-mcp page``: the overview in a browser, served on loopback by a read-only process of its own.

app        the process: its socket, its browser, its end; and the page's addresses
live       the notification of open pages about changes
rendering  templates, and the words in them
views      each kind of page; shared template parts are in ``templates/parts.html`` and ``tables.html``
picture    the timeline as a drawing
acting     the commands that a person can run from the page
"""

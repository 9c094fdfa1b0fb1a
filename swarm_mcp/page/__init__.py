"""``swarm-mcp page``: the same overview in a browser, served on loopback by a process of its own that only reads.

access     who may look: loopback, a token, then a cookie; what a browser may do with an answer
app        the addresses that there are
looking    the one thread that reads the store, and what it has rendered since the last commit
live       telling open pages that something has changed
changes    what nobody commits: files that sessions have edited
rendering  templates, and the words in them
view       what a page is asked for, and what it is made of
views      one module for each kind of page; what templates share is in ``templates/parts.html`` and ``tables.html``
picture    the timeline as a drawing
serving    the process: its socket, its browser, its end
"""

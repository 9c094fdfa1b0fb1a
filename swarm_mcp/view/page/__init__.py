"""``swarm-mcp page``: the overview in a browser, served on loopback by a read-only process of its own.

access     the admission of requests: loopback, a token, then a cookie; the headers that bind the browser
app        the page's addresses
looking    the one thread that reads the store, and its renderings since the last commit
live       the notification of open pages about changes
changes    uncommitted work, known without any commit
palette    a colour for each session
rendering  templates, and the words in them
view       a page's request, its parts, and its template
views      one module for each kind of page; shared template parts are in ``templates/parts.html`` and ``tables.html``
picture    the timeline as a drawing
serving    the process: its socket, its browser, its end
"""

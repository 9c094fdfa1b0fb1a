"""git-lfs's locking API over the team's server: people without swarm see what sessions hold, and lock files themselves.

``app``          the requests and answers, as git-lfs documents them (docs/api/locking.md there)
``held``         a lock as git-lfs knows it, and the pages of a list of them
``locks``        what one person sees and does in one repository, over the team's server
``credentials``  what a request says of who makes it
``people``       who asks: roles of the team's server, by password or by token
``tokens``       the tokens
``names``        which files a folder or a pattern holds, as a clone on this machine knows them
``serving``      the process
"""

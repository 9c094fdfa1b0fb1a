# The interpreter of the checks; `swarm-mcp install` puts the real one of this machine here.
python=python3

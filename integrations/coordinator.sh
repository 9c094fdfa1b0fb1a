# Runs swarm-mcp with these words: as the plugin's MCP server, for git hooks, or in a session's shell. See coordinator.py.
exec /bin/sh "${0%/*}/hook.sh" coordinator "$@"

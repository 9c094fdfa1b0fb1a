"""The page in a real browser: Chromium without a window, against the real ``swarm-mcp page`` process."""

"""`swarm-mcp top`: sessions, locks and waits as a full screen that follows the store.

`reading` turns the store into a `picture`, rows of plain text, and `picture.Follower` does so again after each commit.
`app` shows the newest picture in `pane.Pane`s. A key that changes the store, or asks more of it, runs another command
of swarm-mcp in a process of its own (`pane`): this process only reads. It needs Textual, the extra ``top``.
"""

"""`swarm-mcp top`: who is here, who holds and waits for what, as a full screen that follows the store.

`reading` turns the store into a `picture`, rows of plain text; `following` does so again whenever some process commits;
`app` shows the newest picture in `pane.Pane`s. What a key does to the store, or asks of it, other commands of swarm-mcp
do, each in a process of its own (`commands`): this one only ever reads. Needs Textual, the extra ``top``.
"""

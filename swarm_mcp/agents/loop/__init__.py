"""A small agent loop of our own. It speaks the plugin protocol of the bash harness (wedow/harness).

``agent``           the command: one run, prompt in, answer out, exit code; the state machine start, assemble, send,
                    receive, tool_exec, tool_done, done, error
``stages``          one stage: hooks in order of their numbers, each one's output the next one's input; a built-in hook
                    gives way to a file of the same name in any place of plugins: ours, the home folder's, every
                    ``.harness`` down to the present folder
``session``         a folder of markdown
``settings``        a run, its settings, and variants of providers as ``.conf`` files, some ours (``bundled/``)
``providers``       the provider of a run, and the cost of its answers: models over HTTP (``protocols``), or executables
``tools``           the model's tools, those of MCP servers among them; ``stages`` carries calls out
``swarm_session``   this session in the swarm: registered, its writes checked against other sessions' locks
``adapter``         the loop as a harness; nothing else outside of the command line imports this package
"""

"""A small agent loop of our own. It speaks the plugin protocol of the bash harness (wedow/harness).

``agent``           one run: prompt in, answer out, exit code; the state machine start, assemble, send, receive,
                    tool_exec, tool_done, done, error
``stages``          one stage: hooks in order of their numbers, each one's output the next one's input; a built-in hook
                    gives way to a file of the same name anywhere in ``sources``
``sources``         the places of plugins: ours, the home folder's, every ``.harness`` down to the present folder
``session``         a folder of markdown
``conf_files``      variants of providers as ``.conf`` files, some of them ours (``bundled/``)
``providers``       models behind HTTP, or executables
``tools``           the model's tools; ``calls`` carries calls out
``swarm_session``   this session in the swarm: registered, its writes checked against other sessions' locks
``mcp_servers``     tools of MCP servers, those of the swarm among them
``adapter``         the loop as a harness; nothing else outside of the command line imports this package
"""

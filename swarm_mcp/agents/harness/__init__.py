"""Drivers of agent command lines: an adapter holds the differences of one harness, one runner does the rest.

``swarm_mcp.harness`` is the public interface, and docs/dev/python.md its page. The modules behind it:

``query``                        the request of a run, also from JSON, a command line, or a Python caller
``adapter``                      the interface of an adapter, requests beyond its abilities, its client's questions
``registry``                     adapters by name, and a harness's fitness on this machine
``run``                          the runner: one run, or one for each prompt of a conversation
``child``, ``keeper``            one child of a run: its process, its output, and its end
``events``, ``record``, ``narration``   events, their order, and their receivers
``outcome``, ``conclusion``      the end of a run: its costs, its errors, its changes
``servers``, ``bridge``, ``prompting``, ``environment``   a child's equipment, and its instructions
``membership``                   its place in the swarm: its session and its row
"""

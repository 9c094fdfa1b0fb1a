"""Interpreters: code in the command is followed or scanned, a script file is a guess.

Python is followed (``python_command``); of the others the code is scanned for the calls that write and the paths
written in them (``script_code``).
"""


def _python(call) -> None:
    from swarm_hook_core.effects.programs.python_command import python

    python(call)


RUN = dict.fromkeys("python python2 python3 pypy pypy3".split(), _python)

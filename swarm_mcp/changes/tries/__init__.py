"""Running a command on the last commit and the uncommitted lines of chosen authors (`swarm-mcp try`).

    picture    the uncommitted changes at one moment, and the content of a choice of their authors
    folder     the place of a try's own files, with those of its command: bounds, times, one try at a time, the end
    space      a view of the checkout for one command (Linux): an overlay or another folder at the checkout's own path
    running    one run: picture, folder, view or copy, command, comparison; the run on the files of a coming commit
    written    the files that the command of a kept try wrote: as a patch, and back into the checkout
    trial      the authors of a picture by name; the search for those of failing lines; the doctor's finding

The command is ``changes.commands.tries``. Nothing in the checkout changes. Without an honest answer there is an error.
"""

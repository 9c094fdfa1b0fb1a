"""Running a command on the last commit and the uncommitted lines of chosen authors (`swarm-mcp try`).

    picture    the uncommitted changes at one moment, and the content of a choice of their authors
    folder     the place of a try's own files, with those of its command: bounds, times, one try at a time
    space      a view of the checkout for one command (Linux): an overlay or another folder at the checkout's own path
    copy       another folder with the checkout's files, where no overlay can be
    running    one run: picture, folder, view, command, comparison; the run on the files of a coming commit
    whose      the search for the authors of the lines that make a command fail, and its answer
    written    the files that the command of a kept try wrote: as a patch, and back into the checkout
    leftovers  what tries keep on the disk
    trial      the authors of a picture by name
    doctor     the finding; the command is ``changes.commands.tries``

Nothing in the checkout changes. Without an honest answer there is an error.
"""

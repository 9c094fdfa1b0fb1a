"""The languages that ``scripts.code`` scans, one a module: how each is written, and which of its calls write.

What a call does is one of these, with the place of the argument that it is about:

    write N     argument N is written              writes      every argument, lists too
    tree N      argument N and all under it        trees       every argument, lists too
    move        argument 0 becomes argument 1      copy        argument 1, or argument 0's name in it, is written
    make N      argument N is a folder that is made
    open N      argument 0 is written if the mode in argument N says so; `open3` is Perl's ``open``
    shell       argument 0 is shell text (more arguments: words)
    words       argument 0 is a program, argument 1 a list of its arguments
    chdir       what follows runs in the folder of argument 0
    code        other code is run
"""


def language(name: str):
    """The Language (``scripts.tokens``) called `name`: ``javascript``, ``ruby``, ``perl``, ``php`` or ``lua``."""
    return __import__(f"{__name__}.{name}", fromlist=["LANGUAGE"]).LANGUAGE

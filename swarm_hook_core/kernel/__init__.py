"""The second layer, on request: the kernel makes locked files read-only while a command runs that cannot be parsed.

    the check     planning    decides if there is anything to hold, and if the command may run so
                  plans       finds the paths to hold, and writes the plan for the call's shell
    the shell     enter       is started in the shell's place, and runs the same command with those paths read-only
                  namespace   makes them so, and stays while anything runs in there: locks end, files are replaced
                  integrations/kernel/git asks the check before a script runs git in there
    afterwards    planning    says one line to the model about refused writes
    a session     planning    tells its shells where to look for plans (Claude Code), or the shell of each call (Codex)
    `doctor`      namespace   tests if the kernel can do this here, and says why not

Locks that the check can decide beforehand are decided there, as always. Nothing of this is loaded unless the user has
switched it on. A command costs one look for a file while there is nothing to hold.
"""

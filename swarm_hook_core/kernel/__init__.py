"""The second layer, on request: while a command runs that nobody can read, the kernel holds what others have locked.

    the check     planning    is there anything to hold, and may the command be run so?
                  reach       which paths those are
                  plans       what is written down for the shell of the call
    the shell     enter       is started in its place, and runs the same command with those paths read-only
                  namespace   the calls to the kernel; seatbelt, what macOS has instead
                  direct      the same for commands that our own harnesses start
                  upkeep      the process that stays while anything runs in there: locks end, files are replaced
                  integrations/kernel/git asks the check before a script runs git in there
    afterwards    refused     what the kernel has refused, in one line for the model
    a session     planning    its shells are told where to look (Claude Code)
                  statement   the shell of each call is (Codex)
                  rules       but of none that a person's rule may let out of the client's own sandbox
    `doctor`      probe       whether the kernel does it here, and if not why

What can be told beforehand is denied as ever. Nothing of this is loaded unless a person has switched it on, and costs a
command nothing but a look for a file while there is nothing to hold.
"""

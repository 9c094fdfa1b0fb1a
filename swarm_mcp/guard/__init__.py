"""Git hooks that refuse to commit or push files that another session has locked: for writers without hooks of their
own.

`repository` asks git, `check` decides, `hooks` puts the hooks there and takes them away, `scripts` is their text.
"""

from __future__ import annotations

"""All that differs between runtimes, as data."""


class RuntimeConfig:
    """One agent runtime, immutable.

    runtime_name      word used in labels and as half of a session's key: ``claude-code``
    env_prefix        the PFX in ``SWARM_PFX_*`` variables: ``CC``
    scratch_dir_name  folder of this runtime under the state folder: ``swarm-cc``
    write_tools       names of the tools whose calls write files
    extract_paths     ``(tool_input) -> iterable of paths as spelled`` for a call of such a tool;
                      may raise ``ValueError`` where the input cannot be read
    client_marks      of a client that is a shell script: parts of its path, see
                      ``process.client_process``
    """

    __slots__ = ("runtime_name", "env_prefix", "scratch_dir_name", "write_tools", "extract_paths", "client_marks")

    def __init__(self, runtime_name, env_prefix, scratch_dir_name, write_tools, extract_paths, client_marks=()):
        put = object.__setattr__
        put(self, "runtime_name", runtime_name)
        put(self, "env_prefix", env_prefix)
        put(self, "scratch_dir_name", scratch_dir_name)
        put(self, "write_tools", frozenset(write_tools))
        put(self, "extract_paths", extract_paths)
        put(self, "client_marks", tuple(client_marks))

    def __setattr__(self, name, value):
        raise AttributeError(f"RuntimeConfig is immutable: {name}")

    __delattr__ = __setattr__  # type: ignore[assignment]


def paths_under_keys(*keys: str):
    """An ``extract_paths`` for tools that name their file under one of `keys`, first found first."""

    def extract(tool_input):
        if not isinstance(tool_input, dict):
            raise ValueError("tool input is not an object")
        found = [tool_input[key] for key in keys if key in tool_input]
        paths = [value for value in found if isinstance(value, str) and value.strip()]
        if not paths:
            raise ValueError("no path in tool input")
        return paths

    return extract


def paths_in_patch(tool_input):
    """An ``extract_paths`` for tools that take an apply_patch envelope."""
    from os.path import join

    from swarm_hook_core.patch import PatchUnreadable, patch_paths, patches_in

    patches = patches_in(tool_input)
    if not patches:
        raise PatchUnreadable("no patch envelope in tool input")
    paths: dict = {}
    for folder, text in patches:
        paths.update((join(folder, path) if folder else path, None) for path in patch_paths(text))
    return list(paths)

"""gzip and its kin: a file goes, another comes."""

import os

from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.places import exists, is_folder

_ENDINGS = {
    "gzip": (".gz", ".tgz", ".z", ".Z", ".taz"),
    "bzip2": (".bz2", ".bz", ".tbz2", ".tbz"),
    "xz": (".xz", ".lzma", ".txz", ".tlz"),
    "lzma": (".lzma", ".xz"),
    "zstd": (".zst", ".tzst", ".gz", ".xz", ".lz4"),
    "lz4": (".lz4",),
    "brotli": (".br",),
    "compress": (".Z",),
    "lzip": (".lz",),
}
_SAME = {
    "gunzip": "gzip",
    "pigz": "gzip",
    "unpigz": "gzip",
    "bunzip2": "bzip2",
    "pbzip2": "bzip2",
    "unxz": "xz",
    "unlzma": "lzma",
    "unzstd": "zstd",
    "unlz4": "lz4",
    "zstdmt": "zstd",
    "uncompress": "compress",
    "pixz": "xz",
}


def _compressor(call) -> None:
    """The file is replaced by a compressed one, or the other way; zstd and lz4 keep both."""
    kind = _SAME.get(call.name, call.name)
    short, takes = (
        "bST",
        ("--suffix", "--threads", "--block-size", "--memlimit", "--format", "--check", "--files", "--output"),
    )
    if kind in ("zstd", "lz4", "brotli", "lzip"):
        short, takes = (
            "oDTM" if kind == "zstd" else "o",
            ("--output", "--output-dir-flat", "--output-dir-mirror", "--threads", "--memory"),
        )
    options = split(call.words, short, (*takes, "--rsyncable-block"))
    has, operands = options.has, options.operands
    if has("-c", "--stdout", "--to-stdout", "-t", "--test", "-l", "--list", "-h", "-H", "--help", "-V", "--version"):
        return
    unpacks = (
        has("-d", "--decompress", "--uncompress") or call.name.startswith("un") or call.name in ("gunzip", "bunzip2")
    )
    removes = (
        has("--rm") if kind in ("zstd", "lz4") else has("-j", "--rm") if kind == "brotli" else not has("-k", "--keep")
    )
    ending = options.value("-S", "--suffix") or _ENDINGS[kind][0]
    out = options.value("-o", "--output") if kind in ("zstd", "lz4", "brotli", "lzip") else None
    if kind == "lz4" and len(operands) == 2 and not has("-m"):
        operands, out = operands[:1], operands[1]
    flat = options.value("--output-dir-flat")
    for word in operands:
        if word == "-":
            continue
        if has("-r", "--recursive") and (is_folder(call, word) or call.found(word) is not None):
            call.tree(word)
            continue
        name = word
        if (
            unpacks
            and kind != "brotli"
            and not word.endswith(_ENDINGS[kind])
            and is_known(word)
            and not exists(call, word)
        ):
            name = word + ending  # gunzip f  looks for f.gz
        if removes:
            call.write(name)
        if out is not None:
            if out != "-":
                call.write(out)
            continue
        made = _unpacked(name, kind, ending) if unpacks else name + ending
        call.write(os.path.join(flat, os.path.basename(made)) if flat else made)


def _unpacked(name: str, kind: str, ending: str) -> str:
    for one in (ending, *_ENDINGS[kind]):
        if name.endswith(one):
            return name[: -len(one)] + (".tar" if one.startswith(".t") else "")
    return name + ".out" if kind == "bzip2" else name


RUN = {name: _compressor for name in (*_ENDINGS, *_SAME)}

"""Compilers and converters: the output that they are told to write, or name after their input."""

import os

from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.places import cannot_tell, with_endings


def _compiler(call) -> None:
    """-o FILE, else a.out or, with -c and -S, a name made from each source's."""
    out, sources, words, makes, notes_needs = None, [], list(call.words), "", False
    while words:
        word = words.pop(0)
        word = _COMPILER_LONG.get(word, word)
        if word == "-o":
            out = words.pop(0) if words else ""
        elif word.startswith("--output="):
            out = word.partition("=")[2]
        elif word.startswith("-o") and call.name not in ("swiftc",) and not word.startswith(("-objc", "-openmp")):
            out = word[2:]
        elif word in ("-MF", "-dumpbase"):
            call.write(words.pop(0) if words else "")
        elif word in (
            "-I",
            "-L",
            "-D",
            "-U",
            "-include",
            "-isystem",
            "-x",
            "-Xlinker",
            "-arch",
            "-framework",
            "-MT",
            "-MQ",
            "--param",
            "--include-directory",
            "--library-directory",
            "--define-macro",
            "--undefine-macro",
            "--sysroot",
        ):
            words[:1] = []
        elif word in ("-MD", "-MMD"):
            notes_needs = True
        elif word in (
            "-E",
            "-fsyntax-only",
            "-M",
            "-MM",
            "--version",
            "-v",
            "--help",
            "-dumpversion",
            "-dumpmachine",
            "-###",
        ):
            makes = makes or "nothing"
        elif word in ("-c", "-S"):
            makes = ".o" if word == "-c" else ".s"
        elif not word.startswith(("-", "@")):
            sources.append(word)
        elif word.startswith(("--", "-save-temps")) and word.partition("=")[0] not in _COMPILER_QUIET:
            call.guess(f"`{word}` is not known")
    if notes_needs:
        for word in [out] if out else sources:
            call.write(os.path.splitext(word if out else os.path.basename(word))[0] + ".d")
    if out:
        if out != "-" and not out.startswith("/dev/"):
            call.write(out)
    elif sources and not makes:
        call.write("a.out")
    elif makes in (".o", ".s"):
        for source in sources:
            call.write(os.path.splitext(os.path.basename(source))[0] + makes)


_COMPILER_LONG = {"--compile": "-c", "--assemble": "-S", "--preprocess": "-E", "--output": "-o", "--language": "-x"}
_COMPILER_QUIET = frozenset(
    "--std --ansi --all-warnings --debug --define-macro --extra-warnings --help --include-directory --optimize"
    " --pedantic --shared --static --sysroot --target --target-help --undefine-macro --verbose --warn- --param"
    " --no-warnings --no-standard-includes --print-search-dirs --print-file-name --gcc-toolchain --library".split()
)


def _rustc(call) -> None:
    takes = (
        "--out-dir",
        "--crate-type",
        "--crate-name",
        "--edition",
        "--emit",
        "--cfg",
        "--extern",
        "--target",
        "--cap-lints",
    )
    options = split(call.words, "oLlCAWDFC", takes)
    if options.has("--version", "-V", "--print", "--explain", "-h", "--help", "-vV"):
        return
    if options.value("-o"):
        call.write(options.value("-o"))
        return
    for word in options.operands:
        name = os.path.splitext(os.path.basename(word))[0]
        call.write(os.path.join(options.value("--out-dir") or "", name))


def _javac(call) -> None:
    words, folder, sources = list(call.words), None, []
    while words:
        word = words.pop(0)
        if word in ("-d", "-s", "-h"):
            folder = words.pop(0) if words else ""
            call.tree(folder, with_endings((".class", ".java", ".h"), ()))
        elif word in (
            "-cp",
            "-classpath",
            "--class-path",
            "--release",
            "-source",
            "-target",
            "-sourcepath",
            "-processor",
        ):
            words[:1] = []
        elif not word.startswith(("-", "@")):
            sources.append(word)
    for source in () if folder else sources:
        call.write(source.removesuffix(".java") + ".class")


def _output(call) -> None:
    """Converters: what -o or its long form names."""
    short, long, last = _CONVERTERS[call.name]
    options = split(call.words, short, long.split())
    for name in options.values("-o", "--output", "--out", "--outfile", "--out-file", "--output-file", "--target"):
        if name != "-":
            call.write(name)
    for name in options.values(
        "--outdir", "--output-dir", "--out-dir", "--dest", "-d" if call.name == "sass" else "--dest"
    ):
        call.tree(name, cannot_tell)
    if last and len(options.operands) > 1 and options.operands[-1] != "-":
        call.write(options.operands[-1].split(":")[-1] if call.name == "sass" else options.operands[-1])


_CONVERTERS = {
    "pandoc": (
        "ofrtVMFLHBA",
        "--output --from --to --read --write --template --metadata --variable --css --filter",
        False,
    ),
    "dot": ("oTKGNE", "", False),
    "neato": ("oTKGNE", "", False),
    "mmdc": ("oitCbwHcs", "--output --input --theme --configFile --cssFile", False),
    "plantuml": ("o", "", False),
    "sass": ("I", "--load-path --style", True),
    "lessc": ("", "", True),
    "terser": ("ocmd", "--output --compress --mangle", False),
    "swc": ("odc", "--out-file --out-dir --config-file", False),
    "babel": ("odf", "--out-file --out-dir --filename --presets --plugins --config-file", False),
    "uglifyjs": ("ocm", "--output", False),
    "csso": ("oi", "--output --input", False),
    "svgo": ("oifrp", "--output --input --folder", False),
    "ld": ("oLlmT", "", False),
    "as": ("oI", "", False),
    "nasm": ("ofIli", "", False),
    "pngquant": ("o", "--output", False),
    "cwebp": ("oqm", "", False),
    "rsvg-convert": ("owhfdpxyzbu", "--output --width --height --format", False),
    "inkscape": ("owhd", "--export-filename --export-type", False),
    "wkhtmltopdf": ("", "", True),
    "weasyprint": ("es", "--stylesheet", True),
    "qpdf": ("", "--pages", True),
    "pdf2svg": ("", "", True),
    "cbindgen": ("oclx", "--output --config --lang --crate", False),
    "openapi-generator": ("iogct", "--output", False),
    "pip-compile": ("o", "--output-file --extra --resolver", False),
    "cyclonedx": ("o", "--output", False),
    "bison": ("o", "--output --defines", False),
    "yacc": ("ob", "", False),
    "flex": ("o", "--outfile --header-file", False),
    "gperf": ("", "--output-file", False),
}


def _image(call) -> None:
    """ImageMagick: the last operand is made; mogrify works on the files themselves."""
    words = (
        call.words[1:]
        if call.name == "magick" and call.words[:1] in (["mogrify"], ["convert"], ["composite"])
        else call.words
    )
    if call.name == "mogrify" or (call.name == "magick" and call.words[:1] == ["mogrify"]):
        for word in words:
            if not word.startswith(("-", "+")) and "." in word and not word[0].isdigit():
                call.write(word)
        return
    if call.words[:1] in (["identify"], ["-version"], ["--version"], ["-list"]) or len(words) < 2:
        return
    last = words[-1]
    if not last.startswith("-") and last not in ("info:", "null:", "txt:-"):
        call.write(last)


def _ffmpeg(call) -> None:
    words, last = list(call.words), ""
    if any(word in ("-version", "-h", "-formats", "-codecs", "-encoders", "-decoders", "-filters") for word in words):
        return
    flags = (
        "-y",
        "-n",
        "-hide_banner",
        "-nostdin",
        "-vn",
        "-an",
        "-sn",
        "-dn",
        "-shortest",
        "-nostats",
        "-stats",
        "-re",
    )
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in flags:
            continue
        if word.startswith("-") and len(word) > 1:
            at += 1
        else:
            last = word
            if last not in ("-", "pipe:1", "pipe:") and "://" not in last:
                if "%" in last:
                    call.tree(os.path.dirname(last) or ".", cannot_tell)
                else:
                    call.write(last)


def _protoc(call) -> None:
    for word in call.words:
        name, equals, value = word.partition("=")
        if name in ("-o", "--descriptor_set_out", "--dependency_out") and equals:
            call.write(value)
        elif name.endswith("_out") and equals:
            call.tree(value.rpartition(":")[2] or ".", cannot_tell)


def _tex(call) -> None:
    words = [word for word in call.words if not word.startswith("-")]
    folder = next(
        (w.split("=", 1)[1] for w in call.words if w.lstrip("-").startswith(("output-directory=", "outdir="))), ""
    )
    for word in words:
        stem = os.path.splitext(os.path.basename(word))[0]
        for ending in (".pdf", ".log", ".aux"):
            call.write(os.path.join(folder, stem + ending))
    call.runs_project()


def _esbuild(call) -> None:
    for word in call.words:
        name, equals, value = word.partition("=")
        if equals and name in ("--outfile", "--metafile"):
            call.write(value)
        elif equals and name == "--outdir":
            call.tree(value, cannot_tell)


def _typst(call) -> None:
    words = [word for word in call.words if not word.startswith("-")]
    if words[:1] in (["compile"], ["c"], ["watch"]) and len(words) > 1:
        call.write(words[2] if len(words) > 2 else os.path.splitext(words[1])[0] + ".pdf")


def _ctags(call) -> None:
    options = split(call.words, "foILR", ("--options", "--languages", "--exclude"))
    name = options.value("-f", "-o") or ("TAGS" if options.has("-e") or call.name == "etags" else "tags")
    if name != "-" and not options.has("-x", "--version", "--list-languages", "--help"):
        call.write(name)


RUN = {
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++", "swiftc", "gfortran", "ghc", "tcc"), _compiler),
    **dict.fromkeys(("convert", "magick", "mogrify", "composite", "montage"), _image),
    **dict.fromkeys(("pdflatex", "xelatex", "lualatex", "latexmk", "latex"), _tex),
    **dict.fromkeys(_CONVERTERS, _output),
    "rustc": _rustc,
    "javac": _javac,
    "ffmpeg": _ffmpeg,
    "protoc": _protoc,
    "esbuild": _esbuild,
    "typst": _typst,
    "ctags": _ctags,
    "etags": _ctags,
}

"""Programs that fetch: curl, wget, scp and the like."""

import os

from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.copies import is_remote
from swarm_hook_core.shell.programs.places import cannot_tell, is_folder, put, seen

_CURL_SHORT = "oDcAbCdeEFHhKmMnPQrTtuUwxXyYz"
_CURL_LONG = (
    "--output --output-dir --dump-header --cookie-jar --user-agent --cookie --data --data-raw --data-binary"
    " --data-ascii"
    " --data-urlencode --json --referer --cert --form --form-string --header --config --max-time --range --request"
    " --upload-file --user --proxy-user --write-out --proxy --url --connect-timeout --retry --retry-delay"
    " --retry-max-time"
    " --cacert --capath --key --resolve --limit-rate --trace --trace-ascii --stderr --etag-save --etag-compare"
    " --interface"
    " --max-filesize --max-redirs --netrc-file --oauth2-bearer --aws-sigv4 --unix-socket --hsts --alt-svc --libcurl"
    " --continue-at --socks5 --socks5-hostname --ciphers --tls-max --proto --proto-default --variable --parallel-max"
    " --rate --speed-limit --speed-time --time-cond --noproxy --dns-servers --cert-type --key-type --pass --engine"
).split()


def _curl(call) -> None:
    words = [word for word in call.words if word not in ("-n", "-#")]
    options = split(words, _CURL_SHORT.replace("n", "").replace("h", "").replace("M", ""), _CURL_LONG)
    if options.has("-h", "--help", "-V", "--version", "-M", "--manual"):
        return
    folder = options.value("--output-dir") or ""
    for name in options.values("-o", "--output"):
        if name != "-" and ("#" not in name or not any(digit in name for digit in "123456789")):
            call.write(os.path.join(folder, name))
        elif name != "-":
            call.tree(os.path.dirname(os.path.join(folder, name)) or ".", cannot_tell)  # #1: part of the address
    if options.has("-O", "--remote-name", "--remote-name-all"):
        for address in options.operands + options.values("--url"):
            _named_by(call, address, folder)
        if options.has("-J", "--remote-header-name"):
            call.guess("the server names the file", folder or None)
    for name in options.values(
        *("-D", "--dump-header", "-c", "--cookie-jar", "--trace", "--trace-ascii", "--stderr", "--etag-save"),
        *("--hsts", "--alt-svc", "--libcurl"),
    ):
        if name not in ("-", "%"):
            call.write(name)
    if options.has("-T", "--upload-file"):
        for address in options.operands + options.values("--url"):
            if address.startswith("file://"):
                call.write(address[7:])
    if options.has("-K", "--config"):
        call.guess("its options are in a file")


def _named_by(call, address: str, folder: str, default: str = "") -> None:
    """Writes the file that `address` ends in."""
    bare = address.split("?")[0].split("#")[0]
    rest = bare.split("://", 1)[-1]
    name = os.path.basename(rest) if "/" in rest else ""
    name = name or default
    if not name:
        return
    if is_known(name):
        call.write(os.path.join(folder, name))
    else:
        call.guess("a computed address", folder or None)


_WGET_SHORT = "oaeiBtOTwQPDAIUXRlY"
_WGET_LONG = (
    "--output-file --append-output --execute --input-file --base --tries --output-document --timeout --wait --quota"
    " --directory-prefix --domains --accept --reject --include-directories --exclude-directories --user-agent --level"
    " --header --user --password --post-data --post-file --method --body-data --load-cookies --save-cookies --cut-dirs"
    " --limit-rate --referer --ca-certificate --waitretry --dns-timeout --connect-timeout --read-timeout --config"
    " --accept-regex --reject-regex --max-redirect --default-page --start-pos --warc-file --exclude-domains"
).split()


def _wget(call) -> None:
    options = split(call.words, _WGET_SHORT, _WGET_LONG)
    if options.has("--spider", "-h", "--help", "-V", "--version"):
        for name in options.values("-o", "--output-file"):
            call.write(name)
        return
    for name in options.values("-o", "-a", "--output-file", "--append-output", "--save-cookies"):
        if name != "-":
            call.write(name)
    out = options.value("-O", "--output-document")
    if out is not None:
        if out != "-":
            call.write(out)
        return
    folder = options.value("-P", "--directory-prefix") or ""
    if options.has("-r", "-m", "-p", "--recursive", "--mirror", "--page-requisites", "-x", "-i", "--input-file"):
        call.tree(folder or ".", cannot_tell)
        return
    keeps = options.has("-c", "--continue", "-N", "--timestamping", "-nc", "--no-clobber", "-n")
    for address in options.operands:
        name = os.path.basename(address.split("://", 1)[-1].split("#")[0]) if "/" in address.split("://", 1)[-1] else ""
        name = os.path.join(folder, name or "index.html")
        if not is_known(address):
            call.guess("a computed address", folder or None)
        elif not keeps and os.path.exists(seen(call, name) or name):
            # what is there is kept: it goes beside it, under the first free name
            number = next((one for one in range(1, 200) if not os.path.exists(seen(call, f"{name}.{one}") or "")), 200)
            call.write(f"{name}.{number}")
        else:
            call.write(name)


def _scp(call) -> None:
    options = split(call.words, "cDFiJloPSX")
    *sources, dest = options.operands or [""]
    if not sources or is_remote(dest) or "://" in dest:
        return
    for source in sources:
        name = source[source.index(":") + 1 :] if is_remote(source) else source
        if options.has("-r"):
            call.tree(
                os.path.join(dest, os.path.basename(name.rstrip("/"))) if is_folder(call, dest) else dest, cannot_tell
            )
        else:
            put(call, name or ".", dest, True if len(sources) > 1 else None)


def _sftp(call) -> None:
    if call.stdin is not None or any(word.startswith("-b") for word in call.words):
        call.guess("fetches what a script says")


def _aria2c(call) -> None:
    options = split(call.words, "odxsjkilmtU", ("--out", "--dir", "--input-file", "--log", "--split"))
    folder = options.value("-d", "--dir") or ""
    if options.value("-o", "--out"):
        call.write(os.path.join(folder, options.value("-o", "--out")))
    elif options.has("-i", "--input-file"):
        call.tree(folder or ".", cannot_tell)
    else:
        for address in options.operands:
            _named_by(call, address, folder)


def _httpie(call) -> None:
    options = split(call.words, "oapAs", ("--output", "--auth", "--print", "--auth-type", "--session", "--timeout"))
    out = options.value("-o", "--output")
    if out is not None:
        call.write(out)
    elif options.has("-d", "--download"):
        for word in options.operands:
            if "/" in word and "=" not in word:
                _named_by(call, word, "", "index")


_GH_READS = ("issue", "api", "auth", "browse", "search", "label", "status", "workflow", "secret", "variable", "ssh-key")


def _gh(call) -> None:
    words = [word for word in call.words if not word.startswith("-")]
    options = split(
        call.words, "ROoDdpnaTb", ("--repo", "--output", "--dir", "--pattern", "--name", "--archive", "--body")
    )
    what, verb = (words + ["", ""])[:2]
    if what in _GH_READS:
        return
    if what == "repo" and verb in ("clone", "fork"):
        if verb == "clone" or options.has("--clone"):
            name = words[3] if len(words) > 3 else os.path.basename(words[2]) if len(words) > 2 else ""
            if name:
                call.tree(name, cannot_tell)
    elif what == "repo" and verb == "create" and options.has("-c", "--clone") and len(words) > 2:
        call.tree(os.path.basename(words[2]), cannot_tell)
    elif what == "repo" and verb == "sync" and len(words) < 3:
        call.guess("brings the branch up to date")
    elif (what, verb) in (("pr", "checkout"), ("co", words[1] if len(words) > 1 else "")):
        call.guess("checks out another branch")
    elif what == "pr" and verb == "merge" and options.has("-d", "--delete-branch"):
        call.guess("changes the branch that is checked out")
    elif what in ("release", "run") and verb == "download":
        if options.value("-O", "--output"):
            if options.value("-O", "--output") != "-":
                call.write(options.value("-O", "--output"))
        else:
            call.tree(options.value("-D", "--dir") or ".", cannot_tell)
    elif what == "gist" and verb == "clone":
        call.tree(words[3] if len(words) > 3 else ".", cannot_tell)


def _aws(call) -> None:
    """``aws s3 cp|mv|sync``; an outfile at the end of ``s3api get-object``."""
    words = [word for word in call.words if not word.startswith("--")]
    if words[:1] in (["s3"], ["storage"]) or call.name == "gsutil":
        verb = next((word for word in words if word in ("cp", "mv", "sync", "rsync")), None)
        if verb is None or "--dryrun" in call.words or len(words) < 3:
            return
        options = split(words[words.index(verb) + 1 :], "")
        paths = [word for word in options.operands if word == "." or "/" in word or "." in word]
        if verb == "mv" and paths and "://" not in paths[0]:
            call.tree(paths[0])
        if len(paths) > 1 and "://" not in paths[-1] and paths[-1] != "-":
            if verb in ("sync", "rsync") or "--recursive" in call.words or options.has("-r", "-R"):
                call.tree(paths[-1], cannot_tell)
            else:
                put(call, paths[0], paths[-1])
    elif words[:2] in (["s3api", "get-object"], ["lambda", "invoke"]):
        call.write(words[-1])


def _kubectl(call) -> None:
    """What it changes is in a cluster, but for ``cp`` and what helm makes of charts."""
    words = [word for word in call.words if not word.startswith("-")]
    takes = ("--output-dir", "--destination", "--namespace", "--container", "--kubeconfig")
    options = split(call.words, "ncfoldu", takes)
    if call.name == "helm":
        verb = words[0] if words else ""
        if options.value("--output-dir"):
            call.tree(options.value("--output-dir"), cannot_tell)
        if verb == "create" and len(words) > 1:
            call.tree(words[1], cannot_tell)
        elif verb == "pull":
            call.tree(options.value("-d", "--destination") or ".", cannot_tell)
        elif verb in ("dependency", "dep") and words[1:2] != ["list"]:
            place = words[2] if len(words) > 2 else "."
            call.write(os.path.join(place, "Chart.lock"))
            call.tree(os.path.join(place, "charts"))
    elif words[:1] == ["cp"] and len(words) > 2 and not is_remote(words[2]):
        call.tree(words[2], cannot_tell)


RUN = {
    "kubectl": _kubectl,
    "oc": _kubectl,
    "helm": _kubectl,
    "curl": _curl,
    "wget": _wget,
    "scp": _scp,
    "sftp": _sftp,
    "aria2c": _aria2c,
    "gh": _gh,
    "http": _httpie,
    "https": _httpie,
    "xh": _httpie,
    "aws": _aws,
    "gsutil": _aws,
}

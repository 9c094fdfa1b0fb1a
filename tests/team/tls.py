"""TLS before a PostgreSQL server of the tests that may have been built without it."""

import contextlib
import selectors
import socket
import ssl
import struct
import subprocess
import threading
from pathlib import Path

ASKS_FOR_TLS = 80877103  # the client's first message: see "Message Formats" in PostgreSQL's manual
HELLO_BYTES = 8


class TlsFront:
    """A TLS listener on `port`, with a certificate, in front of the server at `server_port`."""

    def __init__(self, server_port: int, certificate: Path, key: Path):
        self._server_port = server_port
        self.show(certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def show(self, certificate: Path, key: Path) -> None:
        """Show another certificate on connections that begin from now on."""
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificate, key)

    def __enter__(self) -> "TlsFront":
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, plain: socket.socket) -> None:
        with contextlib.suppress(OSError), plain:  # a client that does not like the certificate goes
            while True:
                hello = plain.recv(HELLO_BYTES, socket.MSG_WAITALL)
                if len(hello) < HELLO_BYTES:
                    return
                if struct.unpack("!ii", hello)[1] == ASKS_FOR_TLS:
                    break
                plain.sendall(b"N")  # another kind of encryption
            plain.sendall(b"S")
            with (
                self._tls.wrap_socket(plain, server_side=True) as client,
                socket.create_connection(("127.0.0.1", self._server_port)) as server,
                selectors.DefaultSelector() as ready,
            ):
                ready.register(client, selectors.EVENT_READ, server)
                ready.register(server, selectors.EVENT_READ, client)
                while True:
                    for key, _ in ready.select():
                        data = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
                        while key.fileobj is client and client.pending():
                            data += client.recv(1 << 16)
                        if not data:
                            return
                        key.data.sendall(data)


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Return a new certificate, signed by itself, for a host of that name, and its key."""
    own, key = folder / f"{name}.crt", folder / f"{name}.key"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
         "-addext", f"subjectAltName=DNS:{name}", "-keyout", key, "-out", own], capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return own, key

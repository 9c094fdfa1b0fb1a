"""The faults have their effects, and can be undone."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from team.homes import wait_for

from .faults import FROM_SERVER, TO_SERVER, Network, ServerClock, SmallDisk, SwallowingProxy, stopped


@pytest.fixture
def echo() -> Iterator[tuple[int, list[bytes]]]:
    """A server that sends its input back, and its input so far."""
    got: list[bytes] = []

    def serve(client: socket.socket) -> None:
        with client:
            while data := client.recv(100):
                got.append(data)
                client.sendall(data)

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:  # the listener is closed
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1], got
        listener.shutdown(socket.SHUT_RDWR)


def asked(link: socket.socket, question: bytes, seconds: float) -> bytes:
    link.settimeout(seconds)
    if question:
        link.sendall(question)
    try:
        return link.recv(100)
    except TimeoutError:
        return b"nothing"


def test_a_link_that_is_cut_says_nothing_and_delivers_when_it_is_healed(echo: tuple[int, list[bytes]]) -> None:
    port, got = echo
    with SwallowingProxy("127.0.0.1", port) as proxy, socket.create_connection(("127.0.0.1", proxy.port)) as link:
        assert asked(link, b"one", 60) == b"one"
        proxy.cut()
        assert asked(link, b"two", 0.3) == b"nothing"
        assert got == [b"one"]
        proxy.heal()
        assert asked(link, b"", 60) == b"two"
        proxy.cut(FROM_SERVER)
        assert asked(link, b"three", 0.3) == b"nothing"
        wait_for(lambda: got == [b"one", b"two", b"three"])  # the question was carried out
        proxy.heal()
        proxy.cut(TO_SERVER)
        assert asked(link, b"", 60) == b"three"
        proxy.break_all()
        assert asked(link, b"", 60) == b""


def test_a_process_that_is_stopped_does_nothing_and_goes_on() -> None:
    counting = "import time\nfor n in range(10**6): print(n, flush=True); time.sleep(0.01)"
    child = subprocess.Popen([sys.executable, "-c", counting], stdout=subprocess.PIPE)
    assert child.stdout
    try:
        child.stdout.readline()
        with stopped(child.pid):
            while (
                Path(f"/proc/{child.pid}/stat").exists()
                and Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "Tt"
            ):
                time.sleep(0.01)
            os.set_blocking(child.stdout.fileno(), False)
            child.stdout.read()
            time.sleep(0.1)
            assert not child.stdout.read()
        os.set_blocking(child.stdout.fileno(), True)
        assert child.stdout.readline()
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()


@pytest.mark.skipif(bool(ServerClock.missing()), reason=ServerClock.missing())
def test_a_clock_is_set_for_one_program_only_and_while_it_runs(tmp_path: Path) -> None:
    clock = ServerClock(tmp_path)
    telling = "import sys, time\nfor line in sys.stdin: print(time.time(), time.clock_gettime(time.CLOCK_MONOTONIC), flush=True)"
    child = subprocess.Popen(
        [sys.executable, "-c", telling],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **clock.environment},
    )
    assert child.stdin and child.stdout

    def off() -> float:
        print(file=child.stdin, flush=True)
        seen, steady = map(float, child.stdout.readline().split())
        assert abs(steady - time.clock_gettime(time.CLOCK_MONOTONIC)) < 5
        return seen - time.time()

    assert abs(off()) < 5
    clock.move(1000)
    assert abs(off() - 1000) < 5
    clock.move(-3000)
    assert abs(off() + 2000) < 5
    child.stdin.close()
    child.wait()
    child.stdout.close()


@pytest.mark.skipif(bool(SmallDisk.missing()), reason=SmallDisk.missing())
def test_a_small_disk_is_filled_and_emptied(tmp_path: Path) -> None:
    disk = SmallDisk(tmp_path / "disk", 4)
    try:
        disk.fill()
        with pytest.raises(OSError):
            (disk.folder / "file").write_bytes(bytes(100_000))
        disk.empty()
        (disk.folder / "file").write_bytes(bytes(100_000))
    finally:
        disk.close()


@pytest.mark.skipif(bool(Network.missing()), reason=Network.missing())
def test_a_plug_that_is_pulled_cuts_one_machine_off(tmp_path: Path) -> None:
    network = Network(2)
    try:
        with socket.create_server((network.host, 0)) as listener:
            port = str(listener.getsockname()[1])
            trying = f"import socket\nsocket.create_connection(('{network.host}', {port}), 1)"

            def reaches(number: int) -> bool:
                return (
                    subprocess.run(
                        [*network.inside(number), sys.executable, "-S", "-c", trying], capture_output=True
                    ).returncode
                    == 0
                )

            assert reaches(0) and reaches(1)
            network.pull(0)
            assert not reaches(0) and reaches(1)
            network.plug_in(0)
            assert reaches(0)
    finally:
        network.close()

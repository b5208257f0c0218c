# SPDX-License-Identifier: MIT
"""What the soak starts: a server, and the certificates of those that speak TLS. Who is in a set-up is in setups.py and its like."""
import ctypes
import random
import shutil
import signal
import socket
import subprocess
import time

PATIENCE = 60  # Seconds. For what takes no time unless something is wrong, on a busy machine.
# Below those that connections are given by themselves: who dials a server that is down would take its port now and then.
PORTS = (10240, 32700)


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def free_port():
    while True:
        port = random.randint(*PORTS)
        try:
            for host in ("127.0.0.1", "127.0.0.2"):
                with socket.socket() as probe:
                    probe.bind((host, port))
            return port
        except OSError:
            pass


def await_it(what, condition):
    """Until it comes about. `what` says it, for who waits in vain."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"{what} did not come about within {PATIENCE} s")
        time.sleep(0.02)


class Certificates:
    """An authority, and one certificate for all servers of this machine. `problem` says why there is none."""

    def __init__(self, binary, folder):
        self.folder = folder
        self.authority, self.certificate, self.key = (folder / name for name in ("ca.pem", "server.pem", "server.key"))
        self.problem = self.find_problem(binary)
        if self.problem is None:
            self.make()

    def find_problem(self, binary):
        if shutil.which("openssl") is None:
            return "no openssl, which makes the certificates"
        # One that was built without TLS does not know the setting; one that was ends by the next.
        said = subprocess.run([binary, "--port", "0", "--tls-port", "0", "--no-such-setting", "1"], capture_output=True, text=True,
                              check=False, timeout=PATIENCE)
        return f"{binary} was built without TLS" if "tls-port" in said.stdout + said.stderr else None

    def make(self):
        self.folder.mkdir()
        names = self.folder / "names.txt"
        names.write_text("subjectAltName = IP:127.0.0.1, IP:127.0.0.2, DNS:soak.node, DNS:soak.slow, DNS:localhost\n")
        request, ca_key = self.folder / "request.pem", self.folder / "ca.key"
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        for words in (["req", "-x509", *new_key, "-keyout", ca_key, "-out", self.authority, "-days", "60", "-subj", "/CN=the soak"],
                      ["req", *new_key, "-keyout", self.key, "-out", request, "-subj", "/CN=a server of the soak"],
                      ["x509", "-req", "-in", request, "-CA", self.authority, "-CAkey", ca_key, "-CAcreateserial", "-days", "60",
                       "-extfile", names, "-out", self.certificate]):
            subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)

    def settings(self, port):
        return ["--tls-port", str(port), "--tls-cert-file", str(self.certificate), "--tls-key-file", str(self.key),
                "--tls-ca-cert-file", str(self.authority), "--tls-auth-clients", "no"]


class Server:
    """A redis-server that keeps what it has answered, over kills too: every write is in its file before its reply leaves. Only a
    machine that dies would lose some, so nothing waits for the disk."""

    def __init__(self, binary, folder, settings=(), certificates=None):
        """With certificates it has a second port, which speaks TLS."""
        self.binary, self.folder, self.port, self.settings = binary, folder, free_port(), list(settings)
        self.tls_port = free_port() if certificates else None
        if certificates:
            self.settings += certificates.settings(self.tls_port)
        # Where the others have it in their configuration: those that have certificates speak TLS with each other.
        self.known_port = self.tls_port or self.port
        folder.mkdir()
        self.socket = folder / "socket"
        self.process = None
        self.start()

    def command(self):
        return [self.binary, "--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", str(self.socket), "--dir",
                str(self.folder), "--save", "", "--appendonly", "yes", "--appendfsync", "no", "--maxmemory-policy", "noeviction",
                "--auto-aof-rewrite-min-size", "16mb", *self.settings]

    def start(self):
        with open(self.folder / "said.txt", "ab") as said:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                            preexec_fn=die_with_parent, start_new_session=True)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if self.ask("PING") == "PONG":
                    return
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server of {self.folder} does not come up; see said.txt there")
            time.sleep(0.02)

    def ask(self, *words):
        """One command over a connection of its own. Errors of the server come as text."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(b"*%d\r\n" % len(words) + b"".join(
                b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in map(str, words)))
            with connection.makefile("rb") as stream:
                return self.parse(stream)

    @staticmethod
    def parse(stream):
        line = stream.readline()
        if not line:
            raise ConnectionError("the server has closed")
        kind, rest = line[:1], line[1:].strip().decode()
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == "-1" else stream.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return [Server.parse(stream) for _ in range(int(rest))]
        return rest

    def channels(self):
        """That somebody has subscribed to, also of those that belong to slots, where the server has such."""
        answers = [self.ask("PUBSUB", kind) for kind in ("CHANNELS", "SHARDCHANNELS")]
        return [channel for answer in answers if isinstance(answer, list) for channel in answer
                if not channel.startswith("__sentinel__")]

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()

    def info(self, section):
        """As a dictionary of words."""
        return dict(line.split(":", 1) for line in self.ask("INFO", section).split("\r\n") if ":" in line)

    def is_in_step(self):
        """A replica: what its master has, it has, in memory, and in its file for the case that it is killed as a master."""
        link, file = self.info("replication"), self.info("persistence")
        return (link.get("master_link_status") == "up" and link.get("master_sync_in_progress") == "0" and
                file["aof_enabled"] == "1" and file["aof_rewrite_in_progress"] == "0" and file["aof_rewrite_scheduled"] == "0" and
                file["aof_last_bgrewrite_status"] == "ok" and file["loading"] == "0")

    def keys(self):
        found, cursor = [], "0"
        while True:
            cursor, some = self.ask("SCAN", cursor, "COUNT", "1000")
            found += some
            if cursor == "0":
                return sorted(set(found))

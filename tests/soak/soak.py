#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Several processes with both clients of holdfast, and clients of other languages where they are, take locks on real servers
that are tormented: on one server, on five for Redlocks, on a cluster, and where sentinels say. Every process writes down what it
believes; checker.py judges all of it while the soak runs and at its end. A seed decides which faults come and when, and what the
workers draw; whom they meet is the machine's. SIGINT ends it early, with all that comes at the end.

Everything is written to FOLDER: logs, summary.txt, what the servers said. Exits with 1 where there was a violation, with 2 where
the soak could not be done, with 77 where there is no server.
"""
import argparse
import fcntl
import heapq
import itertools
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import checker
from cluster import Cluster
from sentinels import SafeSentinels, Sentinels
from servers import PATIENCE, Certificates, die_with_parent
from setups import FiveServers, OneServer

LEASE = 1500  # Milliseconds.
PERMITS = 3
# A client that stood in the queue of a fair lock and died leaves the queue for its TTL.
FADING = 62
PEERS = ("redis_py", "redsync", "node_redlock", "redisson")
PHASES = {"one": OneServer, "five": FiveServers, "cluster": Cluster, "sentinels": Sentinels, "sentinels-tls": SafeSentinels}


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Log:
    """A file of events, as checker.py reads them. Any thread."""

    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def line(self, event, *words, at=None):
        text = " ".join(str(word) for word in (event, now() if at is None else at, *words))
        os.write(self.file, text.encode() + b"\n")


class Counter:
    """As CounterFile of the workers."""

    def __init__(self, path):
        self.name = path.name
        self.file = os.open(path, os.O_RDWR)

    def load(self):
        return struct.unpack("QQ", os.pread(self.file, 16, 0))

    def read(self, log, fence):
        if fence == 0:
            value, _ = self.load()
        else:
            fcntl.flock(self.file, fcntl.LOCK_EX)
            value, seen = self.load()
            if fence < seen:
                fcntl.flock(self.file, fcntl.LOCK_UN)
                log.line("refused", 0, self.name, fence)
                return None
            os.pwrite(self.file, struct.pack("QQ", value, fence), 0)
            fcntl.flock(self.file, fcntl.LOCK_UN)
        log.line("read", 0, self.name, value)
        return value

    def write(self, log, value, fence):
        log.line("write", 0, value)
        if fence == 0:
            os.pwrite(self.file, struct.pack("QQ", value, 0), 0)
            log.line("wrote", 0)
            return
        fcntl.flock(self.file, fcntl.LOCK_EX)
        if fence < self.load()[1]:
            fcntl.flock(self.file, fcntl.LOCK_UN)
            log.line("refused", 0, self.name, fence)
            return
        os.pwrite(self.file, struct.pack("QQ", value, fence), 0)
        at = now()
        fcntl.flock(self.file, fcntl.LOCK_UN)
        log.line("wrote", 0, at=at)


class Worker:
    """A process of ours; after a kill another one in its place."""

    def __init__(self, soak, program, role, options, may_die=True):
        self.soak, self.program, self.role, self.options, self.may_die = soak, program, role, options, may_die
        self.life = 0
        self.process = None
        self.stopped = False
        self.start()

    def start(self):
        self.life += 1
        self.name = f"{self.soak.phase}-{self.role}-{self.life}"
        command = [self.program, "--log", self.soak.folder / (self.name + ".log"), "--role", self.role, "--counters",
                   self.soak.folder / "counters", "--prefix", self.soak.phase + ".", "--lease", LEASE,
                   "--seed", self.soak.random_of(self.name).getrandbits(48), *self.options]
        with open(self.soak.folder / "said.txt", "ab") as said:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                            preexec_fn=die_with_parent, start_new_session=True)

    def await_start(self):
        """Before its first line it does not know SIGTERM yet."""
        log = self.soak.folder / (self.name + ".log")
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None and not (log.exists() and log.stat().st_size > 0):
            time.sleep(0.01)

    def end(self, how, why):
        """The log says of a death only what was waited for, so nothing of it comes later."""
        self.process.send_signal(how)
        try:
            status = self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status, why = self.process.wait(), "hung"
        self.soak.log.line("exit", self.name, status, why)

    def watch(self):
        """Has it ended by itself?"""
        status = self.process.poll()
        if status is None:
            return
        self.soak.log.line("exit", self.name, status, "unasked")
        self.start()


class Peer(threading.Thread):
    """A client of another language, told what to do by the protocol of tests/interop. It is believed to hold a lock only for as
    long as a careful user would believe it: from its answer, for its lease since it was asked, less the drift."""

    COMMANDS = {"mutex": ("lock", "unlock"), "reentrant": ("lock", "unlock"), "fenced": ("fenced-lock", "unlock"),
                "fair": ("fair-lock", "unlock"), "read": ("read-lock", "unlock-read"), "write": ("write-lock", "unlock-write"),
                "permit": ("permit", "release-permit")}

    def __init__(self, soak, name, program, kinds, servers):
        super().__init__(daemon=True)
        self.soak, self.name, self.program, self.kinds, self.servers = soak, name, program, kinds, servers
        self.random = soak.random_of(name)
        self.ending = False
        self.lives = 0
        self.process = None
        self.stopped = False

    def spawn(self):
        self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, bufsize=1, preexec_fn=die_with_parent, start_new_session=True)
        if self.ask("connect " + " ".join(str(server.port) for server in self.servers)) != "ok":
            raise OSError("not connected")

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise OSError("the peer has ended")
            if not line.startswith("* "):
                return line.strip()

    def run(self):
        while not self.ending:
            try:
                self.spawn()
                self.live()
            except (OSError, ValueError, IndexError):  # It was killed, or its server is away, or it says what no peer says.
                pass
            self.kill()
            time.sleep(0.2)

    def live(self):
        self.lives += 1
        log = Log(self.soak.folder / f"{self.soak.phase}-{self.name}-{self.lives}.log")
        log.line("start", 0, self.name)
        try:
            while not self.ending:
                self.round(log)
                time.sleep(self.random.uniform(0, 0.05))
        finally:
            log.line("end", 0)
            log.line("bye")

    def round(self, log):
        kind = self.random.choice(self.kinds)
        lock = self.soak.phase + "." + ("read_write" if kind in ("read", "write") else kind)
        take, give = self.COMMANDS[kind]
        wait = self.random.choice((0, 100, 300, 1000))
        asked = now()
        # Its waits are not ours to judge.
        log.line("ask", 0, lock, take, 3600 * checker.SECOND, at=asked)
        words = self.ask(f"{take} {lock} {LEASE} {wait}").split()
        if not words or words[0] != "granted":
            log.line("told", 0, words[0] if words else "nothing", 0)
            return
        until = asked + LEASE * 1_000_000 * 99 // 100 - 2_000_000
        fence = int(words[1]) if kind == "fenced" else 0
        at = now()
        log.line("got", 0, lock, {"read": "r", "permit": "p"}.get(kind, "x"), until, fence, at=at)
        counter = self.soak.counters.get(lock) if kind in ("mutex", "reentrant", "write", "fenced") else None
        value = counter.read(log, fence) if counter else None
        time.sleep(self.random.uniform(0, 0.02 if self.random.random() < 0.7 else LEASE / 4000))
        if value is not None and now() < until:
            counter.write(log, value + 1, fence)
        log.line("end", 0)
        self.ask(f"{give} {lock}" + (f" {words[1]}" if kind == "permit" else ""))

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()

    def end(self):
        self.ending = True
        self.join(timeout=PATIENCE)
        self.kill()
        self.join(timeout=PATIENCE)


class Soak:
    def __init__(self, options):
        self.options = options
        self.random = None  # Of the fault that comes next.
        self.enough = False
        self.folder = options.folder
        self.folder.mkdir(parents=True)
        (self.folder / "counters").mkdir()
        self.log = Log(self.folder / "soak.log")
        self.judge = checker.Judge()
        self.reader = checker.Reader(self.folder, self.judge)
        self.counters = {}
        self.certificates, self.without_tls = self.make_certificates()
        self.peers_used, self.peers_absent = set(), {}
        self.phase = ""
        self.told_at = time.monotonic()
        self.begun = time.monotonic()

    def make_certificates(self):
        """And a sentence on why there are none."""
        said = subprocess.run([self.options.worker, "--help"], capture_output=True, text=True, check=True).stdout
        if "--ca-file" not in said:
            return None, "the workers were built without it"
        made = Certificates(self.options.server, self.folder / "certificates")
        return (made, "") if made.problem is None else (None, made.problem)

    def random_of(self, what):
        """Of the seed and this, whatever else was drawn before."""
        return random.Random(f"{self.options.seed}/{self.phase}/{what}")

    # ---- A phase ----------------------------------------------------------------------------------------------------

    def run_phase(self, phase, seconds):
        self.phase = phase
        kinds = PHASES[phase].kinds
        for lock, counter in kinds.items():
            name = f"{phase}.{lock}"
            self.log.line("lock", name, PERMITS if lock == "permit" else 1)
            if counter is not None:
                (self.folder / "counters" / name).write_bytes(bytes(16))
                self.counters[name] = Counter(self.folder / "counters" / name)
                self.log.line("counter", name, counter)
            if counter == "fenced":
                self.log.line("stays", f"redisson_lock_token:{{{name}}}")
        for client in ("blocking", "asio"):
            self.log.line("answers", f"{phase}-{client}-", *sorted(PHASES[phase].answers))
        if "permit" in kinds:
            self.log.line("stays", f"{phase}.permit")
            # Permits whose time is over are taken back by whoever finds none free.
            self.log.line("stays", f"{{{phase}.permit}}:timeout")
        self.setup = PHASES[phase](self)
        self.servers = self.setup.servers
        self.proxy = subprocess.Popen([sys.executable, "-B", str(HERE / "proxy.py"), *map(str, self.setup.proxied())],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                      preexec_fn=die_with_parent,
                                      start_new_session=True)
        proxy_ports = self.proxy.stdout.readline().split()
        self.workers = self.start_workers(proxy_ports)
        self.peers = self.start_peers()
        self.plan_faults()
        try:
            self.torment(seconds)
        finally:
            self.undo_all()
        self.wind_up()

    def slow_clock(self):
        return "-80000" if self.options.canary == "slow_clock" else "-8000"

    def start_workers(self, proxy_ports):
        blocking, asio = self.setup.workers(proxy_ports)
        workers = [Worker(self, self.options.worker, "blocking-" + role, words, may_die) for role, words, may_die in blocking]
        if self.options.asio_worker:
            workers += [Worker(self, self.options.asio_worker, "asio-" + role, words, may_die) for role, words, may_die in asio]
        return workers

    def start_peers(self):
        kinds = {"redis_py": ["mutex"], "redsync": ["mutex"], "node_redlock": ["mutex"],
                 "redisson": ["reentrant", "fenced", "fair", "read", "write", "permit"]}
        if self.phase == "five":
            kinds = {name: kinds[name] for name in ("redsync", "node_redlock")}
        elif self.phase != "one":
            return []
        peers = []
        for name in kinds:
            program = self.options.peers / name / "peer" if self.options.peers else None
            if program is None or not program.exists():
                self.peers_absent[name] = True
            else:
                self.peers_used.add(name)
                peers.append(Peer(self, name, program, kinds[name], self.servers))
        for peer in peers:
            peer.start()
        return peers

    # ---- Faults -----------------------------------------------------------------------------------------------------

    def plan_faults(self):
        self.faults = [
            (20, self.stop_worker), (4, self.kill_worker), (6, self.stop_server), (3, self.kill_server), (2, self.restart_server),
            (10, self.kill_clients), (6, self.pause_clients), (8, self.flush_scripts), (10, self.reset),
            (4, self.hang), (5, self.slow),
        ]
        if self.peers:
            self.faults += [(3, self.stop_peer), (1, self.kill_peer)]
        self.faults += self.setup.faults()
        if self.options.canary == "deletes_key":
            self.faults.append((20, self.delete_key))
        self.undos = []  # (when, number, what)
        self.number = itertools.count()
        self.busy = set()

    def undo_after(self, seconds, what):
        heapq.heappush(self.undos, (time.monotonic() + seconds, next(self.number), what))

    def torment(self, seconds):
        end = time.monotonic() + seconds
        next_fault = time.monotonic() + 1
        weights, faults = zip(*self.faults)
        numbers = itertools.count()
        while (time.monotonic() < end or self.lacks_grants(end)) and not self.enough:
            if time.monotonic() >= next_fault:
                self.random = self.random_of(f"fault {next(numbers)}")
                next_fault += self.random.expovariate(1 / self.options.pause)
                self.random.choices(faults, weights)[0]()
            while self.undos and self.undos[0][0] <= time.monotonic():
                heapq.heappop(self.undos)[2]()
            for worker in self.workers:
                worker.watch()
            self.tell()
            soon = min([next_fault, end] + [undo[0] for undo in self.undos[:1]])
            time.sleep(min(max(soon - time.monotonic(), 0.02), 0.25))

    def lacks_grants(self, end):
        """On a busy machine a short phase may be over before each lock was granted: then there is some time more."""
        self.reader.read()
        mine = [lock for name, lock in self.judge.locks.items() if name.startswith(self.phase + ".")]
        return time.monotonic() < end + PATIENCE and any(lock.grants == 0 for lock in mine)

    def undo_all(self):
        while self.undos:
            heapq.heappop(self.undos)[2]()
            time.sleep(0.01)  # One that looks again and again is not the only thing that runs here.

    def pick(self, things):
        """One that no other fault has in its hands, or None."""
        free = [thing for thing in things if thing not in self.busy]
        return self.random.choice(free) if free else None

    def stop_worker(self):
        worker = self.pick(self.workers)
        if worker is None or worker.process.poll() is not None:
            return
        self.log.line("fault", "stop_worker", worker.role)
        self.log.line("stop", worker.name)
        worker.process.send_signal(signal.SIGSTOP)
        self.busy.add(worker)

        def go_on():
            worker.process.send_signal(signal.SIGCONT)
            self.log.line("cont", worker.name)
            self.busy.discard(worker)
        self.undo_after(self.random.choice((0.05, 0.3, 1, 2, 4)) * self.random.uniform(0.5, 1), go_on)

    def kill_worker(self):
        worker = self.pick([it for it in self.workers if it.may_die])
        if worker is None:
            return
        self.log.line("fault", "kill_worker", worker.role)
        worker.end(signal.SIGKILL, "killed")
        worker.start()

    def stop_server(self):
        self.stop_one("stop_server", self.servers)

    def stop_one(self, fault, servers):
        server = self.pick(servers)
        if server is None:
            return
        self.log.line("fault", fault, server.folder.name)
        server.process.send_signal(signal.SIGSTOP)
        self.busy.add(server)

        def go_on():
            server.process.send_signal(signal.SIGCONT)
            self.busy.discard(server)
        self.undo_after(self.random.choice((0.05, 0.3, 2)) * self.random.uniform(0.5, 1), go_on)

    def take_down(self, fault, servers, how=signal.SIGKILL):
        server = self.pick(servers)
        if server is None:
            return
        self.log.line("fault", fault, server.folder.name)
        server.kill(how)
        self.busy.add(server)

        def come_back():
            server.start()
            self.busy.discard(server)
        self.undo_after(self.random.uniform(0, 1.5), come_back)

    def kill_server(self):
        self.take_down("kill_server", self.servers)

    def restart_server(self):
        self.take_down("restart_server", self.servers, signal.SIGTERM)

    def command(self, fault, *words, of=None):
        server = self.pick(of or self.servers)
        if server is None:
            return
        self.log.line("fault", fault, server.folder.name)
        try:
            server.ask(*words)
        except OSError:
            pass

    def kill_clients(self):
        self.command("kill_clients", "CLIENT", "KILL", "TYPE", self.random.choice(("normal", "normal", "pubsub")), "SKIPME", "yes")

    def pause_clients(self):
        self.command("pause_clients", "CLIENT", "PAUSE", self.random.randrange(20, 1200), self.random.choice(("ALL", "WRITE")))

    def flush_scripts(self):
        self.command("flush_scripts", "SCRIPT", "FLUSH", self.random.choice(("SYNC", "ASYNC")))

    def delete_key(self):
        names = [name for name in ("mutex", "reentrant", "fenced", "{pair}.left", "{pair}.right") if name in self.setup.kinds]
        self.command("delete_key", "DEL", f"{self.phase}.{self.random.choice(names)}")

    def tell_proxy(self, fault, word, seconds):
        if self.proxy in self.busy:
            return
        self.log.line("fault", fault, "proxy")
        self.proxy.stdin.write(word + "\n")
        if seconds:
            self.busy.add(self.proxy)

            def flow():
                self.proxy.stdin.write("flow\n")
                self.busy.discard(self.proxy)
            self.undo_after(seconds, flow)

    def reset(self):
        self.tell_proxy("reset", f"reset {self.random.choice((1, 2, 3))}", 0)

    def hang(self):
        self.tell_proxy("hang", "hang", self.random.uniform(0.1, 4))

    def slow(self):
        self.tell_proxy("slow", "slow", self.random.uniform(0.5, 4))

    def stop_peer(self):
        peer = self.pick(self.peers)
        if peer is None or peer.process is None or peer.process.poll() is not None:
            return
        self.log.line("fault", "stop_peer", peer.name)
        process = peer.process
        process.send_signal(signal.SIGSTOP)
        self.busy.add(peer)

        def go_on():
            process.send_signal(signal.SIGCONT)
            self.busy.discard(peer)
        self.undo_after(self.random.uniform(0.1, 3), go_on)

    def kill_peer(self):
        peer = self.pick(self.peers)
        if peer is None:
            return
        self.log.line("fault", "kill_peer", peer.name)
        peer.kill()

    # ---- The end of a phase -----------------------------------------------------------------------------------------

    def wind_up(self):
        for worker in self.workers:
            worker.await_start()
            worker.process.send_signal(signal.SIGTERM)
        for worker in self.workers:
            worker.end(signal.SIGTERM, "finished")
        for peer in self.peers:
            peer.end()
        self.proxy.stdin.close()
        self.proxy.wait()
        self.look_for_leftovers()
        for name, counter in self.counters.items():
            if name.startswith(self.phase + "."):
                self.log.line("final", name, counter.load()[0])
        self.reader.read()
        for server in (*self.servers, *self.setup.others()):
            server.kill()

    def look_for_leftovers(self):
        if self.options.canary == "leaves_key":
            self.servers[0].ask("SET", f"{self.phase}.forgotten", "1")
        # The short form does not wait for the queues of those that died.
        if self.options.short and "fair" in self.setup.kinds:
            self.log.line("stays", f"holdfast_queue:{{{self.phase}.fair}}")
        self.reader.read()
        end = time.monotonic() + (4 if self.options.short else FADING + 8)
        keepers = self.setup.keepers()
        while True:
            keys = [(server, key) for server in keepers for key in server.keys()]
            channels = [(server, channel) for server in self.servers for channel in server.channels()]
            unexpected = [key for _, key in keys if key not in self.judge.stays]
            if (not unexpected and not channels) or time.monotonic() > end:
                break
            time.sleep(0.2)
        for server, key in keys:
            self.log.line("left", server.folder.name, key)
        for server, channel in channels:
            self.log.line("hears", server.folder.name, channel)

    # ---- What it says -----------------------------------------------------------------------------------------------

    def tell(self, always=False):
        if not always and time.monotonic() - self.told_at < self.options.every:
            return
        self.told_at = time.monotonic()
        self.reader.read()
        self.judge.judge(now() - checker.LINES_LATE_MAX)
        judge = self.judge
        print(f"{int(self.told_at - self.begun):6d} s  {self.phase:9s}  {judge.count_grants():9d} grants  "
              f"{sum(judge.faults.values()):6d} faults  {sum(judge.violations.values()):4d} violations", flush=True)

    def summary(self):
        self.reader.read()
        self.judge.finish()
        yield f"./dev soak {self.options.hours:g} --seed {self.options.seed}" + (
            f" --canary {self.options.canary}" if self.options.canary else "")
        yield f"{time.monotonic() - self.begun:.0f} s; {self.version()}"
        # One that does not come up is no client that took part.
        used = [name + ("" if self.judge.grants_by_role[name] else " (granted nothing)") for name in sorted(self.peers_used)]
        yield "clients of other languages: " + (", ".join(used) or "none") + (
            "; absent: " + ", ".join(self.peers_absent) if self.peers_absent else "")
        yield "TLS: " + (f"none: {self.without_tls}" if self.without_tls else "a part of the workers, and all of sentinels-tls")
        yield from self.judge.figures()

    def version(self):
        said = subprocess.run([self.options.server, "--version"], capture_output=True, text=True, check=True).stdout.split()
        number = next((word[2:] for word in said if word.startswith("v=")), "?")
        return pathlib.Path(self.options.server).name + " " + number


def server_binary():
    """As the live tests have it, but one."""
    for name in os.environ.get("HOLDFAST_SERVERS", "redis-server:valkey-server").split(":"):
        if name and shutil.which(name) is not None:
            return name
    return "redis-server"


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hours", type=float, metavar="HOURS",
                        help="how long, 0.1 for example; shared by all phases")
    parser.add_argument("--seed", type=int, default=None, help="of the faults and of the workers' choices")
    parser.add_argument("--folder", type=pathlib.Path,
                        help="where everything is written; must not be there. Without it one that goes where nothing was wrong")
    parser.add_argument("--worker", required=True, help="the program soak_worker")
    parser.add_argument("--asio-worker", help="the program soak_asio_worker")
    parser.add_argument("--peers", type=pathlib.Path, help="the folder that tests/interop/prepare.sh has filled")
    parser.add_argument("--server", default=server_binary(), help="the server's binary")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two faults, in the mean")
    parser.add_argument("--every", type=float, default=60, help="seconds between two lines of progress")
    parser.add_argument("--short", action="store_true", help="few processes, and no long wait for leftovers")
    parser.add_argument("--phase", choices=PHASES, action="append", help="only this one, or these")
    parser.add_argument("--canary", choices=("slow_clock", "deletes_key", "leaves_key", "moves_without_data", "splits_brain"),
                        help="break what holdfast's promise asks for, and see the checker complain")
    options = parser.parse_args()
    if not 0 < options.hours <= 1000:
        parser.error("HOURS must be above 0 and at most 1000")
    if options.pause <= 0 or options.every <= 0:
        parser.error("--pause and --every must be above 0")
    options.passing = options.folder is None
    if options.passing:
        options.folder = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-soak.")) / "soak"
    if options.folder.exists():
        parser.error(f"{options.folder} is there already")
    if options.seed is None:
        options.seed = int(time.time())
    options.folder = options.folder.resolve()
    return options


def main():
    options = read_arguments()
    if shutil.which(options.server) is None:
        print(f"skipped: no {options.server}", file=sys.stderr)
        return 77
    soak = Soak(options)
    signal.signal(signal.SIGINT, lambda *_: setattr(soak, "enough", True))
    phases = [name for name in PHASES if name in (options.phase or PHASES) and (soak.certificates or name != "sentinels-tls")]
    if not phases:
        print(f"skipped: no TLS: {soak.without_tls}", file=sys.stderr)
        return 77
    try:
        for name in phases:
            if not soak.enough:
                soak.run_phase(name, options.hours * 3600 / len(phases))
    except (OSError, RuntimeError) as error:
        print(f"soak: {error!r}; checker.py judges what there is in {options.folder}", file=sys.stderr)
        return 2
    soak.tell(always=True)
    text = "\n".join(soak.summary()) + "\n"
    (options.folder / "summary.txt").write_text(text)
    print(text, end="")
    if soak.judge.violations:
        print(f"the logs are in {options.folder}", file=sys.stderr)
        return 1
    if options.passing:
        shutil.rmtree(options.folder.parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())

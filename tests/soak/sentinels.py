# SPDX-License-Identifier: MIT
"""A master, two replicas and three sentinels for the soak, and faults that nothing is lost by. No sentinel fails over by itself;
when one is told to, nobody may write to the old master from before until it is a replica."""
import time

from servers import Server, await_it
from setups import ALL_KINDS, ANSWERS

REPLICAS = 2
SENTINELS = 3
SERVICE = "mymaster"
# Everybody names everybody so; each worker finds the name its own way.
HOST = "localhost"
# Longer than any server is stopped or away. Milliseconds.
DOWN_AFTER = 60000
# After it a fail-over that stands still is given up, by the sentinel and by us. Seconds.
FAILOVER_TIMEOUT = 20
TLS_AMONG_THEMSELVES = ("--tls-replication", "yes")


class Data(Server):
    """A server that knows after a restart whom it followed."""

    def __init__(self, soak, node, follows, certificates):
        self.follows = follows
        super().__init__(soak.options.server, soak.folder / f"{soak.phase}-server-{node}", [
            "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1", "--replica-announce-ip", HOST,
            *(TLS_AMONG_THEMSELVES if certificates else ())], certificates)

    def ask(self, *words):
        """Twice where need be: sentinels that fail over have the servers close whatever connections they have."""
        try:
            return super().ask(*words)
        except ConnectionError:
            return super().ask(*words)

    def command(self):
        return super().command() + (["--replicaof", HOST, str(self.follows.known_port)] if self.follows else [])


class Sentinel(Server):
    """Its configuration is a file that it writes to, so it knows after a restart what it knew."""

    def __init__(self, soak, number, master, certificates):
        self.master = master
        super().__init__(soak.options.server, soak.folder / f"{soak.phase}-sentinel-{number}",
                         TLS_AMONG_THEMSELVES if certificates else (), certificates)

    def command(self):
        path = self.folder / "sentinel.conf"
        if not path.exists():
            words = iter(self.settings)  # --NAME VALUE ...
            path.write_text(
                "".join(f"{name.removeprefix('--')} {value}\n" for name, value in zip(words, words)) +
                f"port {self.port}\nbind 127.0.0.1\nunixsocket {self.socket}\ndir {self.folder}\nprotected-mode no\n"
                "sentinel resolve-hostnames yes\nsentinel announce-hostnames yes\n"
                f"sentinel monitor {SERVICE} {HOST} {self.master.known_port} 2\n"
                f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER}\n"
                f"sentinel failover-timeout {SERVICE} {FAILOVER_TIMEOUT * 1000}\nsentinel parallel-syncs {SERVICE} {REPLICAS}\n")
        return [self.binary, str(path), "--sentinel"]

    def master_port(self):
        answer = self.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
        return int(answer[1]) if isinstance(answer, list) else None

    def knows_all(self):
        """The master, both replicas with what it has, and the other sentinels, and nothing is wrong with any."""
        said = self.ask("SENTINEL", "MASTER", SERVICE)
        master = dict(zip(said[::2], said[1::2]))
        replicas = [dict(zip(words[::2], words[1::2])) for words in self.ask("SENTINEL", "REPLICAS", SERVICE)]
        return (master["flags"] == "master" and master["num-other-sentinels"] == str(SENTINELS - 1) and
                len(replicas) == REPLICAS and all(replica["flags"] == "slave" and replica["master-link-status"] == "ok" and
                    replica["master-port"] == master["port"] for replica in replicas))


class Sentinels:
    kinds = ALL_KINDS
    answers = ANSWERS | {"read_only", "stale_replica"}
    safe = False

    def __init__(self, soak):
        self.soak = soak
        certificates = soak.certificates if self.safe else None
        first = Data(soak, 0, None, certificates)
        self.servers = [first] + [Data(soak, node + 1, first, certificates) for node in range(REPLICAS)]
        self.sentinels = [Sentinel(soak, number, first, certificates) for number in range(SENTINELS)]
        await_it("a master with replicas and sentinels", self.is_well)

    # ---- What they say ----------------------------------------------------------------------------------------------

    def masters(self):
        return [server for server in self.servers if server.ask("ROLE")[0] == "master"]

    def is_well(self):
        """There is one master, all sentinels name it, and each replica is in step with it."""
        try:
            masters = self.masters()
            return (len(masters) == 1 and all(server.is_in_step() for server in self.servers if server is not masters[0]) and
                    all(it.master_port() == masters[0].known_port and it.knows_all() for it in self.sentinels))
        except (OSError, KeyError):
            return False

    # ---- What the soak asks of a set-up: see setups.py ----------------------------------------------------------------

    def proxied(self):
        return [f"127.0.0.2:{server.known_port}" for server in (*self.servers, *self.sentinels)]

    def keepers(self):
        await_it("a master with replicas and sentinels", self.is_well)
        return self.masters()

    def others(self):
        return self.sentinels

    def faults(self):
        return [(6, self.fail_over), (4, self.stop_sentinel), (2, self.kill_sentinel), (2, self.kill_sentinel_clients)]

    def workers(self, _):
        hosts = ",".join(f"{HOST}:{sentinel.known_port}" for sentinel in self.sentinels)
        url = ["--url", f"{'rediss' if self.safe else 'redis'}-sentinel://{hosts}/{SERVICE}"]
        if self.safe:
            url += ["--ca-file", self.soak.certificates.authority]
        slow_clock = self.soak.slow_clock()
        # Some are told of a fail-over, others find out.
        blocking = [
            ("heard", url + ["--watch", "--keep", "watchdog"], False),
            ("unheard", url + ["--spoilt-names", "--keep", "watchdog"], True),
            ("slow-clock", url + ["--keep", "watchdog", "--rate", slow_clock], False),
            ("names", url + ["--watch", "--slow-names", "--keep", "watchdog"], True),
            ("fast-clock", url + ["--watch", "--spoilt-names", "--keep", "tend", "--rate", "8000"], False),
            ("spoilt", url + ["--spoilt-names", "--keep", "renew"], True),
        ]
        asio = [
            ("heard", url + ["--watch", "--actors", "4"], False),
            ("slow-clock", url + ["--watch", "--spoilt-names", "--actors", "8", "--rate", slow_clock], True),
            ("names", url + ["--slow-names", "--actors", "4"], True),
        ]
        if self.safe:
            blocking, asio = ([(role + "-tls", words, may_die) for role, words, may_die in some] for some in (blocking, asio))
        return (blocking[:3], asio[:1]) if self.soak.options.short else (blocking, asio)

    # ---- Faults -----------------------------------------------------------------------------------------------------

    def fail_over(self):
        """Nobody writes to the old master any more, then both replicas have all of it, then one of them takes over. As soon as the
        sentinels name it, the old one is made a replica: by themselves they would leave it a master for some ten seconds."""
        everybody = (*self.servers, *self.sentinels)
        if any(it in self.soak.busy for it in everybody) or not self.is_well():
            return
        old = self.masters()[0]
        self.soak.busy.update(everybody)
        self.soak.log.line("fault", "fail_over", old.folder.name)
        splits = self.soak.options.canary == "splits_brain"
        if not splits:
            old.ask("CLIENT", "PAUSE", 1000 * 3600, "WRITE")
        sentinel = self.soak.random.choice(self.sentinels)
        replicas = [server for server in self.servers if server is not old]
        given_up = time.monotonic() + 2 * FAILOVER_TIMEOUT

        def await_replicas():
            written = int(old.info("replication")["master_repl_offset"])
            if any(int(it.info("replication")["slave_repl_offset"]) < written for it in replicas):
                self.soak.undo_after(0.02, await_replicas)
                return
            said = sentinel.ask("SENTINEL", "FAILOVER", SERVICE)
            if said == "OK":
                await_new()
            else:  # It has not forgotten the last one yet.
                go_on()

        def await_new():
            new = next((it for it in replicas if it.ask("ROLE")[0] == "master"), None)
            if new is None and time.monotonic() > given_up:
                raise RuntimeError("the sentinels do not fail over")
            if new is None or any(it.master_port() != new.known_port for it in self.sentinels):
                self.soak.undo_after(0.02, await_new)
                return
            new.follows = None
            for server in self.servers:
                if server is not new:
                    server.follows = new
                    if not splits:
                        server.ask("REPLICAOF", HOST, new.known_port)
            go_on()

        def go_on():
            old.ask("CLIENT", "UNPAUSE")
            await_well()

        def await_well():
            if self.is_well():
                self.soak.busy.difference_update(everybody)
            else:
                self.soak.undo_after(0.05, await_well)
        await_replicas()

    def stop_sentinel(self):
        self.soak.stop_one("stop_sentinel", self.sentinels)

    def kill_sentinel(self):
        self.soak.take_down("kill_sentinel", self.sentinels)

    def kill_sentinel_clients(self):
        self.soak.command("kill_sentinel_clients", "CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes", of=self.sentinels)


class SafeSentinels(Sentinels):
    """All of it over TLS: a sentinel names one port of a master to everybody, whatever who asks speaks."""

    safe = True

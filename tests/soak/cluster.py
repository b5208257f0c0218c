# SPDX-License-Identifier: MIT
"""A cluster for the soak: three masters, a replica of each, and faults that no node loses data by. Its nodes never fail over by
themselves: a master that has died comes back with its data. They do when they are told to, by agreement."""
import binascii
import time

from servers import Server, await_it, free_port
from setups import ALL_KINDS, ANSWERS

MASTERS = 3
SLOTS = 16384
# Longer than any node is stopped or away. Milliseconds.
NODE_TIMEOUT = 20000
# What a node gives a fail-over by agreement, and a second more. Seconds.
FAILOVER_TIMEOUT = 6


def slot_of(name):
    """Of a name without braces, or of what is within them."""
    return binascii.crc_hqx(name.partition("{")[2].partition("}")[0].encode() or name.encode(), 0) % SLOTS


class Cluster:
    kinds = ALL_KINDS
    answers = ANSWERS | {"try_again", "cluster_down", "read_only", "stale_replica"}

    def __init__(self, soak):
        self.soak = soak
        self.names = [f"{soak.phase}.{lock}" for lock in self.kinds]
        self.servers = []
        buses = []
        # Each node tells its clients the ports that speak what they speak.
        among_themselves = ["--tls-cluster", "yes", "--tls-replication", "yes"] if soak.certificates else []
        for node in range(2 * MASTERS):
            buses.append(free_port())
            # Everybody is sent to a name: each worker finds its nodes its own way there.
            self.servers.append(Server(soak.options.server, soak.folder / f"{soak.phase}-server-{node}", [
                "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", str(buses[-1]),
                "--cluster-node-timeout", str(NODE_TIMEOUT), "--cluster-replica-no-failover", "yes",
                "--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no",
                "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1", "--cluster-announce-hostname", "soak.node",
                "--cluster-preferred-endpoint-type", "hostname", *among_themselves], soak.certificates))
        self.ids = [server.ask("CLUSTER", "MYID") for server in self.servers]
        for node, server in enumerate(self.servers[:MASTERS]):
            self.tell(server, "ADDSLOTSRANGE", node * SLOTS // MASTERS, (node + 1) * SLOTS // MASTERS - 1)
            self.tell(server, "SET-CONFIG-EPOCH", node + 1)
        # Each meets all others: by gossip it would take seconds.
        for node, server in enumerate(self.servers):
            for other in self.servers[:node]:
                self.tell(other, "MEET", "127.0.0.1", server.known_port, buses[node])
        await_it("the cluster", lambda: all(self.knows_all(server) for server in self.servers))
        for node, server in enumerate(self.servers[MASTERS:]):
            self.tell(server, "REPLICATE", self.ids[node])
        await_it("the cluster", self.is_well)

    @staticmethod
    def tell(server, *words):
        said = server.ask("CLUSTER", *words)
        if said != "OK":
            raise RuntimeError(f"CLUSTER {words}: {said}")

    # ---- What the nodes say -----------------------------------------------------------------------------------------

    @staticmethod
    def view(server):
        """Of all nodes, as this one sees them, by their ids: flags, master, epoch of a master, whether it is connected, slots."""
        nodes = {}
        for line in server.ask("CLUSTER", "NODES").splitlines():
            words = line.split()
            flags = frozenset(words[2].split(",")) - {"myself", "nofailover"}
            slots = tuple(word for word in words[8:] if not word.startswith("["))
            nodes[words[0]] = (flags, words[3], words[6] if "master" in flags else "", words[7], slots)
        return nodes

    def knows_all(self, server):
        nodes = self.view(server).values()
        return len(nodes) == 2 * MASTERS and all(node[3] == "connected" and node[0] <= {"master", "slave"} for node in nodes)

    def agrees(self):
        """All nodes see all of it in the same way, and nothing is wrong with any."""
        first = self.view(self.servers[0])
        return all(self.knows_all(server) and self.view(server) == first and
                   "cluster_state:ok" in server.ask("CLUSTER", "INFO") for server in self.servers)

    def masters(self):
        return [server for server in self.servers if server.ask("ROLE")[0] == "master"]

    def is_well(self):
        try:
            return self.agrees() and all(server.is_in_step() for server in self.servers if server.ask("ROLE")[0] == "slave")
        except OSError:
            return False

    def id_of(self, server):
        return self.ids[self.servers.index(server)]

    def master_of(self, slot):
        for node, (_, _, _, _, slots) in self.view(self.servers[0]).items():
            for part in slots:
                first, _, last = part.partition("-")
                if int(first) <= slot <= int(last or first):
                    return self.servers[self.ids.index(node)]
        raise RuntimeError(f"nobody has slot {slot}")

    # ---- What the soak asks of a set-up: see setups.py ----------------------------------------------------------------

    def proxied(self):
        return [f"127.0.0.2:{port}" for server in self.servers for port in (server.port, server.tls_port) if port]

    def keepers(self):
        await_it("a well cluster", self.is_well)
        return self.masters()

    def others(self):
        return []

    def faults(self):
        return [(12, self.move_slot), (5, self.fail_over)]

    def workers(self, _):
        def url(lock):
            hosts = ",".join(f"soak.node:{server.port}" for server in self.servers)
            return ["--url", f"redis-cluster://{hosts}/{self.soak.phase}.{lock}"]

        def safe(lock):
            hosts = ",".join(f"soak.node:{server.tls_port}" for server in self.servers)
            return ["--url", f"rediss-cluster://{hosts}/{self.soak.phase}.{lock}", "--ca-file", self.soak.certificates.authority]
        slow_clock = self.soak.slow_clock()
        branches = url("mutex") + ["--branches"]
        # A client of one slot takes the lock that is there.
        blocking = [
            ("slot", url("announced") + ["--only", "announced", "--keep", "watchdog"], False),
            ("branches", branches + ["--keep", "watchdog"], False),
            ("branches-slow-clock", branches + ["--spoilt-names", "--keep", "watchdog", "--rate", slow_clock], True),
            ("slot-spoilt", url("fair") + ["--only", "fair", "--spoilt-names", "--keep", "tend"], True),
            ("slot-names", url("read_write") + ["--only", "read_write", "--slow-names", "--keep", "renew"], True),
            ("branches-names", branches + ["--slow-names", "--keep", "watchdog"], True),
            ("branches-fast-clock", branches + ["--keep", "tend", "--rate", "8000"], False),
            ("branches-spoilt", branches + ["--spoilt-names", "--keep", "renew"], True),
        ]
        asio = [
            ("direct", url("fenced") + ["--actors", "4"], False),
            ("slow-clock", url("mutex") + ["--spoilt-names", "--actors", "8", "--rate", slow_clock], True),
            ("names", url("permit") + ["--slow-names", "--actors", "4"], True),
        ]
        if self.soak.options.short:
            blocking, asio = blocking[:3], asio[:1]
        if self.soak.certificates:
            pair = ["--only", "{pair}.left", "--only", "{pair}.right"]
            blocking += [("branches-tls", safe("mutex") + ["--branches", "--keep", "watchdog"], False)]
            asio += [("tls", safe("reentrant") + ["--actors", "4"], False)]
            if not self.soak.options.short:
                blocking += [("slot-tls", safe("{pair}.left") + pair + ["--spoilt-names", "--keep", "renew"], True),
                             ("branches-tls-spoilt", safe("mutex") + ["--branches", "--spoilt-names", "--keep", "tend"], True)]
                asio += [("tls-spoilt", safe("fair") + ["--spoilt-names", "--actors", "4"], True)]
        return blocking, asio

    # ---- Faults -----------------------------------------------------------------------------------------------------

    def take_all(self):
        """For a fault that each node has a part in: none is stopped, killed or paused meanwhile. False: it is not the time."""
        if any(server in self.soak.busy for server in self.servers) or not self.is_well():
            return False
        self.soak.busy.update(self.servers)
        return True

    def give_back(self):
        self.soak.busy.difference_update(self.servers)

    def when(self, condition, what):
        """Looks again and again, while other faults go on."""
        def look():
            if condition():
                what()
            else:
                self.soak.undo_after(0.02, look)
        look()

    def move_slot(self):
        """Of a lock, with its data, key by key, to another master. It may stand still half-way for a while."""
        if not self.take_all():
            return
        random = self.soak.random
        name = random.choice(self.names)
        slot = slot_of(name)
        source = self.master_of(slot)
        target = random.choice([server for server in self.masters() if server is not source])
        self.soak.log.line("fault", "move_slot", name, source.folder.name, target.folder.name)
        pause = random.choice((0, 0, 0.02, 0.1, 0.5))
        if self.soak.options.canary == "moves_without_data":
            for key in source.ask("CLUSTER", "GETKEYSINSLOT", slot, 100):
                source.ask("DEL", key)
        self.tell(target, "SETSLOT", slot, "IMPORTING", self.id_of(source))
        self.tell(source, "SETSLOT", slot, "MIGRATING", self.id_of(target))

        def step():
            keys = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 100)
            if not keys:
                for server in (target, source):
                    self.tell(server, "SETSLOT", slot, "NODE", self.id_of(target))
                self.when(self.agrees, self.give_back)
                return
            said = source.ask("MIGRATE", "127.0.0.1", target.known_port, random.choice(keys), 0, 5000)
            if said not in ("OK", "NOKEY"):
                raise RuntimeError(f"MIGRATE: {said}")
            self.soak.undo_after(pause * random.random(), step)
        self.soak.undo_after(pause, step)

    def fail_over(self):
        """By agreement: the master waits until its replica has everything."""
        if not self.take_all():
            return
        replica = self.soak.random.choice([server for server in self.servers if server.ask("ROLE")[0] == "slave"])
        self.soak.log.line("fault", "fail_over", replica.folder.name)
        self.tell(replica, "FAILOVER")
        again = time.monotonic() + FAILOVER_TIMEOUT

        def is_over():
            nonlocal again
            if replica.ask("ROLE")[0] == "master":
                return self.is_well()
            if time.monotonic() > again and self.is_well():  # It lost its master's connection in the midst of it, and gave up.
                self.tell(replica, "FAILOVER")
                again = time.monotonic() + FAILOVER_TIMEOUT
            return False
        self.when(is_over, self.give_back)

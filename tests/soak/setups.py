# SPDX-License-Identifier: MIT
"""The servers of a phase of the soak, what is locked there, and who goes there how. A cluster has a file of its own."""
from servers import Server

NODES = 5

# By lock: what its counter does.
ALL_KINDS = {"mutex": "plain", "announced": "fenced", "reentrant": "plain", "fenced": "fenced", "fair": "fenced",
             "read_write": "plain", "permit": None, "{pair}.left": "plain", "{pair}.right": "plain"}
REDLOCKS = {"mutex": "plain", "announced": "fenced", "reentrant": "plain", "fenced": "fenced"}


# What a call may be told where servers stop, die and come back, and connections break.
ANSWERS = {"ok", "done", "lock_busy", "lock_lost", "cancelled", "too_many_requests", "not_connected", "connect_failed",
           "name_not_resolved", "transport_closed", "timed_out", "loading", "outcome_unknown"}


class OneServer:
    """One, or five for Redlocks, which are found by their addresses."""

    kinds = ALL_KINDS
    answers = ANSWERS
    nodes = 1

    def __init__(self, soak):
        self.soak = soak
        self.servers = [Server(soak.options.server, soak.folder / f"{soak.phase}-server-{node}", certificates=soak.certificates)
                        for node in range(self.nodes)]

    def proxied(self):
        """What the proxy is told: the servers' ports, and those for TLS."""
        return [server.port for server in self.servers] + [server.tls_port for server in self.servers if server.tls_port]

    def keepers(self):
        """Who has what is left in the end."""
        return self.servers

    def others(self):
        """Processes that are no servers of locks."""
        return []

    def faults(self):
        """Beside those of every phase: weights, and functions."""
        return []

    def workers(self, proxy_ports):
        """Two lists, of the blocking client and of Asio loops: a role, words for the worker, whether it may be killed. Those that
        may not live long enough for their memory to be compared."""
        def urls(form, ports):
            return [word for port in ports for word in ("--url", form.format(port))]
        direct = urls("redis://127.0.0.1:{}", [server.port for server in self.servers])
        spoilt = urls("redis://127.0.0.1:{}", proxy_ports[:self.nodes])
        named = urls("redis://soak.slow:{}", [server.port for server in self.servers]) + ["--slow-names"]
        local = [word for server in self.servers for word in ("--url", f"unix://{server.socket}")]
        slow_clock = self.soak.slow_clock()
        blocking = [
            ("direct", direct + ["--keep", "watchdog"], False),
            ("spoilt", spoilt + ["--keep", "renew"], True),
            ("slow-clock", direct + ["--keep", "watchdog", "--rate", slow_clock], False),
            ("names", named + ["--keep", "watchdog"], True),
            ("local", local + ["--keep", "tend"], True),
            ("fast-clock", spoilt + ["--keep", "tend", "--rate", "8000"], False),
        ]
        asio = [
            ("direct", direct + ["--actors", "4"], False),
            ("slow-clock", spoilt + ["--actors", "8", "--rate", slow_clock], True),
            ("names", named + ["--actors", "4"], True),
        ]
        if self.soak.options.short:
            blocking, asio = blocking[:3], asio[:1]
        elif self.nodes > 1:
            blocking, asio = blocking[:5], asio[:2]
        if self.soak.certificates:
            authority = ["--ca-file", self.soak.certificates.authority]
            safe = urls("rediss://127.0.0.1:{}", [server.tls_port for server in self.servers]) + authority
            spoilt_safe = urls("rediss://127.0.0.1:{}", proxy_ports[self.nodes:]) + authority
            blocking += [("tls", safe + ["--keep", "watchdog"], False)]
            if not self.soak.options.short:
                blocking += [("tls-spoilt", spoilt_safe + ["--keep", "tend"], True)]
            # The short form is a test of the suite, and has no TLS behind the proxy: see "What it found" in proto/verification.md.
            asio += [("tls", (safe if self.soak.options.short else spoilt_safe) + ["--actors", "4"], False)]
        return blocking, asio


class FiveServers(OneServer):
    kinds = REDLOCKS
    answers = ANSWERS | {"no_quorum"}
    nodes = NODES

# SPDX-License-Identifier: MIT
"""redis-py's Lock as a peer: takes locks when told so on standard input. ../peer.hpp has the protocol."""

import sys
import threading
import time
import urllib.parse

import redis
from redis.exceptions import LockError
from redis.lock import Lock

RETRY_DELAY = 0.01  # Seconds between two attempts. redis-py's own default is ten times that.

speaking = threading.Lock()
client = None
holds = {}


def say(line):
    with speaking:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


class WatchedLock(Lock):
    """Tells when its first attempt has been refused: from then on it waits."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.refused = threading.Event()

    def do_acquire(self, token):
        granted = super().do_acquire(token)
        if not granted:
            self.refused.set()
        return granted


def new_lock(name, lease):
    timeout = None if lease == "none" else int(lease) / 1000
    # The token is the thread's by default; here the thread that waits is not the one that releases.
    return WatchedLock(client, urllib.parse.unquote(name), timeout=timeout, sleep=RETRY_DELAY, thread_local=False)


def acquire(lock, name, wait):
    if int(wait) == 0:
        granted = lock.acquire(blocking=False)
    else:
        granted = lock.acquire(blocking_timeout=int(wait) / 1000)
    if not granted:
        return "busy"
    holds[name] = lock
    return "granted"


def in_background(name, work):
    begin = time.monotonic()

    def run():
        try:
            say(f"* {work()} {name} {int((time.monotonic() - begin) * 1e6)}")
        except Exception as error:
            say(f"* error {name} {error!r}")

    threading.Thread(target=run, daemon=True).start()


def count(name, counter, rounds):
    """Adds one to a counter, `rounds` times, in two steps that only the lock makes one."""
    counter = urllib.parse.unquote(counter)
    for _ in range(int(rounds)):
        with new_lock(name, 10000):
            client.set(counter, int(client.get(counter) or 0) + 1)
    return "counted"


def answer(words):
    global client
    command, *arguments = words
    if command == "connect":
        client = redis.Redis(host="127.0.0.1", port=int(arguments[0]))
        holds.clear()
        return "ok" if client.ping() else "error no answer"
    if command == "lock":
        name, lease, wait = arguments
        return acquire(new_lock(name, lease), name, wait)
    if command == "start-lock":
        name, lease, wait = arguments
        lock = new_lock(name, lease)
        in_background(name, lambda: acquire(lock, name, wait))
        return "waiting" if lock.refused.wait(timeout=10) else "error not refused"
    if command == "extend":
        lock = holds[arguments[0]]
        lock.extend(lock.timeout, replace_ttl=True)
        return "ok"
    if command == "unlock":
        holds[arguments[0]].release()
        return "ok"
    if command == "token":
        return holds[arguments[0]].local.token.decode()
    if command == "start-count":
        in_background(arguments[1], lambda: count(*arguments))
        return "counting"
    if command == "quit":
        return "bye"
    return f"error unknown command {command}"


for line in sys.stdin:
    try:
        result = answer(line.split())
    except LockError:  # Not owned, or not owned any more.
        result = "lost"
    except Exception as error:
        result = f"error {error!r}"
    say(result)
    if result == "bye":
        break

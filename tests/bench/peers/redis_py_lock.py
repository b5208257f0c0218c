# SPDX-License-Identifier: MIT
#
# redis-py's Lock as it comes, for bench_handoff: redis_py_lock.py PORT KEY. One line in, one line out (wait: two):
#     hold     held                      takes the lock, which is free
#     release  released NANOSECONDS      lets go of it; the time is from before
#     wait     waiting, granted NANOS.   waits for it; the time is from after
# Times are those of CLOCK_MONOTONIC.
import sys
import time


def say(*words):
    print(*words, flush=True)


try:
    import redis
except ImportError:
    say("skip python3 finds no module redis (see PYTHONPATH)")
    sys.exit()

port, key = int(sys.argv[1]), sys.argv[2]
lock = redis.Redis(host="127.0.0.1", port=port).lock(key, timeout=30)
say("ready redis-py", redis.__version__)
for line in sys.stdin:
    word = line.strip()
    if word == "hold":
        say("held" if lock.acquire(blocking=False) else "busy")
    elif word == "wait":
        say("waiting")
        granted = lock.acquire()
        say("granted" if granted else "busy", time.monotonic_ns())
    elif word == "release":
        before = time.monotonic_ns()
        lock.release()
        say("released", before)

# SPDX-License-Identifier: MIT
#
# Clients of redis-py's Lock as it comes, each a process of its own, for bench_contention:
# redis_py_contention.py PORT KEY PATH CLIENTS HOLD PAUSE. What PATH holds is in contention_memory.hpp; HOLD and PAUSE are in
# nanoseconds.
# Says "ready NAME VERSION", and "done" when all clients have ended well. Without clients it only says the first.
import ctypes
import mmap
import os
import signal
import sys
import time


def say(*words):
    print(*words, flush=True)


try:
    import redis
except ImportError:
    say("skip python3 finds no module redis (see PYTHONPATH)")
    sys.exit()

port, key, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
clients, hold, pause = int(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6])
PREPARING, RUNNING = 0, 1
SLOT = 1 << 20
WAITS_MAX = SLOT // 4 - 4


def contend(client, memory):
    view = memoryview(memory)
    head = view[:12].cast("i")
    slot = view[(client + 1) * SLOT : (client + 2) * SLOT]
    waiting_since, counts, waits = slot[:8].cast("q"), slot[8:16].cast("I"), slot[16:].cast("I")
    server = redis.Redis(host="127.0.0.1", port=port)
    server.ping()
    lock = server.lock(key, timeout=30)
    counts[0] = 1
    while head[0] == PREPARING:
        time.sleep(0.001)
    while head[0] == RUNNING and counts[1] < WAITS_MAX:
        begin = time.monotonic_ns()
        waiting_since[0] = begin
        lock.acquire()
        waited = time.monotonic_ns() - begin
        waiting_since[0] = 0
        waits[counts[1]] = waited // 1000
        counts[1] += 1
        if head[1] != 0:
            head[2] = 1
        head[1] = client + 1
        time.sleep(hold / 1e9)
        if head[1] != client + 1:
            head[2] = 1
        head[1] = 0
        lock.release()
        if pause != 0:
            time.sleep(pause / 1e9)


def run_child(client, memory, parent):
    status = 1
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() == parent:
            contend(client, memory)
            status = 0
    finally:
        os._exit(status)


if clients == 0:
    say("ready redis-py", redis.__version__)
    sys.exit()
with open(path, "r+b") as file:
    memory = mmap.mmap(file.fileno(), (clients + 1) * SLOT)
parent = os.getpid()
pids = []
for client in range(clients):
    pid = os.fork()
    if pid == 0:
        run_child(client, memory, parent)
    pids.append(pid)
say("ready redis-py", redis.__version__)
statuses = [os.waitpid(pid, 0)[1] for pid in pids]
say("done" if not any(statuses) else "failed")

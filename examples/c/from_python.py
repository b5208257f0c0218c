#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# A lock from Python, by ctypes alone: what can call C can hold it. Of the archive a shared library is made by
#
#     gcc -shared -o libholdfast-c.so -Wl,--whole-archive libholdfast.a -Wl,--no-whole-archive -pthread
#
# A URL of sentinels fills in an object of theirs; so it would be with a cluster.
#
# usage: from_python.py LIBRARY [URL]
import ctypes
import sys


class LockOptions(ctypes.Structure):
    """As holdfast_lock_options of holdfast.h."""

    _fields_ = [
        ("lease_ms", ctypes.c_int64),
        ("drift_ms", ctypes.c_int64),
        ("kept", ctypes.c_bool),
        ("key_size", ctypes.c_size_t),
        ("announce", ctypes.c_bool),
        ("fence", ctypes.c_bool),
        ("node_timeout_ms", ctypes.c_int64),
        ("min_validity_ms", ctypes.c_int64),
    ]


class ClientConfig(ctypes.Structure):
    """As holdfast_client_config: what is zero is the default."""

    _fields_ = [
        ("host", ctypes.c_char_p),
        ("port", ctypes.c_uint16),
        ("socket_path", ctypes.c_char_p),
        ("user", ctypes.c_char_p),
        ("password", ctypes.c_char_p),
        ("client_name", ctypes.c_char_p),
        ("database", ctypes.c_int),
        ("connect_timeout_ms", ctypes.c_int64),
        ("request_timeout_ms", ctypes.c_int64),
        ("stall_timeout_ms", ctypes.c_int64),
        ("max_poll_ms", ctypes.c_int64),
        ("spin_us", ctypes.c_int64),
        ("no_native_delete", ctypes.c_bool),
        ("sentinels", ctypes.c_void_p),
        ("cluster", ctypes.c_void_p),
        ("tls", ctypes.c_void_p),
        ("acks", ctypes.c_int),
        ("acks_timeout_ms", ctypes.c_int64),
        ("meter", ctypes.c_void_p),
    ]


class Holdfast:
    def __init__(self, path):
        self.calls = ctypes.CDLL(path)
        self.calls.holdfast_size_of.restype = ctypes.c_size_t
        self.calls.holdfast_status_name.restype = ctypes.c_char_p
        self.calls.holdfast_lock_held.restype = ctypes.c_bool
        self.calls.holdfast_lock_fence.restype = ctypes.c_uint64
        # A struct that grew in a later release is noticed here, and not by what it does.
        assert self.calls.holdfast_size_of(b"holdfast_lock_options") == ctypes.sizeof(LockOptions)
        assert self.calls.holdfast_size_of(b"holdfast_client_config") == ctypes.sizeof(ClientConfig)

    def storage(self, name):
        """Storage for the object of that name: zeroed, and aligned to eight bytes."""
        size = self.calls.holdfast_size_of(name)
        return (ctypes.c_uint64 * ((size + 7) // 8))()

    def name(self, status):
        return self.calls.holdfast_status_name(status).decode()


def main():
    holdfast = Holdfast(sys.argv[1])
    calls = holdfast.calls
    client = holdfast.storage(b"holdfast_client")
    lock = holdfast.storage(b"holdfast_lock")
    rival = holdfast.storage(b"holdfast_lock")
    sentinels = holdfast.storage(b"holdfast_sentinels")
    options = LockOptions(lease_ms=5000, fence=True)
    url = sys.argv[2] if len(sys.argv) > 2 else "redis://127.0.0.1:6379"

    config = ClientConfig(client_name=b"python")
    if url.startswith("redis-sentinel:"):
        calls.holdfast_sentinels_init(sentinels, None)
        config.sentinels = ctypes.addressof(sentinels)
    calls.holdfast_client_init(client)
    status = calls.holdfast_client_connect_to(client, url.encode(), ctypes.byref(config))
    print("connect:", holdfast.name(status))
    if status == 0:
        for each in (lock, rival):
            calls.holdfast_mutex_init(each, client, b"holdfast/python", ctypes.byref(options))
        # ctypes lets go of Python's own lock while it waits here: other threads go on.
        status = calls.holdfast_lock_acquire(lock, ctypes.c_int64(2000))
        print("acquire:", holdfast.name(status))
        print("held:", calls.holdfast_lock_held(lock), "fence:", calls.holdfast_lock_fence(lock) > 0)
        print("a rival:", holdfast.name(calls.holdfast_lock_try_acquire(rival)))
        status = calls.holdfast_lock_release(lock) or status
        print("release:", holdfast.name(status))
    for each in (lock, rival):
        calls.holdfast_lock_destroy(each)
    calls.holdfast_client_destroy(client)
    calls.holdfast_sentinels_destroy(sentinels)
    return 0 if status == 0 else 1


if __name__ == "__main__":
    sys.exit(main())

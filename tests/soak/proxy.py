#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: proxy.py [HOST:]PORT...

Stands between workers of the soak and each server at 127.0.0.1:PORT, and spoils connections when told so. With HOST it listens
there, at the same port, for who goes wherever the servers send him; else at a port that is free. Prints a line with its own
ports, in the order of the servers'. A word per line of standard input:

    reset N      every Nth connection is ended by an RST, on both sides
    hang         nothing gets through any more, as on a half-open connection
    slow         each piece of bytes waits a little, and goes on in two
    flow         as at the beginning; what hung until now gets through
"""
import asyncio
import random
import socket
import struct
import sys


class Line:
    """What all connections go through."""

    def __init__(self):
        self.open = asyncio.Event()
        self.open.set()
        self.slow = False
        self.pairs = set()


async def carry(line, reader, writer):
    try:
        while True:
            data = await reader.read(64 * 1024)
            if not data:
                break
            await line.open.wait()
            if line.slow:
                half = random.randrange(len(data) + 1)
                for part in (data[:half], data[half:]):
                    await asyncio.sleep(random.uniform(0, 0.03))
                    writer.write(part)
            else:
                writer.write(data)
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        try:
            writer.close()
        except OSError:
            pass


def reset(pair):
    for writer in pair:
        sock = writer.get_extra_info("socket")
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass  # It is gone.
        writer.transport.abort()


async def serve(line, place):
    host, _, port = place.rpartition(":")

    async def accept(reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        pair = (writer, far_writer)
        line.pairs.add(pair)
        await asyncio.gather(carry(line, reader, far_writer), carry(line, far_reader, writer))
        line.pairs.discard(pair)

    server = await asyncio.start_server(accept, host or "127.0.0.1", int(port) if host else 0)
    return server, server.sockets[0].getsockname()[1]


async def main():
    line = Line()
    served = [await serve(line, place) for place in sys.argv[1:]]
    print(*(port for _, port in served), flush=True)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while True:
        words = (await commands.readline()).decode().split()
        if not words:
            return
        if words[0] == "reset":
            for pair in list(line.pairs)[:: int(words[1])]:
                reset(pair)
        elif words[0] == "hang":
            line.open.clear()
        elif words[0] == "slow":
            line.slow = True
        else:
            line.slow = False
            line.open.set()


if __name__ == "__main__":
    asyncio.run(main())

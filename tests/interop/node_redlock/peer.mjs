// SPDX-License-Identifier: MIT
//
// node-redlock as a peer: takes locks when told so on standard input. ../peer.hpp has the protocol.

import { createInterface } from "node:readline";
import Redis from "ioredis";
import Redlock, { ExecutionError, ResourceLockedError } from "redlock";

const retryDelay = 10; // Milliseconds. redlock's own default is 200.
let clients = [];
const holds = new Map();

const say = (line) => process.stdout.write(`${line.replace(/\s+/g, " ")}\n`);

// Who lost or never got the lock is told so by an ExecutionError, with a vote of each node for its reason.
const refused = (error) => error instanceof ExecutionError;
const reason = async (error) => {
  if (!(error instanceof ExecutionError)) return String(error);
  const attempts = await Promise.all(error.attempts);
  const votes = attempts.flatMap((attempt) => [...attempt.votesAgainst.values()]);
  return votes.find((vote) => !(vote instanceof ResourceLockedError))?.toString();
};

// Redlock counts attempts, not time. Each attempt costs a round trip on top of the delay, so this waits `wait` or more.
const newRedlock = (wait, onRefusal = () => {}) => {
  const redlock = new Redlock(clients, {
    retryCount: Math.ceil(wait / retryDelay),
    retryDelay,
    retryJitter: 0,
  });
  redlock.on("error", onRefusal);
  return redlock;
};

const acquire = async (redlock, name, lease) => {
  try {
    holds.set(name, { lock: await redlock.acquire([decodeURIComponent(name)], lease), lease });
    return "granted";
  } catch (error) {
    if (!refused(error)) throw error;
    const other = await reason(error);
    return other ? `error ${other}` : "busy";
  }
};

const inBackground = (name, work) => {
  const begin = process.hrtime.bigint();
  work().then(
    (said) => say(`* ${said} ${name} ${(process.hrtime.bigint() - begin) / 1000n}`),
    (error) => say(`* error ${name} ${error}`),
  );
};

// Between its own attempts redlock lets go of nothing, and the nodes that it was granted one at a time are busy for itself to
// the end of the lease. So each attempt is one of its own here, behind a random delay.
const acquireByItself = async (redlock, name) => {
  for (;;) {
    try {
      return await redlock.acquire([decodeURIComponent(name)], 10000);
    } catch (error) {
      if (!refused(error)) throw error;
      await new Promise((resolve) => setTimeout(resolve, retryDelay + Math.random() * 4 * retryDelay));
    }
  }
};

// Adds one to a counter, `rounds` times, in two steps that only the lock makes one.
const count = async (name, counter, rounds) => {
  const redlock = newRedlock(0);
  for (let round = 0; round < rounds; ++round) {
    const hold = await acquireByItself(redlock, name);
    const before = Number((await clients[0].get(decodeURIComponent(counter))) ?? 0);
    await clients[0].set(decodeURIComponent(counter), before + 1);
    await hold.release();
  }
  return "counted";
};

const okOrLost = async (operation) => {
  try {
    await operation();
    return "ok";
  } catch (error) {
    if (!refused(error)) throw error;
    const other = await reason(error);
    return other ? `error ${other}` : "lost";
  }
};

const commands = {
  async connect(...ports) {
    clients = ports.map((port) => new Redis({ host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: 1 }));
    for (const client of clients) client.on("error", () => {}); // A node that has died.
    holds.clear();
    await Promise.all(clients.map((client) => client.ping()));
    return "ok";
  },
  async lock(name, lease, wait) {
    return acquire(newRedlock(Number(wait)), name, Number(lease));
  },
  async "start-lock"(name, lease, wait) {
    await new Promise((resolve) =>
      inBackground(name, () => acquire(newRedlock(Number(wait), resolve), name, Number(lease))),
    );
    return "waiting";
  },
  async extend(name) {
    const { lock, lease } = holds.get(name);
    // An extension is a new object; the old one counts as expired.
    return okOrLost(async () => holds.set(name, { lock: await lock.extend(lease), lease }));
  },
  async unlock(name) {
    return okOrLost(() => holds.get(name).lock.release());
  },
  async token(name) {
    return holds.get(name).lock.value;
  },
  async "start-count"(name, counter, rounds) {
    inBackground(counter, () => count(name, counter, Number(rounds)));
    return "counting";
  },
  async quit() {
    return "bye";
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [command, ...words] = line.split(" ");
  try {
    say(commands[command] ? await commands[command](...words) : `error unknown command ${command}`);
  } catch (error) {
    say(`error ${error}`);
  }
  if (command === "quit") break;
}
process.exit(0);

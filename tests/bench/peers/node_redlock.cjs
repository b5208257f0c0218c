// SPDX-License-Identifier: MIT
//
// node-redlock over ioredis as they come, for bench_handoff: node_redlock.cjs PORT KEY. The lines are those of
// redis_py_lock.py; process.hrtime is CLOCK_MONOTONIC, too.
"use strict";

const say = (...words) => process.stdout.write(words.join(" ") + "\n");

let Redis, Redlock, version;
try {
  Redis = require("ioredis");
  Redlock = require("redlock").default;
  version = require("node:fs").readFileSync(require.resolve("redlock").replace(/dist.*/, "package.json"), "utf8");
  version = JSON.parse(version).version.replace(/^v/, "");
} catch {
  say("skip node finds no packages redlock and ioredis (see NODE_PATH)");
  process.exit();
}

const [port, key] = [Number(process.argv[2]), process.argv[3]];
const redlock = new Redlock([new Redis({ host: "127.0.0.1", port })]);
let lock;

const answers = {
  async hold() {
    lock = await redlock.acquire([key], 30000, { retryCount: 0 });
    say("held");
  },
  async wait() {
    say("waiting");
    lock = await redlock.acquire([key], 30000);
    say("granted", process.hrtime.bigint());
  },
  async release() {
    const before = process.hrtime.bigint();
    await lock.release();
    say("released", before);
  },
};

(async () => {
  say("ready node-redlock", version);
  for await (const line of require("node:readline").createInterface({ input: process.stdin }))
    await answers[line]().catch((error) => say("failed", error.message));
})();

// SPDX-License-Identifier: MIT
//
// Redisson as a peer: takes locks when told so on standard input. ../peer.hpp has the protocol.
//
// Redisson's owner of a lock is a thread. What is locked in the background is owned by a thread of its own, and
// everything that is asked about a name runs on the thread that locked it last.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RBucket;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.LongCodec;
import org.redisson.config.Config;

public final class Peer {
  private record Hold(RLock lock, ExecutorService owner) {}

  private static final ExecutorService foreground = newOwner();
  private static final Map<String, Hold> holds = new ConcurrentHashMap<>();
  private static RedissonClient client;
  private static long watchdogTimeout = 30_000;

  private Peer() {}

  public static void main(String[] arguments) throws Exception {
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String answer;
      try {
        answer = answer(line.split(" "));
      } catch (Exception error) {
        answer = "error " + text(error);
      }
      say(answer);
      if (line.equals("quit")) break;
    }
    // Redisson's threads would go on; their goodbye takes seconds that nobody needs.
    Runtime.getRuntime().halt(0);
  }

  private static String answer(String[] words) throws Exception {
    switch (words[0]) {
      case "watchdog-timeout":
        watchdogTimeout = Long.parseLong(words[1]);
        return "ok";
      case "connect":
        connect(words[1]);
        return "ok";
      case "lock", "fenced-lock": {
        Hold hold = lookUp(words, foreground);
        String answer = hold.owner.submit(() -> acquire(hold.lock, words[2], words[3])).get();
        if (answer.startsWith("granted")) holds.put(words[1], hold);
        return answer;
      }
      case "start-lock", "start-fenced-lock":
        startLock(words);
        return "waiting";
      case "unlock":
        return onOwner(words, lock -> {
          lock.unlock();
          return "ok";
        });
      case "force-unlock":
        return onOwner(words, lock -> yesOrNo(lock.forceUnlock()));
      case "hold-count":
        return onOwner(words, lock -> Integer.toString(lock.getHoldCount()));
      case "is-held":
        return onOwner(words, lock -> yesOrNo(lock.isHeldByCurrentThread()));
      case "is-locked":
        return onOwner(words, lock -> yesOrNo(lock.isLocked()));
      case "remaining":
        return onOwner(words, lock -> Long.toString(lock.remainTimeToLive()));
      case "fence":
        return String.valueOf(client.getFencedLock(decode(words[1])).getToken());
      case "start-count":
        startCount(words);
        return "counting";
      case "quit":
        return "bye";
      default:
        return "error unknown command " + words[0];
    }
  }

  private static void connect(String port) {
    if (client != null) client.shutdown();
    holds.clear();
    Config config = new Config();
    config.setLockWatchdogTimeout(watchdogTimeout);
    config.setThreads(2);
    config.setNettyThreads(2);
    config.useSingleServer()
        .setAddress("redis://127.0.0.1:" + port)
        .setDnsMonitoringInterval(-1)
        .setConnectionMinimumIdleSize(1)
        .setSubscriptionConnectionMinimumIdleSize(1);
    client = Redisson.create(config);
  }

  // The lock object of the last hold of that name, which may be a second hold of the same thread; else a new one.
  private static Hold lookUp(String[] words, ExecutorService owner) {
    boolean fenced = words[0].contains("fenced");
    Hold hold = holds.get(words[1]);
    if (hold != null && hold.lock instanceof RFencedLock == fenced) return hold;
    String name = decode(words[1]);
    return new Hold(fenced ? client.getFencedLock(name) : client.getLock(name), owner);
  }

  // "granted", with the token of a fenced lock behind it, or "busy".
  private static String acquire(RLock lock, String lease, String wait) throws InterruptedException {
    boolean forever = wait.equals("forever");
    boolean watchdog = lease.equals("watchdog");
    long waitTime = forever ? 0 : Long.parseLong(wait);
    long leaseTime = watchdog ? -1 : Long.parseLong(lease);
    if (lock instanceof RFencedLock fenced) {
      Long token;
      if (forever && watchdog) token = fenced.lockAndGetToken();
      else if (forever) token = fenced.lockAndGetToken(leaseTime, TimeUnit.MILLISECONDS);
      else if (watchdog) token = fenced.tryLockAndGetToken(waitTime, TimeUnit.MILLISECONDS);
      else token = fenced.tryLockAndGetToken(waitTime, leaseTime, TimeUnit.MILLISECONDS);
      return token == null ? "busy" : "granted " + token;
    }
    boolean granted = true;
    if (forever && watchdog) lock.lock();
    else if (forever) lock.lock(leaseTime, TimeUnit.MILLISECONDS);
    else if (watchdog) granted = lock.tryLock(waitTime, TimeUnit.MILLISECONDS);
    else granted = lock.tryLock(waitTime, leaseTime, TimeUnit.MILLISECONDS);
    return granted ? "granted" : "busy";
  }

  private static void startLock(String[] words) {
    boolean fenced = words[0].contains("fenced");
    String name = decode(words[1]);
    Hold hold = new Hold(fenced ? client.getFencedLock(name) : client.getLock(name), newOwner());
    inBackground(hold.owner, words[1], () -> {
      String answer = acquire(hold.lock, words[2], words[3]);
      if (answer.startsWith("granted")) holds.put(words[1], hold);
      return answer;
    });
  }

  // Adds one to a counter, `rounds` times, in two steps that only the lock makes one.
  private static void startCount(String[] words) {
    RLock lock = client.getLock(decode(words[1]));
    RBucket<Object> bucket = client.getBucket(decode(words[2]), LongCodec.INSTANCE);
    int rounds = Integer.parseInt(words[3]);
    inBackground(newOwner(), words[2], () -> {
      for (int round = 0; round < rounds; ++round) {
        lock.lock();
        try {
          Object before = bucket.get();
          bucket.set((before == null ? 0L : (Long) before) + 1);
        } finally {
          lock.unlock();
        }
      }
      return "counted";
    });
  }

  // Says "* ANSWER NAME MICROSECONDS" when the work is done.
  private static void inBackground(ExecutorService owner, String name, Callable<String> work) {
    long begin = System.nanoTime();
    owner.execute(() -> {
      String answer;
      try {
        answer = work.call();
      } catch (Exception error) {
        say("* error " + name + " " + text(error));
        return;
      }
      String[] words = answer.split(" ", 2);
      String rest = words.length == 2 ? " " + words[1] : "";
      say("* " + words[0] + " " + name + " " + (System.nanoTime() - begin) / 1000 + rest);
    });
  }

  private interface Question {
    String ask(RLock lock) throws Exception;
  }

  private static String onOwner(String[] words, Question question) throws Exception {
    Hold hold = holds.get(words[1]);
    if (hold == null) hold = new Hold(client.getLock(decode(words[1])), foreground);
    RLock lock = hold.lock;
    try {
      return hold.owner.submit(() -> question.ask(lock)).get();
    } catch (ExecutionException error) {
      if (error.getCause() instanceof IllegalMonitorStateException) return "lost";
      throw error;
    }
  }

  private static ExecutorService newOwner() {
    return Executors.newSingleThreadExecutor(work -> {
      Thread thread = new Thread(work);
      thread.setDaemon(true);
      return thread;
    });
  }

  private static synchronized void say(String line) {
    System.out.println(line);
    System.out.flush();
  }

  private static String yesOrNo(boolean answer) {
    return answer ? "yes" : "no";
  }

  private static String text(Throwable error) {
    Throwable cause = error instanceof ExecutionException && error.getCause() != null ? error.getCause() : error;
    return cause.toString().replaceAll("\\s+", " ");
  }

  private static String decode(String word) {
    return URLDecoder.decode(word, StandardCharsets.UTF_8);
  }
}

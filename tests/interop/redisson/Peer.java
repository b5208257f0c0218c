// SPDX-License-Identifier: MIT
//
// Redisson as a peer: takes locks when told so on standard input. ../peer.hpp has the protocol.
//
// Redisson's owner of a lock is a thread. What is locked in the background is owned by a thread of its own, and
// everything that is asked about a name runs on the thread that locked it last. Of a read/write lock that is the last one that
// locked this side of it: who locks both sides in the foreground is one owner of both. A permit of a semaphore has no owner: who
// knows its id may release it.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
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
import org.redisson.api.RAtomicLong;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisException;
import org.redisson.config.BaseMasterSlaveServersConfig;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;
import org.redisson.config.SentinelServersConfig;

public final class Peer {
  private record Hold(RLock lock, ExecutorService owner) {}

  private static final ExecutorService foreground = newOwner();
  // By the name, as it came; of a side of a read/write lock with "read " or "write " in front of it.
  private static final Map<String, Hold> holds = new ConcurrentHashMap<>();
  // Who is at work in the background, by thread.
  private static final Map<Thread, String> atWork = new ConcurrentHashMap<>();
  // From one look at the servers' roles to the next. Redisson's default is 5000 in a cluster.
  private static final int SCAN_INTERVAL = 1000;
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
      case "connect", "connect-cluster", "connect-sentinel":
        connect(words);
        return "ok";
      case "lock", "fenced-lock", "fair-lock", "read-lock", "write-lock": {
        Hold hold = lookUp(words, foreground);
        String answer = hold.owner.submit(() -> acquire(hold.lock, words[2], words[3])).get();
        if (answer.startsWith("granted")) holds.put(keyOf(words), hold);
        return answer;
      }
      case "start-lock", "start-fenced-lock", "start-fair-lock", "start-read-lock", "start-write-lock":
        startLock(words);
        return "waiting";
      case "unlock", "unlock-read", "unlock-write":
        return onOwner(words, lock -> {
          lock.unlock();
          return "ok";
        });
      case "force-unlock", "force-unlock-read", "force-unlock-write":
        return onOwner(words, lock -> yesOrNo(lock.forceUnlock()));
      case "hold-count", "hold-count-read", "hold-count-write":
        return onOwner(words, lock -> Integer.toString(lock.getHoldCount()));
      case "is-held", "is-held-read", "is-held-write":
        return onOwner(words, lock -> yesOrNo(lock.isHeldByCurrentThread()));
      case "is-locked", "is-locked-read", "is-locked-write":
        return onOwner(words, lock -> yesOrNo(lock.isLocked()));
      case "remaining":
        return onOwner(words, lock -> Long.toString(lock.remainTimeToLive()));
      case "fence":
        return String.valueOf(client.getFencedLock(decode(words[1])).getToken());
      case "start-count", "start-write-count":
        startCount(words);
        return "counting";
      case "set-permits":
        return yesOrNo(semaphore(words).trySetPermits(Integer.parseInt(words[2])));
      case "permit":
        return takePermit(semaphore(words), words[2], words[3]);
      case "start-permit": {
        RPermitExpirableSemaphore semaphore = semaphore(words);
        inBackground(newOwner(), words[1], () -> takePermit(semaphore, words[2], words[3]));
        return "waiting";
      }
      case "release-permit":
        try {
          semaphore(words).release(words[2]);
          return "ok";
        } catch (RedisException error) {  // Documented is its cause.
          if (error.getCause() instanceof IllegalArgumentException) return "lost";
          throw error;
        }
      case "try-release-permit":
        return yesOrNo(semaphore(words).tryRelease(words[2]));
      case "update-lease":
        return yesOrNo(semaphore(words).updateLeaseTime(words[2], Long.parseLong(words[3]), TimeUnit.MILLISECONDS));
      case "lease-time":
        return Long.toString(semaphore(words).getLeaseTime(words[2]));
      case "available-permits":
        return Integer.toString(semaphore(words).availablePermits());
      case "acquired-permits":
        return Integer.toString(semaphore(words).acquiredPermits());
      case "all-permits":
        return Integer.toString(semaphore(words).getPermits());
      case "start-permit-use":
        startPermitUse(words);
        return "counting";
      case "await-waiters":
        return awaitWaiters(words[1]);
      case "quit":
        return "bye";
      default:
        return "error unknown command " + words[0];
    }
  }

  private static void connect(String[] words) {
    if (client != null) client.shutdown();
    holds.clear();
    Config config = new Config();
    config.setLockWatchdogTimeout(watchdogTimeout);
    config.setThreads(2);
    config.setNettyThreads(2);
    switch (words[0]) {
      case "connect-cluster": {
        ClusterServersConfig cluster = config.useClusterServers().setScanInterval(SCAN_INTERVAL);
        for (int word = 1; word < words.length; ++word) cluster.addNodeAddress(addressOf(words[word]));
        keepFew(cluster);
        break;
      }
      case "connect-sentinel": {
        SentinelServersConfig service =
            config.useSentinelServers().setScanInterval(SCAN_INTERVAL).setMasterName(words[1]);
        for (int word = 2; word < words.length; ++word) service.addSentinelAddress(addressOf(words[word]));
        keepFew(service);
        break;
      }
      default:
        config.useSingleServer()
            .setAddress(addressOf(words[1]))
            .setDnsMonitoringInterval(-1)
            .setConnectionMinimumIdleSize(1)
            .setSubscriptionConnectionMinimumIdleSize(1);
    }
    client = Redisson.create(config);
  }
  private static String addressOf(String port) {
    return "redis://127.0.0.1:" + port;
  }
  private static void keepFew(BaseMasterSlaveServersConfig<?> servers) {
    servers.setDnsMonitoringInterval(-1);
    servers.setMasterConnectionMinimumIdleSize(1);
    servers.setSlaveConnectionMinimumIdleSize(1);
    servers.setSubscriptionConnectionMinimumIdleSize(1);
  }

  // Which lock the command is about, of a name.
  private static RLock newLock(String[] words) {
    String name = decode(words[1]);
    if (words[0].contains("fenced")) return client.getFencedLock(name);
    if (words[0].contains("fair")) return client.getFairLock(name);
    if (words[0].contains("read")) return client.getReadWriteLock(name).readLock();
    if (words[0].contains("write")) return client.getReadWriteLock(name).writeLock();
    return client.getLock(name);
  }
  private static String keyOf(String[] words) {
    String side = words[0].contains("read") ? "read " : words[0].contains("write") ? "write " : "";
    return side + words[1];
  }

  // The lock object of the last hold of that name, which may be a second hold of the same thread; else a new one.
  private static Hold lookUp(String[] words, ExecutorService owner) {
    Hold hold = holds.get(keyOf(words));
    if (hold != null && hold.lock instanceof RFencedLock == words[0].contains("fenced")) return hold;
    return new Hold(newLock(words), owner);
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
    Hold hold = new Hold(newLock(words), newOwner());
    inBackground(hold.owner, words[1], () -> {
      String answer = acquire(hold.lock, words[2], words[3]);
      if (answer.startsWith("granted")) holds.put(keyOf(words), hold);
      return answer;
    });
  }

  // Adds one to a counter, `rounds` times, in two steps that only the lock makes one. Such a counter is read from the master; a bucket
  // would be read from a replica.
  private static void startCount(String[] words) {
    RLock lock = newLock(words);
    RAtomicLong counter = client.getAtomicLong(decode(words[2]));
    int rounds = Integer.parseInt(words[3]);
    inBackground(newOwner(), words[2], () -> {
      for (int round = 0; round < rounds; ++round) {
        lock.lock();
        try {
          counter.set(counter.get() + 1);
        } finally {
          lock.unlock();
        }
      }
      return "counted";
    });
  }

  private static RPermitExpirableSemaphore semaphore(String[] words) {
    return client.getPermitExpirableSemaphore(decode(words[1]));
  }

  // "granted", with the permit's id behind it, or "busy".
  private static String takePermit(RPermitExpirableSemaphore semaphore, String lease, String wait)
      throws InterruptedException {
    long leaseTime = lease.equals("none") ? -1 : Long.parseLong(lease);
    String id = wait.equals("forever")
        ? semaphore.acquire(leaseTime, TimeUnit.MILLISECONDS)
        : semaphore.tryAcquire(Long.parseLong(wait), leaseTime, TimeUnit.MILLISECONDS);
    return id == null ? "busy" : "granted " + id;
  }

  // Takes a permit and gives it back again and again, for so many milliseconds, and counts those inside at once meanwhile. Says
  // in the end how often it had one, how many were inside at most, and how many milliseconds it waited at most.
  private static void startPermitUse(String[] words) {
    RPermitExpirableSemaphore semaphore = semaphore(words);
    RAtomicLong inside = client.getAtomicLong(decode(words[2]));
    long length = Long.parseLong(words[3]) * 1_000_000;
    inBackground(newOwner(), words[2], () -> {
      long end = System.nanoTime() + length;
      long rounds = 0;
      long most = 0;
      long longest = 0;
      do {
        long begin = System.nanoTime();
        String id = semaphore.acquire(60, TimeUnit.SECONDS);
        longest = Math.max(longest, System.nanoTime() - begin);
        most = Math.max(most, inside.incrementAndGet());
        inside.decrementAndGet();
        semaphore.release(id);
        ++rounds;
      } while (System.nanoTime() < end);
      return "counted " + rounds + " " + most + " " + longest / 1_000_000;
    });
  }

  // Says "* ANSWER NAME MICROSECONDS" when the work is done.
  private static void inBackground(ExecutorService owner, String name, Callable<String> work) {
    long begin = System.nanoTime();
    owner.execute(() -> {
      atWork.put(Thread.currentThread(), name);
      String answer;
      try {
        answer = work.call();
      } catch (Exception error) {
        say("* error " + name + " " + text(error));
        return;
      } finally {
        atWork.remove(Thread.currentThread());
      }
      String[] words = answer.split(" ", 2);
      String rest = words.length == 2 ? " " + words[1] : "";
      say("* " + words[0] + " " + name + " " + (System.nanoTime() - begin) / 1000 + rest);
    });
  }

  // Redisson wakes the readers that have gone to sleep, and not one that was refused and is about to: what a writer says in
  // this instant is lost to it. So it matters when a reader sleeps, which is in a Semaphore.
  private static String awaitWaiters(String name) throws InterruptedException {
    for (long end = System.nanoTime() + 20_000_000_000L; System.nanoTime() < end; Thread.sleep(2)) {
      boolean allSleep = true;
      for (Map.Entry<Thread, String> work : atWork.entrySet())
        if (work.getValue().equals(name) && !sleepsInSemaphore(work.getKey())) allSleep = false;
      if (allSleep) return "ok";
    }
    return "error they are awake";
  }
  // State and frames of one instant: asked for one after the other, a thread that was just answered looks asleep there.
  private static boolean sleepsInSemaphore(Thread thread) {
    ThreadInfo info = ManagementFactory.getThreadMXBean().getThreadInfo(thread.getId(), Integer.MAX_VALUE);
    if (info == null) return false;
    Thread.State state = info.getThreadState();
    if (state != Thread.State.WAITING && state != Thread.State.TIMED_WAITING) return false;
    for (StackTraceElement frame : info.getStackTrace())
      if (frame.getClassName().equals("java.util.concurrent.Semaphore")) return true;
    return false;
  }

  private interface Question {
    String ask(RLock lock) throws Exception;
  }

  private static String onOwner(String[] words, Question question) throws Exception {
    Hold hold = holds.get(keyOf(words));
    if (hold == null) hold = new Hold(newLock(words), foreground);
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

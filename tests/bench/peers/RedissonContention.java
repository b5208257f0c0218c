// SPDX-License-Identifier: MIT
//
// Clients of Redisson's RLock or RFairLock, for bench_contention: RedissonContention.java lock|fair PORT KEY PATH CLIENTS
// HOLD PAUSE. Each client is a thread of this program, which Redisson takes for an owner of its own; they share its connections.
// What PATH holds is in contention_memory.hpp; HOLD and PAUSE are in nanoseconds. The lines are those of redis_py_contention.py.

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public final class RedissonContention {
  private static final VarHandle ints = MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle longs = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final int preparing = 0;
  private static final int running = 1;
  private static final int phase = 0;
  private static final int inside = 4;
  private static final int violated = 8;
  private static final int slotSize = 1 << 20;
  private static final int waitsMax = slotSize / 4 - 4;

  private static ByteBuffer memory;
  private static volatile Throwable failure;

  private RedissonContention() {}

  public static void main(String[] arguments) throws Exception {
    boolean fair = arguments[0].equals("fair");
    int clients = Integer.parseInt(arguments[4]);
    String version = Redisson.class.getPackage().getImplementationVersion();
    System.out.println("ready Redisson " + version);
    System.out.flush();
    if (clients == 0) return;

    long hold = Long.parseLong(arguments[5]);
    long pause = Long.parseLong(arguments[6]);
    try (FileChannel file =
        FileChannel.open(Path.of(arguments[3]), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      memory = file.map(FileChannel.MapMode.READ_WRITE, 0, (long) (clients + 1) * slotSize);
    }
    Config config = new Config();
    config.useSingleServer().setAddress("redis://127.0.0.1:" + arguments[1]).setDnsMonitoringInterval(-1);
    RedissonClient redisson = Redisson.create(config);
    List<Thread> threads = new ArrayList<>();
    for (int client = 0; client < clients; ++client) {
      int number = client;
      RLock lock = fair ? redisson.getFairLock(arguments[2]) : redisson.getLock(arguments[2]);
      threads.add(new Thread(() -> {
        try {
          contend(number, lock, hold, pause);
        } catch (Throwable error) {
          failure = error;
        }
      }));
    }
    for (Thread thread : threads) thread.start();
    for (Thread thread : threads) thread.join();
    System.out.println(failure == null ? "done" : "failed " + failure);
    System.out.flush();
    Runtime.getRuntime().halt(0);  // Redisson's threads would go on.
  }

  private static int get(int offset) {
    return (int) ints.getVolatile(memory, offset);
  }

  private static void set(int offset, int value) {
    ints.setVolatile(memory, offset, value);
  }

  private static void contend(int client, RLock lock, long hold, long pause) {
    int slot = (client + 1) * slotSize;
    int ready = slot + 8;
    int grants = slot + 12;
    int waits = slot + 16;
    set(ready, 1);
    while (get(phase) == preparing) LockSupport.parkNanos(1_000_000);
    while (get(phase) == running && get(grants) < waitsMax) {
      long begin = System.nanoTime();
      longs.setVolatile(memory, slot, begin);
      lock.lock(30, TimeUnit.SECONDS);
      long waited = System.nanoTime() - begin;
      longs.setVolatile(memory, slot, 0L);
      set(waits + 4 * get(grants), (int) (waited / 1000));
      set(grants, get(grants) + 1);
      if ((int) ints.getAndSet(memory, inside, client + 1) != 0) set(violated, 1);
      sleep(hold);
      if ((int) ints.getAndSet(memory, inside, 0) != client + 1) set(violated, 1);
      lock.unlock();
      sleep(pause);
    }
  }

  private static void sleep(long nanoseconds) {
    long end = System.nanoTime() + nanoseconds;
    for (long left = nanoseconds; left > 0; left = end - System.nanoTime()) LockSupport.parkNanos(left);
  }
}

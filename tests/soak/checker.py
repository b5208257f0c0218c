#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: checker.py FOLDER

Judges a soak by all of its logs: every file FOLDER/*.log. Prints the violations and the figures; exits with 1 where there is a
violation. soak.py feeds the same judge while the soak runs.

A line is an event, an instant, and words. Instants are nanoseconds of one clock of the machine (CLOCK_BOOTTIME), whatever clock a
worker gave to holdfast. An actor is one flow of control of a file: it has one lock at a time. Whoever takes several names at once
is an actor for each. From workers, and from whoever drives a client of another language:

    start T PID ROLE                  a process begins
    ask T ACTOR LOCK CALL BOUND       a call begins that must return within BOUND; acquire, release or renew
    got T ACTOR LOCK MODE UNTIL FENCE it returned with a grant: from T to UNTIL the actor may believe that it holds the lock. MODE
                                      is x (alone), r (a reader) or p (one permit). FENCE is 0 where there is none
    told T ACTOR STATUS EXCUSED       it returned otherwise, or was no acquire. EXCUSED: how long libc's resolver took of it
    until T ACTOR UNTIL               the hold was extended
    end T ACTOR                       the belief is over: a release is about to begin, or the actor saw the loss. Written before
    read T ACTOR COUNTER VALUE        the counter as the actor found it
    write T ACTOR VALUE               it is about to write this
    wrote T ACTOR                     it has. Covered by the belief, where UNTIL is after T
    refused T ACTOR COUNTER FENCE     a counter that knows fences has refused this one
    memory T RSS HEAP                 bytes
    bye T                             the process ends by itself, with nothing held

and from soak.py:

    lock T LOCK PERMITS               a lock of the soak; how many permits there are
    counter T COUNTER KIND            plain, or fenced: a counter that refuses smaller fences
    fault T NAME TARGET               a fault begins
    stop T NAME, cont T NAME          around SIGSTOP and SIGCONT; NAME is that of a log, without .log
    exit T NAME STATUS WHY            a process has ended; WHY is killed or finished where that was wanted
    final T COUNTER VALUE             the counter at the end
    answers T BEGIN STATUS...         what calls of processes whose names so begin may be told
    stays T KEY                       what may be left on a server
    left T SERVER KEY                 what is left there
    hears T SERVER CHANNEL            a subscription that is left there

Rules, as they are named in what is printed:

    overlap   two beliefs in one lock, where readers may share, and as many permits as there are
    counter   a counter that was written under the lock has lost or gained something
    fence     a later grant with a fence that is not larger; a valid holder whose fence was refused
    lost      a call of a holder was told lock_lost before the end of its validity: nobody may take a hold away, and servers
              keep their data here
    answer    a call was told what nothing here explains
    wait      a call that took longer than its bound
    memory    a process that grows
    death     a process that ended by itself
    left      a key or a subscription after the end
    idle      a lock that nobody was granted: then nothing was checked
    log       a log that cannot be what happened
"""
import collections
import pathlib
import statistics
import sys

SECOND = 1_000_000_000
# A machine that is busy gives a process its turn late. A call that hangs is late by far more.
LATE_MAX = 3 * SECOND
# What is this young is judged later: a process that was stopped writes its lines when it goes on.
LINES_LATE_MAX = 60 * SECOND
# Of a process that ran for so long at least, the last quarter beside the second one.
MEMORY_AGE_MIN = 10 * SECOND
HEAP_GROWTH_MAX = 64 * 1024
RSS_GROWTH_MAX = 1536 * 1024
# What OpenSSL takes while connected, some 40 KiB each time: three connections to each of six servers.
TLS_HEAP = 18 * 40 * 1024
EVER = 1 << 62


class Belief:
    def __init__(self, begin, until, mode, fence, who):
        self.begin, self.until, self.mode, self.fence, self.who = begin, until, mode, fence, who
        self.end = None  # Known when it is over.


class Cycle:
    """One actor's reading and writing of a counter."""

    def __init__(self, who, read_at, value):
        self.who, self.read_at, self.value = who, read_at, value
        self.write_at = self.wrote_at = self.until = None
        self.written = None

    def covered(self):
        return self.wrote_at is not None and self.wrote_at < self.until


class Actor:
    def __init__(self):
        self.lock = None
        self.belief = None
        self.cycle = None
        self.asked = None  # (instant, lock, call, bound)
        self.until = 0  # Of the last hold.


class Process:
    def __init__(self, name):
        self.name = name
        self.began = None
        self.over = None
        self.actors = collections.defaultdict(Actor)
        self.memory = []
        self.said_bye = False


class Lock:
    def __init__(self, permits):
        self.permits = permits
        self.grants = 0
        self.closed = []  # Beliefs that are over and not judged.
        self.active = []
        self.judged = 0
        self.fence = 0
        self.fence_who = ""


class Counter:
    def __init__(self, kind):
        self.kind = kind
        self.cycles = []
        self.loose = []  # Writes that no belief covered.
        self.last = None
        self.judged = 0
        self.written = 0
        self.skipped = 0
        self.final = None
        self.unsure = set()  # Of a fenced one: values that a process that died may have written.
        self.value = 0


class Judge:
    def __init__(self):
        self.processes = {}
        self.locks = {}
        self.counters = {}
        self.faults = collections.Counter()
        self.violations = collections.Counter()
        self.texts = []
        self.stops = collections.defaultdict(list)  # By name: [begin, end]
        self.calls = []
        self.longest = collections.Counter()  # By call: how long over its wait.
        self.stays = set()
        self.answers = {}  # By how a process is named: a set.
        self.outcomes = collections.Counter()
        self.grants_by_role = collections.Counter()
        self.refused = 0
        self.memory_judged = 0
        self.growth = (0, 0)

    # ---- Reading ----------------------------------------------------------------------------------------------------

    def violate(self, rule, text):
        self.violations[rule] += 1
        if self.violations[rule] <= 20:
            self.texts.append(f"{rule}: {text}")

    def feed(self, name, line):
        process = self.processes.get(name)
        if process is None:
            process = self.processes[name] = Process(name)
        words = line.split()
        try:
            getattr(self, "on_" + words[0])(process, int(words[1]), *words[2:])
        except (AttributeError, IndexError, TypeError, ValueError, KeyError) as error:
            self.violate("log", f"{name}: cannot read '{line.strip()}': {error!r}")

    def on_start(self, process, at, pid, role):
        process.began, process.role = at, role

    def on_ask(self, process, at, actor, lock, call, bound):
        process.actors[actor].asked = (at, lock, call, int(bound))

    def on_got(self, process, at, actor, lock, mode, until, fence):
        it = process.actors[actor]
        self._answered(process, it, at, 0)
        if it.belief is not None:
            self.violate("log", f"{process.name}: {actor} was granted {lock} within a belief")
        it.lock = lock
        it.belief = Belief(at, int(until), mode, int(fence), f"{process.name}/{actor}")
        it.until = it.belief.until
        self.locks[lock].grants += 1
        self.grants_by_role[process.role] += 1

    def on_told(self, process, at, actor, status, excused):
        it = process.actors[actor]
        call = it.asked[2] if it.asked else "?"
        self.outcomes[f"{call} {status}"] += 1
        if status == "lock_lost" and "acquire" not in call and at < it.until:
            self.violate("lost", f"{process.name}/{actor} had {it.lock} until {it.until}, and {call} was told lock_lost at {at}")
        for begin, statuses in self.answers.items():
            if process.name.startswith(begin) and status not in statuses:
                lock = it.asked[1] if it.asked else "?"
                self.violate("answer", f"{process.name}/{actor}: {call} of {lock} was told {status} at {at}")
        self._answered(process, it, at, int(excused))

    def on_until(self, process, at, actor, until):
        belief = process.actors[actor].belief
        if belief is not None:
            belief.until = process.actors[actor].until = max(belief.until, int(until))

    def on_end(self, process, at, actor):
        self._close(process.actors[actor], at)

    def on_read(self, process, at, actor, counter, value):
        it = process.actors[actor]
        it.cycle = Cycle(f"{process.name}/{actor}", at, int(value))
        it.counter = counter

    def on_write(self, process, at, actor, value):
        cycle = process.actors[actor].cycle
        cycle.write_at, cycle.written = at, int(value)

    def on_wrote(self, process, at, actor):
        it = process.actors[actor]
        it.cycle.wrote_at = at

    def on_refused(self, process, at, actor, counter, fence):
        it = process.actors[actor]
        self.refused += 1
        it.cycle = None
        if it.belief is not None and at < it.belief.until:
            self.violate("fence", f"{counter} refused fence {fence} of {process.name}/{actor}, which held {it.lock} at {at}")

    def on_memory(self, process, at, rss, heap):
        process.memory.append((at, int(rss), int(heap)))

    def on_bye(self, process, at):
        process.said_bye = True
        for name, it in process.actors.items():
            if it.belief is not None:
                self.violate("log", f"{process.name}: {name} ends within a belief")

    def on_lock(self, process, at, lock, permits):
        self.locks[lock] = Lock(int(permits))

    def on_counter(self, process, at, counter, kind):
        self.counters[counter] = Counter(kind)

    def on_fault(self, process, at, name, *target):
        self.faults[name] += 1

    def on_stop(self, process, at, name):
        self.stops[name].append([at, EVER])

    def on_cont(self, process, at, name):
        self.stops[name][-1][1] = at

    def on_exit(self, process, at, name, status, why):
        it = self.processes.get(name)
        if why not in ("killed", "finished") or (why == "finished" and status != "0"):
            self.violate("death", f"{name} ended by itself: {status} ({why})")
        elif why == "finished" and (it is None or not it.said_bye):
            self.violate("death", f"{name} ended without a farewell")
        if it is None:
            return
        it.over = at
        for actor in it.actors.values():
            if actor.asked is not None:  # It was in a call when it was killed.
                self._answered(it, actor, at, 0)
            self._close(actor, at, died=True)
        self._judge_memory(it)

    def on_final(self, process, at, counter, value):
        self.counters[counter].final = (at, int(value))

    def on_answers(self, process, at, begin, *statuses):
        self.answers[begin] = set(statuses)

    def on_stays(self, process, at, key):
        self.stays.add(key)

    def on_left(self, process, at, server, key):
        if key not in self.stays:
            self.violate("left", f"{key} on {server}")

    def on_hears(self, process, at, server, channel):
        self.violate("left", f"a subscription to {channel} on {server}")

    def _answered(self, process, it, at, excused):
        if it.asked is None:
            self.violate("log", f"{process.name}: an answer to no call at {at}")
            return
        asked, lock, call, bound = it.asked
        it.asked = None
        self.calls.append((at, asked, process, lock, call, bound, excused))

    def _close(self, it, at, died=False):
        belief, cycle = it.belief, it.cycle
        it.belief = it.cycle = None
        if belief is None:
            return
        belief.end = min(at, belief.until)
        lock = self.locks[it.lock]
        if belief.begin < lock.judged:
            self.violate("log", f"{belief.who} told of {it.lock} too late to be judged")
        lock.closed.append(belief)
        if cycle is not None and cycle.write_at is not None:
            cycle.until = belief.until
            if died and cycle.wrote_at is None:
                cycle.gone_at = at
            self.counters[it.counter].cycles.append(cycle)

    # ---- Judging ----------------------------------------------------------------------------------------------------

    def judge(self, until):
        """All that began before, and what is known to be complete."""
        open_since = {}
        for process in self.processes.values():
            for it in process.actors.values():
                if it.belief is not None:
                    open_since[it.lock] = min(open_since.get(it.lock, EVER), it.belief.begin)
                    if it.cycle is not None:
                        open_since[it.counter] = min(open_since.get(it.counter, EVER), it.belief.begin)
        for name, lock in self.locks.items():
            self._judge_lock(name, lock, min(until, open_since.get(name, EVER)))
        for name, counter in self.counters.items():
            self._judge_counter(name, counter, min(until, open_since.get(name, EVER)))
        self._judge_waits(until)

    def finish(self):
        """After the last line: whoever has no end is over."""
        for process in self.processes.values():
            for it in process.actors.values():
                self._close(it, EVER, died=True)
            if process.began is not None and process.over is None:
                self._judge_memory(process)
        self.judge(EVER)
        for name, counter in self.counters.items():
            self._judge_final(name, counter)
        for name, lock in self.locks.items():
            if lock.grants == 0:
                self.violate("idle", f"nobody was granted {name}")
        if not self.locks:
            self.violate("idle", "there is no lock in these logs")

    def _judge_lock(self, name, lock, until):
        due = sorted((it for it in lock.closed if it.begin < until), key=lambda it: it.begin)
        lock.closed = [it for it in lock.closed if it.begin >= until]
        lock.judged = max(lock.judged, until)
        for it in due:
            if it.end <= it.begin:
                continue  # It came too late to be believed.
            lock.active = [other for other in lock.active if other.end > it.begin]
            beside = lock.active
            if it.mode == "r":
                beside = [other for other in beside if other.mode != "r"]
            if it.mode == "p":
                beside = beside if len(beside) >= lock.permits else []
            if beside:
                others = ", ".join(f"{other.who} from {other.begin} to {other.end}" for other in beside)
                self.violate("overlap", f"{name}: {it.who} from {it.begin} to {it.end} beside {others}")
            lock.active.append(it)
            if it.fence:
                # A lock that lingered is acquired again with the fence that it had.
                if it.fence < lock.fence or (it.fence == lock.fence and it.who != lock.fence_who):
                    self.violate("fence", f"{name}: {it.who} has {it.fence} at {it.begin}, after {lock.fence} of {lock.fence_who}")
                lock.fence, lock.fence_who = max(lock.fence, it.fence), it.who

    def _judge_counter(self, name, counter, until):
        due = [it for it in counter.cycles if it.read_at < until]
        counter.cycles = [it for it in counter.cycles if it.read_at >= until]
        if counter.kind == "fenced":
            self._judge_fenced(name, counter, due)
            return
        counter.loose += [it for it in due if not it.covered()]
        for it in sorted((it for it in due if it.covered()), key=lambda it: it.read_at):
            counter.written += 1
            if it.written != it.value + 1:
                self.violate("log", f"{it.who} wrote {it.written} to {name}, after {it.value}")
            last, counter.last = counter.last, it
            if last is None:
                continue
            if self._loose_between(counter, last, it.read_at):
                counter.skipped += 1
            elif it.value != last.written:
                self.violate("counter", f"{name}: {it.who} read {it.value} at {it.read_at}, and {last.who} had written "
                             f"{last.written}")
        if counter.last is not None:
            counter.loose = [it for it in counter.loose if self._end_of(it) > counter.last.write_at]

    @staticmethod
    def _end_of(cycle):
        return cycle.wrote_at if cycle.wrote_at is not None else getattr(cycle, "gone_at", EVER)

    def _loose_between(self, counter, last, at):
        return any(it.write_at < at and self._end_of(it) > last.write_at for it in counter.loose)

    def _judge_fenced(self, name, counter, due):
        """Its writes stand in the order in which it took them; a process that died may have written or not."""
        counter.unsure |= {it.written for it in due if it.wrote_at is None}
        for it in sorted((it for it in due if it.wrote_at is not None), key=lambda it: it.wrote_at):
            counter.written += 1
            counter.skipped += not it.covered()
            missing = set(range(counter.value + 1, it.written)) - counter.unsure
            if it.written <= counter.value or missing:
                self.violate("counter", f"{name}: {it.who} wrote {it.written} at {it.wrote_at}, after {counter.value}")
            counter.value = max(counter.value, it.written)
            counter.unsure = {value for value in counter.unsure if value > counter.value}

    def _judge_final(self, name, counter):
        if counter.final is None:
            if counter.written:
                self.violate("log", f"{name} has no final value")
            return
        at, value = counter.final
        if counter.kind == "fenced":
            if value != counter.value and value not in counter.unsure:
                self.violate("counter", f"{name} is {value} in the end, and {counter.value} was written last")
        elif counter.last is not None and value != counter.last.written and not self._loose_between(counter, counter.last, at):
            self.violate("counter", f"{name} is {value} in the end, and {counter.last.who} had written {counter.last.written}")

    def _judge_waits(self, until):
        due = [it for it in self.calls if it[0] < until]
        self.calls = [it for it in self.calls if it[0] >= until]
        for at, asked, process, lock, call, bound, excused in due:
            stopped = sum(max(0, min(at, end) - max(asked, begin)) for begin, end in self.stops.get(process.name, ()))
            over = at - asked - stopped - excused - bound
            self.longest[call] = max(self.longest[call], over)
            if over > LATE_MAX:
                self.violate("wait", f"{process.name}: {call} of {lock} at {asked} took {over / SECOND:.1f} s more than its "
                             f"{bound / SECOND:.1f} s")

    def _judge_memory(self, process):
        samples, process.memory = process.memory, []
        if len(samples) < 8 or samples[-1][0] - samples[0][0] < MEMORY_AGE_MIN:
            return
        quarter = len(samples) // 4
        early, late = samples[quarter:2 * quarter], samples[-quarter:]
        rss, heap = (statistics.median(it[part] for it in late) - statistics.median(it[part] for it in early) for part in (1, 2))
        self.memory_judged += 1
        self.growth = (max(self.growth[0], rss), max(self.growth[1], heap))
        heap_max = HEAP_GROWTH_MAX + (TLS_HEAP if "tls" in process.role.split("-") else 0)
        if rss > RSS_GROWTH_MAX or heap > heap_max:
            self.violate("memory", f"{process.name} grew by {rss / 1024:.0f} KiB, its heap by {heap / 1024:.0f} KiB, within "
                         f"{(samples[-1][0] - samples[0][0]) / SECOND:.0f} s")

    # ---- What it says -----------------------------------------------------------------------------------------------

    def count_grants(self):
        return sum(lock.grants for lock in self.locks.values())

    def figures(self):
        """Lines."""
        yield f"{self.count_grants()} grants, {sum(self.faults.values())} faults, {sum(self.violations.values())} violations"
        yield ""
        yield "grants by lock: " + ", ".join(f"{name} {lock.grants}" for name, lock in sorted(self.locks.items()))
        yield "grants by client: " + ", ".join(f"{name} {count}" for name, count in sorted(self.grants_by_role.items()))
        yield "faults: " + (", ".join(f"{name} {count}" for name, count in sorted(self.faults.items())) or "none")
        yield "other outcomes: " + (", ".join(f"{name} {count}" for name, count in sorted(self.outcomes.items())) or "none")
        yield "counters: " + ", ".join(
            f"{name} {counter.written} ({counter.skipped} {'late' if counter.kind == 'fenced' else 'not compared'})"
            for name, counter in sorted(self.counters.items()))
        yield f"writes that a fence refused: {self.refused}"
        yield "longest call over its bound, without stops: " + (", ".join(
            f"{call} {max(over, 0) / SECOND:.2f} s" for call, over in sorted(self.longest.items())) or "none")
        yield (f"memory: {self.memory_judged} processes compared, at most {self.growth[0] / 1024:.0f} KiB of growth, "
               f"{self.growth[1] / 1024:.1f} KiB of heap")
        if self.violations:
            yield "violations: " + ", ".join(f"{rule} {count}" for rule, count in sorted(self.violations.items()))
            yield from self.texts


class Reader:
    """Feeds a judge with what has been added to the logs of a folder."""

    def __init__(self, folder, judge):
        self.folder, self.judge = pathlib.Path(folder), judge
        self.places = {}  # By path: how far it was read. Nothing stays open: in hours there are many processes.

    def read(self):
        """A process's end, which soak.log has, comes after its last line: soak.log is read first, and its ends are put off."""
        ends = []
        for path in sorted(self.folder.glob("*.log"), key=lambda path: (path.name != "soak.log", path.name)):
            with open(path, "rb") as file:
                file.seek(self.places.get(path, 0))
                lines, end, _ = file.read().rpartition(b"\n")  # What has no end yet is read when it has.
            self.places[path] = self.places.get(path, 0) + len(lines) + len(end)
            for line in lines.decode().split("\n") if lines else ():
                if line.startswith("exit "):
                    ends.append(line)
                else:
                    self.judge.feed(path.stem, line)
        for line in ends:
            self.judge.feed("soak", line)


def main():
    if len(sys.argv) != 2 or not (pathlib.Path(sys.argv[1]) / "soak.log").is_file():
        print("usage: checker.py FOLDER, which has a soak.log", file=sys.stderr)
        return 2
    judge = Judge()
    Reader(sys.argv[1], judge).read()
    judge.finish()
    print("\n".join(judge.figures()))
    return 1 if judge.violations else 0


if __name__ == "__main__":
    sys.exit(main())

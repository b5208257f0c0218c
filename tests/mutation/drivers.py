#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Changes the drivers, src/posix and src/asio, in many small ways and tells which changes the live tests do not see.

The changes are those of mutate.py, and also those of destructors: each file has one copy with all of its changes, and
HOLDFAST_MUTANT says which one is in force. Programs of live tests that use no other program are linked with the copies.

A live test waits more than it computes, so a single test is asked, not a program of them. First each test is run without a
change: how long it takes, and which changes it comes past. A change is then asked of no more than --cases (12) tests that come
past it: three that together come past most of its function, two that come past most of its file, two quick ones of the suites
that belong to the file, and a quick one of any. The first that fails, and fails again, ends it. "Alive" is what none of those
sees: a test that was not asked may see it.

A test that takes longer than three times its own time and five seconds hangs, one that takes five times its share of a
processor and two seconds spins: either is seen, and hangs are counted apart, since a busy machine can make one, too. --control
runs so many of those tests without a change among the others, and tells how many of them failed: what the figures are worth.
Servers are those of HOLDFAST_SERVERS (redis-server).

The output folder holds drivers.json and the programs. What a test says to change 7:
`HOLDFAST_MUTANT=7 build/plain/mutation-drivers/test_live_mutex -tc=NAME`.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import glob
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import mutate
from mutate import Kind, ROOT, identity, is_header, run, say

mutate.Source.bodies += (Kind.DESTRUCTOR,)

FOLDERS = ("src/posix", "src/asio")
ARCHIVES = ("src/libholdfast.a", "src/asio/libholdfast-asio.a")
MEMORY = 2 << 30  # Of each process: a change can make one that takes all there is.
UNIT = ("test_url", "test_asio_error")  # Of unit tests those that know drivers.
# Programs that drive others, which are not linked with the copies.
DRIVE_OTHERS = ("command*", "examples", "asio_examples", "guide", "readme", "firmware")
# The suites of a file where their names do not say it, without what says that they run over Asio.
SUITES = {
    "client": ("posix", "call_ends", "mutex", "small_client"),
    "client_hot": ("mutex",),
    "client_transport": ("posix", "faults", "call_ends"),
    "hold_record": ("call_ends", "mutex", "reentrant", "owner", "faults"),
    "hold_record_hot": ("mutex", "owner"),
    "lingering": ("linger",),
    "mixed_lock_set": ("lock_set",),
    "push_ear": ("push", "push_faults"),
    "push_link": ("push", "push_faults"),
    "queue_ear": ("push", "fair"),
    "quorum_push_ear": ("quorum", "push"),
    "quorum_record": ("quorum", "quorum_ends", "quorum_faults", "quorum_owner"),
    "question": ("inspection",),
    "record": ("holds", "mutex", "reentrant", "owner", "cancel", "faults"),
    "node": ("connect", "service", "cancel", "threads", "faults"),
    "client_core": ("connect", "threads"),
    "loop": ("threads", "cancel", "handlers"),
    "hold": ("holds",),
    "inquiry": ("inspection",),
    "quorum_inquiry": ("quorum_inspection",),
    "quorum_core": ("quorum",),
    "branch": ("branches", "watchdog", "quorum"),
    "resolver": ("posix", "call_ends"),
    "subscription": ("push",),
    "url": ("posix",),
    "url_parts": ("posix",),
    "wake_pipe": ("call_ends", "posting"),
    "poll_sockets": ("posix", "quorum_ends"),
    "watchdog_branches": ("branches", "cluster_watchdog"),
    "watchdog_lane": ("watchdog", "posting"),
    "wire": ("connect", "tls"),
}


# ---- Sources, copies, programs -----------------------------------------------------------------------------------


def read_sources(entries, out):
    sources, stores = [], {}
    paths = sorted(it for folder in FOLDERS for it in glob.glob(f"{ROOT}/{folder}/*.[ch]pp"))
    for place, path in enumerate(paths):
        folder = os.path.dirname(path)
        of_folder = next(it for file, it in sorted(entries.items()) if os.path.dirname(file) == folder)
        source, stores[path] = mutate.source_of(path, entries.get(path, of_folder), out)
        source.entry = entries.get(path, of_folder)
        if len(source.mutants) >= mutate.NUMBERS_PER_FILE:
            sys.exit(f"drivers: {source.path} has more mutants than NUMBERS_PER_FILE")
        for number, mutant in enumerate(source.mutants, place * mutate.NUMBERS_PER_FILE + 1):
            mutant.number = number
        sources.append(source)
    # The headers first: the copies of the sources include theirs.
    sources.sort(key=lambda it: not is_header(it.path))
    return sources, stores


def tree_digest(build):
    """Of all that a copy may include."""
    digest = hashlib.sha256()
    names = [it for folder in ("include", "proto", "src") for it in glob.glob(f"{ROOT}/{folder}/**/*.hpp", recursive=True)]
    for name in sorted(names) + [os.path.join(mutate.HERE, "mutant.hpp"), os.path.join(build, "compile_commands.json")]:
        with open(name, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def compile_copy(source, out, tree):
    """As mutate.compile_copy(); what was compiled already is left as it is. A header has no object file."""
    copy = os.path.join(out, "copies", source.path)
    object_file = os.path.join(out, source.path.replace("/", "_") + ".o")
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    words = [it for it in mutate.command_for_copies(source.entry, out) if it not in ("-fno-inline", "-fkeep-inline-functions")]
    for folder in FOLDERS:
        words += ["-iquote", os.path.join(out, "copies", folder)]
    words += ["-iquote", os.path.dirname(source.file)]
    words += ["-fsyntax-only", "-x", "c++", copy] if is_header(source.path) else ["-c", copy, "-o", object_file]
    stamp = object_file + ".made_of"

    def made_of(text):
        return hashlib.sha256("\0".join([tree, text, *words]).encode()).hexdigest()

    if os.path.exists(copy) and os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as file:
            if file.read() == made_of(source.render()[0]):
                return None if is_header(source.path) else object_file
    while True:
        text, spans = source.drop_what_does_not_compile()
        with open(copy, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(["nice", *words], cwd=source.entry["directory"], capture_output=True, text=True)
        if done.returncode == 0:
            with open(stamp, "w", encoding="utf-8") as file:
                file.write(made_of(text))
            break
        starts = [0]
        for line in text.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        places = re.findall(rf"^{re.escape(copy)}:(\d+):(\d+): error", done.stderr, re.MULTILINE)
        # Two lines stand ahead of the first.
        if not source.drop_at(spans, text, [starts[int(line) + 1] + int(column) - 1 for line, column in places]):
            sys.exit(f"drivers: the copy of {source.path} does not compile:\n{done.stderr[-4000:]}")
    return None if is_header(source.path) else object_file


class Program:
    """Of live tests, in one environment."""

    def __init__(self, test, build):
        self.target = os.path.relpath(test["cmd"][0], build)
        self.environment = {name: value for name, value in test["env"].items() if name != "HOLDFAST_ONE_SERVER"}
        self.suite = os.path.basename(self.target).removeprefix("test_live_").removeprefix("test_")
        self.name = re.sub(r"^live |, \d+ of \d+$", "", test["name"])
        self.file = self.digest = None


def programs_of(build, ask):
    programs = {}
    for test in json.loads(run(["meson", "introspect", "--tests", build])):
        program = Program(test, build)
        file = os.path.basename(program.target)
        if (file.startswith("test_live_") or file in UNIT) and not any(fnmatch.fnmatch(program.suite, it) for it in DRIVE_OTHERS):
            programs.setdefault(program.name, program)
    if ask:
        programs = {name: it for name, it in programs.items() if any(fnmatch.fnmatchcase(name, part) for part in ask)}
    if not programs:
        sys.exit(f"drivers: no live tests in {build}; configure it with -Dtests=enabled")
    return list(programs.values())


def link(program, build, archives, out):
    words = mutate.link_words(program, build)
    program.file = os.path.join(out, os.path.basename(program.target))
    words[words.index("-o") + 1] = program.file
    run([archives.get(it, it) for it in words], cwd=build)
    with open(program.file, "rb") as file:
        program.digest = hashlib.sha256(file.read()).hexdigest()


def build_all(build, sources, stores, programs, out, jobs):
    tree = tree_digest(build)
    objects = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for headers in (True, False):
            here = [it for it in sources if is_header(it.path) == headers]
            texts = []
            for source, made in zip(here, pool.map(lambda it: compile_copy(it, out, tree), here)):
                objects[source.file] = made
                mutate.keep(source, stores[source.file])  # With what does not compile.
                if headers:
                    with open(os.path.join(out, "copies", source.path), encoding="utf-8") as file:
                        texts.append(file.read())
            tree = hashlib.sha256("\0".join([tree, *texts]).encode()).hexdigest()

    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    parts = {}  # Of each archive.
    for entry in commands:
        path = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
        folder = entry["output"].partition(".a.p/")[0] + ".a"
        folder = "src/libholdfast.a" if folder == "proto/libholdfast-proto.a" else folder
        if folder in ARCHIVES:
            parts.setdefault(folder, []).append(objects.get(path) or entry["output"])
    names = [it for part in parts.values() for it in part if not os.path.isabs(it)]
    for program in programs:
        words = mutate.link_words(program, build)
        names += [it for it in words[words.index("-o") + 2 :] if it.endswith((".a", ".o")) and it not in ARCHIVES]
    names = [it for it in dict.fromkeys(names) if not os.path.isabs(it)]
    run(["nice", "ninja", "-C", build, f"-j{jobs}", *names])

    question = os.path.join(out, "mutant.o")
    run(["c++", "-std=c++20", "-O1", "-c", os.path.join(mutate.HERE, "mutant.cpp"), "-o", question])
    archives = {}
    for archive, members in parts.items():
        archives[archive] = os.path.join(out, os.path.basename(archive))
        mutate.remove(archives[archive])
        run(["ar", "crD", archives[archive], *([question] if archive == ARCHIVES[0] else []), *members], cwd=build)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda it: link(it, build, archives, out), programs))


# ---- Running -----------------------------------------------------------------------------------------------------


class Case:
    """A test of a program."""

    def __init__(self, program, name):
        self.program, self.name = program, name
        self.wall = self.cpu = 0.0
        self.reached = frozenset()


stopping = threading.Event()
leftovers, seldom = collections.Counter(), collections.Counter()  # Of processes, and of failures that did not come again.


def members_of(session):
    """Processes of a session that are still there."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(name))
    return found


def sweep(session):
    """Ends what a test has left behind, and tells how many there were."""
    left = members_of(session)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    return len(left)


def ask(case, mutant, wall, cpu, record=None):
    """How it failed, or None, and what it took: seconds of the wall and of a processor."""
    environment = {"HOLDFAST_SERVERS": "redis-server", **os.environ, **case.program.environment, "HOLDFAST_MUTANT": str(mutant)}
    if record:
        environment["HOLDFAST_REACHED"] = record
    limits = ["prlimit", "--core=0", f"--as={MEMORY}", f"--cpu={cpu}", "nice", "-n", "10"]
    begin = time.monotonic()
    process = subprocess.Popen(
        [*limits, case.program.file, f"--test-case={case.name}", "--case-sensitive=true", "--abort-after=1"],
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )
    late = threading.Event()

    def end():
        late.set()
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except OSError:
            pass  # It has just ended.

    timer = threading.Timer(wall, end)
    timer.start()
    _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    process.returncode = code = os.waitstatus_to_exitcode(status)
    leftovers["processes"] += sweep(process.pid)
    took = time.monotonic() - begin, usage.ru_utime + usage.ru_stime
    if code == 0:
        return None, took
    if late.is_set():
        return "hangs", took
    return "fails" if code > 0 else "spins" if code in (-signal.SIGKILL, -signal.SIGXCPU) else "crashes", took


def limits_of(case):
    return 3 * case.wall + 5, int(5 * case.cpu) + 2


def ask_twice(case, mutant):
    """How it failed both times, or None."""
    if not ask(case, mutant, *limits_of(case))[0]:
        return None
    failure, _ = ask(case, mutant, *limits_of(case))
    seldom["with a change" if mutant else "without one"] += not failure
    return failure


def cases_of(program):
    environment = {"HOLDFAST_SERVERS": "redis-server", **os.environ, **program.environment}
    listed = run([program.file, "--list-test-cases"], env=environment)
    return [Case(program, it) for it in re.findall(r"^\w+$", listed, re.MULTILINE)]


def try_unmutated(programs, out, jobs):
    """All tests that pass, with what each takes and comes past. What is known of the same program is not asked again."""
    store = os.path.join(out, "cases.json")
    known = {}
    if os.path.exists(store):
        with open(store, encoding="utf-8") as file:
            known = json.load(file)
    every = [case for program in programs for case in cases_of(program)]

    def try_one(case):
        key = f"{case.program.name} {case.name} {case.program.digest}"
        if key not in known:
            record = os.path.join(out, f"reached.{threading.get_ident()}")
            for _ in range(2):
                mutate.remove(record)
                failure, took = ask(case, 0, 200, 100, record)
                if not failure:
                    break
            else:
                say(f"left out, since it {failure} without any change: {case.program.name}: {case.name}")
                return None
            with open(record, "rb") as file:
                known[key] = [*took, [number for number, seen in enumerate(file.read()) if seen]]
            mutate.remove(record)
        case.wall, case.cpu, numbers = known[key]
        case.reached = frozenset(numbers)
        return case

    try:
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            kept = [it for it in pool.map(try_one, every) if it]
    finally:
        with open(store + ".new", "w", encoding="utf-8") as file:
            json.dump(known, file)
        os.replace(store + ".new", store)
    return kept


# ---- Judging -----------------------------------------------------------------------------------------------------


def words_of(text):
    """Of names and comments: `begin_spared` has two."""
    return {it.lower().rstrip("s") for it in re.findall(r"[A-Za-z][a-z]+", text)}


def belongs(program, path):
    stem = mutate.stem_of(path).removeprefix("async_")
    suite = re.sub(r"^asio_|_over_asio$", "", program.suite)
    return suite == stem or suite in SUITES.get(stem, ())


class Choice:
    """Of tests that a change is asked of, and what they take together."""

    def __init__(self, reaching, patience):
        self.reaching, self.patience = reaching, patience
        self.cases, self.by_program, self.seconds = [], collections.Counter(), 0.0

    def take(self, case):
        self.cases.append(case)
        self.by_program[case.program.name] += 1
        self.seconds += case.wall

    def fits(self, case):
        return case not in self.cases and (not self.cases or self.seconds + case.wall <= self.patience)

    def cover(self, numbers, limit):
        """Those that together come past most of these changes, in what they take."""
        left = set(numbers)
        while len(self.cases) < limit:
            fit = [it for it in self.reaching if self.fits(it)]
            best = max(fit, key=lambda it: len(left & it.reached) / (it.wall + 0.5), default=None)
            if best is None or not left & best.reached:
                return
            left -= best.reached
            self.take(best)

    def akin(self, words, limit):
        """Those whose names share most of these words, the rare ones above all."""
        names = {it: words_of(it.name) for it in self.reaching}
        often = collections.Counter(word for name in names.values() for word in name)

        def score(case):
            return sum(1 / often[word] for word in words & names[case]) / (case.wall + 2)

        for case in sorted(self.reaching, key=score, reverse=True):
            if len(self.cases) < limit and self.fits(case) and self.by_program[case.program.name] < 2:
                self.take(case)

    def quickest(self, limit, wanted=lambda it: True, of_a_program=2):
        for case in self.reaching:
            if len(self.cases) < limit and self.fits(case) and wanted(case.program):
                if self.by_program[case.program.name] < of_a_program:
                    self.take(case)


class Judge:
    def __init__(self, cases, mutants, count, patience):
        self.count, self.patience = count, patience
        self.numbers = collections.defaultdict(set)  # Of a function, and of a file.
        for it in mutants:
            self.numbers[it.path, it.function].add(it.number)
            self.numbers[it.path].add(it.number)
        self.lines = {}
        for path in {it.path for it in mutants}:
            with open(path, encoding="utf-8") as file:
                self.lines[path] = file.read().split("\n")
        self.reaching = collections.defaultdict(list)
        for case in sorted(cases, key=lambda it: it.wall):
            for number in case.reached:
                self.reaching[number].append(case)
        self.saw = collections.defaultdict(collections.Counter)  # Of a function: who saw its changes.

    def choose(self, mutant):
        """Which tests are asked, the quickest first."""
        choice = Choice(self.reaching[mutant.number], self.patience)
        lines = self.lines[mutant.path][max(0, mutant.line - 4) : mutant.line + 3]
        limits = iter(self.count * parts // 12 for parts in (3, 5, 9, 11))
        choice.cover(self.numbers[mutant.path, mutant.function], next(limits))
        choice.cover(self.numbers[mutant.path], next(limits))
        choice.akin(words_of(mutant.function + " " + " ".join(lines)), next(limits))
        choice.quickest(next(limits), lambda it: belongs(it, mutant.path))
        choice.quickest(self.count)
        choice.quickest(self.count, of_a_program=self.count)
        return sorted(choice.cases, key=lambda it: it.wall)

    def __call__(self, mutant):
        """Who saw it, or None, how, and of how many it was asked."""
        if stopping.is_set():
            return None
        chosen = self.choose(mutant)
        # Who saw a change of the same function is asked first: the answer is the same, and sooner.
        saw = self.saw[mutant.path, mutant.function]
        chosen.sort(key=lambda it: (-min(saw[it], 3), it.wall))
        for asked, case in enumerate(chosen, 1):
            failure = ask_twice(case, mutant.number)
            if failure:
                saw[case] += 1
                return f"{case.program.name}: {case.name}", failure, asked
            if stopping.is_set():
                return None
        return None, "survives" if chosen else "is not reached", len(chosen)

    def control(self, mutant, dice):
        """The same without a change: one of the tests that it would be asked of."""
        chosen = self.choose(mutant)
        if stopping.is_set() or not chosen:
            return None
        case = chosen[dice % len(chosen)]
        failure = ask_twice(case, 0)
        return f"{case.program.name}: {case.name}: {failure}" if failure else ""


def by_chance(mutants, seed):
    """All of them, so that the first so many are a fair sample of every file."""
    files = collections.defaultdict(list)
    for mutant in mutants:
        files[mutant.path].append(mutant)
    order = []
    for path, of_file in files.items():
        dice = random.Random(f"{seed} {path}")
        dice.shuffle(of_file)
        begin = dice.random()
        order += [((place + begin) / len(of_file), it) for place, it in enumerate(of_file)]
    return [it for _, it in sorted(order, key=lambda it: it[0])]


def judge_all(mutants, judge, controls, jobs, minutes, save):
    results, failures, calm = {}, [], 0
    begin = time.monotonic()
    last = begin
    every = max(1, len(mutants) // max(1, controls))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {}
        for place, mutant in enumerate(mutants):
            futures[pool.submit(judge, mutant)] = mutant
            if controls and place % every == 0:
                futures[pool.submit(judge.control, mutant, place)] = None
        timer = threading.Timer(60 * minutes, stopping.set) if minutes else None
        if timer:
            timer.start()
        try:
            for future in concurrent.futures.as_completed(futures):
                result = future.result()
                mutant = futures[future]
                if result is None:
                    continue
                if mutant:
                    results[mutant.number] = result
                else:
                    if result:
                        say(f"failed without a change: {result}")
                    calm += result == ""
                    failures += [result] if result else []
                if time.monotonic() - last > 30:
                    last = time.monotonic()
                    save(results)
                    unseen = sum(not it[0] for it in results.values())
                    say(f"{len(results)} of {len(mutants)}, {unseen} unseen, control {calm} of {calm + len(failures)}, "
                        f"{last - begin:.0f} s")
        except KeyboardInterrupt:
            stopping.set()
        finally:
            save(results)
        if timer:
            timer.cancel()
    save(results)
    return results, calm, failures


# ---- The report --------------------------------------------------------------------------------------------------


def report(mutants, results, argued):
    rows = collections.OrderedDict()
    alive = []
    for mutant in mutants:
        row = rows.setdefault(mutant.path, collections.Counter())
        row["changes"] += 1
        if mutant.number not in results:
            continue
        killer, how, _ = results[mutant.number]
        row["asked"] += 1
        if killer:
            row["seen"] += 1
            row["hung"] += how == "hangs"
        elif mutant.key() in argued:
            row["argued"] += 1
        else:
            row["unreached" if how == "is not reached" else "alive"] += 1
            alive.append(mutant)
    total = collections.Counter()
    for row in rows.values():
        total.update(row)
    columns = "{:34} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7} {:>10} {:>7}".format
    print(columns("file", "changes", "asked", "seen", "by hang", "argued", "alive", "unreached", "score"))
    for name, row in [*rows.items(), ("all", total)]:
        if row["asked"]:
            numbers = [row[it] for it in ("changes", "asked", "seen", "hung", "argued", "alive", "unreached")]
            print(columns(name, *numbers, f"{row['seen'] / max(1, row['asked'] - row['argued']):.1%}"))
    if alive:
        print("\nalive:")
    for mutant in alive:
        unreached = " (not reached)" if results[mutant.number][1] == "is not reached" else ""
        print(f"{mutant.path}:{mutant.line}: {mutant.function}: {mutant.change()}{unreached}  [{mutant.number}]")
    found = {it.number: (results[it.number][0], "", False) for it in mutants if it.number in results}
    for line in mutate.needless(mutants, found, argued):
        print(f"survivors.txt argues what is seen: {line}")
    return not alive


def main():
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())  # And the report of what was asked until then.
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="a configured Meson build folder with tests, e.g. build/plain")
    parser.add_argument("--out", help="where everything goes (BUILD/mutation-drivers)")
    parser.add_argument("--only", default="", metavar="TEXT[,TEXT]", help="files with this in their path")
    parser.add_argument("--again", action="store_true", help="only what earlier runs left alive")
    parser.add_argument("--new", action="store_true", help="only what no earlier run asked")
    parser.add_argument("--mutant", metavar="N[,N]", help="only these, by the number at the end of the list")
    parser.add_argument("--list", action="store_true", help="only list the changes")
    parser.add_argument("--report", action="store_true", help="only report what earlier runs found")
    parser.add_argument("--ask", default="", metavar="NAME[,NAME]", help="only these programs, as Meson names their tests less"
                        " `live `; may have *")
    parser.add_argument("--cases", type=int, default=12, help="of how many tests a change is asked (12)")
    parser.add_argument("--patience", type=float, default=40, help="seconds that these take together (40); always one is asked")
    parser.add_argument("--sample", type=int, metavar="N", help="N changes by chance, of each file its share")
    parser.add_argument("--seed", type=int, default=1, help="of that chance (1)")
    parser.add_argument("--minutes", type=float, help="ask for so long: as the order is by chance, of each file its share")
    parser.add_argument("--control", type=int, default=100, metavar="N", help="so many runs without a change (100)")
    parser.add_argument("--jobs", type=int, default=6, help="tests at once (6)")
    arguments = parser.parse_args()

    build = os.path.realpath(arguments.build)
    if not os.path.exists(os.path.join(build, "compile_commands.json")):
        sys.exit(f"drivers: {arguments.build} is no configured build folder: see ./dev mutate")
    out = os.path.realpath(arguments.out or os.path.join(build, "mutation-drivers"))
    os.makedirs(out, exist_ok=True)
    os.chdir(ROOT)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    entries = {}
    for entry in commands:
        path = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
        if os.path.dirname(os.path.relpath(path, ROOT)) in FOLDERS:
            entries.setdefault(path, entry)
    sources, stores = read_sources(entries, out)
    processors = os.cpu_count() or 2
    if not arguments.list and not arguments.report:
        programs = programs_of(build, [it for it in arguments.ask.split(",") if it])
        say(f"{sum(len(it.mutants) for it in sources)} changes; building {len(programs)} programs")
        build_all(build, sources, stores, programs, out, processors)

    parts = arguments.only.split(",")
    sources.sort(key=lambda it: it.path)
    mutants = [it for source in sources for it in source.mutants]
    mutate.count_equals(mutants)
    argued = mutate.read_argued()
    mutants = [it for it in mutants if not it.dropped]
    wanted = [it for it in mutants if any(part in it.path for part in parts)]
    if arguments.list:
        for mutant in wanted:
            print(f"{mutant.path}:{mutant.line}: {mutant.function}: {mutant.change()}  [{mutant.number}]")
        return mutate.complain(mutants, argued)

    store = os.path.join(out, "drivers.json")
    known = {}
    if os.path.exists(store):
        with open(store, encoding="utf-8") as file:
            known = json.load(file)
    exist = {identity(it) for it in mutants}
    known = {name: it for name, it in known.items() if name in exist}
    if not arguments.report:
        cases = try_unmutated(programs, out, arguments.jobs)
        say(f"without a change {len(cases)} tests pass, which take {sum(it.wall for it in cases):.0f} s, "
            f"{sum(it.cpu for it in cases):.0f} s of a processor; they come past "
            f"{len(set().union(*(it.reached for it in cases)))} changes")
        asked = by_chance(wanted, arguments.seed)
        if arguments.sample:
            asked = asked[: arguments.sample]
        if arguments.mutant:
            numbers = {int(it) for it in arguments.mutant.split(",")}
            wanted = asked = [it for it in asked if it.number in numbers]
        if arguments.again:
            asked = [it for it in asked if identity(it) in known and not known[identity(it)][0]]
        if arguments.new:
            asked = [it for it in asked if identity(it) not in known]

        def save(results):
            for it in asked:
                # Whom other tests came past in vain is no change that was not reached.
                if it.number in results and (results[it.number][1] != "is not reached" or identity(it) not in known):
                    known[identity(it)] = results[it.number]
            with open(store + ".new", "w", encoding="utf-8") as file:
                json.dump(known, file, indent=0)
            os.replace(store + ".new", store)

        judge = Judge(cases, mutants, arguments.cases, arguments.patience)
        _, calm, failures = judge_all(asked, judge, arguments.control, arguments.jobs, arguments.minutes, save)
        print(f"without a change {calm} of {calm + len(failures)} runs passed; "
              f"{leftovers['processes']} processes were left by tests and ended")
        print(f"failures that did not come again: {seldom['with a change']} with a change, {seldom['without one']} without one")
    results = {it.number: known[identity(it)] for it in wanted if identity(it) in known}
    all_seen = report(wanted, results, argued)
    return mutate.complain(mutants, argued) or (0 if all_seen else 1)


if __name__ == "__main__":
    sys.exit(main())

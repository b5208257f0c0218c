#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The checker of the soak over logs that were written by hand: it lets pass what is right, and each rule sees what breaks it."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import checker

SECOND = checker.SECOND


def hold(actor, begin, end, until, mode="x", lock="one.lock", fence=0, work=(), release="ok"):
    """An acquire that is granted, what is done under it, and its release."""
    yield f"ask {begin - 10} {actor} {lock} acquire {SECOND}"
    yield f"got {begin} {actor} {lock} {mode} {until} {fence}"
    yield from work
    yield f"end {end} {actor}"
    yield f"ask {end} {actor} {lock} release {SECOND}"
    yield f"told {end + 5} {actor} {release} 0"


def count(actor, counter, value, read_at, write_at):
    """A counter is read, and one more is written."""
    yield f"read {read_at} {actor} {counter} {value}"
    yield f"write {write_at} {actor} {value + 1}"
    yield f"wrote {write_at + 2} {actor}"


def write(folder, name, lines):
    (pathlib.Path(folder) / (name + ".log")).write_text("".join(line + "\n" for line in lines))


def run_checker(folder):
    return subprocess.run([sys.executable, "-B", HERE / "checker.py", folder], capture_output=True, text=True, check=False)


class TestChecker(unittest.TestCase):
    def setUp(self):
        self.soak = ["lock 1 one.lock 1", "counter 1 one.counter plain"]
        self.workers = {}

    def worker(self, name, *parts, bye=True):
        lines = [f"start 1 100 {name}"]
        for part in parts:
            lines += [part] if isinstance(part, str) else list(part)
        self.workers[name] = lines + (["bye 999"] if bye else [])

    def judge(self):
        """From a folder at once, and line by line while it judges: both must say the same."""
        ends = [line for line in self.soak if line.startswith("exit ")]
        for name in self.workers:
            if not any(line.split()[2] == name for line in ends):
                ends.append(f"exit 1000 {name} 0 finished")
        soak = [line for line in self.soak if not line.startswith("exit ")]
        with tempfile.TemporaryDirectory() as folder:
            write(folder, "soak", ends[:1] + soak + ends[1:])
            for name, lines in self.workers.items():
                write(folder, name, lines)
            whole = checker.Judge()
            checker.Reader(folder, whole).read()
            whole.finish()
        pieces = checker.Judge()
        for line in soak:
            if not line.startswith("final "):
                pieces.feed("soak", line)
        lines = [(int(line.split()[1]), name, line) for name, lines in self.workers.items() for line in lines]
        for at, name, line in sorted(lines, key=lambda each: each[0]):
            pieces.judge(at - 1)
            pieces.feed(name, line)
        for line in ends + [line for line in soak if line.startswith("final ")]:
            pieces.feed("soak", line)
        pieces.finish()
        self.assertEqual(whole.violations, pieces.violations, whole.texts + pieces.texts)
        return dict(whole.violations)

    def assert_right(self):
        self.assertEqual(self.judge(), {})

    def assert_seen(self, *rules):
        self.assertEqual(sorted(self.judge()), sorted(rules))

    # ---- Beliefs ----------------------------------------------------------------------------------------------------

    def test_holds_one_after_the_other_should_pass(self):
        self.worker("a", hold(0, 100, 200, 900))
        self.worker("b", hold(0, 201, 300, 900))
        self.assert_right()

    def test_two_beliefs_at_the_same_time_should_be_seen(self):
        self.worker("a", hold(0, 100, 200, 900))
        self.worker("b", hold(0, 199, 300, 900))
        self.assert_seen("overlap")

    def test_two_actors_of_one_process_should_exclude_each_other_too(self):
        self.worker("a", hold(0, 100, 200, 900), hold(1, 150, 180, 900))
        self.assert_seen("overlap")

    def test_who_was_stopped_should_believe_until_the_validity_only(self):
        self.worker("a", hold(0, 100, 600, 200))
        self.worker("b", hold(0, 201, 300, 900))
        self.assert_right()

    def test_an_extension_should_lengthen_the_belief(self):
        self.worker("a", hold(0, 100, 600, 200, work=["until 150 0 500"]))
        self.worker("b", hold(0, 201, 300, 900))
        self.assert_seen("overlap")

    def test_a_grant_that_came_too_late_should_be_no_belief(self):
        self.worker("a", hold(0, 250, 260, 200))
        self.worker("b", hold(0, 201, 300, 900))
        self.assert_right()

    def test_who_was_killed_should_have_believed_until_the_validity(self):
        self.worker("a", list(hold(0, 100, 0, 400))[:2], bye=False)
        self.worker("b", hold(0, 300, 350, 900))
        self.soak.append("exit 500 a -9 killed")
        self.assert_seen("overlap")

    def test_who_was_killed_should_not_believe_any_more(self):
        self.worker("a", list(hold(0, 100, 0, 400))[:2], bye=False)
        self.worker("b", hold(0, 300, 350, 900))
        self.soak.append("exit 250 a -9 killed")
        self.assert_right()

    def test_readers_should_share_and_a_writer_should_not(self):
        self.worker("a", hold(0, 100, 200, 900, "r"))
        self.worker("b", hold(0, 150, 250, 900, "r"))
        self.assert_right()
        self.worker("c", hold(0, 220, 260, 900, "x"))
        self.assert_seen("overlap")

    def test_a_reader_beside_a_writer_should_be_seen(self):
        self.worker("a", hold(0, 100, 200, 900, "x"))
        self.worker("b", hold(0, 150, 250, 900, "r"))
        self.assert_seen("overlap")

    def test_as_many_permits_as_there_are_should_pass_and_one_more_be_seen(self):
        self.soak[0] = "lock 1 one.lock 2"
        self.worker("a", hold(0, 100, 200, 900, "p"))
        self.worker("b", hold(0, 150, 250, 900, "p"))
        self.worker("c", hold(0, 200, 260, 900, "p"))
        self.assert_right()
        self.worker("d", hold(0, 210, 240, 900, "p"))
        self.assert_seen("overlap")

    def test_two_locks_should_not_exclude_each_other(self):
        self.soak.append("lock 1 one.other 1")
        self.worker("a", hold(0, 100, 200, 900))
        self.worker("b", hold(0, 150, 250, 900, lock="one.other"))
        self.assert_right()

    # A process that takes both at once: it has an actor for each.
    def several(self, begin, end, until=900, release="ok", counts=((), ())):
        locks = zip(("0", "100"), ("one.lock", "one.other"), counts)
        return [line for lines in zip(*(hold(actor, begin, end, until, lock=lock, release=release, work=work)
                                        for actor, lock, work in locks)) for line in lines]

    def test_several_names_at_once_should_pass_beside_nobody_and_be_seen_beside_who_has_one_of_them(self):
        for lock, begin, rules in (("one.lock", 201, ()), ("one.other", 201, ()), ("one.lock", 199, ["overlap"]),
                                   ("one.other", 199, ["overlap"])):
            with self.subTest(lock=lock, begin=begin):
                self.setUp()
                self.soak.append("lock 1 one.other 1")
                self.worker("a", self.several(100, 200))
                self.worker("b", hold(0, begin, 300, 900, lock=lock))
                self.assert_seen(*rules)

    def test_two_who_take_several_names_at_once_should_be_seen_at_each_of_them(self):
        self.soak.append("lock 1 one.other 1")
        self.worker("a", self.several(100, 200))
        self.worker("b", self.several(150, 250))
        self.assertEqual(self.judge(), {"overlap": 2})

    def test_several_names_that_were_lost_before_their_time_should_be_seen_and_after_it_pass(self):
        for until, rules in ((900, ["lost"]), (150, [])):
            with self.subTest(until=until):
                self.setUp()
                self.soak.append("lock 1 one.other 1")
                self.worker("a", self.several(100, 200, until, "lock_lost"))
                self.assert_seen(*rules)

    def test_a_count_that_was_lost_under_one_of_several_names_should_be_seen(self):
        for value, rules in ((1, []), (0, ["counter"])):
            with self.subTest(value=value):
                self.setUp()
                self.soak += ["lock 1 one.other 1", "counter 1 one.second plain"]
                counts = [list(count(actor, counter, 0, 110, 190)) for actor, counter in ((0, "one.counter"), (100, "one.second"))]
                self.worker("a", self.several(100, 200, counts=counts))
                self.worker("b", hold(0, 201, 300, 900, lock="one.other", work=count(0, "one.second", value, 210, 290)))
                self.soak += ["final 998 one.counter 1", f"final 998 one.second {value + 1}"]
                self.assert_seen(*rules)

    def test_a_hold_that_was_lost_before_its_time_should_be_seen(self):
        self.worker("a", hold(0, 100, 200, 900, release="lock_lost"))
        self.assert_seen("lost")

    def test_a_hold_that_was_extended_and_lost_before_its_time_should_be_seen(self):
        self.worker("a", hold(0, 100, 200, 150, work=["until 140 0 900"], release="lock_lost"))
        self.assert_seen("lost")

    def test_a_hold_that_was_lost_after_its_time_should_pass(self):
        self.worker("a", hold(0, 100, 200, 204, release="lock_lost"))
        self.assert_right()

    def test_who_acquires_anew_should_be_told_of_the_loss_before_and_pass(self):
        self.worker("a", hold(0, 100, 200, 900), f"ask 300 0 one.lock acquire {SECOND}", "told 301 0 lock_lost 0")
        self.assert_right()

    # ---- Answers ----------------------------------------------------------------------------------------------------

    def answer(self, status):
        self.worker("a-blocking", hold(0, 100, 200, 900), f"ask 300 0 one.lock acquire {SECOND}", f"told 301 0 {status} 0")

    def test_an_answer_that_nothing_explains_should_be_seen(self):
        self.answer("cross_slot")
        self.assert_right()
        self.soak.append("answers 1 a-blocking ok lock_busy")
        self.assert_seen("answer")

    def test_an_answer_that_may_be_should_pass(self):
        self.answer("lock_busy")
        self.soak.append("answers 1 a-blocking ok lock_busy")
        self.assert_right()

    def test_answers_should_be_of_whom_they_are_for(self):
        self.answer("cross_slot")
        self.soak.append("answers 1 b-blocking ok lock_busy")
        self.assert_right()

    # ---- Counters ---------------------------------------------------------------------------------------------------

    def test_a_counter_that_lost_nothing_should_pass(self):
        self.worker("a", hold(0, 100, 200, 900, work=count(0, "one.counter", 0, 110, 190)))
        self.worker("b", hold(0, 201, 300, 900, work=count(0, "one.counter", 1, 210, 290)))
        self.soak.append("final 998 one.counter 2")
        self.assert_right()

    def test_a_lost_count_should_be_seen(self):
        self.worker("a", hold(0, 100, 200, 900, work=count(0, "one.counter", 0, 110, 190)))
        self.worker("b", hold(0, 201, 300, 900, work=count(0, "one.counter", 0, 210, 290)))
        self.soak.append("final 998 one.counter 1")
        self.assert_seen("counter")

    def test_a_count_that_is_missing_in_the_end_should_be_seen(self):
        self.worker("a", hold(0, 100, 200, 900, work=count(0, "one.counter", 0, 110, 190)))
        self.soak.append("final 998 one.counter 0")
        self.assert_seen("counter")

    def test_a_write_after_the_validity_should_excuse_what_it_spoils(self):
        self.worker("a", hold(0, 100, 350, 150, work=count(0, "one.counter", 0, 110, 340)))
        self.worker("b", hold(0, 160, 230, 900, work=count(0, "one.counter", 0, 170, 220)),
                    hold(0, 250, 300, 900, work=count(0, "one.counter", 1, 260, 290)))
        self.worker("c", hold(0, 400, 500, 900, work=count(0, "one.counter", 1, 410, 490)))
        self.soak.append("final 998 one.counter 2")
        self.assert_right()

    def test_a_write_after_the_validity_should_excuse_nothing_later(self):
        self.worker("a", hold(0, 100, 250, 150, work=count(0, "one.counter", 0, 110, 240)))
        self.worker("b", hold(0, 300, 400, 900, work=count(0, "one.counter", 1, 310, 390)))
        self.worker("c", hold(0, 500, 600, 900, work=count(0, "one.counter", 1, 510, 590)))
        self.soak.append("final 998 one.counter 2")
        self.assert_seen("counter")

    def test_who_died_in_a_write_should_have_written_or_not(self):
        for value in (0, 1):
            with self.subTest(value=value):
                self.setUp()
                self.worker("a", list(hold(0, 100, 0, 150))[:2], "read 110 0 one.counter 0", "write 120 0 1", bye=False)
                self.worker("b", hold(0, 160, 230, 900, work=count(0, "one.counter", value, 170, 220)))
                self.soak += ["exit 140 a -9 killed", f"final 998 one.counter {value + 1}"]
                self.assert_right()

    def test_a_fenced_counter_should_lose_nothing_whoever_comes_late(self):
        self.soak[1] = "counter 1 one.counter fenced"
        late = ["read 110 0 one.counter 0", "write 240 0 1", "refused 241 0 one.counter 1"]
        self.worker("a", hold(0, 100, 250, 150, fence=1, work=late))
        self.worker("b", hold(0, 160, 230, 900, fence=2, work=count(0, "one.counter", 0, 170, 220)))
        self.soak.append("final 998 one.counter 1")
        self.assert_right()

    def test_a_fenced_counter_that_lost_a_write_should_be_seen(self):
        self.soak[1] = "counter 1 one.counter fenced"
        self.worker("a", hold(0, 100, 250, 150, fence=1, work=count(0, "one.counter", 0, 110, 240)))
        self.worker("b", hold(0, 160, 230, 900, fence=2, work=count(0, "one.counter", 0, 170, 220)))
        self.soak.append("final 998 one.counter 1")
        self.assert_seen("counter")

    def test_a_fenced_counter_that_jumps_should_be_seen_unless_somebody_died_in_a_write(self):
        for died in (False, True):
            with self.subTest(died=died):
                self.setUp()
                self.soak[1] = "counter 1 one.counter fenced"
                if died:
                    begun = ["read 110 0 one.counter 0", "write 120 0 1"]
                    self.worker("a", list(hold(0, 100, 0, 150, fence=1))[:2], begun, bye=False)
                    self.soak.append("exit 140 a -9 killed")
                self.worker("b", hold(0, 160, 230, 900, fence=2, work=count(0, "one.counter", 1, 170, 220)))
                self.soak.append("final 998 one.counter 2")
                if died:
                    self.assert_right()
                else:
                    self.assert_seen("counter")

    def test_a_fenced_count_that_is_missing_in_the_end_should_be_seen(self):
        self.soak[1] = "counter 1 one.counter fenced"
        self.worker("a", hold(0, 100, 200, 900, fence=1, work=count(0, "one.counter", 0, 110, 190)))
        self.soak.append("final 998 one.counter 0")
        self.assert_seen("counter")

    # ---- Fences -----------------------------------------------------------------------------------------------------

    def test_fences_that_grow_should_pass(self):
        self.worker("a", hold(0, 100, 200, 900, fence=5), hold(0, 300, 400, 900, fence=9))
        self.worker("b", hold(0, 210, 290, 900, fence=6))
        self.assert_right()

    def test_a_fence_that_does_not_grow_should_be_seen(self):
        for fence in (5, 4):
            with self.subTest(fence=fence):
                self.setUp()
                self.worker("a", hold(0, 100, 200, 900, fence=5))
                self.worker("b", hold(0, 210, 290, 900, fence=fence))
                self.assert_seen("fence")

    def test_a_lock_that_lingered_should_keep_its_fence_and_pass(self):
        self.worker("a", hold(0, 100, 200, 900, fence=5), hold(0, 300, 400, 900, fence=5))
        self.assert_right()

    def test_a_valid_holder_who_was_refused_should_be_seen(self):
        self.worker("a", hold(0, 100, 200, 900, fence=5, work=["refused 150 0 one.counter 5"]))
        self.assert_seen("fence")

    def test_a_holder_who_was_refused_after_its_validity_should_pass(self):
        self.worker("a", hold(0, 100, 400, 300, fence=5, work=["refused 350 0 one.counter 5"]))
        self.assert_right()

    # ---- Waits ------------------------------------------------------------------------------------------------------

    def call(self, length, bound):
        late = 10 + length
        self.worker("a", hold(0, 100, 200, 900), f"ask 210 0 one.lock acquire {bound}", f"told {210 + late} 0 lock_busy 0")

    def test_a_call_within_its_bound_should_pass(self):
        self.call(2 * SECOND, SECOND)
        self.assert_right()

    def test_a_call_that_takes_too_long_should_be_seen(self):
        self.call(checker.LATE_MAX + 2 * SECOND, SECOND)
        self.assert_seen("wait")

    def test_a_stop_should_excuse_a_call_by_its_length(self):
        self.call(checker.LATE_MAX + 2 * SECOND, SECOND)
        self.soak += ["stop 220 a", f"cont {220 + 2 * SECOND} a"]
        self.assert_right()

    def test_a_stop_of_another_process_should_excuse_nothing(self):
        self.call(checker.LATE_MAX + 2 * SECOND, SECOND)
        self.soak += ["stop 220 b", f"cont {220 + 2 * SECOND} b"]
        self.assert_seen("wait")

    def test_a_resolver_that_takes_its_time_should_excuse_a_call(self):
        self.worker("a", hold(0, 100, 200, 900), f"ask 210 0 one.lock acquire {SECOND}",
                    f"told {210 + checker.LATE_MAX + 2 * SECOND} 0 lock_busy {2 * SECOND}")
        self.assert_right()

    def test_who_hung_in_a_call_until_it_was_killed_should_be_seen(self):
        self.worker("a", hold(0, 100, 200, 900), f"ask 210 0 one.lock acquire {SECOND}", bye=False)
        self.soak.append(f"exit {210 + checker.LATE_MAX + 2 * SECOND} a -9 killed")
        self.assert_seen("wait")

    # ---- Memory, ends, leftovers ------------------------------------------------------------------------------------

    def grow(self, rss, heap):
        samples = [f"memory {300 + n * SECOND} {10_000_000 + n * rss} {5000 + n * heap}" for n in range(40)]
        self.worker("a", hold(0, 100, 200, 900), samples)

    def test_memory_that_stays_should_pass(self):
        self.grow(0, 0)
        self.assert_right()

    def test_a_process_that_grows_should_be_seen(self):
        self.grow(100 * 1024, 0)
        self.assert_seen("memory")

    def test_a_heap_that_grows_should_be_seen(self):
        self.grow(0, 4 * 1024)
        self.assert_seen("memory")

    def test_a_heap_may_grow_by_what_connections_over_tls_take_and_no_further(self):
        for role, growth, seen in (("asio-tls", 4, False), ("asio-tls", 64, True), ("asio-tlsless", 4, True)):
            with self.subTest(role=role, growth=growth):
                judge = checker.Judge()
                process = checker.Process("a")
                process.role = role
                process.memory = [(n * SECOND, 10_000_000, 5000 + n * growth * 1024) for n in range(40)]
                judge._judge_memory(process)
                self.assertEqual(dict(judge.violations), {"memory": 1} if seen else {})

    def test_a_process_that_ends_by_itself_should_be_seen(self):
        for end in ("-6 unasked", "1 finished", "-9 hung"):
            with self.subTest(end=end):
                self.setUp()
                self.worker("a", hold(0, 100, 200, 900))
                self.soak.append(f"exit 999 a {end}")
                self.assert_seen("death")

    def test_a_process_that_ends_without_a_farewell_should_be_seen(self):
        self.worker("a", hold(0, 100, 200, 900), bye=False)
        self.assert_seen("death")

    def test_a_key_that_is_left_should_be_seen_unless_it_stays(self):
        self.worker("a", hold(0, 100, 200, 900))
        self.soak += ["stays 1 redisson_lock_token:{one.lock}", "left 998 one redisson_lock_token:{one.lock}"]
        self.assert_right()
        self.soak.append("left 998 one one.lock")
        self.assert_seen("left")

    def test_a_subscription_that_is_left_should_be_seen(self):
        self.worker("a", hold(0, 100, 200, 900))
        self.soak.append("hears 998 one redisson_lock__channel:{one.lock}")
        self.assert_seen("left")

    # ---- Logs that check nothing ------------------------------------------------------------------------------------

    def test_a_lock_that_nobody_was_granted_should_be_seen(self):
        self.assert_seen("idle")

    def test_lines_that_cannot_be_should_be_seen(self):
        for line in ("nonsense 300 0", "got 300 0", "told 300 0 ok 0", "got x 0 one.lock x 400 0", "end"):
            with self.subTest(line=line):
                self.setUp()
                self.worker("a", hold(0, 100, 200, 900))
                judge = checker.Judge()
                for each in (*self.soak, *self.workers["a"][:-1]):
                    judge.feed("soak" if each in self.soak else "a", each)
                judge.feed("a", line)
                self.assertEqual(dict(judge.violations), {"log": 1})

    def test_a_process_that_says_goodbye_while_it_holds_should_be_seen(self):
        self.worker("a", list(hold(0, 100, 0, 900))[:2])
        self.assert_seen("log")

    def test_the_program_should_exit_with_1_where_there_is_a_violation(self):
        for end, code in ((200, 0), (202, 1)):
            with self.subTest(end=end), tempfile.TemporaryDirectory() as folder:
                write(folder, "soak", ["lock 1 one.lock 1", "exit 998 a 0 finished", "exit 999 b 0 finished"])
                write(folder, "a", ["start 1 100 a", *hold(0, 100, end, 900), "bye 990"])
                write(folder, "b", ["start 1 101 b", *hold(0, 201, 300, 900), "bye 990"])
                said = run_checker(folder)
                self.assertEqual(said.returncode, code, said.stdout + said.stderr)
                self.assertIn(f"2 grants, 0 faults, {code} violations", said.stdout)

    def test_a_folder_without_logs_should_be_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            said = run_checker(folder)
            self.assertEqual(said.returncode, 2)
            self.assertIn("usage:", said.stderr)

    def test_half_a_line_should_wait_for_its_end(self):
        with tempfile.TemporaryDirectory() as folder:
            judge = checker.Judge()
            reader = checker.Reader(folder, judge)
            path = pathlib.Path(folder) / "soak.log"
            path.write_text("lock 1 one.lock 1\nfault 2 res")
            reader.read()
            self.assertEqual(sum(judge.faults.values()), 0)
            with open(path, "a", encoding="utf-8") as file:
                file.write("et proxy\n")
            reader.read()
            self.assertEqual(dict(judge.faults), {"reset": 1})
            self.assertEqual(dict(judge.violations), {})


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""What can be tested of the bench without a peer: `python3 test_peers.py`."""

import csv
import io
import pathlib
import sys
import tempfile
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import chart
import contest
import ratios
import report
import rows
import turns
from contest import AGAIN, CORE, CORE_ONE, OURS
from worker import Refused, Worker

STUB = """
import sys
for line in sys.stdin:
    verb, *rest = line.split()
    answers = {ANSWERS}
    print("a library says something")
    if verb == "die":
        sys.exit(3)
    print(answers.get(verb, "no such request: " + verb), flush=True)
"""


def stub(**answers):
    """A worker that gives the same answer to each verb."""
    text = STUB.replace("{ANSWERS}", repr(answers))
    return Worker("stub", [sys.executable, "-c", text], settle=0)


def row(number, text="shape"):
    return types.SimpleNamespace(number=number, text=text, quick=1)


def result_of(number, threads=1, limit=1.0, **sides):
    """Sides: lists of seconds, a turn each; None leaves a turn out."""
    times = ratios.Times()
    for side, seconds in sides.items():
        for turn, value in enumerate(seconds):
            if value is not None:
                name = CORE_ONE if side == "core_1" else side
                times.add(name, turn, value)
    made = contest.Result(row(number), threads, limit, variant="t1",
                          times=times)
    for side in sides:
        if side not in (OURS, AGAIN, CORE, "core_1"):
            made.peers[side] = contest.Entry("1.0", "plain", 2.0, 1e-7)
    return made


class Ratios(unittest.TestCase):
    def test_quantiles_are_values(self):
        self.assertEqual(ratios.median([3, 1, 2]), 2)
        self.assertEqual(ratios.quantile([5, 1, 4, 2, 3], 0), 1)
        self.assertEqual(ratios.quantile([5, 1, 4, 2, 3], 1), 5)
        self.assertEqual(ratios.quantile(range(101), 0.95), 95)
        self.assertEqual(ratios.quantile([7], 0.05), 7)

    def test_only_times_of_one_turn_are_divided(self):
        self.assertEqual(ratios.ratios({0: 2, 2: 9, 5: 1}, {0: 1, 1: 7, 2: 3}),
                         [2, 3])

    def test_the_median_ratio_is_not_the_ratio_of_medians(self):
        times = ratios.Times()
        for turn, (ours, theirs) in enumerate([(1, 2), (10, 20), (4, 4)]):
            times.add("ours", turn, ours)
            times.add("theirs", turn, theirs)
        self.assertEqual(times.ratio("theirs", "ours"), 2)
        self.assertEqual(times.median("theirs") / times.median("ours"), 1)
        self.assertEqual(times.ratio_of_bests("theirs", "ours"), 2)

    def test_turns_of_several_rounds_stay_apart(self):
        times, more = ratios.Times(), ratios.Times()
        for turn in range(2):
            times.add("ours", turn, 1)
            more.add("ours", turn, 4)
            more.add("theirs", turn, 8)
        times.extend(more)
        self.assertEqual(times.turns("ours"), 4)
        self.assertEqual(times.ratio("theirs", "ours"), 2)

    def test_geometric_mean(self):
        self.assertAlmostEqual(ratios.geometric_mean([1, 4]), 2)


class Turns(unittest.TestCase):
    def setUp(self):
        self.now, self.log = 0.0, []

    def side(self, name, seconds):
        def turn(index, warm, runs):
            self.log.append(name)
            self.now += (warm + runs) * seconds
            return seconds
        worker = types.SimpleNamespace(turn=turn, settle=0.01)
        return turns.Side(name, worker, 0)

    def sleep(self, seconds):
        self.now += seconds

    def take(self, sides, always, wanted, budget):
        self.round = turns.take_turns(sides, always, wanted, budget,
                                      lambda: self.now, self.sleep)
        return self.round.times

    def test_a_turn_has_runs_for_some_milliseconds(self):
        side = self.side("short", 1e-4)
        side.size()
        self.assertEqual((side.runs, side.warm), (30, 1))
        side = self.side("long", 0.5)
        side.size()
        self.assertEqual((side.runs, side.warm), (1, 0))

    def test_sides_alternate(self):
        sides = [self.side("a", 1e-3), self.side("b", 1e-3)]
        times = self.take(sides, 2, 7, 100)
        self.assertEqual(self.log[4:], ["a", "b"] * 7)
        self.assertEqual(times.turns("a"), 7)

    def test_slow_sides_have_fewer_turns_but_enough(self):
        sides = [self.side("ours", 1e-3), self.side("again", 1e-3),
                 self.side("slow", 0.2)]
        times = self.take(sides, 2, 51, 1e9)
        self.assertEqual(times.turns("ours"), 51)
        self.assertEqual(times.turns("slow"), 6)

    def test_the_budget_ends_it_after_the_fewest(self):
        sides = [self.side("ours", 1.0), self.side("again", 1.0)]
        times = self.take(sides, 2, 51, 0.5)
        self.assertEqual(times.turns("ours"), turns.FEWEST)
        sides = [self.side("ours", 3.0), self.side("again", 3.0)]
        self.assertEqual(self.take(sides, 2, 51, 0.5).turns("ours"),
                         turns.FEWEST_LONG)

    def test_a_side_that_fails_is_out(self):
        failing = self.side("failing", 1e-3)

        def turn(index, warm, runs):
            if "ours" in self.log[-2:] and len(self.log) > 8:
                raise Refused("it died")
            return 1e-3
        failing.worker.turn = turn
        sides = [self.side("ours", 1e-3), failing]
        times = self.take(sides, 1, 9, 100)
        self.assertEqual(list(times.of), ["ours"])
        self.assertEqual(times.turns("ours"), 9)
        self.assertEqual(self.round.failed, {"failing": "it died"})
        with self.assertRaisesRegex(Refused, "it died"):
            self.take(sides, 2, 9, 100)

    def test_fastest(self):
        sides = [self.side("slow", 2e-3), self.side("fast", 1e-3)]
        self.assertEqual(turns.fastest(sides, 5, 1, lambda: self.now,
                                       self.sleep).name, "fast")


class Workers(unittest.TestCase):
    def test_answers(self):
        worker = stub(prepare="ok one\ttwo", turn="ok 0.25", output="no: why")
        self.assertEqual(worker.prepare(1, 2), [("one", "f32"), ("two", "f32")])
        self.assertEqual(worker.turn(0, 1, 1), 0.25)
        worker.close()

    def test_refusals(self):
        worker = stub(output="no it cannot")
        with self.assertRaisesRegex(Refused, "^it cannot$"):
            worker.output(0, "y")
        with self.assertRaisesRegex(Refused, "such request"):
            worker.ask("nothing")
        worker.close()

    def test_a_death_is_a_refusal(self):
        worker = stub()
        with self.assertRaisesRegex(Refused, "ended with 3 at 'die'"):
            worker.ask("die")
        self.assertFalse(worker.alive())
        with self.assertRaises(Refused):
            worker.ask("prepare 1 1")
        worker.close()

    def test_it_can_be_started_again(self):
        worker = stub(turn="ok 1")
        with self.assertRaises(Refused):
            worker.ask("die")
        worker.start()
        self.assertEqual(worker.turn(0, 1, 1), 1)
        worker.close()


class Contests(unittest.TestCase):
    OPTIONS = types.SimpleNamespace(pairs=5, budget=1)

    def contest(self, compare="ok 1e-7"):
        ours = stub(prepare="ok t1:f32\tt2:f32\tt1-f16:f16", write="ok", limit="ok 0.5",
                    output="ok 0.1", turn="ok 0.001", compare=compare)
        self.addCleanup(ours.close)
        of = contest.Contest(row(1), 2, 1, ours, self.OPTIONS)
        of.choose_variant()
        return of

    def peer(self, each=False, **answers):
        worker = stub(**{"prepare": "ok plain\tfast", "output": "ok 0.2",
                         "turn": "ok 0.002", **answers})
        self.addCleanup(worker.close)
        return contest.Peer("Peer", worker, "1.0", each=each)

    def test_a_peer_is_timed(self):
        of = self.contest()
        of.add_peer(self.peer())
        result = of.run()
        self.assertEqual(result.best_peer(), "Peer")
        self.assertEqual(result.ratio("Peer"), 2)
        self.assertEqual(result.share(), 500)
        self.assertEqual(result.peers["Peer"].first, 0.2)

    def test_narrow_weights_are_beside_float32(self):
        of = self.contest()
        of.add_narrow()
        result = of.run()
        self.assertIn(result.variant, ("t1", "t2"))
        self.assertEqual(result.narrow, {"f16": ("t1-f16", 1e-7)})
        self.assertIn("| 1 | t1-f16 | f16 | 1000.0 | **1.00** | 1.00 | "
                      "1.00-1.00 | 1.0e-07 |", list(report.narrow([result])))

    def test_each_configuration_may_be_a_peer(self):
        of = self.contest()
        of.add_peer(self.peer(each=True))
        self.assertEqual(sorted(of.run().peers), ["Peer fast", "Peer plain"])

    def test_peers_may_come_one_after_another(self):
        of = self.contest()
        of.add_peer(self.peer())
        of.run()
        of.add_peer(contest.Peer("Other", self.peer().worker, "1.0"))
        result = of.run()
        self.assertEqual(sorted(result.peers), ["Other", "Peer"])
        self.assertEqual(result.times.turns(OURS), 10)
        self.assertEqual(result.times.turns("Other"), 5)

    def test_a_wrong_result_is_not_timed(self):
        for answer in ("ok 0.5", "ok nan", "ok inf"):
            of = self.contest(compare=answer)
            of.add_peer(self.peer())
            result = of.run()
            self.assertEqual(result.peers, {})
            self.assertEqual(len(result.wrong), 2)
            self.assertIn("differ", result.refused["Peer plain"])

    def test_what_died_in_a_row_is_there_in_the_next(self):
        peer = self.peer()
        with self.assertRaises(Refused):
            peer.worker.ask("die")
        of = self.contest()
        of.add_peer(peer)
        self.assertEqual(list(of.run().peers), ["Peer"])

    def test_a_refusal_is_kept(self):
        of = self.contest()
        of.add_peer(self.peer(prepare="no it has no such gates"))
        self.assertEqual(of.run().refused, {"Peer": "it has no such gates"})


class Rows(unittest.TestCase):
    TEXT = "number=1\tquick=1\ttext=a, b\tbatch=64\n" \
        "number=2\tquick=0\ttext=c\tbatch=1\n"

    def test_parse_and_select(self):
        known = rows.parse(self.TEXT)
        self.assertEqual((known[1].text, known[1].batch), ("a, b", 64))

        def numbers(*arguments):
            return [r.number for r in rows.select(known, *arguments)]
        self.assertEqual(numbers(None, False), [1])
        self.assertEqual(numbers(None, True), [1, 2])
        self.assertEqual(numbers([2, 1], False), [1, 2])
        with self.assertRaisesRegex(ValueError, "no row 3"):
            numbers([3], False)

    def test_goals(self):
        for number, ratio, share, met in (
                (4, 2.0, 0.1, True), (4, 1.9, 0.84, False),
                (4, 1.0, 0.85, True), (4, 0.99, 0.99, False),
                (13, 1.3, 0.1, True), (13, 1.29, 0.1, False),
                (16, 1.5, 0.84, False), (16, 1.0, 0.85, True),
                (16, 0.9, 0.9, False), (7, 1.0, 0.1, True),
                (7, 0.9, 0.9, False)):
            self.assertEqual(rows.goal(number, ratio, share)[0], met,
                             (number, ratio, share))


class Reports(unittest.TestCase):
    def results(self):
        one = result_of(4, limit=0.5, ours=[1, 1, 1], again=[1, 1, 2],
                        Fast=[3, 3, 3], Slow=[None, 9, None],
                        core=[1.5, 1.5, 1.5], core_1=[1.2, 1.2, 1.2])
        one.refused["Other"] = "it has none"
        two = result_of(5, limit=0.9, ours=[1, 1], again=[1, 1], Fast=[1, 1])
        two.refused["Other"] = "it has none"
        return [one, two]

    def test_summary(self):
        lines = list(report.summary(self.results()))
        self.assertIn("| 4 | shape | t1 | 1000000 | Fast | plain | 3000000 | "
                      "**3.00** | 3.00 | 1.00-2.00 | 3 | 50% | met |", lines)
        self.assertIn("| 5 | shape | t1 | 1000000 | Fast | plain | 1000000 | "
                      "**1.00** | 1.00 | 1.00-1.00 | 2 | 90% | met |", lines)
        self.assertIn("1.73", lines[-1])

    def test_what_is_missing_is_said(self):
        results = self.results()
        self.assertIn("| 5 | 1.00 | - |", list(report.each_peer(results)))
        self.assertEqual(list(report.reasons(results)),
                         ["- Other, row 4, 5: it has none"])
        alone = result_of(4, ours=[1], again=[1])
        self.assertIn("| - | - | - | - | - |",
                      "\n".join(report.summary([alone])))

    def test_rows_that_get_slower(self):
        lines = list(report.scaling(self.results()))
        self.assertIn("| 4 |  | 1200000 | 1500000 | 0.80 | 1.50 | "
                      "1.00-2.00 |", lines)
        self.assertEqual(lines[-1],
                         "Rows that more threads make slower: 4")
        self.assertEqual(list(report.scaling(self.results()[1:])), [])

    def test_csv(self):
        out = io.StringIO()
        csv.writer(out).writerows(report.csv_lines(self.results()))
        lines = list(csv.reader(io.StringIO(out.getvalue())))
        self.assertEqual({len(line) for line in lines},
                         {len(report.COLUMNS)})
        fast = dict(zip(report.COLUMNS, next(
            line for line in lines if line[2] == "Fast")))
        self.assertEqual((fast["ratio"], fast["turns"], fast["aa_95"]),
                         ("3.0000", "3", "2.0000"))
        self.assertEqual(lines[-1][-1], "it has none")

    def test_goal_of_narrow_weights(self):
        for seconds, difference, verdict in ((1, 1e-3, "met"),
                                             (1, 2e-3, "missed"),
                                             (1.1, 1e-4, "missed")):
            result = result_of(15, ours=[1.7], again=[1.7])
            result.times.add("f16", 0, seconds)
            result.narrow["f16"] = "t1-f16", difference
            self.assertTrue(list(report.narrow([result]))[-1].endswith(
                f"are wanted: {verdict}"))

    def test_application(self):
        times = {"Keras predict_step": [7, 7], "Keras predict": [70, 70]}
        result = result_of(1, ours=[1, 1], again=[1, 1], core=[1.4, 1.4],
                           **times)
        lines = list(report.application(result, "Keras"))
        self.assertIn("| Keras predict_step | 7000000 | **5.00** | 5.00 | 2 |",
                      lines)
        self.assertIn("5 times Keras predict_step is wanted: met", lines)
        self.assertEqual(list(report.application(result, "oneDNN")), [])

    def test_in_words(self):
        self.assertEqual(report.in_words(self.results()[0]),
                         "row 4, 1 thread(s): 3.00 against Fast, "
                         "A/A 1.00-2.00, 50% of the limit")

    def test_chart(self):
        text = "\n".join(chart.script("x.svg", [(1, self.results())]))
        self.assertIn("set terminal svg", text)
        self.assertIn("4 3 9\n5 1 NaN\nEND", text)
        self.assertIn("using 3:xtic(1) title 'Slow'", text)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""score --explain shows what the score is made of: from what it prints the score can be computed."""

import json
import math
import os
import re
import statistics

import _kjudge

RESULT = os.path.join(_kjudge.ROOT, "tests", "golden", "result-v1", "accepted.json")


def numbers(text):
    return [float(word) for word in text.split()]


def geometric_mean(values):
    return math.exp(statistics.mean(math.log(v) for v in values))


class Explain(_kjudge.Case):
    def assert_near(self, got, wanted):
        self.assertAlmostEqual(got, wanted, delta=2e-6 * wanted)

    def check(self, text, score):
        rounds_of_shapes, speedups = [], []
        for part in re.split(r"(?m)^shape ", text)[1:]:
            ratios = {}
            for number, regime, values in re.findall(r"(?m)^  round (\d+)(?:, (\S+))?:(.*)$", part):
                ratios.setdefault(regime, {})[int(number)] = numbers(values)
            by_round = [geometric_mean(statistics.median(of[r]) for of in ratios.values())
                        for r in sorted(next(iter(ratios.values())))]
            speedup = geometric_mean(statistics.median(sum(of.values(), [])) for of in ratios.values())
            printed = numbers(re.search(r"(?m)^  rounds +([0-9. ]+):", part).group(1))
            self.assertEqual(len(printed), len(by_round))
            for got, wanted in zip(printed, by_round):
                self.assert_near(got, wanted)
            self.assert_near(float(re.search(r"(?m)^  speedup +([0-9.]+):", part).group(1)), speedup)
            rounds_of_shapes.append(by_round)
            speedups.append(speedup)
        self.assertEqual(len(speedups), len(score["shapes"]))
        for shape, speedup in zip(score["shapes"], speedups):
            self.assert_near(shape["speedup"], speedup)
        self.assert_near(score["speedup"], geometric_mean(speedups))
        rounds = [geometric_mean(values) for values in zip(*rounds_of_shapes)]
        low, high = score["interval"]
        self.assert_near(low, min(rounds + [score["speedup"]]))
        self.assert_near(high, max(rounds + [score["speedup"]]))
        self.assertIn("interval   [%.6f, %.6f]" % (low, high), text)

    def test_the_score_follows_from_what_is_printed(self):
        text, _ = self.run_kjudge("score", "--explain", RESULT, status=None)
        scores, _ = self.run_kjudge("score", "--json", RESULT, status=None)
        self.check(text, json.loads(scores)["scores"][0])

    def test_two_modes_are_told(self):
        with open(RESULT) as file:
            result = json.load(file)
        shape = next(s for s in result["shapes"] if s["timed"])
        for r in shape["rounds"]:
            for number, pair in enumerate(r["pairs"]):
                for replay in pair["baseline"]:
                    for clock in ("event_ns", "stamp_ns", "host_ns", "supervisor_ns"):
                        replay[clock] = 1e6 * (1 + number % 2)
        path = self.write("two.json", json.dumps(result))
        out, _ = self.run_kjudge("score", path, status=None)
        self.assertIn("two modes of the baseline", out)
        out, _ = self.run_kjudge("score", "--explain", path, status=None)
        self.assertRegex(out, r"baseline +[0-9.]+ ns; two modes: \d+ replays around 1000000.0 ns")
        out, _ = self.run_kjudge("score", "--json", path, status=None)
        self.assertEqual(json.loads(out)["scores"][0]["shapes"][0]["two_modes"], ["baseline"])

    def test_every_device_is_explained(self):
        with open(RESULT) as file:
            result = json.load(file)
        result["others"] = [{"device": "the second", "verdict": "accepted", "message": "",
                                    "shapes": result["shapes"]}]
        path = self.write("several.json", json.dumps(result))
        out, _ = self.run_kjudge("score", "--explain", path, status=None)
        first, second = out.split("on the second\n")
        second, devices = second.split("devices\n")
        scores, _ = self.run_kjudge("score", "--json", path, status=None)
        score = json.loads(scores)["scores"][0]
        self.check(first, score)
        self.check(second, score)
        self.assertIn("on %s, whose score is the evaluation's\n" % result["device"], first)
        self.assertIn("[%.6f, %.6f]: the second\n  agree" % tuple(score["devices"][1]["interval"]), devices)

    def test_not_with_json(self):
        self.run_kjudge("score", "--explain", "--json", RESULT, status=2)


if __name__ == "__main__":
    _kjudge.main()

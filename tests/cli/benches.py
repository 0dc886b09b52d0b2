# SPDX-License-Identifier: Apache-2.0
"""Benches end when they are told to, keep what they have, and print the tables of recorded runs."""

import json
import os
import subprocess
import sys
import types
import unittest.mock

import _kjudge

BENCH = os.path.join(_kjudge.ROOT, "tests", "bench")
sys.path.insert(0, BENCH)
import _bench  # noqa: E402
import peers  # noqa: E402


def recorded(number):
    """What one evaluation of peers.py records, of one shape."""
    ratios = {"kjudge": 1 + number / 1000, "do_bench": 1 - number / 100}
    return {"budget_s": 0.5, "ratios": {"copy-5us": ratios}, "baseline_us": {"copy-5us": 5.0},
            "kjudge": {}}


class Benches(_kjudge.Case):
    def arguments(self, *more):
        return _bench.options("", 15).parse_args(["--json", self.path("made.json.gz"), *more])

    def bench(self, name, *arguments, **environment):
        return subprocess.run([sys.executable, os.path.join(BENCH, name), *arguments], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder,
                              env=dict(self.environment, **environment))

    def table(self, arguments, measure):
        """Lines that peers.py's table has, and the error after it."""
        lines = []
        with unittest.mock.patch.object(_bench, "table", lambda head, rows: lines.extend(rows)):
            try:
                _bench.measure_and_show(arguments, "peers", measure, peers.show)
            except _bench.Failed as failed:
                return lines, str(failed)
        return lines, None

    def test_no_evaluation_is_begun_that_ends_after_its_seconds(self):
        now = [0.0]
        clock = types.SimpleNamespace(monotonic=lambda: now[0])
        with unittest.mock.patch.object(_bench, "time", clock):
            record = _bench.Record(self.arguments("--seconds", "100"), "peers")
            begun = []
            for length in (30, 40, 20, 20):
                if record.late():
                    break
                begun.append(now[0])
                now[0] += length
        self.assertEqual(begun, [0, 30])

    def test_a_peer_beyond_the_seconds_is_killed_and_the_table_shown(self):
        def measure(arguments, record):
            record.add(recorded(1))
            with unittest.mock.patch.object(peers, "work", lambda *_: __import__("time").sleep(600)):
                peers.in_a_process("fork", "do_bench", {}, 0.5, 0.2)

        lines, failed = self.table(self.arguments(), measure)
        self.assertEqual(len(lines), 2)
        self.assertIsNone(failed)

    def test_a_failed_evaluation_leaves_the_table_of_those_before_it(self):
        def measure(arguments, record):
            record.add(recorded(1))
            record.add(recorded(2))
            raise _bench.Failed("broken")

        lines, failed = self.table(self.arguments(), measure)
        self.assertEqual(failed, "broken")
        self.assertEqual(len(lines), 2)
        merged = self.bench("peers.py", "--merge", "made.json.gz")
        self.assertEqual(merged.returncode, 0, merged.stderr)
        self.assertIn("2 evaluations, 0.500 s for a shape and arm", merged.stdout)

    def test_no_evaluation_at_all_is_told(self):
        lines, failed = self.table(self.arguments("--seconds", "0"), lambda arguments, record: None)
        self.assertEqual(failed, "no evaluation was finished; give it more --seconds")
        self.assertEqual(lines, [])

    def test_a_peer_that_ends_without_times_is_told(self):
        with unittest.mock.patch.object(peers, "work", lambda *_: os._exit(3)):
            with self.assertRaisesRegex(_bench.Failed, "mean: its process ended without times"):
                peers.in_a_process("fork", "mean", {}, 0.5, 600)

    def test_tables_of_recorded_runs(self):
        folder = os.path.join(BENCH, "recorded")
        files = sorted(os.listdir(folder))
        self.assertIn("a_a_h200.json.gz", files)
        for file in files:
            with self.subTest(file):
                with _bench.opened(os.path.join(folder, file), "rt") as opened:
                    bench = json.load(opened)["bench"]
                done = self.bench(bench + ".py", "--merge", os.path.join(folder, file),
                                  KJUDGE_DRIVER="cuda")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("H200", done.stdout)


if __name__ == "__main__":
    _kjudge.main()

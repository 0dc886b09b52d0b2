# SPDX-License-Identifier: Apache-2.0
"""Benches end when they are told to, keep what they have, and print the tables of recorded runs."""

import json
import os
import subprocess
import sys
import types
import unittest.mock

import _kjudge

# What _peer_loops.py takes of torch and Triton, where no time passes.
TORCH = """
import types
bfloat16 = int64 = int32 = float32 = None
class Tensor:
    def uniform_(self, low, high, generator=None): return self
    def fill_(self, value): return self
    def float(self): return self
def empty(*size, dtype, device): return Tensor()
def mul(a, b, out): pass
def mm(a, b, out=None): return Tensor()
def allclose(a, b, rtol, atol): return True
class Generator:
    def __init__(self, device): pass
    def manual_seed(self, seed): pass
class Event:
    def __init__(self, enable_timing): pass
    def record(self): pass
    def elapsed_time(self, end): return 0.005
cuda = types.SimpleNamespace(Event=Event, synchronize=lambda: None)
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=types.SimpleNamespace()))
"""
DO_BENCH = """
def do_bench(fn, warmup, rep, return_mode):
    fn()
    return [0.005, 0.006] if return_mode == "all" else 0.0055
"""
BENCH = os.path.join(_kjudge.ROOT, "tests", "bench")
sys.path.insert(0, BENCH)
import _bench  # noqa: E402
import a_a  # noqa: E402
import _mixed  # noqa: E402
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

    def test_that_there_is_no_torch_is_told(self):
        self.write("python/torch.py", "raise ImportError('none here')\n")
        done = self.bench("peers.py", "--json", "made.json", PYTHONPATH=self.path("python"))
        self.assertEqual((done.returncode, done.stderr),
                         (1, "peers.py: its loops need a GPU, torch and Triton: none here\n"))

    def test_a_peer_that_ends_without_times_is_told(self):
        with unittest.mock.patch.object(peers, "work", lambda *_: os._exit(3)):
            with self.assertRaisesRegex(_bench.Failed, "mean: its process ended without times"):
                peers.in_a_process("fork", "mean", {}, 0.5, 600)

    def test_every_peer_times_every_shape(self):
        self.write("python/torch.py", TORCH)
        self.write("python/triton/__init__.py", "")
        self.write("python/triton/testing.py", DO_BENCH)
        shapes = {name: {"speedup": 1.01, "baseline_ns": 5e3} for name in _mixed.names(["copy"])}
        facts = {"phases": {"start": 9.0, "fill": 0.01}, "shapes": shapes}
        place = {"capture": lambda *_, **__: "bundle", "facts_of": lambda result: facts,
                 "replay": lambda *_: {"device": "none", "kjudge_version": "0", "wall_s": 0.1}}
        arguments = self.arguments("--evaluations", "2")
        arguments.kinds, arguments.lengths, arguments.start = ["copy"], None, "fork"
        arguments.peers = ["do_bench", "mean", "repeats"]
        with unittest.mock.patch.multiple(_bench.Workplace, capture=place["capture"], replay=place["replay"]), \
                unittest.mock.patch.object(_bench, "facts_of", place["facts_of"]), \
                unittest.mock.patch.object(sys, "path", [self.path("python"), *sys.path]):
            try:
                lines, failed = self.table(arguments, peers.measure)
            finally:
                for name in ("torch", "triton", "triton.testing", "_peer_loops"):
                    sys.modules.pop(name, None)
        self.assertIsNone(failed)
        self.assertEqual([line[0] for line in lines], list(shapes) * 2)
        self.assertEqual({len(line) for line in lines}, {2 + 8})  # kjudge, and the peers' 3 + 2 + 2

    def test_what_limits_the_a_a_without_a_clock(self):
        """A submission that costs 1 % more where it is second, and a baseline that does where it is."""
        pairs = [[1000.0, 1010.0, "baseline"], [1010.0, 1000.0, "submission"], [1000.0, 1010.0, "baseline"],
                 [1010.0, 1000.0, "submission"]]
        shape = {"baseline_ns": 1000.0, "tick_ns": 0.0, "clock_mhz": [None, None], "rounds": [pairs, pairs]}
        rows = []
        with unittest.mock.patch.object(_bench, "table", lambda head, lines: rows.extend(
                dict(zip(head, line)) for line in lines)):
            a_a.show_limits([{"shapes": {"copy": shape}}])
        self.assertEqual([(row["order"], row["rounds"], row["clock"]) for row in rows], [("+1.00", "0.00", "-")])

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

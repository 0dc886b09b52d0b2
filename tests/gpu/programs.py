# SPDX-License-Identifier: Apache-2.0
"""Programs of torch (torch_programs/programs.py): captured, rebuilt in another process, replayed on
inputs that the capture never saw, with the bits of torch's eager run and in the same time."""

import concurrent.futures
import json
import os
import statistics
import time
import unittest

from _gpu import HERE, REBUILD_RUN_LIBRARY, Case, python

PROGRAMS = os.path.join(HERE, "torch_programs")


def all_names():
    return json.loads(python("-c", "import json, programs; print(json.dumps(list(programs.PROGRAMS)))",
                             cwd=PROGRAMS))


class Programs(Case):
    def eager(self, runs, names):
        """What eager.py tells, each program in a process of its own: the time of a graph's node depends on
        what its process loaded and ran before, other programs' cuBLAS among it."""
        def one(name):
            return json.loads(python(os.path.join(PROGRAMS, "eager.py"), self.folder, str(runs), name))

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            return {key: value for told in pool.map(one, names) for key, value in told.items()}

    def evaluated(self, names, runs, launches):
        """What eager.py told, what rebuild_run told, what the capture told, the bundle's bytes."""
        eager = self.eager(runs, names)
        everything = sorted(all_names())
        package = self.package(PROGRAMS, {
            name: {"program": everything.index(name) + 1, "n": eager[name]["n"], "m": eager[name]["m"]}
            for name in names})
        bundle = self.path("programs.kjb")
        captured = self.captured(PROGRAMS, package, bundle)
        return eager, self.replayed(bundle, runs, launches), captured, os.path.getsize(bundle)

    def differing(self, names):
        different = []
        for name in names:
            with open(self.path(name + ".y.out"), "rb") as ours, \
                    open(self.path(name + ".y.eager"), "rb") as eager:
                if ours.read() != eager.read():
                    different.append(name)
        return different

    def show_ratios(self, told, native_ns):
        """Time of the rebuilt graph by the native one's, by program."""
        ratios = {}
        for name, native in native_ns.items():
            shape = told["shapes"][name]
            ratios[name] = shape["event_ns"] / native
            print("%-28s %4d nodes  native %9.1f us  rebuilt %9.1f us  ratio %.4f" %
                  (name, shape["nodes"], native / 1e3, shape["event_ns"] / 1e3, ratios[name]))
        long = [ratios[name] for name in ratios if native_ns[name] >= 30000]
        print("%d programs, %d of 30 us or more: ratio median %.4f, from %.4f to %.4f, %d within 1 %%" %
              (len(ratios), len(long), statistics.median(long), min(long), max(long),
               sum(abs(ratio - 1) <= 0.01 for ratio in long)))

    def test_bits_and_times_of_all_programs(self):
        """The times in the worker's kind of process, then those in the process that ran torch's own."""
        names = all_names()
        eager, told, captured, bundle = self.evaluated(names, 2, 40)
        self.show_ratios(told, {name: eager[name]["native_ns"] for name in names})
        print("bundle %.1f MB of %.1f MB of memory; capture %s; rebuild %.1f ms, memory %.1f ms" %
              (bundle / 1e6, told["state_bytes"] / 1e6, captured["seconds"], told["rebuild_ms"],
               told["memory_ms"]))
        self.assertEqual(self.differing(names), [])
        for memory in ("default", "expandable_segments:True"):
            lines = python(os.path.join(PROGRAMS, "eager.py"), self.folder, "2", *names, env=dict(
                os.environ, REBUILD_RUN_LIBRARY=REBUILD_RUN_LIBRARY, BUNDLE=self.path("programs.kjb"),
                PYTORCH_ALLOC_CONF=memory if ":" in memory else "")).splitlines()
            there, rebuilt = (json.loads(line) for line in lines)
            print("in one process, torch's memory: " + memory)
            self.show_ratios(rebuilt, {name: there[name]["native_ns"] for name in names})

    def test_recorded_from_expandable_segments(self):
        """Where torch's tensors lie across mappings of the driver's."""
        names = ["mixed", "thousand_nodes", "large_weights"]
        os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
        self.addCleanup(os.environ.pop, "PYTORCH_ALLOC_CONF")
        self.evaluated(names, 5, 0)
        self.assertEqual(self.differing(names), [])

    def test_mixed_program_on_100_inputs(self):
        _, told, _, _ = self.evaluated(["mixed"], 100, 0)
        print("from process start to the first launch %.0f ms" % told["first_launch_ms"])
        self.assertEqual(self.differing(["mixed"]), [])

    def test_rebuild_of_a_thousand_nodes(self):
        _, told, _, _ = self.evaluated(["thousand_nodes"], 1, 30)
        shape = told["shapes"]["thousand_nodes"]
        print("%d nodes: rebuild %.1f ms, with modules; graph %.1f us" %
              (shape["nodes"], told["rebuild_ms"], shape["event_ns"] / 1e3))
        self.assertEqual(self.differing(["thousand_nodes"]), [])

    def test_start_of_a_large_bundle(self):
        _, _, _, size = self.evaluated(["large_weights"], 1, 0)
        starts = [self.replayed(self.path("programs.kjb"), 1, 0) for _ in range(5)]
        print("bundle %.1f MB: from process start to the first launch %s ms (context %s, memory %s)" % (
            size / 1e6, *([round(start[key]) for start in starts]
                          for key in ("first_launch_ms", "context_ms", "memory_ms"))))
        self.assertEqual(self.differing(["large_weights"]), [])

    def test_sizes_of_bundles(self):
        """Of each program alone, beside what torch holds for it. Programs that hold less than 1 MB are
        left out: their bundles are the modules."""
        told = self.eager(1, all_names())
        names = [name for name in told if told[name]["held_bytes"] >= 1 << 20]
        everything = sorted(all_names())
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            def size(name):
                shape = {"program": everything.index(name) + 1, "n": told[name]["n"], "m": told[name]["m"]}
                package = self.package(PROGRAMS, {name: shape}, name)
                bundle = self.path(name + ".kjb")
                log = self.captured(PROGRAMS, package, bundle)["log"]
                return os.path.getsize(bundle), log.strip()

            sizes = dict(zip(names, pool.map(size, names)))
        for name, (size, log) in sizes.items():
            print("%-28s bundle %8.2f MB, torch holds %8.2f MB, ratio %.3f  %s" % (
                name, size / 1e6, told[name]["held_bytes"] / 1e6, size / told[name]["held_bytes"],
                log.splitlines()[-1] if log else ""))
        median = statistics.median(size / told[name]["held_bytes"] for name, (size, _) in sizes.items())
        print("%d programs, median ratio %.3f" % (len(names), median))
        self.assertLessEqual(median, 1.2)

    def test_cost_of_the_capture(self):
        plain = ("import sys; sys.path[:0] = [%r]\nimport programs, torch\nwith torch.no_grad():\n"
                 "  f = programs.make('mixed'); x = torch.randn(programs.SIZES['mixed'], device='cuda')\n"
                 "  for _ in range(3): f(x)\n  torch.cuda.synchronize()\n" % PROGRAMS)
        python("-c", plain)  # compiles Triton's kernels into its cache
        self.evaluated(["mixed"], 1, 0)  # compiled once in here too
        captures, plains = [], []
        for _ in range(3):
            start = time.monotonic()
            told = self.captured(PROGRAMS, self.path("challenge.challenge"), self.path("again.kjb"))
            captures.append(time.monotonic() - start)
            start = time.monotonic()
            python("-c", plain)
            plains.append(time.monotonic() - start)
        print("capture %.2f s (%s), the plain program %.2f s (%s); steps of the last capture %s" % (
            statistics.median(captures), " ".join("%.2f" % s for s in captures),
            statistics.median(plains), " ".join("%.2f" % s for s in plains), told["seconds"]))


if __name__ == "__main__":
    unittest.main()

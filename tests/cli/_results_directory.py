# SPDX-License-Identifier: Apache-2.0
"""Makes a results directory as judge would have left it: verdicts of every kind, profiles, names and
output that try to be more than text. For tests that read one; nothing is judged."""

import copy
import hashlib
import json
import os
import random
import sys

import _kjudge

GOLDEN = os.path.join(_kjudge.ROOT, "tests", "golden")
# Would run, if any of it were taken for markup; and turns the direction of what follows.
HOSTILE = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">'\"&lt;"
HOSTILE_LOG = "</pre></main><script>document.title='taken'</script>\n\x1b[31mred\x1b[0m \x00 \u2066 ]]> --> \u202egnp.exe %s\n" % HOSTILE
GPU = {"device": "NVIDIA H200 GPU-5f2cd15f-0f1e-026f-0ff7-9dabffb477ed", "arch": "sm_90",
       "driver": "cuda 13.0", "trust": "device"}


def golden(name):
    with open(os.path.join(GOLDEN, "result-v1", name + ".json")) as file:
        return json.load(file)


def faster(factor, seed, floor_ns=1000.0, slow_pairs=()):
    """An accepted result of a GPU, so many times as fast as the golden one, with some noise; in each
    round's `slow_pairs` the submission takes a tenth longer."""
    noise = random.Random(seed)
    result = golden("accepted")
    result.update(GPU)
    for shape in result["shapes"]:
        if not shape["timed"]:
            continue
        shape["floor_ns"] = floor_ns
        for round_facts in shape["rounds"]:
            round_facts.update(clock_mhz=1980.0 - noise.randrange(30), power_w=400 + 90 * noise.random(),
                               temperature_c=55.0, throttle_reasons=noise.choice([[], [], ["sw_power_cap"]]))
            drift = noise.gauss(1, 0.004)
            for number, pair in enumerate(round_facts["pairs"]):
                for clocks in pair["submission"]:
                    scale = drift * noise.gauss(1, 0.008) / factor * (1.1 if number in slow_pairs else 1)
                    clocks.update({name: scale * time for name, time in clocks.items()})
    return result


def profile(busy, kernels):
    """What profile writes of one shape of the golden result."""
    metrics = [("sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", 41.23 * busy),
               ("gpu__time_duration.sum", "ns", 12345), ("dram__bytes.sum.per_second", "byte/s", 3.2e12 * busy),
               ("launch__registers_per_thread", "register/thread", 64), ("l1tex__t_sector_hit_rate.pct", "%", 88.1),
               ("lts__t_bytes.sum", "byte", 134217728), ("smsp__inst_executed.avg.per_cycle_active", "inst/cycle", busy),
               ("device__attribute_display_name", "", "=NVIDIA H200")]
    names = ["void softmax<4, (bool)1>(float const*, float*)", HOSTILE]
    return {"format": "kjudge-profile/1", "kjudge_version": "0.1.0", "challenge": "softmax", "shape": "4096x1000",
            "submission": "s.py", "device": "NVIDIA H200", "driver": "cuda 13.0", "ncu": "2025.3.1.0", "set": "full",
            "kernels": [{"name": names[k % 2], "grid": "(64, 1, 1)", "block": "(256, 1, 1)",
                         "metrics": [{"name": n, "unit": u, "value": v} for n, u, v in metrics]}
                        for k in range(kernels)]}


def write_json(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        json.dump(value, file)


class Results:
    def __init__(self, folder):
        self.folder = folder
        self.count = 0

    def add(self, run, name, *results, profile=None):
        """Puts a submission with these evaluations under the next number; returns its folder."""
        self.count += 1
        day = "2026-11-%02d" % (self.count + 2)
        folder = os.path.join(self.folder, "submissions", str(self.count))
        write_json(os.path.join(folder, "submission.json"),
                   {"format": "kjudge-submission/1", "id": "submission-%d" % self.count, "run": run, "name": name,
                    "sha256": hashlib.sha256(name.encode()).hexdigest(), "received": day + "T10:00:00Z"})
        for number, result in enumerate(results, 1):
            evaluation = os.path.join(folder, "evaluations", str(number))
            result = copy.deepcopy(result)
            result["started"] = day + "T12:0%d:00Z" % number
            write_json(os.path.join(evaluation, "result.json"), result)
            if profile:
                write_json(os.path.join(evaluation, "profile.json"), profile)
        return folder


def hostile_failure():
    result = golden("wrong_result")
    result.update(GPU, log=HOSTILE_LOG, message="output y is wrong\n" + HOSTILE)
    result["shapes"][0]["message"] = HOSTILE
    return result


def make(folder):
    """Submission 4 is hostile, 5 was judged again, 10 and 11 wait, 12 and 13 cannot be read."""
    results = Results(folder)
    refused = dict(golden("refused"), **GPU)
    failed = golden("judge_error")
    results.add("ada", "softmax.py", faster(1.0, 1), profile=profile(1.0, 1))
    results.add("grace", "fused.cu", faster(1.31, 2), profile=profile(1.2, 2))
    results.add("ada", "softmax2.py", faster(1.33, 3), profile=profile(1.5, 2))
    results.add(HOSTILE, HOSTILE + ".py", hostile_failure())
    results.add("linus", "s.py", failed, faster(0.8, 4))
    results.add("barbara", "flash.py", faster(1.62, 5))
    results.add("grace", "fused2.cu", faster(1.5, 6, floor_ns=9e8, slow_pairs=(1, 3)), profile=profile(1.6, 4))
    results.add("edsger", "goto.py", refused)
    results.add("\u05d0\u05d1\u05d2", "\u05d0.py", faster(1.3, 7))
    results.add("ken", "b.py")
    results.add("dennis", "c.py", failed)
    broken = results.add("bad", "d.py", failed)
    with open(os.path.join(broken, "evaluations", "1", "result.json"), "w") as file:
        file.write("{")
    with open(os.path.join(results.add("bad", "e.py"), "submission.json"), "w") as file:
        file.write("nonsense")
    return results


if __name__ == "__main__":
    make(sys.argv[1])

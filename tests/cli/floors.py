# SPDX-License-Identifier: Apache-2.0
"""Floors are computed from the bytes and operations that a shape declares, against what the challenge
says of the device or what doctor measured on it; and are shown as a share of the speed of light."""

import json
import os

import _kjudge

SHAPE = {"arch": "x86_64", "dtype": "float32", "dims": {"rows": 64, "cols": 48}}


class Floors(_kjudge.Case):
    def setUp(self):
        super().setUp()
        self.environment["XDG_CACHE_HOME"] = self.path("cache")  # where nothing was measured yet

    def judged(self):
        """The facts of the one timed shape, and its part of the score."""
        self.write("submission.py", _kjudge.RIGHT)
        result = self.evaluate("submission.py", "--challenge", "challenge", "--pairs", "1")
        self.write("result.json", json.dumps(result))
        return result["shapes"][0], result["score"]["shapes"][0]

    def test_by_the_challenge_and_by_measurement(self):
        self.small_challenge(shapes=[dict(SHAPE, read_bytes=10 ** 12)], cache="cold",
                             rates=[{"device": "NVIDIA", "bytes_per_s": 1e15},
                                    {"device": "kjudge host driver", "bytes_per_s": 1e9}])
        facts, score = self.judged()
        self.assertEqual((facts["floor_ns"], facts["floor_from"]), (1e12, "rates"))
        self.assertTrue(score["below_floor"])
        self.assertAlmostEqual(score["speed_of_light"] * score["submission_ns"], 1e12, delta=1)
        out, _ = self.run_kjudge("score", "result.json")
        self.assertIn("below the floor", out)
        self.assertRegex(out, r"64x48: \d+\.\d % of the speed of light")
        out, _ = self.run_kjudge("score", "--explain", "result.json")
        self.assertIn("floor      1000000000000.0 ns, by the shape's work and the challenge's rates: ", out)
        out, _ = self.run_kjudge("score", "--json", "result.json")
        self.assertEqual(json.loads(out)["scores"][0]["shapes"][0]["speed_of_light"], score["speed_of_light"])

        self.edit(read_bytes=0, operations=10 ** 15)
        facts, score = self.judged()  # nobody says how fast the device computes
        self.assertNotIn("floor_ns", facts)
        self.assertNotIn("speed_of_light", score)
        self.run_kjudge("doctor", "--measure", "--driver", "host", "--seconds", "0", "--pairs", "1")
        facts, score = self.judged()
        self.assertEqual(facts["floor_from"], "measured")
        self.assertTrue(score["below_floor"])  # it would take some minutes

    def test_every_shape_of_the_packages_has_a_speed_of_light(self):
        for name in ("softmax", "matmul"):
            with open(os.path.join(_kjudge.ROOT, "packages", name, "challenge.json")) as file:
                challenge = json.load(file)
            self.assertIn("H200", [rates["device"] for rates in challenge["rates"]], name)
            for shape in challenge["shapes"]:
                self.assertTrue(shape["read_bytes"] > 0 and shape["written_bytes"] > 0, (name, shape))

    def edit(self, **work):
        path = self.path("challenge", "challenge.json")
        with open(path) as file:
            challenge = json.load(file)
        challenge["shapes"][0].update(work)
        with open(path, "w") as file:
            json.dump(challenge, file)


if __name__ == "__main__":
    _kjudge.main()

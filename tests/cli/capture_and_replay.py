# SPDX-License-Identifier: Apache-2.0
"""The two halves of an evaluation by themselves, and what a bundle holds."""

import ctypes
import json
import os
import struct

import _kjudge

# Leaves the bundle of another capture for its own.
FORGES = """
import json, os, shutil


def prepare(ctx):
    folder = os.path.join(os.path.dirname(os.getcwd()), "made")
    shutil.copyfile(%r, os.path.join(folder, "bundle.kjb"))
    with open(os.path.join(folder, "status.json"), "w") as file:
        json.dump({"format": "kjudge-capture-status/1", "verdict": "accepted", "rule": "", "message": "",
                   "traceback": "", "seconds": {}}, file)
    os._exit(0)


def kernel_fn(state, inputs, outputs):
    pass
"""


def xxh3(data):
    library = ctypes.CDLL("libxxhash.so.0")
    library.XXH3_64bits.restype = ctypes.c_uint64
    return library.XXH3_64bits(data, ctypes.c_size_t(len(data)))


def decompressed(data, size):
    out = ctypes.create_string_buffer(size)
    ctypes.CDLL("libzstd.so.1").ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
    return out.raw


def with_provenance(bundle, change):
    """Bytes of a bundle whose provenance is what `change` makes of it, its hashes right; kjudge-bundle(5)."""
    version, count = struct.unpack_from("<II", bundle, 8)
    at = 24 + 40 * count + 8
    table, sections = b"", b""
    for i in range(count):
        kind, codec, offset, stored, size, known = struct.unpack_from("<IIQQQQ", bundle, 24 + 40 * i)
        data = bundle[offset:offset + stored]
        if kind == 3:
            data = change(decompressed(data, size) if codec == 1 else data)
            codec, stored, size, known = 0, len(data), len(data), xxh3(data)
        table += struct.pack("<IIQQQQ", kind, codec, at, stored, size, known)
        sections += data
        at += stored
    header = bundle[:8] + struct.pack("<IIQ", version, count, at) + table
    return header + struct.pack("<Q", xxh3(header)) + sections


class CaptureAndReplay(_kjudge.Case):
    def setUp(self):
        super().setUp()
        self.challenge = self.small_challenge()

    def capture(self, *arguments):
        return self.run_kjudge("capture", *arguments, "--challenge", self.challenge)

    def test_replay_of_captured_bundles(self):
        right = self.write("right.py", _kjudge.RIGHT)
        self.capture(right, "-o", "s.kjb")
        self.capture("--role", "baseline", "-o", "b.kjb")
        self.capture("--role", "reference", "-o", "r.kjb")
        for given in ([], ["--baseline", "b.kjb", "--reference", "r.kjb"]):
            out, _ = self.run_kjudge("replay", "--submission", "s.kjb", *given, "--challenge",
                                     self.challenge, "--json")
            result = json.loads(out)
            self.assertEqual(result["verdict"], "accepted")
            self.assertTrue(result["score"]["ranked"])
        self.assert_nothing_left()

    def test_dump(self):
        right = self.write("right.py", _kjudge.RIGHT)
        self.capture(right, "-o", "s.kjb")
        text, _ = self.run_kjudge("dump", "s.kjb")
        self.assertIn("softmax", text)
        out, _ = self.run_kjudge("dump", "s.kjb", "--json")
        bundle = json.loads(out)
        self.assertEqual([s["name"] for s in bundle["shapes"]], ["64x48", "test-3x5"])
        node = bundle["shapes"][0]["nodes"][0]
        self.assertEqual((node["kind"], node["name"], node["grid"]), ("kernel", "softmax", [64, 1, 1]))

    def test_bundle_of_another_challenge(self):
        right = self.write("right.py", _kjudge.RIGHT)
        self.capture(right, "-o", "s.kjb")
        _, err = self.run_kjudge("replay", "--submission", "s.kjb", "--challenge", "softmax", status=3)
        self.assertIn("s.kjb", err)
        self.assertIn("64x48", err)

    def test_same_submission_same_recording(self):
        right = self.write("right.py", _kjudge.RIGHT)
        hashes = []
        for name in ("1.kjb", "2.kjb"):
            self.capture(right, "-o", name)
            out, _ = self.run_kjudge("dump", name, "--json")
            hashes.append([s["output_hashes"] for s in json.loads(out)["shapes"]])
        self.assertEqual(hashes[0], hashes[1])

    def test_verdict_without_a_bundle(self):
        bad = self.write("bad.py", "raise ValueError('no')\n")
        out, _ = self.run_kjudge("capture", bad, "-o", "s.kjb", "--challenge", self.challenge, "--json",
                                 status=1)
        outcome = json.loads(out)
        self.assertEqual((outcome["verdict"], outcome["bundle"]), ("runtime_error", ""))
        self.assertFalse(os.path.exists(self.path("s.kjb")))

    def test_a_bundle_that_cannot_be_written_is_told_before_the_capture(self):
        marks = self.write("marks.py", "open(%r, 'w').close()\n" % self.path("ran") + _kjudge.RIGHT)
        _, err = self.run_kjudge("capture", marks, "-o", "no/such/s.kjb", "--challenge", self.challenge, status=6)
        self.assertIn("no/such/s.kjb: No such file or directory", err)
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_a_fault_in_the_captures_own_replay_names_the_kernel(self):
        # Right in both calls outside of the capture.
        bad = self.write("bad.py", _kjudge.RIGHT.replace("rows, cols)", "rows << 30 * (calls.count(rows) // 2), cols)")
                         .replace("def kernel_fn", "calls = []\n\n\ndef kernel_fn") + "    calls.append(rows)\n")
        out, _ = self.run_kjudge("capture", bad, "-o", "s.kjb", "--challenge", self.challenge, "--json",
                                 status=1)
        outcome = json.loads(out)
        self.assertEqual(outcome["verdict"], "gpu_fault", outcome["message"])
        self.assertIn("shape 64x48: replay of the captured graph, kernel softmax (node 0): ", outcome["message"])

    def test_a_recording_that_names_another_driver_is_not_of_this_capture(self):
        """It would be accepted, and could never be replayed again."""
        self.capture(self.write("right.py", _kjudge.RIGHT), "-o", "s.kjb")
        with open(self.path("s.kjb"), "rb") as file:
            honest = file.read()
        forger = self.write("forger.py", FORGES % self.path("forged.kjb"))
        host = b"\x04\0\0\0host" + struct.pack("<I", 13000)
        for other, verdict in ((host, "accepted"), (host[:-4] + struct.pack("<I", 12080), "refused")):
            forged = with_provenance(honest, lambda provenance: provenance.replace(host, other, 1))
            with open(self.path("forged.kjb"), "wb") as file:
                file.write(forged)
            self.run_kjudge("dump", "forged.kjb")
            out, _ = self.run_kjudge("capture", forger, "-o", "f.kjb", "--challenge", self.challenge, "--json",
                                     status=int(verdict != "accepted"))
            outcome = json.loads(out)
            self.assertEqual(outcome["verdict"], verdict, outcome["message"])
        self.assertRegex(outcome["message"], "the recording is not valid: was recorded on .* with driver host 12.8; "
                                             "this is .* with driver host 13.0")

    def test_a_recording_that_is_damaged_is_refused_without_the_judges_paths(self):
        with open(self.path("forged.kjb"), "wb") as file:
            file.write(b"KJBUNDLE" + bytes(200))
        forger = self.write("forger.py", FORGES % self.path("forged.kjb"))
        out, _ = self.run_kjudge("capture", forger, "-o", "f.kjb", "--challenge", self.challenge, "--json", status=1)
        outcome = json.loads(out)
        self.assertEqual(outcome["verdict"], "refused", outcome["message"])
        self.assertRegex(outcome["message"], "^the recording is not valid: [^/]*$")


if __name__ == "__main__":
    _kjudge.main()

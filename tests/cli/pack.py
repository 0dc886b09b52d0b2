# SPDX-License-Identifier: Apache-2.0
"""A package: made twice it is the same bytes, unpacked it judges without an installed kjudge."""

import contextlib
import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import _kjudge

HARNESS = os.path.join(_kjudge.ROOT, "harness")
NAME = "softmax-1"


class Pack(_kjudge.Case):
    packed = None

    def pack(self, *arguments, output=None, status=0, **environment):
        """(path of the archive, stderr)"""
        output = output or self.path("package.tar.zst")
        _, err = self.run_kjudge("pack", *arguments, "-o", output, status=status, **environment)
        return output, err

    def small_package(self):
        """The folder in what pack makes of small_challenge(), packed once for all tests."""
        if Pack.packed is None:
            folder = tempfile.mkdtemp(prefix="kjudge-test-")
            self.addClassCleanup(shutil.rmtree, folder)
            Pack.packed, _ = self.pack(self.small_challenge(), output=os.path.join(folder, "small.tar.zst"))
        return self.unpack(Pack.packed)

    def unpack(self, archive, to="unpacked"):
        """The folder in the archive."""
        os.mkdir(self.path(to))
        subprocess.run(["tar", "-xf", archive, "-C", self.path(to)], check=True)
        names = os.listdir(self.path(to))
        self.assertEqual(len(names), 1)
        return self.path(to, names[0])

    def harness(self, package, *arguments, status=0, python=(), through=(), **environment):
        """Runs harness.py with nothing of this test's environment but a driver and a cache."""
        kept = {k: v for k, v in self.environment.items()
                if k in ("KJUDGE_DRIVER", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
        kept.update(environment)
        done = subprocess.run([*through, sys.executable, *python, "harness.py", *arguments], cwd=package, env=kept,
                              text=True, capture_output=True, timeout=600)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.status_of_harness = done.returncode
        return done.stdout, done.stderr

    def load_harness(self, path):
        specification = importlib.util.spec_from_file_location("harness", path)
        harness = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(harness)
        return harness

    def edit_json(self, path, **changes):
        with open(path) as file:
            content = json.load(file)
        content.update(changes)
        with open(path, "w") as file:
            json.dump(content, file)

    def pack_file_again(self, package, name):
        """package.json says of a file what it is now."""
        with open(os.path.join(package, "package.json")) as file:
            files = json.load(file)["files"]
        with open(os.path.join(package, name), "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        for file in files:
            if file["name"] == name:
                file["sha256"] = digest
        self.edit_json(os.path.join(package, "package.json"), files=files)

    def test_same_input_same_bytes(self):
        challenge = self.small_challenge()
        first, _ = self.pack(challenge, output=self.path("a.tar.zst"))
        copy = self.path("elsewhere")
        shutil.copytree(challenge, copy)  # other times, other order in the folder
        for name in os.listdir(copy):
            os.utime(os.path.join(copy, name), (0, 0))
        second, _ = self.pack(copy, output=self.path("b.tar.zst"), TZ="Asia/Tokyo", LC_ALL="C")
        with open(first, "rb") as a, open(second, "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_same_content_same_bytes_whatever_its_modes(self):
        """As another checkout or umask leaves them. What is a program is told by its bytes."""
        challenge = self.small_challenge()
        self.write(os.path.join(challenge, "tools", "make.sh"), "#!/bin/sh\n")
        self.write(os.path.join(challenge, "table.txt"), "1\n")
        archives = []
        for mode in (0o755, 0o644, 0o600):
            for parent, _, names in os.walk(challenge):
                for name in names:
                    os.chmod(os.path.join(parent, name), mode)
            archives.append(self.pack(challenge, "--no-check", output=self.path("%o.tar.zst" % mode))[0])
        contents = set()
        for archive in archives:
            with open(archive, "rb") as file:
                contents.add(file.read())
        self.assertEqual(len(contents), 1)
        inner = os.path.join(self.unpack(archives[0]), "lib", "kjudge", "packages", "softmax")
        for name, executable in (("tools/make.sh", True), ("table.txt", False), ("baseline.py", False)):
            self.assertEqual(os.access(os.path.join(inner, name), os.X_OK), executable, name)

    def test_a_package_with_hidden_files_packs_again(self):
        """To the same package; elsewhere a hidden file that is not there may be one misspelt."""
        challenge = self.small_challenge(hidden=["solution"])
        self.write(os.path.join(challenge, "solution", "fast.py"), "UNSEEN")
        first, _ = self.pack(challenge, "--no-check")
        package = self.unpack(first)
        inner = os.path.join(package, "lib", "kjudge", "packages", "softmax")
        again, _ = self.pack(inner, "--no-check", output=self.path("again.tar.zst"))
        with open(first, "rb") as a, open(again, "rb") as b:
            self.assertEqual(a.read(), b.read())
        self.write(os.path.join(inner, "solutoin", "fast.py"), "UNSEEN")
        _, err = self.pack(inner, "--no-check", status=3)
        self.assertIn("hidden: there is no solution; under another name it would be packed: write the name that "
                      "it has, or leave it out of hidden", err)
        shutil.rmtree(os.path.join(inner, "solutoin"))
        copy = shutil.copytree(inner, self.path("copy"))
        self.assertIn("hidden: there is no solution", self.pack(copy, "--no-check", status=3)[1])

    def test_what_is_in_it(self):
        challenge = self.small_challenge(hidden=["solution", "notes.txt"])
        for name in ("solution/fast.py", "notes.txt", ".git/config", "__pycache__/reference.pyc", "extra.h"):
            path = os.path.join(challenge, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write("UNSEEN" if name != "extra.h" else "seen")
        archive, _ = self.pack(challenge)
        package = self.unpack(archive)
        self.assertEqual(os.path.basename(package), NAME)
        found = {}
        for parent, _, files in os.walk(package):
            for name in files:
                path = os.path.join(parent, name)
                with open(path, "rb") as file:
                    content = file.read()
                found[os.path.relpath(path, package)] = hashlib.sha256(content).hexdigest()
                self.assertNotIn(b"UNSEEN", content, path)
                self.assertNotIn(os.fsencode(_kjudge.ROOT), content, path)  # it would not be reproducible
        inner = "lib/kjudge/packages/softmax"
        self.assertEqual({os.path.relpath(n, inner) for n in found if n.startswith(inner)},
                         {"challenge.json", "TASK.md", "reference.py", "reference.c", "baseline.py",
                          "softmax.c", "submission.py", "extra.h"})
        for name in ("TASK.md", "submission.py", "harness.py", "submit.py", "package.json", "bin/kjudge",
                     "lib/kjudge/libkjudge_recorder.so", "lib/kjudge/libkjudge_host_driver.so",
                     "lib/kjudge/libstdc++.so.6", "include/kjudge/host_kernel.h"):
            self.assertIn(name, found)
        self.assertFalse([n for n in found if "libc.so" in n or "ld-linux" in n])
        with open(os.path.join(package, "package.json")) as file:
            manifest = json.load(file)
        del found["package.json"]
        self.assertEqual({f["name"]: f["sha256"] for f in manifest["files"]}, found)
        result = self.evaluate(self.write("right.py", _kjudge.RIGHT), "--challenge", challenge, "--pairs", "1")
        self.assertEqual(manifest["challenge_sha256"], result["challenge_sha256"])
        version, _ = self.run_kjudge("--version")
        self.assertIn("commit %s," % manifest["kjudge_commit"], version)
        self.assertIn("kjudge %s," % manifest["kjudge_version"], version)

    def test_judges_where_no_kjudge_is(self):
        archive, _ = self.pack(self.small_challenge())
        package = self.unpack(archive)
        out, err = self.harness(package, "submission.py", "--pairs", "1")
        self.assertIn("verdict: accepted", out)
        self.assertIn("kjudge: taking softmax, version 1, in lib/kjudge/packages/softmax\n", err)
        # Where the dynamic linker would split the recorder's path, and others quote, escape or expand.
        odd = self.path("a b:c$d'\"\\e;*?[f]\ng${HOME}%s")
        shutil.move(package, odd)
        out, _ = self.harness(odd, "submission.py", "--pairs", "1")
        self.assertIn("verdict: accepted", out)
        for word in ("$ORIGIN", "a${LIB}b", "$PLATFORM"):  # which nothing escapes
            os.makedirs(self.path(word))
            shutil.move(odd, self.path(word, "p"))
            _, err = self.harness(self.path(word, "p"), "submission.py", status=2)
            self.assertIn("and the dynamic linker takes %s in a path for a word of its own; move it" %
                          word.strip("ab"), err)
            shutil.move(self.path(word, "p"), odd)
        shutil.move(odd, self.path("moved"))
        # Every library but the C library's own is the package's.
        traced = subprocess.run([self.path("moved", "bin", "kjudge")], check=True, capture_output=True,
                                text=True, env={"LD_TRACE_LOADED_OBJECTS": "1"}).stdout
        foreign = [line.split()[0] for line in traced.splitlines()
                   if "=>" in line and self.path("moved") not in os.path.normpath(line.split()[2])]
        self.assertLessEqual({name.split(".")[0] for name in foreign},
                             {"libc", "libm", "libdl", "libpthread", "librt"}, traced)
        # A package packs again, to the same but for where the binary is from.
        again, _ = self.pack(self.small_challenge_again(), "--binary", self.path("moved", "bin", "kjudge"),
                             output=self.path("again.tar.zst"))
        with open(archive, "rb") as a, open(again, "rb") as b:
            self.assertEqual(a.read(), b.read())

    def small_challenge_again(self):
        return self.path("challenge")

    def test_a_submission_that_is_too_deep_for_pythons_parser(self):
        package = self.small_package()
        self.write(os.path.join(package, "deep.py"), "-" * 200000 + "1\n")
        out, _ = self.harness(package, "deep.py", "--pairs", "1", status=1)
        self.assertIn("verdict: ", out)  # of a MemoryError or a RecursionError

    def test_server_is_stored(self):
        challenge = self.small_challenge()
        _, err = self.pack(challenge)
        self.assertIn("no --server", err)
        archive, err = self.pack(challenge, "--server", "https://contest.example.org/a/")
        self.assertNotIn("no --server", err)
        package = self.unpack(archive)
        with open(os.path.join(package, "submit.py")) as file:
            lines = file.read().splitlines()
        self.assertIn('SERVER = "https://contest.example.org/a"', lines)
        self.assertIn('CHALLENGE = "softmax"', lines)
        with open(os.path.join(package, "package.json")) as file:
            self.assertEqual(json.load(file)["server"], "https://contest.example.org/a")
        for bad in ("contest.example.org", "https://me:secret@example.org", 'https://a"+exit()+"',
                    "https://a/?token=1", "file:///etc"):
            _, err = self.pack(challenge, "--server", bad, status=2)
            self.assertIn("--server", err)

    def test_one_rule_for_servers(self):
        """What pack stores submit.py, kjudge submit and harness.py take, and none of them takes more."""
        challenge = self.small_challenge()
        harness = self.load_harness(os.path.join(HARNESS, "harness.py"))
        no_token = dict(os.environ, KERNELS_TOKEN="")
        good = ("http://h", "https://contest.example.org/a/b~+-_.c/%7e", "http://h:1", "http://h:65535/",
                "http://[::1]:80", "https://[2001:db8::A:1]/x", "http://[1:2:3:4:5:6:7:8]",
                "http://[1:2:3:4:5:6:7::]", "http://h_1.a-b:80/...", "http://127.0.0.1:8080")
        bad = {"http://h:99999": "not a port", "http://h:80:90": "not a port", "http://h:": "not a port",
               "http://h:0": "not a port", "http://[::1]80": "not a port", "http://[::1]:": "not a port",
               "http://h/%zz": "not a path", "http://h/../x": "not a path", "http://h/.": "not a path",
               "http://h/a//b": "not a path", "http://h//": "not a path", "http://h/%4": "not a path",
               "http://h/'": "not a path", "http://[::1": "no IPv6 address", "http://[]": "no IPv6 address",
               "http://[1:2:3:4::5:6:7:8]": "no IPv6 address", "http://[::1.2.3.4]": "no IPv6 address",
               "http://[fe80::1%25a]": "no IPv6 address", "http://[1::2::3]": "no IPv6 address",
               "http://::1": "names no host", "http://": "names no host", "http:///a": "names no host",
               "http://a..b": "not a host", "http://-a": "not a host", "http://a.": "not a host",
               "http://%s" % ("a" * 64): "not a host", "http://h/%s" % ("a" * 200): "at most 200 bytes",
               "h": "expected an http or https", "http://u:p@h": "no user and password"}
        for address in good + tuple(bad):
            why = bad.get(address)
            stored = address[:-1] if address.endswith("/") and not why else address
            self.assertEqual(re.fullmatch(harness.SERVER, stored) is None, why is not None, address)
            if why or "[::1]" in address:
                _, err = self.pack(challenge, "--server", address, "--no-check", status=2 if why else 0)
                self.assertIn(why or "", err)
            for command in ([sys.executable, os.path.join(HARNESS, "submit.py"), "--status", "1"],
                            [_kjudge.BINARY, "status", "1"]):
                done = subprocess.run(command + ["--server", address], env=no_token, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 2 if why else 4, (command, address, done.stderr))
                self.assertIn(why or "KERNELS_TOKEN", done.stderr)
        self.assertIsNone(re.fullmatch(harness.SERVER, ""))

    def test_paths_that_no_archive_has_room_for_are_the_challenges_fault(self):
        challenge = self.small_challenge()
        long = os.path.join(challenge, "n" * 240)
        self.write(long, "x")
        _, err = self.pack(challenge, "--no-check", status=3)
        self.assertIn("kjudge: package: %s: too long a path for a package, where softmax-1/lib" % long, err)
        os.unlink(long)
        name = "x" * 300 + ".tar.zst"
        _, err = self.pack(challenge, "--no-check", output=name, status=6)
        self.assertRegex(err, r"kjudge: host: (\S*/)?%s: File name too long\n" % name)

    def test_what_is_no_file_is_no_binary(self):
        challenge = self.small_challenge()
        for binary in (self.folder, "/dev/null"):
            _, err = self.pack(challenge, "--no-check", "--binary", binary, status=2)
            self.assertIn("kjudge: usage: %s: not a regular file; name bin/kjudge of an installation" % binary, err)

    def test_binaries_that_cannot_be_packed(self):
        challenge = self.small_challenge()
        alone = self.path("bin", "kjudge")
        os.mkdir(self.path("bin"))
        shutil.copy(_kjudge.BINARY, alone)
        for binary, why in ((self.path("gone"), "No such file"), (sys.executable, "no kjudge"),
                            (self.write("text", "x"), "ELF image"), (alone, "it needs lib")):
            _, err = self.pack(challenge, "--binary", binary, output=self.path("x.tar.zst"), status=2)
            self.assertIn(why, err)
            self.assertFalse(os.path.exists(self.path("x.tar.zst")))

    def test_an_output_that_would_become_a_part_of_the_challenge(self):
        challenge = self.small_challenge()
        for cwd, output in ((challenge, ()), (self.folder, ("-o", "challenge/a/../b.tar.zst"))):
            _, err = self.run_kjudge("pack", challenge, "--no-check", *output, cwd=cwd, status=2)
            self.assertIn("lies in the challenge", err)

    def test_names_that_no_manifest_can_tell(self):
        challenge = self.small_challenge()
        for name in (b"\xff", b"a\nb", b"a\\b"):
            path = os.path.join(os.fsencode(challenge), name)
            open(path, "w").close()
            _, err = self.pack(challenge, "--no-check", status=3)
            self.assertIn("is a file's name that is not one line of UTF-8 without backslashes", err)
            os.remove(path)

    def test_hidden_files_that_are_not_there(self):
        _, err = self.pack(self.small_challenge(hidden=["solutoin.py"]), status=3)
        self.assertIn("hidden: there is no solutoin.py", err)

    def test_hidden_files_that_are_opened(self):
        """By baseline.py, reference.py or the starting point: the package could not run."""
        challenge = self.small_challenge(hidden=["table.txt"])
        with open(os.path.join(challenge, "table.txt"), "w") as file:
            file.write("1")
        output = self.path("package.tar.zst")
        for name in ("baseline.py", "reference.py", "submission.py"):
            path = os.path.join(challenge, name)
            with open(path) as file:
                right = file.read()
            with open(path, "w") as file:
                file.write('import os\nopen(os.path.join(os.path.dirname(os.path.abspath(__file__)), '
                           '"table.txt")).read()\n' + right)
            _, err = self.pack(challenge, status=3)
            self.assertRegex(err, r"%s: .*FileNotFoundError: .*table\.txt(.|\n)*--no-check packs it" % name)
            self.assertFalse(os.path.exists(output))
            self.pack(challenge, "--no-check")
            os.remove(output)
            with open(path, "w") as file:
                file.write(right)
        out, _ = self.run_kjudge("pack", challenge, "-o", output, "--json")
        self.assertTrue(json.loads(out)["checked"])

    def test_a_challenge_that_cannot_run_here_is_packed_unchecked(self):
        challenge = self.small_challenge()
        with open(os.path.join(challenge, "challenge.json")) as file:
            shapes = json.load(file)["shapes"]
        self.edit_json(os.path.join(challenge, "challenge.json"), tests=[],
                       shapes=[dict(shapes[0], arch="sm_*")])
        out, err = self.run_kjudge("pack", challenge, "-o", "p.tar.zst", "--json", CUDA_VISIBLE_DEVICES="")
        self.assertIn("not checked, for it cannot run here", err)
        self.assertFalse(json.loads(out)["checked"])

    def test_what_contestants_need_cannot_be_hidden(self):
        _, err = self.pack(self.small_challenge(hidden=["baseline.py"]), status=3)
        self.assertIn("hidden: baseline.py is needed", err)

    def test_missing_things_are_told(self):
        package = self.small_package()
        challenge = os.path.join(package, "lib", "kjudge", "packages", "softmax")
        manifest = os.path.join(package, "package.json")

        with self.subTest("old glibc, another processor"):
            shutil.copy(manifest, self.path("kept.json"))
            self.edit_json(manifest, glibc="99.0")
            _, err = self.harness(package, "submission.py", status=5, through=["setarch", "i686"])
            self.assertRegex(err, r"missing: this machine has glibc \d\.\d+, bin/kjudge needs 99.0 or newer; "
                                  r"build kjudge .* from source")
            self.assertIn("this processor is i686, bin/kjudge is for x86_64", err)
            shutil.copy(self.path("kept.json"), manifest)

        with self.subTest("half a Python"):
            hollow = self.write("hollow/ctypes.py", "raise ImportError(name='ctypes')\n")
            _, err = self.harness(package, "submission.py", status=5, PYTHONPATH=os.path.dirname(hollow))
            self.assertIn("missing: this Python has no module ctypes", err)

        with self.subTest("no compiler"):
            _, err = self.harness(package, "submission.py", status=5, CC="no-such-compiler -O2")
            self.assertIn("missing: there is no C compiler (no-such-compiler)", err)

        with self.subTest("a compiler of blanks is the usual one"):
            self.harness(package, "submission.py", "--pairs", "1", CC=" ")

        with self.subTest("no torch, after an option with a value"):
            harness = self.load_harness(os.path.join(package, "harness.py"))
            options = [one.names for one in self.options_of("selftest")[0] if one.value]
            self.assertEqual(set(harness.WITH_VALUE), set(options))
            path = self.write("with_torch.py", "import torch\n" + _kjudge.RIGHT)
            for arguments in (["--shape", "64x48", path], ["--pairs=1", path], ["--eager", path]):
                _, err = self.harness(package, *arguments, python=["-S"], status=5)
                self.assertIn("with_torch.py imports torch, which", err)

        with self.subTest("no torch"):  # -S: without the packages that this machine has
            for text, says in (("import torch\n", True), ("import torch.nn as nn\n", True),
                               ("if False:\n  import torch\n", False), ("def (\n", False)):
                path = self.write("mine.py", text + _kjudge.RIGHT)
                _, err = self.harness(package, path, "--pairs", "1", python=["-S"],
                                      status=5 if says else 1 if "def (" in text else 0)
                self.assertEqual("mine.py imports torch, which" in err, says, err)

        with self.subTest("no GPU"):
            gone = {"CUDA_VISIBLE_DEVICES": ""}
            _, err = self.harness(package, "submission.py", "--driver", "cuda", status=5, **gone)
            self.assertRegex(err, "missing: NVIDIA's driver .*; without --driver cuda it runs on processor")
            with open(os.path.join(challenge, "challenge.json")) as file:
                shapes = json.load(file)["shapes"]
            self.edit_json(os.path.join(challenge, "challenge.json"), tests=[],
                           shapes=[dict(shapes[0], arch="sm_*")])
            self.pack_file_again(package, "lib/kjudge/packages/softmax/challenge.json")
            _, err = self.harness(package, "submission.py", status=5, KJUDGE_DRIVER="auto", **gone)
            self.assertRegex(err, "missing: NVIDIA's driver .*; this challenge runs on GPUs only")

        with self.subTest("half a package"):
            os.remove(os.path.join(challenge, "challenge.json"))
            _, err = self.harness(package, "submission.py", status=3)
            self.assertIn("unpack the package again", err)

    def test_a_program_that_is_missing_or_not_executable(self):
        package = self.small_package()
        program = os.path.join(package, "bin", "kjudge")
        os.chmod(program, 0o644)
        _, err = self.harness(package, "submission.py", status=6)
        self.assertIn("kjudge: bin/kjudge: not executable; say\n  chmod +x bin/kjudge\n"
                      "or unpack again with tar", err)
        os.remove(program)
        _, err = self.harness(package, "submission.py", status=6)
        self.assertEqual(err, "kjudge: bin/kjudge: not found; unpack the package again\n")
        os.remove(os.path.join(package, "package.json"))  # as in the source's folder
        _, err = self.harness(package, "submission.py", status=6)
        self.assertIn("from source, build it", err)

    def test_files_of_a_package_that_are_missing(self):
        package = self.small_package()
        os.rename(os.path.join(package, "submission.py"), os.path.join(package, "mine.py"))
        for name in ("lib/kjudge/harness/driver.py", "lib/kjudge/libkjudge_recorder.so",
                     "lib/kjudge/packages/softmax/challenge.json", "include/kjudge/host_kernel.h"):
            path = os.path.join(package, name)
            shutil.move(path, self.path("kept"))
            _, err = self.harness(package, "mine.py", status=3)
            self.assertEqual(err, "kjudge: %s: not found; unpack the package again\n" % name)
            shutil.move(self.path("kept"), path)
        out, _ = self.harness(package, "mine.py", "--pairs", "1")  # its own files may be renamed
        self.assertIn("verdict: accepted", out)

    def test_links_in_a_package(self):
        """Python looks into a folder that is a link: it could hold another ctypes."""
        package = self.small_package()
        self.write("elsewhere/__init__.py", "raise SystemExit(7)\n")
        for parent in ("lib/kjudge/harness", "lib", "include/kjudge"):
            link = os.path.join(package, parent, "ctypes")
            os.symlink(self.path("elsewhere"), link)
            _, err = self.harness(package, "submission.py", status=3)
            self.assertEqual(err, "kjudge: %s/ctypes: is a link, of which a package has none; unpack the "
                                  "package again\n" % parent)
            os.unlink(link)

    def test_a_package_without_its_package_json(self):
        package = self.small_package()
        manifest = os.path.join(package, "package.json")
        os.unlink(manifest)
        for _ in range(2):
            _, err = self.harness(package, "submission.py", status=3)
            self.assertEqual(err, "kjudge: package.json: not found; unpack the package again\n")
            if not os.path.islink(manifest):
                os.symlink("nowhere", manifest)

    def test_names_that_would_drive_a_terminal(self):
        package = self.small_package()
        self.write(os.path.join(package, "lib", "kjudge", "\033]0;taken\007\u202ex"), "")
        _, err = self.harness(package, "submission.py", status=3)
        self.assertEqual(err, "kjudge: package.json: files: lib/kjudge/?]0;taken??x is not among them; "
                              "unpack the package again\n")

    def test_files_of_a_package_that_are_not_as_they_were_packed(self):
        """A cut library would end Python or kjudge by a signal, a changed reference judge otherwise."""
        package = self.small_package()
        libraries = os.path.join(package, "lib", "kjudge")
        names = ["bin/kjudge", "lib/kjudge/packages/softmax/reference.py", "lib/kjudge/harness/capture.py",
                 "include/kjudge/host_kernel.h"]
        names += ["lib/kjudge/" + name for name in os.listdir(libraries) if ".so" in name]
        self.assertGreater(len(names), 6)

        def cut(content):
            return content[:len(content) // 2]

        def changed(content):
            middle = len(content) // 2
            return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1:]

        for name in names:
            path = os.path.join(package, name)
            with open(path, "rb") as file:
                right = file.read()
            for fault in (cut, changed, lambda content: content + b"\n", lambda content: b""):
                with open(path, "wb") as file:
                    file.write(fault(right))
                _, err = self.harness(package, "submission.py", status=3)
                self.assertRegex(err, r"^kjudge: %s: not as it was packed \(expected SHA-256 [0-9a-f]{64}, "
                                      r"found [0-9a-f]{64}\); unpack the package again\n$" % re.escape(name))
            with open(path, "wb") as file:
                file.write(right)
        for name in ("submission.py", "TASK.md", "submit.py"):  # the contestant's own
            with open(os.path.join(package, name), "a") as file:
                file.write("# mine\n")
        out, _ = self.harness(package, "submission.py", "--pairs", "1")
        self.assertIn("verdict: accepted", out)
        # Another kjudge may be named; the challenge must be the package's all the same.
        with open(os.path.join(package, "bin", "kjudge"), "wb") as file:
            file.write(b"\x7fELF")
        out, _ = self.harness(package, "submission.py", "--pairs", "1", "--challenge",
                              os.path.join(libraries, "packages", "softmax"), KJUDGE=_kjudge.BINARY)
        self.assertIn("verdict: accepted", out)

    def test_a_manifest_that_is_read_loosely(self):
        """harness.py refuses what the table of kjudge-package/1 refuses, field by field."""
        package = self.unpack(self.pack(self.small_challenge(), "--server", "https://example.org")[0])
        path = os.path.join(package, "package.json")
        with open(path) as file:
            right = json.load(file)
        with open(os.path.join(_kjudge.SHARE, "kjudge", "schema", "kjudge-package-1.json")) as file:
            schema = json.load(file)
        harness = self.load_harness(os.path.join(package, "harness.py"))
        self.assertEqual(set(harness.FIELDS) | {"files"}, set(schema["properties"]))
        self.assertEqual(set(harness.FILE_FIELDS), set(schema["properties"]["files"]["items"]["properties"]))

        def refused(text):
            with open(path, "w") as file:
                file.write(text)
            stderr = io.StringIO()
            with contextlib.redirect_stderr(stderr), self.assertRaises(SystemExit) as ended:
                harness.read_package()
            self.assertEqual(ended.exception.code, harness.EXIT_MALFORMED)
            message = stderr.getvalue()
            self.assertRegex(message, r"^kjudge: [^\n]*package\.json: [^\n]*; unpack the package again\n$")
            return message

        def places(document, properties, where):
            for name, part in properties.items():
                yield document, name, part, where + name
                if part.get("type") == "array":
                    yield from places(document[name][0], part["items"]["properties"], "%s[0]." % name)

        wrong = [None, True, 0, -1, 1.5, 10 ** 400, "", "\n", "x" * 1000, "\ud800", [], [3], {}, {"a": 1}]
        tried = 0
        for document, name, part, where in places(right, schema["properties"], ""):
            for value in wrong:
                kept, document[name] = document[name], value
                self.assertRegex(refused(json.dumps(right)), r"json: %s(\[0\])?: expected .*" % re.escape(where))
                document[name] = kept
                tried += 1
            if name != "server":
                kept = document.pop(name)
                self.assertIn('field "%s" is missing; expected ' % name, refused(json.dumps(right)))
                document[name] = kept
            document["unheard_of"] = 1
            self.assertIn('"unheard_of": unknown field', refused(json.dumps(right)))
            del document["unheard_of"]
        self.assertGreater(tried, 150)
        files = right["files"]
        first = files[0]
        for wrong, says in (
                ([], "files: expected a list of 1 to 100000 items, found a list of 0;"),
                (files[::-1], "files[1].name: expected names in order, each once;"),
                ([first] + files, "files[1].name: expected names in order, each once;"),
                ([dict(first, name="bin/../bin/kjudge")], "files[0].name: expected a path below the package's"),
                ([dict(first, name="/TASK.md")], "files[0].name: expected a path below the package's"),
                ([dict(first, name="./TASK.md")], "files[0].name: expected a path below the package's")):
            self.assertIn(says, refused(json.dumps(dict(right, files=wrong))))
        self.assertIn("expected an object, found null", refused("null"))
        self.assertIn("expected an object, found a list", refused("[]"))
        self.assertIn("levels of lists", refused("[" * 100000))
        self.assertIn("stands twice", refused(json.dumps(right)[:-1] + ', "arch": "x86_64"}'))
        self.assertIn("NaN is no number", refused(json.dumps(dict(right, challenge_version=float("nan")))))
        self.assertIn("BOM", refused("\ufeff" + json.dumps(right)))
        text = json.dumps(right)
        for size in range(len(text)):
            refused(text[:size])
        with open(path, "w") as file:
            file.write(text)
        self.assertEqual(harness.read_package()[0], right)

    def test_a_package_json_whose_files_were_cut(self):
        """What it no longer names would run unverified."""
        package = self.small_package()
        path = os.path.join(package, "package.json")
        with open(path) as file:
            files = json.load(file)["files"]
        for kept in (files[:1], files[:len(files) // 2],
                     [file for file in files if file["name"] != "lib/kjudge/libkjudge_recorder.so"]):
            self.edit_json(path, files=kept)
            _, err = self.harness(package, "submission.py", status=3)
            self.assertRegex(err, r"^kjudge: package\.json: files: (bin|lib|include)/\S+ is not among them; "
                                  r"unpack the package again\n$")
        self.edit_json(path, files=[])
        _, err = self.harness(package, "submission.py", status=3)
        self.assertEqual(err, "kjudge: package.json: files: expected a list of 1 to 100000 items, found a list of 0; "
                              "unpack the package again\n")

    def test_a_fifo_or_device_in_the_place_of_a_file(self):
        """None is waited for, none is read for ever."""
        package = self.small_package()
        os.mkfifo(self.path("fifo.py"))
        os.mkdir(self.path("folder"))
        shutil.copy(os.path.join(package, "submission.py"), self.path("folder", "submission.py"))
        os.mkfifo(self.path("folder", "pipe"))
        os.mkdir(self.path("alone"))
        os.mkfifo(self.path("alone", "submission.py"))
        os.symlink("/dev/zero", self.path("zero.py"))
        for given in ("fifo.py", "folder", "alone", "zero.py", "/dev/zero", "/dev/null"):
            with self.subTest(given=given):
                out, err = self.harness(package, self.path(given), "--pairs", "1", status=None)
                self.assertIn(self.status_of_harness, (1, 2, 3))
                self.assertRegex(out + err, "regular file|neither a file nor a folder")
                self.assertNotIn("Traceback", out + err)
        for name in ("package.json", "lib/kjudge/harness/driver.py", "include/kjudge/host_kernel.h",
                     "lib/kjudge/packages/softmax/challenge.json", "bin/kjudge"):
            with self.subTest(name=name):
                path = os.path.join(package, name)
                shutil.move(path, self.path("kept"))
                os.mkfifo(path)
                _, err = self.harness(package, "submission.py", status=6 if name == "bin/kjudge" else 3)
                self.assertRegex(err, r"^kjudge: %s: not (a regular file|found); unpack the package again\n$" %
                                 re.escape(name))
                os.remove(path)
                shutil.move(self.path("kept"), path)

    def test_patterns_of_harness_py_are_those_of_the_table(self):
        """Of package.json: the same texts are right to Python and to C++."""
        with open(os.path.join(_kjudge.SHARE, "kjudge", "schema", "kjudge-package-1.json")) as file:
            properties = json.load(file)["properties"]
        sys.path.insert(0, os.path.join(_kjudge.ROOT, "harness"))
        import harness
        sys.path.pop(0)
        tried = 0
        for fields, of in ((harness.FIELDS, properties), (harness.FILE_FIELDS, properties["files"]["items"]["properties"])):
            for name, (rule, _) in fields.items():
                schema = of[name]
                if not isinstance(rule, str):
                    self.assertEqual(rule, (schema["minimum"], schema["maximum"]), name)
                elif "enum" in schema:
                    self.assertEqual([rule], schema["enum"], name)
                elif rule == harness.SERVER:  # that of the schema is wider; see test_one_rule_for_servers
                    self.assertRegex("http://[::1]:80/a", schema["pattern"])
                elif rule.startswith(harness.LINE[:5]):
                    for code in [*range(0x3000), *range(0xfe00, 0x10000), 0x1f680]:
                        right = re.fullmatch(schema["pattern"], chr(code)) is not None
                        self.assertEqual(re.fullmatch(rule, chr(code)) is not None, right, hex(code))
                    most = schema["maxLength"]
                    self.assertTrue(re.fullmatch(rule, "x" * most) and not re.fullmatch(rule, "x" * (most + 1)))
                else:
                    self.assertEqual("^(%s)$" % rule, schema["pattern"], name)
                tried += 1
        self.assertEqual(tried, 11)

    def test_a_challenge_without_shapes(self):
        package = self.small_package()
        name = "lib/kjudge/packages/softmax/challenge.json"
        for content in ("[]", "{}", '{"shapes": 1}', '{"shapes": [{}]}', "[" * 100000):
            with open(os.path.join(package, name), "w") as file:
                file.write(content)
            self.pack_file_again(package, name)
            _, err = self.harness(package, "submission.py", status=3)
            self.assertRegex(err, r"^kjudge: %s: .*; unpack the package again\n$" % re.escape(name))

    def test_archives_as_submissions(self):
        challenge = self.small_challenge()
        self.write("right/submission.py", _kjudge.RIGHT)
        os.mkdir(self.path("queue"))
        for name, kind in (("in_folder", "zip"), ("bare", "gztar"), ("plain", "tar")):
            root = {"root_dir": self.folder, "base_dir": "right"} if name == "in_folder" else {
                "root_dir": self.path("right")}
            shutil.make_archive(self.path("queue", name), kind, **root)
        self.run_kjudge("judge", "results", "--from", "queue", "--unsafe", "--challenge", challenge)
        out, _ = self.run_kjudge("rank", "results")
        for run in ("in_folder", "bare", "plain"):
            self.assertIn(run, out)
        result = self.evaluate(self.path("queue", "in_folder.zip"), "--challenge", challenge, "--pairs", "1")
        self.assertEqual(result["verdict"], "accepted")
        os.symlink("/etc/passwd", self.path("right", "secrets"))
        subprocess.run(["tar", "-czf", self.path("linked.tgz"), "-C", self.path("right"), "."], check=True)
        result = self.evaluate("linked.tgz", "--challenge", challenge, status=1)
        self.assertEqual(result["verdict"], "refused")
        self.assertIn("linked.tgz: secrets: a link", result["message"])
        self.assert_nothing_left()


if __name__ == "__main__":
    _kjudge.main()

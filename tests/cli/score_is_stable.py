# SPDX-License-Identifier: Apache-2.0
"""Scores of stored results: the same bytes from the same facts, without a device."""

import json
import os
import shutil
import subprocess

import _kjudge

ALL = os.path.join(_kjudge.ROOT, "tests", "golden")
GOLDEN = os.path.join(_kjudge.ROOT, "tests", "golden", "result-v1")


# Another C library's log and exp: never the same bits as the one they stand before.
OTHER_LIBM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <unistd.h>

static double off(const char *name, double x) {
  double (*real)(double) = (double (*)(double))dlsym(RTLD_NEXT, name);
  const double y = real(x);
  return nextafter(nextafter(y, INFINITY), INFINITY);
}
static int calls;
double log(double x) { ++calls; return off("log", x); }
double exp(double x) { ++calls; return off("exp", x); }
__attribute__((destructor)) static void tell(void) {
  if (calls > 0 && write(2, "other libm\\n", 11) < 0) _exit(1);
}
"""


class ScoreIsStable(_kjudge.Case):
    def golden_tree(self, folder, reverse=False):
        """A copy of tests/golden below `folder`, made in one order of names or the other."""
        for top, folders, names in os.walk(ALL):
            folders.sort(reverse=reverse)
            target = os.path.join(folder, "tests", "golden", os.path.relpath(top, ALL))
            os.makedirs(target)
            for name in sorted(names, reverse=reverse):
                shutil.copyfile(os.path.join(top, name), os.path.join(target, name))

    def expected(self, name, made):
        path = os.path.join(ALL, name)
        if os.environ.get("KJUDGE_WRITE_GOLDEN"):
            with open(path, "w") as file:
                file.write(made)
        with open(path) as file:
            return file.read()

    def test_golden_scores(self):
        """The same bytes in every folder, order of names, locale, time zone, umask and libm."""
        source = self.write("other_libm.c", OTHER_LIBM)
        libm = self.path("other_libm.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-fno-builtin", "-o", libm, source, "-lm", "-ldl"],
                       check=True)
        self.golden_tree(self.path("a"))
        umask = os.umask(0o077)
        self.golden_tree(self.path("b"), reverse=True)
        try:
            for options, name in (([], "score.txt"), (["--json"], "score.json")):
                for folder in ("a", "b"):
                    for environment in (
                            {}, {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "TZ": "Asia/Tokyo"},
                            {"LC_ALL": "C", "TZ": "America/Caracas", "LD_PRELOAD": libm}):
                        with self.subTest(name, folder=folder, **environment):
                            out, err = self.run_kjudge("score", "tests/golden", *options, status=1,
                                                       cwd=self.path(folder), **environment)
                            self.assertEqual(out, self.expected(name, out))
                            self.assertIn("tests/golden: passed over", err)
                            self.assertEqual("other libm" in err, "LD_PRELOAD" in environment)
        finally:
            os.umask(umask)

    def test_what_is_no_result_is_passed_over(self):
        shutil.copy(os.path.join(GOLDEN, "accepted.json"), self.write("tree/deep/er.json", ""))
        for name, text in {"a.txt": "", "broken.json": "{", "list.json": "[1]", "kjb.kjb": "",
                           "schema.json": '{"format": "kjudge-challenge/1"}'}.items():
            self.write("tree/" + name, text)
        out, err = self.run_kjudge("score", "tree", "--json")
        self.assertEqual([score["file"] for score in json.loads(out)["scores"]], ["tree/deep/er.json"])
        self.assertEqual(err, "kjudge: tree: passed over 5 files that are no results, "
                              "the first of them a.txt\n")
        # By its name or its format it would be one.
        for name, text in {"result.json": "{", "new.json": '{"format": "kjudge-result/2"}'}.items():
            path = self.write("tree/" + name, text)
            _, err = self.run_kjudge("score", "tree", status=3)
            self.assertIn("tree/" + name, err)
            os.remove(path)
        os.remove(self.path("tree/deep/er.json"))
        _, err = self.run_kjudge("score", "tree", status=2)
        self.assertIn("no results in this folder", err)

    def test_same_bytes_as_ever(self):
        names = ["accepted.json", "judge_error.json", "refused.json", "wrong_result.json"]
        for name in names:
            shutil.copy(os.path.join(GOLDEN, name), self.folder)
        first, _ = self.run_kjudge("score", *names, "--json", status=1)
        second, _ = self.run_kjudge("score", *names, "--json", status=1, LC_ALL="C", TZ="Asia/Tokyo")
        self.assertEqual(first, second)
        scores = json.loads(first)["scores"]
        with open(os.path.join(GOLDEN, "accepted.json")) as file:
            stored = json.load(file)["score"]
        self.assertEqual(scores[0]["speedup"], stored["speedup"])
        self.assertEqual([s["verdict"] for s in scores],
                         ["accepted", "judge_error", "refused", "wrong_result"])

    def test_stored_score_is_not_believed(self):
        with open(os.path.join(GOLDEN, "accepted.json")) as file:
            result = json.load(file)
        honest, _ = self.run_kjudge("score", os.path.join(GOLDEN, "accepted.json"))
        result["score"]["speedup"] = 1000
        self.write("accepted.json", json.dumps(result))
        forged, _ = self.run_kjudge("score", "accepted.json")
        self.assertEqual(honest.splitlines()[1:], forged.splitlines()[1:])

    def test_show_json_is_the_file(self):
        path = os.path.join(GOLDEN, "accepted.json")
        out, _ = self.run_kjudge("show", path, "--json")
        with open(path) as file:
            self.assertEqual(out, file.read())


if __name__ == "__main__":
    _kjudge.main()

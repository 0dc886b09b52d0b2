#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds for developers and runs every test that needs no GPU, and each fuzz
# target for a minute.
set -euo pipefail
cd "$(dirname "$0")/.."
. examples/install.sh

require_toolkit
install_needed $build_packages clang libclang-rt-14-dev mandoc python3-jsonschema zstd

cmake --preset dev >/dev/null
cmake --build build-dev -- -k 0
status=0
# Fuzz targets are built and run by what the tests leave of the processor, beside those that time
# nothing; all at once, so that they end with them.
fuzz_log=build-dev/fuzz.log
chrt --idle 0 bash tests/fuzz/run.sh --jobs 8 >"$fuzz_log" 2>&1 &
fuzzers=$!
run_tests() {
  ctest --test-dir build-dev "$@" --output-on-failure || status=$?
}
run_tests --label-regex 'unit|layout' --label-exclude gpu --output-junit ctest-untimed.xml
wait "$fuzzers" || status=$?
cat "$fuzz_log"
run_tests --label-exclude 'gpu|unit|layout' --parallel "$(nproc)" --output-junit ctest-timed.xml
python3 - build-dev/ctest-untimed.xml build-dev/ctest-timed.xml "$fuzz_log" <<'END'
import re, sys, xml.etree.ElementTree as xml
*reports, fuzz_log = sys.argv[1:]
passed = failed = 0
for report in reports:
    suite = xml.parse(report).getroot()
    bad = int(suite.get("failures")) + int(suite.get("errors") or 0)
    failed += bad
    passed += int(suite.get("tests")) - bad - int(suite.get("skipped")) - int(suite.get("disabled"))
fuzzed = re.findall(r"^fuzz_\w+: (FAILED)?", open(fuzz_log, errors="replace").read(), re.M)
failed += fuzzed.count("FAILED")
passed += fuzzed.count("")
print("%d passed, %d failed" % (passed, failed))
END
exit "$status"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds for developers and runs every test that needs no GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
. examples/install.sh

require_toolkit
install_needed $build_packages clang libclang-rt-14-dev mandoc python3-jsonschema

cmake --preset dev >/dev/null
cmake --build build-dev -- -k 0
report=build-dev/ctest.xml
status=0
ctest --test-dir build-dev --label-exclude gpu --output-on-failure --output-junit ctest.xml || status=$?
python3 - "$report" <<'END'
import sys, xml.etree.ElementTree as xml
suite = xml.parse(sys.argv[1]).getroot()
failed = int(suite.get("failures")) + int(suite.get("errors") or 0)
passed = int(suite.get("tests")) - failed - int(suite.get("skipped")) - int(suite.get("disabled"))
print("%d passed, %d failed" % (passed, failed))
END
exit "$status"

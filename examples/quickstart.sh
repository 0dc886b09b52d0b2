#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a checkout to a ranking: installs what is missing, builds, judges the examples.
set -euo pipefail
cd "$(dirname "$0")/.."
. examples/install.sh

require_toolkit
install_needed $build_packages

say "building into build/"
mkdir -p build
if ! { cmake --preset release -DKJUDGE_TESTS=OFF && cmake --build build; } >build/build.log 2>&1; then
  tail -n 40 build/build.log >&2
  say "the build failed; all of its output is in build/build.log"
  exit 1
fi
kjudge=build/bin/kjudge
export KJUDGE_DRIVER=host  # the same on every machine; examples/softmax_gpu is for a GPU
"$kjudge" --version

say "a contestant's view: selftest of the starting point of packages/softmax"
"$kjudge" selftest packages/softmax/submission.py

results=$(mktemp -d "${TMPDIR:-/tmp}/kjudge-results.XXXXXX")
# Our own examples; in many containers there is no sandbox to be had.
say "an organizer's view: judging examples/softmax into $results"
"$kjudge" judge "$results" --from examples/softmax --challenge softmax --unsafe

say "the ranking; 'kjudge show 1 --results $results' shows an evaluation"
"$kjudge" rank "$results"

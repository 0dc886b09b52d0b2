#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Looks at the pages as people's machines do: html-validate, Chromium and axe-core on every page, with
# and without JavaScript, by light and dark, on a screen and on a phone. By hand, not in ctest: it needs
# `apt-get install chromium nodejs npm` and packages of npm.
#   tests/pages/run.sh [FOLDER]    keeps the site and screenshots in FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
kjudge=${KJUDGE_BINARY:-$root/build-dev/bin/kjudge}
folder=${1:-}
if [ -z "$folder" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
for program in chromium node npm; do
  command -v "$program" >/dev/null || { echo "run.sh: no $program: apt-get install chromium nodejs npm" >&2; exit 2; }
done
cd "$here"
npm ci --ignore-scripts --no-fund --no-audit --silent
rm -rf "$folder/results" "$folder/site" "$folder/screenshots" "$folder/challenge"
python3 ../cli/_results_directory.py "$folder/results"
python3 states.py "$kjudge" "$folder/results" "$folder/challenge"
# 3: two of its files cannot be read, and are left out.
"$kjudge" pages "$folder/results" --output "$folder/site" --challenge "$folder/challenge" || [ $? = 3 ]
# Also what the results of a test cannot be: an evaluation that runs.
cp running.html refused.html "$folder/site/evaluation/"
npx html-validate --config .htmlvalidate.json "$folder/site/**/*.html"
node check.mjs "$folder/site" "$folder/screenshots"

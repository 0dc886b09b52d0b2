#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the libFuzzer targets and runs each for a time; README.md here.
#   bash tests/fuzz/run.sh [--time SECONDS] [--jobs N] [--merge] [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=60 jobs=2 merge=no targets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --time) seconds=$2; shift ;;
    --jobs) jobs=$2; shift ;;
    --merge) merge=yes ;;
    -*) sed -n '3,4s/^# *//p' "$0" >&2; exit 2 ;;
    *) targets+=("$1") ;;
  esac
  shift
done
if [ ${#targets[@]} = 0 ]; then
  for source in tests/fuzz/*.cc; do targets+=("$(basename "$source" .cc)"); done
fi

cmake --preset fuzz >/dev/null
cmake --build build-fuzz --target "${targets[@]/#/fuzz_}" >build-fuzz/build.log || {
  cat build-fuzz/build.log >&2
  exit 1
}

# What any input may take. A minute: in tests/run.sh the targets get what is left of the processor.
limits="-rss_limit_mb=512 -malloc_limit_mb=64 -timeout=60 -max_len=16384"

# Freed memory that the sanitizer holds back counts as taken.
export ASAN_OPTIONS=quarantine_size_mb=32

# Files that a target writes for its reader need no disk. In a folder of their own: other tests look
# for what kjudge leaves in /dev/shm.
if [ -w /dev/shm ]; then
  TMPDIR=$(mktemp -d /dev/shm/fuzz.XXXXXX)
  export TMPDIR
  trap 'rm -rf "$TMPDIR"' EXIT
fi

# New inputs go to build-fuzz/corpus/TARGET, what was found to build-fuzz/found/TARGET-...
run_target() {
  local target=$1 log=build-fuzz/$1.log limits=$limits
  # zstd's window, which it holds to 128 MiB.
  [ "$target" != archive ] || limits+=" -malloc_limit_mb=200"
  mkdir -p "build-fuzz/corpus/$target" build-fuzz/found
  # Without -entropic=0, half of the time goes into choosing the next input.
  if build-fuzz/bin/fuzz_"$target" $limits -entropic=0 -max_total_time="$seconds" \
      -print_final_stats=1 -artifact_prefix="build-fuzz/found/$target-" \
      "build-fuzz/corpus/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1; then
    echo "fuzz_$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs," \
      "$(grep -a -o 'cov: [0-9]*' "$log" | tail -1), $(sed -n 's/^stat::peak_rss_mb: *//p' "$log") MB"
  else
    echo "fuzz_$target: FAILED; $log ends with:"
    tail -n 40 "$log"
    return 1
  fi
}

merge_target() {
  local target=$1 merged=build-fuzz/merged/$1
  rm -rf "$merged"
  mkdir -p "$merged"
  build-fuzz/bin/fuzz_"$target" $limits -merge=1 "$merged" "tests/fuzz/corpus/$target" \
    "build-fuzz/corpus/$target" >"build-fuzz/$target-merge.log" 2>&1
  cp "$merged"/* "tests/fuzz/corpus/$target/"
}

export -f run_target
export limits seconds
status=0
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I{} bash -c 'run_target {}' || status=1
if [ "$status" = 0 ] && [ "$merge" = yes ]; then
  for target in "${targets[@]}"; do merge_target "$target"; done
fi
exit "$status"

# SPDX-License-Identifier: Apache-2.0
# Sourced by quickstart.sh and tests/run.sh: makes sure that what kjudge is built with is there.
# install_needed PACKAGE... installs the Debian packages that are missing, and stops with status 2 and
# an explanation when it cannot.

build_packages="g++ cmake ninja-build pkg-config python3 git ca-certificates libcli11-dev
  nlohmann-json3-dev libarchive-dev libboost1.81-dev libboost-filesystem1.81-dev doctest-dev
  libzstd-dev libxxhash-dev libssl-dev libseccomp-dev bubblewrap
  nettle-dev liblzma-dev libbz2-dev zlib1g-dev"

say() { echo "kjudge: $*" >&2; }

# The CUDA Toolkit first: without it nothing else is worth installing. No GPU is needed.
require_toolkit() {
  PATH="${CUDA_HOME:-/usr/local/cuda}/bin:$PATH"
  local root version
  version=$(nvcc --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\..*/\1/p' || true)
  if [ -z "$version" ]; then
    say "nvcc was not found, or does not run. kjudge is built with the CUDA Toolkit 13.0 (no GPU is needed). On Debian 12:
  wget https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/cuda-keyring_1.1-1_all.deb
  dpkg -i cuda-keyring_1.1-1_all.deb && apt-get update && apt-get install cuda-toolkit-13-0
If it is installed elsewhere, set CUDA_HOME."
    exit 2
  fi
  if [ "$version" -lt 13 ]; then
    say "$(command -v nvcc) is of CUDA $version; kjudge is built with 13.0 or newer. If that is installed
elsewhere, set CUDA_HOME."
    exit 2
  fi
  root=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
  local place
  for place in "$root/extras/CUPTI/include" "$root/include" "$root/targets/x86_64-linux/include"; do
    if [ -e "$place/cupti.h" ]; then
      export PATH CUDAToolkit_ROOT="$root"
      return
    fi
  done
  say "$root has no CUPTI (cupti.h). With NVIDIA's repository: apt-get install cuda-cupti-dev-13-0"
  exit 2
}

install_needed() {
  local missing="" package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  local as_root=""
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
      say "these packages are missing, and only root can install them:$missing"
      exit 2
    fi
    as_root=sudo
  fi
  say "installing$missing"
  # --no-remove: libboost1.81-dev conflicts with Debian's default, libboost1.74-dev. Whoever has that
  # one decides for themselves.
  if ! { $as_root apt-get update -qq &&
         $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-remove \
           --no-install-recommends $missing >/dev/null; }; then
    say "apt-get could not install$missing without removing packages or at all; its message is above.
Where libboost1.74-dev is in the way: apt-get remove libboost1.74-dev, then run this again."
    exit 2
  fi
}

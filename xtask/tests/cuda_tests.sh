#!/usr/bin/env bash
# Links the `cuda` build for real and runs the GPU tests on two stand-in CUDA devices, without a card; then the same
# tests with feature `vulkan` on two software devices of Mesa 26. Both in a Debian sid system (xtask/tests/sid_system.sh).
#
#   xtask/tests/cuda_tests.sh                    both, within 20 minutes each after the build
#   xtask/tests/cuda_tests.sh cuda|vulkan|tools  one of them; `tools` tests the stand-in driver and its emulator, which need no system
#   xtask/tests/cuda_tests.sh cuda TEST...       only tests whose names contain a word
#   xtask/tests/cuda_tests.sh ci                 `tools` and `cuda` with training on one placement instead of three; then the
#                                            launches of the smallest voice against their limit, also on the oldest card
#   xtask/tests/cuda_tests.sh launches [FLAG...] `tandem bench launches`: launches, copies and waits of a training step
#   xtask/tests/cuda_tests.sh runs [TEST...]     whole runs of `tandem train`: late work, overlap, failing cards
#   xtask/tests/cuda_tests.sh cards              every kernel of a training step checked for every other card (sm_75 to sm_90)
#
# CUDA_STAND_IN_CARDS names the cards (tools/cuda-stand-in/README.md; default: two RTX 4090).
# Where root or packages are missing, it says what was skipped, and ends with 77; with STRICT=1, with 1.
set -euo pipefail
cd "$(dirname "$0")/../.."
. xtask/tests/sid_system.sh
stand_in_dir="${XDG_CACHE_HOME:-$HOME/.cache}/tandem/cuda-stand-in"
limit=${LIMIT:-1200}

# skip WHAT: ends the script, which tested nothing or only the tools.
skip() {
    not_tested "$1"
    echo "skipped: $1" >&2
    [ "${STRICT:-}" != 1 ] || exit 1
    exit 77
}

# get_nvcc: NVIDIA's ptxas and libdevice, from its Python package. They are not free to pass on: downloaded into the
# cache, never part of the tree.
get_nvcc() {
    [ -x "$stand_in_dir/nvcc/bin/ptxas" ] && return 0
    local wheels
    wheels="$(mktemp -d)"
    python3 -m pip download --quiet --no-deps --dest "$wheels" 'nvidia-cuda-nvcc-cu12==12.9.86' >&2 || return 1
    rm -rf "$stand_in_dir/nvcc.draft"
    mkdir -p "$stand_in_dir/nvcc.draft"
    python3 -m zipfile -e "$wheels"/*.whl "$stand_in_dir/nvcc.draft"
    chmod +x "$stand_in_dir/nvcc.draft/nvidia/cuda_nvcc/bin/ptxas"
    rm -rf "$wheels" "$stand_in_dir/nvcc"
    mv "$stand_in_dir/nvcc.draft/nvidia/cuda_nvcc" "$stand_in_dir/nvcc"
    rm -rf "$stand_in_dir/nvcc.draft"
}

# make_stand_in: the driver, and two of older versions, which lack newer functions.
make_stand_in() {
    mkdir -p "$stand_in_dir"/drivers/{12.9,12.0,11.8} "$stand_in_dir/kernels"
    # shellcheck disable=SC2016
    in_sid sh -euc '
        for version in 12090 12000 11080; do
            gcc -O2 -Wall -Wextra -Werror -shared -fPIC -fvisibility=hidden -DSTAND_IN_VERSION=$version \
                -o "$0/draft.so" tools/cuda-stand-in/*.c
            mv "$0/draft.so" "$0/drivers/${version%0??}.$((version % 1000 / 10))/libcuda.so.1"
        done
        mkdir -p "$0/nccl"
        gcc -O2 -Wall -Wextra -Werror -shared -fPIC -fvisibility=hidden -o "$0/nccl/libnccl.so" tools/cuda-stand-in/nccl/nccl.c
        ' "$stand_in_dir"
}

# build FEATURE: the program and the GPU tests, from one set of dependencies; prints the path of the tests. The system
# has no certificates to download anything with.
build() {
    cargo fetch --locked --quiet
    in_sid cargo build --offline --profile gpu-tests --locked -p tandem -p tandem-model \
        --features "tandem/$1,tandem-model/$1" --bin tandem --test gpu --message-format json-render-diagnostics |
        sed -n 's|.*"executable":"\([^"]*/deps/gpu-[^"]*\)".*|\1|p' | tail -1
}
tandem="$CARGO_TARGET_DIR/sid/gpu-tests/tandem"

# on_cuda [NAME=VALUE]... -- COMMAND...: runs a command with the stand-in driver.
on_cuda() {
    local variables=()
    while [ "$1" != -- ]; do variables+=("$1") && shift; done
    shift
    in_sid env LD_LIBRARY_PATH="$stand_in_dir/drivers/12.9" CUDA_STAND_IN_DRIVERS="$stand_in_dir/drivers" \
        CUDA_PATH="$stand_in_dir/nvcc" \
        CUDA_STAND_IN_DIR="$stand_in_dir/kernels" CUDA_STAND_IN_PTXAS="$stand_in_dir/nvcc/bin/ptxas" \
        CUDA_STAND_IN_TRANSLATOR="$PWD/tools/cuda-stand-in/ptx_to_c.py" \
        CUDA_STAND_IN_CARDS="${CUDA_STAND_IN_CARDS:-rtx4090,rtx4090}" CUBECL_AUTOTUNE_LEVEL=minimal \
        "${variables[@]}" timeout "$limit" "$@"
}

test_cuda() {
    local program began=$SECONDS
    program="$(build cuda)"
    echo "cuda: linked in $((SECONDS - began)) s: $program" >&2
    : >"$stand_in_dir/kernels/calls.log"
    began=$SECONDS
    on_cuda -- "$program" --test-threads=1 --nocapture "$@"
    echo "cuda: tests took $((SECONDS - began)) s; the driver: $(grep '^end: ' "$stand_in_dir/kernels/calls.log" | tail -1)" >&2
}

# Launches of a step of the smallest voice, with a tenth of room.
launch_limit=325

# count_launches [FLAG...]: kernels are compiled and checked, and not computed. The calls are kept for
# xtask/measurements/kernel_report.sh.
count_launches() {
    : >"$stand_in_dir/kernels/calls.log"
    on_cuda -- "$tandem" bench launches --backend cuda --data-gpu 0 --model-gpu 1 "$@"
}

# test_launches: within the limit, on the usual cards; then on the oldest card, whose kernels are others.
test_launches() {
    local began=$SECONDS
    count_launches --model-size micro --max-launches $launch_limit
    CUDA_STAND_IN_CARDS=t4,t4 count_launches --model-size micro --steps 1
    echo "cuda: launches took $((SECONDS - began)) s" >&2
}

# test_runs [TEST...]: whole runs of the program, with late work and failing cards.
test_runs() {
    local began=$SECONDS
    mkdir -p "$stand_in_dir/store"
    on_cuda TANDEM_TEST_STORE="$stand_in_dir/store" CUDA_STAND_IN_NCCL="$stand_in_dir/nccl" -- python3 tools/cuda-stand-in/test_runs.py "$tandem" "$@"
    echo "cuda: runs took $((SECONDS - began)) s" >&2
}

# test_cards: all kernels of a training step for each card, and their numbers on it.
test_cards() {
    local card program
    program="$(build cuda)"
    for card in t4 a100-40 rtx3060-12 rtx3090 rtx4060ti-16 h100-80; do
        echo "cards: $card" >&2
        CUDA_STAND_IN_CARDS=$card,$card count_launches --model-size tiny --steps 1
        CUDA_STAND_IN_CARDS=$card,$card on_cuda -- "$program" --test-threads=1 --nocapture \
            products_of_f32 swapped_devices the_allocator flags_in_either_order
    done
}

test_vulkan() {
    local program began=$SECONDS drivers="$stand_in_dir/vulkan"
    mkdir -p "$drivers"
    program="$(build vulkan)"
    echo "vulkan: linked in $((SECONDS - began)) s: $program" >&2
    # A copy of the driver with a manifest of its own is a second device, as in xtask/tests/software_gpus.sh.
    in_sid sh -eu -c '
        library=$(echo /usr/lib/*/libvulkan_lvp.so)
        cp --update "$library" "$1/second_lavapipe.so"
        for path in "$library" "$1/second_lavapipe.so"; do
            sed "s|\"library_path\": *\"[^\"]*\"|\"library_path\": \"$path\"|" /usr/share/vulkan/icd.d/lvp_icd*.json \
                >"$1/$(basename "$path").json"
        done' vulkan "$drivers"
    began=$SECONDS
    in_sid env VK_DRIVER_FILES="$drivers/libvulkan_lvp.so.json:$drivers/second_lavapipe.so.json" \
        CUBECL_AUTOTUNE_LEVEL=minimal timeout "$limit" "$program" --test-threads=1 --nocapture "$@"
    echo "vulkan: tests took $((SECONDS - began)) s" >&2
}

test_tools() {
    python3 tools/cuda-stand-in/test_emulator.py
    python3 tools/cuda-stand-in/test_streams.py
    python3 tools/cuda-stand-in/test_graphs.py
    if [ -x "$stand_in_dir/nvcc/bin/ptxas" ]; then
        CUDA_STAND_IN_PTXAS="$stand_in_dir/nvcc/bin/ptxas" python3 tools/cuda-stand-in/test_driver.py
    else
        python3 tools/cuda-stand-in/test_driver.py
    fi
}

what=${1:-all}
[ $# -eq 0 ] || shift
case $what in tools | cuda | vulkan | all | ci | launches | runs | cards) ;; *) sed -n '2,18s/^# \?//p' "$0" >&2; exit 2 ;; esac
case $what in tools | all | ci) test_tools ;; esac
[ "$what" != tools ] || exit 0
mkdir -p "$stand_in_dir"
export SID_BIND="$stand_in_dir"
if ! make_sid; then
    skip "cuda and vulkan: no Debian sid system"
fi
if [ "$what" != vulkan ]; then
    get_nvcc || skip "cuda: the Python package nvidia-cuda-nvcc-cu12 (ptxas, libdevice) is not available"
    make_stand_in
fi
# One command after the other: within `a && b` the shell does not end at a failed command of `a`.
case $what in
    cuda) test_cuda "$@" ;;
    vulkan) test_vulkan "$@" ;;
    ci)
        export TANDEM_TEST_QUICK=1
        test_cuda "$@"
        test_runs
        test_launches
        ;;
    launches)
        build cuda >/dev/null
        count_launches "$@"
        ;;
    cards) test_cards ;;
    runs)
        build cuda >/dev/null
        test_runs "$@"
        ;;
    all)
        test_cuda
        test_runs
        test_launches
        test_vulkan
        ;;
esac

#!/usr/bin/env bash
# Builds the program with MPI and runs its tests under `mpirun` on this machine: equality with one process, resuming
# with other numbers of ranks, ranks that are killed, hang or are stopped, and preparation by several ranks. Then two
# "machines" train over TCP, and the link between them is cut twice; without root it says that this was not tested.
# Installs Open MPI and libclang if they are missing. Arguments go to the test program, and leave the cuts out.
#
#   TANDEM_MPI_KILLS=50 xtask/tests/mpi_tests.sh killed     a campaign of 50 kills
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
install_debian cc build-essential
install_debian mpirun openmpi-bin libopenmpi-dev
install_debian_file "/usr/lib/llvm-*/lib/libclang.so*" libclang-dev

cargo test --release --locked -p tandem-cluster --features mpi
cargo test --release --locked -p tandem --features mpi --test mpi_command -- --test-threads=1 "$@"
[ $# -eq 0 ] || exit 0

install_debian ip iproute2
# A container may forbid namespaces to its root.
probe=tandem-probe-$$
if [ "$(id -u)" -eq 0 ] && ip netns add "$probe" 2>/dev/null && ip netns exec "$probe" unshare --uts true; then
    ip netns del "$probe"
    TANDEM=$CARGO_TARGET_DIR/release/tandem bash xtask/campaigns/mpi_campaign.sh 2
else
    ip netns del "$probe" 2>/dev/null || true
    not_tested "cut links between two machines (xtask/campaigns/mpi_campaign.sh): network namespaces need root"
fi

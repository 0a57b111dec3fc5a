#!/usr/bin/env bash
# Builds the program with MPI and runs its tests under `mpirun` on this machine: equality with one process, resuming
# with other numbers of ranks, ranks that are killed, hang or are stopped, and preparation by several ranks. Installs
# Open MPI and libclang if they are missing. Arguments go to the test program.
#
#   TANDEM_MPI_KILLS=50 scripts/mpi_tests.sh killed     a campaign of 50 kills
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
install_debian cc build-essential
install_debian mpirun openmpi-bin libopenmpi-dev
install_debian_file "/usr/lib/llvm-*/lib/libclang*.so*" libclang-dev

cargo test --release --locked -p tandem-cluster --features mpi
exec cargo test --release --locked -p tandem --features mpi --test mpi_command -- --test-threads=1 "$@"

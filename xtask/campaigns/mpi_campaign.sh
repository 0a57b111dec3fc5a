#!/usr/bin/env bash
# Two "machines" (network namespaces with names of their own) train together, and the link between them is cut at a
# random moment. Both sides must end within 30 s, rank 0 must name the lost rank and host, and the newest checkpoint
# must resume on the machine that is left. Then the link is repaired, and the run continues on both.
#
#   xtask/campaigns/mpi_campaign.sh [CUTS]     default: 20
#
# Needs root, for the namespaces. Uses $TANDEM, a build with MPI, or builds one. `mpirun` starts the far rank through
# a launch agent, as it would with ssh.
set -euo pipefail

cuts=${1:-20}
cd "$(dirname "$0")/../.."
. scripts/environment.sh
install_debian mpirun openmpi-bin libopenmpi-dev
install_debian ip iproute2
if [ -z "${TANDEM:-}" ]; then
    install_debian cc build-essential
    install_debian_file "/usr/lib/llvm-*/lib/libclang.so*" libclang-dev
    cargo build --release --quiet --locked -p tandem --features mpi
    TANDEM=$CARGO_TARGET_DIR/release/tandem
fi
[ "$(id -u)" -eq 0 ] || { echo "error: network namespaces need root" >&2; exit 2; }

dir=$(mktemp -d "${TMPDIR:-/tmp}/tandem-cuts.XXXXXX")
a=tandem-a-$$ b=tandem-b-$$ near=ta$$ far=tb$$ job=
finish() {
    [ -z "$job" ] || kill -KILL "$job" 2>/dev/null || true
    for name in "$a" "$b"; do
        ip netns pids "$name" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
        ip netns del "$name" 2>/dev/null || true
    done
    rm -rf "$dir"
}
trap finish EXIT
ip netns add "$a"
ip netns add "$b"
ip link add "$near" type veth peer name "$far"
ip link set "$near" netns "$a"
ip link set "$far" netns "$b"
ip -n "$a" addr add 10.77.0.1/24 dev "$near"
ip -n "$b" addr add 10.77.0.2/24 dev "$far"
for name in "$a" "$b"; do ip -n "$name" link set lo up; done
ip -n "$a" link set "$near" up
ip -n "$b" link set "$far" up

# mpirun calls it with a host and a command, as it would call ssh.
cat >"$dir/agent" <<AGENT
#!/bin/sh
shift
exec ip netns exec $b unshare --uts sh -c 'hostname node-b; exec sh -c "\$0"' "\$*"
AGENT
chmod +x "$dir/agent"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 NO_COLOR=1
export TANDEM_DATA_DIR=$dir/data XDG_CACHE_HOME=$dir/cache
train=(train --train-data demo --cache-dataset --model-size micro --batch-size 2 --frame-budget 800
    --warmup-steps 1000 --model-start-delay 0 --checkpoint-every 2 --validate-every 100000 --sample-every 100000
    --checkpoint-dir "$dir/run")

newest() { # prints the step of the newest checkpoint, or -1
    local last
    last=$(find "$dir/run" -maxdepth 1 -name 'step-*' 2>/dev/null | sort | tail -1)
    [ -n "$last" ] && echo $((10#$(basename "$last" | sed -E 's/step-([0-9]+).*/\1/'))) || echo -1
}

fail() {
    echo "FAILED at cut $cut: $1" >&2
    cat "$dir/err" >&2
    exit 1
}

now() { date +%s%3N; }

# Unpacks and prepares the corpus once.
"$TANDEM" prepare demo --cache-dataset >/dev/null 2>&1
longest=0
for ((cut = 1; cut <= cuts; cut++)); do
    before=$(newest)
    resume=()
    [ "$before" -lt 0 ] || resume=(--resume)
    # shellcheck disable=SC2016
    ip netns exec "$a" unshare --uts sh -c 'hostname node-a; exec "$@"' sh \
        mpirun -np 2 --host 10.77.0.1:1,10.77.0.2:1 --bind-to none --mca plm_rsh_agent "$dir/agent" \
        --mca btl self,tcp --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
        --mca odls_base_sigkill_timeout 30 -x TANDEM_DATA_DIR -x XDG_CACHE_HOME \
        "$TANDEM" "${train[@]}" --max-steps 1000000 "${resume[@]}" >/dev/null 2>"$dir/err" &
    job=$!
    begun=$(now)
    until [ "$(newest)" -gt "$before" ]; do
        kill -0 "$job" 2>/dev/null || fail "the job ended before the cut"
        [ $(($(now) - begun)) -lt 120000 ] || fail "no checkpoint in 120 s"
        sleep 0.05
    done
    sleep "0.$((RANDOM % 10))"
    reached=$(newest)
    ip -n "$b" link set "$far" down
    cut_at=$(now)
    while [ -n "$(pgrep -f "^$TANDEM train .*--checkpoint-dir $dir/run" || true)" ]; do
        [ $(($(now) - cut_at)) -lt 30000 ] || fail "a rank is still there 30 s after the cut"
        sleep 0.05
    done
    took=$(($(now) - cut_at))
    longest=$((took > longest ? took : longest))
    kill -KILL "$job" 2>/dev/null || true
    wait "$job" 2>/dev/null || true
    job=
    ip netns pids "$b" | xargs -r kill -KILL 2>/dev/null || true
    grep -q "rank 1 on host node-b is lost" "$dir/err" || fail "rank 0 does not name the lost rank"
    [ "$(newest)" -ge "$reached" ] || fail "a checkpoint was lost"
    next=$(($(newest) + 1))
    "$TANDEM" "${train[@]}" --max-steps "$next" --resume --grad-accum 2 >/dev/null 2>"$dir/err" ||
        fail "the checkpoint does not resume on one machine"
    ip -n "$b" link set "$far" up
    echo "cut $cut: ended after $took ms, resumed at step $next"
done
echo "$cuts cuts: no hang, no lost checkpoint, the slowest end after $longest ms"

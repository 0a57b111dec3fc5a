#!/usr/bin/env bash
# Builds the wheel of the Python package, installs it into a fresh virtual environment and runs its tests there: pytest,
# the types (mypy), and the example scripts. Uses PyTorch where the Python of this machine has it; TORCH=install gets the
# build for CPUs from the package index. Arguments go to pytest.
#
#   xtask/tests/python_tests.sh                 everything, a few minutes with a warm build directory
#   xtask/tests/python_tests.sh -k resume       some tests
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
install_debian cc build-essential
install_debian python3 python3 python3-venv
tools="${XDG_CACHE_HOME:-$HOME/.cache}/tandem/python"
fresh=$(mktemp -d "${TMPDIR:-/tmp}/tandem-python.XXXXXX")
trap 'rm -rf "$fresh"' EXIT

# The builder stays in the cache; what is tested is installed into a new environment each time.
if ! "$tools/bin/maturin" --version >/dev/null 2>&1; then
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
fi
find_tandem
export TANDEM=$tandem
"$tools/bin/maturin" build --release --locked --quiet --manifest-path crates/tandem-python/Cargo.toml \
    --interpreter python3 --out "$fresh/wheels"
site=()
! python3 -c 'import torch' 2>/dev/null || site=(--system-site-packages)
python3 -m venv "${site[@]}" "$fresh/venv"
python=$fresh/venv/bin/python
"$python" -m pip install --quiet --disable-pip-version-check "$fresh"/wheels/*.whl pytest mypy
[ "${TORCH:-}" != install ] || "$python" -m pip install --quiet --disable-pip-version-check torch soundfile

# Not from the source tree: its package has no native part.
cd "$fresh"
root=$OLDPWD/crates/tandem-python
export XDG_CACHE_HOME=$fresh/cache
"$python" -m pytest -q -p no:cacheprovider --rootdir "$root" "$root/tests" "$@"
"$python" -m mypy --config-file "$root/pyproject.toml" --strict --no-error-summary --cache-dir "$fresh/mypy" --exclude '/torch/' -p tandem
"$python" -m mypy.stubtest --ignore-missing-stub --ignore-disjoint-bases tandem._native >/dev/null ||
    "$python" -m mypy.stubtest --ignore-missing-stub tandem._native
"$python" "$root/examples/loader_only.py"
! "$python" -c 'import torch, soundfile' 2>/dev/null || "$python" "$root/examples/train_loop.py" --steps 40
echo "the Python package passed" >&2

# Runs the script of a derivation as the standard environment would: it stops at the first error.
set -euo pipefail
umask 022
export HOME=/homeless-shelter TMPDIR="$NIX_BUILD_TOP"
cd "$NIX_BUILD_TOP"
set +u
# shellcheck disable=SC1090
source "$scriptPath"

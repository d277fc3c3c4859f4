# Runs the script of a derivation as the standard environment would: it stops at the first error.
set -euo pipefail
umask 022
export HOME=/homeless-shelter TMPDIR="$NIX_BUILD_TOP"
cd "$NIX_BUILD_TOP"

case " ${hooks:-} " in
  *" makeWrapper "*)
    wrapProgram() {
      local program=$1 wrapped
      [ "$2 $3 $4" = "--suffix PATH :" ] && [ $# = 5 ]
      wrapped=$(dirname "$program")/.$(basename "$program")-wrapped
      mv "$program" "$wrapped"
      printf '#!/bin/bash\nexport PATH="$PATH:%s"\nexec -a "$0" %s "$@"\n' "$5" "$wrapped" >"$program"
      chmod 0555 "$program"
    }
    ;;
esac
set +u
# shellcheck disable=SC1090
source "$scriptPath"

# The phases of buildRustPackage, on the host's cargo.
home=$(getent passwd "$(id -u)" | cut -d: -f6)
export CARGO_HOME="${CARGO_HOME:-$home/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$home/.rustup}"
export PATH="${toolPath:+$toolPath:}${cargoBin:+$cargoBin:}$CARGO_HOME/bin:$PATH"
export CARGO_TARGET_DIR="$targetDir" CARGO_INCREMENTAL=0 CARGO_NET_OFFLINE=true
mkdir -p "$targetDir"
exec 9>"$targetDir/.nix-lock"
flock 9

# The sources keep one place and the times of unchanged files, or cargo would compile all anew.
work="$targetDir/nix-source"
mkdir -p "$work"
{ diff -rq --no-dereference "$src" "$work" || true; } | while IFS= read -r line; do
  case "$line" in
    "Only in $work"*)
      line=${line#"Only in "}
      rm -rf -- "${line%%: *}/${line#*: }"
      ;;
    "Only in $src"*)
      line=${line#"Only in "}
      from="${line%%: *}/${line#*: }"
      cp -r --no-preserve=mode,timestamps -- "$from" "$work${from#"$src"}"
      ;;
    "Files "*)
      from=${line#Files }
      from=${from%% and *}
      cp --no-preserve=mode,timestamps --remove-destination -- "$from" "$work${from#"$src"}"
      ;;
  esac
done
( cd "$src" && find . -type f -perm -u+x -print0 ) | ( cd "$work" && xargs -0r chmod u+x -- )
cd "$work"

installManPage() {
  mkdir -p "$out/share/man/man1"
  cp -- "$@" "$out/share/man/man1/"
}

installShellCompletion() {
  [ "$1" = --cmd ]
  command=$2
  shift 2
  while [ $# -gt 0 ]; do
    case "$1" in
      --bash) place="bash-completion/completions/$command.bash" ;;
      --fish) place="fish/vendor_completions.d/$command.fish" ;;
      --zsh) place="zsh/site-functions/_$command" ;;
      *) echo "installShellCompletion: $1?" >&2; return 1 ;;
    esac
    mkdir -p "$out/share/$(dirname "$place")"
    cat "$2" >"$out/share/$place"
    shift 2
  done
}

if [ -n "$buildPhase" ]; then eval "$buildPhase"; else cargo build $buildFlags; fi
eval "$postBuild"
if [ -n "$checkPhase" ]; then eval "$checkPhase"; fi
if [ -n "$installPhase" ]; then
  eval "$installPhase"
else
  mkdir -p "$out/bin"
  cargo metadata --format-version 1 --no-deps |
    python3 -c '
import json, sys
for package in json.load(sys.stdin)["packages"]:
    if "/bins/" in package["manifest_path"]:
        for target in package["targets"]:
            if "bin" in target["kind"]:
                print(target["name"])
' | while IFS= read -r program; do
    install -m 0755 "$targetDir/debug/$program" "$out/bin/$program"
    strip -S "$out/bin/$program" # as nixpkgs does; half of the size
  done
fi
eval "$postInstall"
exec 9>&-

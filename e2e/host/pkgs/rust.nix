# `buildRustPackage` by the host's cargo: dev profile, and a target directory that outlives the build,
# so that a second build compiles only what changed.
{
  lib,
  run,
  here,
}:
let
  known = [
    "buildPhase"
    "buildInputs"
    "cargoBuildFlags"
    "cargoLock"
    "cargoTestFlags"
    "checkPhase"
    "doCheck"
    "env"
    "installPhase"
    "meta"
    "nativeBuildInputs"
    "nativeCheckInputs"
    "passthru"
    "pname"
    "postBuild"
    "postInstall"
    "src"
    "strictDeps"
    "version"
  ];
in
args:
let
  unknown = lib.subtractLists known (lib.attrNames args);
  lock = lib.importTOML args.cargoLock.lockFile;
  # nixpkgs needs a checksum of each package that comes from elsewhere.
  bare = lib.filter (package: package ? source && !(package ? checksum)) lock.package;
  tools = lib.filter lib.isDerivation (
    args.nativeBuildInputs or [ ] ++ args.nativeCheckInputs or [ ]
  );
  skipped = lib.elem args.pname (here.skip or [ ]);
in
if unknown != [ ] then
  throw "buildRustPackage: this stand-in does not know `${lib.head unknown}'"
else if bare != [ ] then
  throw "buildRustPackage: `${(lib.head bare).name}' of Cargo.lock has no checksum"
else
  run {
    name = "${args.pname}-${args.version}";
    meta = args.meta or { };
    passthru = (args.passthru or { }) // {
      inherit (args) pname version src;
    };
    env = args.env or { } // {
      inherit (args) src;
      targetDir = here.targetDir or "/var/tmp/agent-forge-nix";
      cargoBin = here.cargoBin or "";
      toolPath = lib.makeBinPath tools;
      buildFlags = args.cargoBuildFlags or [ ];
      buildPhase = args.buildPhase or "";
      postBuild = args.postBuild or "";
      checkPhase = if args.doCheck or true then args.checkPhase or "cargo test $buildFlags" else "";
      installPhase = args.installPhase or "";
      postInstall = args.postInstall or "";
    };
    script =
      if skipped then
        ''
          echo "${args.pname}: skipped, the host runs the same outside of Nix" >$out
        ''
      else
        builtins.readFile ./rust.sh;
  }

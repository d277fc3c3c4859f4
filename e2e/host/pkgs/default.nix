# The packages and builders that this repository uses, made of what the host has installed.
{
  lib,
  system,
  here,
  nixosSystem,
}:
let
  # Where the host's programs are. A derivation sees them because the sandbox is off.
  hostPath = here.path or "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

  run =
    {
      name,
      script,
      env ? { },
      meta ? { },
      passthru ? { },
    }:
    let
      drv = derivation (
        env
        // {
          inherit name system script;
          outputs = [ "out" ]; # `nix develop` reads it
          builder = "/bin/bash";
          args = [ ./run.sh ];
          PATH = env.PATH or hostPath;
          passAsFile = env.passAsFile or [ "script" ];
        }
      );
    in
    drv
    // passthru
    // {
      inherit meta passthru;
      # for testBuildFailure
      attempt = { inherit name script env; };
    };

  # A package that is nothing but links to programs of the host.
  host =
    name: programs:
    run {
      inherit name;
      meta.mainProgram = lib.head programs;
      env.cargoBin = here.cargoBin or "";
      script = ''
        mkdir -p $out/bin
        for program in ${lib.escapeShellArgs programs}; do
          # test nodes have programs in /usr/bin only
          place=/usr/bin/$program
          [ -e "$place" ] || place=$(PATH="''${cargoBin:-}:$PATH" command -v "$program") || {
            printf '#!/bin/sh\necho "this machine has no %s" >&2\nexit 127\n' "$program" >"$out/bin/$program"
            chmod 0555 "$out/bin/$program"
            continue
          }
          ln -s "$place" "$out/bin/$program"
        done
      '';
    };

  writeScript =
    path: interpreter: text:
    run {
      name = lib.last (lib.splitString "/" path);
      env = { inherit text; };
      script = ''
        mkdir -p "$out/$(dirname ${lib.escapeShellArg path})"
        printf '%s\n' "#!${interpreter}" "$text" >"$out/"${lib.escapeShellArg path}
        chmod 0555 "$out/"${lib.escapeShellArg path}
      '';
      meta.mainProgram = lib.last (lib.splitString "/" path);
    };

  jsonType =
    let
      value =
        lib.types.nullOr (
          lib.types.oneOf [
            lib.types.bool
            lib.types.int
            lib.types.float
            lib.types.str
            lib.types.path
            (lib.types.attrsOf value)
            (lib.types.listOf value)
          ]
        )
        // {
          description = "JSON value";
        };
    in
    value;

  pkgs = {
    inherit lib system;
    stdenv = {
      hostPlatform = {
        inherit system;
        isLinux = true;
      };
      buildPlatform = {
        inherit system;
        canExecute = other: other.system == system;
      };
    };
    runtimeShell = "/bin/bash";

    callPackage =
      file: given:
      let
        f = if lib.isFunction file then file else import file;
        named = lib.functionArgs f;
        argument =
          name: optional:
          if given ? ${name} then
            [ (lib.nameValuePair name given.${name}) ]
          else if pkgs ? ${name} then
            [ (lib.nameValuePair name pkgs.${name}) ]
          else if optional then
            [ ]
          else
            throw "callPackage: this stand-in has no `${name}'";
      in
      f (lib.listToAttrs (lib.concatLists (lib.mapAttrsToList argument named)));

    # A fixed point, as there: an overlay whose names hang on `final` has no end.
    extend =
      overlay:
      let
        final = pkgs // overlay final pkgs;
      in
      final;

    runCommand =
      name: env: script:
      run {
        inherit name script;
        meta = env.meta or { };
        passthru = env.passthru or { };
        env =
          removeAttrs env [
            "meta"
            "nativeBuildInputs"
            "passthru"
          ]
          // {
            hooks = env.nativeBuildInputs or [ ];
          };
      };
    writeText =
      name: text:
      run {
        inherit name;
        env = { inherit text; };
        script = ''printf %s "$text" >$out'';
      };
    writeShellScript =
      name: text:
      run {
        inherit name;
        env = { inherit text; };
        script = ''
          printf '%s\n' '#!/bin/bash' "$text" >$out
          chmod 0555 $out
        '';
      };
    writeShellScriptBin = name: writeScript "bin/${name}" "/bin/bash";
    writeShellApplication =
      {
        name,
        text,
        runtimeInputs ? [ ],
      }:
      writeScript "bin/${name}" "/bin/bash" ''
        set -o errexit -o nounset -o pipefail
        ${lib.optionalString (runtimeInputs != [ ]) ''
          export PATH="${lib.makeBinPath runtimeInputs}:$PATH"
        ''}
        ${text}
      '';
    symlinkJoin =
      {
        name,
        paths,
        meta ? { },
        passthru ? { },
      }:
      run {
        inherit name meta passthru;
        script = ''
          mkdir -p $out
          for each in ${toString paths}; do cp -rs --no-preserve=mode "$each/." $out/; done
        '';
      };

    formats.json =
      { }:
      {
        type = jsonType;
        generate =
          name: value:
          run {
            inherit name;
            env.value = builtins.toJSON value;
            script = ''printf %s "$value" | python3 -m json.tool >$out'';
          };
      };

    # a table in a line is as good as one with a head
    formats.toml =
      { }:
      {
        type = jsonType;
        generate =
          name: value:
          run {
            inherit name;
            env.value = builtins.toJSON value;
            script = "python3 ${./toml.py} >$out";
          };
      };

    rustPlatform.buildRustPackage = import ./rust.nix {
      inherit
        lib
        run
        here
        ;
    };
    installShellFiles = "installShellFiles";
    makeWrapper = "makeWrapper";

    mkShell =
      {
        packages ? [ ],
        shellHook ? "",
      }:
      run {
        name = "nix-shell";
        env = {
          inherit shellHook;
          PATH = "${lib.makeBinPath packages}:${hostPath}";
        };
        script = "touch $out";
      };

    # Succeeds if the build of the package fails; its log is then in the output.
    testers.testBuildFailure =
      package:
      run {
        inherit (package.attempt) env;
        name = "${package.attempt.name}-failed";
        script = ''
          expected=$out
          out=$NIX_BUILD_TOP/out
          if (
            set -e
            ${package.attempt.script}
          ) >log 2>&1; then
            echo "the build was to fail" >&2
            exit 1
          fi
          cat log >&2
          mkdir -p "$expected"
          cp log "$expected/testBuildFailure.log"
        '';
      };

    testers.runNixOSTest = import ../nixos/test.nix {
      inherit
        lib
        pkgs
        run
        nixosSystem
        ;
    };

    # what tests and modules start
    bash = host "bash" [
      "bash"
      "sh"
    ];
    cacert = run {
      name = "cacert";
      script = ''
        mkdir -p $out/etc/ssl/certs
        cp /etc/ssl/certs/ca-certificates.crt $out/etc/ssl/certs/ca-bundle.crt || touch $out/etc/ssl/certs/ca-bundle.crt
      '';
    };
    coreutils = host "coreutils" [
      "base64"
      "basename"
      "cat"
      "chgrp"
      "chmod"
      "chown"
      "cp"
      "date"
      "dirname"
      "env"
      "false"
      "head"
      "id"
      "install"
      "ln"
      "ls"
      "mkdir"
      "mktemp"
      "mv"
      "printf"
      "rm"
      "sleep"
      "sort"
      "tail"
      "test"
      "touch"
      "tr"
      "true"
      "wc"
    ];
    curl = host "curl" [ "curl" ];
    findutils = host "findutils" [
      "find"
      "xargs"
    ];
    gawk = host "gawk" [ "awk" ];
    git = host "git" [ "git" ];
    gnugrep = host "gnugrep" [ "grep" ];
    gnused = host "gnused" [ "sed" ];
    jq = host "jq" [ "jq" ];
    nodejs = host "nodejs" [
      "node"
      "npm"
    ];
    openssh = host "openssh" [
      "scp"
      "ssh"
      "ssh-keygen"
    ];
    openssl = host "openssl" [ "openssl" ];
    python3 = host "python3" [ "python3" ] // {
      # only what the host's python has anyway
      withPackages = wanted: builtins.seq (wanted { pip = "pip"; }) pkgs.python3;
    };
    systemd = host "systemd" [
      "systemctl"
      "systemd-analyze"
    ];
    util-linux = host "util-linux" [ "setsid" ];

    # what a development shell holds
    cargo = host "cargo" [ "cargo" ];
    cargo-deny = host "cargo-deny" [ "cargo-deny" ];
    cargo-nextest = host "cargo-nextest" [ "cargo-nextest" ];
    clippy = host "clippy" [
      "cargo-clippy"
      "clippy-driver"
    ];
    deadnix = host "deadnix" [ "deadnix" ];
    nixfmt = host "nixfmt" [ "nixfmt" ];
    nixfmt-tree = host "nixfmt-tree" [ "treefmt" ];
    ruff = host "ruff" [ "ruff" ];
    rustc = host "rustc" [ "rustc" ];
    rustfmt = host "rustfmt" [
      "cargo-fmt"
      "rustfmt"
    ];
    taplo = host "taplo" [ "taplo" ];
    typos = host "typos" [ "typos" ];
  };
in
pkgs

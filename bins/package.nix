# All programs in one build, then one package for each, so that a machine gets only what it starts.
{
  lib,
  stdenv,
  rustPlatform,
  installShellFiles,
  makeWrapper,
  runCommand,
  cacert,
  clippy,
  git,
  openssl,
  python3,
  util-linux,
  programs,
}:
let
  root = ../.;
  manifest = lib.importTOML (root + "/Cargo.toml");

  # What each program is, for `nix search` and `nix flake show`.
  descriptions = {
    attest = "Runs pipelines, signs receipts of them and verifies receipts";
    attest-policy = "Judges runs of attest by a policy file, as a plugin";
    backplane = "Inspects, packs, publishes, serves and fetches Agent Plugins packages";
    forge = "The operator's command of Agent Forge, and its demo";
    forge-codex-plugin = "Workspace edits by the Codex CLI, as a forge plugin";
    forge-exec-plugin = "Workspace edits by any command, as a forge plugin";
    forge-gate = "The control server of Agent Forge: queue, leases, evidence";
    forge-plugin-conformance = "Tests an executable against the forge plugin protocol";
    forge-ref-plugin = "The reference forge plugin";
    forge-worker = "Leases jobs from a Gate, runs plugins and checks, makes candidate commits";
  };
  # These start git; a git of the user's own wins.
  needGit = [
    "forge"
    "forge-plugin-conformance"
  ];
  # Their tests start programs at the places where most systems have them (/usr/bin/python3, /bin/true) or trace
  # system calls; the sandbox allows neither. `cargo xtask ci` runs them, and the scenarios run the programs.
  needHost = [
    "attest"
    "attest-plugin-conformance"
    "attest-plugin-host"
    "attest-policy"
    "forge"
    "forge-codex-plugin"
    "forge-exec-plugin"
    "forge-plugin-conformance"
    "forge-plugin-host"
    "forge-worker"
    "process-tree"
    "soak"
    "xtask"
  ];
  meta = {
    license = lib.licenses.asl20;
    platforms = lib.platforms.linux;
  };

  source =
    more:
    lib.fileset.toSource {
      inherit root;
      fileset = lib.fileset.unions (
        map (name: root + "/${name}") (
          [
            "Cargo.lock"
            "Cargo.toml"
            "crates"
          ]
          ++ map (name: "bins/${name}") programs
          ++ more
        )
      );
    };

  common = {
    inherit (manifest.workspace.package) version;
    src = source [ ];
    cargoLock.lockFile = root + "/Cargo.lock";
    strictDeps = true;
  };

  all = rustPlatform.buildRustPackage (
    common
    // {
      pname = "agent-forge";
      nativeBuildInputs = [ installShellFiles ];
      env.FORGE_VERSION = common.version;
      doCheck = false; # `tests` below, so that a change of a test rebuilds no program
      postInstall = lib.optionalString (stdenv.buildPlatform.canExecute stdenv.hostPlatform) ''
        for program in ${lib.escapeShellArgs programs}; do
          installShellCompletion --cmd $program \
            --bash <("$out/bin/$program" --generate completion-bash) \
            --fish <("$out/bin/$program" --generate completion-fish) \
            --zsh <("$out/bin/$program" --generate completion-zsh)
          "$out/bin/$program" --generate man >$program.1
          installManPage $program.1
        done
      '';
      passthru.tests = { inherit tests; };
      meta = meta // {
        description = "Takes a coding task to a commit that somebody may trust";
        mainProgram = "forge";
      };
    }
  );

  one =
    name:
    runCommand "${name}-${common.version}"
      {
        nativeBuildInputs = lib.optional (lib.elem name needGit) makeWrapper;
        passthru.tests = { inherit tests; };
        meta = meta // {
          description = descriptions.${name} or "A program of Agent Forge";
          mainProgram = name;
        };
      }
      ''
        mkdir -p $out/bin
        cp ${all}/bin/${name} $out/bin/
        for file in \
          share/man/man1/${name}.1 share/man/man1/${name}.1.gz \
          share/bash-completion/completions/${name}.bash \
          share/fish/vendor_completions.d/${name}.fish \
          share/zsh/site-functions/_${name}; do
          [ ! -e ${all}/$file ] || install -D -m 0444 ${all}/$file $out/$file
        done
        ${lib.optionalString (lib.elem name needGit) ''
          wrapProgram $out/bin/${name} --suffix PATH : ${lib.makeBinPath [ git ]}
        ''}
      '';

  clippy' = rustPlatform.buildRustPackage (
    common
    // {
      pname = "agent-forge-clippy";
      src = source [ "clippy.toml" ];
      nativeBuildInputs = [ clippy ];
      # What the manifest denies. Warnings differ between versions of clippy; `cargo xtask ci` denies those of
      # the version that the code is written with.
      buildPhase = "cargo clippy --offline --workspace --all-targets";
      doCheck = false;
      installPhase = "touch $out";
    }
  );

  tests = rustPlatform.buildRustPackage (
    common
    // {
      pname = "agent-forge-tests";
      # tests read the documents, and run what they say
      src = source [
        ".cargo"
        ".config"
        "CHANGELOG.md"
        "README.md"
        "SECURITY.md"
        "docs"
        "e2e"
      ];
      nativeCheckInputs = [
        git
        openssl
        python3
        util-linux
      ];
      buildPhase = ":"; # the tests build what they start
      checkPhase = ''
        export HOME=$TMPDIR
        # a client of https without an authority of its own needs the system's, which a sandbox has not
        export SSL_CERT_FILE=${cacert}/etc/ssl/certs/ca-bundle.crt
        # through a pipe: a build's output is a terminal, for which programs print otherwise
        cargo test --offline --workspace --no-fail-fast \
          ${lib.concatMapStringsSep " " (name: "--exclude ${name}") needHost} 2>&1 | cat
      '';
      installPhase = "touch $out";
    }
  );
in
{
  inherit tests;
  clippy = clippy';
  packages = lib.genAttrs programs one // {
    default = all;
  };
}

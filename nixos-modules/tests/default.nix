# What the modules refuse, and how far their units are shut in. Each is a check of the flake; the words of
# the refusals and the texts of the units are compared by `cargo xtask nix`.
{
  lib,
  pkgs,
  self,
  system,
  nixosSystem,
}:
let
  evaluate =
    module:
    (nixosSystem {
      modules = [
        # all of them: each may be imported beside the others
        self.nixosModules.default
        self.nixosModules.gate
        self.nixosModules.operator
        self.nixosModules.registry
        self.nixosModules.worker
        {
          nixpkgs.hostPlatform = system;
          boot.isContainer = true;
          system.stateVersion = "26.05";
        }
        module
      ];
    }).config;

  cases = import ./refused.nix;
  appliance = evaluate {
    imports = [
      cases.appliance
      cases.registry
    ];
  };
  units = [
    "agent-forge-tokens.service"
    "backplane-registry-secrets.service"
    "backplane-registry.service"
    "forge-gate-secrets.service"
    "forge-gate.service"
    "forge-gate.socket"
    "forge-worker-secrets.service"
    "forge-worker.service"
  ];
  textOf = name: pkgs.writeText name appliance.systemd.units.${name}.text;

  # How exposed a service may be by the measure of `systemd-analyze security`, in tenths of 10.
  thresholds = {
    "agent-forge-tokens.service" = 15;
    "backplane-registry.service" = 15;
    "backplane-registry-secrets.service" = 20;
    "forge-gate.service" = 15;
    "forge-gate-secrets.service" = 20;
    "forge-worker-secrets.service" = 20;
    "forge-worker.service" = 35;
  };

  refused = lib.mapAttrs (
    _: case: (evaluate case.module).system.build.toplevel.drvPath
  ) cases.evaluation;
  accepted = lib.attrNames (lib.filterAttrs (_: path: (builtins.tryEval path).success) refused);

  failures = lib.mapAttrsToList (name: case: {
    inherit name;
    inherit (case) says;
    log = pkgs.testers.testBuildFailure (case.file (evaluate case.module));
  }) cases.build;
in
{
  modules-refused =
    if accepted != [ ] then
      throw "these were to be refused: ${lib.concatStringsSep ", " accepted}"
    else
      pkgs.runCommand "modules-refused"
        {
          passthru = {
            inherit refused;
            says = lib.mapAttrs (_: case: case.says) cases.evaluation;
          };
        }
        ''
          ${lib.concatMapStringsSep "\n" (failure: ''
            for words in ${lib.escapeShellArgs failure.says}; do
              grep -qF -- "$words" ${failure.log}/testBuildFailure.log || {
                echo "${failure.name} says nothing of: $words" >&2
                exit 1
              }
            done
          '') failures}
          touch $out
        '';

  # The overlay has the same packages.
  overlay =
    let
      extended = pkgs.extend self.overlays.default;
      same = name: extended.${name}.drvPath == self.packages.${system}.${name}.drvPath;
    in
    if extended.agent-forge.drvPath != self.packages.${system}.default.drvPath || !(same "forge") then
      throw "the overlay's packages are others than the flake's"
    else
      pkgs.runCommand "overlay" { } "touch $out";

  # The firewall is opened by the one option and by nothing else.
  modules-firewall =
    let
      ports = lib.mapAttrs (
        _: module: (evaluate module).networking.firewall.allowedTCPPorts
      ) cases.accepted;
      open = lib.filterAttrs (_: list: list != [ ]) ports;
    in
    if
      open != {
        public = [ 8443 ];
        registry-public = [ 8790 ];
      }
    then
      throw "the modules open ports: ${builtins.toJSON open}"
    else
      pkgs.runCommand "modules-firewall" { } "touch $out";

  # Operator's command and Worker of one machine look for the Gate where it is.
  modules-urls =
    let
      found = lib.mapAttrs (
        _: module:
        let
          config = evaluate module;
        in
        [
          config.programs.forge.gateUrl
          config.services.forge-worker.settings.gate_url
        ]
      ) cases.urls;
      wanted = lib.mapAttrs (url: _: [
        url
        "ws${lib.removePrefix "http" url}"
      ]) cases.urls;
    in
    if found != wanted then
      throw "the modules look for the Gate elsewhere: ${builtins.toJSON found}"
    else
      pkgs.runCommand "modules-urls" { } "touch $out";

  modules-accepted = pkgs.runCommand "modules-accepted" { } ''
    ${lib.concatMapStringsSep "\n" (config: "echo ${config.system.build.toplevel} >>$out") (
      map evaluate (lib.attrValues cases.accepted)
    )}
  '';

  modules-units = pkgs.runCommand "modules-units" { } ''
    mkdir $out
    ${lib.concatMapStringsSep "\n" (name: "cp ${textOf name} $out/${name}") units}
  '';

  modules-security = pkgs.runCommand "modules-security" { } (
    lib.concatStringsSep "\n" (
      lib.mapAttrsToList (name: threshold: ''
        cp ${textOf name} ${name}
        ${pkgs.systemd}/bin/systemd-analyze security --no-pager --offline=true \
          --threshold=${toString threshold} ./${name} >report || {
          cat report
          echo "${name} is more exposed than ${toString threshold} tenths" >&2
          exit 1
        }
        tail -n 1 report | tee -a $out
      '') thresholds
    )
  );
}

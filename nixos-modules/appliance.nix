# services.agent-forge: Gate, Worker and operator's command on one machine, with tokens of its own making.
{
  lib,
  config,
  pkgs,
  ...
}:
let
  inherit (lib)
    literalExpression
    mkDefault
    mkEnableOption
    mkIf
    mkOption
    mkPackageOption
    types
    ;

  cfg = config.services.agent-forge;
  inherit (config.programs.forge) gateUrl;
  place = "/var/lib/agent-forge";

  execution = {
    plugin_id = "agent";
    environment = [
      "PATH"
      "HOME"
    ];
    plugin_timeout = "15m";
    check_timeout = "10m";
    git_timeout = "1m";
    cleanup_timeout = "10s";
    plugin_output_bytes = 1048576;
    check_output_bytes = 2048;
    git_output_bytes = 1048576;
  };
in
{
  imports = [
    ./gate.nix
    ./operator.nix
    ./worker.nix
  ];

  options.services.agent-forge = {
    enable = mkEnableOption "Gate, Worker and the operator's command of Agent Forge on this machine";

    package = mkPackageOption pkgs "agent-forge" { };

    agent = mkOption {
      type = types.nonEmptyListOf types.str;
      default = [
        (lib.getExe' cfg.package "forge-codex-plugin")
      ];
      defaultText = literalExpression ''[ "''${package}/bin/forge-codex-plugin" ]'';
      example = literalExpression ''[ "''${package}/bin/forge-exec-plugin" "--" "''${pkgs.my-agent}/bin/my-agent" ]'';
      description = "The plugin that works on repositories, with its arguments.";
    };

    repositories = mkOption {
      default = { };
      description = ''
        Clones that jobs may name, by their id. Each must belong to the user `forge-worker`.
      '';
      type = types.attrsOf (
        types.submodule (
          { name, ... }:
          {
            options = {
              path = mkOption {
                type = types.strMatching "/.*";
                default = "/var/lib/forge-worker/repositories/${name}.git";
                description = "Where the clone is.";
              };
              branch = mkOption {
                type = types.str;
                default = "main";
                description = "The default branch.";
              };
            };
          }
        )
      );
    };

    concurrency = mkOption {
      type = types.ints.between 1 64;
      default = 1;
      description = "How many jobs run at a time.";
    };
  };

  config = mkIf cfg.enable {
    services.forge-gate = {
      enable = true;
      ownerTokenFile = mkDefault "${place}/owner";
      workers.local = {
        tokenFile = mkDefault "${place}/worker";
        inherit (cfg) concurrency;
      };
      settings.repositories = lib.mapAttrsToList (id: repository: {
        inherit id execution;
        default_branch = repository.branch;
        worker_pool = "coding";
      }) cfg.repositories;
    };

    services.forge-worker = {
      enable = true;
      tokenFile = mkDefault "${place}/worker";
      settings = {
        id = "local";
        # http becomes ws, https wss; without an address the operator's option is asked for
        gate_url = mkIf (gateUrl != null) (mkDefault "ws${lib.removePrefix "http" gateUrl}");
        inherit (cfg) concurrency;
        repository_roots = lib.unique (
          [ "/var/lib/forge-worker/repositories" ]
          ++ map (repository: dirOf repository.path) (lib.attrValues cfg.repositories)
        );
        repositories = lib.mapAttrsToList (id: repository: {
          inherit id;
          inherit (repository) path;
        }) cfg.repositories;
        plugins = [
          {
            id = "text";
            argv = [ (lib.getExe' cfg.package "forge-ref-plugin") ];
          }
          {
            id = "agent";
            argv = cfg.agent;
          }
        ];
        environment_allowlist = [
          "PATH"
          "HOME"
        ];
        check_environment_allowlist = [ "PATH" ];
      };
    };

    programs.forge = {
      enable = true;
      ownerTokenFile = mkDefault "${place}/owner";
    };

    # Members may act as the owner.
    users.groups.agent-forge = { };

    systemd.services.agent-forge-tokens = {
      description = "Tokens of Agent Forge";
      requiredBy = [
        "forge-gate.service"
        "forge-worker.service"
      ];
      before = [
        "forge-gate-secrets.service"
        "forge-gate.service"
        "forge-worker-secrets.service"
        "forge-worker.service"
      ];
      serviceConfig = import ./hardening.nix // {
        Type = "oneshot";
        RemainAfterExit = true;
        StateDirectory = "agent-forge";
        StateDirectoryMode = "0750";
        PrivateNetwork = true;
        # gives folder and owner's token to the group of the operators
        Group = "agent-forge";
        RestrictAddressFamilies = "AF_UNIX";
      };
      script = ''
        cd ${place}
        for name in owner worker; do
          [ ! -s $name ] || continue
          head -c 32 /dev/urandom | base64 -w0 | tr '+/' '-_' >.$name.new
          # a token is there whole or not at all
          mv .$name.new $name
        done
        chmod 0640 owner
        chmod 0600 worker
      '';
    };
  };
}

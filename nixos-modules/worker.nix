# services.forge-worker: leases jobs, runs plugins and checks, makes candidate commits.
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

  cfg = config.services.forge-worker;
  common = import ./common.nix { inherit lib pkgs; };
  json = pkgs.formats.json { };
  state = "/var/lib/forge-worker";

  files = [
    {
      id = "token";
      option = "services.forge-worker.tokenFile";
      path = cfg.tokenFile;
    }
  ];

  within = folder: path: path == folder || lib.hasPrefix "${folder}/" path;
  roots = cfg.settings.repository_roots;
  # what is written outside of the state folder
  elsewhere = lib.filter (folder: !within state folder) (
    roots
    ++ [
      cfg.settings.runtime_root
      cfg.settings.state_dir
      cfg.settings.worktree_root
    ]
  );
in
{
  options.services.forge-worker = {
    enable = mkEnableOption "a Worker of Agent Forge, which runs agents on repositories of this machine";

    package = mkPackageOption pkgs "forge-worker" { };

    settings = mkOption {
      description = ''
        The Worker's configuration file, see docs/reference/config-worker.md. The program itself judges it
        while the system is built. The token is named by `tokenFile`.
      '';
      default = { };
      example = literalExpression ''
        {
          id = "worker-1";
          gate_url = "wss://gate.example:8443";
          repositories = [ { id = "app"; path = "/var/lib/forge-worker/repositories/app.git"; } ];
          plugins = [ { id = "agent"; argv = [ "''${pkgs.my-agent}/bin/my-agent" ]; } ];
        }
      '';
      type = types.submodule {
        freeformType = json.type;
        options.repository_roots = mkOption {
          type = types.listOf (types.strMatching "/.*");
          default = [ "${state}/repositories" ];
          description = "Folders below which repositories are; the service may write there.";
        };
      };
    };

    tokenFile = common.mkSecretOption {
      example = "/run/secrets/forge-worker-1";
      description = "File with the Worker's token; root reads it at each start.";
    };

    drainTimeout = mkOption {
      type = types.ints.between 1 86400;
      default = 900;
      description = ''
        Seconds that running jobs get to end after a stop, before they are killed. A restart, such as by a
        switch of the system, waits as long.
      '';
    };

    path = mkOption {
      type = types.listOf types.package;
      default = [ ];
      example = literalExpression "[ pkgs.cargo pkgs.rustc ]";
      description = ''
        What plugins and checks find in PATH, beside git, a shell and the usual tools, if the settings let them have
        that variable.
      '';
    };

    environment = mkOption {
      type = types.attrsOf types.str;
      default = { };
      description = ''
        Variables that `settings.environment_allowlist` may hand to plugins. They end up in the Nix store: no
        secrets here.
      '';
    };

    inherit (common.settingsOptions) settingsFile checkSettings;
  };

  config = mkIf cfg.enable {
    assertions =
      common.assertions files
      ++ common.settingsAssertions "services.forge-worker.settings" cfg.settings
      ++ map (root: {
        assertion =
          !lib.any (folder: within folder root) [
            "/home"
            "/root"
            "/run/user"
          ];
        message = "`services.forge-worker.settings.repository_roots' has `${root}', where the service sees nothing (ProtectHome). Keep the clones elsewhere, such as below ${state}.";
      }) roots;

    services.forge-worker.settings = {
      version = mkDefault 1;
      heartbeat_interval = mkDefault "5s";
      concurrency = mkDefault 1;
      worktree_root = mkDefault "${state}/worktrees";
      state_dir = mkDefault "${state}/state";
      runtime_root = mkDefault "${state}/runtime";
      git_executable = mkDefault "${pkgs.git}/bin/git";
      drain_timeout = "${toString cfg.drainTimeout}s";
      token_file = common.placeOf "forge-worker" "token";
      ceilings = {
        plugin_timeout = mkDefault "1h";
        check_timeout = mkDefault "30m";
        git_timeout = mkDefault "5m";
        cleanup_timeout = mkDefault "30s";
        plugin_output_bytes = mkDefault 1048576;
        check_output_bytes = mkDefault 1048576;
        git_output_bytes = mkDefault 16777216;
      };
    };

    services.forge-worker.settingsFile = common.checkedSettings {
      option = "services.forge-worker.settings";
      inherit (cfg) package settings;
      check = cfg.checkSettings;
    };

    users.users.forge-worker = {
      isSystemUser = true;
      group = "forge-worker";
      description = "Agent Forge Worker";
      home = state;
    };
    users.groups.forge-worker = { };

    systemd.services.forge-worker-secrets = common.checkUnit "forge-worker" files;

    systemd.services.forge-worker = {
      description = "Agent Forge Worker";
      wantedBy = [ "multi-user.target" ];
      wants = [
        "network-online.target"
        "forge-worker-secrets.service"
      ];
      after = [
        "network-online.target"
        "forge-worker-secrets.service"
      ];
      path = [
        pkgs.bash
        pkgs.git
      ]
      ++ cfg.path;
      environment = {
        HOME = state;
      }
      // cfg.environment;
      # The old program drains with its own unit, then the new one starts.
      stopIfChanged = false;
      # A secret or a folder may come later: it is tried for as long as it takes.
      unitConfig.StartLimitIntervalSec = 0;
      serviceConfig = import ./hardening.nix // {
        Type = "notify";
        ExecStart = "${lib.getExe cfg.package} --config ${cfg.settingsFile}";
        Restart = "on-failure";
        RestartSec = 5;
        # 3: a second signal cancelled what ran. 4, killed at the deadline, stays a failure to be seen.
        SuccessExitStatus = 3;

        # The Worker alone hears of a stop, so that plugins end their work; what is left then is killed.
        KillMode = "mixed";
        TimeoutStopSec = cfg.drainTimeout + 30;

        # A fixed user: repositories belong to it.
        User = "forge-worker";
        Group = "forge-worker";
        StateDirectory = [
          "forge-worker"
          "forge-worker/repositories"
          "forge-worker/runtime"
          "forge-worker/state"
          "forge-worker/worktrees"
        ];
        StateDirectoryMode = "0700";
        WorkingDirectory = state;
        LoadCredential = common.loadCredential files;
        ReadWritePaths = map common.pathInUnit elsewhere;
        LimitNOFILE = 16384;

        # What an agent and the checks of a project need, each with its reason:
        # a cgroup for each invocation, so that none of its processes outlives it
        Delegate = true;
        ProtectControlGroups = false;
        # just-in-time compilers: JavaScript, Java, regular expressions
        MemoryDenyWriteExecute = false;
        # build tools size themselves by /proc/cpuinfo and /proc/meminfo and read /proc/sys
        ProcSubset = "all";
        # a process that closes itself to others must still be found and ended
        ProtectProc = "default";
        # the sandboxes of agents and of build tools are made of user namespaces
        RestrictNamespaces = false;
        # test suites look up interfaces
        RestrictAddressFamilies = [
          "AF_UNIX"
          "AF_INET"
          "AF_INET6"
          "AF_NETLINK"
        ];
        # Compilers, debuggers, sandboxes and tests use more calls than servers: what remains denied is
        # what changes the machine.
        SystemCallFilter = [
          "~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap"
        ];
      };
    };
  };
}

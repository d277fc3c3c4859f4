# programs.forge: the operator's command, told where its Gate is.
{
  lib,
  config,
  pkgs,
  ...
}:
let
  inherit (lib)
    literalExpression
    mkEnableOption
    mkIf
    mkOption
    mkPackageOption
    types
    ;

  cfg = config.programs.forge;
  common = import ./common.nix { inherit lib pkgs; };

  # Flags and the user's own variables still win.
  defaults = lib.filterAttrs (_: value: value != null) {
    FORGE_GATE_URL = cfg.gateUrl;
    FORGE_OWNER_TOKEN_FILE = cfg.ownerTokenFile;
    FORGE_CA_FILE = cfg.caFile;
  };
  wrapper = pkgs.writeShellScriptBin "forge" ''
    ${
      lib.concatStrings (
        lib.mapAttrsToList (name: value: ''
          export ${name}="''${${name}:-"${value}"}"
        '') defaults
      )
    }exec ${lib.getExe cfg.package} "$@"
  '';
in
{
  options.programs.forge = {
    enable = mkEnableOption "the operator's command of Agent Forge, told where its Gate is";

    package = mkPackageOption pkgs "forge" { };

    gateUrl = mkOption {
      type = types.nullOr (types.strMatching "https?://[^ \"$\\`]+");
      default = null;
      defaultText = literalExpression "what `services.forge-gate` says, if it is enabled and a name or address follows from it";
      example = "https://gate.example:8443";
      description = ''
        Where the Gate is. With TLS on one address it must be given: the name is that of the certificate.
      '';
    };

    ownerTokenFile = common.mkSecretOption {
      type = types.nullOr (types.strMatching "/[^\"$\\`]*");
      apply = lib.id;
      default = null;
      example = "/run/secrets/forge-owner";
      description = "File with the owner's token, which operators must be able to read.";
    };

    caFile = mkOption {
      type = types.nullOr types.path;
      apply = path: if path == null then null else common.publicFile path;
      default = null;
      description = "Authority that signed the Gate's certificate, if it is a private one.";
    };
  };

  config = mkIf cfg.enable {
    assertions = [
      {
        assertion = cfg.gateUrl != null;
        message = "`programs.forge.gateUrl' must be set: no Gate of this machine tells it (`services.forge-gate.settings.listen' with TLS is one address, port 0, or the machine has no name).";
      }
    ]
    ++ lib.optionals (cfg.ownerTokenFile != null) (
      common.assertions [
        {
          id = "owner";
          option = "programs.forge.ownerTokenFile";
          path = cfg.ownerTokenFile;
        }
      ]
    );
    # the wrapper wins over the package, which brings completions and the manual page
    environment.systemPackages = [
      (lib.hiPrio wrapper)
      cfg.package
    ];
  };
}

# What the modules share. Secrets reach a service as systemd credentials: read as root at its start,
# visible to it alone, never in the Nix store.
{ lib, pkgs }:
let
  inStore = path: lib.hasPrefix builtins.storeDir (toString path);

  # Another spelling of a place, such as `//nix/store` or `/run/../nix/store`, is not looked at but refused.
  isNormal =
    path:
    !lib.any (
      part:
      lib.elem part [
        ""
        "."
        ".."
      ]
    ) (lib.splitString "/" (lib.removePrefix "/" (toString path)));

  normalMessage = option: path: ''
    `${option}' is `${toString path}', which is not in normal form:
    write it without `.', `..', doubled slashes and a slash at its end.'';

  secretAssertions = option: path: [
    {
      assertion = !inStore path;
      message = storeMessage option;
    }
    {
      assertion = isNormal path;
      message = normalMessage option path;
    }
  ];

  storeMessage = option: ''
    `${option}' lies in the Nix store, which every user of this machine can read.
    Name a file outside of it, such as one made by agenix or sops-nix, as a string.'';
in
rec {
  # An option for the place of a secret.
  mkSecretOption =
    attributes:
    lib.mkOption (
      {
        type = lib.types.path;
        apply = toString;
      }
      // attributes
    );

  # A folder of ReadWritePaths: systemd reads `%` and white space in it, and one that is missing is for
  # the program to name.
  pathInUnit = path: builtins.toJSON ("-" + lib.replaceStrings [ "%" ] [ "%%" ] path);

  # Where a service finds a credential; the name is fixed by systemd.
  placeOf = service: id: "/run/credentials/${service}.service/${id}";

  # A file that everybody may read: written as a Nix path it becomes part of the system.
  publicFile = path: if lib.isPath path then "${path}" else toString path;

  # `files`: a list of { id, option, path, public ? false }.
  assertions = lib.concatMap (
    file: lib.optionals (!(file.public or false)) (secretAssertions file.option file.path)
  );

  # Free settings may name secrets too: every `*_file` or `key` is held to the same.
  # Authorities are public.
  settingsAssertions =
    option: settings:
    let
      isSecret = name: name != "ca_file" && (lib.hasSuffix "_file" name || name == "key");
      found =
        path: value:
        if lib.isAttrs value && !lib.isDerivation value then
          lib.concatLists (
            lib.mapAttrsToList (
              name: each:
              if isSecret name && (lib.isString each || lib.isPath each) then
                secretAssertions "${path}.${name}" each
              else
                found "${path}.${name}" each
            ) value
          )
        else if lib.isList value then
          lib.concatLists (lib.imap1 (at: found "${path}.${toString (at - 1)}") value)
        else
          [ ];
    in
    found option settings;

  loadCredential = map (file: "${file.id}:${file.path}");

  # systemd says which file of a credential is missing, not which option named it. This unit does, and it
  # is only wanted, so that the service itself is started again until the file is there.
  checkUnit = service: files: {
    description = "Secrets of ${service}";
    before = [ "${service}.service" ];
    serviceConfig = import ./hardening.nix // {
      Type = "oneshot";
      # Secrets may belong to anybody and lie anywhere.
      CapabilityBoundingSet = "CAP_DAC_READ_SEARCH";
      PrivateTmp = false;
      PrivateUsers = false;
      ProtectHome = "read-only";
      RestrictAddressFamilies = "AF_UNIX";
      PrivateNetwork = true;
    };
    script = ''
      bad=0
      ${lib.concatMapStringsSep "\n" (file: ''
        if ! [ -f ${lib.escapeShellArg file.path} ]; then
          echo ${lib.escapeShellArg "${file.option}: there is no file ${file.path}"} >&2
          bad=1
        elif ! [ -s ${lib.escapeShellArg file.path} ]; then
          echo ${lib.escapeShellArg "${file.option}: the file ${file.path} is empty"} >&2
          bad=1
        fi
      '') files}
      exit $bad
    '';
  };

  # The options of a service whose settings its program judges.
  settingsOptions = {
    settingsFile = lib.mkOption {
      type = lib.types.package;
      readOnly = true;
      description = "The file made of `settings`, judged unless `checkSettings` is off.";
    };

    checkSettings = lib.mkOption {
      type = lib.types.bool;
      default = pkgs.stdenv.buildPlatform.canExecute pkgs.stdenv.hostPlatform;
      defaultText = lib.literalExpression "whether the machine that builds can run the program";
      description = "Whether the program judges its settings while the system is built.";
    };
  };

  # A settings file that the program itself has judged while it was built.
  checkedSettings =
    {
      option,
      package,
      settings,
      check,
    }:
    let
      program = package.meta.mainProgram;
      file = (pkgs.formats.json { }).generate "${program}.json" settings;
    in
    if !check then
      file
    else
      pkgs.runCommand "${program}-checked.json" { } ''
        if ! ${lib.getExe package} --check-config ${file}; then
          echo "\`${option}' is refused by \`${program} --check-config', see above" >&2
          exit 1
        fi
        cp ${file} $out
      '';
}

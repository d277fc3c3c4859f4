# `testers.runNixOSTest` without a machine: the trees of the nodes and the script, for e2e/driver.
{
  lib,
  pkgs,
  run,
  nixosSystem,
}:
let
  known = [
    "defaults"
    "extraPythonPackages"
    "globalTimeout"
    "meta"
    "name"
    "nodes"
    "passthru"
    "skipLint"
    "skipTypeCheck"
    "testScript"
  ];
in
given:
let
  test = if lib.isFunction given then given { inherit lib pkgs; } else given;
  unknown = lib.subtractLists known (lib.attrNames test);
  names = lib.attrNames test.nodes;
  addresses = lib.listToAttrs (
    lib.imap1 (at: name: lib.nameValuePair name "192.168.1.${toString at}") names
  );
  node =
    name: module:
    (nixosSystem {
      inherit pkgs;
      specialArgs = { inherit nodes; };
      modules = [
        {
          networking.hostName = lib.mkDefault name;
          networking.primaryIPAddress = addresses.${name};
          networking.hosts = lib.mapAttrs' (other: address: lib.nameValuePair address [ other ]) addresses;
        }
        (test.defaults or { })
        module
      ];
    }).config;
  nodes = lib.mapAttrs node test.nodes;
  script =
    if lib.isFunction test.testScript then test.testScript { inherit nodes; } else test.testScript;
  facts = lib.mapAttrs (name: config: {
    address = addresses.${name};
    inherit (config.virtualisation) memorySize cores diskSize;
  }) nodes;
in
if unknown != [ ] then
  throw "The option `${lib.head unknown}' does not exist. It is set in a test."
else
  run {
    name = "vm-test-run-${test.name}";
    meta = test.meta or { };
    passthru = (test.passthru or { }) // {
      inherit nodes;
    };
    env = {
      testScript = script;
      facts = builtins.toJSON facts;
      passAsFile = [
        "script"
        "testScript"
      ];
    };
    script = ''
      mkdir -p $out/nodes
      cp "$testScriptPath" $out/testScript
      printf '%s\n' "$facts" >$out/nodes.json
      ${lib.concatStringsSep "\n" (
        lib.mapAttrsToList (name: config: "cp -r ${config.system.build.toplevel} $out/nodes/${name}") nodes
      )}
    '';
  }

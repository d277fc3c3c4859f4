# The appliance of three lines: Gate, Worker and operator's command on one machine, with tokens of its own.
{ self, pkgs }:
let
  agent = pkgs.writeShellScript "e2e-small-agent" ''
    read -r text
    echo "$text" >answer.txt
  '';
in
{
  name = "one-machine";

  nodes.machine =
    { config, ... }:
    {
      imports = [ self.nixosModules.default ];
      services.agent-forge = {
        enable = true;
        repositories.app = { };
        agent = [
          "${config.services.agent-forge.package}/bin/forge-exec-plugin"
          "--"
          "${agent}"
        ];
      };
      environment.systemPackages = [ pkgs.git ];
      users.users.alice = {
        isNormalUser = true;
        extraGroups = [ "agent-forge" ];
      };
      users.users.mallory.isNormalUser = true;
    };

  testScript = builtins.readFile ./one-machine.py;
}

# A registry and a client on two machines, over TLS: a package is published, found and downloaded, whatever
# happens to the registry meanwhile. Nothing secret is here: registry.py makes it.
{ self, pkgs }:
let
  secret = name: "/var/secrets/${name}";
in
{
  name = "registry";

  nodes.registry = {
    imports = [ self.nixosModules.registry ];
    services.openssh.enable = true;
    services.backplane-registry = {
      enable = true;
      openFirewall = true;
      settings.listen = "0.0.0.0:8790";
      tls = {
        certificateFile = secret "registry.crt";
        keyFile = secret "registry.key";
      };
      tokens = {
        reader.tokenFile = secret "reader.token";
        publisher = {
          scopes = [
            "read"
            "publish"
            "yank"
          ];
          tokenFile = secret "publisher.token";
        };
      };
    };
  };

  nodes.client.environment.systemPackages = [
    self.packages.${pkgs.stdenv.hostPlatform.system}.backplane
    pkgs.curl
    pkgs.openssh
    pkgs.openssl
  ];

  testScript = builtins.readFile ./registry.py;
}

# Stands in for nixpkgs where nixpkgs cannot be fetched. What it is and what it cannot catch: README.md.
{
  description = "A small, strict stand-in for the parts of nixpkgs that this repository uses";

  outputs =
    _:
    let
      lib = import ./lib;
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      here = if builtins.pathExists ./here.json then lib.importJSON ./here.json else { };
      # `pkgs`, if given, is what modules get; else it follows the platform that they set.
      nixosSystem = import ./nixos/system.nix {
        inherit lib;
        pkgsFor = lib.genAttrs systems packages;
      };
      packages =
        system:
        import ./pkgs {
          inherit
            lib
            system
            here
            nixosSystem
            ;
        };
    in
    {
      lib = lib // {
        nixosSystem = { modules }: nixosSystem { inherit modules; };
      };
      legacyPackages = lib.genAttrs systems packages;
    };
}

{
  description = "Agent Forge appliance: takes a coding task to a commit that somebody may trust";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      inherit (nixpkgs) lib;

      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      perSystem =
        f:
        lib.genAttrs systems (
          system:
          f {
            inherit system;
            pkgs = nixpkgs.legacyPackages.${system};
            ours = self.packages.${system};
          }
        );

      # Every folder of bins/ is a program of that name, and nothing else is.
      programs = lib.attrNames (lib.filterAttrs (_: kind: kind == "directory") (builtins.readDir ./bins));

      build = pkgs: pkgs.callPackage ./bins/package.nix { inherit programs; };

      # A module together with the program that it starts. The key lets several modules import it.
      module =
        {
          file,
          option,
          program,
          also ? [ ],
        }:
        { pkgs, lib, ... }:
        {
          key = "agent-forge#${program}";
          imports = also ++ [ file ];
          config = lib.setAttrByPath (option ++ [ "package" ]) (
            lib.mkDefault self.packages.${pkgs.stdenv.hostPlatform.system}.${program}
          );
        };

      # Every e2e/NAME.nix is a scenario, and e2e/NAME.py its script.
      scenarios = map (lib.removeSuffix ".nix") (
        lib.filter (lib.hasSuffix ".nix") (lib.attrNames (builtins.readDir ./e2e))
      );
    in
    {
      packages = perSystem ({ pkgs, ... }: (build pkgs).packages);

      apps = perSystem (
        { ours, ... }:
        lib.genAttrs programs (name: {
          type = "app";
          program = lib.getExe ours.${name};
          meta.description = ours.${name}.meta.description;
        })
        // {
          default = {
            type = "app";
            program = lib.getExe ours.forge;
            meta.description = ours.forge.meta.description;
          };
        }
      );

      overlays.default =
        final: _:
        let
          made = (build final).packages;
        in
        # The names must not hang on `final`, which is there only once they are known.
        lib.genAttrs programs (name: made.${name}) // { agent-forge = made.default; };

      nixosModules = {
        operator = module {
          file = ./nixos-modules/operator.nix;
          option = [
            "programs"
            "forge"
          ];
          program = "forge";
        };
        gate = module {
          file = ./nixos-modules/gate.nix;
          option = [
            "services"
            "forge-gate"
          ];
          program = "forge-gate";
          also = [ self.nixosModules.operator ];
        };
        worker = module {
          file = ./nixos-modules/worker.nix;
          option = [
            "services"
            "forge-worker"
          ];
          program = "forge-worker";
        };
        registry = module {
          file = ./nixos-modules/registry.nix;
          option = [
            "services"
            "backplane-registry"
          ];
          program = "backplane";
        };
        default = module {
          file = ./nixos-modules/appliance.nix;
          option = [
            "services"
            "agent-forge"
          ];
          program = "default";
          also = [
            self.nixosModules.gate
            self.nixosModules.worker
          ];
        };
      };

      checks = perSystem (
        {
          system,
          pkgs,
          ours,
        }:
        {
          inherit (build pkgs) clippy tests;
          build = ours.default;
        }
        // import ./nixos-modules/tests {
          inherit
            lib
            pkgs
            self
            system
            ;
          inherit (nixpkgs.lib) nixosSystem;
        }
        // lib.listToAttrs (
          map (
            name:
            lib.nameValuePair "vm-${name}" (
              pkgs.testers.runNixOSTest (import ./e2e/${name}.nix { inherit self pkgs; })
            )
          ) scenarios
        )
      );

      devShells = perSystem (
        { pkgs, ... }:
        {
          default = pkgs.mkShell {
            # what `cargo xtask ci` would install elsewhere
            packages = [
              pkgs.cargo
              pkgs.cargo-deny
              pkgs.cargo-nextest
              pkgs.clippy
              pkgs.deadnix
              pkgs.git
              pkgs.nixfmt
              pkgs.nodejs
              pkgs.openssl
              (pkgs.python3.withPackages (python: [ python.pip ]))
              pkgs.ruff
              pkgs.rustc
              pkgs.rustfmt
              pkgs.taplo
              pkgs.typos
              pkgs.util-linux
            ];
          };
        }
      );

      formatter = perSystem ({ pkgs, ... }: pkgs.nixfmt-tree);
    };
}

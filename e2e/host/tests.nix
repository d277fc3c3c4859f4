# What the module system here promises, as lists of what it gives and what is right. Evaluates to the
# names of those that differ; `lib` may be the real one.
{
  lib ? import ./lib,
}:
let
  inherit (lib) mkOption types;
  value =
    type: definitions:
    (lib.evalModules {
      modules = [
        { options.x = mkOption { inherit type; }; }
      ]
      ++ map (x: { inherit x; }) definitions;
    }).config.x;
  refused =
    type: definitions: !(builtins.tryEval (builtins.deepSeq (value type definitions) true)).success;
  free = types.submodule {
    freeformType = types.attrsOf types.int;
    options.declared = mkOption {
      type = types.int;
      default = 1;
    };
  };
  named = types.attrsOf (
    types.submodule (
      { name, config, ... }:
      {
        options.own = mkOption {
          type = types.str;
          default = name;
        };
        options.twice = mkOption {
          type = types.str;
          default = config.own + config.own;
        };
      }
    )
  );
  whole =
    modules:
    builtins.tryEval (
      builtins.deepSeq (lib.evalModules { inherit modules; }).config
        (lib.evalModules { inherit modules; }).config
    );

  cases = {
    a-default-loses =
      value types.int [
        (lib.mkDefault 1)
        2
      ] == 2;
    force-wins =
      value types.int [
        1
        (lib.mkForce 3)
      ] == 3;
    equal-definitions-agree =
      value types.str [
        "a"
        "a"
      ] == "a";
    different-definitions-clash = refused types.str [
      "a"
      "b"
    ];
    packages-are-defined-once = refused types.raw [
      1
      1
    ];
    conditions-count =
      value (types.listOf types.int) [
        (lib.mkIf false [ 1 ])
        (lib.mkIf true [ 2 ])
        (lib.mkMerge [
          [ 3 ]
          (lib.mkIf false [ 4 ])
        ])
      ] == [
        2
        3
      ];
    order-counts =
      value (types.listOf types.int) [
        (lib.mkAfter [ 3 ])
        [ 2 ]
        (lib.mkBefore [ 1 ])
      ] == [
        1
        2
        3
      ];
    lists-may-be-empty = value (types.listOf types.int) [ ] == [ ];
    strings-may-not = refused types.str [ ];
    elements-have-types = refused (types.listOf types.int) [ [ "a" ] ];
    conditional-attributes-vanish =
      value (types.attrsOf types.int) [
        {
          a = lib.mkIf false 1;
          b = 2;
        }
      ] == {
        b = 2;
      };
    freedom-has-a-type =
      value free [
        { other = 2; }
        { declared = 3; }
      ] == {
        declared = 3;
        other = 2;
      };
    freedom-refuses-other-types = refused free [ { other = "a"; } ];
    submodules-know-their-names =
      value named [
        { a.own = lib.mkDefault "b"; }
        { c = { }; }
      ] == {
        a = {
          own = "b";
          twice = "bb";
        };
        c = {
          own = "c";
          twice = "cc";
        };
      };
    submodules-refuse-what-is-unknown = refused named [ { a.other = 1; } ];
    null-is-alone = refused (types.nullOr types.int) [
      null
      1
    ];
    unknown-options-are-refused = !(whole [ { a = 1; } ]).success;
    unknown-options-are-refused-under-a-false-condition =
      !(whole [ (lib.mkIf false { a.b = 1; }) ]).success;
    options-are-declared-once =
      !(whole [
        { options.a = mkOption { default = 1; }; }
        { options.a = mkOption { default = 1; }; }
      ]).success;
    a-key-is-one-module =
      (whole [
        {
          key = "k";
          options.a = mkOption { default = 1; };
        }
        {
          key = "k";
          options.a = mkOption { default = 1; };
        }
      ]).value.a == 1;
    values-beside-config-are-refused =
      !(whole [
        {
          options.a = mkOption { default = 1; };
          a = 2;
        }
      ]).success;
    a-default-is-not-looked-at-in-vain =
      (whole [
        { options.a = mkOption { default = throw "no"; }; }
        { a = lib.mkDefault 1; }
      ]).value.a == 1;
    read-only-is-set-once =
      !(whole [
        {
          options.a = mkOption {
            type = types.int;
            readOnly = true;
          };
        }
        { a = 1; }
        { a = 1; }
      ]).success;
  };
in
lib.attrNames (lib.filterAttrs (_: right: !right) cases)

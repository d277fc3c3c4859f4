# Declaring options.
{ lib }:
let
  known = [
    "apply"
    "default"
    "defaultText"
    "description"
    "example"
    "internal"
    "readOnly"
    "type"
    "visible"
  ];
in
rec {
  mkOption =
    attributes:
    let
      unknown = lib.subtractLists known (lib.attrNames attributes);
    in
    if unknown != [ ] then
      throw "mkOption: unknown attribute `${lib.head unknown}'"
    else
      { _type = "option"; } // attributes;

  mkEnableOption =
    name:
    mkOption {
      default = false;
      example = true;
      description = "Whether to enable ${name}.";
      type = lib.types.bool;
    };

  mkPackageOption =
    pkgs: name:
    {
      default ? name,
      nullable ? false,
      example ? null,
      extraDescription ? "",
    }:
    let
      path = lib.toList default;
    in
    mkOption (
      {
        type = if nullable then lib.types.nullOr lib.types.package else lib.types.package;
        description =
          "The ${lib.showOption (lib.toList name)} package to use."
          + lib.optionalString (extraDescription != "") " ${extraDescription}";
        default =
          lib.attrByPath path (throw "${lib.concatStringsSep "." path} cannot be found in pkgs")
            pkgs;
        defaultText = literalExpression "pkgs.${lib.showOption path}";
      }
      // lib.optionalAttrs (example != null) { inherit example; }
    );

  literalExpression =
    text:
    if lib.isString text then
      {
        _type = "literalExpression";
        inherit text;
      }
    else
      throw "literalExpression takes a string";

  isOption = value: lib.isAttrs value && value._type or null == "option";
}

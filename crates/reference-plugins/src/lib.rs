//! The plugins that ship with the appliance, as functions over the plugin kit.

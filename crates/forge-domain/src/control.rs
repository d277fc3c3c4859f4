//! What Gate and Worker agree on beside the work itself: whether a slot takes leases, and why an
//! attempt is to stop.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::DomainError;

/// The name under which job control is negotiated.
pub const CONTROL_VERSION: &str = "job_control/v1";

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $field:literal, $rule:literal { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = DomainError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL
                    .iter()
                    .copied()
                    .find(|value| value.as_str() == text)
                    .ok_or_else(|| DomainError::rule($field, $rule))
            }
        }
    };
}

words! {
    /// Why a slot takes no lease.
    NotAccepting, "reason", "must be draining, disk_low or paused" {
        /// Its Worker is about to stop.
        Draining = "draining",
        /// There is too little room where its Worker prepares workspaces.
        DiskLow = "disk_low",
        /// Its operator told it to pause.
        Paused = "paused",
    }
}

words! {
    /// Why the Gate tells a Worker to stop an attempt.
    CancelReason, "reason", "must be operator, lease_lost or shutdown" {
        /// The owner cancelled the job.
        Operator = "operator",
        /// The lease has ended; another attempt may be running.
        LeaseLost = "lease_lost",
        /// The Gate stops for good.
        Shutdown = "shutdown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_are_a_closed_list() {
        for reason in NotAccepting::ALL {
            assert_eq!(reason.as_str().parse::<NotAccepting>().unwrap(), *reason);
        }
        for reason in CancelReason::ALL {
            assert_eq!(reason.as_str().parse::<CancelReason>().unwrap(), *reason);
        }
        assert!("Draining".parse::<NotAccepting>().is_err());
        assert!("".parse::<CancelReason>().is_err());
    }
}

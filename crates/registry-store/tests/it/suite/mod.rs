//! What holds wherever artifacts are kept.

pub(crate) mod asides;
mod bytes;
mod releases;

/// Makes two tests of each function: one with artifacts on disk, one with artifacts in memory.
macro_rules! in_every_place {
    ($($name:ident)*) => {
        mod disk {
            $(#[tokio::test]
            async fn $name() {
                super::$name(registry_store::ArtifactPlace::Disk).await;
            })*
        }
        mod memory {
            $(#[tokio::test]
            async fn $name() {
                super::$name(registry_store::ArtifactPlace::Memory).await;
            })*
        }
    };
}

pub(crate) use in_every_place;

//! What holds wherever artifacts are kept.

pub(crate) mod asides;
mod bytes;
mod releases;

/// Makes tests of each function: with artifacts on disk, in memory, and in a bucket.
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
        mod bucket {
            $(#[tokio::test]
            async fn $name() {
                let service = crate::bucket::service::Service::start().await;
                super::$name(service.place()).await;
                service.check();
            })*
        }
    };
}

pub(crate) use in_every_place;

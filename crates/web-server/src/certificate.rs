//! Looks at the files of a certificate and takes new ones into use.

use std::time::Duration;

use tls_files::ServerTls;
use tokio_util::sync::CancellationToken;

/// How often the certificate files are looked at.
const INTERVAL: Duration = Duration::from_secs(5);

/// Reloads the certificate whenever its files change, until the server stops.
pub async fn watch(component: &'static str, stopping: CancellationToken, tls: ServerTls) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = stopping.cancelled() => return,
        }
        match tls.reload_if_changed() {
            Ok(false) => {}
            Ok(true) => tracing::info!(component, "the certificate was reloaded"),
            Err(error) => {
                tracing::warn!(component, %error, "the new certificate cannot be used, the old one stays");
            }
        }
    }
}

//! Bytes that are sent to the registry past every check of the client.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::DemoError;

const LONGEST: Duration = Duration::from_secs(30);
const ANSWER_BYTES: u64 = 1 << 16;

/// Uploads bytes under their digest and returns the answer: its first line, and its body.
pub(super) async fn upload(
    address: &str,
    token: &str,
    digest: &str,
    bytes: &[u8],
) -> Result<(String, String), DemoError> {
    let head = format!(
        "PUT /plugin-protocol/v1/artifacts/{digest} HTTP/1.1\r\nhost: {address}\r\n\
         authorization: Bearer {token}\r\ncontent-type: application/x-tar+gzip\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        bytes.len()
    );
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(bytes).await?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES).read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = match tokio::time::timeout(LONGEST, exchange).await {
        Ok(answer) => answer.map_err(|source| DemoError::Upload { source })?,
        Err(_) => {
            let source = std::io::ErrorKind::TimedOut.into();
            return Err(DemoError::Upload { source });
        }
    };
    let text = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let first = head.lines().next().unwrap_or_default();
    Ok((first.to_owned(), body.to_owned()))
}

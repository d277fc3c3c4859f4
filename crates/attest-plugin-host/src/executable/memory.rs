//! A copy in memory that nobody can change once it is sealed, not even its maker.

use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, Mode, SealFlags, fchmod, fcntl_add_seals, memfd_create};
use rustix::io::{Errno, pread, retry_on_intr, write};

/// Bytes that are moved at once.
const CHUNK: usize = 256 * 1024;

/// Why there is no copy.
#[derive(Debug)]
pub(super) enum NoCopy {
    /// The system allows no programs in memory.
    Forbidden,
    /// The file has more bytes than allowed.
    TooLarge,
    /// The file could not be read.
    Read(Errno),
    /// The copy could not be made.
    Write(Errno),
}

/// Copies a file and seals the copy. The descriptor can still be written through, in vain, and as
/// long as it is open the system starts nothing from the copy.
pub(super) fn sealed_copy(file: &OwnedFd, limit: u64) -> Result<OwnedFd, NoCopy> {
    let copy = create()?;
    let mut taken = 0;
    each_chunk(file, |bytes| {
        taken += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if taken > limit {
            return Err(NoCopy::TooLarge);
        }
        write_all(&copy, bytes).map_err(NoCopy::Write)
    })?;
    // For this user alone; the system's own default is for everybody.
    fchmod(&copy, Mode::RUSR | Mode::XUSR).map_err(NoCopy::Write)?;
    let all = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&copy, all).map_err(NoCopy::Write)?;
    Ok(copy)
}

/// Shows a file to a function from its beginning to its end, wherever its offset is.
pub(super) fn each_chunk<E>(
    file: &OwnedFd,
    mut look: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E>
where
    E: From<Errno>,
{
    let mut buffer = vec![0; CHUNK];
    let mut offset = 0;
    loop {
        let count = retry_on_intr(|| pread(file, buffer.as_mut_slice(), offset))?;
        let bytes = buffer.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(());
        }
        look(bytes)?;
        offset = offset.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
    }
}

impl From<Errno> for NoCopy {
    fn from(errno: Errno) -> Self {
        Self::Read(errno)
    }
}

fn create() -> Result<OwnedFd, NoCopy> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let name = "attest-plugin";
    match memfd_create(name, flags | MemfdFlags::EXEC) {
        // Kernels before 6.3 do not know the flag, and all their copies can be executed.
        Err(Errno::INVAL) => memfd_create(name, flags).map_err(NoCopy::Write),
        Err(Errno::ACCESS | Errno::PERM) => Err(NoCopy::Forbidden),
        made => made.map_err(NoCopy::Write),
    }
}

fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let count = retry_on_intr(|| write(file, bytes))?;
        if count == 0 {
            return Err(Errno::IO);
        }
        bytes = bytes.get(count..).unwrap_or_default();
    }
    Ok(())
}

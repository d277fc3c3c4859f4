//! Takes a secret variable back out of this process, so that nobody who looks at it later finds it.

use std::ffi::CString;
use std::io;

/// Overwrites the value of an environment variable where it lies, which is what
/// `/proc/PID/environ` shows, and removes the variable. A variable that is not set is no error.
///
/// Call it before any thread or runtime starts.
///
/// # Errors
/// Other threads run, which may be reading the environment; nothing was changed then.
pub fn forget_variable(name: &str) -> io::Result<()> {
    let key = CString::new(name)?;
    if name.is_empty() || name.contains('=') {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    if threads()? != 1 {
        return Err(io::Error::other("other threads run already"));
    }
    #[expect(
        unsafe_code,
        reason = "no safe call changes the environment of a running process"
    )]
    // SAFETY: this is the only thread, so nobody reads or moves the environment meanwhile. What
    // `getenv` returns is null or a string in it, writable and ended by NUL; exactly the bytes
    // before that NUL are written. The pointer is not used after the variable was removed.
    unsafe {
        let value = nix::libc::getenv(key.as_ptr());
        if !value.is_null() {
            let length = nix::libc::strlen(value);
            // Volatile, so that it happens although nobody reads the bytes again.
            for at in 0..length {
                value.add(at).write_volatile(0);
            }
        }
        std::env::remove_var(name);
    }
    Ok(())
}

fn threads() -> io::Result<usize> {
    if cfg!(target_os = "linux") {
        Ok(std::fs::read_dir("/proc/self/task")?.count())
    } else {
        // There is nothing to count with; the caller's promise has to do.
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_changed_while_other_threads_run() {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || stopped.recv());
        let error = forget_variable("PATH").unwrap_err();
        assert_eq!(error.to_string(), "other threads run already");
        #[expect(clippy::disallowed_methods, reason = "looks at what must not change")]
        let kept = std::env::var_os("PATH").is_some();
        assert!(kept);
        drop(stop);
        other.join().unwrap().unwrap_err();
    }

    #[test]
    fn a_name_that_no_variable_can_have_is_refused() {
        for name in ["", "A=B", "A\0B"] {
            assert!(forget_variable(name).is_err(), "{name:?}");
        }
    }
}

//! The only file that prints events, and what every command may fail with.

use std::io::{self, Write};

/// What a command failed with: one sentence that says what to do.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// Writes one line to standard output at once, so that a reader behind a pipe sees it as it happens.
///
/// # Errors
/// The I/O error; a broken pipe is a normal end for the program.
pub fn line(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// Whether the reader of our output has gone, as with `informant watch pods | head -1`.
pub fn is_broken_pipe(error: &Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Whether the reader of our output has gone, also when there's nothing to write; no if that can't be seen, as with a file.
pub fn reader_is_gone() -> bool {
    #[cfg(unix)]
    {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        let stdout = io::stdout();
        // Nothing is asked for: that the other end is closed is told in any case.
        let mut out = [PollFd::new(&stdout, PollFlags::empty())];
        poll(&mut out, Some(&Timespec::default())).is_ok() && out[0].revents().contains(PollFlags::ERR)
    }
    #[cfg(not(unix))]
    false
}

/// An error and its causes in one line, each said once.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

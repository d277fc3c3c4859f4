//! The plugin that the tests of this crate run: it does what its arguments say, in order.
//!
//! Also their wrapper. It is built with the package, yet belongs to no product.

use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

fn main() -> ExitCode {
    if let Some(code) = process_tree::run_wrapper_if_asked() {
        return code;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut plugin = Plugin::default();
    match plugin.act(words.into_iter()) {
        Ok(code) => ExitCode::from(code),
        // 99 is used by no script, so that a test sees what happened.
        Err(_) => ExitCode::from(99),
    }
}

#[derive(Default)]
struct Plugin {
    /// The id of the session, in place of `@` in what it writes.
    id: String,
    /// Writes one byte at a time.
    drips: bool,
    /// Where it notes the lines that it reads.
    record: Option<PathBuf>,
}

impl Plugin {
    /// Does one word after another; the end of the words is exit code 0.
    fn act(&mut self, mut words: impl Iterator<Item = String>) -> io::Result<u8> {
        while let Some(word) = words.next() {
            match word.as_str() {
                // init CAPABILITIES: the handshake, capabilities separated by commas.
                "init" => {
                    let line = self.read_line()?;
                    let (_, rest) = line.split_once(r#""id":""#).unwrap_or_default();
                    self.id = rest.chars().take(32).collect();
                    let selected = next(&mut words)?.replace(',', r#"",""#);
                    self.frame(&format!(
                        r#""type":"initialized","capabilities":["{selected}"]"#
                    ))?;
                }
                // Reads one frame.
                "read" => {
                    self.read_line()?;
                }
                "read-to-end" => while !self.read_line()?.is_empty() {},
                "result" => {
                    let output = next(&mut words)?;
                    self.frame(&format!(r#""type":"result","output":"{output}""#))?;
                }
                "failure" => {
                    let category = next(&mut words)?;
                    self.frame(&format!(r#""type":"failure","category":"{category}""#))?;
                }
                // progress SEQUENCE TEXT
                "progress" => {
                    let sequence = next(&mut words)?;
                    let text = next(&mut words)?;
                    self.frame(&format!(
                        r#""type":"progress","sequence":{sequence},"stage":"working","text":"{text}""#
                    ))?;
                }
                // Any bytes: `@` is the id, `\n`, `\r` and `\xNN` are what they look like.
                "raw" => {
                    let bytes = unescape(&next(&mut words)?.replace('@', &self.id));
                    self.write(&bytes)?;
                }
                "drip" => self.drips = true,
                "record" => self.record = Some(next(&mut words)?.into()),
                "stderr" => fill(io::stderr(), number(&mut words)?)?,
                "complain" => io::stderr().write_all(next(&mut words)?.as_bytes())?,
                "sleep" => std::thread::sleep(Duration::from_millis(number(&mut words)?)),
                "await" => {
                    let path = PathBuf::from(next(&mut words)?);
                    while !path.exists() {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
                "pidfile" => {
                    let path = PathBuf::from(next(&mut words)?);
                    let fresh = path.with_extension("fresh");
                    std::fs::write(&fresh, std::process::id().to_string())?;
                    std::fs::rename(fresh, path)?;
                }
                // bg KEEP WORDS: another of its kind in the background, words joined by `+`.
                "bg" => {
                    let keep = next(&mut words)?;
                    let inner = next(&mut words)?;
                    start(&keep, &inner)?;
                }
                "kill-self" => shell("kill -9 $PPID")?,
                "kill-wrapper" => shell("kill -9 $(cut -d' ' -f4 /proc/$PPID/stat)")?,
                "exit" => return u8::try_from(number(&mut words)?).map_err(io::Error::other),
                other => return Err(io::Error::other(format!("no such word `{other}`"))),
            }
        }
        Ok(0)
    }

    fn frame(&self, fields: &str) -> io::Result<()> {
        let line = format!("{{\"version\":\"v1\",\"id\":\"{}\",{fields}}}\n", self.id);
        self.write(line.as_bytes())
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout();
        if self.drips {
            for byte in bytes {
                stdout.write_all(&[*byte])?;
                stdout.flush()?;
            }
        } else {
            stdout.write_all(bytes)?;
        }
        stdout.flush()
    }

    fn read_line(&self) -> io::Result<String> {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        if let Some(path) = &self.record {
            let mut all = std::fs::read(path).unwrap_or_default();
            all.extend_from_slice(line.as_bytes());
            std::fs::write(path, all)?;
        }
        Ok(line)
    }
}

fn start(keep: &str, words: &str) -> io::Result<()> {
    let pass = |wanted: &str| {
        if keep.split('+').any(|kept| kept == wanted) {
            Stdio::inherit()
        } else {
            Stdio::null()
        }
    };
    // A new session needs a call that std does not offer.
    let program = "import os,sys; os.setsid(); os.execv(sys.argv[1], sys.argv[1:])";
    command("python3")
        .args(["-c", program])
        .arg(std::env::current_exe()?)
        .args(words.split('+'))
        .stdin(Stdio::null())
        .stdout(pass("out"))
        .stderr(pass("err"))
        .spawn()?;
    Ok(())
}

fn shell(script: &str) -> io::Result<()> {
    let mut output = String::new();
    let mut child = command("/bin/sh")
        .args(["-c", script])
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(stdout) = &mut child.stdout {
        stdout.read_to_string(&mut output)?;
    }
    child.wait()?;
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "it plays a plugin that starts others"
)]
fn command(program: &str) -> Command {
    Command::new(program)
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            bytes.extend(c.to_string().bytes());
            continue;
        }
        match rest.next() {
            Some('n') => bytes.push(b'\n'),
            Some('r') => bytes.push(b'\r'),
            Some('x') => {
                let digits: String = rest.by_ref().take(2).collect();
                bytes.extend(u8::from_str_radix(&digits, 16));
            }
            Some(other) => bytes.extend(['\\', other].iter().collect::<String>().bytes()),
            None => bytes.push(b'\\'),
        }
    }
    bytes
}

fn fill(mut to: impl Write, count: u64) -> io::Result<()> {
    let count = usize::try_from(count).map_err(io::Error::other)?;
    to.write_all(&vec![b'x'; count])?;
    to.flush()
}

fn number(words: &mut impl Iterator<Item = String>) -> io::Result<u64> {
    next(words)?.parse().map_err(io::Error::other)
}

fn next(words: &mut impl Iterator<Item = String>) -> io::Result<String> {
    words
        .next()
        .ok_or_else(|| io::Error::other("a word is missing"))
}

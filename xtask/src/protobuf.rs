//! `cargo xtask protobuf`: the table by which the embedded server and the informers read protobuf, made and checked with
//! Go's own types.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;

const PROGRAM: &str = "peers/protobuf-table";
const SERVER: &str = "crates/informant-apiserver/data";
/// Its own copy: the server shares nothing with the client side.
const CACHE: &str = "crates/informant-cache/data";
/// The derive's copy. It's read by a compiler at work, without a decompressor.
const DERIVE: &str = "crates/informant-derive/data/protobuf.txt";
const HELP: &str = "\
cargo xtask protobuf COMMAND, with Go 1.26 or newer

  write   write the table, and one random object of every kind to test it with
  check   compare 20 random objects of every kind with Go's own JSON";

/// Runs the command.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["write"] => {
            let (table, cases) = (go(&["table"])?, go(&["cases", "37", "1"])?);
            for directory in [SERVER, CACHE] {
                write(directory, "protobuf.zst", &table)?;
            }
            std::fs::write(DERIVE, &table).map_err(Failure::file(Path::new(DERIVE)))?;
            write(SERVER, "protobuf-cases.zst", &cases)
        }
        ["check"] => check(),
        _ => Err(Failure::Usage(HELP.to_owned())),
    }
}

fn go(arguments: &[&str]) -> Result<Vec<u8>, Failure> {
    let output = Command::new("go")
        .args(["run", "."])
        .args(arguments)
        .current_dir(PROGRAM)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::Missing(format!("go (1.26 or newer) can't be started: {error}")))?;
    if output.status.success() { Ok(output.stdout) } else { Err(Failure::Failed(format!("go run: {}", output.status))) }
}

fn write(directory: &str, name: &str, content: &[u8]) -> Result<(), Failure> {
    let path = Path::new(directory).join(name);
    let compressed = zstd::bulk::compress(content, 19).map_err(Failure::file(&path))?;
    std::fs::write(&path, &compressed).map_err(Failure::file(&path))?;
    println!("{}: {} bytes", path.display(), compressed.len());
    Ok(())
}

fn check() -> Result<(), Failure> {
    let directory = std::env::current_dir().map_err(Failure::file(Path::new(".")))?.join("target");
    std::fs::create_dir_all(&directory).map_err(Failure::file(&directory))?;
    let path = directory.join("protobuf-cases.txt");
    let mut file = File::create(&path).map_err(Failure::file(&path))?;
    std::io::Write::write_all(&mut file, &go(&["cases", "11", "20"])?).map_err(Failure::file(&path))?;
    for package in ["informant-apiserver", "informant-cache"] {
        let status = Command::new("cargo")
            .args(["test", "--package", package, "--lib", "protobuf::tests::objects"])
            .env("INFORMANT_PROTOBUF_CASES", &path)
            .status()
            .map_err(|error| Failure::Missing(format!("cargo can't be started: {error}")))?;
        if !status.success() {
            return Err(Failure::Failed(format!("the decoder of {package} and Go differ")));
        }
    }
    Ok(())
}

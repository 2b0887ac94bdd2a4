//! `nodewise links`: the names by which this program is another.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use nodewise_compat::Tool;
use nodewise_machine::printable::{io_words, visible};

use crate::cli::Global;
use crate::cli::personality::Links;
use crate::failure::{Failure, Outcome};

/// Runs the verb.
pub fn run(args: &Links, _global: &Global) -> Outcome {
    links(args)
}

/// Makes a link for every tool, or none of them where one of the names is taken.
fn links(args: &Links) -> Outcome {
    let own = std::env::current_exe().map_err(|error| {
        Failure::cannot(format_args!("cannot find the file of this program: {}", io_words(&error)))
    })?;
    let taken = |tool: &Tool| args.folder.join(tool.name()).symlink_metadata().is_ok();
    if let Some(tool) = Tool::ALL.into_iter().find(taken).filter(|_| !args.force) {
        let path = args.folder.join(tool.name());
        return Err(Failure::cannot(format_args!(
            "{} exists already: --force replaces it",
            visible(&path.to_string_lossy())
        )));
    }
    for tool in Tool::ALL {
        let path = args.folder.join(tool.name());
        link(&own, &path).map_err(|error| {
            Failure::cannot(format_args!(
                "cannot write {}: {}",
                visible(&path.to_string_lossy()),
                io_words(&error)
            ))
        })?;
    }
    Ok(0)
}

/// Makes a link beside the name and puts it in its place, so that the name is never missing.
fn link(own: &Path, path: &Path) -> io::Result<()> {
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    symlink(own, &beside)?;
    fs::rename(&beside, path).inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_made_once_and_replaced_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let of = |force| Links { folder: folder.path().to_owned(), force };
        assert_eq!(links(&of(false)).unwrap(), 0);
        for tool in Tool::ALL {
            let target = fs::read_link(folder.path().join(tool.name())).unwrap();
            assert_eq!(target, std::env::current_exe().unwrap());
        }
        assert!(links(&of(false)).unwrap_err().message.contains("--force"));
        assert_eq!(links(&of(true)).unwrap(), 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), Tool::ALL.len());
    }
}
